//! Report of a replay.

use std::io::Write;
use std::path::Path;

use opscope_analysis::compare::replay::{ReplayBlame, ReplayResult};
use opscope_analysis::compare::report;
use opscope_analysis::compare::report::words::attribute;
use opscope_analysis::compare::result::{MetricId, OperatorName, SlotResult, VerdictLevel};
use opscope_engine::choice::EngineChoice;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_view::OperatorFinding;
use serde_json::{Value, json};

use super::RefusedOperator;
use crate::console::{self, report};
use crate::exit::{CommandFailure, CommandResult, PARTIAL};
use crate::format;

/// Version of the JSON.
const VERSION: u32 = 1;

/// Prints a table of operators, the largest own error first; for a single operator, its slots.
pub(super) fn print(
    replayed: &[ReplayResult],
    refused: &[RefusedOperator],
    has_golden: bool,
) -> CommandResult {
    let mut out = console::out();
    match replayed {
        [] => {}
        [only] => writeln!(out, "{}", operator_text(only))?,
        several => writeln!(out, "{}", of_several(several, has_golden))?,
    }
    report_refused(refused);
    Ok(())
}

/// The operators that fail, the largest own error first, as findings for the page.
pub(super) fn findings(replayed: &[ReplayResult]) -> Vec<OperatorFinding> {
    let failing = replayed.iter();
    let mut failing: Vec<_> = failing
        .filter(|result| result.level == VerdictLevel::Fail)
        .collect();
    // As in the printed table.
    failing.sort_by(|a, b| b.errors.own.total_cmp(&a.errors.own));
    let findings = failing.into_iter().map(|result| {
        let OperatorName {
            op_type, op_name, ..
        } = &result.operator;
        let own = number(result.errors.own);
        OperatorFinding {
            operator: result.operator.clone(),
            text: format!(
                "{op_type} `{op_name}`: {} (own error {own})",
                sentence(result)
            ),
        }
    });
    findings.collect()
}

fn report_refused(refused: &[RefusedOperator]) {
    for entry in refused {
        let (op_type, place) = (&entry.operator.op_type, place(&entry.operator));
        let (name, text) = (&entry.operator.op_name, &entry.refusal.text);
        report!("opscope: `{name}` ({op_type}{place}) cannot be re-run: {text}");
    }
}

fn operator_text(result: &ReplayResult) -> String {
    let header = [
        "slot", "what", "level", "rel_l2", "max_abs", "cosine", "equal",
    ];
    let lists = [
        ("own error", &result.own),
        ("input, from golden", &result.inputs),
        ("inherited", &result.inherited),
        ("output, from golden", &result.total),
        ("golden's own error", &result.golden_own),
    ];
    let rows = lists
        .into_iter()
        .flat_map(|(what, slots)| slots.iter().map(move |slot| row(what, slot)))
        .collect();
    let table = format::table(&header, &header[3..], rows);
    let OperatorName {
        op_type, op_name, ..
    } = &result.operator;
    let mut lines = vec![
        console::escaped(format_args!(
            "{}: {}",
            verdict_word(result.level),
            sentence(result)
        )),
        console::escaped(format_args!(
            "`{op_name}` ({op_type}{})",
            place(&result.operator)
        )),
        table.trim_fmt(),
    ];
    lines.extend(
        result
            .notes
            .iter()
            .map(|note| console::escaped(format_args!("note: {note}"))),
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
    let rows = sorted.into_iter().map(|result| {
        let name = &result.operator;
        let errors = result.errors;
        let mut row = vec![
            name.op_name.to_string(),
            name.op_type.to_string(),
            optional(name.rank.map(u64::from)),
            optional(name.step),
            verdict_word(result.level).to_owned(),
            number(errors.own),
        ];
        if has_golden {
            let all = [
                (&result.inputs, errors.inputs),
                (&result.inherited, errors.inherited),
                (&result.total, errors.total),
                (&result.golden_own, errors.golden_own),
            ];
            row.extend(all.map(|(slots, error)| {
                if slots.is_empty() {
                    "-".to_owned()
                } else {
                    number(error)
                }
            }));
        }
        row.push(result.blame.words().to_owned());
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
    format::table(&header, &right, rows).trim_fmt()
}

fn row(what: &str, slot: &SlotResult) -> Vec<String> {
    let [rel_l2, max_abs] = [MetricId::RelL2, MetricId::MaxAbs].map(|metric| {
        let value = slot.metrics.get(metric);
        value.map_or_else(|| slot.evidence.name().to_owned(), number)
    });
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
        rel_l2,
        max_abs,
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

fn optional(n: Option<u64>) -> String {
    n.map_or_else(|| "-".to_owned(), |n| n.to_string())
}

/// Summarises the numbers in a sentence.
fn sentence(one: &ReplayResult) -> String {
    let is_own_known = !one.golden_own.is_empty();
    let has_golden = is_own_known || !one.total.is_empty() || !one.inputs.is_empty();
    let text = match one.blame {
        ReplayBlame::Nobody if one.level > VerdictLevel::Pass => {
            "neither its own error nor its inputs explain the difference from golden's outputs"
        }
        ReplayBlame::Nobody if has_golden => "correct, and so are its inputs",
        ReplayBlame::Nobody => {
            "correct for the inputs it got; if its outputs are wrong, the error comes from upstream"
        }
        ReplayBlame::Own => "wrong result for the inputs it got",
        ReplayBlame::Inherited => "correct for the inputs it got; the error comes from upstream",
        ReplayBlame::Both => {
            "both: wrong result for the inputs it got, and its inputs differ from golden's"
        }
        ReplayBlame::Attributes if one.attributes.is_empty() => {
            "same inputs, different operator: it computes something else than golden's"
        }
        ReplayBlame::Attributes => "same inputs, different attributes",
    };
    // The engine is one implementation and not the truth. If it disagrees with both dumps alike, it
    // may be the outlier.
    let doubt = is_own_known
        && matches!(one.blame, ReplayBlame::Own | ReplayBlame::Both)
        && worst(&one.golden_own) >= worst(&one.own);
    let attributes: Vec<String> = one.attributes.iter().map(attribute).collect();
    if one.blame == ReplayBlame::Attributes && !attributes.is_empty() {
        format!("{text}: {}", attributes.join(", "))
    } else if doubt {
        format!("{text}; but so is golden's, so the engine may compute it differently")
    } else {
        text.to_owned()
    }
}

fn worst(slots: &[SlotResult]) -> VerdictLevel {
    let levels = slots.iter().map(|slot| slot.level);
    levels
        // A slot that could not be compared sorts above a failure, but proves nothing.
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

/// Writes all findings.
pub(super) fn write_json(
    path: &Path,
    (modes, is_replacing): (PermissionModes, bool),
    engine: Option<&EngineChoice>,
    (replayed, refused): (&[ReplayResult], &[RefusedOperator]),
) -> CommandResult {
    let operators =
        serde_json::to_value(replayed).map_err(|error| CommandFailure::new(PARTIAL, error))?;
    let refused: Vec<Value> = refused
        .iter()
        .map(|entry| json!({"operator": entry.operator, "reason": entry.refusal.text}))
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
