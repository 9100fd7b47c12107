//! The operators that round results and weights, as ONNX Runtime calls them.

use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use opscope_tensor::{Channels, DType};
use ort::operator::{
    ComputeContext, Kernel, KernelContext, Operator, OperatorDomain, OperatorInput, OperatorOutput,
};
use ort::value::TensorElementType;

use super::error;
use super::memory::KernelInputs;
use super::rewrite::{CHANNELS_BEGIN, CHANNELS_END, DOMAIN, IS_BIAS, SITE, rounding_operator};
use crate::{ResultRounding, guard};

/// The types that there is such an operator for.
const ELEMENT_TYPES: [(DType, TensorElementType); 4] = [
    (DType::F32, TensorElementType::Float32),
    (DType::F64, TensorElementType::Float64),
    (DType::F16, TensorElementType::Float16),
    (DType::BF16, TensorElementType::Bfloat16),
];

/// The rounding that all kernels of a session follow. It changes between runs.
#[derive(Default)]
pub(super) struct RoundingSwitch(RwLock<ResultRounding>);

impl RoundingSwitch {
    /// Follows another rounding from the next run on.
    pub(super) fn set(&self, rounding: &ResultRounding) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        current.clone_from(rounding);
    }
}

/// The operators of our domain in a model whose results are rounded.
pub(super) fn domain(switch: &Arc<RoundingSwitch>) -> Result<OperatorDomain, String> {
    error::quietly(|| {
        let mut domain = OperatorDomain::new(DOMAIN)?;
        for (dtype, element_type) in ELEMENT_TYPES {
            let name = rounding_operator(dtype)
                .ok_or_else(|| ort::Error::new(format!("{dtype} is not rounded")))?;
            domain = domain.add(RoundOperator {
                name,
                element_type,
                switch: switch.clone(),
            })?;
        }
        Ok(domain)
    })
}

/// Outputs its input, rounded if the switch is on for its task.
struct RoundOperator {
    name: &'static str,
    element_type: TensorElementType,
    switch: Arc<RoundingSwitch>,
}

/// One node of it.
struct RoundKernel {
    task_id: u32,
    /// The axes of a weight that have a scale for each index.
    channel_axes: Range<usize>,
    is_bias: bool,
    switch: Arc<RoundingSwitch>,
}

impl Operator for RoundOperator {
    type Kernel<'attr> = RoundKernel;

    fn name(&self) -> &str {
        self.name
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [OperatorInput::required(self.element_type)]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(self.element_type)]
    }

    fn create_kernel<'attr>(&self, attributes: &KernelContext<'attr>) -> ort::Result<RoundKernel> {
        let task_id: Option<i64> = attributes.get(SITE);
        let task_id = task_id.and_then(|task_id| u32::try_from(task_id).ok());
        // Nodes behind results have no such attributes.
        let [begin, end, is_bias] = [CHANNELS_BEGIN, CHANNELS_END, IS_BIAS]
            .map(|name| usize::try_from(attributes.get::<i64>(name).unwrap_or(0)).unwrap_or(0));
        Ok(RoundKernel {
            channel_axes: begin..end,
            is_bias: is_bias != 0,
            task_id: task_id.ok_or_else(|| ort::Error::new("a node that rounds has no number"))?,
            switch: self.switch.clone(),
        })
    }
}

impl Kernel for RoundKernel {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        // A panic would end the process: C++ is on the stack above.
        let result = guard::catch(|| {
            let rounding = self.switch.0.read().unwrap_or_else(PoisonError::into_inner);
            KernelInputs::new(context, false).copy_through(|dtype, dims, bytes| {
                if !rounding.keeps_weight(self.task_id, self.is_bias) {
                    let channels = Channels::along(dims, self.channel_axes.clone());
                    rounding.round_weight(self.task_id, dtype, channels, bytes);
                }
            })
        });
        match result {
            Ok(Some(())) => Ok(()),
            Ok(None) => Err(ort::Error::new("the result cannot be copied")),
            Err(text) => Err(ort::Error::new(text)),
        }
    }
}
