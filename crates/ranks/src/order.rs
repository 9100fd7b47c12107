//! The order of executions across ranks. It follows each rank's sequence, and each collective's
//! results come after its inputs. Clocks are not used.

use super::meetings::Meetings;
use super::sequence::RankPlace;

/// A partial order of collective calls.
#[derive(Debug, Default)]
pub struct RankOrder {
    /// The calls of all ranks in topological order: the meeting, and the index of the call.
    pub calls: Vec<(usize, usize)>,
    /// For each rank, the positions of its calls with their levels.
    levels: Vec<Vec<(usize, u32)>>,
    /// Number of calls in a cycle. No real run has one, so the dump or its notes led to a wrong
    /// match.
    pub n_unordered: u64,
}

/// The state of ranks while their calls are sorted.
struct Walk<'a> {
    meetings: &'a Meetings,
    /// For each rank, its calls: position, meeting, call.
    calls: Vec<Vec<(usize, usize, usize)>>,
    /// For each rank, the number of finished calls.
    n_done: Vec<usize>,
    /// For each meeting, the number of contributors that have arrived, and their highest level.
    arrived: Vec<(usize, u32)>,
    /// Ranks that can proceed.
    ready: Vec<usize>,
    /// The current level of each rank.
    level: Vec<u32>,
}

impl RankOrder {
    /// Sorts the calls of `n_ranks` ranks.
    pub fn new(meetings: &Meetings, n_ranks: usize) -> RankOrder {
        let mut calls = vec![Vec::new(); n_ranks];
        for (nth, meeting) in meetings.meetings.iter().enumerate() {
            for (at, call) in meeting.calls.iter().enumerate() {
                calls[call.place.nth_rank].push((call.place.position, nth, at));
            }
        }
        // Meetings are sorted by group, not by rank.
        for of_rank in &mut calls {
            of_rank.sort_unstable();
        }
        let mut walk = Walk {
            meetings,
            calls,
            n_done: vec![0; n_ranks],
            arrived: vec![(0, 0); meetings.meetings.len()],
            ready: (0..n_ranks).rev().collect(),
            level: vec![0; n_ranks],
        };
        let mut order = RankOrder {
            levels: vec![Vec::new(); n_ranks],
            ..RankOrder::default()
        };
        for rank in 0..n_ranks {
            walk.arrive(rank);
        }
        loop {
            while let Some(rank) = walk.ready.pop() {
                walk.advance(rank, &mut order, false);
            }
            let mut ranks = 0..n_ranks;
            // A deadlock: force one call, so that the rest can still be sorted.
            let Some(rank) = ranks.find(|&rank| walk.n_done[rank] < walk.calls[rank].len()) else {
                return order;
            };
            order.n_unordered += 1;
            walk.advance(rank, &mut order, true);
        }
    }

    /// Length of the longest chain of collectives that an execution waits for. An execution never
    /// has a higher level than its successors.
    pub fn level(&self, place: RankPlace) -> u32 {
        let levels = &self.levels[place.nth_rank];
        let n = levels.partition_point(|(position, _)| *position <= place.position);
        n.checked_sub(1).map_or(0, |last| levels[last].1)
    }

    /// For each rank, the first position that comes after an execution (itself included);
    /// `usize::MAX` if none is known.
    pub fn reached_from(&self, meetings: &Meetings, from: RankPlace) -> Vec<usize> {
        let mut reached = vec![usize::MAX; self.levels.len()];
        reached[from.nth_rank] = from.position;
        let mut is_met: Vec<Option<bool>> = vec![None; meetings.meetings.len()];
        for &(nth, at) in &self.calls {
            let meeting = &meetings.meetings[nth];
            // A sender receives nothing from its receiver.
            if !meeting.takes(at) {
                continue;
            }
            // All contributors come before the first receiver, so one check is enough.
            let is_met = is_met[nth].get_or_insert_with(|| {
                let mut givers = meeting.givers();
                givers.any(|call| reached[call.place.nth_rank] <= call.place.position)
            });
            let place = meeting.calls[at].place;
            if *is_met && reached[place.nth_rank] > place.position {
                reached[place.nth_rank] = place.position;
            }
        }
        reached
    }

    /// Whether the first place is known to come before the second, or equals it.
    pub fn precedes(&self, meetings: &Meetings, first: RankPlace, second: RankPlace) -> bool {
        if first.nth_rank == second.nth_rank {
            return first.position <= second.position;
        }
        self.reached_from(meetings, first)[second.nth_rank] <= second.position
    }
}

