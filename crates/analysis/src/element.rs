//! Single elements as numbers.

use std::fmt;

use half::{bf16, f16};
use opscope_tensor::convert::dtype::DecodedElements;
use opscope_tensor::{DType, NumpyType, largest_finite};

/// One element of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ElementValue {
    /// Any float, widened.
    Float(f64),
    /// Any signed integer.
    Signed(i64),
    /// Any unsigned integer.
    Unsigned(u64),
    /// A boolean.
    Bool(bool),
    /// Real and imaginary parts.
    Complex(f64, f64),
}

impl ElementValue {
    /// The first `n` elements.
    pub fn first(decoded: &DecodedElements<'_>, n: usize) -> Vec<ElementValue> {
        ElementValue::all(decoded.dtype, &decoded.bytes)
            .take(n)
            .collect()
    }

    /// Reads little-endian elements of a NumPy dtype. Yields nothing for any other dtype, and
    /// ignores trailing bytes of an incomplete element.
    pub fn all(dtype: DType, bytes: &[u8]) -> impl Iterator<Item = ElementValue> {
        // No NumPy dtype is wider.
        let width = dtype.bytes().unwrap_or(usize::from(u8::MAX));
        let elements = bytes.chunks_exact(width);
        elements.filter_map(move |bytes| ElementValue::read(dtype, bytes))
    }

    fn read(dtype: DType, bytes: &[u8]) -> Option<ElementValue> {
        Some(match dtype.as_numpy()? {
            NumpyType::F16 => ElementValue::Float(f16::from_le_bytes(array(bytes)?).to_f64()),
            NumpyType::F32 => ElementValue::Float(f32::from_le_bytes(array(bytes)?).into()),
            NumpyType::F64 => ElementValue::Float(f64::from_le_bytes(array(bytes)?)),
            NumpyType::I8 => ElementValue::Signed(i8::from_le_bytes(array(bytes)?).into()),
            NumpyType::I16 => ElementValue::Signed(i16::from_le_bytes(array(bytes)?).into()),
            NumpyType::I32 => ElementValue::Signed(i32::from_le_bytes(array(bytes)?).into()),
            NumpyType::I64 => ElementValue::Signed(i64::from_le_bytes(array(bytes)?)),
            NumpyType::U8 => ElementValue::Unsigned(u8::from_le_bytes(array(bytes)?).into()),
            NumpyType::U16 => ElementValue::Unsigned(u16::from_le_bytes(array(bytes)?).into()),
            NumpyType::U32 => ElementValue::Unsigned(u32::from_le_bytes(array(bytes)?).into()),
            NumpyType::U64 => ElementValue::Unsigned(u64::from_le_bytes(array(bytes)?)),
            // NumPy writes 0 and 1; any other byte is true as well.
            NumpyType::Bool => ElementValue::Bool(bytes != [0]),
            NumpyType::C64 => ElementValue::Complex(
                f32::from_le_bytes(array(&bytes[..4])?).into(),
                f32::from_le_bytes(array(&bytes[4..])?).into(),
            ),
            NumpyType::C128 => ElementValue::Complex(
                f64::from_le_bytes(array(&bytes[..8])?),
                f64::from_le_bytes(array(&bytes[8..])?),
            ),
        })
    }
}

impl fmt::Display for ElementValue {
    /// Floats with at most six significant digits; other values in full.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ElementValue::Float(value) => f.write_str(&short_float(value)),
            ElementValue::Signed(value) => value.fmt(f),
            ElementValue::Unsigned(value) => value.fmt(f),
            ElementValue::Bool(value) => value.fmt(f),
            ElementValue::Complex(re, im) => {
                // A negative number brings its sign along.
                let sign = if im.is_sign_negative() { "" } else { "+" };
                write!(f, "{}{sign}{}i", short_float(re), short_float(im))
            }
        }
    }
}

