//! How ranks cut an axis of a tensor, and where on the whole axis the elements of a rank belong.
//!
//! A rank's part of an axis is a list of ranges of the whole axis, in the order in which the rank
//! holds them. Cuts follow each other: each takes a part of what the one before left.

use std::ops::Range;

/// Ranges that an axis may be cut into.
const N_RANGES_MAX: usize = 1 << 16;

/// Ranges of the whole axis, consecutive on the rank.
pub(super) type HeldRanges = Vec<Range<u64>>;

/// A section of an axis, such as the queries of a fused projection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FusedPiece {
    /// Its name.
    pub(super) name: String,
    /// How many units of equal length it has, such as heads.
    pub(super) n_units: u64,
    /// Whether ranks may have a part of a unit.
    pub(super) is_divisible: bool,
}

/// How the ranks along an axis of the mesh share an axis of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AxisCut {
    /// In parts of the dimension divided by the number of ranks, rounded up; the last ones are
    /// shorter or empty.
    Plain,
    /// In parts of these lengths, where they follow from the parts themselves.
    Lengths(Vec<u64>),
    /// In twice as many parts as ranks: the first and the last for the first rank, and so on
    /// inwards. If lengths are given, each section of that length is cut separately.
    Zigzag(Option<Vec<u64>>),
    /// Each piece is cut separately, and its parts are concatenated.
    Fused(Vec<FusedPiece>),
}

impl AxisCut {
    /// The part of what a rank would hold without this cut; none if the length does not allow the
    /// cut.
    pub(super) fn apply(
        &self,
        held: &[Range<u64>],
        coordinate: u64,
        size: u64,
    ) -> Option<HeldRanges> {
        let n = length(held);
        let intervals = match self {
            AxisCut::Plain => vec![plain(0..n, coordinate, size)],
            AxisCut::Lengths(lengths) => {
                let before = lengths.get(..usize::try_from(coordinate).ok()?)?;
                let first = before
                    .iter()
                    .try_fold(0_u64, |n, &one| n.checked_add(one))?;
                let own = *lengths.get(before.len())?;
                let end = first.checked_add(own).filter(|&end| end <= n)?;
                std::iter::once(first..end).collect()
            }
            AxisCut::Zigzag(None) => zigzag(0..n, coordinate, size)?,
            AxisCut::Zigzag(Some(lengths)) => {
                let mut all = Vec::new();
                let mut first = 0_u64;
                for &length in lengths {
                    let end = first.checked_add(length).filter(|&end| end <= n)?;
                    all.extend(zigzag(first..end, coordinate, size)?);
                    first = end;
                }
                (first == n).then_some(all)?
            }
            AxisCut::Fused(pieces) => fused(pieces, n, coordinate, size)?,
        };
        let held: HeldRanges = intervals
            .into_iter()
            .flat_map(|interval| slice(held, interval))
            .collect();
        (held.len() <= N_RANGES_MAX).then_some(held)
    }
}

/// Elements in ranges.
pub(super) fn length(held: &[Range<u64>]) -> u64 {
    held.iter().map(|range| range.end - range.start).sum()
}

fn plain(whole: Range<u64>, coordinate: u64, size: u64) -> Range<u64> {
    let n = (whole.end - whole.start).div_ceil(size.max(1));
    // Parts after the end are empty.
    let [begin, end] = [coordinate, coordinate.saturating_add(1)].map(|k| {
        let at = k.saturating_mul(n).saturating_add(whole.start);
        at.min(whole.end)
    });
    begin..end
}

fn zigzag(whole: Range<u64>, coordinate: u64, size: u64) -> Option<Vec<Range<u64>>> {
    let n_parts = size.checked_mul(2)?;
    let n = whole.end - whole.start;
    // Parts of unequal length would come in an order that programs do not agree on.
    if coordinate >= size || !n.is_multiple_of(n_parts) {
        return None;
    }
    let both = [coordinate, n_parts - 1 - coordinate].map(|k| {
        let first = whole.start + k * (n / n_parts);
        first..first + n / n_parts
    });
    Some(both.to_vec())
}

fn fused(pieces: &[FusedPiece], n: u64, coordinate: u64, size: u64) -> Option<Vec<Range<u64>>> {
    let n_units = pieces
        .iter()
        .try_fold(0_u64, |sum, piece| sum.checked_add(piece.n_units))?;
    if n_units == 0 || !n.is_multiple_of(n_units) || coordinate >= size {
        return None;
    }
    let unit = n / n_units;
    let mut first = 0;
    let mut all = Vec::new();
    for piece in pieces {
        let n = piece.n_units * unit;
        all.push(if piece.is_divisible {
            if !n.is_multiple_of(size) {
                return None;
            }
            first + coordinate * (n / size)..first + (coordinate + 1) * (n / size)
        } else {
            let own = unit_of(piece.n_units, coordinate, size)?;
            first + own.start * unit..first + own.end * unit
        });
        first += n;
    }
    Some(all)
}

/// The units of a piece that a rank holds. Fewer units than ranks are held by several ranks each,
/// as models do with heads of keys and values.
fn unit_of(n_units: u64, coordinate: u64, size: u64) -> Option<Range<u64>> {
    if n_units.is_multiple_of(size) {
        let n = n_units / size;
        return Some(coordinate * n..(coordinate + 1) * n);
    }
    if n_units > 0 && size.is_multiple_of(n_units) {
        let first = coordinate / (size / n_units);
        return Some(first..first + 1);
    }
    None
}

