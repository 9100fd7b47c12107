//! Executing a plan again and again, each time as if it were the first.
//!
//! tract lets some operators keep a state from one run of a plan to the next: `Scan`, and with it
//! every recurrent operator, goes on with the hidden state that it ended with, and random operators
//! go on with their numbers. That is made for streams. In ONNX an execution knows nothing of the
//! one before it.

use tract_onnx::prelude::*;
use tract_onnx::tract_hir::internal::*;

type State = SimpleState<TypedFact, Box<dyn TypedOp>>;

/// A plan whose executions do not depend on each other.
pub(super) struct RepeatablePlan {
    plan: Arc<TypedSimplePlan>,
    /// Memory for the next execution. `None` if an operator would store something in it, and after
    /// a failed execution, which leaves some of its values there.
    state: Option<State>,
}

impl RepeatablePlan {
    /// Plans a model.
    pub(super) fn new(model: TypedModel) -> TractResult<RepeatablePlan> {
        let plan = SimplePlan::new(model)?;
        let state = Some(plan.spawn()?);
        Ok(RepeatablePlan { plan, state })
    }

    /// Executes the plan.
    pub(super) fn run(&mut self, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        // Taken out for the run: an execution that fails does not put it back.
        let mut state = match self.state.take() {
            Some(state) => state,
            None => self.plan.spawn()?,
        };
        let outputs = state.run(inputs)?;
        // Spawning a new state costs memory each time, so the state is kept if no operator stores
        // anything in it.
        if state.op_states.iter().all(Option::is_none) {
            self.state = Some(state);
        }
        Ok(outputs)
    }
}
