//! The list of differences.

use std::collections::{BTreeMap, HashSet};

use super::definition::{DEPTH_MAX, KnownAnswers, has_same_kind, slots};
use super::{GraphSide, ModelPair};
use crate::onnx::proto::{is_same_domain, node_name, opsets, standard};
use crate::onnx::schema::{FunctionProto, NodeProto};

/// The type and the name of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLabel {
    /// Its type.
    pub op_type: String,
    /// Its name; that of its first output if it has none.
    pub op_name: String,
}

/// A place where two models are defined otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinitionDifference {
    /// The target's operator: the one that is another, or the first that reads another value; none
    /// for a result of the model.
    pub target: Option<NodeLabel>,
    /// Golden's operator in its place, if there is one.
    pub golden: Option<NodeLabel>,
    /// The differences.
    pub parts: Vec<DifferentPart>,
    /// Operators of the target that read another value, if that is what differs.
    pub readers: Vec<NodeLabel>,
    pub(super) place: Place,
}

/// A difference between two definitions.
#[derive(Clone, Debug, PartialEq)]
pub enum DifferentPart {
    /// The type.
    Type {
        /// The target's.
        target: String,
        /// Golden's.
        golden: String,
    },
    /// An attribute; none where a side does not give it.
    Attribute {
        /// Its name.
        name: String,
        /// The target's value as text.
        target: Option<String>,
        /// Golden's value as text.
        golden: Option<String>,
    },
    /// A weight or constant.
    Weight {
        /// Number of the input.
        input: usize,
        /// Name in the target, if the input is one there.
        target: Option<String>,
        /// Name in the golden model, if the input is one there.
        golden: Option<String>,
    },
    /// An input that reads another value.
    Wiring {
        /// Number of the input of the first operator that reads it.
        input: usize,
        /// The value that the target reads; empty if the input is left out.
        target: String,
        /// The value that golden reads; empty if the input is left out.
        golden: String,
    },
    /// A value that a body reads from around it, by this name in both models.
    Captured(String),
    /// The version of a set of operators, which says what they mean.
    OperatorSet {
        /// Its domain; empty for ONNX's own.
        domain: String,
        /// The target's version.
        target: i64,
        /// Golden's version.
        golden: i64,
    },
    /// Operators that the models themselves define, by name.
    Functions(Vec<String>),
    /// A result of the model.
    Result {
        /// Its name in the target.
        target: String,
        /// Its name in the golden model.
        golden: String,
    },
}

/// The part of the target that is replaced to heal a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An operator, by its numbers in both graphs.
    Node { target: usize, golden: usize },
    /// A weight of the target's operator, by the number of the input, and its name in golden.
    Weight {
        target: usize,
        input: usize,
        golden: String,
    },
    /// Inputs that read one value and shall read another.
    Inputs {
        readers: Vec<(usize, usize)>,
        golden: String,
    },
    /// The version of a set of operators.
    OperatorSet { domain: String, version: i64 },
    /// The operators that the golden model defines.
    Functions,
    /// A result, by its number in the golden model, and the value there.
    Result { target: String, number: usize },
}

