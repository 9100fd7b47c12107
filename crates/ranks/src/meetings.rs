//! Matches executions of several ranks that form one collective.
//!
//! The k-th collective of a group on one rank matches the k-th of that group on the others, within
//! a step. Sends and receives match by their two endpoints.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use opscope_store::record::SlotSide;
use opscope_store::record::parallel::CollectiveKind;

use super::collective_type::kind_of_type;
use super::groups;
use super::sequence::{Call, RankPlace, RankSequence};
use opscope_analysis::compare::side::{ComparedDump, OperatorExecution};

/// The collectives of a run.
#[derive(Debug, Default)]
pub struct Meetings {
    /// The collectives with known ranks, by step and group.
    pub meetings: Vec<Meeting>,
    /// For each execution in a collective, the meeting and the index of its call.
    pub of_run: HashMap<usize, (usize, usize)>,
    /// Collective executions whose other ranks are unknown, with their kinds.
    pub unmatched: HashMap<usize, CollectiveKind>,
    /// Places where ranks disagree about the next collective.
    pub desyncs: Vec<Desync>,
}

/// One collective, executed by several ranks.
#[derive(Debug)]
pub struct Meeting {
    /// The step.
    pub step: Option<u64>,
    /// Its kind; for a send and its receive, the receive's.
    pub kind: CollectiveKind,
    /// All participating ranks, in group order; for a send and its receive, the sender first.
    pub group: Arc<[u32]>,
    /// The source of the group.
    pub group_source: GroupSource,
    /// Index among the group's collectives in the step, from 0.
    pub nth: usize,
    /// The executions that the dump has, in group order.
    pub calls: Vec<MeetingCall>,
    /// Ranks of the group whose execution is not in the dump.
    pub missing: Vec<u32>,
    /// Number of calls that contribute data.
    pub n_givers: usize,
}

/// An execution that takes part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeetingCall {
    /// The execution.
    pub run: usize,
    /// Its rank.
    pub rank: u32,
    /// Its position in its rank's sequence.
    pub place: RankPlace,
    /// Its index in the group.
    pub nth_in_group: usize,
}

/// The source of a group's ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupSource {
    /// The dump names them.
    Notes,
    /// The results of such collectives are equal on these ranks.
    Contents,
}

impl GroupSource {
    /// `notes` or `contents`.
    pub fn name(self) -> &'static str {
        match self {
            GroupSource::Notes => "notes",
            GroupSource::Contents => "contents",
        }
    }
}

/// Ranks of a group that go on to different collectives.
#[derive(Debug)]
pub struct Desync {
    /// The step.
    pub step: Option<u64>,
    /// The group.
    pub group: Arc<[u32]>,
    /// Index of the first differing collective of the group in the step, from 0.
    pub nth: usize,
    /// The ranks by the collective that they execute there, largest set first.
    pub sides: Vec<DesyncSide>,
}

/// Ranks that execute the same.
#[derive(Debug)]
pub struct DesyncSide {
    /// The ranks, in ascending order.
    pub ranks: Vec<u32>,
    /// The execution on the first of them; `None` if they execute no further collective.
    pub run: Option<usize>,
    /// Its kind.
    pub kind: Option<CollectiveKind>,
    /// Number of collectives of the group that each of them has in the step.
    pub n_calls: usize,
}

impl Meeting {
    /// Whether other calls' results depend on this call's input.
    pub fn gives(&self, call: usize) -> bool {
        match self.kind {
            CollectiveKind::Broadcast(Some(root)) | CollectiveKind::Scatter(Some(root)) => {
                self.calls[call].rank == root
            }
            CollectiveKind::Receive(_) | CollectiveKind::Send(_) => {
                self.calls[call].nth_in_group == 0
            }
            _ => true,
        }
    }

    /// Whether this call's results depend on other calls' inputs.
    pub fn takes(&self, call: usize) -> bool {
        match self.kind {
            CollectiveKind::Reduce(_, Some(root)) | CollectiveKind::Gather(Some(root)) => {
                self.calls[call].rank == root
            }
            CollectiveKind::Receive(_) | CollectiveKind::Send(_) => {
                self.calls[call].nth_in_group == 1
            }
            _ => true,
        }
    }

    /// The calls that contribute data.
    pub fn givers(&self) -> impl Iterator<Item = &MeetingCall> {
        let calls = self.calls.iter().enumerate();
        calls
            .filter(|(at, _)| self.gives(*at))
            .map(|(_, call)| call)
    }

