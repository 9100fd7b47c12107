//! Arguments of operators: `aclTensor`, `aclScalar` and so on.

use opscope_tensor::DType;

use super::elements::{Numbers, numbers};
use crate::handle::{Handle, HandleTable};

/// Maximum number of axes of a tensor.
pub(crate) const N_AXES_MAX: usize = 64;

/// A strided view of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AclTensor {
    /// A number of `aclDataType`.
    pub(crate) data_type: i32,
    /// A number of `aclFormat`.
    pub(crate) format: i32,
    /// The shape of the view; the elements fit into memory.
    pub(crate) dims: Vec<usize>,
    /// Strides, in elements.
    pub(crate) strides: Vec<i64>,
    /// Elements before the first element of the view.
    pub(crate) offset: i64,
    pub(crate) storage_dims: Vec<i64>,
    /// The address of the storage; 0 if not set yet.
    pub(crate) address: usize,
}

impl AclTensor {
    pub(crate) fn n_elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// The positions of the first and last element in memory, in elements; `None` if empty, or if a
    /// position is negative or overflows.
    pub(crate) fn range(&self) -> Option<(usize, usize)> {
        if self.dims.contains(&0) {
            return None;
        }
        // Every axis moves the last element up, or the first one down, by its whole length.
        let (mut first, mut last) = (self.offset, self.offset);
        for (&n, &stride) in self.dims.iter().zip(&self.strides) {
            let steps = i64::try_from(n - 1).ok()?.checked_mul(stride)?;
            if steps < 0 {
                first = first.checked_add(steps)?;
            } else {
                last = last.checked_add(steps)?;
            }
        }
        Some((usize::try_from(first).ok()?, usize::try_from(last).ok()?))
    }

    /// A smaller view at the same start, dense if this one is. `None` if the shape is the same, or
    /// larger.
    pub(crate) fn part(&self, dims: &[usize]) -> Option<AclTensor> {
        let is_smaller = dims != self.dims
            && dims.len() == self.dims.len()
            && dims.iter().zip(&self.dims).all(|(n, most)| n <= most);
        let strides = if self.strides == dense_strides(&self.dims) {
            dense_strides(dims)
        } else {
            self.strides.clone()
        };
        is_smaller.then(|| AclTensor {
            dims: dims.to_vec(),
            strides,
            ..self.clone()
        })
    }

    /// Whether no two elements share memory.
    pub(crate) fn is_injective(&self) -> bool {
        let axes = self.dims.iter().zip(&self.strides);
        // The stride of an axis of size 1 does not matter.
        let mut axes: Vec<(u64, u64)> = axes
            .filter(|(n, _)| **n > 1)
            .map(|(&n, &stride)| (stride.unsigned_abs(), n as u64))
            .collect();
        axes.sort_unstable();
        let mut reach: u64 = 0;
        for (stride, n) in axes {
            // An axis must step over everything that the narrower axes span.
            if stride <= reach {
                return false;
            }
            reach = reach.saturating_add(stride.saturating_mul(n - 1));
        }
        true
    }
}

/// Row-major strides without gaps.
pub(crate) fn dense_strides(dims: &[usize]) -> Vec<i64> {
    let mut strides = vec![1_i64; dims.len()];
    for axis in (1..dims.len()).rev() {
        // An axis of size 0 would make all strides above it 0, which is less useful.
        let n = i64::try_from(dims[axis].max(1)).unwrap_or(i64::MAX);
        strides[axis - 1] = strides[axis].saturating_mul(n);
    }
    strides
}

/// A number with its dtype.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScalarValue {
    pub(crate) dtype: DType,
    pub(crate) number: ScalarNumber,
}

/// A scalar's number, as exact as its dtype.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ScalarNumber {
    Int(i64),
    Float(f64),
}

impl ScalarValue {
    /// Reads the bytes of one element; `None` for non-numeric dtypes.
    pub(crate) fn read(dtype: DType, bytes: &[u8]) -> Option<ScalarValue> {
        let number = match numbers(dtype, bytes)? {
            Numbers::Ints(list) => ScalarNumber::Int(*list.first()?),
            Numbers::Singles(list) => ScalarNumber::Float(f64::from(*list.first()?)),
            Numbers::Doubles(list) => ScalarNumber::Float(*list.first()?),
        };
        Some(ScalarValue { dtype, number })
    }

    pub(crate) fn is_float(&self) -> bool {
        matches!(self.number, ScalarNumber::Float(_))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "what a double makes of it is asked for"
    )]
    pub(crate) fn as_f64(&self) -> f64 {
        match self.number {
            ScalarNumber::Int(n) => n as f64,
            ScalarNumber::Float(n) => n,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "numbers are cut off as C does it"
    )]
    pub(crate) fn as_i64(&self) -> i64 {
        match self.number {
            ScalarNumber::Int(n) => n,
            ScalarNumber::Float(n) => n as i64,
        }
    }

    pub(crate) fn is_true(&self) -> bool {
        match self.number {
            ScalarNumber::Int(n) => n != 0,
            ScalarNumber::Float(n) => n != 0.0,
        }
    }
}

/// The operators' arguments, by handle.
#[derive(Debug, Default)]
pub(crate) struct AclnnObjects {
    pub(crate) tensors: HandleTable<AclTensor>,
    pub(crate) scalars: HandleTable<ScalarValue>,
    pub(crate) int_arrays: HandleTable<Vec<i64>>,
    pub(crate) float_arrays: HandleTable<Vec<f32>>,
    pub(crate) bool_arrays: HandleTable<Vec<bool>>,
    /// Half-precision lists, as bits.
    pub(crate) half_arrays: HandleTable<Vec<u16>>,
    pub(crate) tensor_lists: HandleTable<Vec<Handle>>,
    pub(crate) scalar_lists: HandleTable<Vec<Handle>>,
}
