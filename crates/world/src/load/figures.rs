//! Numbers of many measurements.

/// How measurements spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many there were.
    pub count: usize,
    /// Half of them are not above.
    pub median: f64,
    /// Ninety-nine in a hundred are not above.
    pub p99: f64,
    /// None is above.
    pub max: f64,
}

impl Spread {
    /// The spread of these; all zero if there are none.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied().unwrap_or(0.0)
        };
        Self { count: values.len(), median: at(50), p99: at(99), max: at(100) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        assert_eq!(Spread::of(Vec::new()), Spread::default());
        let found = Spread::of((1..=200).rev().map(f64::from).collect());
        assert_eq!(found, Spread { count: 200, median: 100.0, p99: 198.0, max: 200.0 });
        assert_eq!(Spread::of(vec![7.0]), Spread { count: 1, median: 7.0, p99: 7.0, max: 7.0 });
    }
}
