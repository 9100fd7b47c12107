//! A whole comparison: from two paths to a result.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_store::StoreError;
use opscope_tensor::difference;
use thiserror::Error;

use super::agreement::Agreement;
use super::attribution::attribute_along;
use super::contract::{self, ContractOptions};
use super::coverage;
use super::edges;
use super::experiments::{self, Experimenter};
use super::flow::ValueFlow;
use super::locate::locate;
use super::matching::{self, Mapping, MappingError, MatchedDumps, Matching, ValueAnchor};
use super::measure::{self, MeasuredPairs, SlotProgress, measure};
use super::noise;
use super::parameters;
use super::party::Party;
use super::program_names::{name_attributes, name_origins, name_places};
use super::result::{Comparison, ComparisonConfig, Conclusion, Contract, SkipReason, SkipSide};
use super::selection::Selection;
use super::side::ComparedDump;
use super::steps::find_origin;
use super::verdict::{Thresholds, judge_along};
use super::weight_reads;
use crate::lost::lost_tensors;

use super::whole::{self, CheckedRules, RankRules, has_placements, put_together};

pub use super::verdict_options::VerdictOptions;

/// The dumps to compare, and how.
#[derive(Clone, Debug)]
pub struct ComparisonRequest {
    /// The dump under test.
    pub target: PathBuf,
    /// The trusted dump.
    pub golden: PathBuf,
    /// A dump whose distance from the golden one is the yardstick.
    pub reference: Option<PathBuf>,
    /// Which part of both sides.
    pub selection: Selection,
    /// How partners are looked for.
    pub matching: matching::MatchingOptions,
    /// Whether the tensors of all ranks are put together although both sides have the same ranks.
    pub is_whole: bool,
    /// Threads that read headers and work on slots.
    pub n_threads: usize,
    /// Whether to list the parameters and buffers of both sides.
    pub has_parameters: bool,
    /// Further numbers to compute of each pair of tensors.
    pub difference: difference::DifferenceOptions,
    /// How the numbers are judged.
    pub judging: VerdictOptions,
    /// Version of the program, for the result.
    pub program: String,
    /// Further options, for the result.
    pub options: Vec<(String, String)>,
    /// Counts pairs of tensors, for a progress bar.
    pub progress: Option<Arc<SlotProgress>>,
}

impl ComparisonRequest {
    /// A comparison of everything with the default limits.
    pub fn with_defaults(
        target: &Path,
        golden: &Path,
        n_threads: usize,
        program: String,
    ) -> ComparisonRequest {
        ComparisonRequest {
            target: target.to_owned(),
            golden: golden.to_owned(),
            reference: None,
            selection: Selection::default(),
            matching: matching::MatchingOptions::default(),
            is_whole: false,
            has_parameters: false,
            n_threads,
            difference: difference::DifferenceOptions::default(),
            judging: VerdictOptions {
                thresholds: Thresholds::default(),
                n_ranked: 0,
                allowed: Vec::new(),
                is_strict: false,
                limit: None,
            },
            program,
            options: Vec::new(),
            progress: None,
        }
    }
}

impl ComparisonRequest {
    /// The same request without the user's mapping.
    pub(super) fn without_mapping(&self) -> ComparisonRequest {
        ComparisonRequest {
            matching: matching::MatchingOptions {
                mapping: None,
                ..self.matching.clone()
            },
            ..self.clone()
        }
    }
}

/// Why nothing could be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// A side cannot be opened.
    #[error("the {side} side cannot be read")]
    Open {
        /// `target`, `golden` or `reference`.
        side: &'static str,
        /// Why.
        source: StoreError,
    },
    /// A side has no operators.
    #[error("the {side} side, `{}`, has no tensors{}", path.display(), because(problems))]
    Empty {
        /// `target`, `golden` or `reference`.
        side: &'static str,
        /// The path that was opened.
        path: PathBuf,
        /// Messages about the files that could not be read.
        problems: Vec<String>,
    },
    /// The mapping does not fit the dumps.
    #[error("the mapping does not fit these dumps")]
    Mapping(#[from] MappingError),
    /// The selection excludes all of a side.
    #[error("the selection excludes every operator of the {side} dump")]
    NothingChosen {
        /// `target`, `golden`, or `target and golden`.
        side: &'static str,
    },
}