impl Walk<'_> {
    /// Records that a rank has reached its next call, which others may wait for.
    fn arrive(&mut self, rank: usize) {
        let Some(&(_, nth, at)) = self.calls[rank].get(self.n_done[rank]) else {
            return;
        };
        let meeting = &self.meetings.meetings[nth];
        if !meeting.gives(at) {
            return;
        }
        let (n, level) = &mut self.arrived[nth];
        // The waiting ranks proceed when the last contributor arrives.
        *n += 1;
        *level = (*level).max(self.level[rank]);
        if *n == meeting.n_givers {
            self.ready
                .extend(meeting.calls.iter().map(|call| call.place.nth_rank));
        }
    }

    /// Advances a rank until it has to wait, and past one more call if forced.
    fn advance(&mut self, rank: usize, order: &mut RankOrder, is_forced: bool) {
        let mut is_forced = is_forced;
        while let Some(&(position, nth, at)) = self.calls[rank].get(self.n_done[rank]) {
            let meeting = &self.meetings.meetings[nth];
            let (n, level) = self.arrived[nth];
            let waits = meeting.takes(at) && n < meeting.n_givers;
            if waits && !std::mem::take(&mut is_forced) {
                return;
            }
            let own = self.level[rank];
            self.level[rank] = if meeting.takes(at) {
                own.max(level) + 1
            } else {
                own
            };
            order.levels[rank].push((position, self.level[rank]));
            order.calls.push((nth, at));
            self.n_done[rank] += 1;
            self.arrive(rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use opscope_store::record::parallel::Collective;

    use crate::run::RankedRun;
    use opscope_analysis::compare::side::{ComparedDump, OperatorExecution, RunPlace};

    /// Builds a run from the operators of each rank: collectives with the ranks of their group
    /// after `@`, and names of other operators.
    fn run(ranks: &[&[&str]]) -> RankedRun {
        let mut runs = Vec::new();
        for (rank, names) in ranks.iter().enumerate() {
            for name in *names {
                let collective = name.split_once('@').map(|(kind, ranks)| Collective {
                    kind: kind.parse().unwrap(),
                    ranks: Collective::parse_ranks(ranks).unwrap(),
                });
                runs.push(OperatorExecution {
                    place: Arc::new(RunPlace {
                        rank: u32::try_from(rank).ok(),
                        step: Some(0),
                        ..RunPlace::default()
                    }),
                    op_name: (*name).into(),
                    collective: collective.map(Arc::new),
                    ..OperatorExecution::default()
                });
            }
        }
        RankedRun::new(ComparedDump {
            runs,
            ..ComparedDump::default()
        })
    }

    /// Checks the order of executions, by their index over all ranks.
    fn check(ranks: &[&[&str]], before: &[(usize, usize)], unordered: &[(usize, usize)]) {
        let run = run(ranks);
        assert_eq!(run.order.n_unordered, 0);
        for &(a, b) in before {
            assert!(run.precedes(a, b) && !run.precedes(b, a), "{a} {b}");
            assert!(run.sort_key(a) < run.sort_key(b), "{a} {b}");
        }
        for &(a, b) in unordered {
            assert!(!run.precedes(a, b) && !run.precedes(b, a), "{a} {b}");
        }
    }

    #[test]
    fn collectives_order_ranks() {
        let all = "all_reduce(sum)@0,1";
        check(
            &[&["a", all, "b"], &["c", all, "d"]],
            &[(0, 5), (3, 2)],
            &[(0, 3), (2, 5)],
        );
        let root = "broadcast(1)@0,1";
        check(
            &[&["a", root, "b"], &["c", root, "d"]],
            &[(3, 2)],
            &[(0, 5), (0, 3)],
        );
        let to = "reduce(sum,0)@0,1";
        check(&[&["a", to, "b"], &["c", to, "d"]], &[(3, 2)], &[(0, 5)]);
        // Groups of two reach the third rank in sequence.
        check(
            &[
                &["a", "all_gather@0,1"],
                &["all_gather@0,1", "all_to_all@1,2"],
                &["all_to_all@1,2", "b"],
            ],
            &[(0, 5)],
            &[],
        );
    }

    #[test]
    fn sends_wait_for_nobody() {
        // Each rank sends before it receives: as a single event these would deadlock.
        check(
            &[
                &["a", "send(1)@", "recv(1)@", "b"],
                &["c", "send(0)@", "recv(0)@", "d"],
            ],
            &[(0, 7), (4, 3)],
            &[(0, 4), (3, 7)],
        );
        check(
            &[&["a", "send(1)@0,1", "b"], &["c", "recv(0)@0,1", "d"]],
            &[(0, 5)],
            &[(3, 2), (2, 5)],
        );
    }

    #[test]
    fn disagreement_is_told_and_ends_matching() {
        let first = run(&[
            &["all_reduce(sum)@0-2", "all_gather@0-2"],
            &["all_reduce(sum)@0-2", "all_gather@0-2"],
            &["all_reduce(sum)@0-2", "broadcast(0)@0-2"],
        ]);
        assert_eq!(first.meetings.meetings.len(), 1);
        let [desync] = &first.meetings.desyncs[..] else {
            panic!("{:?}", first.meetings.desyncs);
        };
        assert_eq!(
            (desync.nth, desync.sides[1].ranks.as_slice()),
            (1, &[2][..])
        );
        assert_eq!(first.meetings.unmatched.len(), 3);
        // A rank without a dump of the step does not disagree.
        let second = run(&[&["all_reduce(sum)@0-2"], &["all_reduce(sum)@0-2"]]);
        assert!(second.meetings.desyncs.is_empty());
        assert_eq!(second.meetings.meetings[0].missing, [2]);
    }
}
