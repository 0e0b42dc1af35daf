//! Durations as flags write them: `10s`, `1m30s`, `1.5h`, `250ms`.

use std::time::Duration;

/// The nanoseconds in one of each unit; `ms` stands before `m`, because the first that fits is taken.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a sum of decimal numbers with units from `ns` to `h`; a bare `0` needs no unit.
///
/// Nothing is returned for an empty or malformed text, for a negative duration, and for one of more than 63 bits of
/// nanoseconds (about 292 years).
pub fn parse_duration(text: &str) -> Option<Duration> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if unsigned == "0" {
        return Some(Duration::ZERO);
    }
    if unsigned.is_empty() {
        return None;
    }
    let mut rest = unsigned;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let unit_at = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let (number, from_unit) = rest.split_at(unit_at);
        let (unit, nanoseconds) = UNITS.iter().find(|(unit, _)| from_unit.starts_with(unit))?;
        total = total.checked_add(scaled(number, *nanoseconds)?)?;
        rest = &from_unit[unit.len()..];
    }
    i64::try_from(total).ok()?;
    Some(Duration::from_nanos(total))
}

/// The digits after the point that can still matter: an hour has fewer nanoseconds than this many digits.
const FRACTION_DIGITS_MAX: usize = 18;

/// A decimal number times the length of its unit; what is finer than a nanosecond is cut off.
fn scaled(number: &str, unit_nanoseconds: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole = digits(whole)?.checked_mul(unit_nanoseconds)?;
    let kept = &fraction[..fraction.len().min(FRACTION_DIGITS_MAX)];
    let divisor = (0..kept.len()).fold(1_u128, |divisor, _| divisor * 10);
    let part = u128::from(digits(kept)?) * u128::from(unit_nanoseconds) / divisor;
    whole.checked_add(u64::try_from(part).ok()?)
}

/// A row of digits as a number; an empty row is zero.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::parse_duration;

    #[test]
    fn durations_are_sums_of_numbers_with_units() {
        let cases = [
            ("0", 0),
            ("10s", 10_000_000_000),
            ("+1s", 1_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("250ms", 250_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("0.1234567899s", 123_456_789),
            ("3us", 3_000),
            ("3\u{b5}s", 3_000),
            ("7ns", 7),
            ("1h0m0.001s", 3_600_001_000_000),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(parse_duration(text), Some(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_nothing() {
        for text in ["", "+", "10", "s", "-1s", "1.2.3s", ".s", "1d", "1s ", "ten", "2562048h", "99999999999999999999s"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
