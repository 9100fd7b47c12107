//! The work of a session's taps when the library calls them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_capture::{Probe, Tap};
use opscope_store::record::Operator;
use opscope_tensor::Tensor;
use ort::operator::ComputeContext;

use super::device::{CudaDevice, DeviceSide, WaitingRecord};
use super::loan::{MemoryLender, lending};
use super::memory::{KernelInputs, KernelTensor, LendingDesk};
use super::rewrite::TappedModel;
use super::site::{SharedValue, StaticValue, TapInput, TapSite};
use crate::onnx::layout::layout_of;
use crate::{ResultSurvey, guard};

/// State that the kernels of one session share with the code that runs it.
pub(super) struct TapState {
    sites: Vec<TapSite>,
    values: Vec<SharedValue>,
    has_devices: bool,
    /// The device that taps are on, if they are on one.
    device: Option<DeviceSide>,
    duty: TapDuty,
    /// The operators that taps were called for, if that is what they note.
    survey: Mutex<ResultSurvey>,
    /// The tap that the kernels show values to, during a run.
    desk: LendingDesk<Tap>,
    run: Mutex<TapRun>,
    n_inversions: AtomicUsize,
}

/// The work of taps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TapDuty {
    /// They show values to the tap of the run.
    Show,
    /// They keep copies of their operator's inputs.
    KeepInputs,
    /// They note that their operator has run, and the types of its outputs.
    NoteTypes,
}

/// State of the run that is under way.
#[derive(Default)]
struct TapRun {
    inputs: Vec<Tensor>,
    /// Values that were taken and will be shown again, by number.
    taken: Vec<Option<ObservedValue>>,
    /// Bytes of their elements, where they are copies.
    n_bytes_taken: usize,
    halt: Option<RunHalt>,
    kept: Option<FailedInputs>,
    /// The last tap outside of bodies that has run.
    last_site: Option<usize>,
}

/// A value that was taken out of the engine's memory.
struct ObservedValue {
    tensor: Tensor,
    /// The iterations that it was made in.
    counters: Vec<i64>,
}

/// Why a kernel has ended the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RunHalt {
    /// The consumer of the values requested it.
    Stopped,
    /// A panic, in words.
    Panicked(String),
}

/// An operator, and the inputs that it was about to read.
#[derive(Clone, Debug, Default)]
pub(super) struct FailedInputs {
    /// The operator, called after the iterations that it was in.
    pub(super) operator: Arc<Operator>,
    /// Its inputs, by position.
    pub(super) inputs: Vec<(usize, Tensor)>,
}

impl TapState {
    /// For a model with taps that have this duty.
    pub(super) fn new(
        tapped: TappedModel,
        has_devices: bool,
        device: Option<&Arc<CudaDevice>>,
        duty: TapDuty,
    ) -> TapState {
        TapState {
            sites: tapped.sites,
            values: tapped.values,
            has_devices,
            device: device.cloned().map(DeviceSide::new),
            duty,
            survey: Mutex::default(),
            desk: LendingDesk::default(),
            run: Mutex::default(),
            n_inversions: AtomicUsize::new(0),
        }
    }

    /// Runs the session by `work` while its kernels show values to `tap`. Returns the result of
    /// `work`, the reason why a kernel ended the run, and the inputs that were kept. Nothing else
    /// of the run stays.
    pub(super) fn during<R>(
        &self,
        inputs: &[Tensor],
        tap: Option<&Tap>,
        work: impl FnOnce() -> R,
    ) -> (R, Option<RunHalt>, Option<FailedInputs>) {
        *self.run() = TapRun {
            inputs: inputs.to_vec(),
            taken: self.values.iter().map(|_| None).collect(),
            ..TapRun::default()
        };
        // The session outlives the run while the tap does not, so that the tap is lent for the time
        // of the call.
        let result = match tap {
            Some(tap) => self.desk.lend(tap, work),
            None => work(),
        };
        if let Some(device) = &self.device {
            device.settle();
        }
        let run = std::mem::take(&mut *self.run());
        (result, run.halt, run.kept)
    }

