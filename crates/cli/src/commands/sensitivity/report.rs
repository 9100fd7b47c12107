//! Prints a ranking for each dtype, and the choice.

use std::io::{self, Write};

use opscope_analysis::compare::report::words::number;
use opscope_sensitivity::choice::KeptChoice;
use opscope_sensitivity::ranking::RankedOperator;
use opscope_sensitivity::{OperatorState, OutputDistance};

use super::{FormatResult, SensitivityResult};
use crate::console::{self, Out, line};
use crate::format::{count, table};

const HEADER: [&str; 7] = [
    "", "operator", "type", "rel_l2", "max_abs", "cosine", "note",
];
const RIGHT: [&str; 4] = ["", "rel_l2", "max_abs", "cosine"];

/// Prints tables of `top` operators each, or of all if `top` is 0.
pub(super) fn print(result: &SensitivityResult, top: usize) -> io::Result<()> {
    let mut out = console::out();
    for one in &result.formats {
        print_format(&mut out, result, one, top)?;
    }
    let without_floats = n_in_state(result, OperatorState::WithoutFloats);
    let not_run = n_in_state(result, OperatorState::NotRun);
    if without_floats + not_run > 0 {
        line!(
            out,
            "not rounded: {} without float results, {} that did not run",
            count(without_floats, "operator"),
            count(not_run, "operator")
        )?;
    }
    Ok(())
}

fn n_in_state(result: &SensitivityResult, state: OperatorState) -> u64 {
    let all = result.operators.iter();
    all.filter(|operator| operator.state == state).count() as u64
}

fn print_format(
    out: &mut Out,
    result: &SensitivityResult,
    one: &FormatResult,
    top: usize,
) -> io::Result<()> {
    let n_samples = count(result.n_samples as u64, "sample");
    line!(
        out,
        "as {}, {n_samples}: how far outputs move when only this operator is rounded",
        one.format
    )?;
    // A table of thousands of rows would push its head, with the answer, off the screen.
    let n_shown = if top == 0 { usize::MAX } else { top };
    let shown = one.ranking.iter().take(n_shown).enumerate();
    let rows = shown.map(|(position, ranked)| row(position, ranked, one.choice.as_ref()));
    writeln!(out, "{}", table(&HEADER, &RIGHT, rows.collect()).trim_fmt())?;
    let n_more = one.ranking.len().saturating_sub(n_shown);
    if n_more > 0 {
        line!(
            out,
            "{} more; `--top 0` shows all",
            count(n_more as u64, "operator")
        )?;
    }
    let n_all = count(one.ranking.len() as u64, "operator");
    line!(out, "all {n_all} rounded: {}", words(&one.together))?;
    if let (Some(limit), Some(choice)) = (result.limit, &one.choice) {
        print_choice(out, one, choice, limit)?;
    }
    writeln!(out)
}

fn row(position: usize, ranked: &RankedOperator, choice: Option<&KeptChoice>) -> Vec<String> {
    let distance = &ranked.distance;
    let is_kept = choice.is_some_and(|choice| choice.keeps(position));
    let overflows = ranked.overflows.then_some("overflows");
    let notes = [is_kept.then_some("keep"), overflows, trouble(distance)];
    let notes: Vec<&str> = notes.into_iter().flatten().collect();
    vec![
        (position + 1).to_string(),
        ranked.operator.op_name.clone(),
        ranked.operator.op_type.clone(),
        number(distance.rel_l2()),
        number(distance.max_abs()),
        distance.cosine().map_or_else(|| "-".to_owned(), number),
        notes.join(", "),
    ]
}

/// The reason for an infinite distance; `None` for a finite one.
fn trouble(distance: &OutputDistance) -> Option<&'static str> {
    if distance.failure.is_some() {
        return Some("an operator fails");
    }
    let has_non_finite = distance
        .outputs
        .iter()
        .any(|output| output.n_non_finite > 0);
    if has_non_finite {
        return Some("NaN or infinities in the outputs");
    }
    let is_infinite = distance.rel_l2().is_infinite();
    is_infinite.then_some("an output with another shape, or no longer zero")
}

/// A distance as part of a sentence.
fn words(distance: &OutputDistance) -> String {
    if let Some(failure) = &distance.failure {
        return failure.clone();
    }
    let cosine = distance.cosine();
    let cosine = cosine.map_or_else(String::new, |cosine| format!(", cosine {}", number(cosine)));
    let trouble = trouble(distance).map_or_else(String::new, |text| format!(" ({text})"));
    format!(
        "rel_l2 {}{trouble}, max_abs {}{cosine}",
        number(distance.rel_l2()),
        number(distance.max_abs())
    )
}

fn print_choice(
    out: &mut Out,
    one: &FormatResult,
    choice: &KeptChoice,
    limit: f64,
) -> io::Result<()> {
    let (n_kept, n_all) = (choice.kept.len(), one.ranking.len());
    let limit = number(limit);
    let found = words(&choice.distance);
    if !choice.is_within {
        return line!(
            out,
            "limit {limit}: no choice meets it; the outputs vary even without rounding: {found}"
        );
    }
    if n_kept == 0 {
        return line!(out, "limit {limit}: no operator has to be kept");
    }
    // The measured distance is trivially 0 here and would look like a success.
    if n_kept == n_all {
        return line!(out, "limit {limit}: all {n_all} operators have to be kept");
    }
    let n_tried = count(choice.n_tried, "choice");
    line!(
        out,
        "limit {limit}: keep {n_kept} of {n_all} operators ({n_tried} tried)"
    )?;
    let overflowing = one.ranking.iter().filter(|ranked| ranked.overflows);
    match overflowing.count() {
        0 => {}
        1 => line!(
            out,
            "1 of them overflows {}, and is kept in any case",
            one.format
        )?,
        n => line!(
            out,
            "{n} of them overflow {}, and are kept in any case",
            one.format
        )?,
    }
    line!(out, "all others rounded: {found}")?;
    for position in &choice.kept {
        line!(out, "  {}", one.ranking[*position].operator.op_name)?;
    }
    Ok(())
}
