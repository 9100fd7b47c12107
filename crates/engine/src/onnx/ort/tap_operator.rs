//! The operators that are put into models, as ONNX Runtime calls them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ort::operator::{
    ComputeContext, Kernel, KernelContext, Operator, OperatorDomain, OperatorInput, OperatorOutput,
};
use ort::value::TensorElementType;

use super::error;
use super::memory::KernelInputs;
use super::rewrite::{DEVICE_TAP, DOMAIN, SITE, START, TAP, TICK, TURN_SHAPE};
use super::shared::TapState;
use crate::guard;

/// The operators of our domain.
pub(super) fn domain(shared: &Arc<TapState>) -> Result<OperatorDomain, String> {
    error::quietly(|| {
        let mut domain = OperatorDomain::new(DOMAIN)?
            .add(TapOperator::new(shared, TAP))?
            .add(StartOperator(Arc::default()))?
            .add(TickOperator)?;
        if shared.has_device() {
            domain = domain.add(TapOperator::new(shared, DEVICE_TAP))?;
        }
        Ok(domain)
    })
}

/// `Tap` and `DeviceTap`: show what they read.
struct TapOperator {
    shared: Arc<TapState>,
    name: &'static str,
}

impl TapOperator {
    fn new(shared: &Arc<TapState>, name: &'static str) -> TapOperator {
        TapOperator {
            shared: shared.clone(),
            name,
        }
    }

    fn is_on_device(&self) -> bool {
        self.name == DEVICE_TAP
    }
}

/// One node of it.
struct TapKernel {
    shared: Arc<TapState>,
    site: usize,
    is_on_device: bool,
}

impl Operator for TapOperator {
    type Kernel<'attr> = TapKernel;

    fn name(&self) -> &str {
        self.name
    }

    fn execution_provider_type(&self) -> Option<&str> {
        self.is_on_device()
            .then(|| self.shared.provider())
            .flatten()
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        // A tap reads as many values as its operator has slots, of any types.
        [OperatorInput::variadic(1)]
    }

    /// Declares the output that later taps wait for.
    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::optional(TensorElementType::Int64)]
    }

    fn create_kernel<'attr>(&self, attributes: &KernelContext<'attr>) -> ort::Result<TapKernel> {
        let site: Option<i64> = attributes.get(SITE);
        let site = site.and_then(|site| usize::try_from(site).ok());
        Ok(TapKernel {
            shared: self.shared.clone(),
            site: site.ok_or_else(|| ort::Error::new("a tap has no number"))?,
            is_on_device: self.is_on_device(),
        })
    }
}

impl Kernel for TapKernel {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        self.shared.compute(self.site, context)?;
        match (self.shared.ends_turn(self.site), self.is_on_device) {
            (true, false) => give(context, TURN_SHAPE, 0),
            // The number is never read, and its memory may be the device's.
            (true, true) => context.output(0, TURN_SHAPE).map(drop),
            (false, _) => Ok(()),
        }
    }
}

/// `Start`: a number that it has not produced before.
struct StartOperator(Arc<AtomicI64>);

struct StartKernel(Arc<AtomicI64>);

impl Operator for StartOperator {
    type Kernel<'attr> = StartKernel;

    fn name(&self) -> &str {
        START
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        []
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Int64)]
    }

    fn create_kernel<'attr>(&self, _: &KernelContext<'attr>) -> ort::Result<StartKernel> {
        Ok(StartKernel(self.0.clone()))
    }
}

impl Kernel for StartKernel {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        give(context, [], self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// `Tick`: how often it has run since its input changed.
struct TickOperator;

struct TickKernel {
    start: Option<i64>,
    n_runs: i64,
}

impl Operator for TickOperator {
    type Kernel<'attr> = TickKernel;

    fn name(&self) -> &str {
        TICK
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [OperatorInput::required(TensorElementType::Int64)]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Int64)]
    }

    fn create_kernel<'attr>(&self, _: &KernelContext<'attr>) -> ort::Result<TickKernel> {
        Ok(TickKernel {
            start: None,
            n_runs: 0,
        })
    }
}

impl Kernel for TickKernel {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        // A kernel is called from C++, through which no panic may pass.
        let start = guard::catch(|| KernelInputs::new(context, false).number(0))
            .ok()
            .flatten();
        // Another number means that the node around the body runs again.
        if start != self.start {
            self.start = start;
            self.n_runs = 0;
        }
        let number = self.n_runs;
        self.n_runs += 1;
        give(context, [], number)
    }
}

/// Writes a number as the only output, whose shape has one element.
fn give<const N: usize>(context: &ComputeContext, shape: [i64; N], number: i64) -> ort::Result<()> {
    let output = context.output(0, shape)?;
    let mut output = output.ok_or_else(|| ort::Error::new("the output is not wanted"))?;
    let (_, elements) = output.try_extract_tensor_mut::<i64>()?;
    if let Some(element) = elements.first_mut() {
        *element = number;
    }
    Ok(())
}
