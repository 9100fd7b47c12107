//! The difference of two tensors of which at least one is in parts, a piece at a time.

use std::collections::BTreeMap;

use opscope_tensor::difference::{
    N_PIECE_STEP, PiecewiseDifference, TensorDifference, WorstElement, visit_apart,
};
use opscope_tensor::{DType, Layout, Shape, TensorView};

use super::read::WholeReader;
use super::replicas::{ReplicaClasses, ReplicaFault, ranks_of};
use super::tensor::{InferredReplicas, VaryingShare, WholeTensor, index_of};
use crate::compare::differing::DifferingElements;
use crate::compare::measure::MeasureFault;
use crate::compare::metrics::Metrics;
use crate::compare::party::Party;
use crate::compare::side::{ExecutionSlot, LoadError, LoadedSlot};
use crate::compare::slot_ranks::{PartApart, PartElement, ReplicaMismatch, SlotRanks};
use crate::compare::statistics::has_same_extents;
use crate::elements::ElementWindows;
use crate::error_chain::chain;

/// Elements that are compared at once: a few megabytes on each side.
const N_PIECE: usize = 256 * N_PIECE_STEP;

/// The numbers of a pair.
pub(crate) struct WholeNumbers {
    pub(crate) difference: TensorDifference,
    /// Bytes that were read.
    pub(crate) n_bytes: u64,
    pub(crate) ranks: SlotRanks,
}

