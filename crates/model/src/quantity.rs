//! Kubernetes quantities as whole numbers.
//!
//! CPU counts in thousandths of a core, everything else in whole units rounded up, which is exactly how the
//! kube-scheduler counts. Sums and comparisons are then plain integer arithmetic.

use std::fmt;

use crate::ResourceName;

/// A text that is not a Kubernetes quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError {
    /// The text as found.
    pub text: String,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` is not a quantity; write for example `500m`, `2`, `1.5` or `10Gi`", self.text)
    }
}

impl std::error::Error for QuantityError {}

/// What a suffix multiplies by: a power of ten and a power of two.
struct Scale {
    tens: i32,
    twos: u32,
}

fn scale(suffix: &str) -> Option<Scale> {
    let (tens, twos) = match suffix {
        "" => (0, 0),
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            (exponent.parse::<i32>().ok().filter(|exponent| exponent.abs() <= 40)?, 0)
        }
    };
    Some(Scale { tens, twos })
}

/// Reads a quantity of the given resource, rounding up to the unit we count in.
///
/// Values beyond what fits saturate: a node with more than nine exabytes of memory is treated as having nine.
pub fn parse_quantity(resource: &ResourceName, text: &str) -> Result<i64, QuantityError> {
    let error = || QuantityError { text: text.to_owned() };
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits_end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(digits_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let no_digits = whole.is_empty() && fraction.is_empty();
    if no_digits || fraction.contains('.') || number.len() > MAX_DIGITS {
        return Err(error());
    }
    let Scale { tens, twos } = scale(suffix).ok_or_else(error)?;
    let mantissa = format!("{whole}{fraction}").parse::<i128>().map_err(|_| error())?;
    let unit_tens = if resource.is_cpu() { 3 } else { 0 };
    let tens = tens + unit_tens - i32::try_from(fraction.len()).map_err(|_| error())?;
    let amount = rounded_up(mantissa, tens, twos, negative);
    Ok(if negative { -amount } else { amount })
}

/// More digits than any real quantity has, and few enough that the arithmetic below cannot overflow silently.
const MAX_DIGITS: usize = 36;

fn rounded_up(mantissa: i128, tens: i32, twos: u32, negative: bool) -> i64 {
    let saturate = |value: Option<i128>| value.and_then(|v| i64::try_from(v).ok()).unwrap_or(i64::MAX);
    let shifted = mantissa.checked_mul(1_i128 << twos);
    if tens >= 0 {
        let factor = 10_i128.checked_pow(tens.unsigned_abs());
        return if mantissa == 0 { 0 } else { saturate(shifted.zip(factor).and_then(|(a, b)| a.checked_mul(b))) };
    }
    let Some(divisor) = 10_i128.checked_pow(tens.unsigned_abs()) else { return i64::from(mantissa != 0 && !negative) };
    // Away from zero for positive amounts, towards zero for negative ones: both are "up".
    saturate(shifted.map(|value| if negative { value / divisor } else { (value + divisor - 1) / divisor }))
}

/// Writes an amount the way Kubernetes prints it: binary suffixes for byte-like resources, decimal ones for the rest.
pub fn format_quantity(resource: &ResourceName, amount: i64) -> String {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const DECIMAL: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    if resource.is_cpu() {
        return if amount % 1000 == 0 { suffixed(amount / 1000, 1000, &DECIMAL) } else { format!("{amount}m") };
    }
    if resource.is_bytes() { suffixed(amount, 1024, &BINARY) } else { suffixed(amount, 1000, &DECIMAL) }
}

fn suffixed(amount: i64, base: i64, suffixes: &[&str]) -> String {
    let mut rest = amount;
    let mut suffix = "";
    for next in suffixes {
        if rest == 0 || rest % base != 0 {
            break;
        }
        rest /= base;
        suffix = next;
    }
    format!("{rest}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_and_print_as_kubernetes_does() {
        let table = [
            ("cpu", "100m", 100, "100m"),
            ("cpu", "1", 1000, "1"),
            ("cpu", "1.5", 1500, "1500m"),
            ("cpu", "0.0001", 1, "1m"),
            ("cpu", "1k", 1_000_000, "1k"),
            ("cpu", "-2", -2000, "-2"),
            ("memory", "10Gi", 10 << 30, "10Gi"),
            ("memory", "1.5Gi", 3 << 29, "1536Mi"),
            ("memory", "100M", 100_000_000, "100000000"),
            ("memory", "1e3", 1000, "1000"),
            ("memory", "128974848", 128_974_848, "123Mi"),
            ("memory", "100m", 1, "1"),
            ("memory", "99999Ei", i64::MAX, "9223372036854775807"),
            ("pods", "110", 110, "110"),
            ("nvidia.com/gpu", "8", 8, "8"),
            ("pods", "0", 0, "0"),
        ];
        for (resource, text, amount, printed) in table {
            let resource = ResourceName::new(resource);
            assert_eq!(parse_quantity(&resource, text), Ok(amount), "{text}");
            assert_eq!(format_quantity(&resource, amount), printed, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_text() {
        for text in ["", "Gi", "1.2.3", "1gi", "ten", "1 Gi", "--1", "1e99", "."] {
            let found = parse_quantity(&ResourceName::new("memory"), text);
            assert_eq!(found, Err(QuantityError { text: text.to_owned() }));
        }
    }
}
