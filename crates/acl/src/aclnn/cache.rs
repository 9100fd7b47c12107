//! Graphs that stay loaded, so that an operator which is called again needs no new session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use opscope_engine::{FallbackEngine, LoadedModel};

/// Most graphs that stay loaded.
const N_GRAPHS_MAX: usize = 256;

/// A graph that an engine has loaded.
pub(crate) struct LoadedGraph {
    pub(crate) model: Mutex<Box<dyn LoadedModel>>,
    /// The engine that runs it, if it is another one than the process has chosen.
    pub(crate) taken: Option<FallbackEngine>,
}

/// Loaded graphs by their bytes, which hold operator, types, extents and attributes.
#[derive(Default)]
pub(crate) struct GraphCache {
    graphs: HashMap<Vec<u8>, CachedGraph>,
    n_uses: u64,
}

struct CachedGraph {
    graph: Arc<LoadedGraph>,
    last_use: u64,
}

impl GraphCache {
    pub(crate) fn find(&mut self, bytes: &[u8]) -> Option<Arc<LoadedGraph>> {
        self.n_uses += 1;
        let known = self.graphs.get_mut(bytes)?;
        // A count, and no time: uses within one tick of a clock have an order too.
        known.last_use = self.n_uses;
        Some(known.graph.clone())
    }

    /// Keeps a graph, in place of the one that was not used for the longest time. Executors hold on
    /// to theirs.
    pub(crate) fn keep(&mut self, bytes: Vec<u8>, graph: Arc<LoadedGraph>) {
        self.n_uses += 1;
        // A program with shapes that never return would keep every session for good.
        if self.graphs.len() >= N_GRAPHS_MAX {
            let oldest = self.graphs.iter().min_by_key(|(_, known)| known.last_use);
            if let Some(oldest) = oldest.map(|(bytes, _)| bytes.clone()) {
                self.graphs.remove(&oldest);
            }
        }
        let last_use = self.n_uses;
        self.graphs.insert(bytes, CachedGraph { graph, last_use });
    }
}