/// Dumps that were read before, without what the request leaves out ([`narrow`]).
#[derive(Clone, Copy)]
pub struct OpenedDumps<'a> {
    /// The dump under test.
    pub target: &'a ComparedDump,
    /// The trusted dump.
    pub golden: &'a ComparedDump,
    /// A dump whose distance from the golden one is the yardstick.
    pub reference: Option<&'a ComparedDump>,
    /// Pairs that were measured while the target ran.
    pub measured: Option<&'a MeasuredPairs>,
    /// Who can run the target once more, to find out why its outputs differ.
    pub experimenter: Option<&'a dyn Experimenter>,
}

/// Opens, matches, measures and judges two dumps. An `experimenter` is asked if an output differs.
///
/// # Errors
/// [`CompareError`] if a side cannot be opened, or nothing of it is left to compare. Everything
/// less than that is a skip of the result.
pub fn run(
    request: &ComparisonRequest,
    experimenter: Option<&dyn Experimenter>,
) -> Result<Comparison, CompareError> {
    run_with(request, experimenter, |_, _| {})
}

/// [`run`] that passes on each dump, with its number (target, golden, reference), before comparing
/// it.
pub(super) fn run_with(
    request: &ComparisonRequest,
    experimenter: Option<&dyn Experimenter>,
    prepare: impl Fn(&mut ComparedDump, usize),
) -> Result<Comparison, CompareError> {
    let mut target = open("target", &request.target, request)?;
    let mut golden = open("golden", &request.golden, request)?;
    let mut reference = match &request.reference {
        Some(path) => Some(open("reference", path, request)?),
        None => None,
    };
    let rules = put_ranks_together(request, [&mut target, &mut golden], reference.as_mut())?;
    let sides = [Some(&mut target), Some(&mut golden), reference.as_mut()];
    for (nth, side) in sides.into_iter().enumerate() {
        // Only now: tensors that were put together are others than those of the ranks.
        if let Some(side) = side {
            prepare(side, nth);
        }
    }
    let dumps = OpenedDumps {
        target: &target,
        golden: &golden,
        reference: reference.as_ref(),
        measured: None,
        experimenter,
    };
    let mut comparison = run_opened(request, dumps)?;
    comparison.config.ranks = rules;
    note_lost(&mut comparison, [&target, &golden]);
    // With several steps the question is which to dump next, and how that is said depends on what
    // made the dump.
    if comparison.summary.steps.is_some() {
        let config = &mut comparison.config;
        config.target_run = find_origin(&request.target);
        config.golden_run = find_origin(&request.golden);
    }
    Ok(comparison)
}

/// Matches a third dump with golden.
///
/// # Errors
/// As [`Matching::align`].
fn align_reference(
    reference: &ComparedDump,
    golden: &ComparedDump,
    options: &matching::MatchingOptions,
) -> Result<Matching, CompareError> {
    // A mapping and a fusion file name the target's operators.
    let options = matching::MatchingOptions {
        mapping: None,
        target_fusion: None,
        ..options.clone()
    };
    Ok(Matching::align(reference, golden, &options)?)
}

