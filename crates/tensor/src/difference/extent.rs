//! Where two tensors differ: the number of differing elements, and the smallest range along each
//! axis with all of them.

use super::DifferenceError;
use super::source::{BLOCK, BlockSource, distances};
use crate::TensorView;
use crate::cpu::{self, LaneMachine, LaneTask};

/// The elements that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceExtent {
    /// Number of them.
    pub n: u64,
    /// For each axis, the first index with such an element, and the index after the last one.
    pub ranges: Vec<[u64; 2]>,
}

/// Finds the elements of two tensors that differ by more than `tolerance`, in one pass over both.
///
/// Numbers differ if the absolute value of their difference exceeds the tolerance. A NaN differs
/// from everything but another NaN, and an infinity from everything but itself. A complex number
/// differs if one of its parts does. `None` if no element differs, as for an empty tensor, and if
/// elements have no positions along axes: different shapes, or opaque dtypes.
///
/// # Errors
/// As [`difference`](super::difference).
pub fn extent(
    target: TensorView<'_>,
    golden: TensorView<'_>,
    tolerance: f64,
) -> Result<Option<DifferenceExtent>, DifferenceError> {
    let sources = [BlockSource::new(target)?, BlockSource::new(golden)?];
    let n_elements = target.shape.n_elements();
    let has_places = target.shape == golden.shape
        && n_elements > 0
        && sources[0].n() == sources[1].n()
        && sources[0].n().is_multiple_of(n_elements);
    if !has_places {
        return Ok(None);
    }
    let mut found = ExtentCount::new(target.shape.dims());
    cpu::run(ApartTask {
        sources,
        n_parts: sources[0].n() / n_elements,
        tolerance,
        visit: &mut |position| found.add(position),
    });
    Ok(Some(found.extent).filter(|found| found.n > 0))
}

/// Calls `visit` with the position, in row-major order, of each element that [`extent`] would
/// count, from the first to the last. Shapes may differ if the numbers of elements do not.
///
/// # Errors
/// As [`difference`](super::difference).
pub fn visit_apart(
    target: TensorView<'_>,
    golden: TensorView<'_>,
    tolerance: f64,
    visit: &mut dyn FnMut(usize),
) -> Result<(), DifferenceError> {
    let sources = [BlockSource::new(target)?, BlockSource::new(golden)?];
    let [a, b] = sources.map(|source| source.n());
    if a != b {
        return Err(DifferenceError::Size {
            target: a,
            golden: b,
        });
    }
    cpu::run(ApartTask {
        sources,
        n_parts: (a / target.shape.n_elements().max(1)).max(1),
        tolerance,
        visit,
    });
    Ok(())
}

/// The pass; both sides have the same number of elements.
struct ApartTask<'a> {
    sources: [BlockSource<'a>; 2],
    /// Parts of an element: two of complex numbers.
    n_parts: usize,
    tolerance: f64,
    visit: &'a mut dyn FnMut(usize),
}

impl LaneTask for ApartTask<'_> {
    type Output = ();

    #[inline(always)]
    fn run<M: LaneMachine>(self, m: M) {
        let [target, golden] = self.sources;
        let n = target.n();
        let mut buffers = [(); 3].map(|()| vec![0.0; n.min(BLOCK)]);
        let mut last = None;
        for start in (0..n).step_by(BLOCK) {
            let n_block = (n - start).min(BLOCK);
            let is_same_dtype = target.dtype() == golden.dtype();
            // Equal bytes mean equal elements, also for NaN.
            if is_same_dtype && target.block(start, n_block) == golden.block(start, n_block) {
                continue;
            }
            let [a, b, apart] = &mut buffers;
            let (a, b) = (&mut a[..n_block], &mut b[..n_block]);
            let apart = &mut apart[..n_block];
            for (source, out) in self.sources.iter().zip([&mut *a, &mut *b]) {
                source.fill(m, start, out);
            }
            distances([&target, &golden], start, a, b, apart);
            for (i, ((&a, &b), &apart)) in a.iter().zip(&*b).zip(&*apart).enumerate() {
                let element = (start + i) / self.n_parts;
                // The parts of a complex number are adjacent, and are one element.
                if is_apart(a, b, apart, self.tolerance) && last != Some(element) {
                    last = Some(element);
                    (self.visit)(element);
                }
            }
        }
    }
}

/// Whether two numbers with this distance differ.
#[inline(always)]
fn is_apart(a: f64, b: f64, distance: f64, tolerance: f64) -> bool {
    if a.is_finite() && b.is_finite() {
        distance > tolerance
    } else {
        // `==` holds for infinities of the same sign, and for no NaN.
        a != b && !(a.is_nan() && b.is_nan())
    }
}

/// Differing elements, as they are found.
struct ExtentCount<'a> {
    dims: &'a [usize],
    extent: DifferenceExtent,
    /// Whether the ranges hold all elements already.
    is_whole: bool,
}

