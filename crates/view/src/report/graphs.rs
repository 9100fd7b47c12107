//! Layouts of the graph: a file cannot lay out anew, so that it has those that are likely asked for.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::questions::json;
use crate::answers::AnswerError;
use crate::answers::graph::groups_around;
use crate::viewed::ViewedRuns;

/// Most graphs of ranks and steps.
const N_PLACES_MAX: usize = 8;
/// Most layouts of all graphs.
const N_LAYOUTS_MAX: usize = 200;
/// Most operators that are laid out, each as often as there are layouts of its graph.
const N_LAID_OUT_MAX: usize = 400_000;
/// Most boxes of all layouts.
const N_BOXES_MAX: usize = 12_000;

/// Layouts, and for operators the one that is opened around them.
#[derive(Default)]
pub(super) struct ReportGraphs {
    pub(super) layouts: Vec<Value>,
    pub(super) layout_of: Map<String, Value>,
    n_boxes: usize,
    n_laid_out: usize,
}

/// The rank and step of a graph with the operators in it.
struct GraphPlace {
    rank: Option<u32>,
    step: Option<u64>,
    groups: HashMap<usize, Vec<String>>,
    /// The layout of each set of open groups.
    known: HashMap<Vec<String>, usize>,
}

/// Layouts for the worst operators: opened around each, and for those at fault with each group on
/// the way there as the innermost one.
///
/// # Errors
/// [`AnswerError`] if there is no operator of a number in `ranked`.
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
                    // Too large to be drawn, which the page says where the graph would be.
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
    /// The number of a layout, which is made if it is new and there is room for it.
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
        // The first one is drawn of whatever size.
        if is_full && !self.layouts.is_empty() {
            return Ok(None);
        }
        // As the page asks, which joins paths by commas.
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
