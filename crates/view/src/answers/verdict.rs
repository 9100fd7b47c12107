//! The verdict in parts, from which the page builds a sentence in its language.

use std::collections::HashMap;

use opscope_analysis::compare::report::words::{self, promises};
use opscope_analysis::compare::result::{
    Cause, Comparison, Conclusion, DivergencePoint, RuleName, SlotResult, TensorChange,
};
use opscope_analysis::compare::side::ExecutionSlot;
use opscope_analysis::events::EventKind;
use opscope_analysis::overflow::{Finding, needed};
use opscope_analysis::overflow_words;
use opscope_analysis::survey::{self, SpreadRole};
use opscope_store::record::SlotSide;
use opscope_tensor::{DType, largest_finite};
use serde_json::{Value, json};

use super::events;
use crate::json::{number, slot};
use crate::viewed::{OperatorFacts, ShownSide, ViewedRuns};

pub(super) fn verdict(runs: &ViewedRuns) -> Value {
    let mut verdict = match runs.comparison() {
        Some(comparison) => of_comparison(runs, comparison),
        // Overwritten values may have corrupted others.
        None => (of_finding(runs))
            .or_else(|| of_overwrite(runs))
            .unwrap_or_else(|| of_survey(runs)),
    };
    let operator = verdict["op"]
        .as_u64()
        .and_then(|id| usize::try_from(id).ok());
    let record = operator.and_then(|id| runs.overflow_of(id));
    verdict["overflow"] = record.map_or(Value::Null, events::overflow);
    verdict
}

/// The first finding of the command that opened the page.
fn of_finding(runs: &ViewedRuns) -> Option<Value> {
    let mut found = runs.target.findings();
    let (event, text) = found.next()?;
    Some(json!({
        "status": "fail", "kind": "finding",
        "op": event.run.and_then(|run| runs.operator_of(run)),
        "op_type": event.op_type, "op_name": event.op_name,
        "slot": null, "parameter": null, "rank": null, "step": null,
        "n_bad": null, "n_elements": null, "dtype": null,
        "metric": null, "box": null, "n_after": found.count(), "text": text,
    }))
}

/// The first overwritten value.
fn of_overwrite(runs: &ViewedRuns) -> Option<Value> {
    let mut found = runs
        .target
        .events
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Overwrite(entry) => Some((event, entry)),
            _ => None,
        });
    let (event, entry) = found.next()?;
    let ranges = entry.byte_ranges.iter();
    let ranges: Vec<[u64; 2]> = ranges
        .map(|[first, end]| [*first, end.saturating_sub(1)])
        .collect();
    let n_after = found.count() as u64 + runs.target.events.n_unlisted;
    Some(json!({
        "status": "fail", "kind": "overwritten",
        "op": event.run.and_then(|run| runs.operator_of(run)),
        "op_type": event.op_type, "op_name": event.op_name,
        "slot": null, "parameter": entry.watched,
        "rank": event.rank, "step": event.step,
        "n_bad": entry.n_bytes, "n_elements": null, "dtype": null,
        "metric": null, "box": null, "n_after": n_after, "bytes": ranges,
        "text": format!(
            "`{}` was overwritten: seen after {} `{}`",
            entry.watched, event.op_type, event.op_name
        ),
    }))
}

/// The first recorded overflow, if the outputs contain neither NaN nor infinities.
fn of_overflow(runs: &ViewedRuns) -> Option<Value> {
    let (run, found) = runs.first_overflow()?;
    let facts = runs.facts(run)?;
    let status = found.last().map(Finding::explanation).unwrap_or_default();
    let name = format!("{} `{}`", facts.op_type, facts.op_name);
    let all = (0..runs.n_operators()).filter_map(|id| runs.facts(id));
    let n = all.filter(|facts| facts.has_overflow).count();
    Some(json!({
        "status": "fail", "kind": "overflow_recorded",
        "op": run, "op_type": facts.op_type, "op_name": facts.op_name,
        "slot": null, "parameter": null, "rank": facts.rank, "step": facts.step,
        "n_bad": null, "n_elements": null,
        "dtype": bad_output(runs, &facts).map(|output| output.dtype_name.as_str()),
        "metric": null, "box": null, "n_after": n.saturating_sub(1),
        "text": format!("first overflow record: {name}, {status}"),
    }))
}