    /// The calls that receive data.
    pub fn takers(&self) -> impl Iterator<Item = &MeetingCall> {
        let calls = self.calls.iter().enumerate();
        calls
            .filter(|(at, _)| self.takes(*at))
            .map(|(_, call)| call)
    }
}

/// The key of calls that match by order: step and ranks in ascending order.
type GroupKey = (Option<u64>, Vec<u32>);

impl Meetings {
    /// Matches the collectives of a dump.
    pub fn find(dump: &ComparedDump, ranks: &[RankSequence]) -> Meetings {
        let mut found = Meetings::default();
        let mut in_groups: BTreeMap<GroupKey, Vec<Call>> = BTreeMap::new();
        let mut pairs: BTreeMap<(Option<u64>, u32, u32), [Vec<Call>; 2]> = BTreeMap::new();
        let mut without_group = Vec::new();
        for call in calls(dump, ranks) {
            if let Some((from, to)) = ends(&call) {
                let is_receive = matches!(call.kind, CollectiveKind::Receive(_));
                let pair = pairs.entry((call.step, from, to)).or_default();
                pair[usize::from(is_receive)].push(call);
            } else if let Some(group) = call.group.as_ref() {
                let mut key = group.to_vec();
                key.sort_unstable();
                in_groups.entry((call.step, key)).or_default().push(call);
            } else {
                without_group.push(call);
            }
        }
        for ((step, _), calls) in in_groups {
            found.match_group(dump, ranks, step, calls, GroupSource::Notes);
        }
        let (grouped, unmatched) = groups::by_contents(dump, without_group);
        for (step, calls) in grouped {
            found.match_group(dump, ranks, step, calls, GroupSource::Contents);
        }
        for ((step, from, to), calls) in pairs {
            found.match_pairs(ranks, step, [from, to], calls);
        }
        let unmatched = unmatched.into_iter().map(|call| (call.run, call.kind));
        found.unmatched.extend(unmatched);
        found
    }

    /// Maps each rank in collectives of at most `n_ranks` ranks to the lowest rank that these
    /// connect it with. Sends and receives do not count.
    pub(super) fn connected(&self, n_ranks: u64) -> HashMap<u32, u32> {
        let mut groups: HashSet<&[u32]> = HashSet::new();
        for meeting in &self.meetings {
            let is_pair = matches!(
                meeting.kind,
                CollectiveKind::Receive(_) | CollectiveKind::Send(_)
            );
            if !is_pair && meeting.group.len() as u64 <= n_ranks {
                groups.insert(&meeting.group);
            }
        }
        // There are far fewer groups than meetings, so iterating to a fixed point is cheap.
        let mut lowest: HashMap<u32, u32> = HashMap::new();
        for &rank in groups.iter().copied().flatten() {
            lowest.insert(rank, rank);
        }
        loop {
            let mut has_changed = false;
            for group in &groups {
                let least = group.iter().map(|rank| lowest[rank]).min();
                for rank in group.iter() {
                    has_changed |= lowest.insert(*rank, least.unwrap_or(*rank)) != least;
                }
            }
            if !has_changed {
                return lowest;
            }
        }
    }

    /// Matches the calls of a group in a step, up to the first disagreement between ranks.
    fn match_group(
        &mut self,
        dump: &ComparedDump,
        ranks: &[RankSequence],
        step: Option<u64>,
        calls: Vec<Call>,
        group_source: GroupSource,
    ) {
        let Some(group) = calls.first().and_then(|call| call.group.clone()) else {
            return;
        };
        let mut of_rank: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
        for call in calls {
            of_rank.entry(call.rank).or_default().push(call);
        }
        let ranks = ranks.iter();
        let members = ranks.filter(|sequence| group.contains(&sequence.rank));
        // A rank that executes other things in the step disagrees; a rank without any execution has
        // no dump of the step.
        for sequence in members.filter(|sequence| sequence.steps.contains(&step)) {
            of_rank.entry(sequence.rank).or_default();
        }
        let n_calls = of_rank.values().map(Vec::len).max().unwrap_or(0);
        // A rank that skips a collective continues with another of the same kind, so only names
        // locate the gap.
        let goes_by_name = is_told_by_names(dump, &of_rank);
        for nth in 0..n_calls {
            let at: Vec<(u32, Option<&Call>)> = of_rank
                .iter()
                .map(|(rank, calls)| (*rank, calls.get(nth)))
                .collect();
            if let Some(sides) = disagreement(dump, &at, goes_by_name, |rank| {
                of_rank.get(&rank).map_or(0, Vec::len)
            }) {
                let group = group.clone();
                self.desyncs.push(Desync {
                    step,
                    group,
                    nth,
                    sides,
                });
                let rest = of_rank.values().flat_map(|calls| calls.iter().skip(nth));
                self.unmatched
                    .extend(rest.map(|call| (call.run, call.kind)));
                return;
            }
            let calls = at.into_iter().filter_map(|(_, call)| call.cloned());
            let calls: Vec<Call> = calls.collect();
            self.add(step, group.clone(), group_source, nth, &calls);
        }
    }

