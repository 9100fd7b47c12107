//! `aclOpExecutor`: a call between its two stages.

use super::call::Place;
use super::composed::ComposedOperator;
use super::object::AclTensor;
use super::parameter::{Argument, TensorArgument};
use super::row::OperatorRow;
use crate::handle::Handle;

/// A call that stage one has prepared.
pub(crate) struct OperatorExecutor {
    pub(crate) row: &'static OperatorRow,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) operator: ComposedOperator,
    /// Whether it may run more than once.
    pub(crate) is_repeatable: bool,
}

impl OperatorExecutor {
    /// The view behind a tensor of the operator.
    pub(crate) fn view(&self, place: Place) -> Option<&AclTensor> {
        self.argument(place).map(|argument| &argument.tensor)
    }

    /// The handle of a tensor of the operator.
    pub(crate) fn handle(&self, place: Place) -> Option<Handle> {
        self.argument(place).map(|argument| argument.handle)
    }

    fn argument(&self, (parameter, place): Place) -> Option<&TensorArgument> {
        match self.arguments.get(parameter)? {
            Argument::Tensor(argument) => Some(argument),
            Argument::Tensors(list) => list.get(place),
            _ => None,
        }
    }

    /// Sets the address of every argument that was made from this tensor.
    pub(crate) fn set_address(&mut self, handle: Handle, address: usize) -> bool {
        // A tensor may be passed for several arguments.
        let mut is_found = false;
        for argument in &mut self.arguments {
            let list: &mut [TensorArgument] = match argument {
                Argument::Tensor(argument) => std::slice::from_mut(argument),
                Argument::Tensors(list) => list,
                _ => continue,
            };
            for argument in list.iter_mut().filter(|argument| argument.handle == handle) {
                argument.tensor.address = address;
                is_found = true;
            }
        }
        is_found
    }
}