/// Elements from the first to the last.
enum ElementSource<'a> {
    Parts(Box<WholeReader<'a>>),
    Stored(Box<ElementWindows>),
    Loaded(&'a LoadedSlot),
}

/// A side of a pair: parts, or a tensor in one piece.
enum SideTensor<'a> {
    Parts(&'a WholeTensor, ReplicaClasses),
    /// As the file has it, read a piece at a time.
    Stored(&'a ExecutionSlot, Shape),
    Loaded(LoadedSlot),
}

/// Measures two slots.
pub(crate) fn measure_whole(
    slots: (&ExecutionSlot, &ExecutionSlot),
    layout: Option<Layout>,
) -> Result<WholeNumbers, MeasureFault> {
    let target = SideTensor::open(Party::Target, slots.0, layout)?;
    let golden = SideTensor::open(Party::Golden, slots.1, layout)?;
    let (a, b) = (target.shape(), golden.shape());
    // Checked late, because shapes follow from notes on either side.
    if !has_same_extents(&a, &b) {
        return Err(MeasureFault::Shape);
    }
    let mut best: Option<(TensorDifference, [Vec<bool>; 2])> = None;
    // If two groups of ranks are equally large, the other side decides which is right.
    for choice in 0..target.n_choices() {
        for other in 0..golden.n_choices() {
            let avoided = [target.avoided(choice), golden.avoided(other)];
            let found = difference([&target, &golden], &avoided, &a)?;
            let is_nearer = best.as_ref().is_none_or(|(known, _)| {
                // NaN is farther than any number.
                found.n_equal > known.n_equal
                    || (found.n_equal == known.n_equal && found.rel_l2 < known.rel_l2)
            });
            if is_nearer {
                best = Some((found, avoided));
            }
        }
    }
    let Some((found, avoided)) = best else {
        return Err(MeasureFault::Shape);
    };
    let inferred = [target.inferred(), golden.inferred()];
    let mut ranks = SlotRanks {
        n_target: target.n_parts(),
        n_golden: golden.n_parts(),
        has_unnoted_replicas: target.has_unnoted_replicas() || golden.has_unnoted_replicas(),
        is_varying: target.is_varying() || golden.is_varying(),
        is_inferred: inferred.iter().any(Option::is_some),
        is_unreduced: inferred.contains(&Some(InferredReplicas::Unreduced)),
        ..SlotRanks::default()
    };
    for (party, side) in [(Party::Target, &target), (Party::Golden, &golden)] {
        let mismatch = side.mismatch(party, &avoided[party.index()])?;
        ranks.replicas.extend(mismatch);
    }
    // Equal tensors have no worst element.
    if let Some(worst) = found.worst.filter(|_| found.n_equal < found.n) {
        note_worst(&mut ranks, [&target, &golden], worst, &avoided);
    }
    Ok(WholeNumbers {
        difference: found,
        n_bytes: target.n_bytes() + golden.n_bytes(),
        ranks,
    })
}

fn note_worst(
    ranks: &mut SlotRanks,
    sides: [&SideTensor<'_>; 2],
    worst: WorstElement,
    avoided: &[Vec<bool>; 2],
) {
    for (party, side) in Party::BOTH.into_iter().zip(sides) {
        let SideTensor::Parts(whole, _) = side else {
            continue;
        };
        // Real and imaginary parts are separate elements there.
        let position = worst.index / whole.dtype.parts().1 as u64;
        ranks.worst = Some(index_of(&whole.shape, position));
        let places = whole.places_of(position).into_iter();
        let places = places.filter(|(part, _)| {
            let mut all = whole.parts.iter().zip(&avoided[party.index()]);
            all.any(|(one, avoided)| std::ptr::eq(one, *part) && !avoided)
        });
        ranks
            .worst_parts
            .extend(places.map(|(part, index)| PartElement {
                side: party,
                rank: part.rank,
                coordinates: part.coordinates.clone(),
                index,
            }));
    }
}

fn extents(shape: &Shape) -> Vec<u64> {
    shape.dims().iter().map(|&dim| dim as u64).collect()
}

fn read_fault(party: Party) -> impl Fn(LoadError) -> MeasureFault {
    move |error| MeasureFault::Read(party, error)
}

impl<'a> SideTensor<'a> {
    fn open(
        party: Party,
        slot: &'a ExecutionSlot,
        layout: Option<Layout>,
    ) -> Result<SideTensor<'a>, MeasureFault> {
        if let Some(whole) = slot.whole() {
            let classes = ReplicaClasses::find(whole).map_err(|fault| match fault {
                ReplicaFault::Read(error) => MeasureFault::Read(party, error),
                ReplicaFault::Unexplained(message) => MeasureFault::InParts(party, message),
            })?;
            return Ok(SideTensor::Parts(whole, classes));
        }
        let wanted = layout.filter(|&wanted| slot.layout != Some(wanted));
        if wanted.is_none() {
            let elements = slot.windows().map_err(read_fault(party))?;
            return Ok(SideTensor::Stored(slot, elements.shape));
        }
        let loaded = slot.load(wanted).map_err(read_fault(party))?;
        Ok(SideTensor::Loaded(loaded))
    }

    fn shape(&self) -> Vec<u64> {
        match self {
            SideTensor::Parts(whole, _) => whole.shape.clone(),
            SideTensor::Stored(_, shape) => extents(shape),
            SideTensor::Loaded(loaded) => extents(loaded.shape()),
        }
    }

    fn n_parts(&self) -> usize {
        match self {
            SideTensor::Parts(whole, _) => whole.parts.len(),
            SideTensor::Stored(..) | SideTensor::Loaded(_) => 0,
        }
    }

    fn n_bytes(&self) -> u64 {
        match self {
            SideTensor::Parts(whole, _) => whole.parts.iter().map(|part| part.slot.n_bytes).sum(),
            SideTensor::Stored(slot, ..) => slot.n_bytes,
            SideTensor::Loaded(loaded) => loaded.view().bytes.len() as u64,
        }
    }

    fn has_unnoted_replicas(&self) -> bool {
        let SideTensor::Parts(whole, classes) = self else {
            return false;
        };
        classes.has_unnoted || whole.varying == Some(VaryingShare::Replicas)
    }

    fn inferred(&self) -> Option<InferredReplicas> {
        match self {
            SideTensor::Parts(whole, _) => whole.inferred,
            SideTensor::Stored(..) | SideTensor::Loaded(_) => None,
        }
    }

    fn is_varying(&self) -> bool {
        let SideTensor::Parts(whole, _) = self else {
            return false;
        };
        whole.varying == Some(VaryingShare::Parts)
    }

    fn n_choices(&self) -> usize {
        match self {
            SideTensor::Parts(_, classes) => classes.n_choices(),
            SideTensor::Stored(..) | SideTensor::Loaded(_) => 1,
        }
    }

    fn avoided(&self, choice: usize) -> Vec<bool> {
        match self {
            SideTensor::Parts(whole, classes) => classes.avoided(whole, choice),
            SideTensor::Stored(..) | SideTensor::Loaded(_) => Vec::new(),
        }
    }

    fn source(&self, party: Party, avoided: &[bool]) -> Result<ElementSource<'_>, MeasureFault> {
        match self {
            SideTensor::Parts(whole, _) => {
                let reader = WholeReader::new(whole, avoided.to_vec());
                let reader = reader.map_err(|message| MeasureFault::InParts(party, message))?;
                Ok(ElementSource::Parts(Box::new(reader)))
            }
            SideTensor::Stored(slot, ..) => {
                let elements = slot.windows().map_err(read_fault(party))?;
                Ok(ElementSource::Stored(Box::new(elements)))
            }
            SideTensor::Loaded(loaded) => Ok(ElementSource::Loaded(loaded)),
        }
    }

    /// Replicas that disagree with those that are read.
    fn mismatch(
        &self,
        party: Party,
        avoided: &[bool],
    ) -> Result<Option<ReplicaMismatch>, MeasureFault> {
        let SideTensor::Parts(whole, classes) = self else {
            return Ok(None);
        };
        if !avoided.contains(&true) {
            return Ok(None);
        }
        // The same tensor with the disagreeing parts, if there are any.
        let swapped = classes.swapped(whole, avoided);
        let sides = [self, self];
        let found = difference(sides, &[swapped, avoided.to_vec()], &whole.shape)?;
        // Other parts of the tensor have separate replicas.
        let members = (0..avoided.len()).filter(|&part| classes.has_part(part));
        let (apart, others): (Vec<usize>, Vec<usize>) = members.partition(|&part| avoided[part]);
        Ok(Some(ReplicaMismatch {
            side: party,
            apart: ranks_of(whole, apart.into_iter()),
            others: ranks_of(whole, others.into_iter()),
            is_tied: classes.n_choices() > 1,
            metrics: Metrics::from_difference(&found),
        }))
    }
}

/// Compares two sides from the first element to the last.
fn difference(
    sides: [&SideTensor<'_>; 2],
    avoided: &[Vec<bool>; 2],
    shape: &[u64],
) -> Result<TensorDifference, MeasureFault> {
    let mut pieces = Pieces::new(sides, avoided, shape)?;
    let mut found = PiecewiseDifference::new(pieces.dtypes());
    while let Some((target, golden, _)) = pieces.next()? {
        let added = found.add(target.view(), golden.view());
        added.map_err(|error| MeasureFault::Difference(chain(&error)))?;
    }
    Ok(found.finish())
}

/// Both sides, a piece at a time.
struct Pieces<'a> {
    sources: [ElementSource<'a>; 2],
    widths: [usize; 2],
    buffers: [Vec<u8>; 2],
    n: u64,
    at: u64,
}

/// The elements of a piece.
struct Piece<'a> {
    dtype: DType,
    shape: Shape,
    bytes: &'a [u8],
}

impl Piece<'_> {
    fn view(&self) -> TensorView<'_> {
        TensorView::new(self.dtype, &self.shape, self.bytes)
    }
}

