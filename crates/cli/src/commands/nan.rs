//! `opscope nan`.

use std::io::Write;
use std::path::PathBuf;

use opscope_analysis::lost::lost_tensors;
use opscope_analysis::overflow::needed;
use opscope_analysis::{default_jobs, overflow_words};
use opscope_ranks::document;
use opscope_ranks::run::RankedRun;
use opscope_ranks::spread::{FirstOrigin, NonFiniteOrigin, NonFiniteSpread, OriginCause, trace};
use opscope_store::record::SlotSide;
use opscope_tensor::DType;
use serde_json::json;

use crate::commands::ranked_run::{self, execution, meeting, operator, ranks_noun};
use crate::commands::view::FindingsPage;
use crate::console::{self, Out, line, report};
use crate::exit::CommandResult;
use crate::progress;
use crate::{format, passed_over};

/// Show which rank produced a NaN or an infinity first, and how it propagates
///
/// Finds operators that produced NaN or Inf from finite inputs, over all ranks of a run, and
/// follows the values through collectives. Ranks are ordered by steps and collectives, not by
/// clocks. Uses the dump's statistics if it has any, without reading elements. Exit codes: 1 if
/// there are any, 0 if there are none, and 4 if none was found but something could not be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope nan dump
  opscope nan host-a/dump host-b/dump --json
  opscope nan dump --view")]
pub(crate) struct NanArguments {
    /// A directory with the dumps of all ranks, or several dumps of some ranks each
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Number of operators to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    page: FindingsPage,
}

pub(crate) fn run(arguments: &NanArguments) -> CommandResult {
    let n_threads = arguments.jobs.unwrap_or_else(default_jobs).max(1);
    arguments.page.check(&arguments.runs, arguments.json)?;
    let run = ranked_run::open(&arguments.runs, n_threads)?;
    let propagation = progress::with_spinner("tracing NaN", || trace(&run, n_threads));
    for problem in &propagation.problems {
        report!("opscope: {problem}");
    }
    if arguments.json {
        let result = json!({
            "paths": arguments.runs,
            "run": document::run(&run),
            "non_finite": document::spread(&run, &propagation),
            "passed_over": passed_over::to_json(&run.dump.passed_over),
        });
        console::print_json(&result)?;
    } else {
        print(arguments, &run, &propagation)?;
    }
    // All of them: only the printed list is limited.
    let origins = propagation.origins.iter();
    let findings = origins.map(|origin| ranked_run::finding(&run, origin.run, cause(&run, origin)));
    (arguments.page).show(&arguments.runs[0], || findings.collect(), n_threads)?;
    let is_partial = ranked_run::is_partial(&run) || !propagation.problems.is_empty();
    ranked_run::end(
        propagation.origins.is_empty(),
        is_partial || propagation.n_unknown > 0,
    )
}

fn print(
    arguments: &NanArguments,
    run: &RankedRun,
    propagation: &NonFiniteSpread,
) -> CommandResult {
    let mut out = console::out();
    if propagation.origins.is_empty() {
        let summary = match (
            propagation.n_unknown,
            propagation.n_executions - propagation.n_maybe_masks,
        ) {
            (0, 0) if lost_tensors(&run.dump).is_some() => {
                "no NaN or infinity in the dumped tensors".to_owned()
            }
            (0, 0) => "no NaN, and no infinity that is not a mask".to_owned(),
            // Propagated infinities whose origin may be a mask.
            (0, n) => format!(
                "no NaN or infinity known to be produced by an operator; {} one",
                format::count_as(n, ["execution has", "executions have"])
            ),
            (n, _) => format!(
                "no NaN or infinity in the known values; {} unknown",
                format::count(n, "execution")
            ),
        };
        line!(out, "{summary}")?;
        print_unknown(&mut out, run, propagation)?;
        return ranked_run::print_coverage(&mut out, run);
    }
    // "First" requires that the order of collectives proves it.
    let first = match &propagation.first {
        FirstOrigin::Known(nth) => vec![*nth],
        FirstOrigin::NotOrdered(origins) => origins.clone(),
        FirstOrigin::None => Vec::new(),
    };
    for (nth, origin) in propagation.origins.iter().enumerate().take(arguments.top) {
        if nth > 0 {
            writeln!(out)?;
        }
        // With a single origin this is obvious.
        let is_first = propagation.origins.len() > 1 && first[..] == [nth];
        print_origin(&mut out, run, origin, if is_first { "first: " } else { "" })?;
    }
    writeln!(out)?;
    if let FirstOrigin::NotOrdered(origins) = &propagation.first {
        let ranks: Vec<u32> = origins
            .iter()
            .map(|&nth| run.rank_of(propagation.origins[nth].run))
            .collect();
        let ranks = ranked_run::ranks(&distinct(ranks));
        line!(
            out,
            "not ordered: ranks {ranks} each produced one before they communicated"
        )?;
    }
    let n = propagation.origins.len() as u64 + propagation.n_unlisted;
    line!(out, "{} in all", format::count(n, "origin"))?;
    if n > arguments.top as u64 {
        line!(
            out,
            "showing the first {}; `-n {n}` shows more",
            arguments.top
        )?;
    }
    if ranked_run::is_partial(run) || propagation.n_unknown > 0 {
        let unknown = match propagation.n_unknown {
            0 => String::new(),
            n => format!(" ({} without statistics)", format::count(n, "execution")),
        };
        line!(out, "incomplete{unknown}: there may be earlier ones")?;
        print_unknown(&mut out, run, propagation)?;
    }
    ranked_run::print_coverage(&mut out, run)
}

