//! Points in time as the API server reads and writes them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// As long as `2006-01-02T15:04:05` is.
const SECONDS_LENGTH: usize = 19;
const MICRO_DIGITS: usize = 6;

/// The form in which a point in time is written: whole seconds.
pub(crate) fn canonical(text: &str) -> Result<String, String> {
    let moment = parse(text, "2006-01-02T15:04:05Z07:00")?;
    Ok(moment.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// The form in which a point in time is written by kinds that count microseconds.
pub(crate) fn canonical_micro(text: &str) -> Result<String, String> {
    const LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
    let moment = parse(text, LAYOUT)?;
    // Six digits must be written, no more and no fewer.
    let rest = text.get(SECONDS_LENGTH..).unwrap_or_default();
    let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
    if !rest.starts_with('.') || digits < MICRO_DIGITS {
        return Err(format!("parsing time {text:?} as {LAYOUT:?}: cannot parse {rest:?} as \".000000\""));
    }
    if digits > MICRO_DIGITS {
        let rest = rest.get(1 + MICRO_DIGITS..).unwrap_or_default();
        return Err(format!("parsing time {text:?} as {LAYOUT:?}: cannot parse {rest:?} as \"Z07:00\""));
    }
    Ok(moment.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}

/// Whether a text is a point in time with an offset.
pub(crate) fn is_date_time(text: &str) -> bool {
    parse(text, "").is_ok()
}

fn parse(text: &str, layout: &str) -> Result<Timestamp, String> {
    let moment = if is_shaped(text) { text.parse::<Timestamp>().ok() } else { None };
    moment.ok_or_else(|| format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
}

/// A date, the letter T, a time with seconds, an offset; nothing may be left out.
fn is_shaped(text: &str) -> bool {
    const PATTERN: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let bytes = text.as_bytes();
    let Some((start, mut rest)) = bytes.split_at_checked(PATTERN.len()) else { return false };
    let fits = start.iter().zip(PATTERN).all(|(byte, wanted)| match wanted {
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    });
    if let [b'.', digits @ ..] = rest {
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return false;
        }
        rest = &digits[count..];
    }
    let offset = match rest {
        b"Z" => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].into_iter().all(u8::is_ascii_digit),
        _ => false,
    };
    fits && offset
}

#[cfg(test)]
mod tests {
    use super::{canonical, canonical_micro};

    #[test]
    fn times_are_written_in_universal_time() {
        for (text, seconds, micro) in [
            ("2024-01-01T01:01:01.000000Z", "2024-01-01T01:01:01Z", "2024-01-01T01:01:01.000000Z"),
            ("2024-01-01T01:01:01.500000+02:00", "2023-12-31T23:01:01Z", "2023-12-31T23:01:01.500000Z"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(seconds));
            assert_eq!(canonical_micro(text).as_deref(), Ok(micro));
        }
        for text in ["", "yesterday", "2024-01-01", "2024-01-01T01:01:01", "2024-13-01T01:01:01Z"] {
            assert!(canonical(text).is_err(), "{text}");
        }
    }
}
