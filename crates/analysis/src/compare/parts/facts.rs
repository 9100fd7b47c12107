//! Answers that reading the elements of slots and of pairs of slots gave.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_tensor::Layout;
use opscope_tensor::digest::xxh3_128;

use super::steps::PathBelow;
use crate::compare::evidence::Evidence;
use crate::compare::metrics::Metrics;
use crate::compare::side::{ComparedDump, ExecutionSlot};

/// Which question a fact answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum FactKind {
    /// How far two slots are apart.
    Difference = 0,
    /// The digest and the statistics of a slot.
    Value = 1,
    /// The distance of two slots, whatever their shapes; `None` if they are not alike.
    Likeness = 2,
    /// Whether two slots of bytes have the same in any order.
    SameBytes = 3,
    /// How far the elements of one side are from what the other has instead of elements.
    Statistics = 4,
}

impl FactKind {
    pub(super) const ALL: [FactKind; 5] = [
        FactKind::Difference,
        FactKind::Value,
        FactKind::Likeness,
        FactKind::SameBytes,
        FactKind::Statistics,
    ];
}

/// A question: its kind, the digests of the slots that it is about (that of one slot twice), and
/// the layout that both are brought to, as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FactKey {
    pub(super) kind: FactKind,
    pub(super) slots: [[u8; 16]; 2],
    pub(super) layout: Option<Layout>,
}

/// The answer to a question. Its kind says what the numbers mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fact {
    pub(crate) metrics: Metrics,
    pub(crate) numbers: Arc<[u64]>,
    pub(crate) bytes: Box<[u8]>,
}

/// Cached results, or results of the process that has the elements.
#[derive(Debug, Default)]
pub(crate) struct ElementFacts {
    facts: Mutex<HashMap<FactKey, Fact>>,
    n_bytes_read: AtomicU64,
}

/// The facts that a dump of a comparison shares with the others, and which of them it is.
#[derive(Clone, Debug)]
pub struct SharedFacts {
    facts: Arc<ElementFacts>,
    role: &'static str,
    root: PathBelow,
}

impl ElementFacts {
    /// Bytes of elements that were read, as nothing was known of them.
    pub(super) fn n_bytes_read(&self) -> u64 {
        self.n_bytes_read.load(Ordering::Relaxed)
    }

    /// Facts in the order of their keys, so that equal ones make equal files.
    pub(super) fn sorted(&self) -> Vec<(FactKey, Fact)> {
        let mut all: Vec<_> = self
            .lock()
            .iter()
            .map(|(key, fact)| (*key, fact.clone()))
            .collect();
        all.sort_by_key(|(key, _)| *key);
        all
    }

