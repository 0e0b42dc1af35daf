//! Quantities as the API server reads and writes them: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`.

/// An amount in units of 10⁻⁹, the smallest that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amount {
    nano: i128,
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse quantity's suffix")]
    Suffix,
    #[error("unable to parse numeric part of quantity")]
    Numeric,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Decimal,
    Binary,
    Exponent,
}

const UNIT: i128 = 1_000_000_000;
const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
/// A binary amount is capped here, at the largest 64-bit number.
const BINARY_MAX: i128 = 9_223_372_036_854_775_807 * UNIT;

/// A text taken apart.
struct Parsed<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    /// The number by which the digits are multiplied: a power of ten, or of two.
    exponent: i32,
    style: Style,
}

/// The amount that a text stands for.
pub(crate) fn parse(text: &str) -> Result<Amount, QuantityError> {
    amount(&take_apart(text)?)
}

/// The form in which the API server writes a quantity.
pub(crate) fn canonical(text: &str) -> Result<String, QuantityError> {
    let parsed = take_apart(text)?;
    let Amount { nano } = amount(&parsed)?;
    if is_kept(&parsed) {
        return Ok(text.to_owned());
    }
    Ok(format(nano, parsed.style))
}

/// The quantity rounded up to thousandths; none if it is none or needs no rounding.
pub(crate) fn rounded_to_milli(text: &str) -> Option<String> {
    const MILLI: i128 = UNIT / 1000;
    let parsed = take_apart(text).ok()?;
    let Amount { nano } = amount(&parsed).ok()?;
    if nano % MILLI == 0 {
        return None;
    }
    Some(format((nano / MILLI + nano.signum()) * MILLI, parsed.style))
}

impl Amount {
    pub(crate) const ZERO: Self = Self { nano: 0 };

    pub(crate) fn is_whole(self) -> bool {
        self.nano % UNIT == 0
    }
}

fn take_apart(text: &str) -> Result<Parsed<'_>, QuantityError> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        Some(_) => (false, text),
        None => return Err(QuantityError::Format),
    };
    let end =
        unsigned.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if digits.is_empty() || fraction.contains('.') || !is_suffix_shaped(suffix) {
        return Err(QuantityError::Format);
    }
    let (exponent, style) = suffix_meaning(suffix)?;
    Ok(Parsed { negative, whole, fraction, exponent, style })
}

/// Letters of known suffixes, then a sign, then digits.
fn is_suffix_shaped(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|character: char| "eEinumkKMGTP".contains(character));
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    rest.bytes().all(|byte| byte.is_ascii_digit())
}

fn suffix_meaning(suffix: &str) -> Result<(i32, Style), QuantityError> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(known, _)| *known == suffix) {
        return Ok((*exponent, Style::Decimal));
    }
    if let Some((_, bits)) = BINARY_SUFFIXES.iter().find(|(known, _)| *known == suffix) {
        return Ok((i32::try_from(*bits).unwrap_or_default(), Style::Binary));
    }
    let digits = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
    let exponent = digits.parse::<i32>().map_err(|_| QuantityError::Suffix)?;
    Ok((exponent, Style::Exponent))
}

/// Amounts beyond what can be counted are as large as can be; fractions of the smallest unit count as one.
fn amount(parsed: &Parsed<'_>) -> Result<Amount, QuantityError> {
    let digits = format!("{}{}", parsed.whole, parsed.fraction);
    let mantissa = if digits.is_empty() { return Err(QuantityError::Numeric) } else { digits };
    let mantissa = mantissa.parse::<i128>().unwrap_or(i128::MAX);
    let places = i32::try_from(parsed.fraction.len()).unwrap_or(i32::MAX);
    let nano = match parsed.style {
        Style::Decimal | Style::Exponent => scaled(mantissa, parsed.exponent.saturating_add(9).saturating_sub(places)),
        Style::Binary => {
            let factor = 1_i128 << parsed.exponent;
            scaled(mantissa.saturating_mul(factor), 9_i32.saturating_sub(places)).min(BINARY_MAX)
        }
    };
    Ok(Amount { nano: if parsed.negative { -nano } else { nano } })
}

