//! Durations as users write them: `24h`, `1h30m`, and for some fields `Never`.
//!
//! The text is checked once, when it enters; afterwards both the text and its meaning are at hand, and the text is
//! written back unchanged (`24h` never becomes `24h0m0s`).

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The word that switches a [`NillableDuration`] off.
const NEVER: &str = "Never";

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is not a sequence of whole numbers with the units `h`, `m` or `s`.
    #[error("`{text}` is not a duration: want whole numbers with the units h, m or s, such as `1h30m`")]
    Malformed {
        /// The text as it was found.
        text: String,
    },
    /// The duration is longer than 64 bits of nanoseconds, about 292 years.
    #[error("`{text}` is too long a duration: want at most 292 years")]
    TooLong {
        /// The text as it was found.
        text: String,
    },
}

/// A duration together with the text it was written as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationText {
    text: String,
    value: Duration,
}

impl DurationText {
    /// Reads a duration; fails on anything but whole numbers with the units `h`, `m` and `s`.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        Ok(Self { text: text.to_owned(), value: parse(text)? })
    }

    /// The duration itself.
    pub fn as_duration(&self) -> Duration {
        self.value
    }

    /// The text as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A duration that may be the word `Never`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NillableDuration {
    /// The thing waited for never happens.
    Never,
    /// It happens after this long.
    After(DurationText),
}

impl NillableDuration {
    /// Reads a duration or the word `Never`.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        if text == NEVER { Ok(Self::Never) } else { DurationText::parse(text).map(Self::After) }
    }

    /// The duration, or nothing for `Never`.
    pub fn as_duration(&self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(duration) => Some(duration.value),
        }
    }

    /// The text as the user wrote it.
    pub fn text(&self) -> &str {
        match self {
            Self::Never => NEVER,
            Self::After(duration) => &duration.text,
        }
    }

    /// `720h`, after which nodes expire unless the user says otherwise.
    pub(crate) fn thirty_days() -> Self {
        Self::After(DurationText { text: "720h".to_owned(), value: Duration::from_secs(720 * 60 * 60) })
    }

    /// `0s`, after which nodes may be consolidated unless the user says otherwise.
    pub(crate) fn at_once() -> Self {
        Self::After(DurationText { text: "0s".to_owned(), value: Duration::ZERO })
    }
}

fn parse(text: &str) -> Result<Duration, DurationError> {
    let malformed = || DurationError::Malformed { text: text.to_owned() };
    let too_long = || DurationError::TooLong { text: text.to_owned() };
    let mut rest = text;
    let mut seconds: u64 = 0;
    if rest.is_empty() {
        return Err(malformed());
    }
    while !rest.is_empty() {
        let unit_at = rest.find(|character: char| !character.is_ascii_digit()).ok_or_else(malformed)?;
        let (digits, from_unit) = rest.split_at(unit_at);
        if digits.is_empty() {
            return Err(malformed());
        }
        let (seconds_per_unit, after) = match from_unit.as_bytes() {
            [b'h', ..] => (3600, &from_unit[1..]),
            [b'm', ..] => (60, &from_unit[1..]),
            [b's', ..] => (1, &from_unit[1..]),
            _ => return Err(malformed()),
        };
        let count: u64 = digits.parse().map_err(|_| too_long())?;
        seconds = count
            .checked_mul(seconds_per_unit)
            .and_then(|part| seconds.checked_add(part))
            .filter(|sum| *sum <= SECONDS_MAX)
            .ok_or_else(too_long)?;
        rest = after;
    }
    Ok(Duration::from_secs(seconds))
}

/// The whole seconds that 63 bits of nanoseconds hold: what other readers of these objects can represent.
const SECONDS_MAX: u64 = i64::MAX as u64 / 1_000_000_000;

impl fmt::Display for DurationText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Display for NillableDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl Serialize for NillableDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for NillableDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for DurationText {
    fn schema_name() -> Cow<'static, str> {
        "DurationText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^([0-9]+(s|m|h))+$" })
    }
}

impl JsonSchema for NillableDuration {
    fn schema_name() -> Cow<'static, str> {
        "NillableDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(([0-9]+(s|m|h))+|Never)$" })
    }
}

#[cfg(test)]
mod tests {
    use super::{DurationError, DurationText, NillableDuration};

    #[test]
    fn durations_are_sums_of_hours_minutes_and_seconds() {
        let cases = [("0s", 0), ("24h", 86_400), ("1h30m", 5_400), ("1h0m0s", 3_600), ("90m", 5_400), ("5m5m", 600)];
        for (text, seconds) in cases {
            assert_eq!(DurationText::parse(text).unwrap().as_duration().as_secs(), seconds, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_named() {
        for text in ["", "h", "-1h", "1.5h", "10", "1d", "never", "1 h", "1hé"] {
            assert_eq!(NillableDuration::parse(text), Err(DurationError::Malformed { text: text.into() }), "{text}");
        }
        for text in ["99999999999999999999h", "2562048h"] {
            assert_eq!(DurationText::parse(text), Err(DurationError::TooLong { text: text.into() }), "{text}");
        }
    }

    /// API-10: a duration is written back exactly as it was read.
    #[test]
    fn text_survives_a_round_trip() {
        for text in ["24h", "24h0m0s", "0024h", "Never", "0s"] {
            let json = format!("\"{text}\"");
            let read: NillableDuration = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), json);
        }
        assert!(serde_json::from_str::<DurationText>("\"Never\"").is_err());
    }

    #[test]
    fn never_has_no_length() {
        assert_eq!(NillableDuration::parse("Never").unwrap().as_duration(), None);
    }
}
