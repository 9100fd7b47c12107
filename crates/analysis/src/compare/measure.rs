//! Measuring matched slots: elements, or what a dump has instead of them.

mod fault;
mod hidden;
pub(super) mod masked;
mod measured_pairs;
mod moved_axes;
mod pieces;
mod same_contents;
mod text;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use opscope_tensor::Layout;
use opscope_tensor::difference::{self, TensorDifference};

pub(super) use self::fault::MeasureFault;
use self::fault::skip;
pub(super) use self::moved_axes::note_moved_axes;
use self::same_contents::{ContentsKey, KnownPairs, PairNumbers};
use self::text::{are_text, compare_text};
use super::matching::{MatchEvidence, MatchedDumps, Matching, RunPair, SlotPair, SlotRef};
use super::parts::facts::{self, FactKind};
use super::result::{
    Comparison, ComparisonConfig, Evidence, Metrics, OperatorName, OperatorResult, PairingEvidence,
    Party, RuleHit, RuleName, Skip, SkipReason, SkipSide, SlotResult, VERSION, VerdictLevel,
};
use super::side::{ComparedDump, ExecutionSlot, LoadedSlot, OperatorExecution};
use super::statistics;
use super::whole::{WholeNumbers, measure_whole};
use crate::error_chain::chain;
use crate::job;

pub use measured_pairs::{MeasuredPairs, StreamedDifference};

/// How slots are measured.
#[derive(Clone, Copy)]
pub struct MeasureOptions<'a> {
    /// Threads that work on slots.
    pub n_threads: usize,
    /// Further numbers to compute of each pair of tensors.
    pub difference: difference::DifferenceOptions,
    /// Pairs that were measured with the same options before.
    pub measured: Option<&'a MeasuredPairs>,
    /// Counts pairs of tensors, for a progress bar.
    pub progress: Option<&'a SlotProgress>,
}

/// Pairs of tensors that are measured, and all that are known so far.
#[derive(Debug, Default)]
pub struct SlotProgress {
    n_done: AtomicU64,
    n_all: AtomicU64,
}

impl SlotProgress {
    /// Number of measured pairs, and of all.
    pub fn position(&self) -> [u64; 2] {
        [&self.n_done, &self.n_all].map(|n| n.load(Ordering::Relaxed))
    }
}

/// Slots that are measured together: enough for all threads, and few enough that their results need
/// no room.
const N_BATCH_SLOTS: usize = 1 << 15;

/// Measures every pair of slots. Only mismatched shapes are judged at this point.
///
/// The result does not depend on the number of threads.
pub fn measure(
    sides: MatchedDumps<'_>,
    config: ComparisonConfig,
    options: MeasureOptions<'_>,
) -> Comparison {
    let pairs = &sides.matching.pairs;
    let yardsticks = sides.reference.map(|(side, matching)| ReferenceSlots {
        side,
        of_golden: matching.partners_of_golden(),
    });
    let mut comparison = Comparison {
        version: VERSION,
        config,
        operators: Vec::with_capacity(pairs.len()),
        ..Comparison::default()
    };
    let mut known = KnownPairs::default();
    let mut rest = &pairs[..];
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(n_in_batch(rest));
        // Threads share slots and not operators, as one operator may hold most of the bytes.
        let work: Vec<SlotPair> = batch.iter().flat_map(|pair| pair.slots.clone()).collect();
        let outcomes = outcomes(sides, &work, yardsticks.as_ref(), options, &mut known);
        let mut measured = work.iter().zip(outcomes);
        for pair in batch {
            let mut operator = operator(sides, comparison.operators.len(), pair);
            operator.slots.reserve_exact(pair.slots.len());
            for (pair, outcome) in measured.by_ref().take(pair.slots.len()) {
                take(sides, *pair, outcome, &mut operator, &mut comparison);
            }
            comparison.operators.push(operator);
        }
        rest = others;
    }
    comparison.skips.extend(super::skips::of_matching(sides));
    comparison.passed_over = super::skips::passed_over(sides);
    super::rank_local::set_aside(&mut comparison, sides);
    comparison
}

/// Number of pairs of operators that are measured together, at least one.
fn n_in_batch(pairs: &[RunPair]) -> usize {
    let mut n_slots = 0;
    let large = pairs.iter().position(|pair| {
        n_slots += pair.slots.len();
        n_slots >= N_BATCH_SLOTS
    });
    large.map_or(pairs.len(), |last| last + 1)
}

