//! Records of single executions of operators, and the graphs that the operators belong to.

pub mod graph;
pub mod operator_sets;
pub mod parallel;

use std::sync::Arc;

use opscope_tensor::Tensor;
use serde::{Deserialize, Serialize};

use self::parallel::{Collective, Placement};

/// One node of a model's graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operator {
    /// Position in the model file, counted from 0; unique within the model.
    pub task_id: u32,
    /// The operator's type, such as `Conv`.
    pub op_type: String,
    /// The node's name; without one, the name of its first output.
    pub op_name: String,
    /// Names of the values it reads, by position; empty for an absent optional input.
    pub inputs: Vec<String>,
    /// Names of the values it produces, by position; empty for an absent optional output.
    pub outputs: Vec<String>,
    /// Its attributes with their values as text, in file order.
    pub attributes: Vec<(String, String)>,
    /// Types of the values that the texts of [`Operator::attributes`] represent, in the same order;
    /// empty if unknown.
    pub attribute_types: Vec<AttributeKind>,
    /// Attributes that it leaves at their defaults, if known.
    pub default_attributes: Arc<[DefaultAttribute]>,
    /// In a loop, the iterations that this execution belongs to, outermost loop first. The name
    /// ends in their numbers, each after a dot.
    pub iterations: Vec<i64>,
    /// The operator set of the type; empty for the standard one.
    pub domain: String,
    /// Names of the source operators, if this one was fused from several.
    pub original_names: Vec<String>,
    /// For each output, the source operator that produced this value, and which of its outputs it
    /// was; empty if nothing is known.
    pub original_outputs: Vec<Option<(String, u32)>>,
    /// The call in the program, if known.
    pub call_site: Option<CallSite>,
    /// Its collective, if it is one.
    pub collective: Option<Arc<Collective>>,
    /// The distributed tensors that its inputs are parts of, by position; shorter if the rest is
    /// unknown.
    pub input_placements: Vec<Option<Arc<Placement>>>,
    /// The same for its outputs.
    pub output_placements: Vec<Option<Arc<Placement>>>,
}

/// The call of an operator in a program; texts are empty if unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallSite {
    /// Path of the module that the operator belongs to.
    pub module: Arc<str>,
    /// File, line and function of the call.
    pub source: Arc<str>,
}

impl CallSite {
    /// Both texts, with their keys in descriptions of graphs.
    pub fn texts(&self) -> [(&'static str, &str); 2] {
        [("module", &self.module), ("source", &self.source)]
    }
}

/// The default of an operator's attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultAttribute {
    /// Its name.
    pub name: String,
    /// Its value as text.
    pub text: String,
    /// The type of the value that the text represents.
    pub r#type: AttributeKind,
}

impl Operator {
    /// The distributed tensor of which a slot holds a part.
    pub fn placement(&self, side: SlotSide, index: usize) -> Option<&Arc<Placement>> {
        let placements = match side {
            SlotSide::Input => &self.input_placements,
            SlotSide::Output => &self.output_placements,
        };
        placements.get(index)?.as_ref()
    }

    /// The name without the numbers of iterations at its end.
    pub fn name_in_file(&self) -> &str {
        let mut name = self.op_name.as_str();
        for number in self.iterations.iter().rev() {
            let before = name.strip_suffix(number.to_string().as_str());
            name = before
                .and_then(|rest| rest.strip_suffix('.'))
                .unwrap_or(name);
        }
        name
    }

    /// Names, texts and types of its attributes; explicit ones come before defaults.
    pub fn all_attributes(&self) -> impl Iterator<Item = (&str, &str, AttributeKind)> {
        let types = self.attribute_types.iter().copied();
        // The list of types is empty if they are unknown, and `zip` would drop the attributes.
        let types = types.chain(std::iter::repeat(AttributeKind::Other));
        let own = self.attributes.iter().zip(types);
        let own = own.map(|((name, text), r#type)| (name.as_str(), text.as_str(), r#type));
        let more = self
            .default_attributes
            .iter()
            .filter(move |more| !self.attributes.iter().any(|(known, _)| *known == more.name));
        own.chain(more.map(|more| (more.name.as_str(), more.text.as_str(), more.r#type)))
    }
}

/// Type of the value that the text of an attribute represents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttributeKind {
    /// A whole number.
    Int,
    /// A number of the type float32.
    Float,
    /// Text in quotes.
    Text,
    /// Whole numbers in brackets.
    Ints,
    /// Numbers of the type float32 in brackets.
    Floats,
    /// A value as Python prints it: nested lists, `None`, a dtype of torch.
    Python,
    /// A value that the text does not represent completely: a tensor, a graph, a long list.
    #[default]
    #[serde(other)]
    Other,
}

/// Which side of an operator a tensor is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SlotSide {
    /// Read by the operator.
    Input,
    /// Produced by the operator.
    Output,
}

impl SlotSide {
    /// `input` or `output`.
    pub fn name(self) -> &'static str {
        match self {
            SlotSide::Input => "input",
            SlotSide::Output => "output",
        }
    }
}

/// A loaded model, as named in a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelId {
    /// The file name without directory and last suffix.
    pub file_stem: String,
    /// The graph's name in the file.
    pub graph_name: String,
    /// Number of the load in this process, counted from 1. `None` means operators outside a model:
    /// there is no model then, and both names are empty.
    pub load: Option<u32>,
    /// Device that runs it; the CPU is 0.
    pub device: u32,
}

impl ModelId {
    /// The first model that a process loads, on device 0.
    pub fn first_load(file_stem: impl Into<String>, graph_name: impl Into<String>) -> ModelId {
        ModelId {
            file_stem: file_stem.into(),
            graph_name: graph_name.into(),
            load: Some(1),
            device: 0,
        }
    }
}

/// The tensors of one operator execution that a plan selected.
#[derive(Clone, Debug)]
pub struct Record {
    /// The model that the operator belongs to.
    pub model: Arc<ModelId>,
    /// The operator.
    pub operator: Arc<Operator>,
    /// Which execution of the model, counted from 0.
    pub step: u64,
    /// When the operator finished, in microseconds since 1970-01-01 UTC.
    pub timestamp_us: u64,
    /// The selected inputs, each with its position among the operator's inputs.
    pub inputs: Vec<(usize, Tensor)>,
    /// The selected outputs, each with its position among the operator's outputs.
    pub outputs: Vec<(usize, Tensor)>,
}

impl Record {
    /// Number of tensors.
    pub fn n_slots(&self) -> u64 {
        (self.inputs.len() + self.outputs.len()) as u64
    }

    /// Bytes of all tensors, including those whose elements were dropped.
    pub fn n_bytes(&self) -> u64 {
        self.slots()
            .map(|(_, _, tensor)| tensor.n_bytes() as u64)
            .sum()
    }

    /// The tensors, inputs first, with side and position.
    pub fn slots(&self) -> impl Iterator<Item = (SlotSide, usize, &Tensor)> {
        let inputs = self.inputs.iter().map(|(i, t)| (SlotSide::Input, *i, t));
        let outputs = self.outputs.iter().map(|(i, t)| (SlotSide::Output, *i, t));
        inputs.chain(outputs)
    }
}
