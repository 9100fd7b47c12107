//! Numbers that may have been printed.

/// Digits that tables print.
const N_DIGITS: usize = 6;
/// Borders between printed numbers are themselves rounded.
const SLACK: f64 = 1.0 + 1e-9;

/// A number, and how far from it the one that was printed may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RoundedNumber {
    pub(super) value: f64,
    tolerance: f64,
}

impl RoundedNumber {
    /// A number that is known to the last bit.
    pub(super) fn exact(value: f64) -> RoundedNumber {
        RoundedNumber {
            value,
            tolerance: 0.0,
        }
    }

    /// The same number, known to within `tolerance` only.
    pub(super) fn within(self, tolerance: f64) -> RoundedNumber {
        RoundedNumber {
            tolerance: self.tolerance.max(tolerance),
            ..self
        }
    }

    /// A printed number; a whole one of which no digit was cut is exact if it is a count or an
    /// integer.
    pub(super) fn printed(text: &str, is_integer: bool) -> Option<RoundedNumber> {
        let value: f64 = text.parse().ok()?;
        let is_whole = text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        // Zero, infinities and NaN have no magnitude that a number of digits could be counted from.
        if value == 0.0 || !value.is_finite() || (is_integer && is_whole) {
            return Some(RoundedNumber::exact(value));
        }
        let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
        // Leading zeros only place the point, and are not known digits.
        let digits = mantissa.trim_start_matches(['-', '+', '0', '.']);
        let n_digits = digits.bytes().filter(u8::is_ascii_digit).count();
        // Trailing zeros are not printed, so fewer digits do not mean fewer known ones.
        let n_known = i32::try_from(n_digits.max(N_DIGITS)).unwrap_or(i32::MAX);
        let exponent = value.abs().log10().floor() as i32;
        let tolerance = 0.5 * 10f64.powi(exponent.saturating_sub(n_known).saturating_add(1));
        Some(RoundedNumber { value, tolerance })
    }

    /// How far apart both are at least, whatever was cut off when they were printed.
    pub(super) fn distance(self, other: RoundedNumber) -> f64 {
        let distance = (self.value - other.value).abs();
        if distance <= (self.tolerance + other.tolerance) * SLACK {
            0.0
        } else {
            distance - (self.tolerance + other.tolerance)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_printing_hides() {
        for (a, b, is_integer, expected) in [
            ("1.23456", "1.23457", false, 0.0),
            ("1.23456", "1.23458", false, 1e-5),
            ("6", "6.00001", false, 0.0),
            ("6", "6.00003", false, 2e-5),
            ("1.23457e+06", "1.23458e+06", false, 0.0),
            ("0", "1e-30", false, 1e-30),
            ("7", "8", true, 1.0),
            ("16777216", "16777217", true, 1.0),
            ("-1.5e-05", "-1.50001e-05", false, 0.0),
        ] {
            let of = |text| RoundedNumber::printed(text, is_integer).unwrap();
            let found = of(a).distance(of(b));
            assert!(
                (found - expected).abs() <= 1e-5 * expected,
                "{a} {b}: {found}"
            );
        }
        let exact = RoundedNumber::exact(1.234_564_9);
        assert_eq!(
            RoundedNumber::printed("1.23456", false)
                .unwrap()
                .distance(exact),
            0.0
        );
        assert!(RoundedNumber::printed("nan", false).unwrap().value.is_nan());
        assert!(
            RoundedNumber::printed("-inf", false)
                .unwrap()
                .value
                .is_infinite()
        );
        assert_eq!(RoundedNumber::printed("word", false), None);
    }
}