impl ModelPair {
    pub(super) fn find_differences(&self) -> Vec<DefinitionDifference> {
        let known = KnownAnswers::default();
        let mut found: Vec<(usize, DefinitionDifference)> = Vec::new();
        let mut wires: BTreeMap<(String, String), Vec<[usize; 3]>> = BTreeMap::new();
        for (target, golden) in self.node_pairs() {
            let nodes = [&self.target.nodes()[target], &self.golden.nodes()[golden]];
            let parts = self.parts_apart(&known, nodes, |input, own, other| {
                let readers = wires.entry((own.to_owned(), other.to_owned())).or_default();
                readers.push([target, golden, input]);
            });
            let (weights, others): (Vec<_>, Vec<_>) = parts
                .into_iter()
                .partition(|part| self.is_other_weight(part));
            for part in weights {
                if let DifferentPart::Weight {
                    input,
                    golden: Some(golden),
                    ..
                } = &part
                {
                    let place = Place::Weight {
                        target,
                        input: *input,
                        golden: golden.clone(),
                    };
                    found.push((target, difference(nodes, vec![part], place)));
                }
            }
            if !others.is_empty() {
                let place = Place::Node { target, golden };
                found.push((target, difference(nodes, others, place)));
            }
        }
        for ((target, golden), readers) in wires {
            // Several operators may read what one that is lost or inserted makes.
            let [first, partner, input] = readers[0];
            let nodes = [&self.target.nodes()[first], &self.golden.nodes()[partner]];
            let part = DifferentPart::Wiring {
                input,
                target,
                golden: golden.clone(),
            };
            let labels = readers
                .iter()
                .map(|&[node, ..]| label(&self.target.nodes()[node]));
            let labels = labels.collect();
            let readers = readers
                .iter()
                .map(|&[node, _, input]| (node, input))
                .collect();
            let place = Place::Inputs { readers, golden };
            let wiring = DefinitionDifference {
                readers: labels,
                ..difference(nodes, vec![part], place)
            };
            found.push((first, wiring));
        }
        found.sort_by_key(|(node, _)| *node);
        let mut differences: Vec<DefinitionDifference> = found
            .into_iter()
            .map(|(_, difference)| difference)
            .collect();
        differences.extend(self.results_apart(&known));
        differences.extend(self.operator_sets_apart());
        differences.extend(self.functions_apart());
        differences
    }

    /// Operators that both models define, and not alike. Those of one side alone are read by
    /// operators that differ.
    fn functions_apart(&self) -> Option<DefinitionDifference> {
        // A body alone counts: names of its values are its own.
        let golden = self.golden.model.functions.iter();
        let differing = golden.filter(|function| {
            let mut own = self.target.model.functions.iter();
            let own = own.find(|own| is_same_function(own, function));
            own.is_some_and(|own| own.node != function.node)
        });
        let names: Vec<String> = differing
            .map(|function| function.name().to_owned())
            .collect();
        (!names.is_empty()).then(|| DefinitionDifference {
            target: None,
            golden: None,
            parts: vec![DifferentPart::Functions(names)],
            readers: Vec::new(),
            place: Place::Functions,
        })
    }

