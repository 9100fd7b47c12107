//! Both tensors, and when their elements count as equal.

use std::ops::Range;

use opscope_tensor::{DType, Numbers};

/// Number of elements on which a candidate is tested first.
const N_SAMPLES: usize = 64;
/// Roundings of computed elements: of golden's, of the target's, and of the parameters.
const N_ROUNDINGS: f64 = 4.0;
/// Differences of up to this number of roundings are noise.
const N_NOISE_ROUNDINGS: f64 = 16.0;
/// The part of the difference that an operation may leave unexplained if both sides were computed
/// with different errors.
const UNEXPLAINED_MAX: f64 = 0.003;
/// The same if the dtype limits what can be explained, as a ratio of root mean squares.
const CONTRAST: f64 = 0.1;
/// Fewer elements fit operations within a tolerance by chance.
const N_WITHIN_MIN: usize = 16;
/// Distinct elements beyond this are not counted.
const N_DISTINCT_MAX: usize = 4;

/// One side's elements in row-major order, read as `f64`.
#[derive(Clone, Debug)]
pub struct ComparedElements<'a> {
    numbers: ElementNumbers<'a>,
    shape: Vec<usize>,
    dtype: DType,
}

#[derive(Clone, Debug)]
enum ElementNumbers<'a> {
    Stored(Numbers<'a>),
    Copied(Vec<f64>),
}

impl<'a> ComparedElements<'a> {
    /// Decoded elements; `dtype` is the one before decoding. `None` if their number does not match
    /// the shape.
    pub fn stored(
        numbers: Numbers<'a>,
        shape: &[usize],
        dtype: DType,
    ) -> Option<ComparedElements<'a>> {
        let numbers = ElementNumbers::Stored(numbers);
        ComparedElements::checked(numbers, shape, dtype)
    }

    /// Elements that were assembled for a comparison. `None` if their number does not match the
    /// shape.
    pub(super) fn copied(
        elements: Vec<f64>,
        shape: &[usize],
        dtype: DType,
    ) -> Option<ComparedElements<'a>> {
        let numbers = ElementNumbers::Copied(elements);
        ComparedElements::checked(numbers, shape, dtype)
    }

    fn checked(
        numbers: ElementNumbers<'a>,
        shape: &[usize],
        dtype: DType,
    ) -> Option<ComparedElements<'a>> {
        let mut dims = shape.iter();
        let n = dims.try_fold(1_usize, |n, &dim| n.checked_mul(dim))?;
        let elements = ComparedElements {
            numbers,
            shape: shape.to_vec(),
            dtype,
        };
        (elements.len() == n).then_some(elements)
    }

    /// Whether the tensor has enough distinct elements to be recognizable.
    pub fn is_distinctive(&self) -> bool {
        let mut distinct: Vec<u64> = Vec::new();
        for i in 0..self.len() {
            let element = self.at(i).to_bits();
            if !distinct.contains(&element) {
                distinct.push(element);
            }
            if distinct.len() == N_DISTINCT_MAX {
                return true;
            }
        }
        false
    }

    /// Whether another tensor has the same elements in memory order.
    pub fn has_elements_of(&self, other: &ComparedElements<'_>) -> bool {
        self.len() == other.len() && (0..self.len()).all(|i| self.at(i) == other.at(i))
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    pub(super) fn len(&self) -> usize {
        match &self.numbers {
            ElementNumbers::Stored(numbers) => numbers.len(),
            ElementNumbers::Copied(elements) => elements.len(),
        }
    }

    /// An element; NaN after the last one.
    #[inline]
    pub(super) fn at(&self, index: usize) -> f64 {
        let element = match &self.numbers {
            ElementNumbers::Stored(numbers) => numbers.get(index),
            ElementNumbers::Copied(elements) => elements.get(index).copied(),
        };
        element.unwrap_or(f64::NAN)
    }
}

/// The distance up to which elements are equal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ElementTolerance {
    /// Times the larger magnitude.
    pub(super) relative: f64,
    pub(super) absolute: f64,
}

impl ElementTolerance {
    /// Whether two elements are equal. `magnitude` is the largest number in the computation of the
    /// second.
    #[inline]
    pub(super) fn allows(self, a: f64, b: f64, magnitude: f64) -> bool {
        a == b
            || (a - b).abs() <= self.relative * magnitude.max(a.abs()) + self.absolute
            || (a.is_nan() && b.is_nan())
    }
}