    /// Matches the sends from one rank to another in a step with the receives.
    fn match_pairs(
        &mut self,
        ranks: &[RankSequence],
        step: Option<u64>,
        ends: [u32; 2],
        [sent, received]: [Vec<Call>; 2],
    ) {
        let have_dump = ends.map(|rank| {
            let mut ranks = ranks.iter();
            ranks.any(|sequence| sequence.rank == rank && sequence.steps.contains(&step))
        });
        // If a rank has no dump, nothing is known to be missing.
        let (n_sent, n_received) = (sent.len(), received.len());
        let n = match have_dump {
            [true, true] => n_sent.min(n_received),
            _ => n_sent.max(n_received),
        };
        let group: Arc<[u32]> = ends.into();
        let source = GroupSource::Notes;
        for nth in 0..n {
            let calls = sent.get(nth).into_iter().chain(received.get(nth));
            let calls: Vec<Call> = calls.cloned().collect();
            self.add(step, group.clone(), source, nth, &calls);
        }
        if n == n_sent.max(n_received) {
            return;
        }
        // Only the counts are known to differ, not which call lacks its peer.
        let sides = [(ends[0], &sent), (ends[1], &received)].map(|(rank, calls)| DesyncSide {
            ranks: vec![rank],
            run: calls.get(n).map(|call| call.run),
            kind: calls.get(n).map(|call| call.kind),
            n_calls: calls.len(),
        });
        let sides = Vec::from(sides);
        self.desyncs.push(Desync {
            step,
            group,
            nth: n,
            sides,
        });
        let rest = sent.iter().skip(n).chain(received.iter().skip(n));
        self.unmatched
            .extend(rest.map(|call| (call.run, call.kind)));
    }

    fn add(
        &mut self,
        step: Option<u64>,
        group: Arc<[u32]>,
        group_source: GroupSource,
        nth: usize,
        calls: &[Call],
    ) {
        let in_group: HashMap<u32, usize> = (group.iter().enumerate())
            .map(|(nth, &rank)| (rank, nth))
            .collect();
        let Some(kind) = calls.last().map(|call| call.kind) else {
            return;
        };
        let mut calls: Vec<MeetingCall> = calls
            .iter()
            .map(|call| MeetingCall {
                run: call.run,
                rank: call.rank,
                place: call.place,
                nth_in_group: in_group.get(&call.rank).copied().unwrap_or(0),
            })
            .collect();
        // Gathered results are in group order, which may differ from rank order.
        calls.sort_by_key(|call| call.nth_in_group);
        let present: HashSet<u32> = calls.iter().map(|call| call.rank).collect();
        // Their dumps may be elsewhere, or were never written.
        let missing = group.iter().copied().filter(|rank| !present.contains(rank));
        let mut meeting = Meeting {
            step,
            kind,
            missing: missing.collect(),
            group,
            group_source,
            nth,
            calls,
            n_givers: 0,
        };
        meeting.n_givers = meeting.givers().count();
        let number = self.meetings.len();
        for (at, call) in meeting.calls.iter().enumerate() {
            self.of_run.insert(call.run, (number, at));
        }
        self.meetings.push(meeting);
    }
}

/// All collective executions, rank by rank in order.
fn calls(dump: &ComparedDump, ranks: &[RankSequence]) -> Vec<Call> {
    let mut calls = Vec::new();
    for (nth_rank, sequence) in ranks.iter().enumerate() {
        for (position, &index) in sequence.runs.iter().enumerate() {
            let run = &dump.runs[index];
            let noted = run.collective.as_deref();
            // Notes know more than the type: reduction, root and group.
            let kind = noted.map(|noted| noted.kind);
            let Some(kind) = kind.or_else(|| kind_of_type(&run.op_type)) else {
                continue;
            };
            // A group without the rank itself uses another numbering.
            let group = noted.map(|noted| &noted.ranks[..]);
            let group = group.filter(|ranks| ranks.contains(&sequence.rank));
            calls.push(Call {
                run: index,
                rank: sequence.rank,
                place: RankPlace { nth_rank, position },
                step: run.place.step,
                kind,
                group: group.map(Arc::from),
            });
        }
    }
    calls
}

