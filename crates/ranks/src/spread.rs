//! Finds the rank that produced a NaN or an infinity first, and how it spread to the others.
//!
//! An execution that produces one from finite numbers is an origin, and so is a collective with
//! only finite contributions. Other non-finite results of a collective come from elsewhere: they
//! are traced through the collectives that received them. `docs/non-finite.md` lists the infinities
//! that are intentional.

use std::collections::HashSet;

use opscope_store::record::SlotSide;

use super::meetings::{Meeting, MeetingCall};
use super::recomputed::{self, ResultFit};
use super::run::RankedRun;
use super::sequence::RankPlace;
use opscope_analysis::survey::{DumpSurvey, SpreadRole, non_finite, survey};

/// Maximum number of origins that are sorted and traced; the first ones are chosen.
const N_FOLLOWED_MAX: usize = 256;
/// Maximum number of executions with unknown outputs that are listed.
const N_UNKNOWN_MAX: usize = 8;

/// NaN and infinities of a run.
#[derive(Debug, Default)]
pub struct NonFiniteSpread {
    /// The origins, causes before their possible consequences.
    pub origins: Vec<NonFiniteOrigin>,
    /// The first origin.
    pub first: FirstOrigin,
    /// Executions with a NaN or an infinity in their outputs.
    pub n_executions: u64,
    /// Executions with infinities that may be intentional, such as masks.
    pub n_maybe_masks: u64,
    /// Executions with unknown outputs.
    pub n_unknown: u64,
    /// The first of them.
    pub unknown: Vec<UnknownOutputs>,
    /// Origins that are not listed.
    pub n_unlisted: u64,
    /// Tensors whose elements could not be read.
    pub problems: Vec<String>,
}

/// An execution whose outputs may hold a NaN or an infinity that the dump does not show.
#[derive(Debug)]
pub struct UnknownOutputs {
    /// The execution.
    pub run: usize,
    /// Its outputs without readable elements and counts.
    pub slots: Vec<u32>,
}

/// An execution or collective with a NaN or an infinity that has no earlier source.
#[derive(Debug)]
pub struct NonFiniteOrigin {
    /// The execution; for a collective, that of the first rank with the result.
    pub run: usize,
    /// How it arose.
    pub cause: OriginCause,
    /// Number of NaN in its outputs.
    pub n_nan: Option<u64>,
    /// Number of infinities in its outputs.
    pub n_inf: Option<u64>,
    /// Whether both counts are lower bounds.
    pub is_least: bool,
    /// The collective, as an index into the run's meetings.
    pub meeting: Option<usize>,
    /// Of [`OriginCause::FromInfinities`], the last execution before it on the rank whose outputs
    /// have infinities that may be intentional, and whose inputs have none.
    pub infinities_of: Option<usize>,
    /// Later executions of the same operator on the same rank that are origins themselves.
    pub later: Vec<usize>,
    /// The ranks that it reached, in order.
    pub reached: Vec<ReachedRank>,
}

/// How a NaN or an infinity arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginCause {
    /// Computed from finite numbers.
    Computed,
    /// NaN computed from infinities that may be intentional.
    FromInfinities,
    /// Present in an input without an earlier source on the rank.
    Given,
    /// A sum of finite contributions that overflows its dtype.
    Overflow,
    /// A collective's result, although all contributions are finite.
    Collective,
    /// Received from a collective whose participants are unknown or not all dumped.
    Received,
    /// The dump lacks the data to decide.
    Unknown,
}

impl OriginCause {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            OriginCause::Computed => "computed",
            OriginCause::FromInfinities => "from_infinities",
            OriginCause::Given => "given",
            OriginCause::Overflow => "overflow_of_reduction",
            OriginCause::Collective => "collective",
            OriginCause::Received => "received",
            OriginCause::Unknown => "unknown",
        }
    }

    /// Whether the dump proves that it arose there.
    fn is_certain(self) -> bool {
        !matches!(self, OriginCause::Received | OriginCause::Unknown)
    }
}

/// A rank that received a NaN or an infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReachedRank {
    /// The rank.
    pub rank: u32,
    /// The first execution that had it there.
    pub run: usize,
    /// The collective that carried it, as an index into the run's meetings.
    pub meeting: usize,
    /// The first of the source ranks.
    pub from: u32,
}

