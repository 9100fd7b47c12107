//! Elements of any dtype as doubles, a block at a time.

use super::DifferenceError;
use crate::convert::dtype::{DecodeError, decode, numpy_dtype};
use crate::cpu::{LANES, LaneMachine};
use crate::{DType, ElementKind, Shape, TensorView};

/// Elements that are processed together: four buffers of doubles stay in the nearest caches.
///
/// A multiple of 8, so that blocks of packed elements begin with a byte.
pub(super) const BLOCK: usize = 2048;

/// One side of a comparison. Parts of complex numbers are separate elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockSource<'a> {
    dtype: DType,
    bits: usize,
    n: usize,
    bytes: &'a [u8],
}

impl<'a> BlockSource<'a> {
    pub(super) fn new(tensor: TensorView<'a>) -> Result<BlockSource<'a>, DifferenceError> {
        let TensorView {
            dtype,
            shape,
            bytes,
            ..
        } = tensor;
        let Some(_) = numpy_dtype(dtype) else {
            return Err(DecodeError::NoValue(dtype).into());
        };
        let Some(bits) = dtype.bits() else {
            // Opaque: bytes, however many there are.
            return Ok(BlockSource {
                dtype: DType::U8,
                bits: 8,
                n: bytes.len(),
                bytes,
            });
        };
        let expected = shape.n_bytes(dtype).map_err(DecodeError::from)?;
        if expected != bytes.len() {
            let (shape, found) = (shape.clone(), bytes.len());
            return Err(DecodeError::Size {
                dtype,
                shape,
                expected,
                found,
            }
            .into());
        }
        let (dtype, n_parts) = dtype.parts();
        Ok(BlockSource {
            dtype,
            bits: bits as usize / n_parts,
            // There are bytes for all of them, so that this cannot overflow.
            n: shape.n_elements() * n_parts,
            bytes,
        })
    }

    pub(super) fn n(&self) -> usize {
        self.n
    }

    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    fn is_integer(&self) -> bool {
        let kind = numpy_dtype(self.dtype).map(DType::kind);
        matches!(
            kind,
            Some(ElementKind::Signed | ElementKind::Unsigned | ElementKind::Truth)
        )
    }

    /// Whether elements have more digits than doubles.
    fn is_long(&self) -> bool {
        matches!(numpy_dtype(self.dtype), Some(DType::I64 | DType::U64))
    }

    /// The bytes of the block of `n` elements that begins at element `start`, a multiple of
    /// [`BLOCK`].
    #[inline(always)]
    pub(super) fn block(&self, start: usize, n: usize) -> &'a [u8] {
        // Both products are at most the number of all bits, which `BlockSource::new` has counted.
        let begin = start / 8 * self.bits;
        &self.bytes[begin..begin + (n * self.bits).div_ceil(8)]
    }

    /// Decodes the block that begins at `start` into all of `out`.
    #[inline(always)]
    pub(super) fn fill<M: LaneMachine>(&self, m: M, start: usize, out: &mut [f64]) {
        let bytes = self.block(start, out.len());
        let decoded;
        let (dtype, bytes) = if is_direct(self.dtype) {
            (self.dtype, bytes)
        } else {
            let shape = Shape::new([out.len()]).expect("a short list is a shape");
            decoded = decode(self.dtype, &shape, bytes).expect("sizes were checked");
            (decoded.dtype, &*decoded.bytes)
        };
        fill(m, dtype, bytes, out);
    }
}

/// Whether elements become doubles without being decoded to a type of numpy first.
fn is_direct(dtype: DType) -> bool {
    dtype == DType::BF16 || numpy_dtype(dtype) == Some(dtype)
}

/// Writes elements of a dtype that [`is_direct`] as doubles.
#[inline(always)]
fn fill<M: LaneMachine>(m: M, dtype: DType, bytes: &[u8], out: &mut [f64]) {
    macro_rules! cast {
        ($type:ty) => {
            for (out, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
                *out = <$type>::from_le_bytes(*bytes) as f64;
            }
        };
    }
    match dtype {
        DType::F32 => cast!(f32),
        DType::F64 => cast!(f64),
        DType::F16 => fill_float16(m, bytes, out),
        DType::BF16 => {
            for (out, &[low, high]) in out.iter_mut().zip(bytes.as_chunks().0) {
                *out = f64::from(f32::from_le_bytes([0, 0, low, high]));
            }
        }
        DType::I8 => cast!(i8),
        DType::U8 => cast!(u8),
        DType::I16 => cast!(i16),
        DType::U16 => cast!(u16),
        DType::I32 => cast!(i32),
        DType::U32 => cast!(u32),
        DType::I64 => cast!(i64),
        DType::U64 => cast!(u64),
        DType::Bool => {
            for (out, &byte) in out.iter_mut().zip(bytes) {
                *out = f64::from(u8::from(byte != 0));
            }
        }
        _ => unreachable!("{dtype} is no type of one real number"),
    }
}

#[inline(always)]
fn fill_float16<M: LaneMachine>(m: M, bytes: &[u8], out: &mut [f64]) {
    let (groups, rest) = bytes.as_chunks::<{ 2 * LANES }>();
    let (outs, out_rest) = out.as_chunks_mut::<LANES>();
    for (out, group) in outs.iter_mut().zip(groups) {
        *out = m.array(m.widen_floats(m.load_float16(group)));
    }
    for (out, &half) in out_rest.iter_mut().zip(rest.as_chunks().0) {
        let bits = crate::cpu::float16_to_float32(u16::from_le_bytes(half));
        *out = f64::from(f32::from_bits(bits));
    }
}

/// Writes the distances of the elements of a block, which `a` and `b` hold as doubles.
///
/// Integers that have more digits than doubles are subtracted as integers, and the distance is
/// rounded.
#[inline(always)]
fn integer(source: &BlockSource<'_>, bytes: &[u8], i: usize, value: f64) -> i128 {
    let long = bytes.as_chunks().0.get(i).copied().unwrap_or_default();
    match numpy_dtype(source.dtype) {
        Some(DType::I64) => i128::from(i64::from_le_bytes(long)),
        Some(DType::U64) => i128::from(u64::from_le_bytes(long)),
        // Exact, as it has fewer digits.
        _ => value as i128,
    }
}

pub(super) fn distances(
    [target, golden]: [&BlockSource<'_>; 2],
    start: usize,
    a: &[f64],
    b: &[f64],
    out: &mut [f64],
) {
    let are_long =
        target.is_integer() && golden.is_integer() && (target.is_long() || golden.is_long());
    if !are_long {
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            *out = (a - b).abs();
        }
        return;
    }
    let bytes = [
        target.block(start, out.len()),
        golden.block(start, out.len()),
    ];
    let [x, y] = bytes.map(|bytes| bytes.as_chunks().0.iter());
    match (target.dtype, golden.dtype) {
        // A `resource` is a handle of 64 bits, which decodes to `int64`.
        (DType::I64 | DType::Resource, DType::I64 | DType::Resource) => {
            for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
                *out = i64::from_le_bytes(*x).abs_diff(i64::from_le_bytes(*y)) as f64;
            }
        }
        (DType::U64, DType::U64) => {
            for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
                *out = u64::from_le_bytes(*x).abs_diff(u64::from_le_bytes(*y)) as f64;
            }
        }
        _ => {
            for (i, out) in out.iter_mut().enumerate() {
                let (x, y) = (
                    integer(target, bytes[0], i, a[i]),
                    integer(golden, bytes[1], i, b[i]),
                );
                *out = x.abs_diff(y) as f64;
            }
        }
    }
}
