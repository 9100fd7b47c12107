//! Opening runs of several ranks, and describing their contents.

use std::io::Write;
use std::path::PathBuf;

use opscope_analysis::compare::result::OperatorName;
use opscope_analysis::lost::lost_tensors;
use opscope_ranks::meetings::Meeting;
use opscope_ranks::run::{RankedRun, RankedRunError};
use opscope_store::record::parallel::{Collective, CollectiveKind};
use opscope_view::OperatorFinding;

use crate::console::{Out, line, report};
use crate::exit::{CommandFailure, CommandResult, FOUND, PARTIAL, UNREADABLE, USAGE, check_dump};
use crate::progress;
use crate::{format, passed_over};

/// Opens the dumps of a run.
pub(crate) fn open(paths: &[PathBuf], n_threads: usize) -> CommandResult<RankedRun> {
    for path in paths {
        check_dump(path)?;
    }
    let opened = progress::with_spinner("reading", || RankedRun::open(paths, n_threads));
    let run = opened.map_err(|error| match error {
        RankedRunError::Store(error) => error.into(),
        error @ RankedRunError::Empty(_) => CommandFailure::new(UNREADABLE, error),
        error => {
            let hint =
                "pass one run, and compare with another by `opscope ranks RUN --against OTHER`";
            CommandFailure::new(USAGE, error).with_hint(hint)
        }
    })?;
    // Before the result, which covers the rest.
    for problem in &run.dump.problems {
        report!("opscope: {problem}");
    }
    Ok(run)
}

/// A finding about an execution, for the page.
pub(crate) fn finding(run: &RankedRun, index: usize, text: String) -> OperatorFinding {
    OperatorFinding {
        operator: OperatorName::for_execution(&run.dump.runs[index]),
        text,
    }
}

/// Whether a part of the run was not read.
pub(crate) fn is_partial(run: &RankedRun) -> bool {
    if lost_tensors(&run.dump).is_some() {
        return true;
    }
    let mut slots = run.dump.runs.iter().flat_map(|execution| &execution.slots);
    !run.dump.problems.is_empty() || slots.any(|slot| slot.problem.is_some())
}

/// The command's result, depending on whether anything was found and everything was read.
pub(crate) fn end(is_empty: bool, is_partial: bool) -> CommandResult {
    match (is_empty, is_partial) {
        (false, _) => Err(CommandFailure::silent(FOUND)),
        (true, true) => Err(CommandFailure::silent(PARTIAL)),
        (true, false) => Ok(()),
    }
}

/// `rank 2, step 1, layers.1/up (aten.mm.default)`.
pub(crate) fn execution(run: &RankedRun, index: usize) -> String {
    format!("rank {}, {}", run.rank_of(index), operator(run, index))
}

/// Like [`execution`], without the rank.
pub(crate) fn operator(run: &RankedRun, index: usize) -> String {
    let one = &run.dump.runs[index];
    let step = one
        .place
        .step
        .map_or_else(String::new, |step| format!("step {step}, "));
    let op_type = match one.op_type.as_str() {
        "" => String::new(),
        op_type => format!(" ({op_type})"),
    };
    let again = match one.repeat {
        0 => String::new(),
        n => format!(", its {} execution", ordinal(n as u64 + 1)),
    };
    // In eager mode an operator's name is a number; the module shows which one it is.
    let [module, source] = run.dump.module_and_source(index);
    let module = match module {
        Some(module) if !one.op_name.contains(module.as_str()) => format!(" in {module}"),
        _ => String::new(),
    };
    let source = source.map_or_else(String::new, |source| format!(" at {source}"));
    format!(
        "{step}{}{op_type}{module}{source}{again}",
        one.op_name.as_str()
    )
}

/// ``all_reduce(sum) `layers.1/all_reduce` (the 4th collective of the group 2,3)``.
pub(crate) fn meeting(run: &RankedRun, nth: usize) -> String {
    let meeting: &Meeting = &run.meetings.meetings[nth];
    let name = meeting
        .calls
        .first()
        .map_or("", |call| run.dump.runs[call.run].op_name.as_str());
    let nth = ordinal(meeting.nth as u64 + 1);
    let group = ranks(&meeting.group);
    match meeting.kind {
        CollectiveKind::Receive(_) | CollectiveKind::Send(_) => {
            let [from, to] = [meeting.group.first(), meeting.group.last()]
                .map(|rank| rank.map_or_else(String::new, u32::to_string));
            format!("send and recv `{name}` (the {nth} from rank {from} to rank {to})")
        }
        kind => format!("{kind} `{name}` (the {nth} collective of the group {group})"),
    }
}

/// `0-3`, `0,2`.
pub(crate) fn ranks(ranks: &[u32]) -> String {
    let kind = CollectiveKind::AllGather;
    let ranks = ranks.to_vec();
    Collective { kind, ranks }.ranks_text()
}

/// `rank 2`, `ranks 0-3`.
pub(crate) fn ranks_noun(listed: &[u32]) -> String {
    let noun = if listed.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", ranks(listed))
}

/// `1st`, `2nd`, `3rd`, `4th`, `11th`.
pub(crate) fn ordinal(n: u64) -> String {
    let ending = match (n % 10, n % 100) {
        // 11, 12 and 13 are irregular in every hundred, so they are matched before the last digit.
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// The last lines of a report: counts of everything checked, and the failures.
pub(crate) fn print_coverage(out: &mut Out, run: &RankedRun) -> CommandResult {
    line!(
        out,
        "checked: {}, {}, {}",
        format::count(run.ranks.len() as u64, "rank"),
        format::count(run.dump.runs.len() as u64, "execution"),
        format::count(run.meetings.meetings.len() as u64, "collective")
    )?;
    if let Some(lost) = lost_tensors(&run.dump) {
        line!(out, "not written by the capture: {}", lost.words())?;
    }
    let n_unmatched = run.meetings.unmatched.len();
    if n_unmatched > 0 {
        let unmatched = format::count(n_unmatched as u64, "execution");
        line!(
            out,
            "not matched: {unmatched} of collectives whose other ranks are unknown"
        )?;
    }
    if run.order.n_unordered > 0 {
        let n = format::count(run.order.n_unordered, "collective");
        line!(
            out,
            "not ordered: {n} wait for each other; their recorded ranks or groups are wrong"
        )?;
    }
    passed_over::print(out, &run.dump.passed_over)
}

#[cfg(test)]
mod tests {
    use super::{ordinal, ranks_noun};

    #[test]
    fn numbers_in_words() {
        for (n, text) in [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (12, "12th")] {
            assert_eq!(ordinal(n), text);
        }
        assert_eq!(ordinal(111), "111th");
        assert_eq!(ordinal(21), "21st");
        assert_eq!(ranks_noun(&[0, 1, 2, 5]), "ranks 0-2,5");
        assert_eq!(ranks_noun(&[7]), "rank 7");
    }
}
