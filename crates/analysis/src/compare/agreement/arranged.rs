//! Values that the other side has in another arrangement.
//!
//! Programs compute the same with their axes in another order, step by step along an axis, or for
//! several tensors at once: attention on `[batch, time, head, width]`, a cache, a projection to
//! queries, keys and values. None of these values has an equal, and all are right.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::folding::elements;
use super::search::EqualValues;
use super::values::{DumpValue, SideValues, ValueIndex};
use crate::compare::attribution::kinds::moves_elements;
use crate::compare::matching::is_view;
use crate::compare::side::ComparedDump;

/// With fewer elements than this, equality may be chance.
const N_ELEMENTS_MIN: u64 = 4;
/// Maximum number of values that are compared with one.
const N_CANDIDATES_MAX: usize = 8;
/// Maximum number of pairs of values whose statistics are compared.
const N_CHECKS_MAX: usize = 1 << 24;
/// Maximum number of shapes of a value, and of axes of a shape.
const N_SHAPES_MAX: usize = 4;
const N_AXES_MAX: usize = 5;
/// Maximum number of elements that are read.
const N_READ_MAX: u64 = 16 << 20;
/// Maximum distance of two elements, relative to the largest one.
const DISTANCE_MAX: f64 = 1e-5;
/// Maximum ratio of the largest element to one that nine in ten exceed. Beyond it stand fillers, such
/// as the -10,000 of a mask, and the others are compared by their own size.
const SPREAD_MAX: f64 = 100.0;

/// Marks values that the other side has with its axes in another order, as a part of a longer one
/// along an axis, or in parts. Operators that only move elements are not proven right by it: what
/// they make is in the right order if something right is computed from it.
pub(super) fn find_arranged(
    dumps: [&ComparedDump; 2],
    sides: &[SideValues; 2],
    found: &mut EqualValues,
) {
    let orphans = [0, 1].map(|i| Orphan::all(dumps[i], &sides[i], &found.of_side[i]));
    let mut search = ArrangementSearch {
        dumps,
        sides,
        read: HashMap::new(),
        n_left: N_READ_MAX,
        n_checks_left: N_CHECKS_MAX,
    };
    let mut right: [BTreeSet<ValueIndex>; 2] = Default::default();
    for (own, others) in [(0, 1), (1, 0)] {
        search.find_parts([own, others], &orphans, &mut right);
    }
    let mut turned: [BTreeSet<ValueIndex>; 2] = Default::default();
    search.find_turned(&orphans, &mut turned);
    for i in 0..2 {
        for orphan in &orphans[i] {
            let value = &orphan.value;
            found.is_close[i][value.0] |= orphan.is_computed && right[i].contains(value)
                || !orphan.is_view && turned[i].contains(value);
        }
    }
}

/// A value without an equal.
struct Orphan {
    value: ValueIndex,
    /// Its shapes, without axes of one element.
    shapes: Vec<Vec<usize>>,
    /// Whether an operator makes it that puts elements of one value into another order.
    is_view: bool,
    /// Whether all that make it compute, rather than move elements.
    is_computed: bool,
}

