//! The outcome of comparing a group of operators, and its combination over all groups.

use std::collections::HashMap;

use super::row::OperatorRows;
use super::stop::CompareStop;
use crate::failure::ErrorCode;
use crate::log;

/// The outcome of one group.
#[derive(Debug, Default)]
pub(super) struct GroupOutcome {
    /// The error of the last operator that failed.
    pub(super) status: Option<ErrorCode>,
    /// Whether anything could be compared.
    pub(super) is_matched: bool,
    pub(super) rows: Vec<OperatorRows>,
    /// The producers of the inputs, by tensor. Empty if two devices are compared.
    pub(super) producers: HashMap<String, ProducedOutput>,
}

/// An output of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProducedOutput {
    pub(super) name: String,
    pub(super) output: usize,
}

/// The first failure in the order of the groups, and whether anything could be compared.
pub(super) fn summary(outcomes: &[GroupOutcome]) -> (Option<ErrorCode>, bool) {
    (
        outcomes.iter().find_map(|outcome| outcome.status),
        outcomes.iter().any(|outcome| outcome.is_matched),
    )
}

/// Copies the results of producer outputs to the inputs of sliced operators: a slice of an input
/// has no golden tensor, but the whole output has. Not for two devices.
pub(super) fn take_over_results(outcomes: &mut [GroupOutcome]) -> Result<(), CompareStop> {
    let mut sliced: HashMap<String, (usize, usize)> = HashMap::new();
    for (i, outcome) in outcomes.iter().enumerate() {
        for (j, rows) in outcome.rows.iter().enumerate() {
            if rows.is_ffts {
                sliced.insert(rows.op_name.clone(), (i, j));
            }
        }
    }
    for i in 0..outcomes.len() {
        for j in 0..outcomes[i].rows.len() {
            if outcomes[i].rows[j].is_ffts && !outcomes[i].producers.is_empty() {
                take_over(outcomes, (i, j), &sliced)?;
            }
        }
    }
    Ok(())
}

fn take_over(
    outcomes: &mut [GroupOutcome],
    (i, j): (usize, usize),
    sliced: &HashMap<String, (usize, usize)>,
) -> Result<(), CompareStop> {
    for (at, row) in outcomes[i].rows[j].inputs.clone().into_iter().enumerate() {
        let Some(tensor) = outcomes[i].rows[j].tensor_of(row) else {
            continue;
        };
        let Some(producer) = outcomes[i].producers.get(tensor) else {
            log::error(&format!(
                "The tensor index '{tensor}' is invalid, no input mapping information"
            ));
            return Err(CompareStop::bare(ErrorCode::InputMapping));
        };
        let Some(&(from, op)) = sliced.get(&producer.name) else {
            log::warning(&format!(
                "The result of '{}' is not in result mapping",
                producer.name
            ));
            continue;
        };
        let source = &outcomes[from].rows[op];
        let output = source
            .outputs
            .get(producer.output)
            .ok_or_else(CompareStop::index)?;
        let results = source
            .rows
            .get(*output)
            .ok_or_else(CompareStop::index)?
            .clone();
        outcomes[i].rows[j].replace_results(at, &results);
    }
    Ok(())
}