/// The size of an axis of fused pieces, of which a rank holds `n` elements; `None` if ranks cannot
/// share the pieces that way.
pub(super) fn fused_extent(pieces: &[FusedPiece], n: u64, size: u64) -> Option<u64> {
    // Units of a rank, as many times as there are ranks: whole numbers also of units in parts.
    let mut n_held = 0_u64;
    let mut n_units = 0_u64;
    for piece in pieces {
        let own = if piece.is_divisible {
            piece.n_units
        } else {
            let own = unit_of(piece.n_units, 0, size)?;
            (own.end - own.start).checked_mul(size)?
        };
        n_held = n_held.checked_add(own)?;
        n_units = n_units.checked_add(piece.n_units)?;
    }
    let n = n.checked_mul(size)?;
    if n_held == 0 || !n.is_multiple_of(n_held) {
        return None;
    }
    (n / n_held).checked_mul(n_units)
}

/// The ranges of the whole axis that an interval of what a rank holds covers.
fn slice(held: &[Range<u64>], interval: Range<u64>) -> Vec<Range<u64>> {
    let mut first = 0_u64;
    let mut all = Vec::new();
    for range in held {
        let n = range.end - range.start;
        let begin = interval.start.clamp(first, first + n);
        let end = interval.end.clamp(first, first + n);
        if begin < end {
            all.push(range.start + (begin - first)..range.start + (end - first));
        }
        first += n;
    }
    all
}

/// Another order of the elements of an axis: whole ranges that go elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AxisOrder {
    /// Ranges as the ranks' tensors have them, with the place where each begins in the order of the
    /// comparison. Elements in no range are left out.
    pub(super) moves: Vec<(Range<u64>, u64)>,
    /// The resulting size.
    pub(super) extent: u64,
}

impl AxisOrder {
    /// The first `extent` elements unchanged; the rest is padding.
    pub(super) fn cropped(extent: u64) -> AxisOrder {
        AxisOrder {
            moves: vec![(0..extent, 0)],
            extent,
        }
    }

    /// The order of pieces that a tensor holds group by group: all of the first piece, then all of
    /// the second.
    pub(super) fn ungrouped(
        pieces: &[FusedPiece],
        n_groups: u64,
        extent: u64,
    ) -> Option<AxisOrder> {
        let n_units = pieces
            .iter()
            .try_fold(0_u64, |sum, piece| sum.checked_add(piece.n_units))?;
        let n_all = n_units.checked_mul(n_groups)?;
        if n_all == 0 || !extent.is_multiple_of(n_all) {
            return None;
        }
        let n_moves = usize::try_from(n_groups).ok()?.checked_mul(pieces.len())?;
        if n_moves > N_RANGES_MAX {
            return None;
        }
        let unit = extent / n_all;
        let mut moves = Vec::with_capacity(n_moves);
        let mut first = 0;
        // Where the piece begins in the group, and where all of it begins in the result.
        let (mut in_group, mut in_result) = (0, 0);
        for piece in pieces {
            let n = piece.n_units * unit;
            for group in 0..n_groups {
                let start = group * n_units * unit + in_group;
                moves.push((start..start + n, in_result + group * n));
            }
            in_group += n;
            in_result += n * n_groups;
            first += n * n_groups;
        }
        moves.sort_by_key(|(range, _)| range.start);
        (first == extent).then_some(AxisOrder { moves, extent })
    }
}

/// Elements that a part holds along an axis of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The first index on the whole's axis.
    pub(super) first: u64,
    /// Number of them.
    pub(super) n: u64,
    /// Number of elements of the part before the first of them, along this axis.
    pub(super) offset: u64,
    /// Elements of the part from one to the next.
    pub(super) stride: u64,
}

impl Segment {
    /// The index after the last.
    pub(super) fn end(&self) -> u64 {
        self.first + self.n
    }

    /// Elements of the part before an index of the whole, which the segment has.
    pub(super) fn offset_of(&self, index: u64) -> u64 {
        self.offset + (index - self.first) * self.stride
    }
}

/// The segments of an axis on a part that holds these ranges, whose elements are `stride` apart.
pub(super) fn segments(
    held: &[Range<u64>],
    order: Option<&AxisOrder>,
    stride: u64,
) -> Option<Vec<Segment>> {
    let mut all = Vec::new();
    let mut local = 0_u64;
    for range in held {
        let n = range.end - range.start;
        match order {
            None => all.push(Segment {
                first: range.start,
                n,
                offset: local * stride,
                stride,
            }),
            Some(order) => {
                let from = order
                    .moves
                    .partition_point(|(one, _)| one.end <= range.start);
                for (moved, to) in &order.moves[from..] {
                    let begin = moved.start.max(range.start);
                    let end = moved.end.min(range.end);
                    if begin >= end {
                        break;
                    }
                    all.push(Segment {
                        first: to + (begin - moved.start),
                        n: end - begin,
                        offset: (local + (begin - range.start)) * stride,
                        stride,
                    });
                    if all.len() > N_RANGES_MAX {
                        return None;
                    }
                }
            }
        }
        local += n;
    }
    // Empty ranges would make boxes without elements.
    all.retain(|segment| segment.n > 0);
    all.sort_by_key(|segment| segment.first);
    Some(joined(all))
}

/// Segments that follow each other on both sides are one.
pub(super) fn joined(all: Vec<Segment>) -> Vec<Segment> {
    let mut found: Vec<Segment> = Vec::with_capacity(all.len());
    for segment in all {
        match found.last_mut() {
            Some(last)
                if last.end() == segment.first
                    && last.stride == segment.stride
                    && last.offset + last.n * last.stride == segment.offset =>
            {
                last.n += segment.n;
            }
            _ => found.push(segment),
        }
    }
    found
}
