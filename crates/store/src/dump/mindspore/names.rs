//! Full names of operators, from whatever lists them.

use std::collections::HashMap;

use super::{MindSporeListing, RunKind};
use crate::decimal::is_digits;
use crate::tree::acl::clean_name;
use crate::tree::mindspore::MindSporePlace;

/// Rank and graph.
type GraphKey = (Option<u32>, Option<u32>);

/// Names of one graph.
#[derive(Default)]
struct GraphNames {
    /// Full name and position in execution order by replaced name.
    operators: HashMap<String, (String, usize)>,
    /// Full names with positions by replaced name without number, in execution order.
    by_stem: HashMap<String, Vec<(String, usize)>>,
    /// Names of parameters by replaced name.
    parameters: HashMap<String, String>,
}

/// Names of all graphs.
pub(super) struct NameIndex {
    by_graph: HashMap<GraphKey, GraphNames>,
}

/// Result of looking up a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NameMatch {
    pub(super) full_name: Option<String>,
    pub(super) listed_name: Option<String>,
    /// Place in the execution order.
    pub(super) position: Option<usize>,
}

impl NameIndex {
    /// Lists come first: they have kernels only, in the order in which they run.
    pub(super) fn collect(dump: &MindSporeListing) -> NameIndex {
        let mut by_graph: HashMap<GraphKey, GraphNames> = HashMap::new();
        for order in &dump.orders {
            let names = by_graph
                .entry((order.rank, Some(order.graph_id)))
                .or_default();
            order.lines.iter().for_each(|name| names.add(name));
        }
        for graph in &dump.graphs {
            let names = by_graph
                .entry((graph.rank, Some(graph.graph_id)))
                .or_default();
            let kernels_only = names.operators.is_empty();
            for node in &graph.graph.nodes {
                if kernels_only && node.kernel.is_some() {
                    names.add(&node.full_name);
                }
            }
            if names.operators.is_empty() {
                // The message does not contain which nodes are kernels.
                graph
                    .graph
                    .nodes
                    .iter()
                    .for_each(|node| names.add(&node.full_name));
            }
            for parameter in &graph.graph.parameters {
                let cleaned = clean_name(&parameter.name);
                names
                    .parameters
                    .entry(cleaned)
                    .or_insert_with(|| parameter.name.clone());
            }
        }
        NameIndex { by_graph }
    }

    /// Looks up the operators of a graph that have these replaced names; those of equal stem must
    /// be given in the order in which they ran.
    pub(super) fn find(
        &self,
        place: &MindSporePlace,
        kind: RunKind,
        op_names: &[String],
    ) -> Vec<NameMatch> {
        let of_graph = self.by_graph.get(&(place.rank, place.graph_id));
        let mut others: Vec<_> = self
            .by_graph
            .iter()
            .filter(|((rank, graph), _)| *rank == place.rank && *graph != place.graph_id)
            .collect();
        others.sort_by_key(|(key, _)| **key);
        // Accelerators put the nodes of all graphs under the number of the first.
        let others = others.into_iter().map(|(_, names)| names);
        let all: Vec<&GraphNames> = of_graph.into_iter().chain(others).collect();
        let is_parameter = kind != RunKind::Operator;
        let mut running: HashMap<&str, Vec<&str>> = HashMap::new();
        for op_name in op_names {
            let stem = split_number(op_name).0;
            running.entry(stem).or_default().push(op_name);
        }
        op_names
            .iter()
            .map(|op_name| {
                all.iter()
                    .find_map(|names| {
                        if is_parameter {
                            names.parameter(op_name)
                        } else {
                            names.operator(op_name, &running)
                        }
                    })
                    .unwrap_or_default()
            })
            .collect()
    }
}

impl GraphNames {
    fn add(&mut self, full_name: &str) {
        let position = self.operators.len();
        let cleaned = clean_name(full_name);
        if self.operators.contains_key(&cleaned) {
            return;
        }
        let entry = (full_name.to_owned(), position);
        let stem = split_number(&cleaned).0.to_owned();
        self.by_stem.entry(stem).or_default().push(entry.clone());
        self.operators.insert(cleaned, entry);
    }

    fn parameter(&self, op_name: &str) -> Option<NameMatch> {
        let full_name = self.parameters.get(op_name)?;
        Some(NameMatch {
            full_name: Some(full_name.clone()),
            ..NameMatch::default()
        })
    }

    /// The name itself, or, since numbers change between compilation and execution, the name with
    /// another number.
    fn operator(&self, op_name: &str, running: &HashMap<&str, Vec<&str>>) -> Option<NameMatch> {
        let (stem, number) = split_number(op_name);
        let listed = self.by_stem.get(stem)?;
        let running = running.get(stem)?;
        let all_listed = running
            .iter()
            .all(|name| self.operators.contains_key(*name));
        let found = if all_listed {
            self.operators.get(op_name)
        } else {
            let index = running.iter().position(|name| *name == op_name);
            let by_order = index.and_then(|index| listed.get(index));
            by_order.filter(|_| running.len() == listed.len())
        };
        let full_name = match self.operators.get(op_name) {
            Some((full_name, _)) => full_name.clone(),
            None => format!("{}{number}", split_number(&listed.first()?.0).0),
        };
        Some(NameMatch {
            full_name: Some(full_name),
            listed_name: found.map(|(name, _)| name.clone()),
            position: found.map(|(_, position)| *position),
        })
    }
}

/// A name and the `-op…` at its end.
fn split_number(name: &str) -> (&str, &str) {
    let Some(at) = name.rfind("-op") else {
        return (name, "");
    };
    let digits = &name[at + 3..];
    name.split_at(if is_digits(digits) { at } else { name.len() })
}
