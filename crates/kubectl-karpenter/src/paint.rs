//! Colours, where a person looks at a terminal.

use std::io::IsTerminal;

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Stands back.
    Dim,
    /// Stands out.
    Bold,
    /// Bad news.
    Red,
    /// Good news.
    Green,
    /// Something waits.
    Yellow,
    /// Something comes.
    Blue,
    /// Something goes.
    Magenta,
    /// A decision.
    Cyan,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Blue => "34",
            Self::Magenta => "35",
            Self::Cyan => "36",
        }
    }
}

/// Whether to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Bare text.
    Never,
    /// With the escape sequences of terminals.
    Always,
}

impl Paint {
    /// For standard output: colours on a terminal, unless `NO_COLOR` is set; anywhere, if `CLICOLOR_FORCE` is.
    pub fn for_output(environment: impl Fn(&str) -> Option<String>) -> Self {
        Self::choose(std::io::stdout().is_terminal(), environment)
    }

    fn choose(is_terminal: bool, environment: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| environment(name).is_some_and(|value| !value.is_empty());
        let is_forced = environment("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
        if !is_set("NO_COLOR") && (is_terminal || is_forced) { Self::Always } else { Self::Never }
    }

    /// The text in a style.
    pub fn paint(self, style: Style, text: &str) -> String {
        match self {
            Self::Never => text.to_owned(),
            Self::Always => format!("\x1b[{}m{text}\x1b[0m", style.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals() {
        for (is_terminal, variable, expected) in [
            (true, None, Paint::Always),
            (false, None, Paint::Never),
            (true, Some(("NO_COLOR", "1")), Paint::Never),
            (true, Some(("NO_COLOR", "")), Paint::Always),
            (false, Some(("CLICOLOR_FORCE", "1")), Paint::Always),
            (false, Some(("CLICOLOR_FORCE", "0")), Paint::Never),
        ] {
            let environment = |name: &str| variable.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
            assert_eq!(Paint::choose(is_terminal, environment), expected, "{is_terminal} {variable:?}");
        }
    }
}
