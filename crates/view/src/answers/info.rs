//! Facts about the dumps as a whole.

use opscope_analysis::compare::result::MetricId;
use opscope_analysis::compare::verdict::Thresholds;
use opscope_analysis::events::EventKind;
use opscope_analysis::survey::NEAR_EDGE;
use opscope_tensor::DType;
use serde_json::{Value, json};

use super::verdict;
use crate::viewed::{ViewedDump, ViewedRuns};

pub(super) fn answer(runs: &ViewedRuns) -> Value {
    let mut counts = [0_u64; 4];
    let (mut near_edge, mut first_non_finite) = (0_u64, None);
    for facts in (0..runs.n_operators()).filter_map(|id| runs.facts(id)) {
        counts[facts.level as usize] += 1;
        // Values that have already overflowed are no longer near the limit.
        let found = facts.surveyed.filter(|found| found.role.is_none());
        let headroom = found.and_then(|found| found.headroom);
        near_edge += u64::from(headroom.is_some_and(|headroom| headroom < NEAR_EDGE));
        if first_non_finite.is_none() && facts.non_finite().iter().any(|n| n.is_some_and(|n| n > 0))
        {
            first_non_finite = Some(facts.id);
        }
    }
    // In the order of the levels.
    let [pass, warn, fail, skip] = counts;
    let comparison = runs.comparison();
    let metric = match comparison {
        Some(_) => json!({ "name": "rel_l2", "limit": error_limit() }),
        None => json!({ "name": "max_abs", "limit": null }),
    };
    let slots = comparison.map(|comparison| {
        let [total, compared] = comparison.summary.target_coverage;
        json!({ "compared": compared, "total": total })
    });
    let names = (0..runs.n_operators()).filter_map(|id| runs.facts(id));
    let names: Vec<&str> = names.map(|facts| facts.op_name).collect();
    json!({
        "program": runs.program,
        "prefix": common_prefix(&names),
        "target": side(&runs.target),
        "golden": runs.golden.as_deref().map(side),
        "reference": runs.reference.as_deref().map(side),
        "n_operators": runs.n_operators(),
        "places": places(runs),
        "metric": metric,
        "views": views(runs),
        "verdict": verdict::verdict(runs),
        "counts": { "pass": pass, "warn": warn, "fail": fail, "skip": skip },
        "slots": slots,
        "first_non_finite": first_non_finite,
        "near_edge": near_edge,
        "n_events": runs.target.events.events.len(),
        "first_overflow": first_overflow(runs),
        "n_problems": runs.n_problems(),
    })
}

/// The scopes that nearly all names begin with, such as `node_` or `model.`, if an identifier
/// follows them everywhere. Short names on the page go without them.
fn common_prefix<'a>(names: &[&'a str]) -> &'a str {
    // A prefix of nearly all names is almost surely one of this name too.
    let Some(sample) = names.get(names.len() / 2).filter(|_| names.len() >= 4) else {
        return "";
    };
    let mut prefix = "";
    for (at, _) in sample.match_indices(['/', '.', '_']) {
        let longer = &sample[..=at];
        let rests = || names.iter().filter_map(|name| name.strip_prefix(longer));
        // `conv_` of `conv_1` and `conv_2` is what tells them from others.
        // A leading slash alone is no scope, but scopes may follow it.
        if at > 0
            && (rests().count() * 10 < names.len() * 9
                || !rests().all(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '_')))
        {
            break;
        }
        prefix = longer;
    }
    if prefix.len() > 1 { prefix } else { "" }
}

/// The default failure limit of float32; other dtypes have different limits.
pub(super) fn error_limit() -> Option<f64> {
    let limits = Thresholds::default();
    let mut bounds = limits.bounds(Some(DType::F32), "", "").into_iter();
    let (_, bounds) = bounds.find(|(metric, _)| *metric == MetricId::RelL2)?;
    bounds.fail
}

/// The views that have content.
fn views(runs: &ViewedRuns) -> Vec<&'static str> {
    let operators = (0..runs.n_operators()).filter_map(|id| runs.facts(id));
    // With a single rank and step the view would add nothing.
    let has_steps = are_several(operators.clone().filter_map(|facts| facts.step))
        || are_several(operators.filter_map(|facts| facts.rank));
    let mut views = vec!["overview", "graph", "tensor"];
    views.extend(has_steps.then_some("steps"));
    let is_silent = runs.target.events.events.is_empty() && runs.target.events.problems.is_empty();
    views.extend((!is_silent).then_some("events"));
    views.push("coverage");
    views
}

fn are_several<T: PartialEq>(mut numbers: impl Iterator<Item = T>) -> bool {
    let first = numbers.next();
    numbers.any(|number| Some(number) != first)
}

/// The first recorded overflow, with its operator if that is in the dump.
fn first_overflow(runs: &ViewedRuns) -> Value {
    let mut events = runs.target.events.events.iter();
    let first = events.find(|event| matches!(event.kind, EventKind::Overflow(_)));
    first.map_or(Value::Null, |event| {
        json!({
            "op": event.run.and_then(|run| runs.operator_of(run)),
            "op_type": event.op_type,
            "op_name": event.op_name,
            "step": event.step,
            "task": event.task_id,
        })
    })
}

fn side(dump: &ViewedDump) -> Value {
    json!({
        "name": dump.name(),
        "path": dump.path.display().to_string(),
        "form": dump.dump.form,
        "n_operators": dump.dump.runs.len(),
        "n_slots": dump.dump.n_slots(),
    })
}

/// Ranks, models and steps with their operators.
fn places(runs: &ViewedRuns) -> Vec<Value> {
    let mut places: Vec<(Option<u32>, Option<u64>, usize, usize)> = Vec::new();
    for facts in (0..runs.n_operators()).filter_map(|id| runs.facts(id)) {
        match places.last_mut() {
            // Operators of one place are consecutive.
            Some((rank, step, _, n)) if (*rank, *step) == (facts.rank, facts.step) => *n += 1,
            _ => places.push((facts.rank, facts.step, facts.id, 1)),
        }
    }
    let places = places.into_iter().map(|(rank, step, first, n)| {
        json!({ "rank": rank, "model": null, "step": step, "first": first, "n": n })
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::common_prefix;

    #[test]
    fn a_prefix_is_common_to_nearly_all_names_and_leaves_words() {
        let check = |names: &[&str], expected| {
            assert_eq!(common_prefix(names), expected, "{names:?}");
        };
        check(&["node_a", "node_b", "node_c"], "");
        check(&["node_a", "node_b", "node_c", "node_d"], "node_");
        check(&["conv_1", "conv_2", "conv_3", "conv_4"], "");
        check(&["m.layers.0.q", "m.layers.1.q", "m.norm", "m.head"], "m.");
        check(
            &[
                "/model/a/Add",
                "/model/b/Add",
                "/model/c/Add",
                "/model/d/Add",
            ],
            "/model/",
        );
        check(&["/a/Add", "/b/Add", "/c/Add", "/d/Add"], "");
        let mut many = vec!["node_x"; 20];
        many.push("n0");
        check(&many, "node_");
        check(&["a_x", "a_y", "b_x", "b_y"], "");
    }
}
