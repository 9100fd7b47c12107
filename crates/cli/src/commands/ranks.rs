//! `opscope ranks`.

use std::io::Write;
use std::path::PathBuf;

use opscope_analysis::default_jobs;
use opscope_ranks::finding::{
    DivergenceEvidence, DivergenceFinding, DivergenceKind, DriftedParameter, RankDivergences,
};
use opscope_ranks::meetings::Desync;
use opscope_ranks::restart::{self, RestartComparison, RestartDifference, RestartDifferenceKind};
use opscope_ranks::run::RankedRun;
use opscope_ranks::{divergence, document};
use serde_json::json;

use crate::commands::ranked_run::{
    self, execution, is_partial, meeting, operator, ordinal, ranks_noun,
};
use crate::commands::view::FindingsPage;
use crate::console::{self, Out, line};
use crate::exit::CommandResult;
use crate::progress;
use crate::{format, passed_over};

/// Show where ranks that must agree diverge
///
/// Compares the results of collectives with their inputs and with each other, operators with equal
/// inputs across ranks, and tensors with the operator that produced them. A rank is blamed only for
/// its own operators. Exit codes: 1 if something was found, 0 if nothing was, and 4 if nothing was
/// found but something could not be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope ranks dump
  opscope ranks dump --against dump-before-restart
  opscope ranks dump --view")]