/// The tensors that the dump describes but does not hold. One of them may be the origin.
fn print_unknown(out: &mut Out, run: &RankedRun, propagation: &NonFiniteSpread) -> CommandResult {
    for unknown in &propagation.unknown {
        let slots = unknown.slots.iter().map(|index| format!("output.{index}"));
        let slots = slots.collect::<Vec<_>>().join(", ");
        line!(
            out,
            "  not in the dump: {} {slots}",
            execution(run, unknown.run)
        )?;
    }
    let n_more = propagation.n_unknown - propagation.unknown.len() as u64;
    if n_more > 0 {
        line!(out, "  and of {}", format::count(n_more, "more execution"))?;
    }
    Ok(())
}

fn distinct(mut ranks: Vec<u32>) -> Vec<u32> {
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

fn print_origin(
    out: &mut Out,
    run: &RankedRun,
    origin: &NonFiniteOrigin,
    before: &str,
) -> CommandResult {
    line!(out, "{before}{}", cause(run, origin))?;
    // Ranks reached by one collective are listed together, except for the ranks of the origin,
    // which are listed above.
    let mut meetings: Vec<usize> = Vec::new();
    for one in &origin.reached {
        if origin.meeting != Some(one.meeting) && !meetings.contains(&one.meeting) {
            meetings.push(one.meeting);
        }
    }
    for nth in meetings {
        let reached = origin.reached.iter();
        let together = reached.filter(|arrival| arrival.meeting == nth);
        let ranks = distinct(together.clone().map(|arrival| arrival.rank).collect());
        let from = distinct(together.map(|arrival| arrival.from).collect());
        line!(
            out,
            "  reached {} through {}{}, from {}",
            ranks_noun(&ranks),
            meeting(run, nth),
            step(run, nth),
            ranks_noun(&from)
        )?;
    }
    if let Some(&last) = origin.later.last() {
        let n = format::count(origin.later.len() as u64, "more time");
        line!(out, "  produced again {n}, last in {}", operator(run, last))?;
    }
    Ok(())
}

fn cause(run: &RankedRun, origin: &NonFiniteOrigin) -> String {
    let at = execution(run, origin.run);
    let counts = [(origin.n_nan, "NaN"), (origin.n_inf, "Inf")];
    let counts = counts
        .iter()
        .filter_map(|(n, noun)| n.filter(|n| *n > 0).map(|n| format!("{n} {noun}")));
    let counts = counts.collect::<Vec<_>>().join(" and ");
    let least = if origin.is_least { "at least " } else { "" };
    let counts = format!("{least}{counts}");
    let of_meeting = origin.meeting.map(|nth| &run.meetings.meetings[nth]);
    match origin.cause {
        OriginCause::Computed => {
            let overflow = overflow_of(run, origin).unwrap_or_default();
            format!("produced by {at}: {counts} from finite inputs{overflow}")
        }
        OriginCause::FromInfinities => match origin.infinities_of {
            Some(source) => format!(
                "produced by {at}: {counts} from infinities; those of {} may be intended",
                operator(run, source)
            ),
            None => format!("produced by {at}: {counts} from infinities that may be intended"),
        },
        OriginCause::Given => format!("passed to {at} by an input from outside the dump"),
        OriginCause::Overflow => format!(
            "produced by {}: the inputs of its ranks are finite, and the dtype cannot hold the result",
            through(run, origin)
        ),
        OriginCause::Collective => format!(
            "output of {} on {}: the inputs of its ranks are finite, and their sum is not known to \
             overflow",
            through(run, origin),
            ranks_noun(&ranks_of(run, origin))
        ),
        OriginCause::Received => {
            let missing = of_meeting
                .map(|meeting| &meeting.missing[..])
                .unwrap_or_default();
            let why = match missing {
                [] => "the participating ranks are unknown".to_owned(),
                ranks => format!("the dump of {} is missing", ranks_noun(ranks)),
            };
            match origin.meeting {
                None => format!("received by {at}: {why}"),
                Some(_) => format!(
                    "received by {} through {}: {why}",
                    ranks_noun(&ranks_of(run, origin)),
                    through(run, origin)
                ),
            }
        }
        OriginCause::Unknown => {
            format!(
                "first seen at {at}: {counts}; the dump lacks values that would show its origin"
            )
        }
    }
}

/// `: it overflows float16 (…)`, if an operator's outputs share one dtype.
fn overflow_of(run: &RankedRun, origin: &NonFiniteOrigin) -> Option<String> {
    let operator = &run.dump.runs[origin.run];
    let outputs = operator
        .slots
        .iter()
        .filter(|slot| slot.side == SlotSide::Output);
    let mut dtypes: Vec<DType> = outputs.filter_map(|slot| slot.dtype).collect();
    dtypes.dedup();
    match dtypes[..] {
        [dtype] if origin.n_nan.unwrap_or_default() == 0 => {
            overflow_words(dtype, &operator.op_type, needed(&run.dump, origin.run))
        }
        _ => None,
    }
}

/// An origin that is a collective, with its step.
fn through(run: &RankedRun, origin: &NonFiniteOrigin) -> String {
    let of_meeting = origin
        .meeting
        .map(|nth| format!("{}{}", meeting(run, nth), step(run, nth)));
    of_meeting.unwrap_or_default()
}

/// The ranks that had it first: several if a collective distributed it.
fn ranks_of(run: &RankedRun, origin: &NonFiniteOrigin) -> Vec<u32> {
    let reached = origin.reached.iter();
    let same = reached.filter(|arrival| Some(arrival.meeting) == origin.meeting);
    let ranks = same.map(|arrival| arrival.rank);
    distinct(ranks.chain([run.rank_of(origin.run)]).collect())
}

fn step(run: &RankedRun, nth: usize) -> String {
    let step = run.meetings.meetings[nth].step;
    step.map_or_else(String::new, |step| format!(", step {step}"))
}
