//! A graph of operators, as the graph files of a dump describe it.
//!
//! Independent of the framework where possible: nodes, edges, types, attributes and source
//! locations. Positions are indices into the lists of [`GraphDescription`].

mod completion;
mod literal;

pub use literal::decimals;

use opscope_tensor::DType;

/// The value that means none.
pub const NONE: &str = "None";
/// Marks a shape with any number of dimensions.
pub const ANY_RANK: i64 = -2;
/// Types of nodes without a kernel: they group or order values, or run graphs.
const NO_KERNELS: [&str; 13] = [
    "Load",
    "Depend",
    "MakeTuple",
    "TupleGetItem",
    "UpdateState",
    "Return",
    "Partial",
    "Switch",
    "SwitchLayer",
    "If",
    "Loop",
    "Scan",
    "Constant",
];

/// One graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphDescription {
    /// Number of the graph in its process.
    pub id: u32,
    /// Its name, such as `kernel_graph0`.
    pub name: String,
    /// Attributes of the file's entry graph with their values as text.
    pub entry_attributes: Vec<(String, String)>,
    /// Attributes of the graph itself with their values as text.
    pub attributes: Vec<(String, String)>,
    /// A number that identifies an instance of the graph; an address in the framework's own files.
    pub instance: u64,
    /// Weights and inputs: the values that the graph reads from outside.
    pub parameters: Vec<GraphParameter>,
    /// Values that are part of the graph.
    pub constants: Vec<Constant>,
    /// The operators, in topological order.
    pub nodes: Vec<GraphNode>,
    /// Values that the graph returns.
    pub outputs: Vec<InputOrigin>,
    /// The node that returns the outputs.
    pub result: GraphResult,
}

/// A weight or an input of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphParameter {
    /// Its name.
    pub name: String,
    /// The name in the list of parameters, where it differs from the one that nodes use.
    pub listed_name: Option<String>,
    /// Type of its value.
    pub value: ValueType,
    /// Dimensions of an input of the whole model; none for weights and inputs of subgraphs.
    pub input_shape: Option<Vec<i64>>,
    /// Whether it has a value before the first run.
    pub has_default: bool,
    /// Its dtype, layout and shape on the device.
    pub device: Option<DeviceTensor>,
    /// Whether it is a weight.
    pub is_weight: bool,
}

/// A value that is part of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The value.
    pub value: Literal,
    /// Its name, if the file has one.
    pub full_name: Option<String>,
}

/// One operator of a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphNode {
    /// Name of its result in the source, or a number with a word before it.
    pub label: String,
    /// The operator's type.
    pub op_type: String,
    /// Whether it is a functional primitive.
    pub is_functional: bool,
    /// The operator's name with its scope, parts separated by `/`.
    pub full_name: String,
    /// Name of the member that holds the operator in the source.
    pub instance_name: Option<String>,
    /// Its inputs, by position.
    pub inputs: Vec<InputOrigin>,
    /// Type of its output; a tuple where there are several outputs.
    pub output: ValueType,
    /// The device layouts of its inputs and outputs; `None` for nodes that are not kernels.
    pub kernel: Option<KernelView>,
    /// Its attributes.
    pub attributes: Vec<GraphAttribute>,
    /// Where it comes from.
    pub source: Vec<NodeSource>,
}

/// The node that returns the outputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphResult {
    /// Its label.
    pub label: String,
    /// Its name with its scope.
    pub full_name: String,
    /// Its attributes.
    pub attributes: Vec<GraphAttribute>,
}

/// Where an input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputOrigin {
    /// The output of a node.
    Node(usize),
    /// A parameter.
    Parameter(usize),
    /// A constant.
    Constant(usize),
    /// Something that the file does not define.
    Unknown(String),
}

/// Type of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueType {
    /// A tensor.
    Tensor(TensorType),
    /// A tensor that is referred to by a name.
    Reference {
        /// Type of the tensor.
        tensor: TensorType,
        /// The name.
        key: String,
        /// Whether the name is that of a parameter.
        is_parameter: bool,
        /// Whether an operator writes it in place.
        is_inplace: bool,
    },
    /// A number.
    Scalar(DType),
    /// Several values.
    Tuple(Vec<ValueType>),
    /// A state that orders side effects, such as `UMonad`.
    Monad(String),
    /// Anything else, as in the file.
    Other(String),
}

impl Default for ValueType {
    fn default() -> ValueType {
        ValueType::Other(String::new())
    }
}

/// Dtype and dimensions; a dimension known only at run time is negative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// The dtype.
    pub dtype: DType,
    /// The dimensions.
    pub shape: Vec<i64>,
}

