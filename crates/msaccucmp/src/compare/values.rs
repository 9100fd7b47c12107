//! Elements in the form for metrics.

use half::f16;
use opscope_tensor::{DType, NumpyType};

use super::metrics::ComparedElements;
use crate::array::{ElementArray, SaveOrder};

/// The elements of one side.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SideValues {
    Floats(Vec<f32>),
    /// Each element is zero or one.
    Bools(Vec<u8>),
}

impl SideValues {
    /// The elements in C order. All but booleans become `float32`: 64-bit numbers lose digits, and
    /// complex ones their imaginary part.
    pub(super) fn decode(array: &ElementArray<'_>) -> SideValues {
        let bytes = array.bytes_in_order(SaveOrder::C);
        if array.dtype() == DType::Bool {
            return SideValues::Bools(bytes.iter().map(|&b| u8::from(b != 0)).collect());
        }
        SideValues::Floats(floats(array.dtype(), &bytes))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            SideValues::Floats(elements) => elements.len(),
            SideValues::Bools(elements) => elements.len(),
        }
    }

    /// Converts booleans to floats.
    pub(super) fn into_floats(self) -> Vec<f32> {
        match self {
            SideValues::Floats(elements) => elements,
            SideValues::Bools(elements) => elements.into_iter().map(f32::from).collect(),
        }
    }

    /// Truncates to the first `n` elements.
    pub(super) fn truncate(&mut self, n: usize) {
        match self {
            SideValues::Floats(elements) => elements.truncate(n),
            SideValues::Bools(elements) => elements.truncate(n),
        }
    }
}

/// Both sides with elements of the same kind.
#[derive(Debug)]
pub(super) struct ValuePair(SideValues, SideValues);

impl ValuePair {
    /// Booleans stay booleans if both sides have them.
    pub(super) fn new(mine: SideValues, golden: SideValues) -> ValuePair {
        match (mine, golden) {
            (mine @ SideValues::Bools(_), golden @ SideValues::Bools(_)) => ValuePair(mine, golden),
            (mine, golden) => ValuePair(
                SideValues::Floats(mine.into_floats()),
                SideValues::Floats(golden.into_floats()),
            ),
        }
    }

    pub(super) fn pair(&self) -> ComparedElements<'_> {
        match (&self.0, &self.1) {
            (SideValues::Bools(a), SideValues::Bools(b)) => ComparedElements::Bools(a, b),
            (SideValues::Floats(a), SideValues::Floats(b)) => ComparedElements::Floats(a, b),
            // `new` makes both sides the same kind.
            _ => ComparedElements::Floats(&[], &[]),
        }
    }
}

fn floats(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    fn each<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> f32) -> Vec<f32> {
        bytes.as_chunks::<N>().0.iter().map(|&b| value(b)).collect()
    }
    let Some(dtype) = dtype.as_numpy() else {
        // Decoding yields only numpy's dtypes.
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
        // Decoding yields only numpy's dtypes.
        NumpyType::Bool => Vec::new(),
    }
}
