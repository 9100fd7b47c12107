//! One operator with its slots, neighbours and origin.

use opscope_analysis::compare::report::{ShownPlaces, words};
use opscope_analysis::compare::result::{
    MetricId, OperatorResult, RuleName, SlotResult, TensorChange, VerdictLevel,
};
use opscope_analysis::compare::side::ExecutionSlot;
use opscope_analysis::survey::SpreadRole;
use serde_json::{Value, json};

use super::{AnswerError, events, operators};
use crate::json::{known, number, slot};
use crate::viewed::{ShownSide, ViewedRuns};

/// Maximum number of operators in a chain.
const N_CHAIN_MAX: usize = 50;

pub(super) fn answer(runs: &ViewedRuns, id: usize) -> Result<Value, AnswerError> {
    let facts = runs.facts(id);
    let facts = facts.ok_or_else(|| AnswerError::Missing(format!("there is no operator {id}")))?;
    let mut answer = operators::row(runs, &facts);
    // For fused operators, the last, whose output is the pair's.
    let executions = runs.executions(id, ShownSide::Target);
    let origin = executions
        .last()
        .map(|&run| runs.target.dump.module_and_source(run));
    let [module, source] = origin.unwrap_or_default();
    answer["module"] = module.into();
    answer["source"] = source.iter().flat_map(|text| stack(text)).collect();
    answer["target"] = names(runs, id, ShownSide::Target);
    answer["golden"] = names(runs, id, ShownSide::Golden);
    answer["slots"] = match facts.compared {
        Some(operator) => operator.slots.iter().map(compared_slot).collect(),
        None => {
            let run = runs.target.dump.runs.get(id);
            run.iter()
                .flat_map(|run| &run.slots)
                .map(surveyed_slot)
                .collect()
        }
    };
    let attributes = facts
        .compared
        .iter()
        .flat_map(|operator| &operator.attributes);
    let attributes = attributes.map(|attribute| {
        json!({
            "name": attribute.label(),
            "target": attribute.target,
            "golden": attribute.golden,
        })
    });
    answer["attributes"] = attributes.collect();
    answer["how"] = facts
        .compared
        .map_or("", |operator| operator.how.name())
        .into();
    let (producers, consumers) = neighbours(runs, id);
    answer["producers"] = producers;
    answer["consumers"] = consumers;
    answer["chain"] = chain(runs, id);
    answer["events"] = events::of_operator(runs, id);
    answer["suspects"] = suspects(runs, facts.compared);
    Ok(answer)
}

fn names(runs: &ViewedRuns, id: usize, side: ShownSide) -> Value {
    let Some(dump) = runs.side(side) else {
        return json!([]);
    };
    let executions = runs.executions(id, side).into_iter();
    let executions = executions.filter_map(|run| dump.dump.runs.get(run));
    let names = executions
        .map(|run| json!({ "op_type": run.op_type.as_str(), "op_name": run.op_name.as_str() }));
    names.collect()
}

/// The frames of a recorded stack. Frames in installed packages are not the user's.
fn stack(text: &str) -> Vec<Value> {
    let frames = text.split(['\n', ';']).map(str::trim);
    let frames = frames.filter(|frame| !frame.is_empty());
    frames
        .map(|frame| json!({ "text": frame, "is_user": !frame.contains("site-packages") }))
        .collect()
}

fn compared_slot(result: &SlotResult) -> Value {
    let rules = result.rules.iter();
    let mut rules: Vec<_> = rules
        .filter_map(|rule| match rule.metric {
            RuleName::Metric(metric) => Some((metric, rule)),
            _ => None,
        })
        .collect();
    rules.sort_by(|(_, a), (_, b)| words::excess(b).total_cmp(&words::excess(a)));
    // A failing metric has also exceeded the warning limit.
    let mut why: Vec<Value> = Vec::new();
    let mut named: Vec<MetricId> = Vec::new();
    for (metric, rule) in rules {
        if rule.level == result.level && !named.contains(&metric) {
            named.push(metric);
            why.push(json!({
                "metric": metric.name(),
                "value": number(rule.value),
                "limit": number(rule.threshold),
                "level": words::level(rule.level),
            }));
        }
    }
    let metrics = result.metrics.iter();
    let metrics: Vec<Value> = metrics
        .map(|(metric, value)| json!([metric.name(), number(value)]))
        .collect();
    let n_inf = (result.metrics.get(MetricId::TargetPositiveInfCount))
        .zip(result.metrics.get(MetricId::TargetNegativeInfCount));
    let ends = [MetricId::TargetMin, MetricId::TargetMax]
        .map(|metric| result.metrics.get(metric))
        .into_iter();
    let max_abs = ends.flatten().map(f64::abs).reduce(f64::max);
    json!({
        "id": slot(result.slot),
        "golden": result.golden_slot.map(slot),
        "status": words::level(result.level),
        "dtype": [result.target.dtype.as_str(), result.golden.dtype.as_str()],
        "shape": [result.target.shape, result.golden.shape],
        "parameter": result.parameter.as_ref().map(|name| name.as_str()),
        "evidence": result.evidence.name(),
        "why": why,
        "metrics": metrics,
        "n_nan": known(result.metrics.get(MetricId::TargetNanCount)),
        "n_inf": known(n_inf.map(|(positive, negative)| positive + negative)),
        "max_abs": known(max_abs),
        "change": result.change.as_deref().map(|change| change_of(result, change)),
    })
}

