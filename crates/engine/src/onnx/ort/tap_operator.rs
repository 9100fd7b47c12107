//! The operators that are put into models, as ONNX Runtime calls them.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_capture::{Probe, Tap};
use opscope_store::record::Operator as OperatorRecord;
use opscope_tensor::Tensor;
use ort::operator::{
    ComputeContext, Kernel, KernelContext, Operator, OperatorDomain, OperatorInput, OperatorOutput,
};
use ort::value::TensorElementType;

use super::super::layout::layout_of;
use super::error;
use super::memory::{Desk, Inputs};
use super::rewrite::{DOMAIN, SITE, START, TAP, TICK, Tapped};
use super::site::{Given, SharedValue, Site};
use crate::guard;

/// What the kernels of one session share with whoever runs it.
pub(super) struct Shared {
    sites: Vec<Site>,
    values: Vec<SharedValue>,
    has_devices: bool,
    /// Whether a tap keeps what its operator is about to read, instead of showing anything.
    is_keeping: bool,
    /// Whom the kernels show values to, during a run.
    desk: Desk<Tap>,
    run: Mutex<Run>,
    n_inversions: AtomicUsize,
}

/// What is known of the run that is under way.
#[derive(Default)]
struct Run {
    inputs: Vec<Tensor>,
    /// Values that were taken and will be shown again, by number.
    taken: Vec<Option<Taken>>,
    halt: Option<Halt>,
    kept: Option<Kept>,
    /// The last tap outside of bodies that has run.
    last_site: Option<usize>,
}

/// A value that was taken out of the engine's memory.
struct Taken {
    tensor: Tensor,
    /// The iterations that it was made in.
    counters: Vec<i64>,
}

/// Why a kernel has ended the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// Whoever looks at the values asked for it.
    Stopped,
    /// A panic, in words.
    Panicked(String),
}

/// What an operator was about to read.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// The operator, called after the iterations that it was in.
    pub(super) operator: Arc<OperatorRecord>,
    /// Its inputs, by position.
    pub(super) inputs: Vec<(usize, Tensor)>,
}

impl Shared {
    /// For a model with taps that show; or that keep, if `is_keeping`.
    pub(super) fn new(tapped: Tapped, has_devices: bool, is_keeping: bool) -> Shared {
        Shared {
            sites: tapped.sites,
            values: tapped.values,
            has_devices,
            is_keeping,
            desk: Desk::default(),
            run: Mutex::default(),
            n_inversions: AtomicUsize::new(0),
        }
    }

    /// Runs `work`, the session, with `tap` to show to. Afterwards nothing of the run is left but what is returned:
    /// why a kernel ended it, and what was kept.
    pub(super) fn during<R>(
        &self,
        inputs: &[Tensor],
        tap: Option<&Tap>,
        work: impl FnOnce() -> R,
    ) -> (R, Option<Halt>, Option<Kept>) {
        *self.run() = Run {
            inputs: inputs.to_vec(),
            taken: self.values.iter().map(|_| None).collect(),
            ..Run::default()
        };
        let result = match tap {
            Some(tap) => self.desk.lend(tap, work),
            None => work(),
        };
        let run = std::mem::take(&mut *self.run());
        (result, run.halt, run.kept)
    }

