//! Durations as Go writes them, which is how annotations on pods are read: `90s`, `1h30m`, `1.5h`, `250ms`.

use std::fmt;
use std::time::Duration;

/// Why a text is no duration, in Go's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoDuration<'a> {
    /// It cannot be read at all.
    Invalid { text: &'a str },
    /// A number stands alone.
    MissingUnit { text: &'a str },
    /// There is no such unit.
    UnknownUnit { unit: &'a str, text: &'a str },
}

impl fmt::Display for NoDuration<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { text } => write!(formatter, "time: invalid duration {text:?}"),
            Self::MissingUnit { text } => write!(formatter, "time: missing unit in duration {text:?}"),
            Self::UnknownUnit { unit, text } => {
                write!(formatter, "time: unknown unit {unit:?} in duration {text:?}")
            }
        }
    }
}

/// Reads a duration; a negative one is no time at all.
pub(super) fn parse(text: &str) -> Result<Duration, NoDuration<'_>> {
    let invalid = || NoDuration::Invalid { text };
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let (number, from_unit) = rest.split_at(rest.find(|letter| !is_number(letter)).unwrap_or(rest.len()));
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let (unit, after) = from_unit.split_at(from_unit.find(is_number).unwrap_or(from_unit.len()));
        let seconds_per_unit = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            // The micro sign and the Greek letter look alike; Go takes both.
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
            "ns" => 1e-9,
            "" => return Err(NoDuration::MissingUnit { text }),
            unit => return Err(NoDuration::UnknownUnit { unit, text }),
        };
        let part = Duration::try_from_secs_f64(number * seconds_per_unit).map_err(|_| invalid())?;
        total = total.checked_add(part).ok_or_else(invalid)?;
        rest = after;
    }
    Ok(if is_negative { Duration::ZERO } else { total })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn durations_read_as_go_does() {
        let table = [
            ("90s", Ok(90_000)),
            ("1h30m", Ok(5_400_000)),
            ("1.5h", Ok(5_400_000)),
            (".5s", Ok(500)),
            ("250ms", Ok(250)),
            ("2000\u{3bc}s", Ok(2)),
            ("+1s", Ok(1000)),
            ("0", Ok(0)),
            ("-1h", Ok(0)),
            ("+", Err("time: invalid duration \"+\"")),
            ("1", Err("time: missing unit in duration \"1\"")),
            ("1h5", Err("time: missing unit in duration \"1h5\"")),
            ("h", Err("time: invalid duration \"h\"")),
            ("1.2.3s", Err("time: invalid duration \"1.2.3s\"")),
            ("1d", Err("time: unknown unit \"d\" in duration \"1d\"")),
            ("", Err("time: invalid duration \"\"")),
            ("true", Err("time: invalid duration \"true\"")),
        ];
        for (text, expected) in table {
            let found = parse(text).map(|length| length.as_millis()).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        }
    }
}
