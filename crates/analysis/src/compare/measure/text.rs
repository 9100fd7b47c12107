//! Text, which has no distance.

use opscope_tensor::DType;

use super::{MeasureFault, Outcome, with_other_shape};
use crate::compare::matching::{MatchedDumps, SlotPair};
use crate::compare::result::{Evidence, MetricId, Metrics, Party, SlotResult};
use crate::compare::side::{ExecutionSlot, LoadError};
use crate::compare::statistics;
use crate::elements::{ElementsAccess, NumpyArray};

/// Whether both tensors hold text.
pub(super) fn are_text(target: &ExecutionSlot, golden: &ExecutionSlot) -> bool {
    [target.dtype, golden.dtype] == [Some(DType::String); 2]
}

/// Compares the bytes of two tensors of text: they are equal or not.
///
/// # Errors
/// The skip that takes the place of a result, if a side cannot be read.
pub(super) fn compare_text(sides: MatchedDumps<'_>, pair: SlotPair, result: SlotResult) -> Outcome {
    let slots = [
        sides.target.slot(pair.target),
        sides.golden.slot(pair.golden),
    ];
    if !statistics::has_same_extents(slots[0].dims(), slots[1].dims()) {
        return Ok((with_other_shape(result), 0));
    }
    let kinds = slots.map(|slot| slot.record().elements.as_ref().and_then(|place| place.kind));
    if kinds[0] != kinds[1] {
        // Each kind of file encodes text in its own way.
        let message = "text is compared between files of one kind only";
        let fault = MeasureFault::Difference(message.to_owned());
        return Err(Box::new(fault.skip(sides, pair)));
    }
    let mut texts = Vec::new();
    for (party, slot) in [Party::Target, Party::Golden].into_iter().zip(slots) {
        let text = NumpyArray::raw(&slot.elements_record(), ElementsAccess::Read);
        let text = text.map_err(|error| {
            let fault = MeasureFault::Read(party, LoadError::Elements(error));
            Box::new(fault.skip(sides, pair))
        })?;
        texts.push(text);
    }
    let is_same = texts[0].bytes() == texts[1].bytes();
    let mismatch = f64::from(u8::from(!is_same));
    let n_bytes = texts.iter().map(|text| text.bytes().len() as u64).sum();
    let found = SlotResult {
        evidence: Evidence::Digest,
        metrics: Metrics::from(vec![(MetricId::DigestMismatch, mismatch)]),
        ..result
    };
    Ok((found, n_bytes))
}
