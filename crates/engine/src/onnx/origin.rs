//! Which operators of a model each operator of the graph that is executed came from.
//!
//! An engine that optimises a graph keeps the names of many values. These are the anchors: an
//! operator that computes a value of the original graph does the work of the original operators
//! between that value and the values that it reads. For new values, the module `pairing` finds the
//! original value that they correspond to. Operators joined by values that correspond to none, such
//! as the parts of a function, share their origins. Unknown origins stay empty.
//!
//! | module | job |
//! | --- | --- |
//! | `source` | the original graph: which names stand for the same value, and who computes it |
//! | `pairing` | which original value a value of the executed graph is |
//! | `slice` | the original operators between values |

mod pairing;
mod slice;
mod source;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use opscope_store::record::Operator;

use self::pairing::GraphPairing;
use self::slice::GraphSlice;
use self::source::{Class, OriginalGraph, OriginalModel, named_bodies};
use super::proto;
use super::schema::{GraphProto, NodeProto};

/// Where an operator of the executed graph came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OperatorOrigin {
    /// Names of the original operators whose work it does, in file order. Empty if it is one of
    /// them unchanged, if it only moves data for others, or if the origin is unknown.
    pub(super) names: Vec<String>,
    /// For each output the original operator that computes this value, and which of its outputs it
    /// is.
    pub(super) outputs: Vec<Option<(String, u32)>>,
}

impl OperatorOrigin {
    /// Writes it into the operator's record.
    pub(super) fn describe(self, operator: &mut Operator) {
        operator.original_names = self.names;
        operator.original_outputs = if self.outputs.iter().any(Option::is_some) {
            self.outputs
        } else {
            Vec::new()
        };
    }
}

/// The origin of every operator of `executed`, in the order of [`proto::all_nodes`].
pub(super) fn origins(original: &GraphProto, executed: &GraphProto) -> Vec<OperatorOrigin> {
    let source = OriginalModel::new(original);
    let mut found = Vec::new();
    of_body(
        &source,
        source.main(),
        executed,
        &HashMap::new(),
        &mut found,
    );
    found
}

/// The origins of a graph's operators and of those in its bodies. `outer` maps names of the
/// enclosing graphs to original values.
fn of_body<'g>(
    source: &OriginalModel<'g>,
    body: &OriginalGraph<'g>,
    executed: &'g GraphProto,
    outer: &HashMap<&'g str, Class>,
    found: &mut Vec<OperatorOrigin>,
) {
    let pairing = GraphPairing::new(source, body, executed, outer);
    let groups = OperatorGroups::new(&pairing);
    for (index, node) in executed.node.iter().enumerate() {
        let names = groups.names(source, body, &pairing, index);
        found.push(OperatorOrigin {
            names: origin_names(source, names, node),
            outputs: outputs(source, &pairing, index),
        });
        // A body is compared with the one in the node of the same name: elsewhere nothing says
        // which belong together.
        let partner = pairing.namesake(index).map(|twin| &source.nodes[twin]);
        for (name, inner) in named_bodies(node) {
            let mut twins = partner.iter().flat_map(|partner| &partner.bodies);
            match twins.find(|(twin, _)| *twin == name) {
                Some((_, twin)) => of_body(source, twin, inner, &pairing.classes, found),
                None => {
                    let n_nodes = proto::all_nodes(inner).len();
                    // The list has an entry for every node, so that those of an unknown body are
                    // counted as well.
                    found.resize(found.len() + n_nodes, OperatorOrigin::default());
                }
            }
        }
    }
}

/// Operators of the executed graph that are joined by values without an original.
struct OperatorGroups {
    /// By node, the first node of its group.
    of_node: Vec<usize>,
    members: HashMap<usize, Vec<usize>>,
}

impl OperatorGroups {
    fn new(pairing: &GraphPairing<'_, '_>) -> OperatorGroups {
        let mut parents: Vec<usize> = (0..pairing.nodes.len()).collect();
        for (index, node) in pairing.nodes.iter().enumerate() {
            for name in &node.reads {
                let producer = pairing.producers.get(name);
                if let Some(&producer) = producer.filter(|_| !pairing.is_known(name)) {
                    let (a, b) = (root(&parents, producer), root(&parents, index));
                    // The first node of a group represents it, which makes the result independent
                    // of the order of merging.
                    parents[a.max(b)] = a.min(b);
                }
            }
        }
        let of_node: Vec<usize> = (0..parents.len()).map(|i| root(&parents, i)).collect();
        let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, &first) in of_node.iter().enumerate() {
            members.entry(first).or_default().push(index);
        }
        OperatorGroups { of_node, members }
    }

    /// Positions of the original operators that a node shares with its group, or has alone.
    fn names(
        &self,
        source: &OriginalModel<'_>,
        body: &OriginalGraph<'_>,
        pairing: &GraphPairing<'_, '_>,
        index: usize,
    ) -> BTreeSet<usize> {
        let members = &self.members[&self.of_node[index]];
        let twin = pairing.twins[index];
        // An unchanged operator is itself, even where it shares a value without a name with others.
        if members.len() > 1 && twin.is_some() {
            return twin.into_iter().collect();
        }
        let slice = GraphSlice::new(source, body, pairing, members);
        let mut positions = slice.positions();
        let others = members.iter().filter(|&&member| member != index);
        for other in others.filter_map(|&other| pairing.twins[other]) {
            positions.remove(&other);
        }
        positions.extend(twin);
        // An inserted transposition or cast computes nothing new; its name often begins with the
        // operator that it was inserted for.
        if positions.is_empty() {
            positions.extend(pairing.moved(index));
        }
        positions
    }
}

fn root(parents: &[usize], mut index: usize) -> usize {
    while parents[index] != index {
        index = parents[index];
    }
    index
}

/// Names of original operators; none for an operator that is one of them unchanged.
fn origin_names(
    source: &OriginalModel<'_>,
    positions: BTreeSet<usize>,
    node: &NodeProto,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for position in positions {
        let name = proto::node_name(source.nodes[position].proto);
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    if let [only] = &names[..]
        && *only == proto::node_name(node)
    {
        names.clear();
    }
    names
}

/// Which original outputs the outputs of a node are.
fn outputs(
    source: &OriginalModel<'_>,
    pairing: &GraphPairing<'_, '_>,
    index: usize,
) -> Vec<Option<(String, u32)>> {
    let node = pairing.nodes[index].proto;
    let of_output = |(position, name): (usize, &String)| {
        let (producer, output) = match pairing.twins[index] {
            Some(twin) => (twin, position),
            None => {
                let same = pairing.same_value(name)?;
                let output = *pairing.body().outputs.get(same)?;
                let class = *pairing.body().classes.get(same)?;
                source.before_saturation(class, output, node)
            }
        };
        let original = source.nodes[producer].proto;
        let is_there = original
            .output
            .get(output)
            .is_some_and(|name| !name.is_empty());
        let name = proto::node_name(original);
        let output = u32::try_from(output).ok()?;
        (is_there && !name.is_empty() && !source.nodes[producer].is_constant_node)
            .then_some((name, output))
    };
    node.output.iter().enumerate().map(of_output).collect()
}
