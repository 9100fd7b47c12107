//! Floats as C++ streams and `printf("%g")` write them.

/// Six significant digits, trailing zeros left out; an exponent of two digits at least where the
/// number is below 0.0001 or has more than six digits. NaN is `nan` or, with its sign bit, `-nan`.
pub fn general(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    // C prints the sign of NaN and Rust does not.
    if value.is_nan() {
        return format!("{sign}nan");
    }
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    if value == 0.0 {
        return format!("{sign}0");
    }
    // `%g` chooses the form by the rounded number: 999999.5 is printed as 1e+06.
    let text = format!("{value:.5e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let n_decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return without_zeros(&format!("{value:.n_decimals$}")).to_owned();
    }
    let mantissa = without_zeros(mantissa);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_to_printf() {
        let cases = [
            (6.0, "6"),
            (-0.0, "-0"),
            (1.0 / 3.0, "0.333333"),
            (12.083_045_973_594_572, "12.083"),
            (1_234_567.0, "1.23457e+06"),
            (999_999.5, "1e+06"),
            (999_999.4, "999999"),
            (100_000.0, "100000"),
            (3e38, "3e+38"),
            (9.999_946_1e-41, "9.99995e-41"),
            (0.0001, "0.0001"),
            (0.000_099_999_4, "9.99994e-05"),
            (0.000_099_999_996, "0.0001"),
            (f64::MAX, "1.79769e+308"),
            (5e-324, "4.94066e-324"),
            (-1e100, "-1e+100"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN.copysign(1.0), "nan"),
            (f64::NAN.copysign(-1.0), "-nan"),
        ];
        for (value, text) in cases {
            assert_eq!(general(value), text);
        }
    }

    /// Values and what `printf("%g")` of glibc makes of them.
    const PRINTED: &str = include_str!("../../tests/golden/printf_g.txt");

    #[test]
    fn as_the_c_library_prints() {
        let mut n_cases = 0;
        for line in PRINTED.lines() {
            let (bits, expected) = line.split_once(' ').unwrap();
            let value = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
            if !value.is_nan() {
                assert_eq!(general(value), expected, "{value:e}");
                n_cases += 1;
            }
        }
        assert!(n_cases > 1000);
    }
}