impl Orphan {
    fn all(dump: &ComparedDump, side: &SideValues, equals: &[Option<ValueIndex>]) -> Vec<Orphan> {
        let mut shapes: HashMap<ValueIndex, BTreeSet<Vec<usize>>> = HashMap::new();
        for (at, value) in side.slots() {
            let of = &side.values[value.0];
            let is_data = of.has_counts && !of.is_outside && !of.is_extents && !of.is_integer;
            let is_large = of.is_distinctive() && of.stats.counts.n_elements >= N_ELEMENTS_MIN;
            let is_plain = is_data && is_large && !of.stats.has_non_finite();
            if equals[value.0].is_none() && is_plain {
                let dims = dump.slot(at).shape.iter().flatten();
                let dims = dims.filter(|dim| **dim != 1);
                let dims: Vec<usize> = dims.filter_map(|dim| usize::try_from(*dim).ok()).collect();
                if (1..=N_AXES_MAX).contains(&dims.len()) {
                    shapes.entry(value).or_default().insert(dims);
                }
            }
        }
        let makers = side.makers();
        let mut all: Vec<Orphan> = shapes
            .into_iter()
            .map(|(value, shapes)| {
                let makers = makers.get(&value).into_iter().flatten();
                let mut makers = makers.map(|run| &dump.runs[*run]);
                let is_view = makers.clone().any(is_view);
                Orphan {
                    value,
                    shapes: shapes.into_iter().take(N_SHAPES_MAX).collect(),
                    is_view,
                    is_computed: !is_view && makers.all(|run| !moves_elements(&run.op_type)),
                }
            })
            .collect();
        all.sort_unstable_by_key(|orphan| orphan.value);
        all
    }
}

/// An axis, and the shape without it.
type ShapeAlong = (usize, Vec<usize>);

/// A shape as an axis and what is before and behind it.
#[derive(Clone, Copy)]
struct AxisView {
    n_before: usize,
    length: usize,
    n_behind: usize,
}

impl AxisView {
    fn along(shape: &[usize], axis: usize) -> AxisView {
        AxisView {
            n_before: shape[..axis].iter().product(),
            length: shape.get(axis).copied().unwrap_or(1),
            n_behind: shape.get(axis + 1..).unwrap_or(&[]).iter().product(),
        }
    }
}

struct ReadElements {
    all: Vec<f64>,
    /// Maximum distance from another value's elements.
    slack: f64,
}

impl ReadElements {
    fn new(all: Vec<f64>) -> ReadElements {
        let sizes = all.iter().map(|element| element.abs());
        let mut sizes: Vec<f64> = sizes.filter(|size| *size > 0.0).collect();
        let largest = sizes.iter().fold(0.0, |a: f64, b| a.max(*b));
        let at = sizes.len() / 10;
        let size = if sizes.is_empty() {
            0.0
        } else {
            *sizes.select_nth_unstable_by(at, f64::total_cmp).1
        };
        let slack = DISTANCE_MAX * largest.min(SPREAD_MAX * size);
        ReadElements { all, slack }
    }
}

struct ArrangementSearch<'a> {
    dumps: [&'a ComparedDump; 2],
    sides: &'a [SideValues; 2],
    read: HashMap<(usize, ValueIndex), Option<ReadElements>>,
    n_left: u64,
    n_checks_left: usize,
}

