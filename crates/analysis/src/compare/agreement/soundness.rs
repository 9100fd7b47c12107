//! Values that have no equal on the other side and are right nevertheless.

use std::collections::{BTreeSet, HashMap};

use super::search::EqualValues;
use super::values::{DumpValue, SideValues, ValueIndex};
use crate::compare::attribution::kinds::plain_type;
use crate::compare::measure::masked;
use crate::compare::side::ComparedDump;

/// Types that add two values.
const ADDING: [&str; 3] = ["add", "add_", "addv2"];
/// Maximum number of masks of one length, and as many positions, that are compared with one.
const N_MASKS_MAX: usize = 16;

/// The mask of a value.
struct Mask {
    value: ValueIndex,
    /// Where it is zero.
    zeros: Vec<bool>,
    /// Whether zero lets an element pass, and does not hide it, as far as numbers show that.
    is_added: bool,
}

/// Counts masks as equal that hide the same positions, whatever they are made of: booleans of either
/// meaning, zeros and ones, or zeros and a number for `-inf`.
pub(super) fn find_equal_masks(
    dumps: [&ComparedDump; 2],
    sides: &[SideValues; 2],
    found: &mut EqualValues,
) {
    let masks = [0, 1].map(|i| masks_of(dumps[i], &sides[i]));
    for (key, targets) in &masks[0] {
        let goldens = masks[1].get(key).map_or(&[][..], Vec::as_slice);
        for target in targets {
            for golden in &goldens[..goldens.len().min(N_MASKS_MAX)] {
                let both = target.zeros.iter().zip(&golden.zeros);
                let n_same = both.filter(|(a, b)| a == b).count();
                let is_reversed = n_same == 0 && !(target.is_added && golden.is_added);
                if is_reversed || n_same == target.zeros.len() {
                    found.is_close[0][target.value.0] = true;
                    found.is_close[1][golden.value.0] = true;
                }
            }
        }
    }
}

/// The masks of a side, by the number of elements and that of the rarer kind.
fn masks_of(dump: &ComparedDump, side: &SideValues) -> HashMap<[u64; 2], Vec<Mask>> {
    let mut masks: HashMap<[u64; 2], Vec<Mask>> = HashMap::new();
    for (at, value) in side.values.iter().enumerate() {
        let (stats, counts) = (&value.stats, &value.stats.counts);
        let n_others = counts.n_elements - counts.n_zero;
        let is_choice = stats.min == 0.0 && stats.max == 1.0;
        let is_infinite = counts.n_neg_inf > 0 && counts.n_neg_inf == n_others;
        let is_added = is_infinite || stats.max == 0.0 && masked::is_masked(stats.min, stats.max);
        let has_both = counts.n_zero > 0 && n_others > 0;
        // Of a mask that is an input nothing says which elements it hides.
        if value.is_constant
            && value.has_counts
            && has_both
            && (is_choice || is_added)
            && let Some(zeros) = zeros_of(dump, value)
        {
            let key = [counts.n_elements, counts.n_zero.min(n_others)];
            masks.entry(key).or_default().push(Mask {
                value: ValueIndex(at),
                zeros,
                is_added,
            });
        }
    }
    masks
}

/// Where a value is zero; none if it has more than two kinds of elements.
fn zeros_of(dump: &ComparedDump, value: &DumpValue) -> Option<Vec<bool>> {
    let loaded;
    let view = match &value.elements {
        Some(elements) => elements.view(),
        None => {
            loaded = dump.slot(value.first).load(None).ok()?;
            loaded.view()
        }
    };
    let mut other = None;
    let elements = view.bytes.chunks_exact(view.dtype.bytes()?);
    elements
        .map(|element| {
            let (last, rest) = element.split_last()?;
            // A zero may have a sign.
            let is_zero = rest.iter().all(|byte| *byte == 0) && matches!(last, 0 | 0x80);
            (is_zero || *other.get_or_insert(element) == element).then_some(is_zero)
        })
        .collect()
}

/// Marks sums of a part of what the other side adds up as well, in another order.
pub(super) fn find_sums_in_other_order(
    dumps: [&ComparedDump; 2],
    sides: &[SideValues; 2],
    found: &mut EqualValues,
) {
    let chains = [0, 1].map(|i| AddedValues::find(&sides[i], dumps[i]));
    for i in 0..2 {
        let mut marked = Vec::new();
        for (output, parts) in &chains[i].inner {
            let mut roots = parts.iter().map(|value| {
                let equal = found.of_side[i][value.0]?;
                chains[1 - i].roots.get(&equal)
            });
            let first = roots.next().flatten().cloned().unwrap_or_default();
            let common = roots.try_fold(first, |mut common, roots| {
                common.retain(|root| roots.is_some_and(|roots| roots.contains(root)));
                (!common.is_empty()).then_some(common)
            });
            if common.is_some_and(|common| !common.is_empty()) {
                marked.push(output.0);
            }
        }
        for value in marked {
            found.is_close[i][value] = true;
        }
    }
}

/// The sums of a side that consist of several additions.
#[derive(Default)]
struct AddedValues {
    /// Of each value that is added, the last additions of the sums.
    roots: HashMap<ValueIndex, BTreeSet<usize>>,
    /// Of each result that is only added to something else, what it consists of.
    inner: HashMap<ValueIndex, Vec<ValueIndex>>,
}

impl AddedValues {
    fn find(side: &SideValues, dump: &ComparedDump) -> AddedValues {
        let mut runs: Vec<usize> = side
            .outputs
            .keys()
            .copied()
            .filter(|run| ADDING.contains(&plain_type(&dump.runs[*run].op_type).as_str()))
            .collect();
        runs.sort_unstable();
        let mut found = AddedValues::default();
        for &run in &runs {
            let [output] = side.outputs[&run][..] else {
                continue;
            };
            let parts = side.inputs_of(run);
            let parts =
                parts.flat_map(|part| found.inner.get(&part).cloned().unwrap_or(vec![part]));
            let parts: Vec<ValueIndex> = parts.collect();
            if let [reader] = side.values[output.0].readers[..]
                && ADDING.contains(&plain_type(&dump.runs[reader].op_type).as_str())
                && reader > run
            {
                found.inner.insert(output, parts);
            } else {
                for part in parts {
                    found.roots.entry(part).or_default().insert(run);
                }
            }
        }
        found
    }
}