/// Sums over the elements that are finite on both sides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PairSums {
    pub(super) n: f64,
    pub(super) t: f64,
    pub(super) g: f64,
    pub(super) tg: f64,
    pub(super) gg: f64,
    /// Squares of the differences.
    pub(super) dd: f64,
    pub(super) tt: f64,
    /// The smallest and the largest element.
    pub(super) t_ends: [f64; 2],
    pub(super) g_ends: [f64; 2],
}

impl PairSums {
    fn add(&mut self, t: f64, g: f64) {
        self.n += 1.0;
        self.t += t;
        self.g += g;
        self.tg += t * g;
        self.gg += g * g;
        self.tt += t * t;
        self.dd += (t - g) * (t - g);
        for (ends, x) in [(&mut self.t_ends, t), (&mut self.g_ends, g)] {
            *ends = [ends[0].min(x), ends[1].max(x)];
        }
    }
}

/// Two tensors of one shape that differ.
#[derive(Clone, Debug)]
pub(super) struct ElementPair<'a> {
    pub(super) target: &'a ComparedElements<'a>,
    pub(super) golden: &'a ComparedElements<'a>,
    /// When an element equals another one at a different position.
    pub(super) same: ElementTolerance,
    /// When an element equals one computed from another.
    pub(super) computed: ElementTolerance,
    /// Elements that differ.
    pub(super) n_differing: usize,
    /// The first of them.
    pub(super) first_differing: usize,
    pub(super) sums: PairSums,
    /// Distinct elements of golden's, up to [`N_DISTINCT_MAX`].
    pub(super) n_distinct: usize,
    samples: Vec<usize>,
}

