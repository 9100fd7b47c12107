//! Report of a replay.

use std::io::Write;
use std::path::Path;

use opscope_analysis::compare::replay::{ReplayBlame, ReplayResult};
use opscope_analysis::compare::report;
use opscope_analysis::compare::report::words::attribute;
use opscope_analysis::compare::result::{MetricId, OperatorName, SlotResult, VerdictLevel};
use opscope_engine::choice::EngineChoice;
use opscope_store::atomic_file::{Creator, PermissionModes};
use serde_json::{Value, json};

use super::RefusedOperator;
use crate::console::{self, report};
use crate::exit::{CommandFailure, PARTIAL};
use crate::format;

/// Version of the JSON.
const VERSION: u32 = 1;

/// Prints a table of operators, the largest own error first; of a single one its slots.
pub(super) fn print(
    replayed: &[ReplayResult],
    refused: &[RefusedOperator],
    has_golden: bool,
) -> Result<(), CommandFailure> {
    let mut out = console::out();
    match replayed {
        [] => {}
        [only] => writeln!(out, "{}", of_one(only))?,
        several => writeln!(out, "{}", of_several(several, has_golden))?,
    }
    report_refused(refused);
    Ok(())
}

fn report_refused(refused: &[RefusedOperator]) {
    for one in refused {
        let (op_type, place) = (&one.operator.op_type, place(&one.operator));
        let (name, text) = (&one.operator.op_name, &one.refusal.text);
        report!("opscope: `{name}` ({op_type}{place}) cannot be run again: {text}");
    }
}

fn of_one(one: &ReplayResult) -> String {
    let header = [
        "slot", "what", "level", "rel_l2", "max_abs", "cosine", "equal",
    ];
    let lists = [
        ("own error", &one.own),
        ("input, from golden", &one.inputs),
        ("inherited", &one.inherited),
        ("output, from golden", &one.total),
        ("golden's own error", &one.golden_own),
    ];
    let rows = lists
        .into_iter()
        .flat_map(|(what, slots)| slots.iter().map(move |slot| row(what, slot)))
        .collect();
    let table = format::table(&header, &header[3..], rows);
    let OperatorName {
        op_type, op_name, ..
    } = &one.operator;
    let mut lines = vec![
        console::shown(format_args!(
            "{}: {}",
            verdict_word(one.level),
            sentence(one)
        )),
        console::shown(format_args!(
            "`{op_name}` ({op_type}{})",
            place(&one.operator)
        )),
        table.to_string(),
    ];
    lines.extend(
        one.notes
            .iter()
            .map(|note| console::shown(format_args!("note: {note}"))),
    );
    lines.join("\n")
}

fn of_several(replayed: &[ReplayResult], has_golden: bool) -> String {
    let mut sorted: Vec<&ReplayResult> = replayed.iter().collect();
    sorted.sort_by(|a, b| b.errors.own.total_cmp(&a.errors.own));
    let mut header = vec!["operator", "type", "rank", "step", "level", "own error"];
    if has_golden {
        header.extend(["inputs", "inherited", "outputs", "golden's own"]);
    }
    header.push("verdict");
    let optional = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let rows = sorted.into_iter().map(|one| {
        let name = &one.operator;
        let errors = one.errors;
        let mut row = vec![
            name.op_name.to_string(),
            name.op_type.to_string(),
            optional(name.rank.map(u64::from)),
            optional(name.step),
            verdict_word(one.level).to_owned(),
            number(errors.own),
        ];
        if has_golden {
            let all = [
                (&one.inputs, errors.inputs),
                (&one.inherited, errors.inherited),
                (&one.total, errors.total),
                (&one.golden_own, errors.golden_own),
            ];
            row.extend(all.map(|(slots, error)| {
                if slots.is_empty() {
                    "-".to_owned()
                } else {
                    number(error)
                }
            }));
        }
        row.push(one.blame.words().to_owned());
        row
    });
    let rows = rows.collect();
    let right = [
        "own error",
        "inputs",
        "inherited",
        "outputs",
        "golden's own",
    ];
    format::table(&header, &right, rows).to_string()
}

fn row(what: &str, slot: &SlotResult) -> Vec<String> {
    let metric = |metric| {
        let value = slot.metrics.get(metric);
        value.map_or_else(|| slot.evidence.name().to_owned(), number)
    };
    let equal = match (
        slot.metrics.get(MetricId::EqualCount),
        slot.metrics.get(MetricId::Count),
    ) {
        (Some(equal), Some(n)) => format!("{equal} of {n}"),
        _ => "-".to_owned(),
    };
    vec![
        slot.slot.to_string(),
        what.to_owned(),
        verdict_word(slot.level).to_owned(),
        metric(MetricId::RelL2),
        metric(MetricId::MaxAbs),
        slot.metrics
            .get(MetricId::Cosine)
            .map_or_else(|| "-".to_owned(), number),
        equal,
    ]
}

fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if !value.is_finite() || (1e-3..1e4).contains(&value.abs()) => {
            let text = format!("{value:.6}");
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            }
        }
        value => format!("{value:.3e}"),
    }
}

fn verdict_word(level: VerdictLevel) -> &'static str {
    match level {
        VerdictLevel::Pass => "pass",
        VerdictLevel::Warn => "warn",
        VerdictLevel::Fail => "fail",
        VerdictLevel::Skip => "skip",
    }
}

/// Says in a sentence what the numbers mean.
fn sentence(one: &ReplayResult) -> String {
    let is_own_known = !one.golden_own.is_empty();
    let has_golden = is_own_known || !one.total.is_empty() || !one.inputs.is_empty();
    let text = match one.blame {
        ReplayBlame::Nobody if one.level > VerdictLevel::Pass => {
            "neither its own error nor its inputs explain why its outputs differ from golden's"
        }
        ReplayBlame::Nobody if has_golden => {
            "it agrees: its outputs are what its inputs give, and its inputs are right"
        }
        ReplayBlame::Nobody => {
            "it agrees: its outputs are what its inputs give; if they are wrong, its inputs are"
        }
        ReplayBlame::Own => "the operator itself: its outputs are not what its inputs give",
        ReplayBlame::Inherited => {
            "it inherits: its outputs are what its inputs give, and its inputs differ from golden's"
        }
        ReplayBlame::Both => {
            "both: its outputs are not what its inputs give, and its inputs differ from golden's"
        }
        ReplayBlame::Attributes if one.attributes.is_empty() => {
            "the same inputs, another operator: it makes something else of them than golden's does"
        }
        ReplayBlame::Attributes => "the same inputs, other attributes",
    };
    // The engine is one way to compute the operator and not the truth. If it disagrees with both
    // dumps alike, it may be the odd one.
    let doubt = is_own_known
        && matches!(one.blame, ReplayBlame::Own | ReplayBlame::Both)
        && worst(&one.golden_own) >= worst(&one.own);
    let attributes: Vec<String> = one.attributes.iter().map(attribute).collect();
    if one.blame == ReplayBlame::Attributes && !attributes.is_empty() {
        format!("{text}: {}", attributes.join(", "))
    } else if doubt {
        format!("{text}; but golden's are not either, so the engine may compute it otherwise")
    } else {
        text.to_owned()
    }
}

fn worst(slots: &[SlotResult]) -> VerdictLevel {
    let levels = slots.iter().map(|slot| slot.level);
    levels
        // What could not be compared sorts above a failure, and says nothing of who is right.
        .filter(|level| *level != VerdictLevel::Skip)
        .max()
        .unwrap_or_default()
}

fn place(name: &OperatorName) -> String {
    let rank = name.rank.map(|rank| format!(", rank {rank}"));
    let step = name.step.map(|step| format!(", step {step}"));
    let repeat = (name.repeat > 0).then(|| format!(", repeat {}", name.repeat));
    [rank, step, repeat].into_iter().flatten().collect()
}

/// Writes everything that was found.
pub(super) fn write_json(
    path: &Path,
    (modes, is_replacing): (PermissionModes, bool),
    engine: Option<&EngineChoice>,
    (replayed, refused): (&[ReplayResult], &[RefusedOperator]),
) -> Result<(), CommandFailure> {
    let failed = |error: anyhow::Error| CommandFailure::new(PARTIAL, error);
    let operators = serde_json::to_value(replayed).map_err(|error| failed(error.into()))?;
    let refused: Vec<Value> = refused
        .iter()
        .map(|one| json!({"operator": one.operator, "reason": one.refusal.text}))
        .collect();
    let engine = engine.map(|chosen| {
        json!({
            "name": chosen.kind.name(),
            "version": chosen.engine.version(),
            "library": chosen.engine.library(),
            "reason": chosen.reason,
        })
    });
    let whole = json!({
        "version": VERSION,
        "engine": engine,
        "operators": operators,
        "refused": refused,
    });
    let text = format!("{whole:#}\n");
    let creator = Creator::new(modes);
    Ok(report::save_with(path, &creator, is_replacing, |out| {
        out.write_all(text.as_bytes())
    })?)
}