pub(crate) struct RanksArguments {
    /// A directory with the dumps of all ranks, or several dumps of some ranks each
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Another run of the same program: report where each rank stops matching it, bit for bit
    #[arg(long, value_name = "OTHER_RUN")]
    against: Option<PathBuf>,
    /// Number of findings to show
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

pub(crate) fn run(arguments: &RanksArguments) -> CommandResult {
    let n_threads = arguments.jobs.unwrap_or_else(default_jobs).max(1);
    arguments.page.check(&arguments.runs, arguments.json)?;
    let mut run = ranked_run::open(&arguments.runs, n_threads)?;
    run.read_marks(n_threads);
    if let Some(path) = &arguments.against {
        let mut other = ranked_run::open(std::slice::from_ref(path), n_threads)?;
        other.read_marks(n_threads);
        return against(arguments, &run, &other, n_threads);
    }
    let found = progress::with_spinner("comparing ranks", || divergence::find(&run, n_threads));
    if arguments.json {
        let result = json!({
            "paths": arguments.runs,
            "run": document::run(&run),
            "divergences": document::divergences(&run, &found),
            "passed_over": passed_over::to_json(&run.dump.passed_over),
        });
        console::print_json(&result)?;
    } else {
        print(arguments, &run, &found)?;
    }
    // All of them: only the printed list is limited.
    let findings = (found.findings.iter())
        .map(|finding| ranked_run::finding(&run, finding.run, sentence(&run, finding)));
    (arguments.page).show(&arguments.runs[0], || findings.collect(), n_threads)?;
    let is_partial = is_partial(&run) || run.marks.n_unread > 0 || n_checked(&found) == 0;
    ranked_run::end(found.findings.is_empty(), is_partial)
}

fn n_checked(found: &RankDivergences) -> u64 {
    let of_operators = found.n_replicated + found.n_edges + found.n_parameters;
    found.n_recomputed + found.n_compared + of_operators
}

fn print(arguments: &RanksArguments, run: &RankedRun, found: &RankDivergences) -> CommandResult {
    let mut out = console::out();
    for finding in found.findings.iter().take(arguments.top) {
        line!(out, "{}", sentence(run, finding))?;
        if let Some(&last) = finding.later.last() {
            let n = format::count(finding.later.len() as u64, "more time");
            line!(out, "  again {n}, last in {}", operator(run, last))?;
        }
    }
    let n = found.findings.len();
    let n_checked = n_checked(found);
    if n == 0 && n_checked == 0 {
        line!(
            out,
            "agreement of ranks is unknown: nothing could be checked"
        )?;
    } else if n == 0 {
        line!(out, "ranks agree in everything that was checked")?;
    } else {
        writeln!(out, "\n{} in all", format::count(n as u64, "finding"))?;
    }
    if n > arguments.top {
        line!(
            out,
            "showing the first {}; `-n {n}` shows all",
            arguments.top
        )?;
    }
    line!(
        out,
        "checked: {} recomputed, {} by their results alone, {} with equal inputs on several \
         ranks, {} where they are read, {} over several steps",
        format::count(found.n_recomputed, "collective"),
        format::count(found.n_compared, "collective"),
        format::count(found.n_replicated, "operator"),
        format::count(found.n_edges, "tensor"),
        format::count(found.n_parameters, "parameter")
    )?;
    if found.n_unchecked > 0 || found.n_unknown > 0 || run.marks.n_unread > 0 {
        line!(
            out,
            "not checked: {}; {} without digest, elements or statistics; {} could not be read",
            format::count(found.n_unchecked, "collective"),
            format::count(found.n_unknown, "tensor"),
            format::count(run.marks.n_unread, "tensor")
        )?;
    }
    ranked_run::print_coverage(&mut out, run)
}

/// One finding in words.
fn sentence(run: &RankedRun, finding: &DivergenceFinding) -> String {
    let at = execution(run, finding.run);
    let slot = finding
        .slot
        .map_or_else(String::new, |slot| format!(" {slot}"));
    let through = finding
        .meeting
        .map(|nth| meeting(run, nth))
        .unwrap_or_default();
    let others = match &finding.others[..] {
        [] => String::new(),
        others => format!("; {} agree", ranks_noun(others)),
    };
    let who = match (finding.is_each, &finding.ranks[..]) {
        (true, ranks) => ranks_noun(ranks),
        (false, ranks) => format!("one of {}", ranks_noun(ranks)),
    };
    match &finding.kind {
        DivergenceKind::Desync(nth) => desync(run, &run.meetings.desyncs[*nth]),
        DivergenceKind::WrongResult => {
            let values = finding.difference.map_or_else(String::new, |difference| {
                let [found, expected] = difference.values;
                format!(
                    " in {}; element {} is {found:?}, expected {expected:?}",
                    format::count(difference.n_elements, "element"),
                    difference.first
                )
            });
            format!(
                "{at}: the result of {through} does not match its ranks' inputs{values}{others}"
            )
        }
        DivergenceKind::WrongOrder(order) => {
            let order: Vec<String> = order.iter().map(u32::to_string).collect();
            format!(
                "{at}: the result of {through} has the right parts in a wrong order: those of ranks \
                 {}{others}",
                order.join(", ")
            )
        }
        DivergenceKind::UnequalResults => format!(
            "{who}, {}: {through} gave its ranks different results{others}",
            operator(run, finding.run)
        ),
        DivergenceKind::OperatorDiffers => format!(
            "{who}, {}:{slot} differs though all inputs are equal{others}{}",
            operator(run, finding.run),
            basis(finding.evidence)
        ),
        DivergenceKind::ReplicaDiffers => format!(
            "{who}, {}:{slot} differs from other ranks, and no earlier difference explains it{others}{}",
            operator(run, finding.run),
            basis(finding.evidence)
        ),
        DivergenceKind::Drifted(parameter) => format!(
            "{}, {}:{slot}: {}{others}",
            ranks_noun(&finding.ranks),
            operator(run, finding.run),
            drift(parameter)
        ),
        DivergenceKind::Overwritten(maker) => format!(
            "{at}:{slot} does not match the output of {}: it was changed in between",
            operator(run, *maker)
        ),
    }
}

fn drift(parameter: &DriftedParameter) -> String {
    let gradients = match parameter.had_equal_gradients {
        Some(false) => ", but the gradients that its optimizer read were not",
        Some(true) => ", and so were the gradients that its optimizer read",
        None => "",
    };
    let since = match parameter.equal_in {
        Some(step) => format!("; it was equal in step {step}{gradients}"),
        None => String::new(),
    };
    let name = &parameter.name;
    format!("the parameter `{name}` differs between ranks{since}")
}

fn basis(evidence: DivergenceEvidence) -> &'static str {
    match evidence {
        DivergenceEvidence::Placement => " (its placement says that it is replicated)",
        DivergenceEvidence::History => " (in other steps they were equal)",
        DivergenceEvidence::Statistics => " (by statistics)",
        _ => "",
    }
}

