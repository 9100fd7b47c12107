//! A graph as Python describes it. Values go by their number, so that one that several operators
//! read is the same everywhere.

use std::sync::Arc;

use opscope_store::record::{AttributeKind, CallSite, DefaultAttribute, Operator};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::parallel::{collective, placements};

/// How long a value's memory keeps its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stability {
    /// As long as anybody holds the tensor.
    Held,
    /// Until the execution of the graph ends.
    Run,
    /// Until the next operator runs.
    Operator,
}

impl<'py> FromPyObject<'_, 'py> for Stability {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let name: String = value.extract()?;
        match name.as_str() {
            "held" => Ok(Stability::Held),
            "run" => Ok(Stability::Run),
            "operator" => Ok(Stability::Operator),
            _ => Err(PyValueError::new_err(format!(
                "`{name}` is no stability: held, run or operator"
            ))),
        }
    }
}

/// A tensor that an operator produces, or that the graph is given.
#[derive(FromPyObject)]
pub(super) struct ValueDescription {
    pub(super) name: String,
    pub(super) stability: Stability,
    /// Whether a caller gives it, or the graph holds it.
    pub(super) is_input: bool,
    /// Why it is not to be looked at, if so.
    pub(super) reason: Option<String>,
}

/// A graph that an operator holds, such as a branch of `cond`.
#[derive(FromPyObject)]
pub(super) struct BodyDescription {
    /// The operator that holds it, by number.
    pub(super) outer: usize,
    /// Its own operators, by number, without those of bodies further inside.
    pub(super) operators: Vec<usize>,
    /// The body that it is in, by number, which is a lower one.
    pub(super) parent: Option<usize>,
    /// Whether its operators run any number of times.
    pub(super) is_loop: bool,
    /// How many of its first runs in an execution of the operator are torch's own, to learn shapes.
    pub(super) n_dry_runs: u64,
    /// Why its operators are not to be looked at, if so.
    pub(super) reason: Option<String>,
}

/// An operator.
#[derive(FromPyObject)]
pub(super) struct OperatorDescription {
    op_type: String,
    op_name: String,
    /// Values by number.
    pub(super) inputs: Vec<usize>,
    /// Values by number, for each result in turn; `None` for results that are no tensors.
    pub(super) outputs: Vec<Option<usize>>,
    attributes: Vec<(String, String)>,
    /// Arguments that it has without being given them, as Python prints them.
    default_attributes: Vec<(String, String)>,
    /// The collective that it is, as text, and the global ranks of its group.
    collective: Option<(String, Vec<u32>)>,
    /// The operator after which its results are shown, by number, if that is not itself.
    pub(super) shown_after: Option<usize>,
    /// Placements as text; empty ones say nothing.
    input_placements: Vec<String>,
    output_placements: Vec<String>,
    /// Whether it is to be dumped.
    pub(super) is_selected: bool,
    /// Whether its record has both sides, whichever side the plan asks for.
    pub(super) has_both_sides: bool,
}

/// How attributes begin that are arguments of the operator, which Python has printed.
const ARGUMENT_PREFIX: &str = "argument.";

/// The type of the value that the text of an attribute of this name stands for.
fn kind(name: &str) -> AttributeKind {
    if name.starts_with(ARGUMENT_PREFIX) {
        AttributeKind::Python
    } else {
        AttributeKind::Text
    }
}

fn default((name, text): &(String, String)) -> DefaultAttribute {
    DefaultAttribute {
        name: name.clone(),
        text: text.clone(),
        r#type: AttributeKind::Python,
    }
}

impl OperatorDescription {
    /// The text of an attribute; empty where there is none.
    fn attribute(&self, name: &str) -> &str {
        let mut attributes = self.attributes.iter();
        let found = attributes.find(|(known, _)| known == name);
        found.map_or("", |(_, text)| text.as_str())
    }

    /// The operator, where `values` says what its values are called.
    pub(super) fn named(
        &self,
        task_id: usize,
        values: &[ValueDescription],
    ) -> PyResult<Arc<Operator>> {
        let name = |value: usize| -> PyResult<String> {
            let known = values.get(value).ok_or_else(|| {
                let (op_name, n) = (&self.op_name, values.len());
                PyValueError::new_err(format!("operator `{op_name}` has value {value} of {n}"))
            })?;
            Ok(known.name.clone())
        };
        let task_id = u32::try_from(task_id)
            .map_err(|_| PyValueError::new_err("the graph has too many operators"))?;
        // The empty name keeps the place of a result that is no tensor, so later ones keep their
        // index.
        let outputs = (self.outputs.iter()).map(|value| value.map_or(Ok(String::new()), name));
        Ok(Arc::new(Operator {
            task_id,
            op_type: self.op_type.clone(),
            op_name: self.op_name.clone(),
            inputs: self
                .inputs
                .iter()
                .map(|&value| name(value))
                .collect::<PyResult<_>>()?,
            outputs: outputs.collect::<PyResult<_>>()?,
            attributes: self.attributes.clone(),
            call_site: Some(CallSite {
                module: self.attribute("module").into(),
                source: self.attribute("source").into(),
            }),
            attribute_types: self.attributes.iter().map(|(name, _)| kind(name)).collect(),
            default_attributes: self.default_attributes.iter().map(default).collect(),
            collective: (self.collective.as_ref())
                .and_then(|(kind, ranks)| collective(kind, ranks.clone())),
            input_placements: placements(&self.input_placements),
            output_placements: placements(&self.output_placements),
            ..Operator::default()
        }))
    }
}
