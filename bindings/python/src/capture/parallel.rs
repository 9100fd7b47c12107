//! Facts about distributed runs, from Python.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_store::record::parallel::{Collective, Placement};
use pyo3::prelude::*;

/// Maximum number of cached texts. A model has few, unless shapes vary.
const N_TEXTS_MAX: usize = 1 << 16;

/// A collective by kind, such as `all_reduce(sum)`, and the group's global ranks.
///
/// `None` for an invalid text: an operator without a note is better than none.
pub(super) fn collective(kind: &str, ranks: Vec<u32>) -> Option<Arc<Collective>> {
    let kind = kind.parse().ok()?;
    Some(Arc::new(Collective { kind, ranks }))
}

/// The placements in texts, by position.
pub(super) fn placements(texts: &[String]) -> Vec<Option<Arc<Placement>>> {
    texts
        .iter()
        .map(|text| text.parse().ok().map(Arc::new))
        .collect()
}

/// Placements by their texts.
#[derive(Default)]
pub(super) struct PlacementTexts(Mutex<HashMap<String, Option<Arc<Placement>>>>);

impl PlacementTexts {
    /// The placement in a text; `None` if invalid.
    pub(super) fn find(&self, text: String) -> Option<Arc<Placement>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(placement) = known.get(&text) {
            return placement.clone();
        }
        let placement = text.parse().ok().map(Arc::new);
        if known.len() >= N_TEXTS_MAX {
            known.clear();
        }
        known.insert(text, placement.clone());
        placement
    }
}

/// Asks Python for a distributed tensor's placement.
pub(super) struct PlacementNotes {
    /// Returns the text for a tensor, or `None`.
    ask: Py<PyAny>,
    texts: PlacementTexts,
}

impl PlacementNotes {
    pub(super) fn new(ask: Py<PyAny>) -> PlacementNotes {
        PlacementNotes {
            ask,
            texts: PlacementTexts::default(),
        }
    }

    /// The placement of a distributed tensor; `None` if unknown.
    pub(super) fn find(&self, tensor: &Bound<'_, PyAny>) -> Option<Arc<Placement>> {
        let text = self.ask.bind(tensor.py()).call1((tensor,)).ok()?;
        let text: Option<String> = text.extract().ok()?;
        self.texts.find(text?)
    }
}