    /// How often a tap ran before one whose operator comes earlier in the file. Then values are kept for longer than
    /// they need to be.
    pub(super) fn n_inversions(&self) -> usize {
        self.n_inversions.load(Ordering::Relaxed)
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        // A kernel that panicked has ended its run.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of one tap.
    fn call(&self, number: usize, context: &ComputeContext) -> Result<(), Halt> {
        let Some(site) = self.sites.get(number) else {
            return Ok(());
        };
        let inputs = Inputs::new(context, self.has_devices);
        if self.is_keeping {
            self.keep(site, &inputs);
            return Ok(());
        }
        let shown = self.desk.look(|tap| {
            if tap.is_stopped() {
                return Err(Halt::Stopped);
            }
            self.show(tap, number, site, &inputs);
            Ok(())
        });
        shown.unwrap_or(Ok(()))
    }

    fn show(&self, tap: &Tap, number: usize, site: &Site, inputs: &Inputs<'_>) {
        let counters = counters(site, inputs);
        let mut run = self.run();
        if counters.is_empty() {
            let last = run.last_site.replace(number);
            let is_inverted = last.is_some_and(|last| last > number);
            self.n_inversions.fetch_add(is_inverted.into(), Ordering::Relaxed);
        }
        let probe = match counters.is_empty() {
            true => tap.open(&site.operator),
            false => tap.open(&in_iteration(&site.operator, &counters)),
        };
        let Some(mut probe) = probe else {
            return run.release(site);
        };
        let op_type = &site.operator.op_type;
        for (position, given) in &site.given {
            let tensor = match given {
                Given::Weight(tensor) => Some(tensor),
                Given::GraphInput(i) => run.inputs.get(*i),
            };
            if let Some(tensor) = tensor {
                let layout = layout_of(op_type, false, *position, tensor.shape().n_axes());
                probe.input(*position, tensor.clone().with_layout(layout));
            }
        }
        for i in 0..site.wires.len() {
            self.show_wire(tap, &mut probe, (site, i), (inputs, &counters), &mut run);
        }
        run.release(site);
        // Handing over may wait.
        drop(run);
        probe.submit();
    }

    /// Shows one value wherever the operator has it. What cannot be taken stays away; the probe counts it.
    fn show_wire(
        &self,
        tap: &Tap,
        probe: &mut Probe,
        (site, i): (&Site, usize),
        (inputs, counters): (&Inputs<'_>, &[i64]),
        run: &mut Run,
    ) {
        let wire = &site.wires[i];
        if !wire.is_shown() {
            return;
        }
        let value = self.values[wire.value];
        let made_in = counters.get(..value.n_counters).unwrap_or_default();
        let op_type = &site.operator.op_type;
        let layout = |is_output, position, n_axes| layout_of(op_type, is_output, position, n_axes);
        let tensor = match run.again(wire.value, made_in) {
            Some(tensor) => tensor,
            None => {
                let Some(seen) = inputs.tensor(site.n_counters + i) else {
                    return;
                };
                let first = (wire.outputs.first()).map(|position| (true, *position));
                let first = first.or_else(|| Some((false, *wire.inputs.first()?)));
                let (is_output, position) = first.unwrap_or_default();
                let layout = layout(is_output, position, seen.n_axes());
                let Ok(tensor) = tap.take(seen.view(layout)) else {
                    return;
                };
                if value.n_shown > 1 {
                    run.remember(wire.value, &tensor, made_in);
                }
                tensor
            }
        };
        let n_axes = tensor.shape().n_axes();
        for &position in &wire.inputs {
            let tensor = tensor.clone().with_layout(layout(false, position, n_axes));
            probe.input(position, tensor);
        }
        for &position in &wire.outputs {
            let tensor = tensor.clone().with_layout(layout(true, position, n_axes));
            probe.output(position, tensor);
        }
    }

    /// Keeps copies of what the operator is about to read, in the place of those of an iteration before.
    fn keep(&self, site: &Site, inputs: &Inputs<'_>) {
        let counters = counters(site, inputs);
        let mut run = self.run();
        run.kept = None;
        let mut kept = Vec::new();
        for (position, given) in &site.given {
            let tensor = match given {
                Given::Weight(tensor) => Some(tensor),
                Given::GraphInput(i) => run.inputs.get(*i),
            };
            kept.extend(tensor.map(|tensor| (*position, tensor.clone())));
        }
        for (i, wire) in site.wires.iter().enumerate() {
            let seen = inputs.tensor(site.n_counters + i);
            let tensor = seen.and_then(|seen| seen.into_tensor());
            if let Some(tensor) = tensor {
                kept.extend(wire.inputs.iter().map(|position| (*position, tensor.clone())));
            }
        }
        for (position, tensor) in &mut kept {
            let op_type = &site.operator.op_type;
            let layout = layout_of(op_type, false, *position, tensor.shape().n_axes());
            *tensor = tensor.clone().with_layout(layout);
        }
        let operator = match counters.is_empty() {
            true => site.operator.clone(),
            false => in_iteration(&site.operator, &counters),
        };
        run.kept = Some(Kept {
            operator,
            inputs: kept,
        });
    }
}

impl Run {
    /// A value that was taken before, if it was made in these iterations.
    fn again(&self, value: usize, counters: &[i64]) -> Option<Tensor> {
        let taken = self.taken.get(value)?.as_ref()?;
        (taken.counters == counters).then(|| taken.tensor.clone())
    }

    fn remember(&mut self, value: usize, tensor: &Tensor, counters: &[i64]) {
        if let Some(place) = self.taken.get_mut(value) {
            *place = Some(Taken {
                tensor: tensor.clone(),
                counters: counters.to_vec(),
            });
        }
    }

    fn release(&mut self, site: &Site) {
        for &value in &site.releases {
            if let Some(place) = self.taken.get_mut(value) {
                *place = None;
            }
        }
    }
}

/// The numbers of the iterations that a tap runs in. One that cannot be read is -1.
fn counters(site: &Site, inputs: &Inputs<'_>) -> Vec<i64> {
    let number = |i| inputs.number(i).unwrap_or(-1);
    (0..site.n_counters).map(number).collect()
}

/// An operator in a loop, with the numbers of the iterations at the end of its name.
fn in_iteration(operator: &OperatorRecord, counters: &[i64]) -> Arc<OperatorRecord> {
    let mut operator = operator.clone();
    for number in counters {
        operator.op_name.push('.');
        operator.op_name.push_str(&number.to_string());
    }
    Arc::new(operator)
}

/// The operators of our domain.
pub(super) fn domain(shared: &Arc<Shared>) -> Result<OperatorDomain, String> {
    error::quietly(|| {
        OperatorDomain::new(DOMAIN)?
            .add(TapOperator(shared.clone()))?
            .add(StartOperator(Arc::default()))?
            .add(TickOperator)
    })
}

/// `Tap`: shows what it reads.
struct TapOperator(Arc<Shared>);

/// One node of it.
struct TapKernel {
    shared: Arc<Shared>,
    site: usize,
}

impl Operator for TapOperator {
    type Kernel<'attr> = TapKernel;

    fn name(&self) -> &str {
        TAP
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [OperatorInput::variadic(1)]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        []
    }

    fn create_kernel<'attr>(&self, attributes: &KernelContext<'attr>) -> ort::Result<TapKernel> {
        let site: Option<i64> = attributes.get(SITE);
        let site = site.and_then(|site| usize::try_from(site).ok());
        Ok(TapKernel {
            shared: self.0.clone(),
            site: site.ok_or_else(|| ort::Error::new("a tap has no number"))?,
        })
    }
}

impl Kernel for TapKernel {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        // A panic would end the process: C++ is on the stack above.
        let halt = match guard::catch(|| self.shared.call(self.site, context)) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(halt)) => halt,
            Err(text) => Halt::Panicked(text),
        };
        self.shared.run().halt = Some(halt);
        Err(ort::Error::new("the tap ends the run"))
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
        give(context, self.0.fetch_add(1, Ordering::Relaxed))
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
        let start = guard::catch(|| Inputs::new(context, false).number(0)).ok().flatten();
        if start != self.start {
            self.start = start;
            self.n_runs = 0;
        }
        let number = self.n_runs;
        self.n_runs += 1;
        give(context, number)
    }
}

/// Gives a number as the only output.
fn give(context: &ComputeContext, number: i64) -> ort::Result<()> {
    let no_axes: [i64; 0] = [];
    let output = context.output(0, no_axes)?;
    let mut output = output.ok_or_else(|| ort::Error::new("the output is not wanted"))?;
    let (_, elements) = output.try_extract_tensor_mut::<i64>()?;
    if let Some(element) = elements.first_mut() {
        *element = number;
    }
    Ok(())
}
