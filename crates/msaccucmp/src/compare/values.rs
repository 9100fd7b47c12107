//! Elements as metrics take them.

use half::f16;
use opscope_tensor::{DType, NumpyType};

use super::metrics::Pair;
use crate::array::{Array, Order};

/// The elements of one side.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    Floats(Vec<f32>),
    /// Zero or one each.
    Bools(Vec<u8>),
}

impl Values {
    /// The elements in C order. All but booleans become `float32`: 64-bit numbers lose digits, and
    /// complex ones their imaginary part.
    pub(super) fn of(array: &Array<'_>) -> Values {
        let bytes = array.bytes_in_order(Order::C);
        if array.dtype() == DType::Bool {
            return Values::Bools(bytes.iter().map(|&b| u8::from(b != 0)).collect());
        }
        Values::Floats(floats(array.dtype(), &bytes))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Values::Floats(elements) => elements.len(),
            Values::Bools(elements) => elements.len(),
        }
    }

    /// Without booleans.
    pub(super) fn into_floats(self) -> Vec<f32> {
        match self {
            Values::Floats(elements) => elements,
            Values::Bools(elements) => elements.into_iter().map(f32::from).collect(),
        }
    }

    /// The first `n`.
    pub(super) fn truncate(&mut self, n: usize) {
        match self {
            Values::Floats(elements) => elements.truncate(n),
            Values::Bools(elements) => elements.truncate(n),
        }
    }
}

/// Both sides with elements of the same kind.
#[derive(Debug)]
pub(super) struct Sides(Values, Values);

impl Sides {
    /// Booleans stay what they are if they are on both sides.
    pub(super) fn new(mine: Values, golden: Values) -> Sides {
        match (mine, golden) {
            (mine @ Values::Bools(_), golden @ Values::Bools(_)) => Sides(mine, golden),
            (mine, golden) => Sides(
                Values::Floats(mine.into_floats()),
                Values::Floats(golden.into_floats()),
            ),
        }
    }

    pub(super) fn pair(&self) -> Pair<'_> {
        match (&self.0, &self.1) {
            (Values::Bools(a), Values::Bools(b)) => Pair::Bools(a, b),
            (Values::Floats(a), Values::Floats(b)) => Pair::Floats(a, b),
            // `new` makes both sides the same.
            _ => Pair::Floats(&[], &[]),
        }
    }
}

fn floats(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    fn each<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> f32) -> Vec<f32> {
        bytes.as_chunks::<N>().0.iter().map(|&b| value(b)).collect()
    }
    let Some(dtype) = dtype.as_numpy() else {
        // Decoding gives the dtypes of numpy only.
        return Vec::new();
    };
    match dtype {
        NumpyType::F32 => each(bytes, f32::from_le_bytes),
        NumpyType::F64 => each(bytes, |b| f64::from_le_bytes(b) as f32),
        NumpyType::F16 => each(bytes, |b| f16::from_le_bytes(b).to_f32()),
        NumpyType::I8 => each(bytes, |b| i8::from_le_bytes(b).into()),
        NumpyType::U8 => each(bytes, |b: [u8; 1]| b[0].into()),
        NumpyType::I16 => each(bytes, |b| i16::from_le_bytes(b).into()),
        NumpyType::U16 => each(bytes, |b| u16::from_le_bytes(b).into()),
        NumpyType::I32 => each(bytes, |b| i32::from_le_bytes(b) as f32),
        NumpyType::U32 => each(bytes, |b| u32::from_le_bytes(b) as f32),
        NumpyType::I64 => each(bytes, |b| i64::from_le_bytes(b) as f32),
        NumpyType::U64 => each(bytes, |b| u64::from_le_bytes(b) as f32),
        NumpyType::C64 => each(bytes, |[a, b, c, d, ..]: [u8; 8]| {
            f32::from_le_bytes([a, b, c, d])
        }),
        NumpyType::C128 => each(bytes, |[a, b, c, d, e, f, g, h, ..]: [u8; 16]| {
            f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32
        }),
        // Decoding gives numpy's dtypes only.
        NumpyType::Bool => Vec::new(),
    }
}