/// The results of pairs of slots, in their order.
fn outcomes(
    sides: MatchedDumps<'_>,
    work: &[SlotPair],
    yardsticks: Option<&ReferenceSlots<'_>>,
    options: MeasureOptions<'_>,
    known: &mut KnownPairs,
) -> Vec<Outcome> {
    // The reference may have another partner for each of several equal slots.
    let keys: Vec<Option<ContentsKey>> = work
        .iter()
        .map(|pair| match yardsticks {
            Some(_) => None,
            None => same_contents::contents_of(sides, pair),
        })
        .collect();
    // Of pairs with the same contents the first is measured for all.
    let mut firsts: HashSet<&ContentsKey> = HashSet::new();
    let is_measured: Vec<bool> = keys
        .iter()
        .map(|key| {
            key.as_ref()
                .is_none_or(|key| known.get(key).is_none() && firsts.insert(key))
        })
        .collect();
    let own = work.iter().zip(&is_measured);
    let own: Vec<SlotPair> = own
        .filter(|(_, own)| **own)
        .map(|(pair, _)| *pair)
        .collect();
    let measure = |pair: &SlotPair| {
        let found = numbers(sides, pair, options);
        let noted = found.as_ref().ok().cloned().flatten();
        let outcome = slot(sides, *pair, found, yardsticks, options.difference);
        if let Some(progress) = options.progress {
            progress.n_done.fetch_add(1, Ordering::Relaxed);
        }
        (noted, outcome)
    };
    if let Some(progress) = options.progress {
        progress
            .n_all
            .fetch_add(own.len() as u64, Ordering::Relaxed);
    }
    let mut measured = job::map(&own, options.n_threads, measure).into_iter();
    let results = work.iter().zip(&keys).zip(is_measured);
    let results = results.map(|((pair, key), is_measured)| {
        if let Some((noted, outcome)) = is_measured.then(|| measured.next()).flatten() {
            if let (Some(key), Some(noted)) = (key, noted) {
                known.note(*key, noted);
            }
            return outcome;
        }
        match key.and_then(|key| known.get(&key)) {
            Some(found) => slot(
                sides,
                *pair,
                Ok(Some(found.clone())),
                None,
                options.difference,
            ),
            // The first one could not be read, and each is reported under its own name.
            None => measure(pair).1,
        }
    });
    results.collect()
}

/// Adds the result of a slot to its operator and to the whole.
fn take(
    sides: MatchedDumps<'_>,
    pair: SlotPair,
    outcome: Outcome,
    operator: &mut OperatorResult,
    comparison: &mut Comparison,
) {
    match outcome {
        Ok((mut result, n_bytes)) => {
            // Several threads measure.
            result.metrics = std::mem::take(&mut result.metrics).shared();
            operator.slots.push(result);
            comparison.summary.n_bytes += n_bytes;
        }
        Err(skip) => {
            // A slot that was skipped keeps its place, as coverage goes through slots and pairs
            // side by side.
            operator.slots.push(SlotResult {
                slot: sides.target.slot(pair.target).key(),
                target: sides.target.slot(pair.target).summary().clone(),
                golden: sides.golden.slot(pair.golden).summary().clone(),
                evidence: Evidence::None,
                level: VerdictLevel::Skip,
                ..SlotResult::default()
            });
            comparison.skips.push(*skip);
        }
    }
}

fn operator(sides: MatchedDumps<'_>, index: usize, pair: &RunPair) -> OperatorResult {
    let sides_of_pair = [(sides.target, &pair.target), (sides.golden, &pair.golden)];
    let [target, golden] = sides_of_pair.map(|(side, runs)| {
        let runs = runs.iter().filter_map(|&run| side.runs.get(run));
        runs.map(OperatorName::for_execution).collect()
    });
    OperatorResult {
        index,
        target,
        golden,
        hidden_inputs: hidden::hidden_inputs(sides, pair).into(),
        how: pair.how.evidence(),
        likeness: match pair.how {
            MatchEvidence::Fuzzy(likeness) => Some(likeness),
            _ => None,
        },
        ..OperatorResult::default()
    }
}

/// The result of a pair, with the bytes that were read; or why there is none.
type Outcome = Result<(SlotResult, u64), Box<Skip>>;