fn of_comparison(runs: &ViewedRuns, comparison: &Comparison) -> Value {
    let summary = &comparison.summary;
    let mut verdict = json!({
        "status": words::level(summary.level),
        "kind": kind_of_whole(comparison),
        "op": null, "op_type": "", "op_name": "", "slot": null, "parameter": null,
        "rank": null, "step": null, "n_bad": null, "n_elements": null, "dtype": null,
        "metric": null, "box": null, "n_after": 0,
        "text": words::verdict(comparison),
    });
    let Some((point, operator, found)) = words::headline(comparison) else {
        hidden_difference(comparison, &mut verdict);
        return verdict;
    };
    let name = point
        .name
        .clone()
        .unwrap_or_else(|| words::name_of(operator));
    let parameter = found.and_then(|slot| slot.parameter.clone());
    if names_cause(comparison) {
        verdict["kind"] = kind(runs, point, found).into();
        verdict["finding"] = promises::finding_of_outputs(comparison).into();
    }
    verdict["certainty"] = json!(summary.certainty);
    verdict["op"] = point.operator.into();
    verdict["op_type"] = name.op_type.as_str().into();
    verdict["op_name"] = name.op_name.as_str().into();
    verdict["slot"] = slot(point.slot).into();
    verdict["parameter"] = parameter.map(|name| name.to_string()).into();
    verdict["rank"] = name.rank.into();
    verdict["step"] = name.step.into();
    let later = comparison.operators.iter().skip(point.operator + 1);
    // Others may differ for independent reasons.
    verdict["n_after"] = later
        .filter(|later| later.cause == Some(Cause::Inherited))
        .count()
        .into();
    if let Some(found) = found {
        verdict["metric"] = worst_rule(found);
        verdict["box"] = differing(found);
        verdict["dtype"] = found.target.dtype.as_str().into();
        if let Some(TensorChange::Overflow {
            largest, needed, n, ..
        }) = found.change.as_deref()
        {
            verdict["limit"] = json!({"largest": largest, "needed": needed});
            // Its own result: an input that overflowed names the operator before.
            if verdict["kind"] == "own" {
                verdict["kind"] = "overflows".into();
                verdict["n_bad"] = (*n).into();
                let dims = found.target.shape.iter();
                let n_elements = dims.fold(1_u64, |n, dim| n.saturating_mul(*dim));
                verdict["n_elements"] = n_elements.into();
            }
        }
    }
    verdict
}

/// Selects what differs although the outputs agree: a weight, or else the first slot inside.
fn hidden_difference(comparison: &Comparison, verdict: &mut Value) {
    let contract = &comparison.contract;
    let mut weights = contract
        .weights
        .iter()
        .filter(|weight| weight.state.is_bad());
    let weight = weights
        .next()
        .filter(|_| verdict["kind"] == "hidden_weight");
    let place = weight.and_then(|weight| {
        verdict["parameter"] = weight.name.as_str().into();
        let [operator, slot] = weight.pair?;
        let result = comparison.operators.get(operator)?.slots.get(slot)?;
        Some((operator, result.slot))
    });
    // The first slot inside may be a warning long before the weight.
    let inside = contract.inside.as_ref();
    let place = place.or(inside.map(|point| (point.operator, point.slot)));
    let operator = place.and_then(|(operator, _)| comparison.operators.get(operator));
    if let Some(((id, key), operator)) = place.zip(operator) {
        let name = words::name_of(operator);
        verdict["op"] = id.into();
        verdict["op_type"] = name.op_type.as_str().into();
        verdict["op_name"] = name.op_name.as_str().into();
        verdict["slot"] = slot(key).into();
    }
    verdict["n_bad"] = contract.n_inside[1].into();
}