fn desync(run: &RankedRun, desync: &Desync) -> String {
    let sides = desync.sides.iter().map(|side| {
        let (verb, pronoun) = match side.ranks.len() {
            1 => ("executes", "it"),
            _ => ("execute", "each of them"),
        };
        let what = match (side.kind, side.run) {
            (Some(kind), Some(index)) => {
                format!("{verb} {kind} `{}`", run.dump.runs[index].op_name)
            }
            _ => "has none".to_owned(),
        };
        let n = format::count(side.n_calls as u64, "collective");
        format!("{} {what} ({pronoun} has {n})", ranks_noun(&side.ranks))
    });
    let step = desync
        .step
        .map_or_else(String::new, |step| format!("step {step}, "));
    format!(
        "{step}group {}: ranks disagree which collective comes next, the {}: {}",
        ranked_run::ranks(&desync.group),
        ordinal(desync.nth as u64 + 1),
        sides.collect::<Vec<_>>().join("; ")
    )
}

fn against(
    arguments: &RanksArguments,
    run: &RankedRun,
    other: &RankedRun,
    n_threads: usize,
) -> CommandResult {
    // Each rank is compared with itself in the other run; replicas within a run are another
    // question.
    let found = restart::compare(run, other);
    if arguments.json {
        let result = json!({
            "paths": arguments.runs,
            "against": arguments.against,
            "run": document::run(run),
            "restart": document::restart(run, &found),
            "passed_over": passed_over::to_json(&run.dump.passed_over),
        });
        console::print_json(&result)?;
    } else {
        print_restart(arguments, run, &found)?;
    }
    let findings = (found.differences.iter())
        .map(|finding| ranked_run::finding(run, finding.run, departure(run, finding)));
    (arguments.page).show(&arguments.runs[0], || findings.collect(), n_threads)?;
    let n_unread = run.marks.n_unread + other.marks.n_unread;
    let is_partial = is_partial(run) || is_partial(other) || n_unread > 0;
    let has_compared = found.n_tensors > 0;
    ranked_run::end(found.differences.is_empty(), is_partial || !has_compared)
}

/// Where a rank stops matching itself in the other run, in words.
fn departure(run: &RankedRun, found: &RestartDifference) -> String {
    let what = match found.kind {
        RestartDifferenceKind::Computed => "differs, though all inputs are equal",
        RestartDifferenceKind::Received => "differs, though the rank's own input is equal",
        RestartDifferenceKind::Input => "differs, without an earlier difference",
    };
    let follows = if found.may_follow {
        "; it may follow from another rank"
    } else {
        ""
    };
    format!(
        "{}: {} {what}{follows}",
        execution(run, found.run),
        found.slot
    )
}

fn print_restart(
    arguments: &RanksArguments,
    run: &RankedRun,
    found: &RestartComparison,
) -> CommandResult {
    let mut out: Out = console::out();
    for one in found.differences.iter().take(arguments.top) {
        line!(out, "{}", departure(run, one))?;
    }
    let n = found.differences.len();
    match (n, found.n_tensors) {
        (0, 0) if found.n_compared == 0 => line!(
            out,
            "nothing was compared: the runs have no operator of the same rank, model, step and \
             name; `opscope compare` matches others"
        )?,
        (0, 0) => line!(
            out,
            "nothing was compared: no execution has known contents in both runs"
        )?,
        (0, _) => line!(
            out,
            "ranks are equal in both runs, in everything that was compared"
        )?,
        _ => writeln!(
            out,
            "\n{} in all",
            format::count_as(n as u64, ["rank differs", "ranks differ"])
        )?,
    }
    line!(
        out,
        "compared: {} of {}; {} in one run only",
        format::count(found.n_tensors, "tensor"),
        format::count(found.n_compared, "execution"),
        format::count(found.n_single, "execution")
    )?;
    if !found.single_ranks.is_empty() {
        line!(out, "in one run only: {}", ranks_noun(&found.single_ranks))?;
    }
    ranked_run::print_coverage(&mut out, run)
}
