//! Operators of the target that compute in a shorter dtype than those around them.

use std::collections::HashMap;

use opscope_store::record::SlotSide;
use opscope_tensor::DType;

use crate::compare::matching::{MatchedDumps, RunPair, SlotRef, is_view_type};
use crate::compare::result::{NarrowOperator, OperatorName};
use crate::compare::side::ComparedDump;

/// More than one in so many operators is not an island: the model was converted, or runs under
/// autocast.
const SHARE: usize = 8;

/// Operators with a float output that is shorter than golden's, where nearly all others have
/// golden's dtype. Golden's is that of the matching output, else its shortest: a dump of values
/// shows no more. Later steps show the same operators again.
pub(super) fn islands(sides: MatchedDumps<'_>) -> Vec<NarrowOperator> {
    let MatchedDumps {
        target,
        golden,
        matching,
        ..
    } = sides;
    let Some(first) = target.runs.first().map(|run| run.place.step) else {
        return Vec::new();
    };
    let pairs = matching.pairs.iter().flat_map(|pair| &pair.slots);
    let partners: HashMap<SlotRef, SlotRef> = pairs
        .filter(|slots| target.runs[slots.target.run].place.step == first)
        .map(|slots| (slots.target, slots.golden))
        .collect();
    let shortest = (0..golden.runs.len())
        .filter_map(|run| float_output(golden, run))
        .map(|(_, dtype)| dtype)
        .min_by_key(|dtype| dtype.bits());
    let floats: Vec<(usize, [DType; 2])> = (0..target.runs.len())
        .filter(|&run| target.runs[run].place.step == first)
        .filter_map(|run| {
            let (slot, dtype) = float_output(target, run)?;
            let of_golden = match partners.get(&slot) {
                Some(&slot) => float_dtype(golden, slot),
                None => shortest,
            };
            Some((run, [dtype, of_golden?]))
        })
        .collect();
    let is_narrow = |dtypes: &[DType; 2]| dtypes[0].bits() < dtypes[1].bits();
    let (views, mut narrow): (Vec<_>, Vec<_>) = (floats.iter())
        .filter(|(_, dtypes)| is_narrow(dtypes))
        .partition(|(run, _)| is_view_type(&target.runs[*run].op_type));
    // What rounds a value there and back is an island itself.
    if narrow.is_empty() {
        narrow = views;
    }
    // In the smallest models a single one is an island, if enough others surround it.
    if narrow.len() * SHARE > floats.len() && !(narrow.len() == 1 && floats.len() > 2) {
        return Vec::new();
    }
    let named = |&&(run, dtypes): &&(usize, [DType; 2])| named(sides, run, dtypes);
    narrow.iter().filter_map(named).collect()
}

/// An operator with its place among the pairs: its own, else the next one's.
fn named(
    sides: MatchedDumps<'_>,
    run: usize,
    [target, golden]: [DType; 2],
) -> Option<NarrowOperator> {
    let pairs = &sides.matching.pairs;
    let own = pairs.iter().position(|pair| pair.target.contains(&run));
    let next = || {
        let is_after = |pair: &RunPair| pair.target.first() > Some(&run);
        pairs.iter().position(is_after)
    };
    let operator = own.or_else(next).or_else(|| pairs.len().checked_sub(1))?;
    let is_listed = pairs[operator].target.last() == Some(&run);
    Some(NarrowOperator {
        operator,
        name: (!is_listed).then(|| OperatorName::for_execution(&sides.target.runs[run])),
        target: target.name().to_owned(),
        golden: golden.name().to_owned(),
    })
}

/// The first output of an execution, if it has floats.
fn float_output(dump: &ComparedDump, run: usize) -> Option<(SlotRef, DType)> {
    let slots = &dump.runs[run].slots;
    let slot = (slots.iter()).position(|slot| slot.side == SlotSide::Output)?;
    let slot = SlotRef { run, slot };
    Some((slot, float_dtype(dump, slot)?))
}

fn float_dtype(dump: &ComparedDump, slot: SlotRef) -> Option<DType> {
    let dtype = dump.runs[slot.run].slots[slot.slot].dtype?;
    dtype.is_float().then_some(dtype)
}
