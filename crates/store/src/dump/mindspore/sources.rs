//! Lines of the program that made operators, from the graphs of a dump.

use std::collections::HashMap;
use std::sync::Arc;

use super::{MindSporeListing, OperatorRun, RankGraph};
use crate::record::graph::GraphNode;

/// A directory of installed packages, and the framework in it.
const PACKAGES: &str = "-packages";
const FRAMEWORK: &str = "/mindspore/";

/// A rank, and the full name of an operator.
type OperatorKey = (Option<u32>, String);

/// A graph's number, and the line of an operator in it.
type GraphLine = (u32, Arc<str>);

/// The lines of operators.
#[derive(Debug, Default)]
pub(super) struct SourceLines(HashMap<OperatorKey, Vec<GraphLine>>);

impl SourceLines {
    pub(super) fn collect(graphs: &[RankGraph]) -> SourceLines {
        let mut lines = SourceLines::default();
        // Operators that were made by one line share its text.
        let mut shared: HashMap<String, Arc<str>> = HashMap::new();
        for graph in graphs {
            for node in &graph.graph.nodes {
                let Some(line) = innermost(node) else {
                    continue;
                };
                let text = shared
                    .entry(line)
                    .or_insert_with_key(|line| (&**line).into());
                let key = (graph.rank, node.full_name.clone());
                let of_name = lines.0.entry(key).or_default();
                of_name.push((graph.graph_id, text.clone()));
            }
        }
        lines
    }
}

impl MindSporeListing {
    /// The innermost line of the program that made an operator, as `{file}:{line} {text}`; none
    /// without a graph that has it.
    pub fn source_of(&self, run: &OperatorRun) -> Option<Arc<str>> {
        let name = run.listed_name.as_ref().or(run.full_name.as_ref())?;
        let lines = self.sources.0.get(&(run.place.rank, name.clone()))?;
        let of_graph = lines
            .iter()
            .find(|(graph, _)| Some(*graph) == run.place.graph_id);
        // Accelerators put the nodes of all graphs under the number of the first.
        let line = of_graph.or(lines.first())?;
        Some(line.1.clone())
    }
}

/// The innermost line outside of the framework, or the innermost of all where the program has none.
fn innermost(node: &GraphNode) -> Option<String> {
    // Of several candidates for a line none is known to be the one.
    let [source] = &node.source[..] else {
        return None;
    };
    let own = source.lines.iter().rfind(|place| !is_of_framework(place));
    let place = own.or(source.lines.last())?;
    Some(file_line_text(place).unwrap_or_else(|| place.clone()))
}

fn is_of_framework(place: &str) -> bool {
    let Some((directory, _)) = place.split_once(FRAMEWORK) else {
        return false;
    };
    directory.contains(PACKAGES)
}

/// `net.py:22, 32~42/    x = self.conv(x)/` or `net.py(22)/    x = self.conv(x)/` in our words.
fn file_line_text(place: &str) -> Option<String> {
    let (at, text) = place.trim_end_matches('/').split_once("/ ")?;
    let text = text.trim();
    let (file, line) = match at.strip_suffix(')').and_then(|at| at.rsplit_once('(')) {
        Some(parts) => parts,
        None => {
            let (file, numbers) = at.rsplit_once(':')?;
            let end = numbers.find(['~', ',']).unwrap_or(numbers.len());
            (file, &numbers[..end])
        }
    };
    line.parse::<u64>().ok()?;
    Some(format!("{file}:{line} {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::graph::NodeSource;

    fn line_of(lines: &[&str]) -> Option<String> {
        innermost(&GraphNode {
            source: vec![NodeSource {
                heading: None,
                lines: lines.iter().map(|&line| line.to_owned()).collect(),
            }],
            ..GraphNode::default()
        })
    }

    #[test]
    fn the_innermost_line_of_the_program_counts() {
        let outer = "/home/me/net.py:21~25, 4~26/    def construct(self, x):/";
        let inner = "/home/me/net.py:22, 32~42/        x = self.conv1(x) / 2/";
        let layer = "/usr/lib/python3/site-packages/mindspore/nn/conv.py:373, 1~2/  return y/";
        let expected = "/home/me/net.py:22 x = self.conv1(x) / 2";
        assert_eq!(line_of(&[outer, inner, layer]).as_deref(), Some(expected));
        let old = "./train.py(175)/ x = self.conv3(x)/";
        let expected = "./train.py:175 x = self.conv3(x)";
        assert_eq!(line_of(&[old]).as_deref(), Some(expected));
        let expected = "/usr/lib/python3/site-packages/mindspore/nn/conv.py:373 return y";
        assert_eq!(line_of(&[layer]).as_deref(), Some(expected));
        assert_eq!(line_of(&["net.py"]).as_deref(), Some("net.py"));
        assert_eq!(line_of(&[]), None);
    }
}
