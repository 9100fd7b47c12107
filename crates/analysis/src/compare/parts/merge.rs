//! The result of a comparison, from its parts.

use std::path::Path;
use std::sync::Arc;

use opscope_store::atomic_file::Creator;

use super::facts::ElementFacts;
use super::units::{ComparisonUnits, MeasuredUnit, PartState, PartsError, ROLES, UnitPlan};
use crate::compare::result::Comparison;
use crate::compare::run::{self, ComparisonRequest};

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
    let facts = Arc::new(ElementFacts::default());
    let mut gone = Vec::new();
    for (unit, plan) in units.units().iter().zip(units.plans()) {
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

fn told(plan: &UnitPlan, state: &PartState) -> String {
    match state {
        PartState::Damaged(why) => format!("{} (`{}`: {why})", plan.name, plan.part),
        PartState::Done | PartState::Missing => plan.name.clone(),
    }
}