impl<'a> ElementPair<'a> {
    /// `None` without elements, and if no difference is beyond rounding.
    pub(super) fn new(
        target: &'a ComparedElements<'a>,
        golden: &'a ComparedElements<'a>,
    ) -> Option<ElementPair<'a>> {
        let (unit, smallest) = precision(target.dtype, golden.dtype);
        let absolute = if unit > 0.0 { smallest } else { 0.0 };
        let computed = ElementTolerance {
            relative: N_ROUNDINGS * unit,
            absolute,
        };
        // Tensors of one dtype were not rounded again.
        let same = if target.dtype == golden.dtype {
            ElementTolerance::default()
        } else {
            computed
        };
        let mut pair = ElementPair {
            target,
            golden,
            same,
            computed,
            n_differing: 0,
            first_differing: 0,
            sums: PairSums::default(),
            n_distinct: 0,
            samples: Vec::new(),
        };
        let is_noise = pair.survey(N_NOISE_ROUNDINGS * unit);
        (!is_noise).then_some(pair)
    }

    /// Fills sums, counts and samples in one pass. Returns whether every difference is within a
    /// relative distance.
    fn survey(&mut self, noise: f64) -> bool {
        let n = self.len();
        let nothing = [f64::INFINITY, f64::NEG_INFINITY];
        let mut sums = PairSums {
            t_ends: nothing,
            g_ends: nothing,
            ..PairSums::default()
        };
        let mut differing = SpacedSamples::default();
        let mut is_noise = true;
        let mut distinct: Vec<u64> = Vec::new();
        for i in 0..n {
            let (t, g) = (self.target.at(i), self.golden.at(i));
            if !self.same.allows(t, g, g.abs()) {
                is_noise &= (t - g).abs() <= noise * t.abs().max(g.abs());
                if self.n_differing == 0 {
                    self.first_differing = i;
                }
                self.n_differing += 1;
                differing.offer(i);
            }
            if distinct.len() < N_DISTINCT_MAX && !distinct.contains(&g.to_bits()) {
                distinct.push(g.to_bits());
            }
            if t.is_finite() && g.is_finite() {
                sums.add(t, g);
            }
        }
        self.sums = sums;
        self.n_distinct = distinct.len();
        self.samples = differing.positions;
        // The operation must also explain the elements that agree. An odd step visits all columns.
        let step = (n / N_SAMPLES).max(1) | 1;
        self.samples
            .extend((0..n).step_by(step).take(N_SAMPLES + 1));
        is_noise
    }

    /// The sides exchanged.
    pub(super) fn swapped(&self) -> ElementPair<'a> {
        let sums = self.sums;
        ElementPair {
            target: self.golden,
            golden: self.target,
            sums: PairSums {
                t: sums.g,
                g: sums.t,
                gg: sums.tt,
                tt: sums.gg,
                t_ends: sums.g_ends,
                g_ends: sums.t_ends,
                ..sums
            },
            ..self.clone()
        }
    }

    /// The same with a tolerance that leaves no doubt: the operation must explain nearly all of the
    /// difference. `None` if the difference is mere rounding, or there are few elements.
    pub(super) fn within(&self, tolerance: f64) -> Option<ElementPair<'a>> {
        let distance = (self.sums.dd / self.sums.n).sqrt();
        let absolute = tolerance.min(UNEXPLAINED_MAX * distance);
        let is_usable = absolute > self.computed.absolute && self.len() >= N_WITHIN_MIN;
        is_usable.then(|| ElementPair {
            same: ElementTolerance {
                absolute,
                ..self.same
            },
            computed: ElementTolerance {
                absolute,
                ..self.computed
            },
            ..self.clone()
        })
    }

    pub(super) fn len(&self) -> usize {
        self.golden.len()
    }

    pub(super) fn dims(&self) -> &[usize] {
        self.golden.shape()
    }

    pub(super) fn samples(&self) -> &[usize] {
        &self.samples
    }

    /// Whether a target's element is the same as golden's at another place.
    #[inline]
    pub(super) fn is_same(&self, target: usize, golden: usize) -> bool {
        let g = self.golden.at(golden);
        self.same.allows(self.target.at(target), g, g.abs())
    }

    /// Whether each sample equals golden's element at `source` of its position.
    pub(super) fn samples_hold(&self, source: impl Fn(usize) -> usize) -> bool {
        let mut samples = self.samples.iter();
        samples.all(|&i| self.is_same(i, source(i)))
    }

    /// Whether each of the target's elements and golden's are as `are_alike` says; samples first.
    pub(super) fn is_each(&self, are_alike: impl Fn(f64, f64) -> bool) -> bool {
        let mut elements = self.samples.iter().copied().chain(0..self.len());
        elements.all(|i| are_alike(self.target.at(i), self.golden.at(i)))
    }

    /// Whether each element in the range equals golden's element at `source` of its position.
    pub(super) fn holds_in(&self, range: Range<usize>, source: impl Fn(usize) -> usize) -> bool {
        let samples = self.samples.iter().copied().filter(|i| range.contains(i));
        let mut elements = samples.chain(range.clone());
        elements.all(|i| self.is_same(i, source(i)))
    }

    /// Whether each element equals what `expected` computes from golden's: the number, and the
    /// largest magnitude in its computation. The difference must shrink to a tenth, which excludes
    /// parameters that fit noise.
    pub(super) fn is_computed_by(&self, expected: impl Fn(usize, f64) -> (f64, f64)) -> bool {
        let holds = |i: usize| {
            let (t, g) = (self.target.at(i), self.golden.at(i));
            let (e, magnitude) = expected(i, g);
            let is_within = self.computed.allows(t, e, magnitude);
            is_within.then_some(if t.is_finite() {
                (t - e) * (t - e)
            } else {
                0.0
            })
        };
        if !self.samples.iter().all(|&i| holds(i).is_some()) {
            return false;
        }
        let mut rest = 0.0;
        for i in 0..self.len() {
            match holds(i) {
                Some(square) => rest += square,
                None => return false,
            }
        }
        rest <= CONTRAST * CONTRAST * self.sums.dd
    }
}

/// Positions of a sequence of unknown length, about evenly spaced.
#[derive(Default)]
struct SpacedSamples {
    positions: Vec<usize>,
    n_offered: usize,
    stride: usize,
}

impl SpacedSamples {
    fn offer(&mut self, position: usize) {
        let stride = self.stride.max(1);
        if self.n_offered.is_multiple_of(stride) {
            self.positions.push(position);
            if self.positions.len() > N_SAMPLES {
                let mut nth = 0;
                self.positions.retain(|_| {
                    nth += 1;
                    nth % 2 == 1
                });
                self.stride = stride * 2;
            }
        }
        self.n_offered += 1;
    }
}

/// Half the distance of 1 to the next number of the coarser dtype, and its smallest positive
/// number; zeros of integers.
pub(super) fn precision(a: DType, b: DType) -> (f64, f64) {
    let n_digits = [a, b].map(|dtype| dtype.parts().0.n_digits());
    let Some(n_digits) = n_digits.into_iter().flatten().min() else {
        return (0.0, 0.0);
    };
    let smallest = if [a, b].contains(&DType::F16) {
        0.5_f64.powi(24)
    } else {
        f64::from(f32::MIN_POSITIVE)
    };
    let n_digits = i32::try_from(n_digits).unwrap_or(i32::MAX - 1);
    (0.5_f64.powi(n_digits + 1), smallest)
}
