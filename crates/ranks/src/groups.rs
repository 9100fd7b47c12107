//! Infers the groups of collectives from equal results, for dumps that do not name them.
//!
//! Ranks with the same result of the same collective form a group. An inferred group counts only if
//! such collectives yield groups of one size, and all of them the same groups. Otherwise chance
//! equality in one dump could accuse a rank of leaving a group that it never joined.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use opscope_store::record::parallel::CollectiveKind;

use super::content::mark_of_outputs;
use super::sequence::Call;
use opscope_analysis::compare::side::ComparedDump;

/// Groups of ranks, each in ascending order.
type Partition = BTreeSet<Vec<u32>>;
/// A collective in the program, over all steps: kind, name and index within a step.
type Site = (&'static str, String, usize);
/// Calls that match by order, with their step and group.
type GroupedCalls = Vec<(Option<u64>, Vec<Call>)>;

/// Assigns calls without a known group to groups; the second result holds the calls that remain
/// unassigned.
pub(super) fn by_contents(dump: &ComparedDump, calls: Vec<Call>) -> (GroupedCalls, Vec<Call>) {
    let mut of_step: BTreeMap<Option<u64>, BTreeMap<u32, Vec<Call>>> = BTreeMap::new();
    let mut unmatched = Vec::new();
    for call in calls {
        // With an unknown peer, a send could match any receive.
        if matches!(
            call.kind,
            CollectiveKind::Send(_) | CollectiveKind::Receive(_)
        ) {
            unmatched.push(call);
            continue;
        }
        let of_rank = of_step.entry(call.step).or_default();
        of_rank.entry(call.rank).or_default().push(call);
    }
    let mut sites: HashMap<Site, Vec<Vec<Call>>> = HashMap::new();
    for of_rank in of_step.into_values() {
        // Pipeline stages have separate collectives. Only ranks with the same sequence are
        // compared.
        for alike in ranks_with_one_sequence(of_rank) {
            let n_calls = alike[0].len();
            let mut columns: Vec<Vec<Call>> = vec![Vec::new(); n_calls];
            for calls in alike {
                for (column, call) in columns.iter_mut().zip(calls) {
                    column.push(call);
                }
            }
            for (nth, calls) in columns.into_iter().enumerate() {
                let name = dump.runs[calls[0].run].op_name.to_string();
                let site = (calls[0].kind.name(), name, nth);
                sites.entry(site).or_default().push(calls);
            }
        }
    }
    let mut keys: Vec<Site> = sites.keys().cloned().collect();
    keys.sort();
    let classes: HashMap<&Site, Vec<Classes>> = keys
        .iter()
        .map(|site| {
            (
                site,
                sites[site]
                    .iter()
                    .map(|calls| classes_of(dump, calls))
                    .collect(),
            )
        })
        .collect();
    let known: HashMap<&Site, Partition> = keys
        .iter()
        .filter_map(|site| Some((site, partition_of(&classes[site])?)))
        .collect();
    let mut grouped: BTreeMap<(Option<u64>, Vec<u32>), Vec<Call>> = BTreeMap::new();
    for site in &keys {
        let partition = chosen(&known, site, &classes[site]);
        for calls in sites.remove(site).unwrap_or_default() {
            for call in calls {
                let mut groups = partition.into_iter().flatten();
                match groups.find(|group| group.contains(&call.rank)) {
                    Some(group) => {
                        let key = (call.step, group.clone());
                        let group: Option<Arc<[u32]>> = Some(group.as_slice().into());
                        grouped.entry(key).or_default().push(Call { group, ..call });
                    }
                    None => unmatched.push(call),
                }
            }
        }
    }
    let grouped = grouped.into_iter().map(|((step, _), mut calls)| {
        calls.sort_by_key(|call| call.place);
        (step, calls)
    });
    (grouped.collect(), unmatched)
}

/// Groups ranks by the kinds of their collectives in a step.
fn ranks_with_one_sequence(of_rank: BTreeMap<u32, Vec<Call>>) -> Vec<Vec<Vec<Call>>> {
    let mut alike: BTreeMap<Vec<&'static str>, Vec<Vec<Call>>> = BTreeMap::new();
    for calls in of_rank.into_values() {
        let kinds = calls.iter().map(|call| call.kind.name()).collect();
        alike.entry(kinds).or_default().push(calls);
    }
    alike.into_values().collect()
}

/// Ranks by equal results of a collective in a step.
#[derive(Default)]
struct Classes {
    /// Empty if the kind returns different results per rank, or not all are known.
    ranks: Partition,
    /// Whether a result contains NaN or infinities, which can make different results equal.
    has_non_finite: bool,
}

fn classes_of(dump: &ComparedDump, calls: &[Call]) -> Classes {
    let gives_all_the_same = calls.first().is_some_and(|call| {
        matches!(
            call.kind,
            CollectiveKind::AllReduce(_) | CollectiveKind::AllGather | CollectiveKind::Broadcast(_)
        )
    });
    let mut classes = Classes::default();
    if !gives_all_the_same {
        return classes;
    }
    let mut of_mark: HashMap<_, Vec<u32>> = HashMap::new();
    for call in calls {
        let Some((mark, is_finite)) = mark_of_outputs(&dump.runs[call.run]) else {
            return classes;
        };
        // Tensors full of NaN are equal even without communication.
        classes.has_non_finite |= !is_finite;
        of_mark.entry(mark).or_default().push(call.rank);
    }
    classes.ranks = of_mark.into_values().collect();
    classes
}

/// The groups that a collective forms in all steps whose results show any: of one size, with at
/// least two ranks each.
fn partition_of(steps: &[Classes]) -> Option<Partition> {
    let mut known: Option<Partition> = None;
    let telling = steps
        .iter()
        .filter(|step| !step.has_non_finite && is_even(&step.ranks));
    for step in telling {
        // Other steps separate groups whose results were equal by chance, such as zeros.
        known = Some(match known {
            Some(known) => refined(&known, &step.ranks),
            None => step.ranks.clone(),
        });
    }
    known.filter(is_even)
}

/// The groups of a collective: its own, or those of other collectives of its kind that fit its
/// results in every step in which its own do not. A rank may have left its group in a step, but so
/// it looks when groups are equal by chance until one of them receives something else.
fn chosen<'a>(
    known: &'a HashMap<&Site, Partition>,
    site: &Site,
    steps: &[Classes],
) -> Option<&'a Partition> {
    let fits = |partition: &Partition| {
        let mut classes = steps.iter().filter(|step| !step.ranks.is_empty());
        classes.all(|step| {
            partition.iter().all(|group| {
                let mut classes = step.ranks.iter();
                classes.any(|class| group.iter().all(|rank| class.contains(rank)))
            })
        })
    };
    // A collective's own results take precedence: others of its kind may have other groups.
    let own = known.get(site);
    if own.is_some_and(fits) {
        return own;
    }
    let of_kind = known.iter().filter(|(other, _)| other.0 == site.0);
    // Sorted, so that the choice does not depend on a map's order.
    let others: BTreeSet<&Partition> = of_kind.map(|(_, partition)| partition).collect();
    let is_checked = steps.iter().any(|step| !step.ranks.is_empty());
    let fitting = others.iter().filter(|other| is_checked && fits(other));
    // The coarsest partition carries the most information.
    let fitting = fitting.min_by_key(|partition| partition.len());
    match (fitting, own) {
        (Some(fitting), _) => Some(fitting),
        (None, Some(own)) => Some(own),
        // If its own results show nothing, all others must agree.
        (None, None) if others.len() == 1 => others.first().copied(),
        (None, None) => None,
    }
}

fn is_even(partition: &Partition) -> bool {
    let n = partition.first().map_or(0, Vec::len);
    n > 1 && partition.iter().all(|group| group.len() == n)
}

/// Ranks that share a group in both partitions.
fn refined(first: &Partition, second: &Partition) -> Partition {
    let mut refined = Partition::new();
    for group in first {
        for other in second {
            let both = group.iter().copied().filter(|rank| other.contains(rank));
            let both: Vec<u32> = both.collect();
            if !both.is_empty() {
                refined.insert(both);
            }
        }
    }
    refined
}
