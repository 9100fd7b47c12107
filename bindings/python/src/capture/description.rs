//! A graph as described by Python. Values are identified by number, so that a shared value is the
//! same everywhere.

use std::sync::Arc;

use opscope_store::record::{AttributeKind, CallSite, DefaultAttribute, Operator};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::parallel::{collective, placements};

/// How long a value's memory keeps its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stability {
    /// As long as the tensor is referenced.
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
                "stability `{name}`: expected held, run or operator"
            ))),
        }
    }
}

/// A tensor that an operator produces, or an argument of the graph.
#[derive(FromPyObject)]
pub(super) struct ValueDescription {
    pub(super) name: String,
    pub(super) stability: Stability,
    /// Whether it is an argument or a constant of the graph.
    pub(super) is_input: bool,
    /// Why it cannot be observed, if so.
    pub(super) reason: Option<String>,
}

/// A graph inside an operator, such as a branch of `cond`.
#[derive(FromPyObject)]
pub(super) struct BodyDescription {
    /// The containing operator, by number.
    pub(super) outer: usize,
    /// Its own operators, by number, without those of nested bodies.
    pub(super) operators: Vec<usize>,
    /// The enclosing body, by number, which is lower.
    pub(super) parent: Option<usize>,
    /// Whether its operators may run several times.
    pub(super) is_loop: bool,
    /// Number of initial runs per execution that torch uses to infer shapes.
    pub(super) n_dry_runs: u64,
    /// Why its operators cannot be observed, if so.
    pub(super) reason: Option<String>,
}

/// An operator.
#[derive(FromPyObject)]
pub(super) struct OperatorDescription {
    op_type: String,
    op_name: String,
    /// Values by number.
    pub(super) inputs: Vec<usize>,
    /// Values by number, one per result; `None` for results that are not tensors.
    pub(super) outputs: Vec<Option<usize>>,
    attributes: Vec<(String, String)>,
    /// Arguments with default values, as Python prints them.
    default_attributes: Vec<(String, String)>,
    /// Its collective as text, and the group's global ranks.
    collective: Option<(String, Vec<u32>)>,
    /// The operator after which its results are recorded, by number, if another.
    pub(super) shown_after: Option<usize>,
    /// Placements as text; empty if unknown.
    input_placements: Vec<String>,
    output_placements: Vec<String>,
    /// Whether to dump it.
    pub(super) is_selected: bool,
    /// Whether its record has inputs and outputs regardless of the plan.
    pub(super) has_both_sides: bool,
}

/// Prefix of attributes that are the operator's arguments, printed by Python.
const ARGUMENT_PREFIX: &str = "argument.";

/// The type of an attribute's value, by its name.
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
    /// The text of an attribute; empty if missing.
    fn attribute(&self, name: &str) -> &str {
        let mut attributes = self.attributes.iter();
        let found = attributes.find(|(known, _)| known == name);
        found.map_or("", |(_, text)| text.as_str())
    }

    /// The operator with names from `values`.
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
        // An empty name keeps the place of a result that is not a tensor, so that later ones keep
        // their index.
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