/// The kind of a verdict without an operator. The page shows the text of `contract` as it is, and
/// has its own sentences for the others.
fn kind_of_whole(comparison: &Comparison) -> &'static str {
    let contract = &comparison.contract;
    let [n_pass, n_warn, n_fail, _] = comparison.summary.slots;
    match contract.conclusion {
        Conclusion::Incomplete if n_pass + n_warn + n_fail == 0 => "nothing",
        Conclusion::Pass if contract.n_inside == [0, 0] => "agree",
        Conclusion::Pass if contract.is_known() && contract.n_inside[1] > 0 => "inside",
        Conclusion::Warn
            if contract.is_same_graph
                && (contract
                    .weights
                    .iter()
                    .filter(|weight| weight.state.is_bad()))
                .count()
                    == 1 =>
        {
            "hidden_weight"
        }
        _ => "contract",
    }
}

/// Whether the first divergent operator causes the verdict.
fn names_cause(comparison: &Comparison) -> bool {
    let conclusion = comparison.contract.conclusion;
    matches!(conclusion, Conclusion::Fail | Conclusion::Warn)
}

/// The reason, as a key of the page's sentences.
fn kind(runs: &ViewedRuns, point: &DivergencePoint, found: Option<&SlotResult>) -> &'static str {
    match point.cause {
        Cause::Own => "own",
        Cause::Inherited => "inherited",
        Cause::Gradual => "gradual",
        Cause::Unknown => "unknown",
        Cause::Outside => entry(runs, point.operator, found).unwrap_or("input"),
    }
}

/// Where the difference enters: at a `weight`, `bias`, `model_input`, or an otherwise unknown
/// `input`.
pub(super) fn entry(
    runs: &ViewedRuns,
    operator: usize,
    found: Option<&SlotResult>,
) -> Option<&'static str> {
    let found = found.filter(|slot| slot.slot.side == SlotSide::Input)?;
    if let Some(parameter) = &found.parameter {
        let last = parameter.rsplit(['.', '/', '_']).next().unwrap_or_default();
        // Exporters use this suffix for biases, whatever the prefix.
        let is_bias = last.eq_ignore_ascii_case("bias") || last.eq_ignore_ascii_case("b");
        return Some(if is_bias { "bias" } else { "weight" });
    }
    let run = *runs.executions(operator, ShownSide::Target).first()?;
    let (_, graph, described) = runs.target.dump.description_of(run)?;
    let inputs = &graph.operators.get(described)?.inputs;
    let name = inputs.get(found.slot.index as usize)?.as_ref()?;
    Some(if graph.arguments.contains(name) {
        "model_input"
    } else if graph.constants.contains(name) {
        "weight"
    } else {
        "input"
    })
}

/// The rule that a slot exceeds most, with its limit.
fn worst_rule(found: &SlotResult) -> Value {
    let rules = found.rules.iter();
    let measured = rules.filter_map(|rule| match rule.metric {
        RuleName::Metric(metric) if rule.level == found.level => Some((metric, rule)),
        _ => None,
    });
    let worst = measured.max_by(|a, b| words::excess(a.1).total_cmp(&words::excess(b.1)));
    match worst {
        None => Value::Null,
        Some((metric, rule)) => json!({
            "name": metric.name(),
            "value": number(rule.value),
            "limit": number(rule.threshold),
        }),
    }
}

fn differing(found: &SlotResult) -> Value {
    let Some(differing) = &found.differing else {
        return Value::Null;
    };
    let ranges = differing.ranges.iter();
    // Inclusive, as the page shows them.
    let ranges: Vec<[u64; 2]> = ranges
        .map(|[first, end]| [*first, end.saturating_sub(1)])
        .collect();
    json!({
        "n_differing": differing.n,
        "n_elements": differing.n_elements(),
        "ranges": ranges,
        "region": differing.region(),
    })
}

