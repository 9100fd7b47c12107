//! Values that operators read and no operator produces.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use opscope_store::record::Operator;
use opscope_store::tree::mindspore::{CONSTANT, PARAMETER};

use super::graph_view::GraphView;
use super::kernels::KernelMatches;
use super::selected::GraphInput;
use crate::{Plan, Purpose};

/// The records of parameters by the names of their values: of the type `Parameter` and under the
/// value's name, or of the type `Constant` and under `data-` with a number that counts from 0.
pub(super) fn parameters_read<'a>(
    plan: &Plan,
    graph: GraphView<'a>,
    chosen: &mut KernelMatches<'_>,
) -> BTreeMap<&'a str, Operator> {
    let has_purpose = matches!(plan.purpose, Purpose::Values | Purpose::NonFinite);
    let mut records = BTreeMap::new();
    if !(plan.has_parameters || plan.has_constants) || !plan.sides.outputs() || !has_purpose {
        return records;
    }
    let operators = || graph.operators.iter();
    let produced: HashSet<&str> = operators()
        .flat_map(|operator| &operator.outputs)
        .map(String::as_str)
        .collect();
    let constants: HashSet<&str> = graph.constants.iter().map(String::as_str).collect();
    let mut n_constants = 0;
    let mut seen = HashSet::new();
    let read =
        operators().flat_map(|operator| operator.inputs.iter().map(move |name| (operator, name)));
    for (operator, name) in read {
        // A loop's variables change with every iteration: they are neither weights nor inputs.
        if graph.is_carried(operator.task_id, name) {
            continue;
        }
        // Where the engine counts nodes that hold constants among the operators, these are
        // produced.
        let is_constant = constants.contains(name.as_str());
        let is_produced = !is_constant && produced.contains(name.as_str());
        if name.is_empty() || is_produced || !seen.insert(name.as_str()) {
            continue;
        }
        let (op_type, op_name, full_name) = if is_constant {
            let number = format!("data-{n_constants}");
            n_constants += 1;
            // MindSpore uses such names for constants, and rules written for its names have to
            // match.
            let full_name = format!("Default/{number}");
            (CONSTANT, number, full_name)
        } else {
            (PARAMETER, name.clone(), name.clone())
        };
        let is_kept = if is_constant {
            plan.has_constants
        } else {
            plan.has_parameters
        };
        if is_kept && chosen.has_name(&full_name) {
            let record = Operator {
                op_type: op_type.to_owned(),
                op_name,
                outputs: vec![name.clone()],
                ..Operator::default()
            };
            records.insert(name.as_str(), record);
        }
    }
    records
}

/// Those of `parameters` that an operator reads, each at the first place where it does.
pub(super) fn read_by(
    operator: &Operator,
    parameters: &BTreeMap<&str, Operator>,
    graph: GraphView<'_>,
) -> Vec<GraphInput> {
    let mut seen = HashSet::new();
    let names = operator.inputs.iter().enumerate();
    names
        .filter(|(_, name)| seen.insert(name.as_str()))
        .filter(|(_, name)| !graph.is_carried(operator.task_id, name))
        .filter_map(|(position, name)| {
            let record = parameters.get(name.as_str())?;
            let operator = Arc::new(Operator {
                task_id: operator.task_id,
                ..record.clone()
            });
            Some(GraphInput { position, operator })
        })
        .collect()
}