/// The result of two slots, partners or not; or the reason for its absence.
///
/// # Errors
/// The [`Skip`] that takes its place.
pub(super) fn measure_pair(
    sides: MatchedDumps<'_>,
    pair: SlotPair,
    options: MeasureOptions<'_>,
) -> Result<SlotResult, Box<Skip>> {
    let found = numbers(sides, &pair, options);
    slot(sides, pair, found, None, options.difference).map(|(result, _)| result)
}

/// The result of two slots by the order of their elements alone, as a view may lie between them;
/// none if they have not as many elements, or cannot be read.
pub(super) fn measure_in_order(
    sides: MatchedDumps<'_>,
    pair: SlotPair,
    options: difference::DifferenceOptions,
) -> Option<SlotResult> {
    let target = sides.target.slot(pair.target);
    let golden = sides.golden.slot(pair.golden);
    if target.n_elements()? != golden.n_elements()? || are_text(target, golden) {
        return None;
    }
    if target.has_elements && golden.has_elements {
        let [a, b] = [target, golden].map(|slot| slot.load(None));
        let (a, b) = (a.ok()?, b.ok()?);
        let n_bytes = (a.view().bytes.len() + b.view().bytes.len()) as u64;
        let found = masked::difference(a.view(), b.view(), options).ok()?;
        let found = PairNumbers::from_difference(&found, n_bytes);
        let result = slot(sides, pair, Ok(Some(found)), None, options);
        return result.ok().map(|(result, _)| result);
    }
    match statistics::compare_numbers(target, golden, false) {
        statistics::StatisticsOutcome::Measured(found) => Some(SlotResult {
            evidence: found.evidence,
            metrics: found.metrics,
            ..unmeasured(target, golden)
        }),
        _ => None,
    }
}

/// The numbers of a pair of slots with elements; none where a side lacks them.
fn numbers(
    sides: MatchedDumps<'_>,
    pair: &SlotPair,
    options: MeasureOptions<'_>,
) -> Result<Option<PairNumbers>, MeasureFault> {
    let target = sides.target.slot(pair.target);
    let golden = sides.golden.slot(pair.golden);
    // Text has no distance.
    if !(target.has_elements && golden.has_elements) || are_text(target, golden) {
        return Ok(None);
    }
    let measured = options.measured.filter(|_| pair.layout.is_none());
    if let Some(found) = measured.and_then(|measured| measured.get(target, golden)) {
        return Ok(Some(found));
    }
    if target.whole().is_some() || golden.whole().is_some() {
        // No part of a shared comparison knows them: a unit has one rank.
        let WholeNumbers {
            difference,
            n_bytes,
            ranks,
        } = measure_whole((target, golden), pair.layout)?;
        return Ok(Some(PairNumbers {
            ranks: Some(ranks.into()),
            ..PairNumbers::from_difference(&difference, n_bytes)
        }));
    }
    let dumps = [sides.target, sides.golden];
    let found = pair_numbers(dumps, [target, golden], pair.layout, options.difference)?;
    Ok(Some(found))
}

/// The numbers of two slots with elements, of two dumps.
fn pair_numbers(
    dumps: [&ComparedDump; 2],
    slots: [&ExecutionSlot; 2],
    layout: Option<Layout>,
    options: difference::DifferenceOptions,
) -> Result<PairNumbers, MeasureFault> {
    let both = [0, 1].map(|i| (dumps[i], slots[i]));
    let fact = facts::of_pair(FactKind::Difference, both, layout, || {
        let (found, n_bytes) = tensors((slots[0], slots[1]), layout, options)?;
        Ok(PairNumbers::from_difference(&found, n_bytes).into_fact())
    })?;
    Ok(PairNumbers::from_fact(fact))
}

/// A result that has no numbers yet.
fn unmeasured(target: &ExecutionSlot, golden: &ExecutionSlot) -> SlotResult {
    let mut result = SlotResult {
        slot: target.key(),
        target: target.summary().clone(),
        golden: golden.summary().clone(),
        ..SlotResult::default()
    };
    let other = Some(golden.key()).filter(|key| *key != target.key());
    result.change_rare(|rare| rare.golden_slot = other);
    result
}

