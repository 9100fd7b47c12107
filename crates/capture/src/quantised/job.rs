//! Turning what an operator showed into floats.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::convert::dequantise::{Quantisation, check, dequantise};
use opscope_tensor::{DType, HostAccessError, Layout, Tensor};

use super::{FloatView, SlotPosition};

/// Which execution of an operator has shown something.
pub(crate) struct OperatorTurn {
    pub(crate) model: Arc<ModelId>,
    pub(crate) operator: Arc<Operator>,
    pub(crate) step: u64,
}

/// The tensors, among those that views take, that an operator has shown.
#[derive(Default)]
pub(crate) struct ShownParts(Vec<(SlotPosition, Tensor)>);

impl ShownParts {
    /// Keeps a tensor; the first one of a place counts.
    pub(crate) fn show(&mut self, place: SlotPosition, tensor: &Tensor) {
        if !self.has(place) {
            self.0.push((place, tensor.clone()));
        }
    }

    /// Whether the place was shown.
    pub(crate) fn has(&self, place: SlotPosition) -> bool {
        self.0.iter().any(|(shown, _)| *shown == place)
    }

    fn get(&self, place: SlotPosition) -> Option<Tensor> {
        let shown = self.0.iter().find(|(shown, _)| *shown == place);
        // Of a tensor whose elements are gone nothing can be computed.
        shown
            .map(|(_, tensor)| tensor.clone())
            .filter(Tensor::has_elements)
    }

    /// The record of a view and what is left to do for it; `None` if something was not shown, or
    /// the parts do not fit each other.
    pub(crate) fn view(
        &self,
        view: &FloatView,
        execution: &OperatorTurn,
    ) -> Option<(Record, DequantiseJob)> {
        // The layout is that of an operator that only dequantises.
        let elements = self.get(view.elements)?.with_layout(Layout::Nd);
        let factors: Option<Vec<Tensor>> = view.scale.iter().map(|at| self.get(*at)).collect();
        let scale = product(factors?)?;
        let zero_point = match view.zero_point {
            Some(place) => Some(self.get(place)?),
            None => None,
        };
        let mut work = DequantiseJob {
            elements,
            scale,
            zero_point,
            axis: view.axis,
            block_size: view.block_size,
            n_bytes: 0,
            n_bytes_beside: 0,
        };
        let (dtype, shape) = (work.elements.dtype(), work.elements.shape());
        // Checked before it is queued: values that do not match count as not shown, and take no
        // space.
        check(dtype, shape, &work.quantisation().ok()?).ok()?;
        let n_bytes = shape.n_bytes(DType::F32).ok()? as u64;
        let tensors = [
            Some(&work.elements),
            Some(&work.scale),
            work.zero_point.as_ref(),
        ];
        let (mut inputs, mut n_bytes_absent) = (Vec::new(), 0);
        for (i, tensor) in tensors.into_iter().enumerate() {
            let Some(tensor) = tensor else { continue };
            if view.inputs.contains(&i) {
                inputs.push((i, tensor.clone()));
            } else {
                n_bytes_absent += tensor.n_bytes() as u64;
            }
        }
        (work.n_bytes, work.n_bytes_beside) = (n_bytes, n_bytes.saturating_add(n_bytes_absent));
        let record = Record {
            model: execution.model.clone(),
            operator: view.operator_for(&execution.operator.op_name),
            step: execution.step,
            timestamp_us: 0,
            inputs,
            outputs: Vec::new(),
        };
        Some((record, work))
    }
}

/// The floats of a view, not yet computed.
pub(crate) struct DequantiseJob {
    elements: Tensor,
    scale: Tensor,
    zero_point: Option<Tensor>,
    axis: i64,
    block_size: usize,
    /// Bytes of the result.
    pub(crate) n_bytes: u64,
    /// Bytes that it takes in all and its record does not have yet.
    pub(crate) n_bytes_beside: u64,
}

impl DequantiseJob {
    /// The floats; `None` if memory ran out.
    pub(crate) fn run(&self) -> Option<Tensor> {
        let shape = self.elements.shape().clone();
        let (elements, quantisation) = (self.elements.host_view().ok()?, self.quantisation().ok()?);
        // Scales and zero points come from the model; whatever they are, a writer must live on.
        let bytes = catch_unwind(AssertUnwindSafe(|| dequantise(elements, &quantisation)))
            .ok()?
            .ok()?;
        Tensor::from_vec(DType::F32, shape, bytes).ok()
    }

    fn quantisation(&self) -> Result<Quantisation<'_>, HostAccessError> {
        let zero_point = self.zero_point.as_ref().map(Tensor::host_view);
        Ok(Quantisation {
            scale: self.scale.host_view()?,
            zero_point: zero_point.transpose()?,
            axis: self.axis,
            block_size: self.block_size,
        })
    }
}

/// The product of scales in float32: of two, one has to be a single number.
fn product(mut factors: Vec<Tensor>) -> Option<Tensor> {
    let first = factors.pop()?;
    factors.into_iter().try_fold(first, |product, factor| {
        // Integer products have two scales, of which one is a single number and the other may be
        // one for each channel.
        let (one, many) = match product.shape().n_elements() {
            1 => (product, factor),
            _ => (factor, product),
        };
        if one.dtype() != DType::F32 || many.dtype() != DType::F32 || one.n_bytes() != 4 {
            return None;
        }
        let one = f32::from_le_bytes(one.host_bytes().ok()?.try_into().ok()?);
        let numbers = many.host_bytes().ok()?.as_chunks().0.iter();
        let bytes = numbers
            .flat_map(|number| (f32::from_le_bytes(*number) * one).to_le_bytes())
            .collect();
        Tensor::from_vec(DType::F32, many.shape().clone(), bytes).ok()
    })
}
