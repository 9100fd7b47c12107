//! Layouts of the graph. A file cannot compute layouts, so it contains the likely ones.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::questions::json;
use crate::answers::AnswerError;
use crate::answers::graph::groups_around;
use crate::viewed::ViewedRuns;

/// Maximum number of graphs, one per rank and step.
const N_PLACES_MAX: usize = 8;
/// Maximum number of layouts of all graphs.
const N_LAYOUTS_MAX: usize = 200;
/// Maximum number of laid-out operators, counted once per layout of their graph.
const N_LAID_OUT_MAX: usize = 400_000;
/// Maximum number of boxes of all layouts.
const N_BOXES_MAX: usize = 12_000;

/// Layouts, and the one opened around each operator.
#[derive(Default)]
pub(super) struct ReportGraphs {
    pub(super) layouts: Vec<Value>,
    pub(super) layout_of: Map<String, Value>,
    n_boxes: usize,
    n_laid_out: usize,
}

/// The graph of a rank and step, with its operators.
struct GraphPlace {
    rank: Option<u32>,
    step: Option<u64>,
    groups: HashMap<usize, Vec<String>>,
    /// The layout for each set of open groups.
    known: HashMap<Vec<String>, usize>,
}

/// Layouts for the worst operators: opened around each, and for faulty ones also with each
/// enclosing group as the innermost one.
///
/// # Errors
///
/// [`AnswerError`] if a number in `ranked` is not an operator.
pub(super) fn graphs(runs: &ViewedRuns, ranked: &[usize]) -> Result<ReportGraphs, AnswerError> {
    let mut graphs = ReportGraphs::default();
    let mut places: Vec<GraphPlace> = Vec::new();
    for facts in ranked.iter().filter_map(|&id| runs.facts(id)) {
        let (rank, step) = (facts.rank, facts.step);
        let known = places
            .iter()
            .position(|place| (place.rank, place.step) == (rank, step));
        let at = match known {
            Some(at) => at,
            None if places.len() == N_PLACES_MAX => continue,
            None => {
                let groups = match groups_around(runs, facts.id) {
                    Ok(groups) => groups.into_iter().collect(),
                    // Too large to draw, which the page shows in place of the graph.
                    Err(_) => HashMap::new(),
                };
                places.push(GraphPlace {
                    rank,
                    step,
                    groups,
                    known: HashMap::new(),
                });
                places.len() - 1
            }
        };
        let place = &mut places[at];
        let Some(open) = place.groups.get(&facts.id).cloned() else {
            continue;
        };
        if let Some(layout) = graphs.layout(runs, place, facts.id, &open)? {
            graphs.layout_of.insert(facts.id.to_string(), layout.into());
        }
        if facts.is_at_fault {
            for n_open in 0..open.len() {
                graphs.layout(runs, place, facts.id, &open[..n_open])?;
            }
        }
    }
    Ok(graphs)
}

impl ReportGraphs {
    /// The number of a layout, which is computed if new and within the limits.
    fn layout(
        &mut self,
        runs: &ViewedRuns,
        place: &mut GraphPlace,
        id: usize,
        open: &[String],
    ) -> Result<Option<usize>, AnswerError> {
        if let Some(&layout) = place.known.get(open) {
            return Ok(Some(layout));
        }
        let n_laid_out = self.n_laid_out + place.groups.len();
        let is_full = self.layouts.len() >= N_LAYOUTS_MAX
            || self.n_boxes >= N_BOXES_MAX
            || n_laid_out > N_LAID_OUT_MAX;
        // The first layout is drawn regardless of size.
        if is_full && !self.layouts.is_empty() {
            return Ok(None);
        }
        // The page joins paths by commas.
        let paths: Vec<String> = open.iter().map(|path| path.replace(',', "%2C")).collect();
        let query = [("op", &*id.to_string()), ("open", &*paths.join(","))];
        let graph = json(runs, "graph", &query)?;
        self.n_boxes += graph["boxes"].as_array().map_or(0, Vec::len);
        self.n_laid_out = n_laid_out;
        self.layouts.push(json!({
            "rank": place.rank,
            "step": place.step,
            "open": open,
            "graph": graph,
        }));
        place.known.insert(open.to_vec(), self.layouts.len() - 1);
        Ok(Some(self.layouts.len() - 1))
    }
}
