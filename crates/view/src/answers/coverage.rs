//! Counts of what was seen, dumped, matched and compared, and of everything that was not.

use opscope_analysis::compare::report::{ShownPlaces, words};
use opscope_analysis::compare::result::{Comparison, Skip, VerdictLevel};
use opscope_store::dump::PassReason;
use serde_json::{Map, Value, json};

use crate::json::slot;
use crate::viewed::{ShownSide, ViewedDump, ViewedRuns};

/// Maximum number of examples of a reason.
const N_EXAMPLES: usize = 20;
/// Maximum number of files in a list.
const N_FILES: usize = 200;

pub(super) fn answer(runs: &ViewedRuns) -> Value {
    let (stages, groups) = match runs.comparison() {
        Some(comparison) => (stages(runs, comparison), groups(comparison)),
        None => (
            vec![json!({ "stage": "dumped", "n": runs.target.dump.n_slots() })],
            Vec::new(),
        ),
    };
    let dumps = [ShownSide::Target, ShownSide::Golden];
    let dumps = dumps
        .iter()
        .filter_map(|&side| Some((side_name(side), runs.side(side)?)));
    let mut problems: Vec<Value> = Vec::new();
    let mut passed_over: Vec<Value> = Vec::new();
    for (side, dump) in dumps {
        problems.extend(problem_list(side, dump.problems()));
        passed_over.extend(passed_over_list(side, dump));
    }
    if let Some(survey) = runs.survey() {
        let of_elements = survey.problems.iter().map(String::as_str);
        problems.extend(problem_list("target", of_elements));
    }
    problems.extend(problem_list("target", runs.event_problems()));
    json!({
        "stages": stages,
        "groups": groups,
        "problems": problems,
        "passed_over": passed_over,
    })
}

pub(super) fn side_name(side: ShownSide) -> &'static str {
    match side {
        ShownSide::Target => "target",
        ShownSide::Golden => "golden",
        ShownSide::Reference => "reference",
    }
}

/// Slots of the target: dumped, of matched operators, and compared.
fn stages(runs: &ViewedRuns, comparison: &Comparison) -> Vec<Value> {
    let [total, compared] = comparison.summary.target_coverage;
    let operators = comparison.operators.iter();
    let paired: usize = operators
        .filter(|operator| !operator.golden.is_empty())
        .map(|operator| operator.slots.len())
        .sum();
    // Each stage is a subset of the previous one.
    let stages = [
        ("seen", runs.target.dump.n_slots().max(total)),
        ("dumped", total),
        ("paired", paired.min(total)),
        ("compared", compared),
    ];
    stages
        .map(|(stage, n)| json!({ "stage": stage, "n": n }))
        .to_vec()
}

/// Skipped operators, slots and files, by reason and side.
fn groups(comparison: &Comparison) -> Vec<Value> {
    let places = ShownPlaces::for_comparison(comparison);
    let mut groups: Map<String, Value> = Map::new();
    for skip in &comparison.skips {
        let key = format!("{} {}", skip.reason.name(), skip.side.name());
        let group = groups.entry(key).or_insert_with(|| {
            json!({
                "reason": skip.reason.name(),
                "words": words::reason(skip.reason),
                "side": skip.side.name(),
                "n": 0,
                "examples": [],
            })
        });
        group["n"] = (group["n"].as_u64().unwrap_or(0) + 1).into();
        if let Some(examples) = group["examples"].as_array_mut()
            && examples.len() < N_EXAMPLES
        {
            // The count is complete; a few names suffice to find the cause.
            examples.push(example(skip, places));
        }
    }
    let not_judged = comparison
        .operators
        .iter()
        .filter(|operator| operator.level == VerdictLevel::Skip);
    let n = not_judged.count();
    let mut groups: Vec<Value> = groups.into_iter().map(|(_, group)| group).collect();
    // The largest loss first.
    groups.sort_by_key(|group| std::cmp::Reverse(group["n"].as_u64()));
    if n > 0 {
        groups.push(json!({
            "reason": "no_slot",
            "words": "operators without a compared slot",
            "side": "both",
            "n": n,
            "examples": [],
        }));
    }
    groups
}

fn example(skip: &Skip, places: ShownPlaces) -> Value {
    let operator = skip.operator.as_ref();
    json!({
        "op_type": operator.map_or("", |name| name.op_type.as_str()),
        "op_name": operator.map_or("", |name| name.op_name.as_str()),
        "slot": skip.slot.map(slot),
        "message": words::skip(skip, places),
    })
}

fn problem_list<'a>(
    side: &'static str,
    problems: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = Value> {
    problems
        .take(N_FILES)
        .map(move |message| json!({ "side": side, "message": message }))
}

fn passed_over_list(side: &'static str, dump: &ViewedDump) -> impl Iterator<Item = Value> {
    let files = dump.dump.passed_over.iter();
    // These belong to the dump but contain no tensors.
    let files =
        files.filter(|file| !matches!(file.reason, PassReason::OwnRecords | PassReason::Elements));
    let files = files.take(N_FILES);
    files.map(move |file| {
        json!({
            "side": side,
            "path": file.path.display().to_string(),
            "reason": file.reason.name(),
        })
    })
}
