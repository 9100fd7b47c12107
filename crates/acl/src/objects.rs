//! The objects of a process that do not belong to a device.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::aclnn::executor::OperatorExecutor;
use crate::aclnn::object::AclnnObjects;
use crate::aipp::AippParameters;
use crate::data::{DataBuffer, Dataset, TensorDesc};
use crate::handle::{Handle, HandleTable};
use crate::media::MediaObject;
use crate::model::{ModelConfig, ModelDesc};
use crate::operator::{OperatorAttributes, RunnableOperator};

/// The objects of a process that do not belong to a device.
#[derive(Default)]
pub(crate) struct ObjectTables {
    pub(crate) buffers: HandleTable<DataBuffer>,
    pub(crate) datasets: HandleTable<Dataset>,
    pub(crate) tensor_descs: HandleTable<TensorDesc>,
    /// `None` until the description is filled.
    pub(crate) model_descs: HandleTable<Option<Arc<ModelDesc>>>,
    /// AIPP parameters of the program.
    pub(crate) aipps: HandleTable<AippParameters>,
    pub(crate) configs: HandleTable<ModelConfig>,
    /// Execution options.
    pub(crate) exec_configs: BTreeSet<Handle>,
    pub(crate) op_attributes: HandleTable<OperatorAttributes>,
    pub(crate) op_handles: HandleTable<Arc<RunnableOperator>>,
    pub(crate) media: HandleTable<MediaObject>,
    /// Arguments of two-stage operators.
    pub(crate) aclnn: AclnnObjects,
    /// Their calls between the stages.
    pub(crate) executors: HandleTable<Arc<Mutex<OperatorExecutor>>>,
}
