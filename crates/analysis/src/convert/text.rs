//! Elements as text, one per line, as NumPy's `savetxt` writes a flattened array.
//!
//! Floats use `%.18e`, which is exact for `float64` and narrower. Complex numbers are parenthesized
//! after a blank. Integers and booleans are written in full: NumPy's default would round integers
//! beyond 2^53.

use std::io::{self, Write};

use crate::ElementValue;

/// Writes all elements.
///
/// # Errors
/// Errors of the writer.
pub(super) fn write(
    out: &mut impl Write,
    elements: impl Iterator<Item = ElementValue>,
) -> io::Result<()> {
    for element in elements {
        match element {
            ElementValue::Float(value) => writeln!(out, "{}", exponential(value))?,
            ElementValue::Signed(value) => writeln!(out, "{value}")?,
            ElementValue::Unsigned(value) => writeln!(out, "{value}")?,
            ElementValue::Bool(value) => writeln!(out, "{}", u8::from(value))?,
            ElementValue::Complex(re, im) => {
                let (re, im) = (exponential(re), signed(im));
                writeln!(out, " ({re}{im}j)")?;
            }
        }
    }
    Ok(())
}

fn signed(value: f64) -> String {
    let text = exponential(value);
    if text.starts_with('-') {
        text
    } else {
        format!("+{text}")
    }
}

/// C's `%.18e`.
fn exponential(value: f64) -> String {
    if value.is_nan() {
        // C also prints the sign of NaN; Python does not.
        return "nan".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    let text = format!("{:.18e}", value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (exponent_sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    // C writes an exponent with a sign and at least two digits; Rust omits the plus and leading
    // zeros.
    format!("{sign}{mantissa}e{exponent_sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expectations printed by Python.
    #[test]
    fn lines_are_those_of_savetxt() {
        let cases = [
            (ElementValue::Float(1.0), "1.000000000000000000e+00"),
            (ElementValue::Float(-0.0), "-0.000000000000000000e+00"),
            (ElementValue::Float(0.1), "1.000000000000000056e-01"),
            (ElementValue::Float(65504.0), "6.550400000000000000e+04"),
            // A tie, which is rounded to the even digit.
            (
                ElementValue::Float(2f64.powi(-28)),
                "3.725290298461914062e-09",
            ),
            (ElementValue::Float(5e-324), "4.940656458412465442e-324"),
            (ElementValue::Float(f64::MAX), "1.797693134862315708e+308"),
            (ElementValue::Float(f64::NEG_INFINITY), "-inf"),
            (ElementValue::Float(-f64::NAN), "nan"),
            (ElementValue::Signed(i64::MIN), "-9223372036854775808"),
            (ElementValue::Unsigned(u64::MAX), "18446744073709551615"),
            (ElementValue::Bool(true), "1"),
            (
                ElementValue::Complex(1.0, -2.0),
                " (1.000000000000000000e+00-2.000000000000000000e+00j)",
            ),
            (
                ElementValue::Complex(f64::NAN, f64::INFINITY),
                " (nan+infj)",
            ),
        ];
        for (element, expected) in cases {
            let mut out = Vec::new();
            write(&mut out, std::iter::once(element)).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\n"));
        }
    }
}
