//! Only a part of the tensor differs.

use super::arrangement::strides;
use super::elements::{ComparedElements, ElementPair};
use super::{AxisPart, TensorChange, operation};

/// Maximum number of ranges along an axis that are listed.
const N_RANGES_MAX: usize = 8;
/// The part of a region that has to differ, unless an operation explains it.
const DENSITY_MIN: f64 = 0.25;
/// Fewer elements that agree around a part do so by chance.
const N_AROUND_MIN: usize = 3;
/// Maximum number of elements of a part that are copied to look for an operation.
const N_COPIED_MAX: usize = 1 << 22;

/// The part that differs, if it is at most half of the tensor along an axis, and what was done
/// there.
pub(super) fn only(pair: &ElementPair<'_>, tolerance: f64) -> Option<TensorChange> {
    if pair.n_differing > pair.len() / 2 {
        return None;
    }
    let dims = pair.dims();
    let marked = marked_indices(pair);
    let share = |axis: usize| marked[axis].len() as f64 / dims[axis] as f64;
    let narrowest = (0..dims.len()).filter(|&axis| dims[axis] > 1 && share(axis) <= 0.5);
    let narrowest = narrowest.min_by(|&a, &b| share(a).total_cmp(&share(b)))?;
    let mut axes: Vec<AxisPart> = Vec::new();
    let mut chosen: Vec<Vec<usize>> = Vec::with_capacity(dims.len());
    for (axis, indices) in marked.iter().enumerate() {
        let ranges = ranges(indices);
        // Along the others the part is what encloses it; scattered indices are no region.
        let ranges = match (&ranges[..], axis == narrowest) {
            (_, true) => ranges,
            ([first, .., last], false) => vec![[first[0], last[1]]],
            (_, false) => ranges,
        };
        chosen.push(ranges.iter().flat_map(|&[first, end]| first..end).collect());
        if ranges != [[0, dims[axis]]] {
            axes.push(AxisPart { axis, ranges });
        }
    }
    let is_short = axes.iter().all(|part| part.ranges.len() <= N_RANGES_MAX);
    let n = chosen.iter().map(Vec::len).product::<usize>();
    if pair.len() - n < N_AROUND_MIN {
        return None;
    }
    let change = copied(pair, &chosen, n).and_then(|[target, golden]| {
        let inner = ElementPair::new(&target, &golden)?;
        let found = operation(&inner).or_else(|| super::last_resort(&inner));
        found.or_else(|| super::operation_within(&inner.within(tolerance)?))
    });
    let is_dense = pair.n_differing as f64 >= DENSITY_MIN * n as f64;
    (is_short && (is_dense || change.is_some())).then(|| TensorChange::Part {
        axes,
        change: change.map(Box::new),
    })
}

/// For each axis the indices at which an element differs.
fn marked_indices(pair: &ElementPair<'_>) -> Vec<Vec<usize>> {
    let dims = pair.dims();
    let mut is_marked: Vec<Vec<bool>> = dims.iter().map(|&dim| vec![false; dim]).collect();
    for i in pair.first_differing..pair.len() {
        if !pair.is_same(i, i) {
            let mut rest = i;
            for (marks, &dim) in is_marked.iter_mut().zip(dims).rev() {
                marks[rest % dim] = true;
                rest /= dim;
            }
        }
    }
    let indices = is_marked.into_iter().map(|marks| {
        let marks = marks.into_iter().enumerate();
        marks
            .filter(|(_, is_marked)| *is_marked)
            .map(|(k, _)| k)
            .collect()
    });
    indices.collect()
}

fn ranges(indices: &[usize]) -> Vec<[usize; 2]> {
    let mut ranges: Vec<[usize; 2]> = Vec::new();
    for &index in indices {
        match ranges.last_mut() {
            Some(last) if last[1] == index => last[1] += 1,
            _ => ranges.push([index, index + 1]),
        }
    }
    ranges
}

/// Both sides' elements at these indices of each axis.
fn copied(
    pair: &ElementPair<'_>,
    chosen: &[Vec<usize>],
    n: usize,
) -> Option<[ComparedElements<'static>; 2]> {
    if n > N_COPIED_MAX {
        return None;
    }
    let strides = strides(pair.dims());
    let shape: Vec<usize> = chosen.iter().map(Vec::len).collect();
    let mut places = vec![0];
    for (indices, stride) in chosen.iter().zip(strides) {
        let longer = places
            .iter()
            .flat_map(|place| indices.iter().map(move |index| place + index * stride));
        places = longer.collect();
    }
    let [target, golden] = [pair.target, pair.golden].map(|side| {
        let elements = places.iter().map(|&place| side.at(place)).collect();
        ComparedElements::copied(elements, &shape, side.dtype())
    });
    Some([target?, golden?])
}