/// The first origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FirstOrigin {
    /// No origin.
    #[default]
    None,
    /// This origin: all others are known to come after it.
    Known(usize),
    /// These are unordered, and all others come after one of them.
    NotOrdered(Vec<usize>),
}

/// The data for finding origins.
struct OriginSearch<'a> {
    run: &'a RankedRun,
    survey: &'a DumpSurvey,
    /// For each rank, the position of its first execution with a NaN or an infinity.
    first_bad: Vec<usize>,
    origins: Vec<NonFiniteOrigin>,
}

/// Traces NaN and infinities. Uses the dump's statistics; if there are none, elements are read on
/// `n_threads` threads.
pub fn trace(run: &RankedRun, n_threads: usize) -> NonFiniteSpread {
    let survey = survey(&run.dump, n_threads);
    let first_bad = run.ranks.iter().map(|sequence| {
        let mut runs = sequence.runs.iter();
        runs.position(|&one| is_bad(run, &survey, one))
            .unwrap_or(usize::MAX)
    });
    let mut search = OriginSearch {
        run,
        survey: &survey,
        first_bad: first_bad.collect(),
        origins: Vec::new(),
    };
    search.add_executions();
    search.add_meetings();
    let mut origins = search.origins;
    // As in captures: uncertain origins are reported only if there is no certain one.
    if origins.iter().any(|origin| origin.cause.is_certain()) {
        origins.retain(|origin| origin.cause != OriginCause::Unknown);
    }
    origins.sort_by_key(|origin| run.sort_key(origin.run));
    let mut spread = NonFiniteSpread {
        origins: with_later_ones(run, origins),
        ..NonFiniteSpread::default()
    };
    spread.n_unlisted = spread.origins.len().saturating_sub(N_FOLLOWED_MAX) as u64;
    spread.origins.truncate(N_FOLLOWED_MAX);
    for origin in &mut spread.origins {
        origin.reached = follow(run, &survey, origin);
    }
    spread.first = first_of(run, &spread.origins);
    let mut unknown: Vec<usize> = Vec::new();
    for (index, found) in survey.executions.iter().enumerate() {
        let is_non_finite = found.n_nan.unwrap_or(0) + found.n_inf.unwrap_or(0) > 0;
        spread.n_executions += u64::from(is_non_finite);
        spread.n_maybe_masks += u64::from(found.role == Some(SpreadRole::MayBeMask));
        if found.n_nan.is_none() || found.n_inf.is_none() {
            unknown.push(index);
        }
    }
    // The earliest are the most likely to hide the origin.
    unknown.sort_by_key(|index| run.sort_key(*index));
    spread.n_unknown = unknown.len() as u64;
    let first = unknown.into_iter().take(N_UNKNOWN_MAX);
    spread.unknown = first.map(|index| unknown_outputs(run, index)).collect();
    spread.problems = survey.problems;
    spread
}

fn unknown_outputs(run: &RankedRun, index: usize) -> UnknownOutputs {
    let slots = run.dump.runs[index].slots.iter();
    let outputs = slots.filter(|slot| slot.side == SlotSide::Output);
    let unknown = outputs.filter(|slot| non_finite(slot).is_none());
    UnknownOutputs {
        run: index,
        slots: unknown.map(|slot| slot.index).collect(),
    }
}

/// Whether an execution has a NaN or an infinity in its outputs that is no mask. A collective
/// neither selects nor fills, whatever its type's name contains.
fn is_bad(run: &RankedRun, survey: &DumpSurvey, index: usize) -> bool {
    let found = &survey.executions[index];
    found.n_nan.unwrap_or(0) + found.n_inf.unwrap_or(0) > 0
        && (found.role != Some(SpreadRole::MayBeMask) || run.is_collective(index))
}

/// Whether a collective call's input has a NaN or an infinity; `None` if unknown.
fn is_given_bad(run: &RankedRun, call: &MeetingCall) -> Option<bool> {
    let slots = run.dump.runs[call.run].slots.iter();
    let mut inputs = slots.filter(|slot| slot.side == SlotSide::Input).peekable();
    inputs.peek()?;
    let mut is_known = true;
    for slot in inputs {
        match non_finite(slot) {
            Some([0, 0]) => {}
            Some(_) => return Some(true),
            None => is_known = false,
        }
    }
    is_known.then_some(false)
}

