//! Operators of the golden side at which both sides part, by what they read.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::ComparedValues;
use super::values::ValueIndex;
use crate::compare::matching::is_same_type;
use crate::compare::side::ComparedDump;

/// Maximum number of readers of a value that are checked.
const N_READERS_MAX: usize = 64;

/// Operators of the golden side at which both sides part, with the values that they read.
pub(super) struct GoldenReaders {
    parts: Vec<(usize, Vec<ValueIndex>)>,
    runs: HashSet<usize>,
    /// Of each value, the readers among them.
    of_value: HashMap<ValueIndex, Vec<usize>>,
}

impl GoldenReaders {
    pub(super) fn new(parts: Vec<(usize, Vec<ValueIndex>)>) -> GoldenReaders {
        let mut of_value: HashMap<ValueIndex, Vec<usize>> = HashMap::new();
        for (at, (_, inputs)) in parts.iter().enumerate() {
            for input in inputs {
                of_value.entry(*input).or_default().push(at);
            }
        }
        let runs = parts.iter().map(|(run, _)| *run).collect();
        GoldenReaders {
            parts,
            runs,
            of_value,
        }
    }

    /// Whether they include this golden operator.
    pub(super) fn contains(&self, run: usize) -> bool {
        self.runs.contains(&run)
    }

    /// The one that is most like an operator of the target: by name, by common inputs, by type.
    pub(super) fn nearest(
        &self,
        values: &ComparedValues,
        dumps: [&ComparedDump; 2],
        (target, inputs): (usize, &[ValueIndex]),
        is_taken: &HashSet<usize>,
    ) -> Option<usize> {
        let mut n_common: BTreeMap<usize, usize> = BTreeMap::new();
        for value in inputs.iter().filter_map(|value| values.equals[0][value.0]) {
            // Operators that read one value are few, and those at which sides part may be all.
            let readers = self.of_value.get(&value).into_iter().flatten();
            for &at in readers.take(N_READERS_MAX) {
                *n_common.entry(at).or_default() += 1;
            }
        }
        let nearest = n_common
            .into_iter()
            .map(|(at, n)| (self.parts[at].0, n))
            .filter(|(golden, _)| !is_taken.contains(golden))
            .map(|(golden, n_common)| {
                let (a, b) = (&dumps[0].runs[target], &dumps[1].runs[golden]);
                let has_one_name = a.op_name == b.op_name && a.repeat == b.repeat;
                let is_one_type = is_same_type(a, b);
                let likeness = (has_one_name && is_one_type, n_common, is_one_type);
                (likeness, golden)
            })
            // Of equals the first, which ran first.
            .rev()
            .max_by_key(|(likeness, _)| *likeness);
        nearest.map(|(_, golden)| golden)
    }
}