impl ArrangementSearch<'_> {
    fn stats(&self, side: usize, value: ValueIndex) -> &opscope_tensor::Stats {
        &self.sides[side].values[value.0].stats
    }

    /// The first of `all`, as many as may still be checked.
    fn affordable<'v, T>(&mut self, all: &'v [T]) -> &'v [T] {
        let n = all.len().min(self.n_checks_left);
        self.n_checks_left -= n;
        &all[..n]
    }

    /// Reads the elements of a value, unless too many were read before.
    fn read(&mut self, side: usize, value: ValueIndex) {
        let n = self.stats(side, value).counts.n_elements;
        if self.n_left < n || self.read.contains_key(&(side, value)) {
            return;
        }
        self.n_left -= n;
        let at = self.sides[side].first_slot(value);
        let slot = self.dumps[side].slot(at);
        let read = elements(slot).map(|(elements, _)| ReadElements::new(elements));
        self.read.insert((side, value), read);
    }

    fn both(&mut self, keys: [(usize, ValueIndex); 2]) -> Option<[&ReadElements; 2]> {
        for (side, value) in keys {
            self.read(side, value);
        }
        let [a, b] = keys.map(|key| self.read.get(&key)?.as_ref());
        Some([a?, b?])
    }

    /// Finds values of `own` that are a part of one of `other`, and those of `other` of which all
    /// parts are found.
    fn find_parts(
        &mut self,
        [own, other]: [usize; 2],
        orphans: &[Vec<Orphan>; 2],
        right: &mut [BTreeSet<ValueIndex>; 2],
    ) {
        let mut longer: HashMap<ShapeAlong, Vec<(ValueIndex, AxisView)>> = HashMap::new();
        for orphan in &orphans[other] {
            for shape in &orphan.shapes {
                for axis in 0..shape.len() {
                    let key = (axis, without(shape, axis));
                    let view = AxisView::along(shape, axis);
                    longer.entry(key).or_default().push((orphan.value, view));
                }
            }
        }
        for all in longer.values_mut() {
            all.sort_by_key(|(_, view)| Reverse(view.length));
        }
        let mut covered: BTreeSet<(ValueIndex, usize, usize, usize)> = BTreeSet::new();
        for orphan in &orphans[own] {
            let of = *self.stats(own, orphan.value);
            for shape in &orphan.shapes {
                // An axis of one element may be anywhere.
                let along =
                    (0..shape.len()).map(|axis| ((axis, without(shape, axis)), shape[axis]));
                let across = (0..=shape.len()).map(|axis| ((axis, shape.clone()), 1));
                for (key, length) in along.chain(across).collect::<Vec<_>>() {
                    let all = longer.get(&key).map_or(&[][..], |all| &all[..]);
                    let n_longer = all.partition_point(|(_, view)| view.length > length);
                    let longer = self.affordable(&all[..n_longer]);
                    let fits: Vec<_> = (longer.iter())
                        .filter(|(value, _)| {
                            let whole = self.stats(other, *value);
                            let slack = DISTANCE_MAX * whole.max.abs().max(whole.min.abs());
                            of.min >= whole.min - slack && of.max <= whole.max + slack
                        })
                        .take(N_CANDIDATES_MAX)
                        .copied()
                        .collect();
                    for (value, view) in fits {
                        let keys = [(own, orphan.value), (other, value)];
                        let both = self.both(keys);
                        let at = both.and_then(|both| place_of_part(both, view, length));
                        if let Some(at) = at {
                            right[own].insert(orphan.value);
                            covered.insert((value, key.0, at, at + length));
                        }
                    }
                }
            }
        }
        right[other].extend(whole(&covered, &orphans[other]));
    }

    /// Finds values of both sides that differ in the order of their axes.
    fn find_turned(&mut self, orphans: &[Vec<Orphan>; 2], right: &mut [BTreeSet<ValueIndex>; 2]) {
        let mut of_length: HashMap<u64, Vec<&Orphan>> = HashMap::new();
        for orphan in &orphans[1] {
            let n = self.stats(1, orphan.value).counts.n_elements;
            of_length.entry(n).or_default().push(orphan);
        }
        let sides = self.sides;
        let norm = |golden: &&Orphan| sides[1].values[golden.value.0].stats.l2;
        for all in of_length.values_mut() {
            all.sort_by(|a, b| norm(a).total_cmp(&norm(b)));
        }
        for target in &orphans[0] {
            let own = &sides[0].values[target.value.0];
            let same = of_length.get(&own.stats.counts.n_elements);
            let same = same.map_or(&[][..], |same| &same[..]);
            let slack = DISTANCE_MAX * own.stats.l2;
            let start = same.partition_point(|golden| norm(golden) < own.stats.l2 - slack);
            let end = same.partition_point(|golden| norm(golden) <= own.stats.l2 + slack);
            let alike = (self.affordable(&same[start..end]).iter())
                .filter(|golden| has_like_elements(own, &sides[1].values[golden.value.0]));
            let alike: Vec<&&Orphan> = alike.take(N_CANDIDATES_MAX).collect();
            for golden in alike {
                let Some(both) = self.both([(0, target.value), (1, golden.value)]) else {
                    continue;
                };
                let is_turned = target.shapes.iter().any(|own| {
                    let mut others = golden.shapes.iter();
                    others.any(|other| are_turned(both, [own, other]))
                });
                if is_turned {
                    right[0].insert(target.value);
                    right[1].insert(golden.value);
                }
            }
        }
    }
}