impl OriginSearch<'_> {
    /// Adds executions that are not collectives.
    fn add_executions(&mut self) {
        let run = self.run;
        let mut of_infinities = Vec::new();
        for sequence in run.ranks.iter().enumerate() {
            let (nth_rank, sequence) = sequence;
            for (position, &index) in sequence.runs.iter().enumerate() {
                let is_collective = run.meetings.of_run.contains_key(&index);
                if is_collective || !is_bad(run, self.survey, index) {
                    continue;
                }
                // Later ones on the rank may have inherited it from the first.
                let is_first = self.first_bad[nth_rank] == position;
                let is_unmatched = run.meetings.unmatched.contains_key(&index);
                let cause = match self.survey.executions[index].role {
                    Some(SpreadRole::HandsOn | SpreadRole::TurnsInfToNan) if is_unmatched => None,
                    // A rank that already had one may have contributed it.
                    _ if is_unmatched => is_first.then_some(OriginCause::Received),
                    Some(SpreadRole::MakesNan | SpreadRole::MakesInf) => {
                        Some(OriginCause::Computed)
                    }
                    Some(SpreadRole::TurnsInfToNan) => {
                        of_infinities.push((index, RankPlace { nth_rank, position }));
                        None
                    }
                    Some(SpreadRole::HandsOn) if is_first && reads_nan(run, index) => {
                        Some(OriginCause::Given)
                    }
                    Some(SpreadRole::Unknown) if is_first => Some(OriginCause::Unknown),
                    _ => None,
                };
                if let Some(cause) = cause {
                    self.add(index, cause, None);
                }
            }
        }
        // A NaN from an origin's infinities belongs to that origin.
        let made: Vec<Vec<usize>> = (self.origins.iter().take(N_FOLLOWED_MAX))
            .filter_map(|origin| run.places[origin.run])
            .map(|place| run.order.reached_from(&run.meetings, place))
            .collect();
        for (index, place) in of_infinities {
            let mut made = made.iter();
            if !made.any(|reached| reached[place.nth_rank] <= place.position) {
                let before = self.run.ranks[place.nth_rank].runs[..place.position].iter();
                let mut masks = before.filter(|&&one| {
                    self.survey.executions[one].role == Some(SpreadRole::MayBeMask)
                });
                let infinities_of = masks.next_back().copied();
                self.add(index, OriginCause::FromInfinities, None);
                if let Some(origin) = self.origins.last_mut() {
                    origin.infinities_of = infinities_of;
                }
            }
        }
    }

    /// Adds collectives with non-finite results that no rank is known to have contributed.
    fn add_meetings(&mut self) {
        for (nth, meeting) in self.run.meetings.meetings.iter().enumerate() {
            let mut takers = meeting.takers();
            let Some(first) = takers
                .find(|call| is_bad(self.run, self.survey, call.run))
                .copied()
            else {
                continue;
            };
            let given: Vec<Option<bool>> = meeting
                .givers()
                .map(|call| is_given_bad(self.run, call))
                .collect();
            // A rank already had it: the collective only passed it on.
            if given.contains(&Some(true)) {
                continue;
            }
            // Unknown contributions prove nothing.
            let is_all_finite =
                !given.is_empty() && given.iter().all(|&is_bad| is_bad == Some(false));
            let mut givers = meeting.givers();
            let had_before =
                givers.any(|call| self.first_bad[call.place.nth_rank] < call.place.position);
            let cause = match (meeting.missing.is_empty(), is_all_finite) {
                (true, true) => self.cause_of_result(meeting),
                (false, _) if is_all_finite || !had_before => OriginCause::Received,
                // The inputs are not in the dump, but a rank may have contributed it.
                _ if had_before => continue,
                _ => OriginCause::Unknown,
            };
            self.add(first.run, cause, Some(nth));
        }
    }

    /// Whether the sum of the contributions overflows the dtype.
    fn cause_of_result(&self, meeting: &Meeting) -> OriginCause {
        if meeting.kind.reduction().is_none() {
            return OriginCause::Collective;
        }
        // An overflowing sum fits an infinite result; any other does not.
        let fits = recomputed::check(self.run, meeting);
        match fits.iter().flatten().all(|fit| *fit == ResultFit::Fits) {
            true if fits.iter().any(Option::is_some) => OriginCause::Overflow,
            _ => OriginCause::Collective,
        }
    }

    fn add(&mut self, run: usize, cause: OriginCause, meeting: Option<usize>) {
        let found = &self.survey.executions[run];
        self.origins.push(NonFiniteOrigin {
            run,
            cause,
            n_nan: found.n_nan,
            n_inf: found.n_inf,
            is_least: found.is_least,
            meeting,
            infinities_of: None,
            later: Vec::new(),
            reached: Vec::new(),
        });
    }
}

