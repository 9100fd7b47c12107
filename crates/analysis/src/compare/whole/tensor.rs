//! A tensor assembled from the parts of ranks, without ever being completely in memory.

use std::ops::Range;

use opscope_store::record::parallel::Reduction;
use opscope_tensor::DType;

use super::cut::{Segment, joined};
use crate::compare::side::ExecutionSlot;

/// Boxes that parts may cut a tensor into.
const N_CELLS_MAX: usize = 1 << 20;
/// Why parts beyond these are refused.
const TOO_MANY_BOXES: &str = "its parts cut it into too many boxes";
/// Entries of all boxes together.
const N_ENTRIES_MAX: usize = 1 << 22;

/// The part of a rank.
#[derive(Clone, Debug, PartialEq)]
pub struct RankPart {
    /// The rank; none where the dump has none.
    pub rank: Option<u32>,
    /// Its place on the axes of the mesh that share the tensor, as `tp=1`.
    pub coordinates: String,
    /// The slot that holds it.
    pub slot: Box<ExecutionSlot>,
    /// For each axis of the whole the elements that the part has, in order.
    pub(super) axes: Vec<Vec<Segment>>,
    /// Which contribution it is of values that are added up; 0 where they are not.
    pub(super) contribution: usize,
    /// Its place on all mesh axes that a note describes. Parts with the same elements at different
    /// places are replicas; at the same place, their difference is unknown.
    pub(super) noted: Vec<u64>,
}

/// How ranks turned out to share a tensor where a rule left it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum VaryingShare {
    /// All hold the same.
    Replicas,
    /// Each holds a part.
    Parts,
}

/// Why ranks without a note should have the same, and do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InferredReplicas {
    /// One of them has the other side's tensor.
    Single,
    /// They read contributions as if each were the tensor.
    Unreduced,
}

/// A tensor in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeTensor {
    /// Element type of the parts, and of the whole.
    pub dtype: DType,
    /// Shape.
    pub shape: Vec<u64>,
    /// How contributions become one value, where they do.
    pub reduction: Option<Reduction>,
    /// The parts, by rank.
    pub parts: Vec<RankPart>,
    /// By how much elements are divided where they are read; 1 of nearly every tensor.
    pub(super) divisor: u32,
    /// Why ranks without a note should have the same.
    pub(super) inferred: Option<InferredReplicas>,
    /// How ranks share it along an axis whose rule is `varying`.
    pub(super) varying: Option<VaryingShare>,
    /// Shape, with adjacent axes merged that no part splits.
    pub(super) dims: Vec<u64>,
    /// For each part the segments along these axes.
    pub(super) segments: Vec<Vec<Vec<Segment>>>,
    pub(super) grid: PartGrid,
}

/// The boxes that the parts cut a tensor into.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PartGrid {
    /// For each axis the indices at which boxes begin, and its size at the end.
    pub(super) bounds: Vec<Vec<u64>>,
    /// For each box in row-major order the parts that hold it, by contribution and then in order.
    pub(super) cells: Vec<Vec<u32>>,
}

impl WholeTensor {
    /// Puts parts together.
    ///
    /// # Errors
    /// A message if elements are missing, or the parts are too many.
    pub(super) fn new(
        (dtype, shape): (DType, Vec<u64>),
        reduction: Option<(Reduction, usize)>,
        parts: Vec<RankPart>,
    ) -> Result<WholeTensor, String> {
        // Elements of half a byte begin in the middle of one where a part ends.
        if dtype.bytes().is_none() {
            return Err(format!("elements of {dtype} have no bytes of their own"));
        }
        let (dims, segments) = merged(&shape, &parts);
        let n_contributions = reduction.map_or(1, |(_, n)| n);
        let grid = PartGrid::new(&dims, &segments, &parts, n_contributions)?;
        Ok(WholeTensor {
            dtype,
            shape,
            reduction: reduction.map(|(reduction, _)| reduction),
            parts,
            divisor: 1,
            inferred: None,
            varying: None,
            dims,
            segments,
            grid,
        })
    }

