//! The errors of each element, computed in numpy's types.
//!
//! Integers wrap; halves and singles are rounded after each step. Infinite errors count as missing.

use half::f16;
use opscope_analysis::ElementValue;
use opscope_tensor::{DType, NumpyType};

use crate::array::{ElementArray, SaveOrder};
use crate::compare::metrics::six_places;
use crate::compare::stop::CompareStop;

/// Both sides and their errors.
pub(super) struct ElementErrors {
    mine: Vec<WideElement>,
    golden: Vec<WideElement>,
    absolute: Vec<f64>,
    relative: Vec<f64>,
    is_bool: bool,
}

/// An element before conversion to the type of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WideElement {
    Float(f64),
    // Wide enough for the difference of any two integers.
    Integer(i128),
    Bool(bool),
}

impl ElementErrors {
    /// The elements of two arrays of the same size.
    ///
    /// # Errors
    /// For complex elements, which cannot be printed as one number.
    pub(super) fn new(
        mine: &ElementArray<'_>,
        golden: &ElementArray<'_>,
    ) -> Result<ElementErrors, CompareStop> {
        let (my_type, golden_type) = (mine.dtype(), golden.dtype());
        let (mine, golden) = (numbers(mine)?, numbers(golden)?);
        let is_bool = (my_type, golden_type) == (DType::Bool, DType::Bool);
        let mut elements = ElementErrors {
            mine,
            golden,
            absolute: Vec::new(),
            relative: Vec::new(),
            is_bool,
        };
        let difference = promote(my_type, golden_type);
        // numpy's division of integers returns doubles.
        let quotient = match promote(difference, golden_type) {
            float @ (DType::F16 | DType::F32) => float,
            _ => DType::F64,
        };
        for (&a, &b) in elements.mine.iter().zip(&elements.golden) {
            if is_bool {
                elements.absolute.push(f64::NAN);
                elements.relative.push(f64::NAN);
                continue;
            }
            let absolute = magnitude(difference, subtract(difference, a, b));
            let golden = magnitude(golden_type, b);
            let (top, bottom) = (as_float(quotient, absolute), as_float(quotient, golden));
            let relative = round(quotient, top / bottom);
            elements
                .absolute
                .push(finite(as_float(DType::F64, absolute)));
            elements.relative.push(finite(relative));
        }
        Ok(elements)
    }

    pub(super) fn len(&self) -> usize {
        self.mine.len()
    }

    /// Smallest and largest absolute and relative error; missing ones count as zero.
    pub(super) fn extremes(&self) -> [(f64, f64); 2] {
        [&self.absolute, &self.relative].map(|errors| {
            let errors = errors.iter().filter(|_| !self.is_bool);
            let errors = errors.map(|&error| known(error));
            // `min` and `max` ignore a NaN, so it remains only without elements.
            errors.fold((f64::NAN, f64::NAN), |(min, max), error| {
                (min.min(error), max.max(error))
            })
        })
    }

    /// The `n` elements with the largest absolute errors, and those with the largest relative ones,
    /// later ones first. With fewer than `n` elements one is dropped, unless it is the only one.
    pub(super) fn worst(&self, n: i64) -> [Vec<usize>; 2] {
        let len = self.len();
        let wanted = usize::try_from(n).unwrap_or(0);
        let n = match len {
            0 => 0,
            1 if wanted > 1 => usize::from(!self.is_bool),
            _ if len < wanted => len - 1,
            _ => wanted,
        };
        if self.is_bool {
            return [(0..n).collect(), (0..n).collect()];
        }
        [&self.absolute, &self.relative].map(|errors| {
            let mut order: Vec<usize> = (0..len).collect();
            order.sort_by(|&i, &j| {
                let by_error = known(errors[j]).total_cmp(&known(errors[i]));
                by_error.then(j.cmp(&i))
            });
            order.truncate(n);
            order
        })
    }

    /// The line of an element.
    pub(super) fn line(&self, i: usize, place: &str) -> String {
        let (mine, golden) = (
            self.mine[i].text(self.is_bool),
            self.golden[i].text(self.is_bool),
        );
        if self.is_bool {
            return format!("{i},{place},{mine}\t,{golden}\t,-\t,-\n");
        }
        let absolute = six_places(self.absolute[i]);
        let relative = match self.relative[i] {
            error if error.is_nan() => "-".to_owned(),
            error => six_places(error) + "\t",
        };
        format!("{i},{place},{mine}\t,{golden}\t,{absolute}\t,{relative}\n")
    }

    /// The line of one of the worst elements.
    pub(super) fn top_line(&self, i: usize, place: &str) -> String {
        let (mine, golden) = (
            self.mine[i].text(self.is_bool),
            self.golden[i].text(self.is_bool),
        );
        let (absolute, relative) = (six_places(self.absolute[i]), six_places(self.relative[i]));
        let line = format!("{i},{place},{mine}\t,{golden}\t,{absolute}\t,{relative}\t\n");
        line.replace("nan", "-").replace("inf", "-")
    }
}

/// The number, or NaN for an infinity.
fn finite(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { x }
}

impl WideElement {
    fn text(self, is_bool: bool) -> String {
        match self {
            WideElement::Bool(true) if is_bool => "True".to_owned(),
            WideElement::Bool(false) if is_bool => "False".to_owned(),
            number => six_places(as_float(DType::F64, number)),
        }
    }
}

fn known(error: f64) -> f64 {
    if error.is_nan() { 0.0 } else { error }
}