    /// How often a tap ran before one whose operator comes earlier in the file. Then values are
    /// kept for longer than they need to be.
    pub(super) fn n_inversions(&self) -> usize {
        self.n_inversions.load(Ordering::Relaxed)
    }

    /// Whether taps are on a device.
    pub(super) fn has_device(&self) -> bool {
        self.device.is_some()
    }

    /// The provider that taps on the device belong to; none for the CPU's.
    pub(super) fn provider(&self) -> Option<&'static str> {
        self.device.as_ref()?.provider()
    }

    /// Takes the first thing that went wrong on the device.
    pub(super) fn take_device_fault(&self) -> Option<String> {
        self.device.as_ref()?.take_fault()
    }

    fn run(&self) -> MutexGuard<'_, TapRun> {
        // A kernel that panicked has ended its run.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether taps wait for the one of this number.
    pub(super) fn ends_turn(&self, number: usize) -> bool {
        self.sites.get(number).is_some_and(|site| site.ends_turn)
    }

    /// The work of the tap of this number.
    ///
    /// # Errors
    /// If the run has to end; [`TapState::during`] returns the reason.
    pub(super) fn compute(&self, number: usize, context: &ComputeContext) -> ort::Result<()> {
        // A panic would end the process: C++ is on the stack above.
        let halt = match guard::catch(|| self.call(number, context)) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(halt)) => halt,
            Err(text) => RunHalt::Panicked(text),
        };
        self.run().halt = Some(halt);
        Err(ort::Error::new("the tap ends the run"))
    }

    fn call(&self, number: usize, context: &ComputeContext) -> Result<(), RunHalt> {
        let Some(site) = self.sites.get(number) else {
            return Ok(());
        };
        // Created for each call: the library's context is valid until the kernel returns.
        let inputs = KernelInputs::new(context, self.has_devices);
        match self.duty {
            TapDuty::Show => {}
            TapDuty::KeepInputs => {
                self.keep(site, &inputs);
                return Ok(());
            }
            TapDuty::NoteTypes => {
                self.note(site, &inputs);
                return Ok(());
            }
        }
        let shown = self.desk.look(|tap| {
            if tap.is_stopped() {
                return Err(RunHalt::Stopped);
            }
            self.show(tap, number, site, &inputs);
            Ok(())
        });
        shown.unwrap_or(Ok(()))
    }

    fn show(&self, tap: &Tap, number: usize, site: &TapSite, inputs: &KernelInputs<'_>) {
        let counters = counters(site, inputs);
        if let Some(device) = &self.device {
            device.make_room(site.wires.len());
        }
        // One lock for the whole tap. The library runs one operator at a time, so there is no
        // contention.
        let mut run = self.run();
        // Taps in bodies run many times and have no place in the order of the main graph.
        if counters.is_empty() {
            let last = run.last_site.replace(number);
            let is_inverted = last.is_some_and(|last| last > number);
            self.n_inversions
                .fetch_add(is_inverted.into(), Ordering::Relaxed);
        }
        let probe = if counters.is_empty() {
            tap.open(&site.operator)
        } else {
            tap.open(&in_iteration(&site.operator, &counters))
        };
        let Some(probe) = probe else {
            // Values that this tap would have shown last are let go of all the same.
            return run.release(site);
        };
        lending(|lender| {
            let call = TapCall {
                tap,
                site,
                inputs,
                counters: &counters,
                lender,
            };
            let mut record = WaitingRecord::new(probe);
            self.show_values(&mut record, &call, &mut run);
            run.release(site);
            // Handing over may wait.
            drop(run);
            match &self.device {
                Some(device) => device.submit(record),
                None => record.submit(),
            }
        });
    }

    /// Shows values in the order of their positions. What cannot be taken stays away; the probe
    /// counts it.
    fn show_values(&self, record: &mut WaitingRecord, call: &TapCall<'_, '_>, run: &mut TapRun) {
        let site = call.site;
        let layout = |is_output, position, tensor: &Tensor| {
            let n_axes = tensor.shape().n_axes();
            layout_of(&site.operator.op_type, is_output, position, n_axes)
        };
        let mut taken: Vec<Option<Tensor>> = vec![None; site.wires.len()];
        for (position, source) in &site.inputs {
            let tensor = match source {
                TapInput::Given(given) => run.given(given),
                TapInput::Wire(wire) => {
                    let place = (false, *position);
                    self.take(&record.probe, call, (*wire, place), run, &mut taken)
                }
            };
            if let Some(tensor) = tensor {
                let layout = layout(false, *position, &tensor);
                record.inputs.push((*position, tensor.with_layout(layout)));
            }
        }
        for (position, wire) in &site.outputs {
            let place = (true, *position);
            let tensor = self.take(&record.probe, call, (*wire, place), run, &mut taken);
            if let Some(tensor) = tensor {
                let layout = layout(true, *position, &tensor);
                record.outputs.push((*position, tensor.with_layout(layout)));
            }
        }
    }

    /// Takes a value out of the engine's memory, once for all taps that show it, unless it has to
    /// be lent. `is_output` and `position` say where the operator has the value.
    fn take(
        &self,
        probe: &Probe,
        call: &TapCall<'_, '_>,
        (wire, (is_output, position)): (usize, (bool, usize)),
        run: &mut TapRun,
        taken: &mut [Option<Tensor>],
    ) -> Option<Tensor> {
        if let Some(known) = taken.get(wire)? {
            return Some(known.clone());
        }
        let number = *call.site.wires.get(wire)?;
        let value = self.values.get(number)?;
        let made_in = call.counters.get(..value.n_counters)?;
        // A value made in an iteration of unknown number could be taken for that of another
        // iteration.
        let is_shared = value.n_shown > 1 && !made_in.contains(&UNKNOWN);
        if let Some(tensor) = run.again(number, made_in).filter(|_| is_shared) {
            taken[wire] = Some(tensor.clone());
            return Some(tensor);
        }
        let input = call.site.n_counters + wire;
        if let Some(device) = &self.device
            && let Some(memory) = call.inputs.on_device(input, |kind| device.owns(kind))
        {
            let takes_numbers = call.tap.takes_device_numbers();
            let tensor = device.take(call.inputs.stream()?, &memory, takes_numbers)?;
            if is_shared {
                run.remember(number, &tensor, made_in);
            }
            taken[wire] = Some(tensor.clone());
            return Some(tensor);
        }
        let seen = call.inputs.tensor(input)?;
        let op_type = &call.site.operator.op_type;
        let layout = layout_of(op_type, is_output, position, seen.n_axes());
        // The session decides from this whether a copy would take more memory than it allows.
        let n_bytes_held =
            run.n_bytes_taken + taken.iter().flatten().map(n_element_bytes).sum::<usize>();
        // A record that waits for a device holds what it shows for longer than this tap runs.
        let is_to_be_lent =
            self.device.is_none() && probe.is_to_be_lent(seen.n_bytes(), n_bytes_held);
        let lent = is_to_be_lent.then(|| seen.lent(call.lender)).flatten();
        let is_lent = lent.is_some();
        let tensor = match lent {
            Some(tensor) => call.tap.look(tensor.with_layout(layout)),
            None => call.tap.take(seen.view(layout)).ok()?,
        };
        if let Some(device) = &self.device {
            device.note_copy(n_element_bytes(&tensor));
        }
        // Loans have to be returned before this tap ends.
        if is_shared && !(is_lent && tensor.has_elements()) {
            run.remember(number, &tensor, made_in);
        }
        taken[wire] = Some(tensor.clone());
        Some(tensor)
    }

    /// Notes that the operator has run, and the types of its outputs.
    fn note(&self, site: &TapSite, inputs: &KernelInputs<'_>) {
        let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        let known = survey.note(&site.operator);
        for (position, wire) in &site.outputs {
            if let Some(dtype) = inputs.dtype(site.n_counters + wire) {
                known.dtypes.insert(*position, dtype);
            }
        }
    }

    /// Returns what was noted since the last call.
    pub(super) fn take_survey(&self) -> ResultSurvey {
        std::mem::take(&mut *self.survey.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps copies of the operator's inputs, in place of those of the iteration before.
    fn keep(&self, site: &TapSite, inputs: &KernelInputs<'_>) {
        let counters = counters(site, inputs);
        let mut run = self.run();
        run.kept = None;
        let op_type = &site.operator.op_type;
        let mut kept = Vec::with_capacity(site.inputs.len());
        for (position, source) in &site.inputs {
            let tensor = match source {
                TapInput::Given(given) => run.given(given),
                TapInput::Wire(wire) => {
                    let seen = inputs.tensor(site.n_counters + wire);
                    seen.and_then(KernelTensor::into_tensor)
                }
            };
            if let Some(tensor) = tensor {
                let layout = layout_of(op_type, false, *position, tensor.shape().n_axes());
                kept.push((*position, tensor.with_layout(layout)));
            }
        }
        let operator = if counters.is_empty() {
            site.operator.clone()
        } else {
            in_iteration(&site.operator, &counters)
        };
        run.kept = Some(FailedInputs {
            operator,
            inputs: kept,
        });
    }
}

/// One call of a tap.
struct TapCall<'a, 'i> {
    tap: &'a Tap,
    site: &'a TapSite,
    inputs: &'a KernelInputs<'i>,
    counters: &'a [i64],
    lender: &'a MemoryLender<'i>,
}

impl TapRun {
    fn given(&self, given: &StaticValue) -> Option<Tensor> {
        match given {
            StaticValue::Weight(tensor) => Some(tensor.clone()),
            StaticValue::GraphInput(i) => self.inputs.get(*i).cloned(),
        }
    }

    /// A value that was taken before, if it was made in these iterations.
    fn again(&self, value: usize, counters: &[i64]) -> Option<Tensor> {
        let taken = self.taken.get(value)?.as_ref()?;
        (taken.counters == counters).then(|| taken.tensor.clone())
    }

    fn remember(&mut self, value: usize, tensor: &Tensor, counters: &[i64]) {
        self.forget(value);
        if let Some(place) = self.taken.get_mut(value) {
            self.n_bytes_taken += n_element_bytes(tensor);
            *place = Some(ObservedValue {
                tensor: tensor.clone(),
                counters: counters.to_vec(),
            });
        }
    }

    fn forget(&mut self, value: usize) {
        if let Some(taken) = self.taken.get_mut(value).and_then(Option::take) {
            self.n_bytes_taken -= n_element_bytes(&taken.tensor);
        }
    }

    fn release(&mut self, site: &TapSite) {
        for &value in &site.releases {
            self.forget(value);
        }
    }
}

/// Bytes that a tensor keeps in the host's memory.
fn n_element_bytes(tensor: &Tensor) -> usize {
    tensor.host_bytes().map_or(0, <[u8]>::len)
}

/// The number of an iteration that cannot be read.
const UNKNOWN: i64 = -1;

/// The numbers of the iterations that a tap runs in.
fn counters(site: &TapSite, inputs: &KernelInputs<'_>) -> Vec<i64> {
    (0..site.n_counters)
        .map(|i| inputs.number(i).unwrap_or(UNKNOWN))
        .collect()
}

/// An operator in a loop, with the numbers of the iterations at the end of its name and of those
/// that it was made of, which ran in the same iteration.
fn in_iteration(operator: &Operator, counters: &[i64]) -> Arc<Operator> {
    let mut operator = operator.clone();
    let suffix: String = counters.iter().map(|number| format!(".{number}")).collect();
    let made = operator
        .original_outputs
        .iter_mut()
        .flatten()
        .map(|(name, _)| name);
    let names = made
        .chain(&mut operator.original_names)
        .chain([&mut operator.op_name]);
    names.for_each(|name| name.push_str(&suffix));
    operator.iterations = counters.to_vec();
    Arc::new(operator)
}