    /// Number of elements.
    pub fn n_elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Bytes of all elements.
    pub fn n_bytes(&self) -> u64 {
        self.n_elements() * self.dtype.bytes().unwrap_or(0) as u64
    }

    /// The box that an element is in, by its position in row-major order.
    pub(super) fn cell_of(&self, position: u64) -> usize {
        let index = index_of(&self.dims, position);
        self.grid.cell_at(&index)
    }

    /// The parts that hold an element, each with its index in the part's own tensor.
    pub fn places_of(&self, position: u64) -> Vec<(&RankPart, Vec<u64>)> {
        // By the axes as the user knows them, not as they were taken together.
        let index = index_of(&self.shape, position);
        let holding = self.grid.cells.get(self.cell_of(position));
        let holding = holding.into_iter().flatten();
        let parts = holding.filter_map(|&part| self.parts.get(part as usize));
        let places = parts.map(|part| {
            let offsets = part.axes.iter().zip(&index).map(|(segments, &index)| {
                let of_axis = segments.iter();
                let mut holding = of_axis.filter(|one| one.first <= index && index < one.end());
                holding.next().map_or(0, |segment| segment.offset_of(index))
            });
            let local = part.slot.shape.as_deref().unwrap_or_default();
            (part, index_of(local, offsets.sum()))
        });
        places.collect()
    }

    /// The elements of a part on each axis of the whole, as Python would index them.
    pub fn region_of(&self, part: &RankPart) -> String {
        let axes =
            part.axes
                .iter()
                .zip(&self.shape)
                .map(|(segments, &extent)| match &segments[..] {
                    [] => "0:0".to_owned(),
                    [one] if (one.first, one.n) == (0, extent) => ":".to_owned(),
                    all => {
                        let texts = all.iter().map(|one| format!("{}:{}", one.first, one.end()));
                        texts.collect::<Vec<_>>().join("+")
                    }
                });
        format!("[{}]", axes.collect::<Vec<_>>().join(", "))
    }
}

/// The index along each axis of a position in row-major order.
pub(super) fn index_of(dims: &[u64], position: u64) -> Vec<u64> {
    let mut rest = position;
    let mut index = vec![0; dims.len()];
    for (at, &dim) in index.iter_mut().zip(dims).rev() {
        *at = rest % dim.max(1);
        rest /= dim.max(1);
    }
    index
}

/// Takes axes together that no part cuts, so that as many elements as possible lie side by side.
fn merged(shape: &[u64], parts: &[RankPart]) -> (Vec<u64>, Vec<Vec<Vec<Segment>>>) {
    let mut dims: Vec<u64> = shape.to_vec();
    let mut all: Vec<Vec<Vec<Segment>>> = parts.iter().map(|part| part.axes.clone()).collect();
    // From the last axis on, along which elements lie side by side.
    let mut axis = dims.len().saturating_sub(1);
    while axis > 0 {
        let (outer, inner) = (axis - 1, axis);
        let extent = dims[inner];
        // An axis of 0 has no elements to take together.
        let is_merged = extent > 0
            && all.iter().all(|axes| match &axes[inner][..] {
                [one] => {
                    let is_whole = (one.first, one.n, one.offset) == (0, extent, 0);
                    let row = one.stride.checked_mul(extent);
                    // The stride of a single index leads nowhere.
                    is_whole
                        && axes[outer]
                            .iter()
                            .all(|segment| segment.n == 1 || Some(segment.stride) == row)
                }
                _ => false,
            });
        if is_merged {
            for axes in &mut all {
                let stride = axes[inner][0].stride;
                let segments = axes[outer].iter().map(|segment| Segment {
                    first: segment.first * extent,
                    n: segment.n * extent,
                    offset: segment.offset,
                    stride,
                });
                axes[outer] = joined(segments.collect());
                axes.remove(inner);
            }
            dims[outer] *= extent;
            dims.remove(inner);
        }
        axis -= 1;
    }
    (dims, all)
}

