//! Whether parts that hold the same elements have the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use super::read::{PartFiles, WholeReader};
use super::tensor::WholeTensor;
use crate::compare::side::LoadError;

/// Bytes of a row that are compared at once.
const N_ROW_ELEMENTS: u64 = 1 << 18;

/// Parts that hold the same elements.
pub(super) struct ReplicaClasses {
    /// Where they do not agree, in classes of those that do, the largest first.
    classes: Vec<Vec<Vec<u32>>>,
    /// Whether some are replicas for no other reason than that they agree.
    pub(super) has_unnoted: bool,
}

/// Why replicas say nothing.
pub(super) enum ReplicaFault {
    /// The parts cannot be read.
    Read(LoadError),
    /// Parts differ, and neither note nor rule calls them replicas.
    Unexplained(String),
}

impl ReplicaClasses {
    /// Compares all parts that hold the same elements.
    pub(super) fn find(whole: &WholeTensor) -> Result<ReplicaClasses, ReplicaFault> {
        let mut groups: BTreeSet<Vec<u32>> = BTreeSet::new();
        let mut differing: BTreeSet<(u32, u32)> = BTreeSet::new();
        let mut files = PartFiles::new(whole);
        for (cell, parts) in whole.grid.cells.iter().enumerate() {
            let contribution = |part: &u32| whole.parts[*part as usize].contribution;
            for group in parts.chunk_by(|a, b| contribution(a) == contribution(b)) {
                // One part alone has nothing to agree with.
                if group.len() > 1 {
                    let found = compare_cell(whole, &mut files, cell, group, &mut differing);
                    found.map_err(ReplicaFault::Read)?;
                    groups.insert(group.to_vec());
                }
            }
        }
        for &(a, b) in &differing {
            let [a, b] = [a, b].map(|part| &whole.parts[part as usize]);
            // If a note claims that both are the same at different places, that is a finding, not a
            // reason to stop.
            if a.noted == b.noted {
                return Err(ReplicaFault::Unexplained(format!(
                    "ranks {} and {} hold different values of the same part, and no note says \
                     that they share it some other way",
                    a.rank.unwrap_or(0),
                    b.rank.unwrap_or(0)
                )));
            }
        }
        let has_unnoted = groups.iter().any(|group| {
            let noted: BTreeSet<&[u64]> = group
                .iter()
                .map(|&part| &whole.parts[part as usize].noted[..])
                .collect();
            noted.len() < group.len()
        });
        let classes = groups.iter().map(|group| classes(group, &differing));
        let classes = classes.filter(|classes: &Vec<_>| classes.len() > 1);
        Ok(ReplicaClasses {
            classes: classes.collect(),
            has_unnoted,
        })
    }

    /// Whether a part is one of a set of replicas that do not agree.
    pub(super) fn has_part(&self, part: usize) -> bool {
        let mut members = self.classes.iter().flatten().flatten();
        members.any(|&member| member as usize == part)
    }

    /// Number of choices of representative parts: more than one if groups of ranks are equally
    /// large.
    pub(super) fn n_choices(&self) -> usize {
        let tied = self.classes.iter().map(|classes| {
            let most = classes[0].len();
            classes.iter().filter(|class| class.len() == most).count()
        });
        tied.max().unwrap_or(1)
    }

    /// The parts that are not read by the choice of this number.
    pub(super) fn avoided(&self, whole: &WholeTensor, choice: usize) -> Vec<bool> {
        let mut is_avoided = vec![false; whole.parts.len()];
        for classes in &self.classes {
            let most = classes[0].len();
            let n_tied = classes.iter().filter(|class| class.len() == most).count();
            // Sets of replicas may have fewer classes than others.
            let chosen = choice.min(n_tied - 1);
            for (k, class) in classes.iter().enumerate() {
                for &part in class.iter().filter(|_| k != chosen) {
                    is_avoided[part as usize] = true;
                }
            }
        }
        is_avoided
    }

    /// The parts to avoid so that the disagreeing parts of a choice are read.
    pub(super) fn swapped(&self, whole: &WholeTensor, is_avoided: &[bool]) -> Vec<bool> {
        let mut swapped = vec![false; whole.parts.len()];
        for classes in &self.classes {
            let mut firsts = classes.iter().map(|class| class[0]);
            let first = firsts.find(|&part| is_avoided[part as usize]);
            // Only the first disagreeing class is read; others differ from it as well.
            for &part in classes.iter().flatten() {
                swapped[part as usize] = Some(part) != first;
            }
        }
        swapped
    }
}

