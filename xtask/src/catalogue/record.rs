//! Reading fields of JSON records so that what is missing is named.

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One record and what it is called in messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    name: &'a str,
    value: &'a Value,
}

impl<'a> Record<'a> {
    pub(crate) fn new(name: &'a str, value: &'a Value) -> Self {
        Self { name, value }
    }

    fn optional(self, pointer: &str) -> Option<&'a Value> {
        self.value.pointer(pointer).filter(|value| !value.is_null())
    }

    fn missing(self, pointer: &str, what: &str) -> String {
        format!("`{}` has no {what} at `{pointer}`", self.name)
    }

    /// A whole number that must be there.
    pub(crate) fn number<N: TryFrom<u64>>(self, pointer: &str) -> Result<N> {
        self.optional_number(pointer)?.with_context(|| self.missing(pointer, "whole number"))
    }

    /// A whole number that may be absent.
    pub(crate) fn optional_number<N: TryFrom<u64>>(self, pointer: &str) -> Result<Option<N>> {
        let Some(value) = self.optional(pointer) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| N::try_from(number).ok());
        number.map(Some).with_context(|| self.missing(pointer, "whole number that fits"))
    }

    /// A number with a fraction that may be absent.
    pub(crate) fn optional_float(self, pointer: &str) -> Option<f64> {
        self.optional(pointer)?.as_f64()
    }

    /// A yes or no that must be there.
    pub(crate) fn flag(self, pointer: &str) -> Result<bool> {
        self.optional(pointer).and_then(Value::as_bool).with_context(|| self.missing(pointer, "truth value"))
    }

    /// A text that must be there.
    pub(crate) fn text(self, pointer: &str) -> Result<&'a str> {
        self.optional(pointer).and_then(Value::as_str).with_context(|| self.missing(pointer, "text"))
    }

    /// Texts; none if there is no list.
    pub(crate) fn texts(self, pointer: &str) -> Result<Vec<String>> {
        let read = |entry: Record<'_>| entry.text("").map(str::to_owned);
        self.list(pointer)?.into_iter().map(read).collect()
    }

    /// Records; none if there is no list.
    pub(crate) fn list(self, pointer: &str) -> Result<Vec<Record<'a>>> {
        match self.optional(pointer) {
            None => Ok(Vec::new()),
            Some(Value::Array(entries)) => Ok(entries.iter().map(|entry| Record::new(self.name, entry)).collect()),
            Some(_) => bail!(self.missing(pointer, "list")),
        }
    }

    /// A text that is one of the spellings of an enumeration and must be there.
    pub(crate) fn spelling<T: DeserializeOwned>(self, pointer: &str) -> Result<T> {
        self.optional_spelling(pointer)?.with_context(|| self.missing(pointer, "text"))
    }

    /// A text that is one of the spellings of an enumeration and may be absent.
    pub(crate) fn optional_spelling<T: DeserializeOwned>(self, pointer: &str) -> Result<Option<T>> {
        let Some(value) = self.optional(pointer) else { return Ok(None) };
        let read =
            serde_json::from_value(value.clone()).with_context(|| format!("read `{pointer}` of `{}`", self.name));
        read.map(Some)
    }
}
