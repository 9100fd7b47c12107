//! Finds an operator's inputs in a dump: in its own record, its producer's, or another consumer's.

use std::collections::HashMap;
use std::sync::Arc;

use opscope_analysis::compare::matching::SlotRef;
use opscope_analysis::compare::side::{
    ComparedDump, ExecutionSlot, LoadError, OperatorExecution, RunPlace, positions,
};
use opscope_store::record::SlotSide;
use opscope_tensor::{Layout, Tensor};

use super::ReplayRefusal;
use super::operators::LocatedOperators;
use crate::exit::{UNREADABLE, chain};

/// Values of a dump by place, source and name.
pub(super) struct DumpedValues<'a> {
    side: &'a ComparedDump,
    by_name: HashMap<(Arc<RunPlace>, usize, String), Vec<SlotRef>>,
}

/// A value with its origin, if that is not the operator's own record.
pub(super) type SourcedTensor = (Tensor, Option<String>);

impl<'a> DumpedValues<'a> {
    pub(super) fn collect(
        side: &'a ComparedDump,
        located: &LocatedOperators<'_>,
    ) -> DumpedValues<'a> {
        let mut by_name: HashMap<_, Vec<SlotRef>> = HashMap::new();
        for (index, run) in side.runs.iter().enumerate() {
            let Ok((source, operators, operator)) = located.get(index) else {
                continue;
            };
            let operator = &operators.source.operators()[operator].operator;
            for (wanted, names) in [
                (SlotSide::Input, &operator.inputs),
                (SlotSide::Output, &operator.outputs),
            ] {
                for (slot, position) in slots(run, wanted, names) {
                    if let Some(name) = names.get(position).filter(|name| !name.is_empty()) {
                        // A name identifies a value only within one step of one model on one rank.
                        let key = (run.place.clone(), source, name.clone());
                        let place = SlotRef { run: index, slot };
                        by_name.entry(key).or_default().push(place);
                    }
                }
            }
        }
        DumpedValues { side, by_name }
    }

    /// An input from the operator's own record; `None` if that lacks its elements.
    pub(super) fn own(
        &self,
        run: usize,
        names: &[String],
        position: usize,
    ) -> Result<Option<Tensor>, ReplayRefusal> {
        match self.own_slot(run, names, position) {
            // A damaged input is an error: a value from elsewhere may differ.
            Some(slot) if slot.has_elements || slot.problem.is_some() => load(slot).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// The slot of an input.
    pub(super) fn own_slot(
        &self,
        run: usize,
        names: &[String],
        position: usize,
    ) -> Option<&ExecutionSlot> {
        let run = &self.side.runs[run];
        let slots = slots(run, SlotSide::Input, names).into_iter();
        let mut found = slots.filter(|(_, known)| *known == position);
        found.next().map(|(slot, _)| &run.slots[slot])
    }

    /// The value of this name, as produced before a run or read by another operator.
    pub(super) fn elsewhere(
        &self,
        run: usize,
        source: usize,
        name: &str,
    ) -> Result<Option<SourcedTensor>, ReplayRefusal> {
        let place = self.side.runs[run].place.clone();
        let all = self.by_name.get(&(place, source, name.to_owned()));
        let all: Vec<&SlotRef> = all
            .into_iter()
            .flatten()
            .filter(|place| place.run != run && self.slot(**place).has_elements)
            .collect();
        let is_output = |place: &&&SlotRef| self.slot(***place).side == SlotSide::Output;
        // Not every dump has an order.
        let made = all
            .iter()
            .rev()
            .find(|place| place.run < run && is_output(place));
        let found = made.or_else(|| all.iter().find(is_output)).or(all.first());
        let Some(&&place) = found else {
            return Ok(None);
        };
        let slot = self.slot(place);
        let owner = &self.side.runs[place.run].op_name;
        let origin = format!("{} of `{owner}`", slot.key());
        Ok(Some((load(slot)?, Some(origin))))
    }

    fn slot(&self, place: SlotRef) -> &ExecutionSlot {
        &self.side.runs[place.run].slots[place.slot]
    }
}

/// The slots of a run's side, with their positions in the operator.
pub(super) fn slots(
    run: &OperatorExecution,
    side: SlotSide,
    names: &[String],
) -> Vec<(usize, usize)> {
    let is_present: Vec<bool> = names.iter().map(|name| !name.is_empty()).collect();
    positions(run, side, &is_present)
}

/// The elements of a slot, in a layout that models use.
pub(super) fn load(slot: &ExecutionSlot) -> Result<Tensor, ReplayRefusal> {
    // The engine computes in ONNX's axis order and does not support device layouts.
    let refuse = |text: String| ReplayRefusal::new(UNREADABLE, format!("{}: {text}", slot.key()));
    let layout = match slot.layout {
        Some(Layout::Nc1hwc0 | Layout::FractalZ) => Some(Layout::Nchw),
        Some(Layout::FractalNz) => Some(Layout::Nd),
        _ => None,
    };
    let loaded = slot.load(layout);
    let loaded = loaded.map_err(|error: LoadError| refuse(chain(&error)))?;
    let view = loaded.view();
    let tensor = Tensor::from_vec(view.dtype, view.shape.clone(), view.bytes.to_vec());
    tensor.map_err(|error| refuse(chain(&error)))
}