/// Dtypes, shapes and layouts of a kernel's tensors on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelView {
    /// Its inputs.
    pub inputs: Vec<DeviceTensor>,
    /// Its outputs.
    pub outputs: Vec<DeviceTensor>,
}

/// A tensor on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTensor {
    /// Name of the dtype.
    pub dtype: String,
    /// Name of the layout.
    pub layout: String,
    /// The dimensions.
    pub shape: Vec<i64>,
}

/// A named value of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphAttribute {
    /// Owner of the attribute.
    pub group: AttributeGroup,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Literal,
}

/// Owner of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttributeGroup {
    /// The operator.
    Operator,
    /// The node.
    Node,
    /// The node that this one was made from.
    Origin,
}

/// A value in a graph file.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A boolean.
    Bool(bool),
    /// An integer, with its dtype if the file contains it.
    Int(Option<DType>, i128),
    /// A float.
    Float(DType, f64),
    /// Text in quotes.
    Text(String),
    /// A word without quotes: the name of a type, an element of a list of names.
    Name(String),
    /// Values in parentheses.
    Tuple(Vec<Literal>),
    /// Values in brackets.
    List(Vec<Literal>),
    /// A tensor; the text of its elements is empty where the file leaves it out.
    Tensor(Option<TensorType>, String),
    /// A state that orders side effects.
    Monad(String),
}

/// Part of a node's history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSource {
    /// How sure the lines are, in the words of the file.
    pub heading: Option<String>,
    /// Places in the source with the text there, outermost call first.
    pub lines: Vec<String>,
}

impl GraphDescription {
    /// The type of what an input reads; none if the file does not define it.
    pub fn type_of(&self, input: &InputOrigin) -> Option<ValueType> {
        match input {
            InputOrigin::Node(index) => Some(self.nodes.get(*index)?.output.clone()),
            InputOrigin::Parameter(index) => Some(self.parameters.get(*index)?.value.clone()),
            InputOrigin::Constant(index) => Some(self.constants.get(*index)?.value.value_type()),
            InputOrigin::Unknown(_) => None,
        }
    }

    /// The constant of this value, added unless it is there. Tensors are always added.
    pub fn constant(&mut self, value: Literal) -> InputOrigin {
        let is_tensor = matches!(value, Literal::Tensor(..));
        let known = self.constants.iter().position(|c| c.value == value);
        InputOrigin::Constant(known.filter(|_| !is_tensor).unwrap_or_else(|| {
            let full_name = None;
            self.constants.push(Constant { value, full_name });
            self.constants.len() - 1
        }))
    }

    /// A short name of what an input reads, for people.
    pub fn input_name(&self, input: &InputOrigin) -> String {
        let name = match input {
            InputOrigin::Node(index) => self.nodes.get(*index).map(|n| n.full_name.clone()),
            InputOrigin::Parameter(index) => self.parameters.get(*index).map(|p| p.name.clone()),
            InputOrigin::Constant(index) => Some(format!("constant {index}")),
            InputOrigin::Unknown(text) => Some(text.clone()),
        };
        name.unwrap_or_default()
    }
}

impl GraphNode {
    /// Whether it is an operator that computes, by its type.
    pub fn is_kernel(&self) -> bool {
        !NO_KERNELS.contains(&self.op_type.as_str())
    }

    /// The name without its last part.
    pub fn scope(&self) -> &str {
        self.full_name
            .rsplit_once('/')
            .map_or("", |(scope, _)| scope)
    }
}

impl Literal {
    /// The type of the value.
    pub fn value_type(&self) -> ValueType {
        match self {
            Literal::Bool(_) => ValueType::Scalar(DType::Bool),
            Literal::Int(dtype, _) => ValueType::Scalar(dtype.unwrap_or(DType::I64)),
            Literal::Float(dtype, _) => ValueType::Scalar(*dtype),
            Literal::Text(_) => ValueType::Scalar(DType::String),
            Literal::Name(name) => ValueType::Other(name.clone()),
            Literal::Tuple(values) | Literal::List(values) => {
                ValueType::Tuple(values.iter().map(Literal::value_type).collect())
            }
            Literal::Tensor(Some(tensor), _) => ValueType::Tensor(tensor.clone()),
            Literal::Tensor(None, _) => ValueType::Other("Tensor".to_owned()),
            Literal::Monad(name) => ValueType::Monad(name.clone()),
        }
    }
}

impl ValueType {
    /// Dtype and dimensions of a tensor, held by name or not.
    pub fn tensor(&self) -> Option<&TensorType> {
        match self {
            ValueType::Tensor(tensor) | ValueType::Reference { tensor, .. } => Some(tensor),
            _ => None,
        }
    }
}