/// The sender and the receiver of a send or receive, if both are known.
fn ends(call: &Call) -> Option<(u32, u32)> {
    let is_receive = match call.kind {
        CollectiveKind::Send(_) => false,
        CollectiveKind::Receive(_) => true,
        _ => return None,
    };
    let other = call.kind.root().or_else(|| match call.group.as_deref()? {
        [a, b] => Some(if *a == call.rank { *b } else { *a }),
        _ => None,
    })?;
    Some(match is_receive {
        true => (other, call.rank),
        false => (call.rank, other),
    })
}

/// Whether names locate the divergence of ranks with different numbers of collectives. A rank that
/// skips a collective continues with another of the same kind. The ranks with the most collectives
/// must agree in all names, and the others must not have additional names.
fn is_told_by_names(dump: &ComparedDump, of_rank: &BTreeMap<u32, Vec<Call>>) -> bool {
    let names = of_rank.values().map(|calls| {
        let runs = calls.iter().map(|call| &dump.runs[call.run]);
        runs.map(|run| run.op_name.as_str()).collect()
    });
    let names: Vec<Vec<&str>> = names.collect();
    let n_calls = names.iter().map(Vec::len).max().unwrap_or(0);
    let (longest, shorter): (Vec<_>, Vec<_>) =
        names.iter().partition(|names| names.len() == n_calls);
    let Some(first) = longest.first() else {
        return false;
    };
    let known: HashSet<&str> = first.iter().copied().collect();
    !shorter.is_empty()
        && longest.iter().all(|names| names == first)
        && shorter
            .into_iter()
            .flatten()
            .all(|name| known.contains(name))
}

/// The ranks by their next collective, if they disagree.
fn disagreement(
    dump: &ComparedDump,
    at: &[(u32, Option<&Call>)],
    goes_by_name: bool,
    n_calls: impl Fn(u32) -> usize,
) -> Option<Vec<DesyncSide>> {
    let mut sides: Vec<(Option<&Call>, Vec<u32>)> = Vec::new();
    for &(rank, call) in at {
        let same = sides.iter_mut().find(|(first, _)| match (first, call) {
            (Some(first), Some(call)) => {
                let names = [first, call].map(|call| &dump.runs[call.run].op_name);
                fits(dump, first, call) && (!goes_by_name || names[0] == names[1])
            }
            (None, None) => true,
            _ => false,
        });
        match same {
            Some((_, ranks)) => ranks.push(rank),
            None => sides.push((call, vec![rank])),
        }
    }
    if sides.len() < 2 {
        return None;
    }
    sides.sort_by_key(|(_, ranks)| std::cmp::Reverse(ranks.len()));
    let sides = sides.into_iter().map(|(call, ranks)| DesyncSide {
        run: call.map(|call| call.run),
        kind: call.map(|call| call.kind),
        n_calls: n_calls(ranks[0]),
        ranks,
    });
    Some(sides.collect())
}

/// Whether two calls may belong to one collective.
fn fits(dump: &ComparedDump, first: &Call, second: &Call) -> bool {
    let (a, b) = (&dump.runs[first.run], &dump.runs[second.run]);
    if first.kind.name() != second.kind.name() {
        return false;
    }
    let reductions = [first.kind.reduction(), second.kind.reduction()];
    let roots = [first.kind.root(), second.kind.root()];
    // Two dumps may know different parts of it: only parts known to both can differ.
    let is_other_reduction = matches!(reductions, [Some(a), Some(b)] if a != b);
    let is_other_root = matches!(roots, [Some(a), Some(b)] if a != b);
    // Ranks that sum tensors of different lengths hang or read out of bounds.
    let is_other_size = match first.kind {
        // Other kinds may have parts of different lengths.
        CollectiveKind::AllReduce(_) => {
            let sizes = [n_elements(a), n_elements(b)];
            matches!(sizes, [Some(a), Some(b)] if a != b)
        }
        _ => false,
    };
    !(is_other_reduction || is_other_root || is_other_size)
}

/// Number of elements of a collective's input, or of its output if no input is shown.
fn n_elements(run: &OperatorExecution) -> Option<u64> {
    let shows_inputs = run.slots.iter().any(|slot| slot.side == SlotSide::Input);
    let side = if shows_inputs {
        SlotSide::Input
    } else {
        SlotSide::Output
    };
    let slots = run.slots.iter().filter(|slot| slot.side == side);
    slots.map(|slot| slot.n_elements()).sum()
}