fn numbers(array: &ElementArray<'_>) -> Result<Vec<WideElement>, CompareStop> {
    let bytes = array.bytes_in_order(SaveOrder::C);
    let elements = ElementValue::all(array.dtype(), &bytes);
    elements
        .map(|element| {
            Ok(match element {
                ElementValue::Float(value) => WideElement::Float(value),
                ElementValue::Signed(value) => WideElement::Integer(value.into()),
                ElementValue::Unsigned(value) => WideElement::Integer(value.into()),
                ElementValue::Bool(value) => WideElement::Bool(value),
                ElementValue::Complex(..) => {
                    return Err(CompareStop::Fatal(
                        "must be real number, not complex".to_owned(),
                    ));
                }
            })
        })
        .collect()
}

/// Width of an integer in bits, and whether it is signed.
fn integer_kind(dtype: DType) -> Option<(u32, bool)> {
    Some(match dtype.as_numpy()? {
        NumpyType::I8 => (8, true),
        NumpyType::I16 => (16, true),
        NumpyType::I32 => (32, true),
        NumpyType::I64 => (64, true),
        NumpyType::U8 => (8, false),
        NumpyType::U16 => (16, false),
        NumpyType::U32 => (32, false),
        NumpyType::U64 => (64, false),
        NumpyType::Bool
        | NumpyType::F16
        | NumpyType::F32
        | NumpyType::F64
        | NumpyType::C64
        | NumpyType::C128 => return None,
    })
}

/// Width of a float in bits.
fn float_bits(dtype: DType) -> u32 {
    match dtype {
        DType::F16 => 16,
        DType::F32 => 32,
        _ => 64,
    }
}

fn float_of(bits: u32) -> DType {
    match bits {
        0..=16 => DType::F16,
        17..=32 => DType::F32,
        _ => DType::F64,
    }
}

/// numpy's common type of two real types.
fn promote(a: DType, b: DType) -> DType {
    if a == DType::Bool {
        return b;
    }
    if b == DType::Bool {
        return a;
    }
    match (integer_kind(a), integer_kind(b)) {
        // A float has twice the bits of the widest integer that it must hold.
        (None, None) => float_of(float_bits(a).max(float_bits(b))),
        (Some((bits, _)), None) => float_of(float_bits(b).max(bits * 2)),
        (None, Some((bits, _))) => float_of(float_bits(a).max(bits * 2)),
        (Some((x, is_signed)), Some((y, is_other_signed))) if is_signed == is_other_signed => {
            if x >= y { a } else { b }
        }
        (Some((x, is_signed)), Some((y, _))) => {
            // The largest unsigned number needs a signed type of twice the width.
            let (signed, unsigned) = if is_signed { (x, y) } else { (y, x) };
            match signed.max(unsigned * 2) {
                8 => DType::I8,
                16 => DType::I16,
                32 => DType::I32,
                64 => DType::I64,
                _ => DType::F64,
            }
        }
    }
}

fn round(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(value).to_f64(),
        DType::F32 => f64::from(value as f32),
        _ => value,
    }
}

fn as_float(dtype: DType, number: WideElement) -> f64 {
    match number {
        WideElement::Float(value) => round(dtype, value),
        WideElement::Integer(value) => round(dtype, value as f64),
        WideElement::Bool(value) => f64::from(u8::from(value)),
    }
}

fn as_integer(number: WideElement) -> i128 {
    match number {
        WideElement::Float(value) => value as i128,
        WideElement::Integer(value) => value,
        WideElement::Bool(value) => value.into(),
    }
}

/// Wraps a number to an integer of the width of `dtype`.
fn wrap(dtype: DType, value: i128) -> i128 {
    match dtype {
        DType::I8 => (value as i8).into(),
        DType::I16 => (value as i16).into(),
        DType::I32 => (value as i32).into(),
        DType::I64 => (value as i64).into(),
        DType::U8 => (value as u8).into(),
        DType::U16 => (value as u16).into(),
        DType::U32 => (value as u32).into(),
        _ => (value as u64).into(),
    }
}

fn subtract(dtype: DType, a: WideElement, b: WideElement) -> WideElement {
    if integer_kind(dtype).is_some() {
        return WideElement::Integer(wrap(dtype, as_integer(a) - as_integer(b)));
    }
    WideElement::Float(round(dtype, as_float(dtype, a) - as_float(dtype, b)))
}

/// The absolute value. The smallest signed integer stays negative.
fn magnitude(dtype: DType, number: WideElement) -> WideElement {
    match number {
        WideElement::Float(value) => WideElement::Float(value.abs()),
        WideElement::Integer(value) => WideElement::Integer(wrap(dtype, value.abs())),
        WideElement::Bool(value) => WideElement::Bool(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_numpys() {
        use DType::*;
        for (a, b, expected) in [
            (I8, U8, I16),
            (I8, I32, I32),
            (U32, I8, I64),
            (U64, I64, F64),
            (U16, U8, U16),
            (F16, I8, F16),
            (F16, U16, F32),
            (F32, I16, F32),
            (F32, I32, F64),
            (F16, I64, F64),
            (Bool, F16, F16),
            (F32, F16, F32),
        ] {
            assert_eq!(promote(a, b), expected, "{a} {b}");
            assert_eq!(promote(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn integers_wrap_and_halves_round() {
        let number = |value: i128| WideElement::Integer(value);
        assert_eq!(subtract(DType::U8, number(0), number(255)), number(1));
        let smallest = subtract(DType::I8, number(-128), number(0));
        assert_eq!(magnitude(DType::I8, smallest), number(-128));
        let float = |value: f64| WideElement::Float(value);
        assert_eq!(
            subtract(DType::F16, float(2048.0), float(0.5)),
            float(2048.0)
        );
        let max = subtract(DType::F16, float(65504.0), float(-65504.0));
        assert_eq!(max, float(f64::INFINITY));
    }
}