/// All elements of a whole that is small enough; of replicas, the majority's.
///
/// # Errors
/// [`LoadError`], also if ranks hold different values of a part and no note explains it: the first
/// of them would be mistaken for the tensor.
pub(crate) fn read_all(whole: &WholeTensor) -> Result<Vec<u8>, LoadError> {
    let replicas = ReplicaClasses::find(whole).map_err(|fault| match fault {
        ReplicaFault::Read(error) => error,
        ReplicaFault::Unexplained(reason) => LoadError::Damaged(reason),
    })?;
    let reader = WholeReader::new(whole, replicas.avoided(whole, 0));
    let mut reader = reader.map_err(LoadError::Damaged)?;
    let mut out = Vec::with_capacity(whole.n_bytes() as usize);
    reader.read(0, whole.n_elements() as usize, &mut out)?;
    Ok(out)
}

/// Notes which parts of a group differ within a box.
fn compare_cell(
    whole: &WholeTensor,
    files: &mut PartFiles<'_>,
    cell: usize,
    group: &[u32],
    differing: &mut BTreeSet<(u32, u32)>,
) -> Result<(), LoadError> {
    let bounds = &whole.grid.bounds;
    let mut rest = cell;
    let mut ranges = vec![(0, 0); bounds.len()];
    for (range, bounds) in ranges.iter_mut().zip(bounds).rev() {
        let n = bounds.len() - 1;
        *range = (bounds[rest % n], bounds[rest % n + 1]);
        rest /= n;
    }
    let mut index: Vec<u64> = ranges.iter().map(|range| range.0).collect();
    let mut rows: Vec<Vec<u8>> = vec![Vec::new(); group.len()];
    loop {
        let n = match (ranges.last(), index.last()) {
            (Some(range), Some(&at)) => (range.1 - at).min(N_ROW_ELEMENTS),
            _ => 1,
        };
        for (row, &part) in rows.iter_mut().zip(group) {
            row.clear();
            let run = files.run(part as usize, &index, n as usize);
            files.append(part as usize, run, row)?;
        }
        // As nearly always.
        if rows.windows(2).any(|pair| pair[0] != pair[1]) {
            for (i, a) in rows.iter().enumerate() {
                let others = rows.iter().enumerate().skip(i + 1);
                let apart = others.filter(|(_, b)| a != *b);
                differing.extend(apart.map(|(k, _)| (group[i], group[k])));
            }
        }
        if !step(&mut index, &ranges, n) {
            return Ok(());
        }
    }
}

/// Goes on by `n` along the last axis, and to the next row at its end.
fn step(index: &mut [u64], ranges: &[(u64, u64)], n: u64) -> bool {
    let mut n = n;
    for (at, &(first, end)) in index.iter_mut().zip(ranges).rev() {
        *at += n;
        if *at < end {
            return true;
        }
        *at = first;
        n = 1;
    }
    false
}

/// Parts in classes of those that agree, the largest first, of equal ones that of the first part.
fn classes(group: &[u32], differing: &BTreeSet<(u32, u32)>) -> Vec<Vec<u32>> {
    let mut classes: Vec<Vec<u32>> = Vec::new();
    for &part in group {
        let agreeing = classes.iter_mut().find(|class| {
            let mut others = class.iter();
            others.all(|&other| !differing.contains(&(other.min(part), other.max(part))))
        });
        match agreeing {
            Some(class) => class.push(part),
            None => classes.push(vec![part]),
        }
    }
    // Stable: of classes as large as each other that of the first rank stays first.
    classes.sort_by_key(|class| std::cmp::Reverse(class.len()));
    classes
}

/// The ranks of parts, each once.
pub(super) fn ranks_of(whole: &WholeTensor, parts: impl Iterator<Item = usize>) -> Vec<u32> {
    let ranks: BTreeMap<u32, ()> = parts
        .filter_map(|part| Some((whole.parts[part].rank?, ())))
        .collect();
    ranks.into_keys().collect()
}
