//! Weights that one side reads more often than the other: a layer that is left out, or runs twice.

use std::collections::{BTreeMap, BTreeSet};

use opscope_tensor::DType;

use super::listed_parameter::WeightReads;
use super::matching::MatchedDumps;
use super::side::ComparedDump;

/// How often a weight is read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct ReadCount {
    n: usize,
    /// Whether it has several axes. Engines and exporters fold vectors into such weights.
    is_matrix: bool,
}

/// Finds weights that the sides read another number of times, by name, if they read most of their
/// weights equally often. Engines remove weights, so that their graphs say nothing.
pub(super) fn find(sides: MatchedDumps<'_>) -> Vec<WeightReads> {
    let dumps = [sides.target, sides.golden];
    let has_executed = dumps.map(|dump| (0..dump.runs.len()).any(|run| dump.is_executed(run)));
    if has_executed != [false; 2] {
        return Vec::new();
    }
    let reads = dumps.map(count);
    let n_equal = (reads[0].iter()).filter(|(name, count)| reads[1].get(*name) == Some(count));
    let n_equal = n_equal.count();
    let names: BTreeSet<&String> = reads.iter().flat_map(BTreeMap::keys).collect();
    if 2 * n_equal < names.len() {
        return Vec::new();
    }
    let mut groups: BTreeMap<[usize; 2], (Vec<&str>, bool)> = BTreeMap::new();
    for name in names {
        let counts = (reads.each_ref()).map(|reads| reads.get(name).copied().unwrap_or_default());
        let [target, golden] = counts.map(|count| count.n);
        // Exporters store equal weights, such as ones, once, so that their readers come and go.
        let [fewest, most] = [target.min(golden), target.max(golden)];
        if fewest != most && (fewest == 0 || most % fewest == 0) {
            let (names, has_matrix) = groups.entry([target, golden]).or_default();
            names.push(name);
            *has_matrix |= counts.iter().any(|count| count.is_matrix);
        }
    }
    groups.retain(|_, (_, has_matrix)| *has_matrix);
    let groups = groups.into_iter().flat_map(|(counts, (names, _))| {
        let modules = by_module(&names).into_iter();
        modules.map(move |(name, n_weights)| WeightReads {
            name,
            n_weights,
            target: counts[0],
            golden: counts[1],
        })
    });
    groups.collect()
}

/// How many operators read each weight of floats.
fn count(dump: &ComparedDump) -> BTreeMap<String, ReadCount> {
    let mut reads: BTreeMap<String, ReadCount> = BTreeMap::new();
    for run in 0..dump.runs.len() {
        let slots = dump.inputs_of(run).filter_map(|place| {
            let slot = &dump.runs[run].slots[place.slot];
            let name = dump
                .parameter_read(place)
                .filter(|_| slot.dtype.is_some_and(DType::is_float))?;
            Some((name, slot.dims().iter().filter(|dim| **dim > 1).count() > 1))
        });
        for (name, is_matrix) in slots.collect::<BTreeMap<String, bool>>() {
            let count = reads.entry(name).or_default();
            count.n += 1;
            count.is_matrix |= is_matrix;
        }
    }
    reads
}

/// The longest module that has all of the weights; their own names if they have none in common.
fn by_module(names: &[&str]) -> Vec<(String, usize)> {
    let [first, .., last] = names else {
        return names.iter().map(|name| ((*name).to_owned(), 1)).collect();
    };
    // Between the first and the last in order lie all others.
    let same = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b);
    match first[..same.count()].rfind('.') {
        Some(end) => vec![(first[..end].to_owned(), names.len())],
        None => names.iter().map(|name| ((*name).to_owned(), 1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::by_module;

    #[test]
    fn weights_of_one_module_have_its_name() {
        let found = |names: &[&str]| by_module(names);
        assert_eq!(
            found(&["a.1.w", "a.1.x.b", "a.1.x.w"]),
            [("a.1".to_owned(), 3)]
        );
        assert_eq!(found(&["a.10.w", "a.11.w"]), [("a".to_owned(), 2)]);
        assert_eq!(found(&["head.w"]), [("head.w".to_owned(), 1)]);
        assert_eq!(
            found(&["é1", "é2"]),
            [("é1".to_owned(), 1), ("é2".to_owned(), 1)]
        );
        assert_eq!(found(&[]), []);
    }
}
