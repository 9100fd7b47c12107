//! Where operators come from in the program that made them: modules, source lines and parameters.

use std::collections::{BTreeMap, HashSet};

use opscope_store::file_format::graph_json::GraphOperator;
use opscope_store::record::SlotSide;
use opscope_store::record::operator_sets::{default_attributes, is_same_domain};

use super::positions;
use crate::compare::matching::{SlotRef, is_view};
use crate::compare::operator_attributes::OperatorAttributes;
use crate::compare::side::ComparedDump;

/// Beginnings of the names that exporters give to constants that they made.
const MADE_NAMES: [&str; 3] = ["val_", "onnx::", "/"];

/// The prefix of the names of arguments other than tensors, in graphs of PyTorch.
const ARGUMENT: &str = "argument.";

/// The prefix of attributes on outputs.
const OUTPUT: &str = "output.";

/// The attribute that names the phase of training.
const PHASE: &str = "phase";
/// The passes that compiled graphs are of.
const PASSES: [&str; 2] = ["forward", "backward"];

/// Maximum number of operators that only view a value, between a parameter and its reader.
const N_VIEWS_MAX: usize = 4;

impl ComparedDump {
    /// The module path and the source line that called an operator, if the dump or the graph next
    /// to it has them.
    pub fn module_and_source(&self, run: usize) -> [Option<String>; 2] {
        let recorded = self.runs[run].call_site.as_deref();
        let recorded = recorded
            .map(|site| [&site.module, &site.source].map(|text| text.to_string()))
            .unwrap_or_default();
        let Some(described) = self.operator_of(run) else {
            return recorded.map(|text| Some(text).filter(|text| !text.is_empty()));
        };
        let [module, source] = recorded;
        let parts = [
            ("module", &described.module, module),
            ("source", &described.source, source),
        ];
        parts.map(|(key, own, recorded)| {
            // PyTorch's operators have both among their attributes.
            let text = described.attributes.get(key).unwrap_or(own).clone();
            // Graphs of MindSpore keep lines separately from the operators.
            [text, recorded].into_iter().find(|text| !text.is_empty())
        })
    }

    /// The attributes of an operator that affect its computation; `None` if no graph next to the
    /// dump has them.
    pub fn attributes_of(&self, run: usize) -> Option<OperatorAttributes<'_>> {
        let (_, graph, at) = self.description_of(run)?;
        let operator = graph.operators.get(at)?;
        // PyTorch graphs have no operator sets, and contain other facts in addition to arguments.
        let given = operator.attributes.iter();
        let given =
            given.filter(|(name, _)| !graph.opsets.is_empty() || name.starts_with(ARGUMENT));
        let mut opsets = graph.opsets.iter();
        let opset = opsets.find(|(set, _)| is_same_domain(set, &operator.domain));
        let opset = opset.map(|(_, version)| *version);
        let defaults = opset
            .and_then(|version| default_attributes(&operator.domain, &operator.op_type, version));
        Some(OperatorAttributes {
            given: given
                .map(|(name, text)| (name.as_str(), text.as_str()))
                .collect(),
            defaults: defaults.unwrap_or_default(),
            opset,
        })
    }

    /// The training phase of an execution, if the dump's description has it.
    pub fn phase_of(&self, run: usize) -> Option<&str> {
        let (_, graph, at) = self.description_of(run)?;
        if let Some(phase) = graph.operators.get(at)?.attributes.get(PHASE) {
            return Some(phase);
        }
        // A compiled graph is of one pass.
        match graph.phase.as_str() {
            "inference" => Some("forward"),
            phase => PASSES.contains(&phase).then_some(phase),
        }
    }

    /// The names of all parameters and weights that operators read.
    pub(crate) fn parameter_names(&self) -> HashSet<String> {
        let runs = 0..self.runs.len();
        let slots = runs.flat_map(|run| self.inputs_of(run));
        slots.filter_map(|slot| self.parameter_of(slot)).collect()
    }

    /// The name of the parameter or weight in an input; `None` if the graph next to the dump lacks
    /// it, or if an exporter created the value and its name.
    pub fn parameter_of(&self, slot: SlotRef) -> Option<String> {
        let mut slot = slot;
        // PyTorch transposes weights in front of the operator that reads them.
        for _ in 0..N_VIEWS_MAX {
            if let Some(name) = self.parameter_read(slot) {
                return Some(name);
            }
            let made = self
                .producer_of(slot)
                .filter(|made| is_view(&self.runs[made.run]))?;
            let slots = &self.runs[made.run].slots;
            let first = slots.iter().position(|slot| slot.side == SlotSide::Input)?;
            slot = SlotRef {
                slot: first,
                ..made
            };
        }
        None
    }

    /// The same of what an operator reads itself, and not through a view.
    pub(crate) fn parameter_read(&self, slot: SlotRef) -> Option<String> {
        let recorded = self.slot(slot).record();
        if let Some(name) = &recorded.parameter {
            return Some(name.to_string());
        }
        let (_, graph, at) = self.description_of(slot.run)?;
        let operator = graph.operators.get(at)?;
        let is_present: Vec<bool> = operator.inputs.iter().map(Option::is_some).collect();
        let known = positions(&self.runs[slot.run], SlotSide::Input, &is_present);
        let position = known.into_iter().find(|(own, _)| *own == slot.slot)?.1;
        // PyTorch's own name goes before that of a value in a graph.
        if let Some(name) = operator.attributes.get(&format!("input.{position}.fqn")) {
            return Some(name.clone());
        }
        let value = operator.inputs.get(position)?.as_ref()?;
        let is_made =
            MADE_NAMES.iter().any(|start| value.starts_with(start)) || self.is_rewritten(slot);
        (graph.constants.contains(value) && !is_made).then(|| value.clone())
    }

    /// The last value that some executions write to each of the program's parameters, buffers and
    /// gradients, by the tensor's name.
    pub(crate) fn updated_tensors(&self, runs: &[usize]) -> BTreeMap<&str, SlotRef> {
        let mut updated = BTreeMap::new();
        for &run in runs {
            let Some(operator) = self.operator_of(run) else {
                continue;
            };
            let is_present: Vec<bool> = operator.outputs.iter().map(Option::is_some).collect();
            for (position, name) in written_tensors(operator) {
                let slots = positions(&self.runs[run], SlotSide::Output, &is_present);
                let slot = slots.into_iter().find(|(_, at)| *at == position);
                updated.extend(slot.map(|(slot, _)| (name, SlotRef { run, slot })));
            }
        }
        updated
    }

    /// The program's tensor whose new value an output is.
    pub(crate) fn tensor_written(&self, slot: SlotRef) -> Option<&str> {
        let mut updated = self.updated_tensors(&[slot.run]).into_iter();
        updated.find_map(|(name, written)| (written == slot).then_some(name))
    }

    fn operator_of(&self, run: usize) -> Option<&GraphOperator> {
        let (_, graph, at) = self.description_of(run)?;
        graph.operators.get(at)
    }
}

/// The outputs of an operator that are new values of the program's tensors, with their names.
pub(crate) fn written_tensors(operator: &GraphOperator) -> impl Iterator<Item = (usize, &str)> {
    let attributes = operator.attributes.range(OUTPUT.to_owned()..);
    attributes
        .map_while(|(key, name)| Some((key.strip_prefix(OUTPUT)?, name)))
        .filter_map(|(key, name)| {
            let position = key.strip_suffix(".fqn")?;
            Some((position.parse().ok()?, name.as_str()))
        })
}
