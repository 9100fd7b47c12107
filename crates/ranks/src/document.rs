//! Findings about ranks as JSON.

use serde_json::{Value, json};

use super::finding::{DivergenceFinding, DivergenceKind, RankDivergences};
use super::meetings::{Desync, Meeting};
use super::restart::RestartComparison;
use super::run::RankedRun;
use super::spread::{FirstOrigin, NonFiniteOrigin, NonFiniteSpread, UnknownOutputs};

/// An execution: rank, step, operator and place.
pub fn execution(run: &RankedRun, index: usize) -> Value {
    let one = &run.dump.runs[index];
    json!({
        "rank": run.rank_of(index),
        "step": one.place.step,
        "model": one.place.model.as_deref(),
        "op_type": one.op_type.as_str(),
        "op_name": one.op_name.as_str(),
        "call": one.repeat,
        "position": run.places[index].map(|place| place.position),
    })
}

/// A collective: kind, group, index within its group, and the operator on its first rank.
pub fn meeting(run: &RankedRun, nth: usize) -> Value {
    let meeting: &Meeting = &run.meetings.meetings[nth];
    let first = meeting.calls.first().map(|call| &run.dump.runs[call.run]);
    json!({
        "kind": meeting.kind.to_string(),
        "op_name": first.map(|execution| execution.op_name.as_str()),
        "step": meeting.step,
        "group": &meeting.group[..],
        "group_from": meeting.group_source.name(),
        "nth": meeting.nth,
        "missing_ranks": &meeting.missing,
    })
}

/// Facts about a run that every document includes.
pub fn run(run: &RankedRun) -> Value {
    let ranks: Vec<u32> = run.ranks.iter().map(|sequence| sequence.rank).collect();
    json!({
        "ranks": ranks,
        "executions": run.dump.runs.len(),
        "collectives": run.meetings.meetings.len(),
        "unmatched_collectives": run.meetings.unmatched.len(),
        "unordered_collectives": run.order.n_unordered,
        "desyncs": run.meetings.desyncs.iter().map(|item| desync(run, item)).collect::<Value>(),
        "problems": run.dump.problems,
    })
}

fn desync(run: &RankedRun, desync: &Desync) -> Value {
    let sides = desync.sides.iter().map(|side| {
        json!({
            "ranks": side.ranks,
            "kind": side.kind.map(|kind| kind.to_string()),
            "op_name": side.run.map(|index| run.dump.runs[index].op_name.as_str()),
            "collectives": side.n_calls,
        })
    });
    json!({
        "step": desync.step,
        "group": &desync.group[..],
        "nth": desync.nth,
        "sides": sides.collect::<Value>(),
    })
}

/// The origins of NaN and infinities.
pub fn spread(run: &RankedRun, spread: &NonFiniteSpread) -> Value {
    let (order, first) = match &spread.first {
        FirstOrigin::None => ("none", Vec::new()),
        FirstOrigin::Known(nth) => ("known", vec![*nth]),
        FirstOrigin::NotOrdered(origins) => ("not_ordered", origins.clone()),
    };
    json!({
        "origins": spread.origins.iter().map(|item| origin(run, item)).collect::<Value>(),
        "unlisted_origins": spread.n_unlisted,
        "order": order,
        "first": first,
        "executions_with_nan_or_inf": spread.n_executions,
        "maybe_masks": spread.n_maybe_masks,
        "unknown_executions": spread.n_unknown,
        "unknown": spread.unknown.iter().map(|item| unknown(run, item)).collect::<Value>(),
        "problems": spread.problems,
    })
}

fn unknown(run: &RankedRun, unknown: &UnknownOutputs) -> Value {
    let mut value = execution(run, unknown.run);
    let slots = unknown.slots.iter().map(|index| format!("output.{index}"));
    value["slots"] = slots.collect();
    value
}

fn origin(run: &RankedRun, origin: &NonFiniteOrigin) -> Value {
    let reached = origin.reached.iter().map(|reached| {
        let mut value = execution(run, reached.run);
        value["from"] = reached.from.into();
        value["through"] = meeting(run, reached.meeting);
        value
    });
    let mut value = execution(run, origin.run);
    value["cause"] = origin.cause.name().into();
    value["nan"] = origin.n_nan.into();
    value["inf"] = origin.n_inf.into();
    value["at_least"] = origin.is_least.into();
    value["collective"] = origin.meeting.map_or(Value::Null, |nth| meeting(run, nth));
    value["infinities_of"] = (origin.infinities_of).map_or(Value::Null, |one| execution(run, one));
    value["reached"] = reached.collect();
    value["later"] = later(run, &origin.later);
    value
}

fn later(run: &RankedRun, later: &[usize]) -> Value {
    later.iter().map(|&index| execution(run, index)).collect()
}

/// The places where ranks diverge.
pub fn divergences(run: &RankedRun, found: &RankDivergences) -> Value {
    json!({
        "findings": found.findings.iter().map(|item| finding(run, item)).collect::<Value>(),
        "recomputed_collectives": found.n_recomputed,
        "compared_collectives": found.n_compared,
        "unchecked_collectives": found.n_unchecked,
        "replicated_operators": found.n_replicated,
        "edges": found.n_edges,
        "parameters": found.n_parameters,
        "unknown_tensors": found.n_unknown,
        "unread_tensors": run.marks.n_unread,
    })
}

fn finding(run: &RankedRun, finding: &DivergenceFinding) -> Value {
    let mut value = execution(run, finding.run);
    value["finding"] = finding.kind.name().into();
    value["ranks"] = finding.ranks.clone().into();
    value["each_rank"] = finding.is_each.into();
    value["agreeing_ranks"] = finding.others.clone().into();
    value["slot"] = finding.slot.map(|slot| slot.to_string()).into();
    value["evidence"] = finding.evidence.name().into();
    value["collective"] = finding.meeting.map_or(Value::Null, |nth| meeting(run, nth));
    match &finding.kind {
        DivergenceKind::WrongOrder(order) => value["order"] = order.clone().into(),
        DivergenceKind::Drifted(parameter) => {
            value["parameter"] = parameter.name.clone().into();
            value["equal_in_step"] = parameter.equal_in.into();
            value["equal_gradients"] = parameter.had_equal_gradients.into();
        }
        DivergenceKind::Overwritten(maker) => value["made_by"] = execution(run, *maker),
        DivergenceKind::Desync(nth) => value["desync"] = desync(run, &run.meetings.desyncs[*nth]),
        _ => {}
    }
    if let Some(difference) = &finding.difference {
        let [found, expected] = difference.values.map(number);
        value["difference"] = json!({
            "elements": difference.n_elements,
            "first": difference.first,
            "found": found,
            "expected": expected,
        });
    }
    value["later"] = later(run, &finding.later);
    value
}

/// JSON has no NaN and no infinities.
fn number(number: f64) -> Value {
    serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
}

/// The places where ranks diverge from another run.
pub fn restart(run: &RankedRun, found: &RestartComparison) -> Value {
    let differences = found.differences.iter().map(|difference| {
        let mut value = execution(run, difference.run);
        value["difference"] = difference.kind.name().into();
        value["slot"] = difference.slot.to_string().into();
        value["may_follow"] = difference.may_follow.into();
        value
    });
    json!({
        "differences": differences.collect::<Value>(),
        "compared_executions": found.n_compared,
        "compared_tensors": found.n_tensors,
        "single_executions": found.n_single,
        "single_ranks": found.single_ranks,
    })
}
