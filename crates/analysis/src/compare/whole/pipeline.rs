//! Ranks that are stages of a pipeline, and the order in which micro-batches pass through them.
//!
//! A dump lists all operators of a rank before those of the next. One process runs the layers of all
//! stages for a micro-batch and then those for the next one. Messages between stages bring their
//! operators into that order.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use opscope_store::record::parallel::CollectiveKind;

use crate::compare::side::ComparedDump;

/// By rank, how many ranks are before it in a pipeline.
pub(super) type Stages = BTreeMap<u32, usize>;

/// The stages of a pipeline: ranks that send to others before they receive from them come first. In
/// a ring all are alike.
pub(super) fn stages(side: &ComparedDump) -> Stages {
    let mut is_known: HashSet<[u32; 2]> = HashSet::new();
    let mut sends: Vec<[u32; 2]> = Vec::new();
    for run in &side.runs {
        let (Some(rank), Some(collective)) = (run.place.rank, &run.collective) else {
            continue;
        };
        // The first message between two decides; later ones bring gradients back.
        match collective.kind {
            CollectiveKind::Send(Some(to)) if is_known.insert([rank, to]) => sends.push([rank, to]),
            CollectiveKind::Receive(Some(from)) => {
                is_known.insert([rank, from]);
            }
            _ => {}
        }
    }
    let ranks: BTreeSet<u32> = side.runs.iter().filter_map(|run| run.place.rank).collect();
    let mut stages: Stages = ranks.iter().map(|rank| (*rank, 0)).collect();
    for _ in &ranks {
        let mut is_moved = false;
        for [from, to] in &sends {
            let after = stages.get(from).map_or(0, |stage| stage + 1);
            if let Some(stage) = stages.get_mut(to).filter(|stage| **stage < after) {
                *stage = after;
                is_moved = true;
            }
        }
        if !is_moved {
            return stages;
        }
    }
    Stages::new()
}

/// Puts the operators of stages into the order of one process, if there are several stages.
pub(super) fn follow_messages(side: &mut ComparedDump) {
    let stages = stages(side);
    if stages.values().all(|stage| *stage == 0) {
        return;
    }
    let Some(places) = chain_places(side) else {
        return;
    };
    let mut order: Vec<usize> = (0..side.runs.len()).collect();
    // Stable: within a place the operators of a rank stay in their order.
    order.sort_by_key(|&run| {
        let place = &side.runs[run].place;
        (place.step, places[run], place.rank)
    });
    side.reorder(&order);
}

/// Where operators between two messages of a rank are: which micro-batch, as the number of the
/// chain of messages, and how many messages came before in that chain.
type ChainPlace = (usize, usize);

/// The place of each operator; none if messages are missing.
fn chain_places(side: &ComparedDump) -> Option<Vec<ChainPlace>> {
    let mut of_rank: BTreeMap<Option<u32>, VecDeque<usize>> = BTreeMap::new();
    for (run, execution) in side.runs.iter().enumerate() {
        of_rank
            .entry(execution.place.rank)
            .or_default()
            .push_back(run);
    }
    let mut places = vec![(0, 0); side.runs.len()];
    let mut last: BTreeMap<Option<u32>, ChainPlace> = BTreeMap::new();
    let mut messages: HashMap<[u32; 2], VecDeque<ChainPlace>> = HashMap::new();
    let mut n_left = side.runs.len();
    while n_left > 0 {
        let n_before = n_left;
        for (rank, runs) in &mut of_rank {
            let place = last.entry(*rank).or_insert((0, 0));
            while let Some(&run) = runs.front() {
                let kind = side.runs[run].collective.as_ref().map(|one| one.kind);
                let mut next = None;
                match (kind, *rank) {
                    (Some(CollectiveKind::Receive(Some(from))), Some(rank)) => {
                        let sent = messages
                            .get_mut(&[from, rank])
                            .and_then(VecDeque::pop_front);
                        let Some((chain, n)) = sent else {
                            break;
                        };
                        *place = (chain, n + 1);
                    }
                    (Some(CollectiveKind::Send(Some(to))), Some(rank)) => {
                        messages.entry([rank, to]).or_default().push_back(*place);
                        // Until something is received, what follows begins the next micro-batch.
                        next = Some((place.0 + 1, 0));
                    }
                    _ => {}
                }
                places[run] = *place;
                *place = next.unwrap_or(*place);
                runs.pop_front();
                n_left -= 1;
            }
        }
        if n_left == n_before {
            return None;
        }
    }
    Some(places)
}