impl ExtentCount<'_> {
    fn new(dims: &[usize]) -> ExtentCount<'_> {
        ExtentCount {
            dims,
            extent: DifferenceExtent {
                n: 0,
                // Empty, until the first element is in them.
                ranges: vec![[u64::MAX, 0]; dims.len()],
            },
            is_whole: false,
        }
    }

    /// Adds the element at a position in row-major order.
    fn add(&mut self, position: usize) {
        self.extent.n += 1;
        // Most tensors that differ do so everywhere, and divisions cost more than all else.
        if self.is_whole {
            return;
        }
        let mut rest = position;
        self.is_whole = true;
        for (&dim, range) in self.dims.iter().zip(&mut self.extent.ranges).rev() {
            let index = (rest % dim) as u64;
            rest /= dim;
            *range = [range[0].min(index), range[1].max(index + 1)];
            self.is_whole &= *range == [0, dim as u64];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Shape};

    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;

    fn extent_of(dims: &[usize], target: &[f32], golden: &[f32]) -> Option<DifferenceExtent> {
        let shape = Shape::new(dims).unwrap();
        let bytes = [target, golden].map(|values| {
            let values = values.iter().flat_map(|value| value.to_le_bytes());
            values.collect::<Vec<u8>>()
        });
        let [target, golden] = [0, 1].map(|i| TensorView::new(DType::F32, &shape, &bytes[i]));
        extent(target, golden, 0.5).unwrap()
    }

    fn check(dims: &[usize], target: &[f32], golden: &[f32], expected: Option<(u64, &[[u64; 2]])>) {
        let expected = expected.map(|(n, ranges)| DifferenceExtent {
            n,
            ranges: ranges.to_vec(),
        });
        assert_eq!(
            extent_of(dims, target, golden),
            expected,
            "{target:?} {golden:?}"
        );
    }

    #[test]
    fn shapes_of_all_kinds() {
        check(&[], &[1.0], &[3.0], Some((1, &[])));
        check(&[], &[1.0], &[1.5], None);
        check(&[0], &[], &[], None);
        check(&[2, 0, 3], &[], &[], None);
        check(
            &[4],
            &[0.0; 4],
            &[0.0, 1.0, 0.5, -1.0],
            Some((2, &[[1, 4]])),
        );
        check(
            &[2, 3],
            &[1.0; 6],
            &[1.0, 1.0, 1.0, 1.0, 1.0, 4.0],
            Some((1, &[[1, 2], [2, 3]])),
        );
        check(&[2, 2], &[9.0; 4], &[1.0; 4], Some((4, &[[0, 2], [0, 2]])));
        check(
            &[1, 3],
            &[9.0, 1.0, 9.0],
            &[1.0; 3],
            Some((2, &[[0, 1], [0, 3]])),
        );
    }

    #[test]
    fn what_is_not_finite_differs_unless_it_is_the_same() {
        check(&[4], &[NAN, INF, -INF, INF], &[NAN, INF, -INF, INF], None);
        check(
            &[3],
            &[NAN, 1.0, 1.0],
            &[1.0, 1.0, NAN],
            Some((2, &[[0, 3]])),
        );
        check(
            &[3],
            &[1.0, INF, 1.0],
            &[1.0, -INF, 1.0],
            Some((1, &[[1, 2]])),
        );
        check(&[2], &[1.0, INF], &[1.0, NAN], Some((1, &[[1, 2]])));
    }

    #[test]
    fn other_extents_have_no_places_in_common() {
        let shapes = [[2, 3], [3, 2]].map(|dims| Shape::new(dims).unwrap());
        let [target, golden] = [0_u8, 1].map(|i| {
            TensorView::new(
                DType::U8,
                &shapes[usize::from(i)],
                if i == 0 { &[0; 6] } else { &[1; 6] },
            )
        });
        assert_eq!(extent(target, golden, 0.0), Ok(None));
    }

    /// One channel of a tensor of many blocks.
    #[test]
    fn a_channel_far_inside() {
        let dims = [3, 40, 7, 31];
        let n_channel = 7 * 31;
        let golden = vec![1.0_f32; 3 * 40 * n_channel];
        let mut target = golden.clone();
        let start = (40 + 37) * n_channel;
        target[start..start + n_channel].fill(2.0);
        let expected: &[[u64; 2]] = &[[1, 2], [37, 38], [0, 7], [0, 31]];
        check(&dims, &target, &golden, Some((n_channel as u64, expected)));
    }

    #[test]
    fn integers_of_64_bits_and_complex_numbers() {
        let shape = Shape::new([3]).unwrap();
        let of = |dtype, bytes: [&[u8]; 2], tolerance| {
            let [target, golden] = bytes.map(|bytes| TensorView::new(dtype, &shape, bytes));
            extent(target, golden, tolerance).unwrap()
        };
        // As doubles both are the same.
        let longs = [[1_i64, 2, i64::MAX], [1, 2, i64::MAX - 1]]
            .map(|all| all.map(i64::to_le_bytes).concat());
        let found = of(DType::I64, [&longs[0], &longs[1]], 0.0).unwrap();
        assert_eq!((found.n, found.ranges), (1, vec![[2, 3]]));
        let parts = [
            [0.0_f32, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 1.0, 1.0, 0.0, 0.0],
        ]
        .map(|all| all.map(f32::to_le_bytes).concat());
        let found = of(DType::C64, [&parts[0], &parts[1]], 0.5).unwrap();
        assert_eq!((found.n, found.ranges), (1, vec![[1, 2]]));
    }
}