/// [`run`] of dumps that were read before; the paths of the request are their names in the result.
///
/// # Errors
/// As [`run`].
pub fn run_opened(
    request: &ComparisonRequest,
    dumps: OpenedDumps<'_>,
) -> Result<Comparison, CompareError> {
    let OpenedDumps {
        target,
        golden,
        reference,
        measured,
        experimenter,
    } = dumps;
    let mut matching = Matching::align(target, golden, &request.matching)?;
    // Names and types narrow the matching's result, not its input: matches depend on neighbours,
    // and must not depend on the selection.
    request.selection.narrow(&mut matching, target, golden);
    // An operator without a partner is a finding, so only a selection that leaves none of either
    // kind is a mistake.
    if matching.pairs.is_empty() && matching.unmatched.is_empty() {
        return Err(CompareError::NothingChosen {
            side: "target and golden",
        });
    }
    let yardstick = reference
        .map(|reference| align_reference(reference, golden, &request.matching))
        .transpose()?;
    let mut sides = MatchedDumps {
        target,
        golden,
        matching: &matching,
        reference: reference.zip(yardstick.as_ref()),
    };
    let options = measure::MeasureOptions {
        n_threads: request.n_threads,
        difference: request.difference,
        measured,
        progress: request.progress.as_deref(),
    };
    let mut comparison = measure_matched(request, sides, options);
    // Certain names, and the graphs around them, take precedence over later evidence.
    let certain = certain_pairs(&comparison, sides);

    // Tensors that were put together have the graph of one rank, and parts of others.
    let is_whole = target.is_whole || golden.is_whole;
    let fixed = if is_whole {
        Vec::new()
    } else {
        certain.clone()
    };
    let moved = realigned(request, sides, &fixed)?;
    if let Some(moved) = &moved {
        sides.matching = moved;
        comparison = measure_matched(request, sides, options);
    }
    let thresholds = &request.judging.thresholds;
    // Where names and graphs fail, values are looked for.
    let found = Agreement::search(&comparison, sides, certain, thresholds, request.n_threads);
    let anchored = anchored(request, sides, (&found, fixed))?;
    if let Some(anchored) = anchored.as_ref().filter(|found| *found != sides.matching) {
        sides.matching = anchored;
        comparison = measure_matched(request, sides, options);
    }
    name_attributes(&mut comparison, sides);
    found.note(&mut comparison, sides);
    // Values say as well which operators are certain.
    name_attributes(&mut comparison, sides);
    // Edges come after values, because they are more specific about the same operators.
    edges::note(&mut comparison, sides);
    if !thresholds.is_exact {
        noise::note(&mut comparison, sides);
    }
    rejudge(&mut comparison, &request.judging);
    name_origins(&mut comparison, sides);
    let contract_options = ContractOptions {
        measure: options,
        thresholds,
        selection: &request.selection,
    };
    examine_contract(&mut comparison, sides, contract_options);
    contract::conclude(&mut comparison, &request.judging);
    experiments::make(&mut comparison, experimenter, thresholds);
    describe(&mut comparison, sides, request);
    Ok(comparison)
}

/// Adds what depends on the slots that the verdict names.
fn describe(comparison: &mut Comparison, sides: MatchedDumps<'_>, request: &ComparisonRequest) {
    name_places(comparison, [sides.target, sides.golden]);
    locate(comparison, sides, &request.judging.thresholds);
    if comparison.contract.conclusion == Conclusion::Fail {
        comparison.weight_reads = weight_reads::find(sides);
    }
    if request.has_parameters {
        comparison.parameters = parameters::list(comparison, sides);
    }
}

/// Notes the tensors that the captures did not write, and says so of operators that lack a partner.
fn note_lost(comparison: &mut Comparison, dumps: [&ComparedDump; 2]) {
    comparison.lost = dumps.map(lost_tensors);
    for (party, lost) in [Party::Target, Party::Golden]
        .into_iter()
        .zip(&comparison.lost)
    {
        let Some(lost) = lost else {
            continue;
        };
        let names: HashSet<&str> = lost.operators.iter().map(String::as_str).collect();
        let side = SkipSide::from(party.other());
        let whose = party.pick("the target's", "golden's");
        for skip in &mut comparison.skips {
            let operator = skip.operator.as_ref();
            let is_named = operator.is_some_and(|one| names.contains(&*one.op_name));
            if skip.reason == SkipReason::Missing && skip.side == side && is_named {
                skip.message = format!("{whose} capture did not write it");
            }
        }
    }
}

