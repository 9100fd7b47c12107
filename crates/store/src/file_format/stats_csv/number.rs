//! Numbers as a C++ stream prints them by default: six significant digits, like `%g`.

/// Significant digits.
const PRECISION: i32 = 6;

/// The text of `value`. The sign of NaN is not shown; that of zero is.
pub(super) fn general(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // Rust rounds the exact decimal value, ties to even, as the C library does.
    let scientific = format!("{value:.*e}", PRECISION as usize - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    // The decimal exponent after rounding decides the form, and it has at most three digits.
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..PRECISION).contains(&exponent) {
        let n_decimals = (PRECISION - 1 - exponent) as usize;
        return without_trailing_zeros(&format!("{value:.n_decimals$}")).to_owned();
    }
    let mantissa = without_trailing_zeros(mantissa);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values and what `printf("%g")` of glibc makes of them.
    const PRINTED: &str = include_str!("../../../tests/golden/printf_g.txt");

    #[test]
    fn as_the_c_library_prints() {
        let mut n_cases = 0;
        for line in PRINTED.lines() {
            let (bits, expected) = line.split_once(' ').unwrap();
            let value = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
            assert_eq!(general(value), expected, "{value:e}");
            n_cases += 1;
        }
        assert!(n_cases > 1000);
    }

    #[test]
    fn nan_has_no_sign() {
        assert_eq!(general(f64::NAN), "nan");
        assert_eq!(general(-f64::NAN), "nan");
    }
}
