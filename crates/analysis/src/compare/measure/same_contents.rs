//! Pairs of slots that show the same contents, which are measured once.
//!
//! A native dump writes each content once, and its rows say where it is. An output and the inputs
//! that it becomes, and equal values of several steps, are the same bytes of a file.

use std::collections::HashMap;
use std::sync::Arc;

use opscope_tensor::Layout;
use opscope_tensor::difference::TensorDifference;

use super::{Metrics, SlotPair};
use crate::compare::matching::MatchedDumps;
use crate::compare::parts::facts::Fact;
use crate::compare::side::{ExecutionSlot, SlotFacts};
use crate::compare::slot_ranks::SlotRanks;

/// Where the contents of a pair are, and how they are brought together. Facts are known by their
/// place in memory: both sides outlive the search.
pub(super) type ContentsKey = ([(*const SlotFacts, u64); 2], Option<Layout>);

/// The numbers of a pair.
#[derive(Clone)]
pub(super) struct PairNumbers {
    pub(super) metrics: Metrics,
    /// Elements by the size of their difference; empty of equal tensors.
    pub(super) histogram: Arc<[u64]>,
    /// Bytes that were read.
    pub(super) n_bytes: u64,
    /// The ranks whose parts were put together, if so.
    pub(super) ranks: Option<Arc<SlotRanks>>,
}

impl PairNumbers {
    pub(super) fn from_difference(found: &TensorDifference, n_bytes: u64) -> PairNumbers {
        // Of equal tensors it has one full bin, which is not worth its place in the result of a
        // large dump.
        let histogram = if found.n_equal < found.n {
            &found.histogram[..]
        } else {
            &[]
        };
        PairNumbers {
            metrics: Metrics::from_difference(found),
            histogram: histogram.into(),
            n_bytes,
            ranks: None,
        }
    }

    /// The bytes first, then the histogram.
    pub(super) fn into_fact(self) -> Fact {
        let numbers = [&[self.n_bytes], &self.histogram[..]].concat();
        Fact {
            metrics: self.metrics,
            numbers: numbers.into(),
            bytes: Box::default(),
        }
    }

    pub(super) fn from_fact(fact: Fact) -> PairNumbers {
        let (n_bytes, histogram) = fact.numbers.split_first().unwrap_or((&0, &[]));
        PairNumbers {
            metrics: fact.metrics,
            histogram: histogram.into(),
            n_bytes: *n_bytes,
            ranks: None,
        }
    }
}

/// Maximum number of pairs whose numbers are remembered, which bounds the memory of large
/// comparisons. Equal contents are mostly near each other.
const N_KNOWN_MAX: usize = 1 << 18;

/// Numbers of pairs that were measured before.
#[derive(Default)]
pub(super) struct KnownPairs(HashMap<ContentsKey, PairNumbers>);

impl KnownPairs {
    /// The numbers of equal contents.
    pub(super) fn get(&self, key: &ContentsKey) -> Option<&PairNumbers> {
        self.0.get(key)
    }

    /// Remembers numbers.
    pub(super) fn note(&mut self, key: ContentsKey, numbers: PairNumbers) {
        if self.0.len() >= N_KNOWN_MAX {
            self.0.clear();
        }
        self.0.insert(key, numbers);
    }
}

/// The key of a pair's contents; none where a dump does not say where the bytes are.
pub(super) fn contents_of(sides: MatchedDumps<'_>, pair: &SlotPair) -> Option<ContentsKey> {
    let target = sides.target.slot(pair.target);
    let golden = sides.golden.slot(pair.golden);
    let place =
        |slot: &ExecutionSlot| Some((std::ptr::from_ref(slot.facts()), slot.contents_number()?));
    Some(([place(target)?, place(golden)?], pair.layout))
}