    fn operator_sets_apart(&self) -> impl Iterator<Item = DefinitionDifference> + '_ {
        let golden = opsets(&self.golden.model);
        opsets(&self.target.model)
            .into_iter()
            .filter_map(move |(domain, target)| {
                let mut all = golden.iter();
                let (_, other) = all.find(|(name, _)| is_same_domain(name, &domain))?;
                let domain = standard(&domain).to_owned();
                (*other != target).then(|| DefinitionDifference {
                    target: None,
                    golden: None,
                    parts: vec![DifferentPart::OperatorSet {
                        domain: domain.clone(),
                        target,
                        golden: *other,
                    }],
                    readers: Vec::new(),
                    place: Place::OperatorSet {
                        domain,
                        version: *other,
                    },
                })
            })
    }

    /// Whether both sides have a weight of one shape, so that it can be replaced alone.
    fn is_other_weight(&self, part: &DifferentPart) -> bool {
        let DifferentPart::Weight {
            target: Some(target),
            golden: Some(golden),
            ..
        } = part
        else {
            return false;
        };
        let (target, golden) = (self.target.constant(target), self.golden.constant(golden));
        target.zip(golden).is_some_and(|(target, golden)| {
            target.dims == golden.dims && target.data_type == golden.data_type
        })
    }

    /// Operators that make the same values, by their numbers in the graphs.
    fn node_pairs(&self) -> Vec<(usize, usize)> {
        let mut pairs: Vec<(usize, usize)> = (self.partners.iter())
            .filter_map(|(golden, target)| {
                Some((self.target.maker(target)?.0, self.golden.maker(golden)?.0))
            })
            .collect();
        // An operator with several outputs is one pair.
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// The differences of two operators. Inputs that read other values are given to `wire`, unless the
    /// type is another, so that the inputs need not correspond.
    fn parts_apart(
        &self,
        known: &KnownAnswers,
        [target, golden]: [&NodeProto; 2],
        mut wire: impl FnMut(usize, &str, &str),
    ) -> Vec<DifferentPart> {
        let mut parts = Vec::new();
        // Inputs of another type need not mean the same, and the type says enough.
        let is_same_kind = has_same_kind(target, golden);
        if !is_same_kind {
            parts.push(DifferentPart::Type {
                target: target.op_type.clone(),
                golden: golden.op_type.clone(),
            });
        }
        // Another type has other ones.
        let attributes = if is_same_kind {
            self.attributes_apart(target, golden)
        } else {
            Vec::new()
        };
        let attributes = attributes.into_iter();
        parts.extend(
            attributes.map(|(name, [target, golden])| DifferentPart::Attribute {
                name,
                target,
                golden,
            }),
        );
        let captured = self
            .captured_apart(known, [target, golden], DEPTH_MAX)
            .into_iter();
        parts.extend(captured.map(DifferentPart::Captured));
        for (input, own, other) in slots(target, golden) {
            if self.is_same(known, own, other) {
                continue;
            }
            let [of_target, of_golden] = [
                self.target.constant(own).map(|_| own.to_owned()),
                self.golden.constant(other).map(|_| other.to_owned()),
            ];
            let is_weight = of_target.is_some() && of_golden.is_some();
            if !is_same_kind && !is_weight {
                continue;
            }
            if of_target.is_some() || of_golden.is_some() {
                parts.push(DifferentPart::Weight {
                    input,
                    target: of_target,
                    golden: of_golden,
                });
            } else if own.is_empty() || other.is_empty() {
                parts.push(DifferentPart::Wiring {
                    input,
                    target: own.to_owned(),
                    golden: other.to_owned(),
                });
            } else {
                wire(input, own, other);
            }
        }
        parts
    }

    fn results_apart(&self, known: &KnownAnswers) -> Vec<DefinitionDifference> {
        let (Some(own), Some(golden)) = (&self.target.model.graph, &self.golden.model.graph) else {
            return Vec::new();
        };
        // Positions alone are weak, and names of one model need not be those of the other.
        let names: HashSet<&str> = own.output.iter().map(|value| value.name.as_str()).collect();
        let is_by_name = golden
            .output
            .iter()
            .all(|value| names.contains(value.name.as_str()));
        let mut found = Vec::new();
        for (number, other) in golden.output.iter().enumerate() {
            let name = if is_by_name {
                Some(&other.name)
            } else {
                own.output.get(number).map(|value| &value.name)
            };
            let Some(name) = name.filter(|name| !self.is_same(known, name, &other.name)) else {
                continue;
            };
            let part = DifferentPart::Result {
                target: name.clone(),
                golden: other.name.clone(),
            };
            found.push(DefinitionDifference {
                target: maker_label(&self.target, name),
                golden: maker_label(&self.golden, &other.name),
                parts: vec![part],
                readers: Vec::new(),
                place: Place::Result {
                    target: name.clone(),
                    number,
                },
            });
        }
        found
    }
}

fn maker_label(side: &GraphSide, name: &str) -> Option<NodeLabel> {
    side.maker(name).map(|(node, _)| label(&side.nodes()[node]))
}

/// Whether operators call both functions by one name.
pub(super) fn is_same_function(one: &FunctionProto, other: &FunctionProto) -> bool {
    one.name() == other.name()
        && one.domain() == other.domain()
        && one.overload() == other.overload()
}

fn difference(
    [target, golden]: [&NodeProto; 2],
    parts: Vec<DifferentPart>,
    place: Place,
) -> DefinitionDifference {
    DefinitionDifference {
        target: Some(label(target)),
        golden: Some(label(golden)),
        parts,
        readers: Vec::new(),
        place,
    }
}

pub(super) fn label(node: &NodeProto) -> NodeLabel {
    NodeLabel {
        op_type: node.op_type.clone(),
        op_name: node_name(node),
    }
}