fn slot(
    sides: MatchedDumps<'_>,
    pair: SlotPair,
    found: Result<Option<PairNumbers>, MeasureFault>,
    yardsticks: Option<&ReferenceSlots<'_>>,
    options: difference::DifferenceOptions,
) -> Outcome {
    let target = sides.target.slot(pair.target);
    let golden = sides.golden.slot(pair.golden);
    let mut result = SlotResult {
        is_unseen: sides.target.is_unseen(pair.target) || sides.golden.is_unseen(pair.golden),
        ..unmeasured(target, golden)
    };
    result.change_rare(|rare| rare.layout = pair.layout.map(|layout| layout.name().into()));
    let found = match found {
        Ok(Some(found)) => found,
        Ok(None) => return without_elements(sides, pair, result, options),
        // Another shape is a failure of the target, and no reason to skip the slot.
        Err(MeasureFault::Shape) => return Ok((of_shapes(sides, pair, result, options), 0)),
        Err(fault) => return Err(Box::new(fault.skip(sides, pair))),
    };
    result.evidence = Evidence::Tensor;
    result.metrics = found.metrics;
    result.histogram = found.histogram[..].into();
    result.change_rare(|rare| {
        rare.ranks = found.ranks.map(|ranks| Box::new((*ranks).clone()));
        let natural = yardsticks.and_then(|all| all.distance(sides.golden, pair, options));
        rare.yardstick = natural.map(Box::new);
    });
    Ok((result, found.n_bytes))
}

/// Compares what dumps have instead of elements.
fn without_elements(
    sides: MatchedDumps<'_>,
    pair: SlotPair,
    result: SlotResult,
    options: difference::DifferenceOptions,
) -> Outcome {
    let target = sides.target.slot(pair.target);
    let golden = sides.golden.slot(pair.golden);
    let all = [
        (Party::Target, pair.target, target),
        (Party::Golden, pair.golden, golden),
    ];
    // A damaged file has no statistics either, which would pass for a dump without any.
    let damaged = all.into_iter().find_map(|(side, place, slot)| {
        let message = slot.problem.clone()?;
        let reason = (SkipReason::Damaged, message);
        Some(skip(sides, side.into(), place, slot, reason))
    });
    if let Some(skip) = damaged {
        return Err(Box::new(skip));
    }
    let in_parts = all.into_iter().find_map(|(party, _, slot)| {
        let reason = slot.parts_problem()?.to_owned();
        Some(MeasureFault::InParts(party, reason).skip(sides, pair))
    });
    if let Some(skip) = in_parts {
        return Err(Box::new(skip));
    }
    if target.has_elements && golden.has_elements && are_text(target, golden) {
        return compare_text(sides, pair, result);
    }
    match statistics_of([sides.target, sides.golden], [target, golden], pair.layout) {
        statistics::StatisticsOutcome::Measured(found) => Ok((
            SlotResult {
                evidence: found.evidence,
                metrics: found.metrics,
                ..result
            },
            found.n_bytes,
        )),
        statistics::StatisticsOutcome::Shape => Ok((of_shapes(sides, pair, result, options), 0)),
        statistics::StatisticsOutcome::Nothing(message) => {
            let reason = (SkipReason::NoEvidence, message);
            let both = SkipSide::Both;
            Err(Box::new(skip(sides, both, pair.target, target, reason)))
        }
        statistics::StatisticsOutcome::Unreadable(party, error) => {
            Err(Box::new(MeasureFault::Read(party, error).skip(sides, pair)))
        }
    }
}

/// Compares statistics. Those of elements take a pass over them, and are remembered.
fn statistics_of(
    dumps: [&ComparedDump; 2],
    slots: [&ExecutionSlot; 2],
    layout: Option<Layout>,
) -> statistics::StatisticsOutcome {
    let both = [0, 1].map(|i| (dumps[i], slots[i]));
    let found = facts::of_pair(
        FactKind::Statistics,
        both,
        layout,
        || match statistics::compare(slots[0], slots[1], layout) {
            statistics::StatisticsOutcome::Measured(found) => Ok(found.into_fact()),
            other => Err(other),
        },
    );
    match found {
        Ok(fact) => statistics::StatisticsOutcome::Measured(fact.into()),
        Err(other) => other,
    }
}

/// The result of slots with different shapes. A tensor of the program may be written to through a
/// view of it.
fn of_shapes(
    sides: MatchedDumps<'_>,
    pair: SlotPair,
    result: SlotResult,
    options: difference::DifferenceOptions,
) -> SlotResult {
    let written = sides.target.tensor_written(pair.target);
    let is_one = written.is_some() && written == sides.golden.tensor_written(pair.golden);
    let in_order = || measure_in_order(sides, pair, options);
    is_one
        .then(in_order)
        .flatten()
        .unwrap_or_else(|| with_other_shape(result))
}

