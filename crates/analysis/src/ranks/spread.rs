//! Which rank made a NaN or an infinity first, and how it came to the others.
//!
//! An execution that makes one of finite numbers is an origin, and so is a collective whose
//! contributions are all finite. What comes out of a collective otherwise was made elsewhere: it is
//! followed from rank to rank, through collectives that were given it. `docs/non-finite.md` says
//! which infinities somebody wants.

use std::collections::HashSet;

use opscope_store::record::SlotSide;

use super::meetings::{Meeting, MeetingCall};
use super::recomputed::{self, ResultFit};
use super::run::RankedRun;
use super::sequence::RankPlace;
use crate::survey::{DumpSurvey, SpreadRole, non_finite, survey};

/// Origins that are put in order and followed. Of more, those that come first are.
const N_FOLLOWED_MAX: usize = 256;

/// NaN and infinities of a run.
#[derive(Debug, Default)]
pub struct NonFiniteSpread {
    /// Where they come from, in an order in which none comes before another that it depends on.
    pub origins: Vec<NonFiniteOrigin>,
    /// Which of the origins comes first.
    pub first: FirstOrigin,
    /// Executions that have one among their outputs.
    pub n_executions: u64,
    /// Executions with infinities that somebody may want, as masks are.
    pub n_maybe_masks: u64,
    /// Executions of whose outputs nothing is known.
    pub n_unknown: u64,
    /// Origins that are not among the list.
    pub n_unlisted: u64,
    /// Tensors whose elements could not be read.
    pub problems: Vec<String>,
}

/// An execution, or a collective, that has a NaN or an infinity from nowhere before.
#[derive(Debug)]
pub struct NonFiniteOrigin {
    /// The execution; of a collective that of the first rank that has the result.
    pub run: usize,
    /// How it came to it.
    pub cause: OriginCause,
    /// NaN among its outputs.
    pub n_nan: Option<u64>,
    /// Infinities among its outputs.
    pub n_inf: Option<u64>,
    /// Whether there may be more of both.
    pub is_least: bool,
    /// The collective that it is, as a number of the run's meetings.
    pub meeting: Option<usize>,
    /// Later executions of the same operator on the same rank that are origins themselves.
    pub later: Vec<usize>,
    /// The ranks that it reached, in order.
    pub reached: Vec<ReachedRank>,
}

/// How an execution came to a NaN or an infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginCause {
    /// It computed it from finite numbers.
    Computed,
    /// It computed NaN from infinities that nobody is accused of.
    FromInfinities,
    /// An input has it, and nothing before on the rank gave it.
    Given,
    /// A sum of finite contributions that its dtype cannot hold.
    Overflow,
    /// A collective's result, though what all its ranks gave is finite.
    Collective,
    /// A collective gave it out, and dumps of ranks that took part are missing, or nothing tells
    /// which took part.
    Received,
    /// Not all was dumped that could tell.
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

    /// Whether the dump shows that it was made there.
    fn is_certain(self) -> bool {
        !matches!(self, OriginCause::Received | OriginCause::Unknown)
    }
}

/// A rank to which a NaN or an infinity came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReachedRank {
    /// The rank.
    pub rank: u32,
    /// The execution that had it first there.
    pub run: usize,
    /// The collective that it came through, as a number of the run's meetings.
    pub meeting: usize,
    /// The first rank of those that it came from.
    pub from: u32,
}

/// Which origin comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FirstOrigin {
    /// There are none.
    #[default]
    None,
    /// This one: all others are known to come after it.
    Known(usize),
    /// Nothing orders these, and all others come after one of them.
    NotOrdered(Vec<usize>),
}

/// The facts that origins are found with.
struct OriginSearch<'a> {
    run: &'a RankedRun,
    survey: &'a DumpSurvey,
    /// Of each rank the position of its first execution with a NaN or an infinity.
    first_bad: Vec<usize>,
    origins: Vec<NonFiniteOrigin>,
}

/// Looks for NaN and infinities. Statistics that the dump has are taken; where there are none,
/// elements are read on `n_threads` threads.
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
    // As in captures: what may have been made elsewhere is told where nothing certain is found.
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
    let roles = survey.executions.iter();
    for found in roles {
        let is_non_finite = found.n_nan.unwrap_or(0) + found.n_inf.unwrap_or(0) > 0;
        spread.n_executions += u64::from(is_non_finite);
        spread.n_maybe_masks += u64::from(found.role == Some(SpreadRole::MayBeMask));
        spread.n_unknown += u64::from(found.n_nan.is_none() || found.n_inf.is_none());
    }
    spread.problems = survey.problems;
    spread
}