impl<'a> Pieces<'a> {
    fn new(
        [target, golden]: [&'a SideTensor<'_>; 2],
        avoided: &[Vec<bool>; 2],
        shape: &[u64],
    ) -> Result<Pieces<'a>, MeasureFault> {
        let sources = [
            target.source(Party::Target, &avoided[0])?,
            golden.source(Party::Golden, &avoided[1])?,
        ];
        let mut widths = [0; 2];
        for (width, source) in widths.iter_mut().zip(&sources) {
            let dtype = source.dtype();
            *width = dtype.bytes().ok_or_else(|| {
                MeasureFault::Difference(format!("elements of {dtype} have no bytes of their own"))
            })?;
        }
        Ok(Pieces {
            sources,
            widths,
            buffers: [Vec::new(), Vec::new()],
            n: shape.iter().product(),
            at: 0,
        })
    }

    fn dtypes(&self) -> [DType; 2] {
        [0, 1].map(|i| self.sources[i].dtype())
    }

    /// The next piece of both, and the position of its first element.
    fn next(&mut self) -> Result<Option<(Piece<'_>, Piece<'_>, u64)>, MeasureFault> {
        // A whole number of blocks, so that sums are those of one pass.
        let n = (self.n - self.at).min(N_PIECE as u64) as usize;
        if n == 0 {
            return Ok(None);
        }
        let first = self.at;
        self.at += n as u64;
        let dtypes = self.dtypes();
        for (i, party) in Party::BOTH.into_iter().enumerate() {
            let buffer = &mut self.buffers[i];
            buffer.clear();
            let read = match &mut self.sources[i] {
                ElementSource::Parts(reader) => reader.read(first, n, buffer),
                ElementSource::Stored(elements) => {
                    let begin = first as usize * self.widths[i];
                    let bytes = elements.bytes(begin..begin + n * self.widths[i]);
                    bytes
                        .map(|bytes| buffer.extend_from_slice(bytes))
                        .map_err(LoadError::from)
                }
                ElementSource::Loaded(_) => Ok(()),
            };
            read.map_err(read_fault(party))?;
        }
        let [target, golden] = [0, 1].map(|i| {
            let bytes = match &self.sources[i] {
                ElementSource::Parts(_) | ElementSource::Stored(_) => &self.buffers[i][..],
                ElementSource::Loaded(loaded) => {
                    let begin = first as usize * self.widths[i];
                    let bytes = loaded.view().bytes;
                    bytes
                        .get(begin..begin + n * self.widths[i])
                        .unwrap_or_default()
                }
            };
            Piece {
                dtype: dtypes[i],
                shape: Shape::new([n]).unwrap_or_default(),
                bytes,
            }
        });
        Ok(Some((target, golden, first)))
    }
}