fn without(shape: &[usize], axis: usize) -> Vec<usize> {
    [&shape[..axis], &shape[axis + 1..]].concat()
}

/// Whether two values may have the same elements, but for rounding.
fn has_like_elements(a: &DumpValue, b: &DumpValue) -> bool {
    let (a, b) = (&a.stats, &b.stats);
    let size = a.max.abs().max(a.min.abs());
    let numbers = [
        (a.min, b.min, size),
        (a.max, b.max, size),
        (a.l2, b.l2, a.l2),
    ];
    let mut numbers = numbers.into_iter();
    numbers.all(|(a, b, size)| (a - b).abs() <= DISTANCE_MAX * size)
}

/// Where along an axis a part begins.
fn place_of_part(
    [part, whole]: [&ReadElements; 2],
    view: AxisView,
    length: usize,
) -> Option<usize> {
    let slack = part.slack;
    let [part, whole] = [&part.all, &whole.all];
    let n = length * view.n_behind;
    if part.len() != view.n_before * n || whole.len() != view.n_before * view.length * view.n_behind
    {
        return None;
    }
    (0..=view.length.checked_sub(length)?).find(|at| {
        (0..view.n_before).all(|before| {
            let start = (before * view.length + at) * view.n_behind;
            let both = part[before * n..][..n].iter().zip(&whole[start..][..n]);
            both.into_iter().all(|(a, b)| (a - b).abs() <= slack)
        })
    })
}

/// Values all of whose length along an axis is covered.
fn whole(
    covered: &BTreeSet<(ValueIndex, usize, usize, usize)>,
    orphans: &[Orphan],
) -> Vec<ValueIndex> {
    let mut ends: HashMap<(ValueIndex, usize), usize> = HashMap::new();
    for &(value, axis, start, end) in covered {
        let known = ends.entry((value, axis)).or_default();
        if start <= *known {
            *known = end.max(*known);
        }
    }
    let orphans = orphans.iter().filter(|orphan| {
        orphan.shapes.iter().any(|shape| {
            let mut axes = shape.iter().enumerate();
            axes.any(|(axis, length)| ends.get(&(orphan.value, axis)) == Some(length))
        })
    });
    orphans.map(|orphan| orphan.value).collect()
}

/// Whether one tensor is the other with its axes in another order.
fn are_turned([a, b]: [&ReadElements; 2], [own, other]: [&[usize]; 2]) -> bool {
    let slack = a.slack;
    let [a, b] = [&a.all, &b.all];
    let sorted = [own, other].map(|shape| {
        let mut shape = shape.to_vec();
        shape.sort_unstable();
        shape
    });
    let n: usize = own.iter().product();
    if sorted[0] != sorted[1] || [a.len(), b.len()] != [n, n] {
        return false;
    }
    let strides: Vec<usize> = (0..own.len())
        .map(|axis| own[axis + 1..].iter().product())
        .collect();
    orders(own, other).iter().any(|order| {
        let mut index = vec![0; other.len()];
        b.iter().all(|element| {
            let at: usize = (index.iter().zip(order))
                .map(|(index, axis)| index * strides[*axis])
                .sum();
            let is_same = (a[at] - element).abs() <= slack;
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                if index[axis] < other[axis] {
                    break;
                }
                index[axis] = 0;
            }
            is_same
        })
    })
}

/// The orders of the axes of a shape that make another shape.
fn orders(own: &[usize], other: &[usize]) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for length in other {
        let longer = orders.iter().flat_map(|order: &Vec<usize>| {
            let free = (0..own.len()).filter(|axis| own[*axis] == *length && !order.contains(axis));
            free.map(|axis| [&order[..], &[axis]].concat())
        });
        orders = longer.collect();
    }
    orders
}
