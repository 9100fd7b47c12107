//! Objects that describe data: buffers, datasets, descriptions of tensors.

mod dataset;
mod exists;
mod tensor_desc;

pub(crate) use self::dataset::{Buffer, Dataset, Entry, Gear};
pub(crate) use self::tensor_desc::TensorDesc;

use crate::Process;
use crate::handle::Table;
use crate::model::{Config, Description};
use crate::operator::{Attributes, Prepared};
use std::sync::Arc;

/// The objects of a process that belong to no device.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) buffers: Table<Buffer>,
    pub(crate) datasets: Table<Dataset>,
    pub(crate) tensor_descs: Table<TensorDesc>,
    /// `None` until the description is filled.
    pub(crate) model_descs: Table<Option<Arc<Description>>>,
    pub(crate) configs: Table<Config>,
    pub(crate) op_attributes: Table<Attributes>,
    pub(crate) op_handles: Table<Arc<Prepared>>,
}

impl Process {
    /// The objects, locked.
    pub(crate) fn objects(&self) -> std::sync::MutexGuard<'_, Objects> {
        crate::process::lock(&self.objects)
    }
}
