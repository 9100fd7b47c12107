//! The model with some differences healed.

use std::collections::{HashMap, HashSet};

use super::forms::conversion;
use super::order::{remove_unread, sort};
use super::places::{NodeLabel, Place, is_same_function, label};
use super::{ModelPair, ValueForm, captured};
use crate::onnx::proto::{is_same_domain, node_name};
use crate::onnx::schema::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};

/// How many operators may be taken over with nothing in their place: half of golden's, within these
/// bounds. A layer that is missing is less than that, and with more the experiment would run golden.
const N_ADDED: [usize; 2] = [16, 256];
/// The end of names of the golden model that are taken in the target.
pub(super) const SUFFIX: &str = "/golden";

/// A model, and what has come and gone.
pub(super) struct Assembled {
    pub(super) model: ModelProto,
    pub(super) added: Vec<NodeLabel>,
    pub(super) removed: Vec<NodeLabel>,
}

/// A graph of the target's into which values of the golden model are taken.
pub(super) struct Assembly<'a> {
    pub(super) pair: &'a ModelPair,
    pub(super) nodes: Vec<NodeProto>,
    weights: Vec<TensorProto>,
    /// Names of values that are taken.
    names: HashSet<String>,
    /// Names of values of the golden model here.
    taken: HashMap<String, String>,
    /// The names that values go by now which were results, as golden's may be made of them.
    set_aside: HashMap<String, String>,
    added: Vec<NodeLabel>,
}

impl ModelPair {
    pub(super) fn assemble(&self, chosen: &[usize]) -> Result<Assembled, String> {
        // Elements of weights are shared, so that a copy costs little.
        let mut model = self.target.model.clone();
        let graph = model.graph.as_mut().ok_or("the target has no graph")?;
        let mut assembly = Assembly::new(self, graph);
        let places = chosen.iter().map(|&index| &self.differences[index].place);
        let mut versions: Vec<(&str, i64)> = Vec::new();
        let mut takes_functions = false;
        let mut results: Vec<(&String, usize)> = Vec::new();
        for place in places {
            match place {
                Place::Node { target, golden } => assembly.replace(*target, *golden)?,
                Place::Weight {
                    target,
                    input,
                    golden,
                } => {
                    let name = assembly.value(golden)?;
                    set_input(&mut assembly.nodes[*target], *input, name);
                }
                Place::Inputs { readers, golden } => {
                    let name = assembly.value_as_here(golden)?;
                    for &(node, input) in readers {
                        set_input(&mut assembly.nodes[node], input, name.clone());
                    }
                }
                Place::OperatorSet { domain, version } => {
                    versions.push((domain.as_str(), *version));
                }
                Place::Functions => takes_functions = true,
                // Last, as the operators that make them may be replaced.
                Place::Result { target, number } => results.push((target, *number)),
            }
        }
        assembly.make_results(&results)?;
        let Assembly {
            nodes,
            weights,
            added,
            ..
        } = assembly;
        let golden = self.golden.model.graph.as_ref();
        if !chosen.is_empty() {
            // Shapes were those of the faulty model.
            graph.value_info.clear();
            for output in &mut graph.output {
                take_type(output, golden);
            }
        }
        graph.node = sort(nodes).map_err(|name| {
            format!("golden's definition of `{name}` reads values that depend on `{name}`")
        })?;
        graph.initializer.extend(weights);
        // Only operators of the target are missed, not what was taken over for nothing.
        let of_target: HashSet<String> = self.target.nodes().iter().map(node_name).collect();
        let unread = remove_unread(graph).into_iter();
        let removed = unread.filter(|node| of_target.contains(&node_name(node)));
        let removed = removed.map(|node| label(&node)).collect();
        self.add_operator_sets(&mut model);
        self.add_functions(&mut model, takes_functions);
        for set in &mut model.opset_import {
            let mut versions = versions.iter();
            let version = versions.find(|(domain, _)| is_same_domain(domain, set.domain()));
            if let Some((_, version)) = version {
                set.version = Some(*version);
            }
        }
        self.fit_operators(&mut model);
        Ok(Assembled {
            model,
            added,
            removed,
        })
    }