    /// Adds what a part holds.
    pub(super) fn extend(&self, facts: Vec<(FactKey, Fact)>) {
        self.lock().extend(facts);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FactKey, Fact>> {
        // Facts are inserted atomically, so a panic elsewhere cannot corrupt them.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ComparedDump {
    /// Starts recording what is read of its elements; `role` distinguishes the dumps of a
    /// comparison.
    pub(super) fn share_facts(&mut self, facts: &Arc<ElementFacts>, role: &'static str) {
        self.facts = Some(SharedFacts {
            facts: facts.clone(),
            role,
            root: PathBelow::new(&self.root),
        });
    }

    /// A name of the elements of a slot that every process which opens the dump comes to; none of
    /// elements that are in no file.
    fn digest_of(&self, slot: &ExecutionSlot) -> Option<[u8; 16]> {
        let shared = self.facts.as_ref()?;
        // Every process checks a damaged file by itself. A tensor assembled from parts has no file:
        // the number would be that of one of its parts.
        let is_in_parts = slot.whole().is_some() || slot.parts_problem().is_some();
        if slot.held().is_some() || slot.problem.is_some() || is_in_parts {
            return None;
        }
        let record = slot.record();
        // A dump that was moved is the same.
        let path = shared.root.strip(&slot.path);
        let mut text = format!(
            "{} {} {:?} {:?} {:?} {:?} {:?} {:?}",
            shared.role,
            path.display(),
            slot.dtype_name,
            record.dtype,
            record.stored_dtype,
            slot.layout,
            slot.shape,
            slot.original_shape,
        );
        // Writing to a text does not fail.
        let _ = match (&record.elements, slot.contents_number()) {
            // Slots with one content are one question, however many operators show it.
            (Some(_), Some(offset)) => write!(text, " at {offset}"),
            (Some(place), None) => {
                let name = &place.real_name;
                write!(
                    text,
                    " {name} {:?} {:?}",
                    slot.place_in_file(),
                    slot.offset()
                )
            }
            (None, _) => {
                let cells: Vec<_> = slot.statistics.iter().collect();
                write!(text, " {cells:?}")
            }
        };
        Some(xxh3_128(text.as_bytes()))
    }
}

/// The answer for a slot: the one that is known, or the one that `read` finds.
///
/// Failures are not remembered: a file that cannot be read now may be later.
pub(crate) fn of_slot(
    kind: FactKind,
    (dump, slot): (&ComparedDump, &ExecutionSlot),
    read: impl FnOnce() -> Option<Fact>,
) -> Option<Fact> {
    // Facts are not cached, as in most comparisons, or the slot has no name.
    let Some(digest) = dump.digest_of(slot) else {
        return read();
    };
    let key = FactKey {
        kind,
        slots: [digest; 2],
        layout: None,
    };
    recall(dump, key, slot.n_bytes, || read().ok_or(())).ok()
}

/// [`of_slot`] of a pair of slots of two dumps.
///
/// # Errors
/// Those of `read`.
pub(crate) fn of_pair<E>(
    kind: FactKind,
    [a, b]: [(&ComparedDump, &ExecutionSlot); 2],
    layout: Option<Layout>,
    read: impl FnOnce() -> Result<Fact, E>,
) -> Result<Fact, E> {
    // Where neither side has elements, nothing is read that an index does not hold.
    let has_elements = a.1.has_elements || b.1.has_elements;
    let digests = has_elements.then(|| a.0.digest_of(a.1).zip(b.0.digest_of(b.1)));
    let Some((first, second)) = digests.flatten() else {
        return read();
    };
    let key = FactKey {
        kind,
        slots: [first, second],
        layout,
    };
    recall(a.0, key, a.1.n_bytes + b.1.n_bytes, read)
}

fn recall<E>(
    dump: &ComparedDump,
    key: FactKey,
    n_bytes: u64,
    read: impl FnOnce() -> Result<Fact, E>,
) -> Result<Fact, E> {
    let Some(shared) = &dump.facts else {
        return read();
    };
    if let Some(known) = shared.facts.lock().get(&key) {
        return Ok(known.clone());
    }
    // Two threads may read the same, which costs less than one that waits for the other.
    let fact = read()?;
    let facts = &shared.facts;
    facts.n_bytes_read.fetch_add(n_bytes, Ordering::Relaxed);
    // Only now: a panic or a failure before leaves nothing behind.
    facts.lock().insert(key, fact.clone());
    Ok(fact)
}

/// Evidence as a number of a fact.
pub(crate) fn number_of(evidence: &Evidence) -> u64 {
    match evidence {
        Evidence::Tensor => 1,
        Evidence::Statistics => 2,
        Evidence::Digest => 3,
        Evidence::Shape => 4,
        Evidence::None | Evidence::Reason(_) => 0,
    }
}

/// The evidence with this number.
pub(crate) fn evidence_of(number: u64) -> Evidence {
    match number {
        1 => Evidence::Tensor,
        2 => Evidence::Statistics,
        3 => Evidence::Digest,
        4 => Evidence::Shape,
        _ => Evidence::None,
    }
}
