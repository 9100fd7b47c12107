//! A cache of loaded graphs, so that repeated operators need no new session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use opscope_engine::{FallbackEngine, LoadedModel};

/// Maximum number of loaded graphs.
const N_GRAPHS_MAX: usize = 256;

/// A graph that an engine has loaded.
pub(crate) struct LoadedGraph {
    pub(crate) model: Mutex<Box<dyn LoadedModel>>,
    /// The engine that runs it, if it is not the process's.
    pub(crate) taken: Option<FallbackEngine>,
}

/// Loaded graphs by their bytes, which contain operator, dtypes, shapes and attributes.
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
        // A counter rather than a time orders uses within one clock tick.
        known.last_use = self.n_uses;
        Some(known.graph.clone())
    }

    /// Caches a graph, and evicts the least recently used one. Executors keep theirs alive.
    pub(crate) fn keep(&mut self, bytes: Vec<u8>, graph: Arc<LoadedGraph>) {
        self.n_uses += 1;
        // Otherwise a program with ever new shapes would keep every session forever.
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
