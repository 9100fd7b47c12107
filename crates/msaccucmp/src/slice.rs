//! Cuts a converted tensor to the wanted shape, by the reference's rules.
//!
//! The wanted shape is used literally, regardless of the target layout's axis order.

/// How to cut a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SliceCut {
    /// Leave the tensor unchanged.
    Keep,
    /// Reshape the tensor, then take the leading part of each axis.
    To {
        /// The shape with ones appended, to at least four axes.
        dims: Vec<usize>,
        /// The size to keep along each axis.
        ends: Vec<usize>,
    },
    /// The tensor cannot be cut to the wanted shape.
    Impossible,
}

/// Minimum number of axes in the reference.
const AXES_MIN: usize = 4;

/// How to cut a tensor of shape `dims` to `wanted`.
pub(super) fn plan(dims: &[usize], wanted: &[usize]) -> SliceCut {
    if dims.len() < wanted.len() {
        // Only axes of size 1 may be missing.
        let is_same = without_ones(dims) == without_ones(wanted);
        return if is_same {
            SliceCut::Keep
        } else {
            SliceCut::Impossible
        };
    }
    let dims = padded(dims, AXES_MIN);
    let wanted = padded(wanted, dims.len());
    // With at most one longer axis, the elements have the same order in every shape.
    let is_line = dims.iter().filter(|&&dim| dim != 1).count() <= 1;
    if is_line && crate::array::count(&dims) == crate::array::count(&wanted) {
        return SliceCut::Keep;
    }
    // The first axis that differs decides.
    match dims.iter().zip(&wanted).find(|(dim, wanted)| dim != wanted) {
        None => SliceCut::Keep,
        Some((dim, wanted)) if dim < wanted => SliceCut::Impossible,
        // The reference only supports slices of four and five axes.
        Some(_) if dims.len() > 5 => SliceCut::Keep,
        Some(_) => {
            let ends = dims
                .iter()
                .zip(&wanted)
                .map(|(dim, wanted)| *dim.min(wanted))
                .collect();
            SliceCut::To { dims, ends }
        }
    }
}

/// The shape with ones added up to `n` axes.
fn padded(dims: &[usize], n: usize) -> Vec<usize> {
    let ones = std::iter::repeat_n(1, n.saturating_sub(dims.len()));
    dims.iter().copied().chain(ones).collect()
}

/// The shape without axes of size 1.
fn without_ones(dims: &[usize]) -> Vec<usize> {
    dims.iter().copied().filter(|&dim| dim != 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dims: &[usize], wanted: &[usize], expected: Option<&[usize]>) {
        let found = match plan(dims, wanted) {
            SliceCut::Keep => Some(vec![]),
            SliceCut::To { ends, .. } => Some(ends),
            SliceCut::Impossible => None,
        };
        assert_eq!(found.as_deref(), expected, "{dims:?} to {wanted:?}");
    }

    #[test]
    fn rules_of_the_reference() {
        check(&[2, 32, 3, 5], &[2, 20, 3, 5], Some(&[2, 20, 3, 5]));
        check(&[2, 32, 1, 1], &[2, 20], Some(&[2, 20, 1, 1]));
        check(&[2, 3, 5, 32], &[2, 20, 3, 5], None);
        // Axes after the first cut axis are ignored.
        check(&[2, 32, 3, 5], &[2, 20, 9, 1], Some(&[2, 20, 3, 1]));
        check(&[6, 16, 18], &[2, 3, 16, 18], None);
        check(&[6, 18], &[1, 6, 1, 18], Some(&[]));
        check(&[32], &[32], Some(&[]));
        check(&[32, 1], &[1, 32], Some(&[]));
        check(&[2, 3, 4, 5, 6, 7], &[1, 3, 4, 5, 6, 7], Some(&[]));
        check(&[20, 35], &[20, 35], Some(&[]));
        check(&[32, 48], &[20, 35], Some(&[20, 35, 1, 1]));
    }
}
