//! Counting NaN and infinities alone, at the speed of memory.

use std::marker::PhantomData;

use super::codes;
use super::float::{BF16, F16, F32, F64, FloatFormat, FloatPattern};
use crate::convert::dtype::{CodeValues, code_values};
use crate::cpu::{self, LaneMachine, LaneTask};
use crate::pieces::{PIECE_BYTES, PieceReader};
use crate::{DType, TensorView};

/// Number of elements that are not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonFinite {
    /// Elements that are NaN.
    pub n_nan: u64,
    /// Elements that are `+inf`.
    pub n_pos_inf: u64,
    /// Elements that are `-inf`.
    pub n_neg_inf: u64,
}

impl NonFinite {
    /// Whether any element is NaN or infinite.
    pub fn any(self) -> bool {
        self != NonFinite::default()
    }
}

crate::add_fields!(NonFinite: n_nan, n_pos_inf, n_neg_inf);

/// Counts the NaN and infinite elements of `tensor`.
///
/// Types that cannot hold any, and types without a numeric value, have counts of 0. A complex
/// element counts once for each of its two parts.
pub fn non_finite(tensor: TensorView<'_>) -> NonFinite {
    non_finite_beside(tensor, &mut ())
}

/// [`non_finite`], with a reader that may receive the first pieces of the bytes first. It does not
/// receive those of narrow floats.
pub(crate) fn non_finite_beside(
    tensor: TensorView<'_>,
    beside: &mut impl PieceReader,
) -> NonFinite {
    let bytes = tensor.bytes;
    match tensor.dtype.parts().0 {
        DType::F32 => cpu::run(NonFiniteCount::<F32, _>::new(bytes, beside)),
        DType::F64 => cpu::run(NonFiniteCount::<F64, _>::new(bytes, beside)),
        DType::F16 => cpu::run(NonFiniteCount::<F16, _>::new(bytes, beside)),
        DType::BF16 => cpu::run(NonFiniteCount::<BF16, _>::new(bytes, beside)),
        dtype if dtype.is_float() => {
            let n_elements = tensor.shape.n_elements();
            code_values(dtype).map_or_else(NonFinite::default, |values| {
                of_codes(&values, n_elements, bytes)
            })
        }
        _ => NonFinite::default(),
    }
}

/// The position of the first element of `tensor` that is NaN or infinite.
///
/// Of a complex element either part counts.
pub fn first_non_finite(tensor: TensorView<'_>) -> Option<usize> {
    let bytes = tensor.bytes;
    let (part, n_parts) = tensor.dtype.parts();
    let first = match part {
        DType::F32 => cpu::run(FirstNonFiniteTask::<F32>::new(bytes)),
        DType::F64 => cpu::run(FirstNonFiniteTask::<F64>::new(bytes)),
        DType::F16 => cpu::run(FirstNonFiniteTask::<F16>::new(bytes)),
        DType::BF16 => cpu::run(FirstNonFiniteTask::<BF16>::new(bytes)),
        dtype if dtype.is_float() => {
            let values = code_values(dtype)?;
            // Narrow floats that know NaN or infinity take a whole byte each; packed ones know
            // neither.
            let bytes = bytes.iter().take(tensor.shape.n_elements());
            bytes
                .map(|&code| (values.value)(code))
                .position(|value| !value.is_finite())
        }
        _ => None,
    };
    first.map(|part| part / n_parts)
}

/// Whether any element of `tensor` is NaN or infinite. Stops at the first one.
pub fn has_non_finite(tensor: TensorView<'_>) -> bool {
    first_non_finite(tensor).is_some()
}

/// Where a tensor's first NaN and its first infinity are, counted through its elements in row-major
/// order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NonFinitePlaces {
    /// The first element that is NaN.
    pub nan: Option<usize>,
    /// The first one that is infinite, and its value.
    pub infinity: Option<(usize, f64)>,
}