    /// Operators that were taken over may be defined in the golden model itself.
    fn add_functions(&self, model: &mut ModelProto, replaces: bool) {
        for function in &self.golden.model.functions {
            let mut known = model.functions.iter_mut();
            match known.find(|own| is_same_function(own, function)) {
                Some(own) if replaces => own.clone_from(function),
                Some(_) => {}
                None => model.functions.push(function.clone()),
            }
        }
    }

    /// Operators that were taken over may come from sets that the target does not use.
    fn add_operator_sets(&self, model: &mut ModelProto) {
        for set in &self.golden.model.opset_import {
            let mut known = model.opset_import.iter();
            if known.all(|own| own.domain() != set.domain()) {
                model.opset_import.push(set.clone());
            }
        }
    }
}

/// Gives a result golden's type.
fn take_type(output: &mut ValueInfoProto, golden: Option<&GraphProto>) {
    let mut all = golden.into_iter().flat_map(|graph| &graph.output);
    if let Some(other) = all.find(|other| other.name == output.name) {
        output.r#type.clone_from(&other.r#type);
    }
}

fn set_input(node: &mut NodeProto, input: usize, name: String) {
    if node.input.len() <= input {
        node.input.resize(input + 1, String::new());
    }
    node.input[input] = name;
    while node.input.last().is_some_and(String::is_empty) {
        node.input.pop();
    }
}

