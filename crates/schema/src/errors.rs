//! What is wrong with an object, as data, and the API server's words for it.

use std::fmt;

use serde_json::Value;

/// What sort of mistake a field has; its [`reason`](FieldErrorKind::reason) goes into the causes of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldErrorKind {
    /// What the field names does not exist.
    NotFound,
    /// The field must be there.
    Required,
    /// The value stands twice where it may stand once.
    Duplicate,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value is none of the known ones.
    NotSupported,
    /// The value would be good at another time or place.
    Forbidden,
    /// The text is too long.
    TooLong,
    /// The text is too short.
    TooShort,
    /// The list or map has too many items.
    TooMany,
    /// The value has another JSON type than the schema says.
    TypeInvalid,
}

impl FieldErrorKind {
    /// The machine's word, as in `details.causes[].reason` of a status.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// The words for people.
    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
        }
    }

    /// Whether people are shown the value.
    fn shows_value(self) -> bool {
        match self {
            Self::NotFound
            | Self::Duplicate
            | Self::Invalid
            | Self::NotSupported
            | Self::TooMany
            | Self::TypeInvalid => true,
            Self::Required | Self::Forbidden | Self::TooLong | Self::TooShort => false,
        }
    }
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// What sort of mistake it is.
    pub kind: FieldErrorKind,
    /// Which field, as `spec.containers[0].name`; `<nil>` for the object itself.
    pub field: String,
    /// The value found as people are shown it, where they are.
    pub value: Option<String>,
    /// What would be right; may be empty.
    pub detail: String,
}

impl FieldError {
    /// A malformed value.
    #[must_use]
    pub fn invalid(field: &str, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::with(FieldErrorKind::Invalid, field, Some(&value.into()), detail)
    }

    /// A malformed value, written as the API server's own types are.
    pub(crate) fn invalid_as(field: &str, value: String, detail: impl Into<String>) -> Self {
        let kind = FieldErrorKind::Invalid;
        Self { kind, field: field.to_owned(), value: Some(value), detail: detail.into() }
    }

    /// A missing value.
    #[must_use]
    pub fn required(field: &str, detail: impl Into<String>) -> Self {
        Self::with(FieldErrorKind::Required, field, None, detail)
    }

    /// A value that may not be there, or may not change.
    #[must_use]
    pub fn forbidden(field: &str, detail: impl Into<String>) -> Self {
        Self::with(FieldErrorKind::Forbidden, field, None, detail)
    }

    /// A value that stands twice.
    #[must_use]
    pub fn duplicate(field: &str, value: impl Into<Value>) -> Self {
        Self::with(FieldErrorKind::Duplicate, field, Some(&value.into()), "")
    }

    /// A reference to nothing.
    #[must_use]
    pub fn not_found(field: &str, value: impl Into<Value>) -> Self {
        Self::with(FieldErrorKind::NotFound, field, Some(&value.into()), "")
    }

    /// A value that is none of `supported`, which are listed in their order.
    #[must_use]
    pub fn not_supported(field: &str, value: impl Into<Value>, supported: &[&str]) -> Self {
        let quoted: Vec<_> = supported.iter().map(|text| quote(text)).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Self::with(FieldErrorKind::NotSupported, field, Some(&value.into()), detail)
    }

    /// A text longer than `bytes_max`.
    #[must_use]
    pub fn too_long(field: &str, bytes_max: usize) -> Self {
        let unit = if bytes_max == 1 { "byte" } else { "bytes" };
        Self::with(FieldErrorKind::TooLong, field, None, format!("may not be more than {bytes_max} {unit}"))
    }

    /// A list or map of `found` items where at most `items_max` are allowed.
    #[must_use]
    pub fn too_many(field: &str, found: usize, items_max: usize) -> Self {
        let unit = if items_max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {items_max} {unit}");
        Self::with(FieldErrorKind::TooMany, field, Some(&found.into()), detail)
    }

    pub(crate) fn with(kind: FieldErrorKind, field: &str, value: Option<&Value>, detail: impl Into<String>) -> Self {
        Self { kind, field: field.to_owned(), value: value.map(shown), detail: detail.into() }
    }

    /// The message without the field, as in `details.causes[].message` of a status.
    #[must_use]
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        if let Some(value) = self.value.as_ref().filter(|_| self.kind.shows_value()) {
            text.push_str(": ");
            text.push_str(value);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.body())
    }
}

/// The mistakes as one text: one as it is, several in brackets, equal ones once.
#[must_use]
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.len() == 1 { texts.remove(0) } else { format!("[{}]", texts.join(", ")) }
}

/// A value as it is shown to people.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => other.to_string(),
    }
}

/// An object with its fields in the order in which the API server's type has them.
pub(crate) fn shown_fields(fields: &[(&str, Value)]) -> String {
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{}:{value}", quote(name))).collect();
    format!("{{{}}}", fields.join(","))
}

/// A text in double quotes, with escapes where they are needed.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            other if other.is_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(other))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Why a body is not an object of its kind; the API server answers 400 with the text of [`fmt::Display`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The body is not JSON, or not an object.
    #[error("the object provided is unrecognized (must be of type {kind}): {problem}")]
    Syntax {
        /// The kind that was expected.
        kind: String,
        /// What the parser says.
        problem: String,
    },
    /// The body is of another version.
    #[error("the API version in the data ({found}) does not match the expected API version ({expected})")]
    Version {
        /// The version that the body names.
        found: String,
        /// The version that the path names.
        expected: String,
    },
    /// The body is of another kind, or holds what its kind does not allow.
    #[error("{found} in version {found_version:?} cannot be handled as a {kind}: {problem}")]
    Unfit {
        /// The kind that the body names, or the expected one if it names none.
        found: String,
        /// Its version.
        found_version: String,
        /// The kind that was expected.
        kind: String,
        /// What does not fit.
        problem: String,
    },
}
