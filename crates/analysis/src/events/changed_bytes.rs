//! The bytes of a watched value before and after it was overwritten, if the dump has both.

use std::ops::Range;
use std::path::Path;

use opscope_store::file_format::overwrites_json::OverwriteEntry;
use opscope_store::record::SlotSide;
use opscope_tensor::DType;

use super::{DumpEvent, EventKind, is_below};
use crate::compare::side::ComparedDump;
use crate::element::ElementValue;
use crate::elements::LastFile;

/// Maximum number of ranges shown.
const N_RANGES_MAX: usize = 16;
/// Maximum number of bytes shown per range.
const N_BYTES_MAX: usize = 64;
/// Maximum number of elements shown.
const N_ELEMENTS_MAX: usize = 32;

/// A watched value before and after it was overwritten.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedBytes {
    /// The execution whose output is the old value.
    pub before: usize,
    /// The execution whose output is the new value.
    pub after: usize,
    /// Element type.
    pub dtype: DType,
    /// The listed ranges, at most 16.
    pub ranges: Vec<ChangedRange>,
    /// Elements in these ranges, at most 32; empty if NumPy lacks the dtype.
    pub elements: Vec<ChangedElement>,
}

/// Bytes that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRange {
    /// Start, in bytes from the start of the tensor.
    pub start: u64,
    /// End.
    pub end: u64,
    /// The first bytes of the old value, at most 64.
    pub before: Vec<u8>,
    /// The same bytes of the new value.
    pub after: Vec<u8>,
}

/// An element that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedElement {
    /// Its index in memory order.
    pub index: u64,
    /// The old value.
    pub before: ElementValue,
    /// The new value.
    pub after: ElementValue,
}

/// The bytes that an overwrite changed. Both records are searched among those of the watched value
/// in the same step, and accepted only if the listed bytes differ. `None` if no such pair exists or
/// the event is not an overwrite.
pub fn changed_bytes(dump: &ComparedDump, event: &DumpEvent) -> Option<ChangedBytes> {
    let EventKind::Overwrite(entry) = &event.kind else {
        return None;
    };
    let after = written_run(dump, &event.path, entry)?;
    let before = run_before(dump, after, entry)?;
    let [(dtype, old), (_, new)] = [before, after].map(|run| elements(dump, run, entry.output));
    let mut ranges = Vec::new();
    for [start, end] in entry.byte_ranges.iter().take(N_RANGES_MAX) {
        let place = usize::try_from(*start).ok()?..usize::try_from(*end).ok()?;
        let (old, new) = (old.get(place.clone())?, new.get(place)?);
        // Otherwise the evidence would be some record other than the entry's.
        if old == new {
            return None;
        }
        ranges.push(ChangedRange {
            start: *start,
            end: *end,
            before: old.iter().take(N_BYTES_MAX).copied().collect(),
            after: new.iter().take(N_BYTES_MAX).copied().collect(),
        });
    }
    (!ranges.is_empty()).then(|| ChangedBytes {
        before,
        after,
        dtype,
        elements: changed_elements(dtype, &old, &new, &ranges),
        ranges,
    })
}

/// The execution under whose name the changed value was written. `None` for a loop with several
/// candidates.
pub(super) fn written_run(
    dump: &ComparedDump,
    list: &Path,
    entry: &OverwriteEntry,
) -> Option<usize> {
    let name = format!("{}_To_{}", entry.seen_after, entry.watched);
    let dir = list.parent()?;
    let runs = dump.runs.iter().enumerate();
    let mut written = runs.filter(|(_, run)| {
        run.place.step == entry.step
            && run.op_name.as_str() == name
            && run.task_id == entry.seen_after_task_id
            && is_below(run, dir)
    });
    let (index, _) = written.next()?;
    written.next().is_none().then_some(index)
}

/// The latest record of the same value before `after`.
fn run_before(dump: &ComparedDump, after: usize, entry: &OverwriteEntry) -> Option<usize> {
    let after = dump.runs.get(after)?;
    let time = after.timestamp_us?;
    let looked_at = format!("_To_{}", entry.watched);
    let runs = dump.runs.iter().enumerate();
    let earlier = runs.filter(|(_, run)| {
        run.place == after.place
            && run.op_type == after.op_type
            && run.timestamp_us.is_some_and(|stamp| stamp < time)
            && run.slot(SlotSide::Output, entry.output).is_some()
            && (run.op_name.as_str() == entry.watched || run.op_name.ends_with(&looked_at))
    });
    let latest = earlier.max_by_key(|(_, run)| run.timestamp_us);
    latest.map(|(index, _)| index)
}

/// The stored elements of an output; empty if they cannot be read.
fn elements(dump: &ComparedDump, run: usize, output: u32) -> (DType, Vec<u8>) {
    let run = dump.runs.get(run);
    let slot = run.and_then(|run| run.slot(SlotSide::Output, output));
    let mut file = LastFile::default();
    let read = slot.and_then(|slot| {
        let copied = slot.with_elements(&mut file, |view| (view.dtype, view.bytes.to_vec()));
        copied.ok()
    });
    read.unwrap_or((DType::Undefined, Vec::new()))
}

fn changed_elements(
    dtype: DType,
    old: &[u8],
    new: &[u8],
    ranges: &[ChangedRange],
) -> Vec<ChangedElement> {
    let mut changed = Vec::new();
    // Elements that share a byte have no byte offset.
    let Some(width) = dtype.as_numpy().and(dtype.bytes()) else {
        return changed;
    };
    for range in ranges {
        let Some(place) = whole_elements(range, width) else {
            continue;
        };
        for index in place {
            let bytes = index * width..index.saturating_add(1) * width;
            let values = [old, new].map(|all| {
                let bytes = all.get(bytes.clone())?;
                ElementValue::all(dtype, bytes).next()
            });
            let [Some(before), Some(after)] = values else {
                continue;
            };
            if changed.len() == N_ELEMENTS_MAX {
                return changed;
            }
            let index = index as u64;
            changed.push(ChangedElement {
                index,
                before,
                after,
            });
        }
    }
    changed
}

/// The indices of the elements in a range.
fn whole_elements(range: &ChangedRange, width: usize) -> Option<Range<usize>> {
    let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).ok());
    Some(start? / width..end? / width)
}
