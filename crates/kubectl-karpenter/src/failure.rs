//! What can go wrong for the person at the keyboard: one sentence, a hint, an exit code.

use std::fmt;

/// Why the program ends without having done its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
    /// How the process ends.
    pub exit_code: u8,
}

/// The request itself cannot be understood.
const MISUSE: u8 = 2;

impl Failure {
    /// The request cannot be understood.
    pub fn misuse(message: impl Into<String>, hint: Option<&str>) -> Self {
        Self { message: message.into(), hint: hint.map(str::to_owned), exit_code: MISUSE }
    }

    /// Something did not work.
    pub fn trouble(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit_code: 1 }
    }

    /// With a hint.
    #[must_use]
    pub fn hinting(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", self.message)?;
        self.hint.iter().try_for_each(|hint| write!(formatter, "\nhint: {hint}"))
    }
}
