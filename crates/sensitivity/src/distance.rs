//! The distance of a model's outputs from its outputs without rounding.

use opscope_tensor::difference::{DifferenceOptions, difference};
use opscope_tensor::{DType, RoundingFormat, Tensor, TensorView, text};

/// The distance of all outputs, over all samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputDistance {
    /// The distance of each output, in the model's order; empty if a run failed.
    pub outputs: Vec<OneOutputDistance>,
    /// Why an operator failed on rounded values, such as a rounded index.
    pub failure: Option<String>,
}

/// The distance of one output, over all samples.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOutputDistance {
    /// The output's name.
    pub name: String,
    /// Whether its elements are floats.
    pub is_float: bool,
    /// Norm of the difference over the norm of the golden output; 0 if both are 0, infinite if only
    /// the latter is. For an output that is not floating-point, the share of changed elements.
    /// Infinite if the shape changed, or if an element is NaN or infinite on one side only.
    pub rel_l2: f64,
    /// Largest absolute difference; infinite if the elements make `rel_l2` infinite.
    pub max_abs: f64,
    /// Cosine of the angle between both outputs. None if exactly one is all zero, if `rel_l2` is
    /// infinite, or if the output is not floating-point.
    pub cosine: Option<f64>,
    /// Number of elements.
    pub n_elements: u64,
    /// Number of changed elements. NaN equals NaN, and zeros of both signs are equal.
    pub n_changed: u64,
    /// Number of elements that are NaN or infinite on one side only.
    pub n_non_finite: u64,
}

impl OutputDistance {
    /// The largest `rel_l2` of an output; 0 without outputs, infinite if a run failed.
    pub fn rel_l2(&self) -> f64 {
        if self.failure.is_some() {
            return f64::INFINITY;
        }
        let all = self.outputs.iter().map(|output| output.rel_l2);
        all.fold(0.0, f64::max)
    }

    /// The largest absolute difference of a floating-point output; infinite if a run failed.
    pub fn max_abs(&self) -> f64 {
        if self.failure.is_some() {
            return f64::INFINITY;
        }
        let floats = self.outputs.iter().filter(|output| output.is_float);
        floats.map(|output| output.max_abs).fold(0.0, f64::max)
    }

    /// The smallest cosine of a floating-point output; none if one of them has none.
    pub fn cosine(&self) -> Option<f64> {
        let floats = self.outputs.iter().filter(|output| output.is_float);
        let cosines = floats.map(|output| output.cosine);
        cosines.reduce(|a, b| Some(a?.min(b?))).flatten()
    }

    /// Whether no element changed.
    pub fn is_zero(&self) -> bool {
        self.rel_l2() == 0.0
    }
}

impl OneOutputDistance {
    /// The distance of one output from another, of one sample.
    pub fn between(name: &str, target: &Tensor, golden: &Tensor) -> OneOutputDistance {
        let mut sum = DistanceSum::default();
        sum.add(target, golden);
        sum.finish(name)
    }
}

/// Sums over the samples, for one output.
#[derive(Clone, Debug, Default)]
pub(crate) struct DistanceSum {
    is_float: bool,
    /// Norms of the difference, of the golden side and of the other.
    difference: f64,
    golden: f64,
    target: f64,
    /// Sum of products of both sides.
    product: f64,
    max_abs: f64,
    n_elements: u64,
    n_changed: u64,
    n_non_finite: u64,
    has_other_shape: bool,
}

impl DistanceSum {
    /// Adds the output of a sample.
    pub(crate) fn add(&mut self, target: &Tensor, golden: &Tensor) {
        self.is_float = RoundingFormat::applies_to(golden.dtype());
        // Samples may have different shapes, and even an empty one has a dtype.
        self.n_elements += golden.shape().n_elements() as u64;
        let views = (target.host_view(), golden.host_view());
        let (Ok(target), Ok(golden)) = views else {
            // No engine returns results outside the host's memory.
            self.has_other_shape = true;
            return;
        };
        if target.shape != golden.shape || target.dtype != golden.dtype {
            self.has_other_shape = true;
        } else if golden.dtype == DType::String {
            self.n_changed += n_other_texts(target, golden);
        } else {
            self.add_numbers(target, golden);
        }
    }

    fn add_numbers(&mut self, target: TensorView<'_>, golden: TensorView<'_>) {
        let options = DifferenceOptions::default();
        let Ok(found) = difference(target, golden, options) else {
            // Elements without a numeric value have no distance; their bytes are compared instead.
            self.n_changed += u64::from(target.bytes != golden.bytes);
            return;
        };
        self.n_changed += found.n - found.n_equal;
        self.n_non_finite += found.n_nan_mismatches + found.n_inf_mismatches;
        self.max_abs = self.max_abs.max(found.max_abs);
        // Norms of all samples together: `hypot` neither overflows nor loses small values.
        let norm = found.rmse * (found.n_finite as f64).sqrt();
        let (a, b) = (found.target.l2_norm, found.golden.l2_norm);
        self.difference = self.difference.hypot(norm);
        self.target = self.target.hypot(a);
        self.golden = self.golden.hypot(b);
        self.product += found.cosine.map_or(0.0, |cosine| cosine * a * b);
    }

    pub(crate) fn finish(self, name: &str) -> OneOutputDistance {
        let is_broken = self.n_non_finite > 0 || self.has_other_shape;
        let rel_l2 = if is_broken {
            f64::INFINITY
        } else if !self.is_float {
            // Neighbouring codes or indices do not mean similar things.
            share(self.n_changed, self.n_elements)
        } else if self.difference == 0.0 {
            0.0
        } else {
            self.difference / self.golden
        };
        OneOutputDistance {
            name: name.to_owned(),
            is_float: self.is_float,
            rel_l2,
            max_abs: if self.n_non_finite > 0 {
                f64::INFINITY
            } else {
                self.max_abs
            },
            cosine: if is_broken || !self.is_float {
                None
            } else {
                self.cosine()
            },
            n_elements: self.n_elements,
            n_changed: self.n_changed,
            n_non_finite: self.n_non_finite,
        }
    }

    fn cosine(&self) -> Option<f64> {
        match (self.target == 0.0, self.golden == 0.0) {
            (true, true) => Some(1.0),
            (false, false) => {
                // Rounding may push it beyond 1.
                let cosine = self.product / self.target / self.golden;
                Some(cosine.clamp(-1.0, 1.0))
            }
            _ => None,
        }
    }
}

fn share(n: u64, n_all: u64) -> f64 {
    if n_all == 0 {
        0.0
    } else {
        n as f64 / n_all as f64
    }
}

fn n_other_texts(target: TensorView<'_>, golden: TensorView<'_>) -> u64 {
    let texts = (text::iter(target), text::iter(golden));
    match texts {
        (Ok(a), Ok(b)) => a.zip(b).filter(|(a, b)| a != b).count() as u64,
        // Unreadable results count as a change.
        _ => u64::from(target.bytes != golden.bytes),
    }
}
