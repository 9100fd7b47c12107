//! The description of a model, available without running it.

use std::fmt;
use std::sync::Arc;

use opscope_capture::{GraphView, QuantisedPlace};
use opscope_store::record::Operator;
use opscope_store::record::graph::TensorType;
use opscope_tensor::DType;

/// A model as its file describes it, and as an engine lists its operators.
#[derive(Clone, Debug, Default)]
pub struct ModelDescription {
    /// The inputs and outputs of the model.
    pub signature: ModelSignature,
    /// The operators that a run may execute, in order of execution. Operators of a branch that is
    /// not taken are listed but do not execute.
    pub operators: Vec<Arc<Operator>>,
    /// Tasks of the operators without a name in the file, ascending.
    pub unnamed: Vec<u32>,
    /// Names of the values that are separate nodes in the graph. Weights are not among them.
    pub constants: Vec<String>,
    /// Values that a body is given by the operator that runs it, by the tasks of the operators that
    /// read them; sorted.
    pub carried: Vec<(u32, String)>,
    /// Types of inputs, weights and constants, by name, as far as the model declares them; a
    /// dynamic dimension is -1.
    pub value_types: Vec<(String, TensorType)>,
    /// Versions of the sets of operators that the model uses, by domain; the standard one has no
    /// domain.
    pub opsets: Vec<(String, i64)>,
    /// Where operators have quantised values; empty if the engine does not look for them.
    pub quantised: Vec<QuantisedPlace>,
}

impl ModelDescription {
    /// The graph for a plan to be matched against. `inputs` are the names of the values that a
    /// caller provides.
    pub fn graph<'a>(&'a self, inputs: &'a [String]) -> GraphView<'a> {
        GraphView {
            operators: &self.operators,
            inputs,
            constants: &self.constants,
            carried: &self.carried,
            types: &self.value_types,
            quantised: &self.quantised,
            ..GraphView::default()
        }
    }
}

/// The inputs and outputs of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSignature {
    /// The name that the graph carries inside the file.
    pub graph_name: String,
    /// The values that a caller has to provide, in order.
    pub inputs: Vec<ValueInfo>,
    /// Graph inputs with a value in the file; they cannot be set.
    pub initialised_inputs: Vec<String>,
    /// The results, in order. Undeclared facts are [`DType::Undefined`] or `None`; the engine need
    /// not follow the declared ones.
    pub outputs: Vec<ValueInfo>,
}

/// A model's input or output as the file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    /// Its name.
    pub name: String,
    /// Type of its elements.
    pub dtype: DType,
    /// Dimensions, or `None` if the file does not declare the number of axes.
    pub dims: Option<Vec<DeclaredDim>>,
}

/// A dimension in a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredDim {
    /// Known.
    Fixed(usize),
    /// Known by name only.
    Named(String),
    /// Not known.
    Unknown,
}

impl fmt::Display for DeclaredDim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeclaredDim::Fixed(n) => write!(f, "{n}"),
            DeclaredDim::Named(name) => f.write_str(name),
            DeclaredDim::Unknown => f.write_str("?"),
        }
    }
}

impl ValueInfo {
    /// The shape as text, such as `[batch,3,224,224]`.
    pub fn shape_text(&self) -> String {
        match &self.dims {
            None => "of any shape".to_owned(),
            Some(dims) => {
                let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
                format!("[{}]", dims.join(","))
            }
        }
    }

    /// Whether `shape` agrees with every known dimension.
    pub fn admits(&self, shape: &[usize]) -> bool {
        self.dims.as_ref().is_none_or(|dims| {
            dims.len() == shape.len()
                && dims.iter().zip(shape).all(|(dim, n)| match dim {
                    DeclaredDim::Fixed(fixed) => fixed == n,
                    DeclaredDim::Named(_) | DeclaredDim::Unknown => true,
                })
        })
    }
}
