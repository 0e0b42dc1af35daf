//! What may be written as the key or value of a label.

/// Longest name in a key, and longest value.
const NAME_LENGTH_MAX: usize = 63;
/// Longest DNS prefix of a key.
const PREFIX_LENGTH_MAX: usize = 253;

/// What is wrong with a key or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelSyntaxError {
    /// There is nothing where a name has to be.
    #[error("name part must be non-empty")]
    EmptyName,
    /// The name or value is too long.
    #[error("name part must be no more than 63 characters")]
    TooLong,
    /// The name or value has a character it must not have, or has it in the wrong place.
    #[error(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    )]
    WrongCharacter,
    /// What stands before the slash is not a lower-case DNS name of at most 253 characters.
    #[error("prefix part must be a lower-case DNS subdomain of at most 253 characters")]
    WrongPrefix,
    /// There is more than one slash.
    #[error("must have at most one '/'")]
    TooManySlashes,
}

/// Checks a key: an optional DNS prefix with a slash, and a name.
pub fn check_qualified_name(key: &str) -> Result<(), LabelSyntaxError> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if name.contains('/') {
        return Err(LabelSyntaxError::TooManySlashes);
    }
    if prefix.is_some_and(|prefix| !is_dns_subdomain(prefix)) {
        return Err(LabelSyntaxError::WrongPrefix);
    }
    if name.is_empty() {
        return Err(LabelSyntaxError::EmptyName);
    }
    check_name(name)
}

/// Checks a value, which may also be empty.
pub fn check_label_value(value: &str) -> Result<(), LabelSyntaxError> {
    if value.is_empty() { Ok(()) } else { check_name(value) }
}

/// The domain of a key, if it has one.
pub fn domain(key: &str) -> Option<&str> {
    key.split_once('/').map(|(domain, _)| domain)
}

fn check_name(name: &str) -> Result<(), LabelSyntaxError> {
    if name.len() > NAME_LENGTH_MAX {
        return Err(LabelSyntaxError::TooLong);
    }
    let bytes = name.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = [bytes.first(), bytes.last()].into_iter().flatten().all(u8::is_ascii_alphanumeric);
    if ends && bytes.iter().all(inner) { Ok(()) } else { Err(LabelSyntaxError::WrongCharacter) }
}

fn is_dns_subdomain(text: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|byte| is_edge(*byte))
            && bytes.last().is_some_and(|byte| is_edge(*byte))
            && bytes.iter().all(|byte| is_edge(*byte) || *byte == b'-')
    };
    text.len() <= PREFIX_LENGTH_MAX && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::LabelSyntaxError::{EmptyName, TooLong, TooManySlashes, WrongCharacter, WrongPrefix};
    use super::{check_label_value, check_qualified_name};

    #[test]
    fn keys() {
        let long = "a".repeat(64);
        let cases = [
            ("team", Ok(())),
            ("example.com/Team_1.x", Ok(())),
            ("", Err(EmptyName)),
            ("example.com/", Err(EmptyName)),
            ("/team", Err(WrongPrefix)),
            ("Example.com/team", Err(WrongPrefix)),
            ("a..b/team", Err(WrongPrefix)),
            ("a/b/c", Err(TooManySlashes)),
            ("-team", Err(WrongCharacter)),
            ("te am", Err(WrongCharacter)),
            (&long, Err(TooLong)),
        ];
        for (key, expected) in cases {
            assert_eq!(check_qualified_name(key), expected, "{key}");
        }
    }

    #[test]
    fn values() {
        let cases = [("", Ok(())), ("a.b-c_D", Ok(())), ("a/b", Err(WrongCharacter)), ("-", Err(WrongCharacter))];
        for (value, expected) in cases {
            assert_eq!(check_label_value(value), expected, "{value}");
        }
    }
}
