//! NumPy's text of one number: the shortest digits that identify it in its own type.

use half::f16;

/// Smaller magnitudes are written with an exponent.
const POSITIONAL_MIN: f64 = 1e-4;

/// A floating-point type as NumPy prints it.
pub(super) trait PrintedFloat: Copy {
    /// Magnitudes from here on are written with an exponent.
    const POSITIONAL_END: f64;

    /// The exact value.
    fn value(self) -> f64;

    /// `d.ddde±x` with the fewest digits that round-trip.
    fn shortest(self) -> String;
}

impl PrintedFloat for f64 {
    const POSITIONAL_END: f64 = 1e16;

    fn value(self) -> f64 {
        self
    }

    fn shortest(self) -> String {
        format!("{self:e}")
    }
}

impl PrintedFloat for f32 {
    const POSITIONAL_END: f64 = 1e6;

    fn value(self) -> f64 {
        self.into()
    }

    fn shortest(self) -> String {
        format!("{self:e}")
    }
}

impl PrintedFloat for f16 {
    const POSITIONAL_END: f64 = 1e3;

    fn value(self) -> f64 {
        self.into()
    }

    fn shortest(self) -> String {
        // Five digits distinguish all numbers of eleven bits.
        (0..4)
            .map(|n_digits| format!("{:.n_digits$e}", self.value()))
            .find(|text| {
                text.parse::<f64>()
                    .is_ok_and(|value| f16::from_f64(value) == self)
            })
            .unwrap_or_else(|| format!("{:.4e}", self.value()))
    }
}

/// The text of a real number, as `str` returns it.
pub(super) fn real<T: PrintedFloat>(number: T) -> String {
    text(number, ".0")
}

/// The text of a complex number.
pub(super) fn complex<T: PrintedFloat>(re: T, im: T) -> String {
    let im_text = text(im, "");
    // Python omits a real part of +0 and the parentheses, but writes -0.
    if re.value() == 0.0 && re.value().is_sign_positive() {
        return format!("{im_text}j");
    }
    let sign = if im_text.starts_with('-') { "" } else { "+" };
    format!("({}{sign}{im_text}j)", text(re, ""))
}

/// `whole` is appended to numbers without a fraction.
fn text<T: PrintedFloat>(number: T, whole: &str) -> String {
    let value = number.value();
    if value.is_nan() {
        return "nan".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    let shortest = number.shortest();
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    if value != 0.0 && !(POSITIONAL_MIN..T::POSITIONAL_END).contains(&value.abs()) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!(
            "{sign}{first}{point}{rest}e{exponent_sign}{:02}",
            exponent.abs()
        );
    }
    if exponent < 0 {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeros}{digits}");
    }
    let n_whole = exponent as usize + 1;
    let padded = format!("{digits:0<n_whole$}");
    let (before, after) = padded.split_at(n_whole);
    if after.is_empty() {
        format!("{sign}{before}{whole}")
    } else {
        format!("{sign}{before}.{after}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values printed by NumPy 2.4.
    #[test]
    fn numbers_are_written_as_numpy_writes_them() {
        let halves = [
            (999.5, "999.5"),
            (1000.0, "1e+03"),
            (2048.0, "2.048e+03"),
            (65504.0, "6.55e+04"),
            (1e-5, "1e-05"),
            (6e-8, "6e-08"),
            (0.00012, "0.00012"),
            (-0.0, "-0.0"),
            (1.8, "1.8"),
            (f64::INFINITY, "inf"),
        ];
        for (value, expected) in halves {
            assert_eq!(real(f16::from_f64(value)), expected);
        }
        let singles = [
            (123_456.79_f32, "123456.79"),
            (999_999.94, "999999.94"),
            (1e6, "1e+06"),
            (-1_234_567.5, "-1.2345675e+06"),
            (1e-4, "1e-04"),
            (3.4e38, "3.4e+38"),
            (-2.834_432_1, "-2.8344321"),
            (f32::NAN, "nan"),
        ];
        for (value, expected) in singles {
            assert_eq!(real(value), expected);
        }
        let doubles = [
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e16, "1e+16"),
            (0.0001, "0.0001"),
            (2.0, "2.0"),
            (1e22, "1e+22"),
            (0.666_666_666_666_666_6, "0.6666666666666666"),
        ];
        for (value, expected) in doubles {
            assert_eq!(real(value), expected);
        }
    }

    #[test]
    fn complex_numbers() {
        let cases = [
            (1.0, 2.0, "(1+2j)"),
            (-0.0, f32::NAN, "(-0+nanj)"),
            (0.0, 1e15, "1e+15j"),
            (0.0, -0.0, "-0j"),
            (1.0, f32::NEG_INFINITY, "(1-infj)"),
            (0.666_666_7, 4.666_666_5, "(0.6666667+4.6666665j)"),
        ];
        for (re, im, expected) in cases {
            assert_eq!(complex(re, im), expected);
        }
        assert_eq!(complex(1e15, 0.0), "(1000000000000000+0j)");
    }
}