impl<'a> Assembly<'a> {
    fn new(pair: &'a ModelPair, graph: &GraphProto) -> Assembly<'a> {
        let inputs = graph.input.iter().map(|value| value.name.clone());
        let weights = graph.initializer.iter().map(|tensor| tensor.name.clone());
        let made = graph.node.iter().flat_map(|node| node.output.clone());
        Assembly {
            pair,
            nodes: graph.node.clone(),
            weights: Vec::new(),
            names: inputs.chain(weights).chain(made).collect(),
            taken: HashMap::new(),
            set_aside: HashMap::new(),
            added: Vec::new(),
        }
    }

    /// Makes results, by their names in the target and their numbers in the golden model.
    fn make_results(&mut self, results: &[(&String, usize)]) -> Result<(), String> {
        // Golden's value may be what the target returns as another result.
        results
            .iter()
            .for_each(|(target, _)| self.set_aside(target));
        results
            .iter()
            .try_for_each(|(target, number)| self.give(target, *number))
    }

    /// Renames a value that is a result, so that the result can be produced by another node.
    fn set_aside(&mut self, target: &str) {
        let new_name = self.fresh(target);
        let names = HashMap::from([(target.to_owned(), new_name.clone())]);
        for node in &mut self.nodes {
            captured::rename_values(&mut node.input, &names);
            captured::rename_values(&mut node.output, &names);
            captured::rename(node, &names);
        }
        captured::rename_values(self.taken.values_mut(), &names);
        self.set_aside.insert(target.to_owned(), new_name);
    }

    /// Makes a result of the target, which was set aside, from golden's value.
    fn give(&mut self, target: &str, number: usize) -> Result<(), String> {
        let graph = self.pair.golden.model.graph.as_ref();
        let value = graph.and_then(|graph| graph.output.get(number));
        let value = value.map(|value| value.name.as_str()).unwrap_or_default();
        let name = self.value(value)?;
        self.nodes.push(NodeProto {
            name: format!("{target}{SUFFIX}"),
            op_type: "Identity".to_owned(),
            input: vec![name],
            output: vec![target.to_owned()],
            ..NodeProto::default()
        });
        Ok(())
    }

    /// The current name of a value of the target.
    fn here(&self, target: &str) -> String {
        self.set_aside
            .get(target)
            .map_or(target, String::as_str)
            .to_owned()
    }

    /// The name of a value of the golden model in the target, into which it is taken if need be.
    pub(super) fn value(&mut self, golden: &str) -> Result<String, String> {
        if golden.is_empty() {
            return Ok(String::new());
        }
        let forms = self.pair.forms.get(golden);
        if let Some(partner) = self.pair.partners.get(golden).filter(|_| forms.is_none()) {
            return Ok(self.here(partner));
        }
        if let Some(name) = self.taken.get(golden) {
            return Ok(name.clone());
        }
        let name = match (
            self.pair.partners.get(golden),
            self.pair.golden.constant(golden),
        ) {
            (Some(partner), _) => self.in_form_of_golden(golden, partner),
            (None, Some(tensor)) => self.weight(golden, &tensor.clone())?,
            (None, None) => self.operator(golden)?,
        };
        self.taken.insert(golden.to_owned(), name.clone());
        Ok(name)
    }

    /// The same for an operator of the target, which reads the target's form.
    fn value_as_here(&mut self, golden: &str) -> Result<String, String> {
        match self.pair.partners.get(golden) {
            Some(partner) => Ok(self.here(partner)),
            None => self.value(golden),
        }
    }

    fn in_form_of_golden(&mut self, golden: &str, partner: &str) -> String {
        let Some([own, other]) = self.pair.forms.get(golden) else {
            return partner.to_owned();
        };
        let name = self.fresh(golden);
        let partner = self.here(partner);
        self.convert([&partner, &name], [own, other]);
        name
    }

    pub(super) fn convert(&mut self, [from, to]: [&str; 2], forms: [&ValueForm; 2]) {
        let name = self.fresh(&format!("{from}{SUFFIX}"));
        let (nodes, weights) = conversion([from, to], forms, &name);
        self.nodes.extend(nodes);
        self.weights.extend(weights);
    }

    fn weight(&mut self, golden: &str, tensor: &TensorProto) -> Result<String, String> {
        let own = self.pair.target.constant(golden);
        let elements = self.pair.golden.elements(tensor);
        if let (Some(own), Some(elements)) = (own, &elements)
            && self.pair.target.elements(own).as_ref() == Some(elements)
        {
            return Ok(golden.to_owned());
        }
        let name = self.fresh(golden);
        let mut weight = TensorProto {
            name: name.clone(),
            ..tensor.clone()
        };
        if !tensor.external_data.is_empty() {
            // It is relative to the golden model, and not to the target.
            let (_, _, bytes) = elements
                .ok_or_else(|| format!("golden's weight `{golden}` is not where the model says"))?;
            weight.external_data = Vec::new();
            weight.data_location = None;
            weight.raw_data = Some(bytes);
        }
        self.weights.push(weight);
        Ok(name)
    }

    /// Takes the operator over that makes a value of the golden model.
    fn operator(&mut self, golden: &str) -> Result<String, String> {
        let Some((index, _)) = self.pair.golden.maker(golden) else {
            return Err(format!(
                "the target has no input that is golden's `{golden}`"
            ));
        };
        let n_added_max = (self.pair.golden.nodes().len() / 2).clamp(N_ADDED[0], N_ADDED[1]);
        if self.added.len() == n_added_max {
            return Err(format!(
                "more than {n_added_max} operators of the golden model lie between values of the \
                 target"
            ));
        }
        let mut node = self.pair.golden_node(index);
        // Before what it reads, so that the nearest to the target's operators comes first.
        self.added.push(label(&node));
        for name in &mut node.input {
            *name = self.value(name)?;
        }
        self.take_captured(&mut node)?;
        let outputs = node.output.clone();
        for (name, original) in node.output.iter_mut().zip(outputs) {
            if !name.is_empty() {
                *name = self.fresh(name);
                self.taken.insert(original, name.clone());
            }
        }
        // ONNX Runtime refuses two operators of one name.
        if self.nodes.iter().any(|other| other.name == node.name) {
            node.name += SUFFIX;
        }
        self.nodes.push(node);
        Ok(self.taken[golden].clone())
    }

    pub(super) fn take_captured(&mut self, node: &mut NodeProto) -> Result<(), String> {
        let mut names = HashMap::new();
        for name in captured::read_by_bodies(node) {
            let here = self.value(&name)?;
            names.insert(name, here);
        }
        captured::rename(node, &names);
        Ok(())
    }

    /// A name that no value has: this one if it is free.
    pub(super) fn fresh(&mut self, name: &str) -> String {
        let mut fresh = name.to_owned();
        while !self.names.insert(fresh.clone()) {
            fresh += SUFFIX;
        }
        fresh
    }
}
