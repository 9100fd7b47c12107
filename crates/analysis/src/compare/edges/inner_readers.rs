//! Operators that read a value from inside of what is one operator on the golden side.

use std::collections::{HashMap, HashSet};

use opscope_store::record::SlotSide;

use super::Edges;
use crate::compare::matching::{SlotRef, is_same_type};
use crate::compare::result::{
    Cause, Comparison, OperatorName, OperatorResult, PartingOperator, SlotResult, VerdictLevel,
    WiringChange,
};

impl Edges<'_> {
    /// Names the operator that reads a value from inside of what is one operator on the golden side,
    /// instead of the one that makes it: golden has no such value, and needs none.
    pub(super) fn name_inner_readers(&self, comparison: &mut Comparison) {
        let readers = self.readers();
        let mut found = Vec::new();
        let mut explained = HashSet::new();
        for parting in &comparison.partings {
            let Some((inner, outer)) = self.inner(parting, &comparison.operators) else {
                continue;
            };
            let members = &self.pairs[outer].target;
            let all = readers.iter().filter(|(made, _)| made.run == inner);
            let mut outside: Vec<usize> = all
                .flat_map(|(_, runs)| runs.iter().copied())
                .filter(|run| !members.contains(run))
                .collect();
            outside.sort_unstable();
            let outside = outside.into_iter();
            let read = outside.filter_map(|run| self.inner_reader(run, inner, &readers));
            let n = found.len();
            found.extend(read);
            if found.len() > n {
                explained.insert((parting.operator, parting.name.clone()));
            }
        }
        let partings = &mut comparison.partings;
        partings.retain(|known| !explained.contains(&(known.operator, known.name.clone())));
        for parting in found {
            // The inside of golden's operator is not a separate error.
            partings.retain(|known| known.operator != parting.operator);
            partings.push(parting);
        }
        partings.retain(|parting| {
            let inner = self.inner(parting, &comparison.operators);
            let is_explained = inner.is_some_and(|(_, outer)| {
                let mut slots = comparison.operators[outer].slots.iter();
                slots.any(SlotResult::is_output)
            });
            parting.change == Some(WiringChange::ReadsInner) || !is_explained
        });
        partings.sort_by_key(|one| one.operator);
    }

    /// The execution that a parting names, and the operator of the list that it is a part of, where
    /// that is one operator on the golden side and agrees.
    fn inner(
        &self,
        parting: &PartingOperator,
        operators: &[OperatorResult],
    ) -> Option<(usize, usize)> {
        if !parting.rewired.is_empty() {
            return None;
        }
        let agreeing = operators.iter().filter(|operator| {
            let is_listed = operator.target.last() == Some(&parting.name);
            operator.level == VerdictLevel::Pass
                && !is_listed
                && self.is_one_in_golden(operator.index)
        });
        let mut agreeing = agreeing.map(|operator| operator.index);
        agreeing.find_map(|outer| {
            let dump = self.dumps[0];
            let last = *self.pairs[outer].target.last()?;
            let read = dump
                .inputs_of(last)
                .filter_map(|slot| dump.producer_of(slot));
            let mut read = read.map(|made| made.run);
            let inner = read.find(|run| {
                let listed = self.operators[0].get(run);
                let is_part = listed.is_none_or(|listed| *listed == outer);
                is_part && OperatorName::for_execution(&dump.runs[*run]) == parting.name
            })?;
            Some((inner, outer))
        })
    }

    /// Whether several operators of the target, or one of another type, are one operator of golden.
    fn is_one_in_golden(&self, operator: usize) -> bool {
        let pair = &self.pairs[operator];
        let [Some(&target), Some(&golden)] = [pair.target.last(), pair.golden.last()] else {
            return false;
        };
        let [target, golden] = [&self.dumps[0].runs[target], &self.dumps[1].runs[golden]];
        pair.target.len() > 1 || !is_same_type(target, golden)
    }

    /// The finding on an operator that reads a value which golden has inside of another one alone.
    fn inner_reader(
        &self,
        run: usize,
        inner: usize,
        readers: &HashMap<SlotRef, Vec<usize>>,
    ) -> Option<PartingOperator> {
        let dump = self.dumps[0];
        let slot = dump.inputs_of(run).find(|slot| {
            dump.producer_of(*slot)
                .is_some_and(|made| made.run == inner)
        })?;
        let slots = dump.runs[run].slots.iter().enumerate();
        let mut outputs = slots.filter(|(_, slot)| slot.side == SlotSide::Output);
        let listed = self.operators[0].get(&run).copied();
        Some(PartingOperator {
            operator: listed.or_else(|| {
                outputs.find_map(|(slot, _)| {
                    let next = self.readers_of(SlotRef { run, slot }, readers);
                    next.into_iter().next()
                })
            })?,
            name: OperatorName::for_execution(&dump.runs[run]),
            slot: dump.runs[run].slots[slot.slot].key(),
            cause: Cause::Own,
            change: Some(WiringChange::ReadsInner),
            ..PartingOperator::default()
        })
    }
}
