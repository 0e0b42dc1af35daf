//! Durations as Go writes them, which is how annotations on pods are read: `90s`, `1h30m`, `1.5h`, `250ms`.

use std::time::Duration;

/// Reads a duration; `None` for anything else, negative ones included.
pub(super) fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, from_unit) = rest.split_at(unit_at);
        let unit_end = from_unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(from_unit.len());
        let (unit, after) = from_unit.split_at(unit_end);
        let seconds_per_unit = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            // The micro sign and the Greek letter look alike; Go takes both.
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds_per_unit).ok()?;
        total = total.checked_add(part)?;
        rest = after;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn durations_read_as_go_does() {
        let table = [
            ("90s", Some(90_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5h", Some(5_400_000)),
            ("250ms", Some(250)),
            ("2000\u{3bc}s", Some(2)),
            ("+1s", Some(1000)),
            ("+", None),
            ("0", Some(0)),
            ("-1h", None),
            ("1", None),
            ("h", None),
            ("1d", None),
            ("", None),
            ("true", None),
        ];
        for (text, milliseconds) in table {
            assert_eq!(parse(text).map(|length| length.as_millis()), milliseconds, "{text}");
        }
    }
}
