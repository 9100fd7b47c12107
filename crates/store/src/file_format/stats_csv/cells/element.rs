//! Elements of each type, decoded in blocks.

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::{BLOCK, PrintedNumber};

/// A type of elements that have cells.
pub(super) trait CellElement {
    /// Type that an element is decoded to.
    type Value: Copy + PartialOrd + Default;

    /// Bytes of an element.
    const WIDTH: usize;

    /// Decodes whole elements to the beginning of `out`, which has room for them.
    fn decode(bytes: &[u8], out: &mut [Self::Value]);

    fn value(x: Self::Value) -> f64;

    fn number(x: Self::Value) -> PrintedNumber;

    /// The elements in order. Bytes after the last whole element are ignored.
    fn blocks(bytes: &[u8]) -> impl Iterator<Item = DecodedBlock<Self::Value>> {
        let n_whole = bytes.len() / Self::WIDTH * Self::WIDTH;
        bytes[..n_whole].chunks(BLOCK * Self::WIDTH).map(|bytes| {
            let mut block = DecodedBlock {
                values: [Self::Value::default(); BLOCK],
                n: bytes.len() / Self::WIDTH,
            };
            Self::decode(bytes, &mut block.values);
            block
        })
    }
}

/// Up to [`BLOCK`] decoded elements.
pub(super) struct DecodedBlock<T> {
    values: [T; BLOCK],
    n: usize,
}

impl<T> DecodedBlock<T> {
    pub(super) fn as_slice(&self) -> &[T] {
        &self.values[..self.n]
    }
}

macro_rules! elements {
    ($($type:ty: $variant:ident($wide:ty);)*) => {
        $(impl CellElement for $type {
            type Value = $type;

            const WIDTH: usize = size_of::<$type>();

            fn decode(bytes: &[u8], out: &mut [$type]) {
                let elements = bytes.as_chunks::<{ size_of::<$type>() }>().0;
                for (out, &element) in out.iter_mut().zip(elements) {
                    *out = <$type>::from_le_bytes(element);
                }
            }

            fn value(x: $type) -> f64 {
                x as f64
            }

            fn number(x: $type) -> PrintedNumber {
                PrintedNumber::$variant(x as $wide)
            }
        })*
    };
}

elements! {
    f32: Float(f64);
    f64: Float(f64);
    i8: Signed(i64);
    u8: Unsigned(u64);
    i16: Signed(i64);
    u16: Unsigned(u64);
    i32: Signed(i64);
    u32: Unsigned(u64);
    i64: Signed(i64);
    u64: Unsigned(u64);
}

impl CellElement for f16 {
    type Value = f32;

    const WIDTH: usize = 2;

    fn decode(bytes: &[u8], out: &mut [f32]) {
        // `half` converts whole slices with vector instructions where the processor has them.
        let mut halves = [f16::ZERO; BLOCK];
        let elements = bytes.as_chunks::<2>().0;
        for (half, &element) in halves.iter_mut().zip(elements) {
            *half = f16::from_le_bytes(element);
        }
        let n = elements.len().min(BLOCK).min(out.len());
        halves[..n].convert_to_f32_slice(&mut out[..n]);
    }

    fn value(x: f32) -> f64 {
        f64::from(x)
    }

    fn number(x: f32) -> PrintedNumber {
        PrintedNumber::Float(f64::from(x))
    }
}

/// Any byte but 0 is true, and is printed as 1.
impl CellElement for bool {
    type Value = u8;

    const WIDTH: usize = 1;

    fn decode(bytes: &[u8], out: &mut [u8]) {
        for (out, &byte) in out.iter_mut().zip(bytes) {
            *out = u8::from(byte != 0);
        }
    }

    fn value(x: u8) -> f64 {
        f64::from(x)
    }

    fn number(x: u8) -> PrintedNumber {
        PrintedNumber::Unsigned(x.into())
    }
}
