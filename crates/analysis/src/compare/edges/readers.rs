//! Which operators read each output of the target's.

use std::collections::{BTreeSet, HashMap, HashSet};

use opscope_store::file_format::graph_json::GraphFile;
use opscope_store::record::SlotSide;

use super::Edges;
use crate::compare::attribution::kinds::has_body;
use crate::compare::matching::SlotRef;
use crate::compare::result::Comparison;
use crate::compare::side::{ComparedDump, RunPlace};

/// Maximum number of operators without a partner that are followed to the next one with a partner.
const N_PASSED_MAX: usize = 64;

impl Edges<'_> {
    /// Operators of the list that read each output of the target's, also through operators that
    /// have no partner. An output that was not compared has the index after the last slot.
    pub(super) fn note_readers(&self, comparison: &mut Comparison) {
        let readers = self.readers();
        let updated = self.updated();
        let mut used = UsedNames::default();
        for (index, operator) in comparison.operators.iter_mut().enumerate() {
            let pair = &self.pairs[index];
            let mut found = BTreeSet::new();
            for made in pair.target.iter().flat_map(|&run| self.outputs_of(run)) {
                let place = pair.slots.iter().position(|slot| slot.target == made);
                let next = self.readers_of(made, &readers);
                let next = next.into_iter().filter(|&next| next != index);
                found.extend(next.map(|next| [place.unwrap_or(operator.slots.len()), next]));
            }
            for (slot, result) in pair.slots.iter().zip(&mut operator.slots) {
                result.is_updated = updated.contains(&slot.target);
            }
            operator.is_unread = found.is_empty() && {
                let mut runs = pair.target.iter();
                runs.all(|&run| used.is_unread(self.dumps[0], run))
            };
            operator.readers = found.into_iter().collect();
        }
    }

    /// The last values that each place of the target writes to the program's tensors.
    fn updated(&self) -> HashSet<SlotRef> {
        let [dump, _] = self.dumps;
        let mut places: HashMap<&RunPlace, Vec<usize>> = HashMap::new();
        for (run, execution) in dump.runs.iter().enumerate() {
            places.entry(&execution.place).or_default().push(run);
        }
        let updated = places.values().flat_map(|runs| dump.updated_tensors(runs));
        updated.map(|(_, slot)| slot).collect()
    }

    /// Executions of the target that read each of its outputs.
    pub(super) fn readers(&self) -> HashMap<SlotRef, Vec<usize>> {
        let [dump, _] = self.dumps;
        let mut readers: HashMap<SlotRef, Vec<usize>> = HashMap::new();
        for run in 0..dump.runs.len() {
            for made in dump
                .inputs_of(run)
                .filter_map(|slot| dump.producer_of(slot))
            {
                readers.entry(made).or_default().push(run);
            }
        }
        readers
    }

    pub(super) fn readers_of(
        &self,
        made: SlotRef,
        readers: &HashMap<SlotRef, Vec<usize>>,
    ) -> BTreeSet<usize> {
        let of = |made: &SlotRef| readers.get(made).into_iter().flatten().copied();
        let mut found = BTreeSet::new();
        let mut passed = BTreeSet::new();
        let mut open: Vec<usize> = of(&made).collect();
        while let Some(run) = open.pop() {
            // An operator with a partner is judged separately; one without only passes values on.
            if let Some(&operator) = self.operators[0].get(&run) {
                found.insert(operator);
            } else if passed.len() < N_PASSED_MAX && passed.insert(run) {
                open.extend(self.outputs_of(run).flat_map(|made| of(&made)));
            }
        }
        found
    }

    /// The outputs of an execution of the target.
    pub(super) fn outputs_of(&self, run: usize) -> impl Iterator<Item = SlotRef> {
        let slots = self.dumps[0].runs[run].slots.iter().enumerate();
        let outputs = slots.filter(|(_, slot)| slot.side == SlotSide::Output);
        outputs.map(move |(slot, _)| SlotRef { run, slot })
    }
}

/// The names of the values of each graph that an operator reads or the graph returns; none of a
/// graph that is not of ONNX, or that has bodies, whose results are no operator's inputs.
#[derive(Default)]
struct UsedNames<'a>(HashMap<*const GraphFile, Option<HashSet<&'a str>>>);

impl<'a> UsedNames<'a> {
    /// Whether an execution has no effect: nothing reads its outputs.
    fn is_unread(&mut self, dump: &'a ComparedDump, run: usize) -> bool {
        let Some((_, graph, operator)) = dump.description_of(run) else {
            return false;
        };
        let used = self.0.entry(graph).or_insert_with(|| {
            let operators = graph.operators.iter();
            let mut types = operators.clone().map(|operator| operator.op_type.as_str());
            let is_listed = !(graph.opsets.is_empty() || graph.results.is_empty());
            let has_bodies = types.any(has_body);
            let read = operators.flat_map(|operator| operator.inputs.iter().flatten());
            let used = read.chain(&graph.results).map(String::as_str);
            (is_listed && !has_bodies).then(|| used.collect())
        });
        let outputs = graph.operators[operator].outputs.iter().flatten();
        let is_used =
            |used: &HashSet<&str>| outputs.clone().any(|name| used.contains(name.as_str()));
        used.as_ref().is_some_and(|used| !is_used(used))
    }
}
