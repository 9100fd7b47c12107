//! Values that a tap in a model is to show, and where it finds them.

use std::collections::HashMap;
use std::sync::Arc;

use opscope_capture::{Purpose, Tap};
use opscope_store::record::{Operator, SlotSide};
use opscope_tensor::Tensor;

/// The values that are to be shown, by the task of their operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TapRequests(HashMap<u32, RequestedSlots>);

/// Positions of an operator's values that are to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestedSlots {
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
}

impl TapRequests {
    /// Returns the values that a tap asks for of a run in which no operator fails.
    pub(super) fn by(tap: &Tap) -> TapRequests {
        // Taps cost memory in every run, and no operator fails in most of them. A run that fails is
        // repeated with one tap.
        if let Purpose::Failures(_) = tap.plan().purpose {
            return TapRequests::default();
        }
        let mut wanted = TapRequests::default();
        for (task_id, kept) in &tap.selected().kept {
            let slots = RequestedSlots {
                inputs: kept.positions(SlotSide::Input),
                outputs: kept.positions(SlotSide::Output),
            };
            wanted.0.insert(*task_id, slots);
        }
        wanted
    }

    /// Every value of these operators, as a plan that selects everything asks for them.
    pub(super) fn every(operators: &[Arc<Operator>]) -> TapRequests {
        let mut wanted = TapRequests::default();
        for operator in operators {
            let slots = RequestedSlots {
                inputs: present(&operator.inputs),
                outputs: present(&operator.outputs),
            };
            wanted.0.insert(operator.task_id, slots);
        }
        wanted
    }

    /// Every output of these operators.
    pub(super) fn outputs_of(operators: &[Arc<Operator>]) -> TapRequests {
        let mut wanted = TapRequests::every(operators);
        for slots in wanted.0.values_mut() {
            slots.inputs.clear();
        }
        wanted
    }

    /// Every input of one operator.
    pub(super) fn inputs_of(operator: Option<&Operator>) -> TapRequests {
        let mut wanted = TapRequests::default();
        if let Some(operator) = operator {
            let slots = RequestedSlots {
                inputs: (0..operator.inputs.len()).collect(),
                outputs: Vec::new(),
            };
            wanted.0.insert(operator.task_id, slots);
        }
        wanted
    }

    /// Whether no operator is to be shown.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the slots of an operator to show; `None` if there are none.
    pub(super) fn slots_for(&self, task_id: u32) -> Option<&RequestedSlots> {
        self.0.get(&task_id)
    }
}

/// Positions of the values that are there; an optional one that is absent has an empty name.
fn present(names: &[String]) -> Vec<usize> {
    let names = names.iter().enumerate();
    names
        .filter(|(_, name)| !name.is_empty())
        .map(|(position, _)| position)
        .collect()
}

/// A tap in a model: the node behind one operator. Its inputs are the numbers of the iterations it
/// is in, then a value for each wire.
pub(super) struct TapSite {
    /// The operator.
    pub(super) operator: Arc<Operator>,
    /// How many numbers of iterations come first, the outermost loop's before those inside it.
    pub(super) n_counters: usize,
    /// Numbers of the values that the other inputs of the tap are.
    pub(super) wires: Vec<usize>,
    /// Inputs of the operator that are shown, by position.
    pub(super) inputs: Vec<(usize, TapInput)>,
    /// Outputs of the operator that are shown, by position, and the wires that they come by.
    pub(super) outputs: Vec<(usize, usize)>,
    /// Values without readers after this tap.
    pub(super) releases: Vec<usize>,
    /// Whether later taps wait for this one, which outputs a value for them to read.
    pub(super) ends_turn: bool,
}

/// Where a tap finds an input of its operator.
#[derive(Clone, Debug)]
pub(super) enum TapInput {
    /// The engine has it, and hands it over by this wire.
    Wire(usize),
    /// It is known without the engine.
    Given(StaticValue),
}

/// A value that is known without the engine.
#[derive(Clone, Debug)]
pub(super) enum StaticValue {
    /// The model holds it.
    Weight(Tensor),
    /// The caller provides it: its position among the inputs of the signature.
    GraphInput(usize),
}

/// A value that taps may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SharedValue {
    /// The number of loops around it.
    pub(super) n_counters: usize,
    /// How many taps show it.
    pub(super) n_shown: usize,
}
