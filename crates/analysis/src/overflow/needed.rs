//! The magnitude that an infinite result would have in a wider dtype.

use opscope_overflow::InfiniteResult;
use opscope_store::record::SlotSide;

use crate::compare::side::{ComparedDump, LoadedSlot};

/// Recomputes an execution's infinite results from its inputs in the dump; `None` if the dump lacks
/// them, or if the operator is too complex.
pub fn needed(dump: &ComparedDump, run: usize) -> Option<f64> {
    let execution = dump.runs.get(run)?;
    let description = dump.description_of(run);
    let described = description.and_then(|(_, graph, index)| graph.operators.get(index));
    let attribute = |name: &str| {
        let text = described?.attributes.get(name);
        text.map(String::as_str)
    };
    // A missing input may be the one that counts, so all of them have to be there.
    let slots = execution.slots.iter();
    let inputs = slots.filter(|slot| slot.side == SlotSide::Input);
    let inputs = inputs.map(|slot| slot.load(None).ok());
    let inputs = inputs.collect::<Option<Vec<LoadedSlot>>>()?;
    let inputs: Vec<_> = inputs.iter().map(LoadedSlot::view).collect();
    let slots = execution.slots.iter();
    let outputs = slots.filter(|slot| slot.side == SlotSide::Output);
    let needed = outputs
        .flat_map(|slot| slot.load(None))
        .filter_map(|output| {
            let result = InfiniteResult {
                op_type: &execution.op_type,
                attribute: &attribute,
                inputs: &inputs,
                output: output.view(),
            };
            result.needed()
        });
    needed.reduce(f64::max)
}