/// Fills in the contract, but for the verdict that follows from it.
fn examine_contract(
    comparison: &mut Comparison,
    sides: MatchedDumps<'_>,
    options: ContractOptions<'_>,
) {
    comparison.contract = Contract {
        has_golden_graph: comparison.contract.has_golden_graph,
        ..contract::examine(comparison, sides, options)
    };
    edges::note_before_output(comparison, sides);
}

/// Executions that make the same values, as far as they may be partners.
fn usable_anchors(
    found: &Agreement,
    request: &ComparisonRequest,
    sides: MatchedDumps<'_>,
) -> Vec<ValueAnchor> {
    if request.matching.no_guesses {
        return Vec::new();
    }
    let anchors = found.anchors().into_iter();
    anchors
        .filter(|anchor| is_anchor(anchor, sides.target, sides.golden))
        .collect()
}

/// Pairs whose names are certain.
fn certain_pairs(comparison: &Comparison, sides: MatchedDumps<'_>) -> Vec<[usize; 2]> {
    let certain = matching::certain(comparison, sides);
    if sides.target.is_whole || sides.golden.is_whole {
        return certain;
    }
    matching::extended(certain, sides)
}

/// The matching with pairs that are certain, if they are others than those of `sides`.
///
/// # Errors
/// As [`Matching::align`].
fn realigned(
    request: &ComparisonRequest,
    sides: MatchedDumps<'_>,
    certain: &[[usize; 2]],
) -> Result<Option<Matching>, CompareError> {
    let pairs = sides.matching.pairs.iter();
    let known: HashSet<[usize; 2]> = pairs
        .filter_map(|pair| match (&pair.target[..], &pair.golden[..]) {
            (&[t], &[g]) => Some([t, g]),
            _ => None,
        })
        .collect();
    if request.matching.no_guesses || certain.iter().all(|pair| known.contains(pair)) {
        return Ok(None);
    }
    let options = matching::MatchingOptions {
        certain: certain.to_vec(),
        ..request.matching.clone()
    };
    let mut moved = Matching::align(sides.target, sides.golden, &options)?;
    request
        .selection
        .narrow(&mut moved, sides.target, sides.golden);
    Ok(Some(moved))
}

/// The matching with executions that make the same values, if there are any; `certain` pairs stay.
///
/// # Errors
/// As [`Matching::align`].
fn anchored(
    request: &ComparisonRequest,
    sides: MatchedDumps<'_>,
    (found, certain): (&Agreement, Vec<[usize; 2]>),
) -> Result<Option<Matching>, CompareError> {
    let anchors = usable_anchors(found, request, sides);
    let values = found.shared();
    if request.matching.no_guesses || anchors.is_empty() && values.is_empty() {
        return Ok(None);
    }
    let options = matching::MatchingOptions {
        certain,
        anchors,
        values,
        ..request.matching.clone()
    };
    let mut anchored = Matching::align(sides.target, sides.golden, &options)?;
    let selection = &request.selection;
    selection.narrow(&mut anchored, sides.target, sides.golden);
    Ok(Some(anchored).filter(|anchored| !anchored.pairs.is_empty()))
}

/// Notes inputs whose operator only the other side's graph shows.
fn note_unseen(comparison: &mut Comparison, sides: MatchedDumps<'_>) {
    let [target, golden] = matching::unseen::find(sides);
    let pairs = sides.matching.pairs.iter().zip(&mut comparison.operators);
    for (slot, result) in pairs.flat_map(|(pair, one)| pair.slots.iter().zip(&mut one.slots)) {
        result.is_unseen |= target.contains(&slot.target) || golden.contains(&slot.golden);
    }
}