impl PartGrid {
    fn new(
        dims: &[u64],
        segments: &[Vec<Vec<Segment>>],
        parts: &[RankPart],
        n_contributions: usize,
    ) -> Result<PartGrid, String> {
        let bounds: Vec<Vec<u64>> = (0..dims.len())
            .map(|axis| {
                let of_axis = segments.iter().flat_map(|axes| &axes[axis]);
                let mut all: Vec<u64> = of_axis
                    .flat_map(|segment| [segment.first, segment.end()])
                    .chain([0, dims[axis]])
                    .filter(|&bound| bound <= dims[axis])
                    .collect();
                all.sort_unstable();
                all.dedup();
                all
            })
            .collect();
        let n_cells = bounds.iter().try_fold(1_usize, |n, axis| {
            n.checked_mul(axis.len() - 1).filter(|&n| n <= N_CELLS_MAX)
        });
        let n_cells = n_cells.ok_or(TOO_MANY_BOXES)?;
        let mut grid = PartGrid {
            bounds,
            cells: vec![Vec::new(); n_cells],
        };
        let mut n_entries = 0;
        for (part, axes) in segments.iter().enumerate() {
            let covered: Vec<Vec<Range<usize>>> = axes
                .iter()
                .zip(&grid.bounds)
                .map(|(segments, bounds)| {
                    let cells = segments.iter().map(|one| {
                        let [first, end] = [one.first, one.end()]
                            .map(|index| bounds.partition_point(|&bound| bound < index));
                        first..end
                    });
                    cells.collect()
                })
                .collect();
            for cell in boxes(&covered, &grid.bounds) {
                n_entries += 1;
                if n_entries > N_ENTRIES_MAX {
                    return Err(TOO_MANY_BOXES.to_owned());
                }
                grid.cells[cell].push(u32::try_from(part).unwrap_or(u32::MAX));
            }
        }
        let contribution = |part: &u32| parts[*part as usize].contribution;
        for cell in &mut grid.cells {
            // Stable, so that parts stay in the order of their ranks.
            cell.sort_by_key(contribution);
        }
        grid.check(dims, &contribution, n_contributions)?;
        Ok(grid)
    }

    /// Whether each box has all of its contributions.
    fn check(
        &self,
        dims: &[u64],
        contribution: &dyn Fn(&u32) -> usize,
        n_contributions: usize,
    ) -> Result<(), String> {
        // Nothing is missing of nothing.
        if dims.contains(&0) {
            return Ok(());
        }
        let n_missing = self.cells.iter().filter(|cell| {
            // Sorted by contribution before, so that equal ones are neighbours.
            let mut all: Vec<usize> = cell.iter().map(contribution).collect();
            all.dedup();
            all.len() < n_contributions
        });
        match n_missing.count() {
            0 => Ok(()),
            n => Err(format!(
                "ranks that hold {n} of its {} parts are not in the dump",
                self.cells.len()
            )),
        }
    }

    pub(super) fn cell_at(&self, index: &[u64]) -> usize {
        let mut cell = 0;
        for (bounds, &index) in self.bounds.iter().zip(index) {
            let at = bounds.partition_point(|&bound| bound <= index).max(1) - 1;
            cell = cell * (bounds.len() - 1) + at;
        }
        cell
    }
}

/// The boxes of all combinations of ranges, one range for each axis.
fn boxes(covered: &[Vec<Range<usize>>], bounds: &[Vec<u64>]) -> Vec<usize> {
    let mut all = vec![0_usize];
    for (ranges, bounds) in covered.iter().zip(bounds) {
        let n = bounds.len() - 1;
        // Ranges of one axis do not overlap, so that no box comes twice.
        let along: Vec<usize> = ranges.iter().cloned().flatten().collect();
        let outer = all.iter();
        // No more than the boxes of the grid, whose number has a bound.
        all = outer
            .flat_map(|cell| along.iter().map(move |at| cell * n + at))
            .collect();
    }
    all
}