/// Finds the first NaN and the first infinity of `tensor`, of which [`non_finite`] has found
/// `counts`.
///
/// A complex element has either if one of its parts has. Stops as soon as everything is found.
pub fn non_finite_places(tensor: TensorView<'_>, counts: NonFinite) -> NonFinitePlaces {
    let (part, n_parts) = tensor.dtype.parts();
    let Some(first) = first_non_finite(tensor) else {
        return NonFinitePlaces::default();
    };
    // `first` counts elements; the search below counts their parts.
    let from = first * n_parts;
    let mut places = match part {
        DType::F32 => places_of::<F32>(tensor.bytes, from, counts),
        DType::F64 => places_of::<F64>(tensor.bytes, from, counts),
        DType::F16 => places_of::<F16>(tensor.bytes, from, counts),
        DType::BF16 => places_of::<BF16>(tensor.bytes, from, counts),
        dtype => match code_values(dtype) {
            Some(values) => {
                let codes = tensor.bytes.iter().take(tensor.shape.n_elements());
                let values = codes.map(|&code| (values.value)(code));
                places_among(values.enumerate().skip(from), counts)
            }
            None => NonFinitePlaces::default(),
        },
    };
    places.nan = places.nan.map(|part| part / n_parts);
    places.infinity = places.infinity.map(|(part, value)| (part / n_parts, value));
    places
}

fn places_of<F: FloatFormat>(bytes: &[u8], from: usize, counts: NonFinite) -> NonFinitePlaces {
    let elements = bytes.chunks_exact(F::WIDTH).enumerate().skip(from);
    let values = elements.map(|(i, element)| {
        let bits = F::Bits::read(element);
        let magnitude = bits.magnitude();
        let value = match () {
            () if magnitude > F::INFINITY => f64::NAN,
            () if magnitude < F::INFINITY => 0.0,
            () if bits == F::INFINITY => f64::INFINITY,
            () => f64::NEG_INFINITY,
        };
        (i, value)
    });
    places_among(values, counts)
}

fn places_among(values: impl Iterator<Item = (usize, f64)>, counts: NonFinite) -> NonFinitePlaces {
    let has_infinity = counts.n_pos_inf > 0 || counts.n_neg_inf > 0;
    let mut places = NonFinitePlaces::default();
    for (i, value) in values {
        if value.is_nan() {
            places.nan.get_or_insert(i);
        } else if value.is_infinite() {
            places.infinity.get_or_insert((i, value));
        }
        let has_nan = places.nan.is_some() || counts.n_nan == 0;
        if has_nan && (places.infinity.is_some() || !has_infinity) {
            break;
        }
    }
    places
}

fn of_codes(values: &CodeValues, n_elements: usize, bytes: &[u8]) -> NonFinite {
    let mut total = NonFinite::default();
    let counts = codes::count(values, n_elements, bytes);
    for (code, n) in (0..=u8::MAX).zip(counts) {
        let value = (values.value)(code);
        if value.is_nan() {
            total.n_nan += n;
        } else if value == f64::INFINITY {
            total.n_pos_inf += n;
        } else if value == f64::NEG_INFINITY {
            total.n_neg_inf += n;
        }
    }
    total
}

/// Elements processed before checking whether any was not finite.
const BLOCK: usize = 2048;

/// Counts by bit pattern: exponent all ones, and a mantissa that is zero for an infinity.
struct NonFiniteCount<'a, F, R> {
    bytes: &'a [u8],
    beside: &'a mut R,
    float: PhantomData<F>,
}

impl<'a, F, R> NonFiniteCount<'a, F, R> {
    fn new(bytes: &'a [u8], beside: &'a mut R) -> NonFiniteCount<'a, F, R> {
        NonFiniteCount {
            bytes,
            beside,
            float: PhantomData,
        }
    }
}

/// Whether any element of a block is not finite.
#[inline(always)]
fn is_any<F: FloatFormat>(block: &[u8]) -> bool {
    let zero = F::Bits::ZERO;
    let elements = block.chunks_exact(F::WIDTH).map(F::Bits::read);
    // A sum of comparisons and no early end, so that the compiler makes vector code of it.
    elements.fold(zero, |n, bits| {
        n.add(F::Bits::count(bits.magnitude() >= F::INFINITY))
    }) > zero
}

/// The same; the reader receives each piece first.
#[inline(always)]
fn is_any_beside<M: LaneMachine, F: FloatFormat>(
    m: M,
    block: &[u8],
    beside: &mut impl PieceReader,
) -> bool {
    let (pieces, rest) = block.as_chunks::<PIECE_BYTES>();
    let mut is_found = is_any::<F>(rest);
    for piece in pieces {
        beside.take(m, piece);
        is_found |= is_any::<F>(piece);
    }
    is_found
}

