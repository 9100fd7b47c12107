//! Links from backward to forward operators, by autograd's sequence number.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{self, ThreadId};

/// Maximum number of known forward operators; numbers only grow, so the lowest are the oldest.
const N_LINKS_MAX: usize = 1 << 16;

/// A forward operator.
#[derive(Clone)]
pub(super) struct ForwardLink {
    pub(super) step: u64,
    pub(super) op_name: Arc<str>,
    pub(super) module: Arc<str>,
    pub(super) source: Arc<str>,
}

/// Forward operators by number.
#[derive(Default)]
pub(super) struct ForwardLinks(BTreeMap<u64, (ThreadId, Option<ForwardLink>)>);

impl ForwardLinks {
    /// Records the operator of autograd's node with this number.
    pub(super) fn add(&mut self, seq_nr: u64, link: ForwardLink) {
        let here = thread::current().id();
        let entry = self.0.entry(seq_nr).or_insert((here, None));
        // Each thread counts separately, so a number used by two threads is ambiguous.
        *entry = if entry.0 == here {
            (here, Some(link))
        } else {
            (entry.0, None)
        };
        if self.0.len() > N_LINKS_MAX {
            self.0.pop_first();
        }
    }

    /// The forward operator.
    pub(super) fn find(&self, seq_nr: u64) -> Option<&ForwardLink> {
        self.0.get(&seq_nr)?.1.as_ref()
    }
}