/// The value of a little-endian float of two, four or eight bytes.
pub(crate) fn float(dtype: DType, bytes: &[u8]) -> f64 {
    match (dtype, bytes) {
        (DType::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
        (DType::BF16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f64(),
        (DType::F32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (_, bytes) => bytes.try_into().map_or(f64::NAN, f64::from_le_bytes),
    }
}

/// A float with at most six significant digits, in the shorter notation.
pub(crate) fn short_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() || value == 0.0 {
        return value.to_string();
    }
    // Outside of this range an exponent is shorter than the zeros that it replaces.
    let magnitude = value.abs().log10().floor() as i32;
    if (-5..15).contains(&magnitude) {
        let n_decimals = usize::try_from(5 - magnitude).unwrap_or(0);
        let text = format!("{value:.n_decimals$}");
        if text.contains('.') {
            return text.trim_end_matches('0').trim_end_matches('.').to_owned();
        }
        return text;
    }
    let text = format!("{value:.5e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
            format!("{mantissa}e{exponent}")
        }
        None => text,
    }
}

/// A text on one line: control characters and backslashes escaped as in source code, invalid UTF-8
/// as `\xff`.
pub(crate) fn escaped(text: &[u8]) -> String {
    let mut line = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || c == '\\' {
                line.extend(c.escape_default());
            } else {
                line.push(c);
            }
        }
        for byte in chunk.invalid() {
            line.push_str(&format!("\\x{byte:02x}"));
        }
    }
    line
}

fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// A magnitude with thousands separators: 677,596. Fractions of large magnitudes are rounded up, so
/// that a number beyond a limit stays beyond it.
pub(crate) fn thousands(value: f64) -> String {
    let value = if value >= 1e3 { value.ceil() } else { value };
    if value != value.trunc() || value.abs() >= 1e12 {
        return format!("{value:.4e}");
    }
    let digits = format!("{value}");
    let mut text = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `: it overflows float16 (needs 677,596, the largest is 65,504)`, for an infinity that the operator
/// computed from finite numbers. Without the magnitude that it needed, `None` for operators that also
/// produce infinities at a pole, such as division by zero.
pub fn overflow_words(dtype: DType, op_type: &str, needed: Option<f64>) -> Option<String> {
    let name = dtype.name();
    let largest = thousands(largest_finite(dtype)?);
    let words = match needed {
        Some(needed) if needed.is_finite() => {
            format!("needs {}, the largest is {largest}", thousands(needed))
        }
        None if has_pole(op_type) => return None,
        _ => format!("beyond {largest}"),
    };
    Some(format!(": it overflows {name} ({words})"))
}

/// Whether an operator has infinite results in every dtype.
fn has_pole(op_type: &str) -> bool {
    const POLES: [&str; 9] = [
        "div",
        "pow",
        "log",
        "reciprocal",
        "rsqrt",
        "tan",
        "inverse",
        "softplus",
        "fill",
    ];
    let op_type = op_type.to_lowercase();
    op_type.is_empty() || POLES.iter().any(|word| op_type.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_on_one_line() {
        let cases: [(&[u8], &str); 4] = [
            ("\u{e4} b'\"".as_bytes(), "\u{e4} b'\""),
            (b"a\nb\\n\t\0", r"a\nb\\n\t\u{0}"),
            (b"\xffx\xc3", r"\xffx\xc3"),
            (b"", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(escaped(text), expected);
        }
    }

    #[test]
    fn large_magnitudes_have_separators() {
        let cases = [
            (65504.0, "65,504"),
            (677_595.4, "677,596"),
            (448.0, "448"),
            (0.5, "5.0000e-1"),
            (3.402_823_4e38, "3.4028e38"),
        ];
        for (value, expected) in cases {
            assert_eq!(thousands(value), expected);
        }
    }

    #[test]
    fn floats_are_short() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1 + 0.2, "0.3"),
            (65504.0, "65504"),
            (1_234_567.0, "1234567"),
            (0.000_012_345_678, "0.0000123457"),
            (1.5e-9, "1.5e-9"),
            (-3.402_823_5e38, "-3.40282e38"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ];
        for (value, text) in cases {
            assert_eq!(short_float(value), text);
        }
    }
}
