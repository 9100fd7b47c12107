//! The objects of a process that belong to no device.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::data::{Buffer, Dataset, TensorDesc};
use crate::handle::{Handle, Table};
use crate::model::{Config, Description};
use crate::operator::{Attributes, Prepared};

/// The objects of a process that belong to no device.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) buffers: Table<Buffer>,
    pub(crate) datasets: Table<Dataset>,
    pub(crate) tensor_descs: Table<TensorDesc>,
    /// `None` until the description is filled.
    pub(crate) model_descs: Table<Option<Arc<Description>>>,
    pub(crate) configs: Table<Config>,
    /// Sets of options of executions.
    pub(crate) exec_configs: BTreeSet<Handle>,
    pub(crate) op_attributes: Table<Attributes>,
    pub(crate) op_handles: Table<Arc<Prepared>>,
}
