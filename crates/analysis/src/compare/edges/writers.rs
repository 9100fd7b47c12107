//! Operators that write in place to what others read.

use opscope_store::record::SlotSide;

use super::Edges;
use crate::compare::attribution::kinds::is_in_place;
use crate::compare::matching::SlotRef;
use crate::compare::result::{
    Cause, Comparison, OperatorName, OperatorResult, PartingOperator, SlotKey, WiringChange,
};

impl Edges<'_> {
    /// Names the operator that overwrote a value in place, instead of the operator that reads it.
    pub(super) fn name_writers(&self, comparison: &mut Comparison) {
        for parting in &mut comparison.partings {
            let reader = &comparison.operators[parting.operator];
            let mut inputs = parting.rewired.iter();
            let Some(writer) = inputs.find_map(|input| self.writer(reader, input.slot)) else {
                continue;
            };
            let own = comparison.operators[writer].target.last();
            if let Some(found) = own.and_then(|own| overwriting(writer, own.clone(), reader)) {
                *parting = found;
            }
        }
        let operators = &comparison.operators;
        let readers = operators.iter().filter_map(|reader| {
            let writer = self.writer_through_view(reader)?;
            let name = OperatorName::for_execution(&self.dumps[0].runs[writer]);
            // One without a partner has no row.
            let row = self.operators[0].get(&writer).copied();
            let found = overwriting(row.unwrap_or(reader.index), name, reader)?;
            Some((reader.index, found))
        });
        let readers: Vec<(usize, PartingOperator)> = readers.collect();
        for (reader, found) in readers {
            let partings = &mut comparison.partings;
            partings.retain(|known| known.operator != reader);
            // Later readers have the same cause.
            if partings.iter().all(|known| known.name != found.name) {
                partings.push(found);
            }
        }
        comparison.partings.sort_by_key(|one| one.operator);
    }

    /// The operator that changed what another one reads by writing to a view of it, as none does on
    /// the golden side.
    fn writer_through_view(&self, reader: &OperatorResult) -> Option<usize> {
        let mut inputs = self.inputs_apart(reader);
        inputs.find_map(|(_, [read, other], _)| {
            let writer = self.dumps[0].writer_of(read)?;
            let read = self.dumps[1].producer_of(other)?;
            let writes = is_in_place(&self.dumps[0].runs[writer].op_type);
            // Golden's operator reads what there was before.
            let maker = *self.operators[1].get(&read.run)?;
            let made = *self.pairs[maker].target.last()?;
            (writes && made < writer).then_some(writer)
        })
    }

    /// The operator that overwrote in place the value that the input reads on the golden side.
    fn writer(&self, reader: &OperatorResult, slot: SlotKey) -> Option<usize> {
        let pair = &self.pairs[reader.index];
        let [written, read] = [(0, &pair.target), (1, &pair.golden)].map(|(side, runs)| {
            let run = *runs.last()?;
            let mut slots = self.dumps[side].runs[run].slots.iter();
            let at = slots.position(|known| known.key() == slot)?;
            Some(self.dumps[side].producer_of(SlotRef { run, slot: at })?.run)
        });
        let (written, read) = (written?, read?);
        if !is_in_place(&self.dumps[0].runs[written].op_type) {
            return None;
        }
        let first = self.dumps[0].inputs_of(written).next()?;
        let before = self.dumps[0].producer_of(first)?.run;
        let is_same = self.operators[0].get(&before) == self.operators[1].get(&read);
        let writer = self.operators[0].get(&written).copied();
        writer.filter(|_| is_same && self.operators[0].contains_key(&before))
    }
}

/// The finding on an operator that overwrites what another one reads.
fn overwriting(
    row: usize,
    writer: OperatorName,
    reader: &OperatorResult,
) -> Option<PartingOperator> {
    Some(PartingOperator {
        operator: row,
        name: writer,
        slot: SlotKey {
            side: SlotSide::Output,
            index: 0,
        },
        cause: Cause::Own,
        others: vec![reader.target.last()?.clone()],
        change: Some(WiringChange::Overwrites),
        ..PartingOperator::default()
    })
}