/// The change of golden's tensor in words; exchanged axes also as golden's axes in the target's
/// order.
fn change_of(result: &SlotResult, change: &TensorChange) -> Value {
    let order = match change {
        TensorChange::Axes { order, .. } => Some(order),
        _ => None,
    };
    json!({ "words": words::change(result), "order": order })
}

fn surveyed_slot(found: &ExecutionSlot) -> Value {
    let level = match &found.problem {
        Some(_) => VerdictLevel::Skip,
        None => VerdictLevel::Pass,
    };
    json!({
        "id": slot(found.key()),
        "golden": null,
        "status": words::level(level),
        "dtype": [found.dtype_name.as_str(), null],
        "shape": [found.shape, null],
        "parameter": null,
        "evidence": if found.has_elements { Some("elements") } else { None },
        "why": [], "metrics": [], "n_nan": null, "n_inf": null, "max_abs": null,
    })
}

/// Producers of the inputs and consumers of the outputs, with this operator's slots.
fn neighbours(runs: &ViewedRuns, id: usize) -> (Value, Value) {
    let links = &runs.target.links;
    let executions = runs.executions(id, ShownSide::Target);
    let (mut producers, mut consumers) = (Vec::new(), Vec::new());
    for run in executions {
        producers.extend(links.producers(run));
        consumers.extend(links.consumers(run));
    }
    let [producers, consumers] = [producers, consumers].map(|links| {
        let links = links.iter().filter_map(|(key, run)| {
            let id = runs.operator_of(*run)?;
            Some(json!({ "slot": slot(*key), "id": id }))
        });
        links.collect()
    });
    (producers, consumers)
}

/// The chain of non-finite values: the operator's largest producer before it, and consumers after
/// it.
fn chain(runs: &ViewedRuns, id: usize) -> Value {
    let Some(survey) = runs.survey() else {
        return json!([]);
    };
    // Possible masks are not part of a fault's path.
    let role_of = |run: usize| {
        let role = survey.executions.get(run)?.role;
        role.filter(|role| *role != SpreadRole::MayBeMask)
    };
    if role_of(id).is_none() {
        return json!([]);
    }
    let links = &runs.target.links;
    let mut chain = Vec::new();
    let before = links.producers(id).map(|(_, run)| run);
    // The most relevant input is the one nearest to its dtype's limit.
    let before = before.max_by(|a, b| {
        let [a, b] = [a, b].map(|run| survey.executions.get(*run).and_then(|found| found.max_abs));
        a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
    });
    chain.extend(before.map(|run| (run, "before")));
    let mut run = id;
    let mut role = match role_of(id) {
        Some(SpreadRole::MakesNan | SpreadRole::MakesInf) => "makes",
        Some(SpreadRole::TurnsInfToNan) => "changes",
        _ => "hands_on",
    };
    // Follows the earliest reader each time, which is how the values spread first.
    loop {
        chain.push((run, role));
        // Executions are ordered in time, so the path ends.
        let next = links.consumers(run).map(|(_, next)| next);
        let next = next
            .filter(|&next| next > run && role_of(next).is_some())
            .min();
        let Some(next) = next.filter(|_| chain.len() < N_CHAIN_MAX) else {
            break;
        };
        role = match role_of(next) {
            Some(SpreadRole::TurnsInfToNan) => "changes",
            _ => "hands_on",
        };
        run = next;
    }
    let entries = chain.into_iter().filter_map(|(run, role)| {
        let (facts, found) = (runs.facts(run)?, survey.executions.get(run)?);
        Some(json!({
            "id": run,
            "op_type": facts.op_type,
            "op_name": facts.op_name,
            "role": role,
            "n_nan": found.n_nan,
            "n_inf": found.n_inf,
            "n_elements": found.n_elements,
            "max_abs": known(found.max_abs),
        }))
    });
    entries.collect()
}

fn suspects(runs: &ViewedRuns, operator: Option<&OperatorResult>) -> Value {
    let (Some(comparison), Some(operator)) = (runs.comparison(), operator) else {
        return json!([]);
    };
    let places = ShownPlaces::for_comparison(comparison);
    let suspects = operator.suspects.iter().map(|suspect| {
        json!({
            "op_type": suspect.operator.op_type.as_str(),
            "op_name": suspect.operator.op_name.as_str(),
            "reason": words::suspect(suspect, places),
        })
    });
    suspects.collect()
}
