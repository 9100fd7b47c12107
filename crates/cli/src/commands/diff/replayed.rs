//! Re-runs the suspected operators in isolation.

use std::io::Write;

use opscope_analysis::compare::result::{Comparison, OperatorName, SkipSide};
use opscope_analysis::compare::run::ComparisonRequest;
use opscope_analysis::compare::side::{ComparedDump, OperatorExecution};
use opscope_engine::GraphKind;

use super::both::ComparedSides;
use super::side::ModelSide;
use super::store::KeptSide;
use super::{DiffSides, LoadedSide};
use crate::commands::replay::{ReplaySide, print_replayed};
use crate::console::{self, line};
use crate::exit::CommandResult;

/// Maximum number of operators to re-run.
const N_REPLAYED_MAX: usize = 6;

/// Re-runs the operators that the verdict names, and those that may have caused the difference, and
/// prints which of them are wrong. The golden side's engine runs the operators of both sides.
pub(super) fn replay_suspects(
    request: &ComparisonRequest,
    compared: &ComparedSides,
    sides: &DiffSides,
) -> CommandResult {
    let runs = suspects(&compared.comparison, &compared.target.dump);
    let models = [model_of(&sides.golden), model_of(&sides.target)];
    let Some(model) = models
        .into_iter()
        .flatten()
        .next()
        .filter(|_| !runs.is_empty())
    else {
        return Ok(());
    };
    let mut out = console::out();
    writeln!(out)?;
    line!(out, "re-run in isolation, by {}:", model.engine.name())?;
    drop(out);
    // A single operator has no graph to fuse.
    let mut options = model.engine.load_options().clone();
    options.graph = GraphKind::Original;
    options.is_watched = false;
    print_replayed(
        [
            replayed(&compared.target, &sides.target),
            replayed(&compared.golden, &sides.golden),
        ],
        &runs,
        (model.engine.choice(), &options),
        (&request.matching, &request.judging.thresholds),
    )
}

fn model_of(side: &LoadedSide) -> Option<&ModelSide> {
    match side {
        LoadedSide::Model(model) => Some(model),
        LoadedSide::Dump(_) => None,
    }
}

fn replayed<'a>(kept: &'a KeptSide, side: &'a LoadedSide) -> ReplaySide<'a> {
    // An executed graph is not in a file, and neither is a widened model: their descriptions define
    // the operators, and the dumps have their weights.
    let is_in_file =
        |model: &&ModelSide| model.widened.is_none() && model.engine.graph() == GraphKind::Original;
    ReplaySide {
        dump: &kept.dump,
        model: model_of(side).filter(is_in_file).map(|model| &*model.path),
    }
}

/// Target executions that the verdict names, then suspected ones.
fn suspects(comparison: &Comparison, target: &ComparedDump) -> Vec<usize> {
    let summary = &comparison.summary;
    let firsts = [&summary.first_failure, &summary.first_divergence];
    let mut names: Vec<&OperatorName> = Vec::new();
    for first in firsts.into_iter().flatten() {
        let operator = comparison.operators.get(first.operator);
        names.extend(operator.into_iter().flat_map(|operator| &operator.target));
        let of_target = first.suspects.iter();
        names.extend(
            of_target
                .filter(|suspect| suspect.side != SkipSide::Golden)
                .map(|suspect| &suspect.operator),
        );
    }
    let mut runs: Vec<usize> = Vec::new();
    // The first failure and the first difference may be the same operator.
    for name in names {
        let found = target.runs.iter().position(|run| is_named(run, name));
        runs.extend(found.filter(|run| !runs.contains(run)));
    }
    runs.truncate(N_REPLAYED_MAX);
    runs
}

fn is_named(run: &OperatorExecution, name: &OperatorName) -> bool {
    *name == OperatorName::for_execution(run)
}