/// Whether an execution has a NaN or an infinity among its outputs that is no mask. A collective
/// chooses and fills in nothing, whatever words its type has.
fn is_bad(run: &RankedRun, survey: &DumpSurvey, index: usize) -> bool {
    let found = &survey.executions[index];
    found.n_nan.unwrap_or(0) + found.n_inf.unwrap_or(0) > 0
        && (found.role != Some(SpreadRole::MayBeMask) || run.is_collective(index))
}

/// Whether what a call of a collective was given has a NaN or an infinity; none if that is unknown.
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
    /// Adds executions that no collective is.
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
                // Later ones on the rank may have it from the first.
                let is_first = self.first_bad[nth_rank] == position;
                let is_unmatched = run.meetings.unmatched.contains_key(&index);
                let cause = match self.survey.executions[index].role {
                    Some(SpreadRole::HandsOn | SpreadRole::TurnsInfToNan) if is_unmatched => None,
                    // A rank that had one before may have given it.
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
        // A NaN of infinities that an origin made is that origin's.
        let made: Vec<Vec<usize>> = (self.origins.iter().take(N_FOLLOWED_MAX))
            .filter_map(|origin| run.places[origin.run])
            .map(|place| run.order.reached_from(&run.meetings, place))
            .collect();
        for (index, place) in of_infinities {
            let mut made = made.iter();
            if !made.any(|reached| reached[place.nth_rank] <= place.position) {
                self.add(index, OriginCause::FromInfinities, None);
            }
        }
    }

    /// Adds collectives whose results have what no rank is known to have given.
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
            // One of the ranks had it already: the collective only handed it on.
            if given.contains(&Some(true)) {
                continue;
            }
            // Unknown contributions prove nothing either way.
            let is_all_finite = !given.is_empty() && given.iter().all(|one| *one == Some(false));
            let mut givers = meeting.givers();
            let had_before =
                givers.any(|call| self.first_bad[call.place.nth_rank] < call.place.position);
            let cause = match (meeting.missing.is_empty(), is_all_finite) {
                (true, true) => self.cause_of_result(meeting),
                (false, _) if is_all_finite || !had_before => OriginCause::Received,
                // What was given is not in the dump, but a rank had something to give.
                _ if had_before => continue,
                _ => OriginCause::Unknown,
            };
            self.add(first.run, cause, Some(nth));
        }
    }

    /// Whether the sum of what was given is beyond the dtype.
    fn cause_of_result(&self, meeting: &Meeting) -> OriginCause {
        if meeting.kind.reduction().is_none() {
            return OriginCause::Collective;
        }
        // A sum that is beyond the dtype fits an infinite result; one that is not does not.
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
            later: Vec::new(),
            reached: Vec::new(),
        });
    }
}

/// Whether a NaN is among the inputs of an execution.
fn reads_nan(run: &RankedRun, index: usize) -> bool {
    let slots = run.dump.runs[index].slots.iter();
    let mut inputs = slots.filter(|slot| slot.side == SlotSide::Input);
    inputs.any(|slot| non_finite(slot).is_some_and(|[nan, _]| nan > 0))
}

/// Joins origins of one operator and rank, in order.
fn with_later_ones(run: &RankedRun, origins: Vec<NonFiniteOrigin>) -> Vec<NonFiniteOrigin> {
    let mut joined: Vec<NonFiniteOrigin> = Vec::new();
    for origin in origins {
        let same = joined.iter_mut().find(|known| {
            let [a, b] = [known.run, origin.run].map(|one| &run.dump.runs[one]);
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

/// Follows what an origin made from rank to rank, through collectives that were given a NaN or an
/// infinity by a rank that has it, and gave one out.
fn follow(run: &RankedRun, survey: &DumpSurvey, origin: &NonFiniteOrigin) -> Vec<ReachedRank> {
    let Some(place) = run.places[origin.run] else {
        return Vec::new();
    };
    // Positions are enough: a rank that has it once keeps it until the end of the run, and only
    // collectives that were given one hand it on.
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
    reached.sort_by_key(|one| run.sort_key(one.run));
    reached
}

/// Which of the origins, that are in order, comes first.
fn first_of(run: &RankedRun, origins: &[NonFiniteOrigin]) -> FirstOrigin {
    // An origin that may be another's doing is not set against those that are known.
    let certain = origins.iter().enumerate();
    let certain: Vec<usize> = certain
        .filter(|(_, origin)| origin.cause.is_certain())
        .map(|(nth, _)| nth)
        .collect();
    // Where nothing is certain, the uncertain ones are still put in order.
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