/// Whether an execution has a NaN in its inputs.
fn reads_nan(run: &RankedRun, index: usize) -> bool {
    let slots = run.dump.runs[index].slots.iter();
    let mut inputs = slots.filter(|slot| slot.side == SlotSide::Input);
    inputs.any(|slot| non_finite(slot).is_some_and(|[nan, _]| nan > 0))
}

/// Merges origins with the same operator and rank, in order.
fn with_later_ones(run: &RankedRun, origins: Vec<NonFiniteOrigin>) -> Vec<NonFiniteOrigin> {
    let mut joined: Vec<NonFiniteOrigin> = Vec::new();
    for origin in origins {
        let same = joined.iter_mut().find(|known| {
            let [a, b] = [known.run, origin.run].map(|index| &run.dump.runs[index]);
            a.op_name == b.op_name
                && run.rank_of(known.run) == run.rank_of(origin.run)
                && known.cause == origin.cause
        });
        match same {
            Some(known) => known.later.push(origin.run),
            None => joined.push(origin),
        }
    }
    joined
}

/// Traces an origin's output from rank to rank, through collectives that received a NaN or an
/// infinity from an affected rank and returned one.
fn follow(run: &RankedRun, survey: &DumpSurvey, origin: &NonFiniteOrigin) -> Vec<ReachedRank> {
    let Some(place) = run.places[origin.run] else {
        return Vec::new();
    };
    // Positions are enough: an affected rank stays affected until the end of the run, and only
    // collectives that received one pass it on.
    let mut has_it = vec![usize::MAX; run.ranks.len()];
    has_it[place.nth_rank] = place.position;
    let mut reached = Vec::new();
    let mut givers_of: Vec<Option<Vec<u32>>> = vec![None; run.meetings.meetings.len()];
    for &(nth, at) in &run.order.calls {
        let meeting = &run.meetings.meetings[nth];
        let call = &meeting.calls[at];
        let is_news = meeting.takes(at)
            && has_it[call.place.nth_rank] == usize::MAX
            && is_bad(run, survey, call.run);
        if !is_news {
            continue;
        }
        let is_of_origin = origin.meeting == Some(nth);
        let from = givers_of[nth].get_or_insert_with(|| {
            let givers = meeting.givers();
            let givers = givers.filter(|call| {
                let is_before = has_it[call.place.nth_rank] <= call.place.position;
                is_before && (is_of_origin || is_given_bad(run, call).unwrap_or(true))
            });
            givers.map(|call| call.rank).collect()
        });
        if let Some(&from) = from.first() {
            has_it[call.place.nth_rank] = call.place.position;
            reached.push(ReachedRank {
                rank: call.rank,
                run: call.run,
                meeting: nth,
                from,
            });
        }
    }
    reached.sort_by_key(|rank| run.sort_key(rank.run));
    reached
}

/// The first of the sorted origins.
fn first_of(run: &RankedRun, origins: &[NonFiniteOrigin]) -> FirstOrigin {
    // Uncertain origins may follow from others, so they are not ranked against certain ones.
    let certain = origins.iter().enumerate();
    let certain: Vec<usize> = certain
        .filter(|(_, origin)| origin.cause.is_certain())
        .map(|(nth, _)| nth)
        .collect();
    // If nothing is certain, the uncertain ones are still ranked.
    let candidates = match certain.is_empty() {
        true => (0..origins.len()).collect(),
        false => certain,
    };
    let mut is_behind: HashSet<usize> = HashSet::new();
    for &nth in &candidates {
        let Some(place) = run.places[origins[nth].run] else {
            continue;
        };
        let reached = run.order.reached_from(&run.meetings, place);
        for &other in candidates.iter().filter(|other| **other > nth) {
            let place = run.places[origins[other].run];
            if place.is_some_and(|place| reached[place.nth_rank] <= place.position) {
                is_behind.insert(other);
            }
        }
    }
    let first: Vec<usize> = candidates
        .into_iter()
        .filter(|nth| !is_behind.contains(nth))
        .collect();
    match first[..] {
        [] => FirstOrigin::None,
        [only] => FirstOrigin::Known(only),
        _ => FirstOrigin::NotOrdered(first),
    }
}