fn with_other_shape(mut result: SlotResult) -> SlotResult {
    result.evidence = Evidence::Shape;
    result.level = VerdictLevel::Fail;
    result.rules.push(RuleHit {
        metric: RuleName::Shape,
        level: VerdictLevel::Fail,
        ..RuleHit::default()
    });
    result
}

/// The reference, with its partner of each slot of the golden side.
struct ReferenceSlots<'a> {
    side: &'a ComparedDump,
    of_golden: HashMap<SlotRef, SlotPair>,
}

impl ReferenceSlots<'_> {
    /// How far the reference is from the golden side.
    fn distance(
        &self,
        golden: &ComparedDump,
        pair: SlotPair,
        options: difference::DifferenceOptions,
    ) -> Option<Metrics> {
        let partner = self.of_golden.get(&pair.golden)?;
        let slots = [self.side.slot(partner.target), golden.slot(pair.golden)];
        // A slot that the reference cannot serve is judged by the plain limits.
        let found = pair_numbers([self.side, golden], slots, partner.layout, options).ok()?;
        Some(found.metrics)
    }
}

fn tensors(
    slots: (&ExecutionSlot, &ExecutionSlot),
    layout: Option<Layout>,
    options: difference::DifferenceOptions,
) -> Result<(TensorDifference, u64), MeasureFault> {
    let is_stored = [slots.0, slots.1].map(|slot| layout_for(slot, layout).is_none());
    // A second pass over all elements, for `kl`, is one over the whole tensors.
    if is_stored == [true; 2]
        && !options.has_kl
        && pieces::is_large(slots.0)
        && let Some(found) = pieces::difference(slots)?
    {
        return Ok(found);
    }
    let [a, b] = load(slots, layout)?;
    let n_bytes = (a.view().bytes.len() + b.view().bytes.len()) as u64;
    let found = masked::difference(a.view(), b.view(), options);
    let found = found.map_err(|error| MeasureFault::Difference(chain(&error)))?;
    Ok((found, n_bytes))
}

/// The elements of two slots, as they are compared.
pub(super) fn load(
    (target, golden): (&ExecutionSlot, &ExecutionSlot),
    layout: Option<Layout>,
) -> Result<[LoadedSlot; 2], MeasureFault> {
    let a = target
        .load(layout_for(target, layout))
        .map_err(|error| MeasureFault::Read(Party::Target, error))?;
    let b = golden
        .load(layout_for(golden, layout))
        .map_err(|error| MeasureFault::Read(Party::Golden, error))?;
    // Checked late: stored shapes differ whenever the layouts do.
    if !statistics::has_same_extents(a.shape().dims(), b.shape().dims()) {
        return Err(MeasureFault::Shape);
    }
    Ok([a, b])
}

/// The layout that a slot has to be brought to, if it is not there already.
fn layout_for(slot: &ExecutionSlot, wanted: Option<Layout>) -> Option<Layout> {
    wanted.filter(|&wanted| slot.layout != Some(wanted))
}

impl OperatorName {
    /// The name of a run.
    pub fn for_execution(run: &OperatorExecution) -> OperatorName {
        OperatorName {
            op_type: run.op_type.clone(),
            op_name: run.op_name.clone(),
            rank: run.place.rank,
            model: run.place.model.clone(),
            step: run.place.step,
            repeat: run.repeat,
        }
    }
}

impl MatchEvidence {
    /// The evidence in results.
    pub fn evidence(self) -> PairingEvidence {
        match self {
            MatchEvidence::Name => PairingEvidence::Name,
            MatchEvidence::Value => PairingEvidence::Value,
            MatchEvidence::Origin => PairingEvidence::Origin,
            MatchEvidence::Structure => PairingEvidence::Structure,
            MatchEvidence::Order => PairingEvidence::Order,
            MatchEvidence::Fusion => PairingEvidence::Fusion,
            MatchEvidence::Mapping => PairingEvidence::Mapping,
            MatchEvidence::Fuzzy(_) => PairingEvidence::Fuzzy,
        }
    }
}

impl Matching {
    /// The pair of each golden slot.
    pub fn partners_of_golden(&self) -> HashMap<SlotRef, SlotPair> {
        let slots = self.pairs.iter().flat_map(|pair| pair.slots.iter());
        slots.map(|pair| (pair.golden, *pair)).collect()
    }
}
