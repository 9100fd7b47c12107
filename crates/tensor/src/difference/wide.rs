//! Numbers with the digits of a double and any exponent, and sums of them that lose nothing as they
//! grow.

/// 2^`exponent` for exponents in the normal range.
pub(super) const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A finite number times a power of two. Squares of doubles and their sums neither overflow nor
/// vanish.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WideNumber {
    /// Zero, or between 1 and 2 but for its sign.
    number: f64,
    exponent: i32,
}

impl WideNumber {
    pub(super) const ZERO: WideNumber = WideNumber {
        number: 0.0,
        exponent: 0,
    };

    /// `value` times 2^`exponent`; `value` is finite.
    #[inline]
    pub(super) fn new(value: f64, exponent: i32) -> WideNumber {
        let bits = value.to_bits();
        let field = ((bits >> 52) & 0x7ff) as i32;
        debug_assert!(field != 0x7ff, "{value} has no exponent");
        if value == 0.0 {
            return WideNumber::ZERO;
        }
        if field == 0 {
            // A subnormal number has no implicit one. Times 2^64 it is a normal number.
            return WideNumber::new(value * power_of_two(64), exponent - 64);
        }
        WideNumber {
            number: f64::from_bits((bits & !(0x7ff << 52)) | (1023 << 52)),
            exponent: exponent + field - 1023,
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self.number == 0.0
    }

    /// Rounded to a double; infinite or zero if it is out of range.
    pub(super) fn to_f64(self) -> f64 {
        match self.exponent {
            _ if self.is_zero() => 0.0,
            1024.. => self.number * f64::INFINITY,
            exponent @ -1022.. => self.number * power_of_two(exponent),
            // The first product is exact, so that there is one rounding.
            exponent => {
                // Anything lower rounds to zero as well, and the power has to be a normal number.
                let rest = (exponent + 1022).max(-100);
                self.number * power_of_two(-1022) * power_of_two(rest)
            }
        }
    }

    pub(super) fn times(self, other: WideNumber) -> WideNumber {
        WideNumber::new(self.number * other.number, self.exponent + other.exponent)
    }

    /// The quotient; `other` is not zero.
    pub(super) fn over(self, other: WideNumber) -> WideNumber {
        WideNumber::new(self.number / other.number, self.exponent - other.exponent)
    }

    pub(super) fn minus(self, other: WideNumber) -> WideNumber {
        let negative = WideNumber {
            number: -other.number,
            ..other
        };
        self.plus(negative).0
    }

    /// The root of a number that is not negative.
    pub(super) fn sqrt(self) -> WideNumber {
        let odd = self.exponent & 1;
        // The exponent has to be even to be halved.
        let number = self.number * f64::from(1 + odd);
        WideNumber::new(number.sqrt(), (self.exponent - odd) / 2)
    }

    /// The decimal logarithm of a positive number.
    pub(super) fn log10(self) -> f64 {
        self.number.log10() + f64::from(self.exponent) * std::f64::consts::LOG10_2
    }

    /// The rounded sum, and what rounding took away.
    #[inline]
    pub(super) fn plus(self, other: WideNumber) -> (WideNumber, WideNumber) {
        if self.is_zero() || other.is_zero() {
            let sum = if self.is_zero() { other } else { self };
            return (sum, WideNumber::ZERO);
        }
        let exponent = self.exponent.max(other.exponent);
        let [a, b] = [self, other].map(|wide| match exponent - wide.exponent {
            // Below the last digit of the other by far, and the power could not be represented.
            901.. => 0.0,
            below => wide.number * power_of_two(-below),
        });
        let sum = a + b;
        // Knuth's two-sum: exactly what the addition rounds away, whichever number is larger.
        let part = sum - a;
        let lost = (a - (sum - part)) + (b - part);
        (
            WideNumber::new(sum, exponent),
            WideNumber::new(lost, exponent),
        )
    }
}

/// A sum that is rounded as if it were once, however many terms it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct WideSum {
    sum: WideNumber,
    lost: WideNumber,
}

impl WideSum {
    pub(super) const ZERO: WideSum = WideSum {
        sum: WideNumber::ZERO,
        lost: WideNumber::ZERO,
    };

    #[inline]
    pub(super) fn add(&mut self, term: WideNumber) {
        let (sum, lost) = self.sum.plus(term);
        self.sum = sum;
        // Summed apart, because added to the sum it would be lost again.
        self.lost = self.lost.plus(lost).0;
    }

    pub(super) fn value(&self) -> WideNumber {
        self.sum.plus(self.lost).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_come_back() {
        for value in [
            0.0,
            1.0,
            -3.5,
            5e-324,
            -1e-310,
            f64::MIN_POSITIVE,
            f64::MAX,
            f64::MIN,
        ] {
            assert_eq!(WideNumber::new(value, 0).to_f64(), value);
        }
        assert_eq!(WideNumber::new(1.0, 5000).to_f64(), f64::INFINITY);
        assert_eq!(WideNumber::new(-1.0, 5000).to_f64(), f64::NEG_INFINITY);
        assert_eq!(WideNumber::new(1.0, -5000).to_f64(), 0.0);
    }

    #[test]
    fn arithmetic_goes_beyond_doubles() {
        let (large, small) = (WideNumber::new(f64::MAX, 0), WideNumber::new(5e-324, 0));
        assert_eq!(large.times(large).sqrt().to_f64(), f64::MAX);
        assert_eq!(small.times(small).sqrt().to_f64(), 5e-324);
        assert_eq!(large.times(small).over(large).to_f64(), 5e-324);
        assert_eq!(large.plus(small).0, large);
        assert_eq!(large.minus(large), WideNumber::ZERO);
        for exponent in [-7, -6, 0, 1, 2] {
            let square = WideNumber::new(2.25, 2 * exponent);
            assert_eq!(square.sqrt(), WideNumber::new(1.5, exponent));
        }
    }

    #[test]
    fn totals_keep_what_is_small() {
        let mut total = WideSum::ZERO;
        for value in [1e16, 1.0, 1.0, 1.0, -1e16] {
            total.add(WideNumber::new(value, 0));
        }
        assert_eq!(total.value().to_f64(), 3.0);
    }
}