fn of_survey(runs: &ViewedRuns) -> Value {
    let all = (0..runs.n_operators()).filter_map(|id| runs.facts(id));
    // Ranks run in parallel, so the earliest step and position comes first.
    let mut bad: Vec<(bool, Option<u64>, usize, usize)> = Vec::new();
    let positions = positions(runs);
    for facts in all {
        let position = positions.get(facts.id).copied().unwrap_or(facts.id);
        if let Some(role) = facts.surveyed.and_then(|surveyed| surveyed.role) {
            // A possible mask is reported only if there is nothing else.
            bad.push((
                role == SpreadRole::MayBeMask,
                facts.step,
                position,
                facts.id,
            ));
        }
    }
    bad.sort_unstable();
    let first = bad.first();
    // A record is certain; infinities of a possible mask are not.
    if first.is_none_or(|(may_be_mask, ..)| *may_be_mask)
        && let Some(verdict) = of_overflow(runs)
    {
        return verdict;
    }
    let first = first.and_then(|(_, _, _, id)| runs.facts(*id));
    let n_after = bad
        .iter()
        .skip(1)
        .filter(|(may_be_mask, ..)| !may_be_mask)
        .count();
    let Some(first) = first else {
        return of_finite(runs);
    };
    let found = first.surveyed.copied().unwrap_or_default();
    let has_nan = found.n_nan.is_some_and(|n| n > 0);
    let output = bad_output(runs, &first);
    let dtype = output.and_then(|output| output.dtype);
    let is_made = found.role == Some(SpreadRole::MakesInf);
    let needed = is_made
        .then(|| needed(&runs.target.dump, first.id))
        .flatten();
    let is_beyond =
        dtype.is_some_and(|dtype| overflow_words(dtype, first.op_type, needed).is_some());
    let kind = match found.role {
        Some(SpreadRole::MakesNan) => "makes_nan",
        // The logarithm of 0 does not overflow, unless other elements reach the dtype's limit.
        Some(SpreadRole::MakesInf) if found.headroom == Some(0) || is_beyond => "overflows",
        Some(SpreadRole::MakesInf) => "makes_inf",
        Some(SpreadRole::MayBeMask) => "may_be_mask",
        _ if has_nan => "has_nan",
        _ => "has_inf",
    };
    let n_bad = if has_nan { found.n_nan } else { found.n_inf };
    let name = format!("{} `{}`", first.op_type, first.op_name);
    let what = if has_nan { "NaN" } else { "infinity" };
    let how = match kind {
        "makes_nan" | "makes_inf" | "overflows" => ", from finite inputs",
        _ => "",
    };
    json!({
        "status": words::level(first.level),
        "kind": kind,
        "op": first.id, "op_type": first.op_type, "op_name": first.op_name,
        "slot": output.map(|output| slot(output.key())), "parameter": null,
        "rank": first.rank, "step": first.step,
        "n_bad": n_bad, "n_elements": found.n_elements,
        "dtype": output.map(|output| output.dtype_name.as_str()),
        "metric": null, "box": null, "n_after": n_after,
        "limit": limit(kind, dtype, needed),
        "text": format!("first {what} at {name}{how}"),
    })
}

/// The largest number of the dtype of a result that overflowed, and the one that was needed.
fn limit(kind: &str, dtype: Option<DType>, needed: Option<f64>) -> Value {
    let largest = dtype
        .filter(|_| kind == "overflows")
        .and_then(largest_finite);
    largest.map_or(
        Value::Null,
        |largest| json!({"largest": largest, "needed": needed.filter(|n| n.is_finite())}),
    )
}