impl<F: FloatFormat, R: PieceReader> LaneTask for NonFiniteCount<'_, F, R> {
    type Output = NonFinite;

    #[inline(always)]
    fn run<M: LaneMachine>(self, m: M) -> NonFinite {
        let mut total = NonFinite::default();
        // Most tensors hold none: first check a block for any, and distinguish them only if there
        // is one.
        for block in self.bytes.chunks(BLOCK * F::WIDTH) {
            if !is_any_beside::<M, F>(m, block, self.beside) {
                continue;
            }
            let zero = F::Bits::ZERO;
            let (mut n_nan, mut n_inf, mut n_pos_inf) = (zero, zero, zero);
            for bits in block.chunks_exact(F::WIDTH).map(F::Bits::read) {
                let magnitude = bits.magnitude();
                n_nan = n_nan.add(F::Bits::count(magnitude > F::INFINITY));
                n_inf = n_inf.add(F::Bits::count(magnitude == F::INFINITY));
                n_pos_inf = n_pos_inf.add(F::Bits::count(bits == F::INFINITY));
            }
            total.n_nan += n_nan.number();
            total.n_pos_inf += n_pos_inf.number();
            total.n_neg_inf += n_inf.number() - n_pos_inf.number();
        }
        total
    }
}

/// Finds the first instead of counting.
struct FirstNonFiniteTask<'a, F> {
    bytes: &'a [u8],
    float: PhantomData<F>,
}

impl<F> FirstNonFiniteTask<'_, F> {
    fn new(bytes: &[u8]) -> FirstNonFiniteTask<'_, F> {
        FirstNonFiniteTask {
            bytes,
            float: PhantomData,
        }
    }
}