impl ElementSource<'_> {
    fn dtype(&self) -> DType {
        match self {
            ElementSource::Parts(reader) => reader.dtype(),
            ElementSource::Stored(elements) => elements.dtype,
            ElementSource::Loaded(loaded) => loaded.dtype(),
        }
    }
}

/// The elements of two slots that differ by more than a tolerance, and the parts that hold them.
/// `ranks` is what measuring found, and gets the parts.
pub(crate) fn differing_parts(
    slots: (&ExecutionSlot, &ExecutionSlot),
    layout: Option<Layout>,
    tolerance: f64,
    ranks: &mut SlotRanks,
) -> Option<DifferingElements> {
    // They were read before; a later change is not a reason to drop the result.
    let target = SideTensor::open(Party::Target, slots.0, layout).ok()?;
    let golden = SideTensor::open(Party::Golden, slots.1, layout).ok()?;
    let shape = target.shape();
    if shape != golden.shape() {
        return None;
    }
    let avoided = [
        target.avoided_before(Party::Target, ranks),
        golden.avoided_before(Party::Golden, ranks),
    ];
    // The target is the side that is asked about; its parts are named if it has any.
    let (party, whole) = match (&target, &golden) {
        (SideTensor::Parts(whole, _), _) => (Party::Target, *whole),
        (_, SideTensor::Parts(whole, _)) => (Party::Golden, *whole),
        _ => return None,
    };
    // Counted by box: parts are few boxes each, and elements many.
    let mut counts = vec![0_u64; whole.grid.cells.len()];
    let mut ranges = vec![[u64::MAX, 0]; shape.len()];
    let mut n_all = 0;
    let mut pieces = Pieces::new([&target, &golden], &avoided, &shape).ok()?;
    while let Some((a, b, first)) = pieces.next().ok()? {
        let visited = visit_apart(a.view(), b.view(), tolerance, &mut |position| {
            let position = first + position as u64;
            n_all += 1;
            counts[whole.cell_of(position)] += 1;
            for (range, index) in ranges.iter_mut().zip(index_of(&shape, position)) {
                *range = [range[0].min(index), range[1].max(index + 1)];
            }
        });
        visited.ok()?;
    }
    if n_all == 0 {
        return None;
    }
    note_parts(ranks, (party, whole), &counts, &avoided[party.index()]);
    Some(DifferingElements {
        tolerance,
        n: n_all,
        shape,
        ranges,
    })
}

/// Notes the parts that hold elements which differ, by the number of these in each box.
fn note_parts(
    ranks: &mut SlotRanks,
    (party, whole): (Party, &WholeTensor),
    counts: &[u64],
    is_avoided: &[bool],
) {
    let mut by_parts: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for (cell, &n) in whole.grid.cells.iter().zip(counts) {
        let read = cell
            .iter()
            .copied()
            .filter(|&part| !is_avoided[part as usize]);
        *by_parts.entry(read.collect()).or_insert(0) += n;
    }
    let n_sets = by_parts.len();
    let mut apart: Vec<PartApart> = by_parts
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(parts, n)| {
            let first = parts
                .first()
                .and_then(|&part| whole.parts.get(part as usize));
            let is_one = parts.iter().all(|&part| {
                let of_part = &whole.parts[part as usize].coordinates;
                first.is_some_and(|first| first.coordinates == *of_part)
            });
            PartApart {
                side: party,
                ranks: ranks_of(whole, parts.iter().map(|&part| part as usize)),
                // Contributions to a sum are at several places.
                coordinates: first
                    .filter(|_| is_one)
                    .map(|first| first.coordinates.clone())
                    .unwrap_or_default(),
                region: first
                    .map(|first| whole.region_of(first))
                    .unwrap_or_default(),
                n,
            }
        })
        .collect();
    // Stable: of parts with as many the first rank comes first.
    apart.sort_by_key(|part| std::cmp::Reverse(part.n));
    ranks.is_everywhere = apart.len() == n_sets;
    ranks.apart = apart;
}

impl SideTensor<'_> {
    /// The parts that were not read when the pair was measured.
    fn avoided_before(&self, party: Party, ranks: &SlotRanks) -> Vec<bool> {
        let SideTensor::Parts(whole, _) = self else {
            return Vec::new();
        };
        let of_side = ranks.replicas.iter().filter(|one| one.side == party);
        let apart: Vec<u32> = of_side.flat_map(|one| one.apart.clone()).collect();
        let parts = whole.parts.iter();
        parts
            .map(|part| part.rank.is_some_and(|rank| apart.contains(&rank)))
            .collect()
    }
}