/// Each execution's position within its rank and step. Graphs that share a step, such as a
/// training's forward and backward graphs, are ordered by time if all times are known.
fn positions(runs: &ViewedRuns) -> Vec<usize> {
    let all = &runs.target.dump.runs;
    let mut places: HashMap<(Option<u32>, Option<u64>), Vec<usize>> = HashMap::new();
    for (index, run) in all.iter().enumerate() {
        let place = (run.place.rank, run.place.step);
        places.entry(place).or_default().push(index);
    }
    let mut positions = vec![0; all.len()];
    for mut indices in places.into_values() {
        if indices
            .iter()
            .all(|&index| all[index].timestamp_us.is_some())
        {
            // Stable, so that items with the same time stay in the dump's order.
            indices.sort_by_key(|&index| all[index].timestamp_us);
        }
        for (position, index) in indices.into_iter().enumerate() {
            positions[index] = position;
        }
    }
    positions
}

/// The first output known to contain NaN, or else infinities; the first output if unknown.
fn bad_output<'a>(runs: &'a ViewedRuns, facts: &OperatorFacts<'_>) -> Option<&'a ExecutionSlot> {
    let slots = runs.target.dump.runs.get(facts.id)?.slots.iter();
    let outputs: Vec<_> = slots.filter(|slot| slot.side == SlotSide::Output).collect();
    if let [] | [_] = outputs[..] {
        return outputs.first().copied();
    }
    let non_finite: Vec<_> = outputs
        .iter()
        .map(|slot| survey::non_finite(slot))
        .collect();
    let [nan, inf] = [0, 1].map(|count| {
        let mut outputs = non_finite.iter();
        outputs.position(|n| n.is_some_and(|counts| counts[count] > 0))
    });
    outputs.get(nan.or(inf).unwrap_or(0)).copied()
}

fn of_finite(runs: &ViewedRuns) -> Value {
    let all = (0..runs.n_operators()).filter_map(|id| runs.facts(id));
    let n_unknown = all
        .filter(|facts| facts.non_finite().contains(&None))
        .count();
    let n = runs.n_operators();
    let is_reading = runs
        .survey()
        .is_some_and(|survey| survey.n_surveyed < survey.executions.len());
    // Unread values are not judged.
    let (status, kind, text) = if n == 0 {
        ("skip", "waiting", "no operator is in the dump".to_owned())
    } else if n_unknown == n && is_reading {
        ("skip", "reading", "the elements are being read".to_owned())
    } else if n_unknown == n && runs.n_problems() > 0 {
        // The dump may still contain values.
        (
            "skip",
            "unreadable",
            "the values could not be read".to_owned(),
        )
    } else if n_unknown == n {
        (
            "skip",
            "no_statistics",
            "the dump has neither elements nor statistics".to_owned(),
        )
    } else if n_unknown > 0 {
        let text = format!(
            "no NaN and no infinity in {} of {n} operators",
            n - n_unknown
        );
        ("pass", "finite", text)
    } else {
        (
            "pass",
            "finite",
            format!("no NaN and no infinity in the outputs of {n} operators"),
        )
    };
    json!({
        "status": status, "kind": kind,
        "op": null, "op_type": "", "op_name": "", "slot": null, "parameter": null,
        "rank": null, "step": null, "n_bad": n_unknown, "n_elements": n, "dtype": null,
        "metric": null, "box": null, "n_after": 0, "text": text, "largest": largest(runs),
    })
}

/// The largest magnitude of all outputs, with its operator.
fn largest(runs: &ViewedRuns) -> Value {
    let all = (0..runs.n_operators()).filter_map(|id| runs.facts(id));
    let sizes = all.filter_map(|facts| Some((facts.max_abs()?, facts)));
    // Of equal ones the first, from which later ones may have it.
    let largest = sizes.reduce(|a, b| if b.0 > a.0 { b } else { a });
    largest.map_or(Value::Null, |(size, facts)| {
        json!({
            "value": number(size),
            "op": facts.id, "op_type": facts.op_type, "op_name": facts.op_name,
        })
    })
}
