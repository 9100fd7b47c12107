//! Objects that describe data: buffers, datasets, descriptions of tensors.

mod tensor_desc;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use self::tensor_desc::{N_DIMS_MAX, TensorDesc};
use crate::aipp::AippParameters;
use crate::handle::Handle;

/// An address and a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataBuffer {
    pub(crate) address: usize,
    pub(crate) size: usize,
}

/// The inputs or outputs of an execution, in order.
#[derive(Debug, Default)]
pub(crate) struct Dataset {
    pub(crate) entries: Vec<DatasetEntry>,
    /// The shapes set for the next executions.
    pub(crate) gear: Option<GearChoice>,
    /// The AIPP parameters, by the index of their buffer.
    pub(crate) aipp: BTreeMap<usize, Arc<AippParameters>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DatasetEntry {
    pub(crate) buffer: Handle,
    /// A separate description; 0 without one.
    pub(crate) tensor_desc: Handle,
}

/// Sizes for the dimensions that a model leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GearChoice {
    /// The first axis of every input.
    Batch(u64),
    /// The third and fourth axis of the images among the inputs.
    Size { height: u64, width: u64 },
    /// All axes of all inputs, concatenated.
    Dims(Vec<i64>),
}