impl<F: FloatFormat> LaneTask for FirstNonFiniteTask<'_, F> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<M: LaneMachine>(self, _: M) -> Option<usize> {
        let bytes = self.bytes;
        let blocks = bytes.chunks(BLOCK * F::WIDTH);
        let (i, block) = blocks.enumerate().find(|(_, block)| is_any::<F>(block))?;
        let mut elements = block.chunks_exact(F::WIDTH).map(F::Bits::read);
        let in_block = elements.position(|bits| bits.magnitude() >= F::INFINITY)?;
        Some(i * BLOCK + in_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    fn places(dtype: DType, dims: &[usize], bytes: &[u8]) -> (Option<usize>, Option<(usize, f64)>) {
        let shape = Shape::new(dims.to_vec()).unwrap();
        let view = TensorView::new(dtype, &shape, bytes);
        let found = non_finite_places(view, non_finite(view));
        (found.nan, found.infinity)
    }

    #[test]
    fn places_of_the_first_nan_and_the_first_infinity() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let mut long = vec![0.0; 5000];
        (long[3000], long[4999]) = (-inf, nan);
        for (values, expected) in [
            (vec![1.0, 2.0], (None, None)),
            (
                vec![-inf, -inf, nan, 1.0],
                (Some(2), Some((0, f64::NEG_INFINITY))),
            ),
            (
                vec![nan, 1.0, inf, -inf],
                (Some(0), Some((2, f64::INFINITY))),
            ),
            (long, (Some(4999), Some((3000, f64::NEG_INFINITY)))),
            (Vec::new(), (None, None)),
        ] {
            let bytes: Vec<u8> = values.iter().flat_map(|v: &f32| v.to_le_bytes()).collect();
            assert_eq!(places(DType::F32, &[values.len()], &bytes), expected);
            let bytes: Vec<u8> = (values.iter())
                .flat_map(|&v| f64::from(v).to_le_bytes())
                .collect();
            assert_eq!(places(DType::F64, &[values.len()], &bytes), expected);
        }
        // Two parts make one element.
        let parts: Vec<u8> = [1.0, 2.0, 3.0, inf]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        assert_eq!(
            places(DType::C64, &[2], &parts),
            (None, Some((1, f64::INFINITY)))
        );
        let halves = [0x3c00_u16, 0xfc00, 0x7e00].map(u16::to_le_bytes).concat();
        assert_eq!(
            places(DType::F16, &[3], &halves),
            (Some(2), Some((1, f64::NEG_INFINITY)))
        );
        assert_eq!(places(DType::I32, &[1], &[255; 4]), (None, None));
    }

    fn from_bytes(dtype: DType, bytes: &[u8]) -> NonFinite {
        let width = dtype.bytes().unwrap();
        let shape = Shape::new([bytes.len() / width]).unwrap();
        non_finite(TensorView::new(dtype, &shape, bytes))
    }

    #[test]
    fn every_float16_pattern_is_classed_as_the_library_classes_it() {
        for bits in 0..=u16::MAX {
            let value = half::f16::from_bits(bits);
            let found = from_bytes(DType::F16, &bits.to_le_bytes());
            assert_eq!(found.n_nan, u64::from(value.is_nan()), "{bits:#x}");
            assert_eq!(
                found.n_pos_inf,
                u64::from(value == half::f16::INFINITY),
                "{bits:#x}"
            );
            assert_eq!(
                found.n_neg_inf,
                u64::from(value == half::f16::NEG_INFINITY),
                "{bits:#x}"
            );
        }
    }

    #[test]
    fn wider_types_and_positions() {
        for n in [0, 1, 1023, 1024, 1025, 3000] {
            let mut values = vec![1.5_f32; n];
            if let Some(last) = values.last_mut() {
                *last = f32::NAN;
            }
            if n > 1 {
                values[0] = f32::NEG_INFINITY;
            }
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let found = from_bytes(DType::F32, &bytes);
            assert_eq!(
                (found.n_nan, found.n_neg_inf),
                (u64::from(n > 0), u64::from(n > 1)),
                "{n}"
            );
        }
        let found = from_bytes(
            DType::F64,
            &[f64::INFINITY.to_le_bytes(), f64::MAX.to_le_bytes()].concat(),
        );
        assert_eq!((found.n_pos_inf, found.n_nan), (1, 0));
        let found = from_bytes(DType::BF16, &[0xc0, 0x7f, 0x80, 0xff]);
        assert_eq!((found.n_nan, found.n_neg_inf), (1, 1));
        assert!(!from_bytes(DType::I32, &[0xff; 8]).any());
        let found = from_bytes(DType::F8E5M2, &[0x7c, 0xfc, 0x7d, 0xff, 0x7b]);
        assert_eq!((found.n_pos_inf, found.n_neg_inf, found.n_nan), (1, 1, 2));
        assert_eq!(from_bytes(DType::F8E4M3FN, &[0x7f, 0x7e, 0xff]).n_nan, 2);
    }

    #[test]
    fn the_first_one_is_found_wherever_it_is() {
        for at in [0, 1, 15, 2047, 2048, 4999] {
            let mut bytes = vec![0; 5000 * 2];
            // An infinity, and a NaN after it.
            bytes[at * 2..at * 2 + 2].copy_from_slice(&[0, 0x7c]);
            bytes[9998..].copy_from_slice(&[1, 0xfc]);
            let shape = Shape::new([5000]).unwrap();
            let mut view = TensorView::new(DType::F16, &shape, &bytes);
            assert_eq!(first_non_finite(view), Some(at.min(4999)));
            view.dtype = DType::C32;
            assert_eq!(first_non_finite(view), Some(at / 2));
            view.dtype = DType::I16;
            assert_eq!(first_non_finite(view), None);
        }
        let shape = Shape::new([3]).unwrap();
        let view = |bytes| TensorView::new(DType::F8E4M3FN, &shape, bytes);
        assert_eq!(first_non_finite(view(&[0x7e, 0x7f, 0])), Some(1));
        assert_eq!(first_non_finite(view(&[0x7e, 0, 0])), None);
    }

    /// The decoder's values are the reference.
    #[test]
    fn every_8_bit_pattern_is_classed_as_it_is_decoded() {
        use crate::convert::dtype::decode;

        let one = Shape::new([1]).unwrap();
        for dtype in [
            DType::F8E5M2,
            DType::F8E4M3FN,
            DType::F8E8M0,
            DType::HiF8,
            DType::F8E4M3FNUZ,
            DType::F8E5M2FNUZ,
        ] {
            for byte in 0..=u8::MAX {
                let code = [byte];
                let decoded = decode(dtype, &one, &code).unwrap();
                let expected = from_bytes(decoded.dtype, &decoded.bytes);
                assert_eq!(from_bytes(dtype, &code), expected, "{dtype} {byte:#x}");
            }
        }
    }
}
