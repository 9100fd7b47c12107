//! The result of a comparison, from its parts.

use std::path::Path;
use std::sync::Arc;

use opscope_store::atomic_file::Creator;
use opscope_store::memory_bytes;

use super::facts::ElementFacts;
use super::units::{ComparisonUnits, MeasuredUnit, PartState, PartsError, ROLES, UnitPlan};
use crate::compare::result::Comparison;
use crate::compare::run::{self, ComparisonRequest};

/// Bytes of memory for each byte of a part: the file, its facts and the table of facts. An empty
/// fact takes 58 bytes in a file and fewer than 300 in memory.
const MEMORY_PER_BYTE: u64 = 6;

/// How units without a part are dealt with.
pub enum MissingParts<'a> {
    /// They are an error.
    Refuse,
    /// Measure missing units, and report each.
    Measure(&'a mut dyn FnMut(&MeasuredUnit)),
}

/// A result with what it was made from.
#[derive(Debug)]
pub struct MergedComparison {
    /// The result: the very one of a comparison in one process.
    pub comparison: Comparison,
    /// Number of parts.
    pub n_parts: usize,
    /// Bytes of elements that were read because no part had their results.
    pub n_bytes_read: u64,
}

/// Puts the parts in `dir` together.
///
/// The tables of both dumps are read for all ranks and steps, and of the elements those alone that
/// the parts say nothing of: of the operators at which the sides part, where the differing elements
/// are looked for; of pairs that only the whole dumps bring together; and those that could not be
/// read when the part was made.
///
/// # Errors
/// [`PartsError`].
pub fn merge(
    request: &ComparisonRequest,
    dir: &Path,
    creator: &Creator,
    mut missing: MissingParts<'_>,
) -> Result<MergedComparison, PartsError> {
    let units = ComparisonUnits::list(request)?;
    let plans = units.plans();
    check_sum(
        plans.iter().map(|plan| plan.n_part_bytes(dir)),
        memory_bytes(),
    )?;
    let facts = Arc::new(ElementFacts::default());
    let mut gone = Vec::new();
    for (unit, plan) in units.units().iter().zip(plans) {
        let found = match (plan.read(dir), &mut missing) {
            (Ok(found), _) => found,
            // All are named, and not only the first.
            (Err(state), MissingParts::Refuse) => {
                gone.push(told(&plan, &state));
                continue;
            }
            (Err(state), MissingParts::Measure(tell)) => {
                let measured = units.measure(unit, dir, creator)?;
                let found = measured.plan.read(dir);
                // The state found here: another process may have written it since the first check.
                tell(&MeasuredUnit {
                    found: state,
                    ..measured
                });
                found.map_err(|state| PartsError::Missing {
                    missing: vec![told(&plan, &state)],
                    n: units.units().len(),
                })?
            }
        };
        facts.extend(found);
    }
    let n_parts = units.units().len();
    if !gone.is_empty() {
        return Err(PartsError::Missing {
            missing: gone,
            n: n_parts,
        });
    }
    // Their tables are about to be read again, and need not be there twice.
    drop(units);
    let comparison = run::run_with(request, None, |side, role| {
        side.share_facts(&facts, ROLES[role]);
    })?;
    Ok(MergedComparison {
        comparison,
        n_parts,
        n_bytes_read: facts.n_bytes_read(),
    })
}

/// Refuses parts whose facts together exceed the memory, before any of them is read.
fn check_sum(sizes: impl Iterator<Item = u64>, n_memory: u64) -> Result<(), PartsError> {
    let n_bytes_max = n_memory / MEMORY_PER_BYTE;
    let (n, n_bytes) = sizes.fold((0, 0_u64), |(n, sum), size| {
        (n + 1, sum.saturating_add(size))
    });
    if n_bytes <= n_bytes_max {
        return Ok(());
    }
    Err(PartsError::TooLarge {
        n,
        n_bytes,
        n_bytes_max,
    })
}

fn told(plan: &UnitPlan, state: &PartState) -> String {
    match state {
        PartState::Damaged(why) => format!("{} (`{}`: {why})", plan.name, plan.part),
        PartState::Done | PartState::Missing => plan.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded_in_sum() {
        let check = |sizes: &[u64]| check_sum(sizes.iter().copied(), 600);
        assert!(check(&[]).is_ok());
        assert!(check(&[40, 60]).is_ok());
        for sizes in [&[60, 41][..], &[1; 101], &[u64::MAX, u64::MAX]] {
            let error = check(sizes).unwrap_err().to_string();
            assert!(error.ends_with("can merge 100"), "{error}");
        }
    }
}