/// Measures and judges what belongs together.
fn measure_matched(
    request: &ComparisonRequest,
    sides: MatchedDumps<'_>,
    options: measure::MeasureOptions<'_>,
) -> Comparison {
    let mut comparison = measure(sides, config(request), options);
    measure::note_moved_axes(&mut comparison, sides);
    note_unseen(&mut comparison, sides);
    // Coverage needs the dumps, which are gone when a result is rejudged; `rejudge` builds the rest
    // of the summary.
    coverage::count(&mut comparison, sides, &request.selection);
    comparison.contract.has_golden_graph = sides.golden.has_graph();
    rejudge(&mut comparison, &request.judging);
    comparison
}

/// Whether executions that make the same values may be partners.
fn is_anchor(anchor: &ValueAnchor, target: &ComparedDump, golden: &ComparedDump) -> bool {
    let [t, g] = anchor.runs;
    // The result of a reduction is the golden side's product as well, which belongs to the operator
    // whose contributions were added up for it.
    let has_collective = [&target.runs[t], &golden.runs[g]].map(|run| run.collective.is_some());
    !(target.is_whole && golden.is_whole) || has_collective[0] == has_collective[1]
}

/// Matches two dumps and returns the pairs as a mapping that can be edited and given back; reads no
/// tensor.
///
/// # Errors
/// As [`run`].
pub fn mapping(request: &ComparisonRequest) -> Result<Mapping, CompareError> {
    let mut target = open("target", &request.target, request)?;
    let mut golden = open("golden", &request.golden, request)?;
    put_ranks_together(request, [&mut target, &mut golden], None)?;
    let matching = Matching::align(&target, &golden, &request.matching)?;
    Ok(matching.to_mapping(&target, &golden))
}

/// Judges a result again from its numbers.
pub fn rejudge(comparison: &mut Comparison, judging: &VerdictOptions) {
    // Levels change none of the numbers by which values are followed.
    let flow = ValueFlow::trace(comparison);
    judge_along(comparison, &judging.thresholds, &flow);
    attribute_along(comparison, judging.n_ranked, &flow);
    // A saved result forgets what it was allowed with: only the patterns of this call count.
    for skip in &mut comparison.skips {
        skip.is_allowed = judging.allowed.iter().any(|pattern| pattern.allows(skip));
    }
    contract::conclude(comparison, judging);
    experiments::apply(comparison);
}

/// Puts the tensors of all ranks of each side together, if that is asked for, or if the sides share
/// their tensors in other ways and notes say how. Returns the rules if it was done.
fn put_ranks_together(
    request: &ComparisonRequest,
    [target, golden]: [&mut ComparedDump; 2],
    reference: Option<&mut ComparedDump>,
) -> Result<Option<RankRules>, MappingError> {
    let mapping = request.matching.mapping.as_ref();
    let rules = mapping.map(Mapping::rank_rules).transpose()?;
    let is_noted = rules.as_ref().is_some_and(|_| {
        // Rules of a mapping are there to be followed.
        mapping.is_some_and(|mapping| !mapping.ranks.is_empty())
    });
    // With as many ranks on both sides and no notes, ranks are compared one by one.
    let has_notes = has_placements(target) || has_placements(golden);
    let is_shared_otherwise = has_notes && whole::share_otherwise([target, golden]);
    let has_other_ranks = request.matching.ranks.is_empty()
        && request.selection.ranks.is_empty()
        && n_ranks(target) != n_ranks(golden);
    let is_wanted = request.is_whole || is_noted || is_shared_otherwise || has_other_ranks;
    if !is_wanted {
        return Ok(None);
    }
    let rules = rules.unwrap_or_default();
    let unfit = put_both_together([target, golden], &rules);
    // A part of a dump need not have what a rule is for.
    if request.selection == Selection::default() {
        refuse_unfit(unfit)?;
    }
    if let Some(reference) = reference {
        // It shows alternative forms of the golden side, and is reported like it.
        put_together(reference, &rules[1]);
    }
    Ok(Some(
        mapping
            .map(|mapping| mapping.ranks.clone())
            .unwrap_or_default(),
    ))
}

