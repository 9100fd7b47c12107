//! Operators that write in place to what others read.

use opscope_store::record::SlotSide;

use super::{Edges, N_MEMBERS_MAX};
use crate::compare::attribution::kinds::{is_in_place, moves_elements};
use crate::compare::matching::{SlotRef, is_view_type};
use crate::compare::program_names::differing_attributes;
use crate::compare::result::{
    Cause, Comparison, OperatorName, OperatorResult, PartingOperator, SlotKey, SlotResult,
    VerdictLevel, WiringChange,
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
            if let Some(found) = self.written_elsewhere(reader, operators) {
                return Some((reader.index, found));
            }
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

    /// The view through which the last writer wrote the same as golden's to another part of what an
    /// operator reads. Statistics of the whole may be the same.
    fn written_elsewhere(
        &self,
        reader: &OperatorResult,
        operators: &[OperatorResult],
    ) -> Option<PartingOperator> {
        let is_apart = reader.slots.iter().any(SlotResult::is_apart);
        let mut slots = self.pairs[reader.index].slots.iter().filter(|_| is_apart);
        slots.find_map(|slot| {
            let writers = [
                self.dumps[0].writer_of(slot.target)?,
                self.dumps[1].writer_of(slot.golden)?,
            ];
            let row = self.row_of(writers)?;
            let mut written = operators[row].inputs().skip(1).peekable();
            written.peek()?;
            if !written.all(|slot| slot.level == VerdictLevel::Pass) {
                return None;
            }
            let mut views = writers;
            for _ in 0..N_MEMBERS_MAX {
                let made = [0, 1].map(|side| {
                    let first = self.dumps[side].inputs_of(views[side]).next()?;
                    let made = self.dumps[side].producer_of(first)?;
                    let op_type = &self.dumps[side].runs[made.run].op_type;
                    let is_view = is_view_type(op_type) || moves_elements(op_type);
                    (is_view && !is_in_place(op_type)).then_some(made.run)
                });
                views = [made[0]?, made[1]?];
                let view = &operators[self.row_of(views)?];
                let is_given = view.inputs().all(|slot| slot.level == VerdictLevel::Pass);
                if is_given && !differing_attributes(self.dumps, views).is_empty() {
                    let mut found = overwriting(view.index, view.target.last()?.clone(), reader)?;
                    found.others.clear();
                    return Some(found);
                }
            }
            None
        })
    }

    /// The index of the result on an execution of each side.
    fn row_of(&self, [target, golden]: [usize; 2]) -> Option<usize> {
        let row = self.operators[0].get(&target).copied()?;
        (self.operators[1].get(&golden) == Some(&row)).then_some(row)
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
