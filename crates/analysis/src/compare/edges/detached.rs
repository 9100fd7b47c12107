//! A value that one side alone detaches: operators of the backward pass are missing there, and none
//! of those that are left is at fault.

use super::Edges;
use crate::compare::attribution::kinds::plain_type;
use crate::compare::result::{OperatorName, PartingOperator, WiringChange};

/// The type of an operator behind which no gradient is computed.
const DETACHES: &str = "detach";

impl Edges<'_> {
    /// Names the target's operator that detaches a value in place of operators of the backward pass
    /// that the target lacks.
    pub(super) fn name_detached(&self, parting: &mut PartingOperator) {
        if !self.lacks_backward(parting) {
            return;
        }
        let mut runs = (self.dumps[0].runs.iter().enumerate())
            .filter(|(_, execution)| execution.place.step == parting.name.step);
        let detached = runs.find(|(run, execution)| {
            let is_alone = !self.operators[0].contains_key(run);
            is_alone
                && self.is_of_phase(0, *run, "forward")
                && plain_type(&execution.op_type) == DETACHES
        });
        if let Some((_, detached)) = detached {
            let name = OperatorName::for_execution(detached);
            let missing = std::mem::replace(&mut parting.name, name);
            parting.others.insert(0, missing);
            parting.change = Some(WiringChange::Inserted);
        }
    }

    /// Whether all that the target lacks belongs to the backward pass, or to updates by it.
    fn lacks_backward(&self, parting: &PartingOperator) -> bool {
        let names = [&parting.name].into_iter().chain(&parting.others);
        let is_behind = |name: &OperatorName| {
            let mut runs = 0..self.dumps[1].runs.len();
            runs.any(|run| {
                !self.is_of_phase(1, run, "forward")
                    && OperatorName::for_execution(&self.dumps[1].runs[run]) == *name
            })
        };
        parting.change == Some(WiringChange::Missing) && { names }.all(is_behind)
    }

    fn is_of_phase(&self, side: usize, run: usize, phase: &str) -> bool {
        self.dumps[side].phase_of(run) == Some(phase)
    }
}
