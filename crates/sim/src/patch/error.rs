//! Why a patch was refused, as data, and the API server's words for it.

use std::fmt;

use serde_json::Value;

/// What kind of answer a refused patch gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The patch itself is malformed.
    BadRequest,
    /// The format is not known for this resource.
    UnsupportedMediaType,
    /// The patch is well formed but does not fit the object.
    Unprocessable,
    /// The server gives up with an error that it does not classify.
    Internal,
}

impl Refused {
    /// The HTTP status code.
    pub(crate) fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::UnsupportedMediaType => 415,
            Self::Unprocessable => 422,
            Self::Internal => 500,
        }
    }

    /// The `reason` of the Status; the server leaves it out of an unclassified error.
    pub(crate) fn reason(self) -> Option<&'static str> {
        match self {
            Self::BadRequest => Some("BadRequest"),
            Self::UnsupportedMediaType => Some("UnsupportedMediaType"),
            Self::Unprocessable => Some("Invalid"),
            Self::Internal => None,
        }
    }
}

/// Why a patch could not be applied. `Display` gives the message of the Status.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PatchError {
    /// The document is not of the type that the patch format wants.
    WrongType {
        /// The format's word before the decoder's message, if it has one.
        prefix: &'static str,
        /// The JSON type that was found.
        found: &'static str,
        /// What the decoder wanted, in its words.
        wanted: String,
    },
    /// A merge patch of `null`.
    NullMergePatch,
    /// An operation of a JSON Patch is not known, or does not fit the object. The server does not say which or why.
    OperationFailed,
    /// A strategic merge patch for a kind without patch strategies.
    NoStrategicPatch,
    /// A field that starts with `$` and is none of the known directives.
    UnknownDirective(String),
    /// `$deleteFromPrimitiveList` without the field's name.
    PrimitiveListFormat,
    /// `$retainKeys` is not a list, or does not name a field that the patch sets.
    RetainKeysFormat,
    /// `$setElementOrder` without the field's name.
    ElementOrderFormat,
    /// The patch sets items that `$setElementOrder` does not name, or in another order.
    ElementOrderMismatch {
        /// The list in the patch.
        list: Value,
        /// The order asked for.
        order: Value,
    },
    /// A merged list holds lists.
    ListOfLists,
    /// A merged list holds items of different types.
    MixedItems {
        /// The list in the object.
        original: Value,
        /// The list in the patch.
        patch: Value,
    },
    /// An order for a list that is empty on both sides.
    NoItems,
    /// An item of a merged list lacks the merge key.
    NoMergeKey {
        /// The item.
        item: Value,
        /// The merge key.
        key: String,
    },
    /// Objects in a list that has no merge key.
    ListWithoutKey,
    /// A directive's value has the wrong JSON type.
    WrongValue {
        /// The type wanted, in the server's words.
        wanted: &'static str,
        /// The value found.
        found: Value,
    },
    /// `$patch` has a value that is not known here.
    UnknownPatchType {
        /// The value of `$patch`.
        directive: Value,
        /// The object that it stands in.
        object: Value,
    },
    /// `$patch: merge` in a list item.
    MergeInList,
    /// A directive names a field that the kind does not have.
    UnknownField(String),
}

impl PatchError {
    /// What kind of answer this gets.
    pub(crate) fn refused(&self) -> Refused {
        match self {
            Self::WrongType { .. }
            | Self::NullMergePatch
            | Self::UnknownDirective(_)
            | Self::PrimitiveListFormat
            | Self::RetainKeysFormat
            | Self::ElementOrderFormat => Refused::BadRequest,
            Self::NoStrategicPatch => Refused::UnsupportedMediaType,
            Self::OperationFailed | Self::ListOfLists => Refused::Unprocessable,
            Self::ElementOrderMismatch { .. }
            | Self::MixedItems { .. }
            | Self::NoItems
            | Self::NoMergeKey { .. }
            | Self::ListWithoutKey
            | Self::WrongValue { .. }
            | Self::UnknownPatchType { .. }
            | Self::MergeInList
            | Self::UnknownField(_) => Refused::Internal,
        }
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongType { prefix, found, wanted } => {
                write!(out, "{prefix}json: cannot unmarshal {found} into Go {wanted}")
            }
            Self::NullMergePatch => out.write_str("Invalid JSON Patch"),
            // The server answers with one sentence whatever was wrong.
            Self::OperationFailed | Self::ListOfLists => {
                out.write_str("the server rejected our request due to an error in our request")
            }
            Self::NoStrategicPatch => out.write_str(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ),
            Self::UnknownDirective(name) => write!(out, "unknown patch directive {name:?}"),
            Self::PrimitiveListFormat => out.write_str("invalid patch format of primitive list"),
            Self::RetainKeysFormat => out.write_str("invalid patch format of retainKeys"),
            Self::ElementOrderFormat => out.write_str("invalid patch format of setElementOrder list"),
            Self::ElementOrderMismatch { list, order } => write!(
                out,
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                GoValue(list),
                GoValue(order)
            ),
            Self::MixedItems { original, patch } => {
                write!(out, "list element types are not identical: [{} {}]", GoValue(original), GoValue(patch))
            }
            Self::NoItems => out.write_str("no elements in any of the given slices"),
            Self::NoMergeKey { item, key } => {
                write!(out, "map: {} does not contain declared merge key: {key}", GoValue(item))
            }
            Self::ListWithoutKey => out.write_str("cannot merge lists without merge key for struct"),
            Self::WrongValue { wanted, found } => {
                write!(out, "expected a {wanted}, but received a {}", go_type(found))
            }
            Self::UnknownPatchType { directive, object } => {
                write!(out, "unknown patch type: {} in map: {}", GoValue(directive), GoValue(object))
            }
            Self::MergeInList => out.write_str("merging lists cannot yet be specified in the patch"),
            Self::UnknownField(name) => write!(out, "unable to find api field for the json field {name:?}"),
        }
    }
}

impl std::error::Error for PatchError {}

/// The decoder's name for the JSON type of a value.
pub(super) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Prints a value as the server's messages do: `map[name:web ports:[80 443]]`.
struct GoValue<'a>(&'a Value);

impl fmt::Display for GoValue<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => out.write_str("<nil>"),
            Value::Bool(yes) => write!(out, "{yes}"),
            Value::Number(number) => write!(out, "{number}"),
            Value::String(text) => out.write_str(text),
            Value::Array(items) => {
                out.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    let space = if index == 0 { "" } else { " " };
                    write!(out, "{space}{}", GoValue(item))?;
                }
                out.write_str("]")
            }
            Value::Object(fields) => {
                out.write_str("map[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let space = if index == 0 { "" } else { " " };
                    write!(out, "{space}{name}:{}", GoValue(value))?;
                }
                out.write_str("]")
            }
        }
    }
}