fn n_ranks(side: &ComparedDump) -> usize {
    let ranks = side.runs.iter().filter_map(|run| run.place.rank);
    ranks.collect::<HashSet<_>>().len().max(1)
}

/// Refuses a rule that would change nothing: most often a name or a number of axes is not what was
/// meant.
fn refuse_unfit(unfit: [Vec<usize>; 2]) -> Result<(), MappingError> {
    for (side, unfit) in [Party::Target, Party::Golden].into_iter().zip(unfit) {
        if let Some(rule) = unfit.first() {
            return Err(MappingError::Ranks {
                place: format!("{}.tensors[{rule}]", side.name()),
                message:
                    "no tensor fits it: expected an operator of this name and phase that has the \
                          slot, with as many axes as `dims`"
                        .to_owned(),
            });
        }
    }
    Ok(())
}

/// Returns the positions of rules that no tensor of their side fits.
fn put_both_together(sides: [&mut ComparedDump; 2], rules: &[CheckedRules; 2]) -> [Vec<usize>; 2] {
    let [target, golden] = sides;
    let unfit = [
        put_together(target, &rules[0]),
        put_together(golden, &rules[1]),
    ];
    whole::name_by_call([target, golden]);
    // The user's rules for shared tensors take precedence.
    if !rules.iter().any(CheckedRules::has_tensors) {
        whole::cut_like_others([target, golden]);
    }
    unfit
}

/// The dumps of a comparison that was made before, with their operators and tensors as it saw them.
///
/// # Errors
/// [`StoreError`] if one cannot be read any more.
pub fn open_again(
    comparison: &Comparison,
    paths: [&Path; 2],
    n_threads: usize,
) -> Result<[ComparedDump; 2], StoreError> {
    let mut target = ComparedDump::open(paths[0], n_threads)?;
    let mut golden = ComparedDump::open(paths[1], n_threads)?;
    // Invalid rules never led to a comparison.
    let rules = comparison.config.ranks.as_ref();
    if let Some(Ok(rules)) = rules.map(matching::understood) {
        put_both_together([&mut target, &mut golden], &rules);
    }
    Ok([target, golden])
}

fn open(
    name: &'static str,
    path: &Path,
    request: &ComparisonRequest,
) -> Result<ComparedDump, CompareError> {
    let mut side = ComparedDump::open_places(path, request.n_threads, |place| {
        request.selection.has_place(place)
    })
    .map_err(|source| CompareError::Open { side: name, source })?;
    narrow(name, &mut side, request)?;
    Ok(side)
}

/// Leaves what the request selects of a side, `target`, `golden` or `reference`.
///
/// # Errors
/// [`CompareError::Empty`] and [`CompareError::NothingChosen`].
pub fn narrow(
    name: &'static str,
    side: &mut ComparedDump,
    request: &ComparisonRequest,
) -> Result<(), CompareError> {
    if side.runs.is_empty() {
        return Err(CompareError::Empty {
            side: name,
            path: side.root.clone(),
            problems: std::mem::take(&mut side.problems),
        });
    }
    // Done last, so that a dump without tensors (exit code 3) differs from an empty selection (2).
    request.selection.narrow_side(side);
    if side.runs.is_empty() {
        return Err(CompareError::NothingChosen { side: name });
    }
    Ok(())
}

/// The first of several problems, behind a colon.
fn because(problems: &[String]) -> String {
    problems
        .first()
        .map_or_else(String::new, |first| format!(": {first}"))
}

fn config(request: &ComparisonRequest) -> ComparisonConfig {
    let reference = request.reference.as_deref();
    ComparisonConfig {
        program: request.program.clone(),
        target: request.target.display().to_string(),
        golden: request.golden.display().to_string(),
        reference: reference.map(|path| path.display().to_string()),
        options: request.options.clone(),
        ..ComparisonConfig::default()
    }
}
