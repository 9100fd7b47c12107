//! The groups of collectives in dumps that do not name them, told from what they gave out.
//!
//! Ranks that got the same from the same collective are a group. That is taken for known only where
//! such collectives give groups of one size, and all of them the same groups: what one dump shows
//! by chance would otherwise accuse a rank of having left a group that it was never in.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use opscope_store::record::parallel::CollectiveKind;

use super::content::mark_of_outputs;
use super::meetings::Call;
use crate::compare::side::ComparedDump;

/// Groups of ranks, each in ascending order.
type Partition = BTreeSet<Vec<u32>>;
/// A collective of the program, over all steps: kind, name and its place among those of a step.
type Site = (&'static str, String, usize);
/// Calls that meet by their order, with the step and their group.
type GroupedCalls = Vec<(Option<u64>, Vec<Call>)>;

/// Puts calls of which nothing tells the group into groups; the second are those that stay without.
pub(super) fn by_contents(dump: &ComparedDump, calls: Vec<Call>) -> (GroupedCalls, Vec<Call>) {
    let mut of_step: BTreeMap<Option<u64>, BTreeMap<u32, Vec<Call>>> = BTreeMap::new();
    let mut unmatched = Vec::new();
    for call in calls {
        // Without an end a send could meet any receive.
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
    let known: HashMap<&Site, Partition> = keys
        .iter()
        .filter_map(|site| Some((site, partition_of(dump, &sites[site])?)))
        .collect();
    let mut grouped: BTreeMap<(Option<u64>, Vec<u32>), Vec<Call>> = BTreeMap::new();
    for site in &keys {
        let partition = known.get(site).or_else(|| borrowed(&known, site.0));
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

/// Ranks by the kinds of their collectives in a step.
fn ranks_with_one_sequence(of_rank: BTreeMap<u32, Vec<Call>>) -> Vec<Vec<Vec<Call>>> {
    let mut alike: BTreeMap<Vec<&'static str>, Vec<Vec<Call>>> = BTreeMap::new();
    for calls in of_rank.into_values() {
        let kinds = calls.iter().map(|call| call.kind.name()).collect();
        alike.entry(kinds).or_default().push(calls);
    }
    alike.into_values().collect()
}

/// The groups that a collective has in all steps in which its results tell any.
fn partition_of(dump: &ComparedDump, steps: &[Vec<Call>]) -> Option<Partition> {
    let mut known: Option<Partition> = None;
    for calls in steps {
        let Some(partition) = even_partition(dump, calls) else {
            continue;
        };
        // Groups with equal results by chance, as of zeros, are told apart by other steps.
        known = Some(match known {
            Some(known) => refined(&known, &partition),
            None => partition,
        });
    }
    known.filter(is_even)
}

/// Ranks by equal results, if these are groups of one size with two ranks or more.
fn even_partition(dump: &ComparedDump, calls: &[Call]) -> Option<Partition> {
    let gives_all_the_same = matches!(
        calls.first()?.kind,
        CollectiveKind::AllReduce(_) | CollectiveKind::AllGather | CollectiveKind::Broadcast(_)
    );
    if !gives_all_the_same {
        return None;
    }
    let mut of_mark: HashMap<_, Vec<u32>> = HashMap::new();
    for call in calls {
        let mark = mark_of_outputs(&dump.runs[call.run])?;
        of_mark.entry(mark).or_default().push(call.rank);
    }
    let partition = of_mark.into_values().collect();
    is_even(&partition).then_some(partition)
}

fn is_even(partition: &Partition) -> bool {
    let n = partition.first().map_or(0, Vec::len);
    n > 1 && partition.iter().all(|group| group.len() == n)
}

/// Ranks that are together in both.
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

/// The groups of the other collectives of a kind, if they all have the same.
fn borrowed<'a>(known: &'a HashMap<&Site, Partition>, kind: &str) -> Option<&'a Partition> {
    let mut of_kind = known.iter().filter(|(site, _)| site.0 == kind);
    let (_, first) = of_kind.next()?;
    of_kind.all(|(_, other)| other == first).then_some(first)
}