/// A number times a power of ten, rounded up.
fn scaled(mantissa: i128, exponent: i32) -> i128 {
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    match power {
        Some(power) if exponent >= 0 => mantissa.saturating_mul(power),
        Some(power) => mantissa / power + i128::from(mantissa % power != 0),
        None if exponent >= 0 && mantissa != 0 => i128::MAX,
        None => i128::from(mantissa != 0),
    }
}

/// Whether the text is near enough to the usual form that the API server leaves it as it is.
fn is_kept(parsed: &Parsed<'_>) -> bool {
    let digits = format!("{}{}", parsed.whole, parsed.fraction);
    let places = i32::try_from(parsed.fraction.len()).unwrap_or(i32::MAX);
    match parsed.style {
        Style::Decimal | Style::Exponent => {
            let scale = parsed.exponent.saturating_sub(places);
            let precise = digits.len() <= 18 && scale >= -9;
            precise && scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
        }
        Style::Binary => {
            let value = digits.parse::<i64>().unwrap_or_default();
            let room = 14 - i64::try_from(digits.len()).unwrap_or(i64::MAX) - i64::from(parsed.exponent) * 3 / 10;
            parsed.fraction.is_empty() && room >= 0 && value & 7 != 0
        }
    }
}

fn format(nano: i128, style: Style) -> String {
    if nano == 0 {
        return "0".to_owned();
    }
    let whole = nano / UNIT;
    if style == Style::Binary && nano % UNIT == 0 && whole.abs() >= 1024 {
        let mut value = whole;
        let mut suffix = "";
        for (next, _) in BINARY_SUFFIXES {
            if value % 1024 != 0 {
                break;
            }
            value /= 1024;
            suffix = next;
        }
        return format!("{value}{suffix}");
    }
    let mut value = nano;
    let mut exponent = -9;
    while value % 1000 == 0 && (exponent < 18 || style == Style::Exponent) {
        value /= 1000;
        exponent += 3;
    }
    let suffix = match style {
        Style::Exponent if exponent == 0 => String::new(),
        Style::Exponent => format!("e{exponent}"),
        Style::Decimal | Style::Binary => {
            let known = DECIMAL_SUFFIXES.iter().find(|(_, known)| *known == exponent);
            known.map(|(suffix, _)| (*suffix).to_owned()).unwrap_or_default()
        }
    };
    format!("{value}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::{QuantityError, canonical, parse};

    #[test]
    fn quantities_are_written_as_the_server_writes_them() {
        for (text, written) in [
            ("0", "0"),
            ("0.0", "0"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("1.500", "1.500"),
            (".5", "500m"),
            ("100m", "100m"),
            ("2000", "2k"),
            ("1024Mi", "1Gi"),
            ("0.5Gi", "512Mi"),
            ("1Ki", "1Ki"),
            ("1024", "1024"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("1000e3", "1e6"),
            ("-1000m", "-1"),
            ("0.0000000001", "1n"),
            ("100Mi", "100Mi"),
            ("512Ki", "512Ki"),
            ("1000Ki", "1000Ki"),
            ("0.5Ki", "512"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(written), "{text}");
        }
    }

    #[test]
    fn thousandths_are_the_least_of_a_resource() {
        for (text, rounded) in [("1u", Some("1m")), ("1m", None), ("1", None), ("1500u", Some("2m")), ("x", None)] {
            assert_eq!(super::rounded_to_milli(text).as_deref(), rounded, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, error) in [
            ("", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("1.2.3", QuantityError::Format),
            ("1X", QuantityError::Format),
            ("1mm", QuantityError::Suffix),
            ("1 Gi", QuantityError::Format),
            (".", QuantityError::Numeric),
        ] {
            assert_eq!(parse(text).err(), Some(error), "{text}");
        }
        assert!(parse("500m").unwrap() < parse("1").unwrap() && parse("1Gi").unwrap() > parse("1G").unwrap());
        assert!(parse("1").is_ok_and(super::Amount::is_whole) && parse("1m").is_ok_and(|amount| !amount.is_whole()));
    }
}
