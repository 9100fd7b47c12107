//! Elements in other places.

use super::elements::{ComparedElements, ElementPair};
use super::{TensorChange, elements::ElementTolerance};

/// Maximum number of axes that are exchanged or mirrored in every way.
const N_AXES_MAX: usize = 6;

/// Where the target's elements are in golden's tensor: the sum, over the axes, of a number for each
/// index.
pub(super) struct Arrangement {
    /// For each axis of the target the place in golden's memory that each index adds.
    pub(super) tables: Vec<Vec<usize>>,
}

impl Arrangement {
    /// Every element in its place.
    pub(super) fn in_place(dims: &[usize]) -> Arrangement {
        let axes = dims.iter().zip(strides(dims));
        Arrangement {
            tables: axes.map(|(&dim, stride)| table(dim, stride)).collect(),
        }
    }

    fn source(&self, position: usize) -> usize {
        let mut rest = position;
        let mut source = 0;
        for table in self.tables.iter().rev() {
            source += table.get(rest % table.len().max(1)).copied().unwrap_or(0);
            rest /= table.len().max(1);
        }
        source
    }

    /// Whether the target's elements are golden's in this arrangement: samples, then all.
    pub(super) fn holds(&self, pair: &ElementPair<'_>) -> bool {
        pair.samples_hold(|i| self.source(i)) && self.is_whole(pair)
    }

    fn is_whole(&self, pair: &ElementPair<'_>) -> bool {
        let Some((inner, outer)) = self.tables.split_last() else {
            return true;
        };
        let mut indices = vec![0; outer.len()];
        for row in 0..pair.len() / inner.len().max(1) {
            let base: usize = indices.iter().zip(outer).map(|(&i, table)| table[i]).sum();
            let first = row * inner.len();
            let mut places = inner.iter().enumerate();
            if !places.all(|(k, place)| pair.is_same(first + k, base + place)) {
                return false;
            }
            advance(&mut indices, outer);
        }
        true
    }
}

/// The next row, in row-major order.
fn advance(indices: &mut [usize], outer: &[Vec<usize>]) {
    for (index, table) in indices.iter_mut().zip(outer).rev() {
        *index += 1;
        if *index < table.len() {
            return;
        }
        *index = 0;
    }
}

fn table(dim: usize, stride: usize) -> Vec<usize> {
    (0..dim).map(|index| index * stride).collect()
}

/// The distance in memory of neighbours along each axis.
pub(super) fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for k in (1..dims.len()).rev() {
        strides[k - 1] = strides[k] * dims[k];
    }
    strides
}

/// Axes in another order, of tensors of one shape.
pub(super) fn axes(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let dims = pair.dims();
    let mut orders = orders(dims).into_iter();
    let order = orders.find(|order| transposition(order, dims).holds(pair))?;
    let in_memory = permuted(&order, dims) != dims;
    Some(TensorChange::Axes { order, in_memory })
}

/// The same elements in another shape: with axes in another order, or merely reshaped.
pub(super) fn of_other_shape(
    target: &ComparedElements<'_>,
    golden: &ComparedElements<'_>,
) -> Option<TensorChange> {
    if target.len() != golden.len() || golden.len() == 0 {
        return None;
    }
    // The pair is of one shape: the target's elements as golden's axes would have them.
    let same = if target.dtype() == golden.dtype() {
        ElementTolerance::default()
    } else {
        ElementPair::new(target, golden).map_or_else(Default::default, |pair| pair.same)
    };
    let is_same = (0..golden.len()).all(|i| {
        let g = golden.at(i);
        same.allows(target.at(i), g, g.abs())
    });
    if is_same {
        return Some(TensorChange::Reshaped);
    }
    let pair = ElementPair::new(target, golden)?;
    let dims = golden.shape();
    let mut orders = orders(dims)
        .into_iter()
        .filter(|order| permuted(order, dims) == target.shape());
    let order = orders.find(|order| transposition(order, dims).holds(&pair))?;
    let in_memory = false;
    Some(TensorChange::Axes { order, in_memory })
}

fn permuted(order: &[usize], dims: &[usize]) -> Vec<usize> {
    order.iter().map(|&axis| dims[axis]).collect()
}

fn transposition(order: &[usize], dims: &[usize]) -> Arrangement {
    let strides = strides(dims);
    let tables = order.iter().map(|&axis| table(dims[axis], strides[axis]));
    Arrangement {
        tables: tables.collect(),
    }
}

/// All orders of the axes that move elements, those that leave most axes in their places first.
fn orders(dims: &[usize]) -> Vec<Vec<usize>> {
    if dims.len() < 2 || dims.len() > N_AXES_MAX {
        return Vec::new();
    }
    let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in dims {
        let longer = orders.iter().flat_map(|order| {
            let free = (0..dims.len()).filter(|axis| !order.contains(axis));
            free.map(|axis| [&order[..], &[axis]].concat())
        });
        orders = longer.collect();
    }
    // Axes of 1 may be anywhere.
    orders.retain(|order| {
        let mut long = order.iter().filter(|&&axis| dims[axis] > 1);
        let mut last = None;
        !long.all(|&axis| last.replace(axis).is_none_or(|before| before < axis))
    });
    orders.sort_by_key(|order| {
        order
            .iter()
            .enumerate()
            .filter(|(k, axis)| k != *axis)
            .count()
    });
    orders
}

/// Mirrored along one or several axes.
pub(super) fn mirrored(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let dims = pair.dims();
    if dims.len() > N_AXES_MAX {
        return None;
    }
    let mut choices: Vec<u32> = (1..1_u32 << dims.len()).collect();
    choices.sort_by_key(|choice| choice.count_ones());
    // Two indices in the opposite order are exchanged; axes of 1 have no order.
    let mut choices = choices
        .into_iter()
        .map(|choice| {
            let axes = 0..dims.len();
            axes.filter(|axis| choice >> axis & 1 == 1).collect()
        })
        .filter(|axes: &Vec<usize>| axes.iter().all(|&axis| dims[axis] > 2));
    let axes = choices.find(|axes| {
        let mut arrangement = Arrangement::in_place(dims);
        for &axis in axes {
            arrangement.tables[axis].reverse();
        }
        arrangement.holds(pair)
    })?;
    Some(TensorChange::Mirrored { axes, block: 0 })
}
