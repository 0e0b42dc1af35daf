//! Paths to fields, as messages show them.

use std::fmt::Write;

/// A path that grows and shrinks while a value is walked: `spec.containers[0].name`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    text: String,
    /// How much of the beginning is left out where a message repeats the path.
    hidden: usize,
}

impl Path {
    /// The path of the object itself.
    pub(crate) fn root() -> Self {
        Self::default()
    }

    /// A path that begins with this text.
    pub(crate) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), hidden: 0 }
    }

    /// A field of the object that is judged as an object of its own: messages that repeat the path begin below it.
    pub(crate) fn part(name: &str) -> Self {
        Self { text: name.to_owned(), hidden: name.len() + 1 }
    }

    /// A field of this one.
    pub(crate) fn field(&self, name: &str) -> Self {
        let text = if self.text.is_empty() { name.to_owned() } else { format!("{}.{name}", self.text) };
        Self { text, hidden: self.hidden }
    }

    /// An item of a list.
    pub(crate) fn index(&self, index: usize) -> Self {
        let mut text = self.text.clone();
        // Writing to a text cannot fail.
        let _ = write!(text, "[{index}]");
        Self { text, hidden: self.hidden }
    }

    /// A value of a map.
    pub(crate) fn key(&self, key: &str) -> Self {
        Self { text: format!("{}[{key}]", self.text), hidden: self.hidden }
    }

    /// The path as the field of an error: the object itself has a word of its own.
    pub(crate) fn shown(&self) -> &str {
        if self.text.is_empty() { "<nil>" } else { &self.text }
    }

    /// The path as messages repeat it.
    pub(crate) fn repeated(&self) -> &str {
        self.text.get(self.hidden..).unwrap_or_default()
    }
}
