//! One step: the operators between two step marks of the program.

mod outputs;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use opscope_capture::Tap;
use opscope_tensor::Tensor;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::arguments::CallArguments;
use super::call::{CallInput, CallOrigin, CollectiveCall, EagerCall, PendingOperator};
use super::description;
use super::inner::EagerState;
use super::links::ForwardLink;
use super::lock::lock;
use super::look::ReadableTensor;
use super::names::NameCounter;
use super::noted::{CallOutput, EagerStepNotes, described};
use super::values::{TensorName, ValueContent};
use crate::capture::device::ShownRecord;
use crate::capture::parallel::collective;
use crate::capture::reason::UnseenReason;
use crate::capture::session::TorchSession;
use crate::capture::shared::tidy;
use crate::capture::shown::ShownValue;

thread_local! {
    /// Autograd's next number when this thread was last checked.
    static SEQUENCE: Cell<u64> = const { Cell::new(0) };
}

/// One step. Nothing here raises: errors of the dump do not stop the program.
#[pyclass(name = "Step", frozen, module = "opscope._native.capture")]
pub(super) struct EagerStep {
    inner: Arc<EagerState>,
    tap: Tap,
    number: u64,
    names: Arc<Mutex<NameCounter>>,
    noted: Mutex<EagerStepNotes>,
}

impl EagerStep {
    pub(super) fn new(inner: Arc<EagerState>, tap: Tap, number: u64) -> EagerStep {
        EagerStep {
            names: inner.names.clone().unwrap_or_default(),
            inner,
            tap,
            number,
            noted: Mutex::default(),
        }
    }
}

#[pymethods]
impl EagerStep {
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    /// Whether operators are dumped.
    #[getter]
    fn is_dumped(&self) -> bool {
        self.tap.is_active()
    }

    /// Number of operators so far.
    #[getter]
    fn n_operators(&self) -> usize {
        lock(&self.noted).operators.len()
    }

    /// Records an operator's arguments, just before it runs. `node` is the running autograd node,
    /// by number and name; `sequence` is autograd's next number, `shared` describes a collective.
    /// `None` for calls that are not operators, and after an error.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call costs less than several"
    )]
    #[pyo3(signature = (func, args, kwargs, phase, module, source, sequence, node, shared=None))]
    fn before(
        &self,
        func: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        phase: &str,
        module: &str,
        source: &str,
        sequence: u64,
        node: Option<(u64, String)>,
        shared: Option<CollectiveCall<'_>>,
    ) -> Option<EagerCall> {
        self.guard(|step| {
            let origin = CallOrigin {
                phase: phase.to_owned(),
                module: module.into(),
                source: source.into(),
                seq_nr: None,
                node: None,
                forward: None,
            };
            step.begin(func, args, kwargs, origin, (sequence, node), shared)
        })
        .flatten()
    }

    /// Records the operator's results, just after it ran.
    fn after(&self, py: Python<'_>, call: &Bound<'_, EagerCall>, result: &Bound<'_, PyAny>) {
        self.guard(|step| {
            tidy(py, &step.inner.shared);
            let Some(begun) = call.get().take() else {
                return Ok(());
            };
            // First, because outputs would otherwise be identified with the memory's old values.
            step.note_written(py, &begun)?;
            let outputs = step.see_outputs(&begun, result)?;
            // A call without any tensor is not an operator either.
            if begun.inputs.is_empty() && outputs.iter().all(|output| output.name.is_empty()) {
                return Ok(());
            }
            step.submit(py, begun, outputs);
            let is_due = lock(&step.inner.values).is_sweep_due();
            if is_due {
                step.inner.sweep(py)?;
            }
            Ok(())
        });
    }

    /// Moves the operator after the collectives that it needed: otherwise a result with another
    /// rank's value could look like the first wrong one.
    fn renumber(&self, call: &Bound<'_, EagerCall>) {
        let number = lock(&self.names).number();
        call.get().renumber(number);
    }

    /// Reports that a collective was issued, whose results may change from now on.
    fn issued(&self, py: Python<'_>, call: &Bound<'_, EagerCall>, results: Vec<Bound<'_, PyAny>>) {
        self.guard(|step| {
            let Some((name, mut written)) = call.get().written(py) else {
                return Ok(());
            };
            written.extend(results.into_iter().map(Bound::unbind));
            step.note_late(py, &name, &written)
        });
    }

    /// Reports that the results of a collective cannot be observed, so only its inputs are
    /// recorded.
    fn unfinished(&self, py: Python<'_>, call: &Bound<'_, EagerCall>, n_results: usize) {
        self.guard(|step| {
            let Some(begun) = call.get().take() else {
                return Ok(());
            };
            let mut outputs = Vec::new();
            for i in 0..n_results {
                if begun.is_selected && step.inner.chooser.wants_outputs() {
                    step.inner.shared.note_unseen(&UnseenReason::unfinished());
                }
                outputs.push(CallOutput {
                    name: begun.result_name(i, n_results > 1),
                    tensor: None,
                    given_name: None,
                    placement: None,
                });
            }
            step.submit(py, begun, outputs);
            Ok(())
        });
    }

    /// Notes the results of the step that are in the memory of the program's tensors now, without an
    /// operator that wrote to these.
    fn note_assigned(&self, named: Vec<(String, Bound<'_, PyAny>)>) {
        self.guard(|step| {
            for (name, tensor) in named {
                let looked = step.inner.look(&tensor).ok();
                let Some(found) = looked.and_then(|looked| looked.found) else {
                    continue;
                };
                let value = lock(&step.inner.values).nameless(&found);
                let assigned = value.map(|value| (value, name.into()));
                lock(&step.noted).assigned.extend(assigned);
            }
            Ok(())
        });
    }

    /// Declares the values that the program returns. Ignored unless all of them are known: a part
    /// would look like all results.
    fn returns(&self, results: Vec<Bound<'_, PyAny>>) {
        self.guard(|step| {
            let mut names = Vec::new();
            for tensor in &results {
                let Ok(looked) = step.inner.look(tensor) else {
                    return Ok(());
                };
                let Some(found) = &looked.found else {
                    return Ok(());
                };
                let (name, _) = lock(&step.inner.values).find(found);
                if matches!(name, TensorName::Unknown) {
                    return Ok(());
                }
                names.push(step.name(name));
            }
            lock(&step.noted).results = names;
            Ok(())
        });
    }

    /// Reports that the operator failed.
    fn failed(&self, py: Python<'_>, call: &Bound<'_, EagerCall>, reason: &str) {
        self.guard(|step| {
            let Some(begun) = call.get().take() else {
                return Ok(());
            };
            // A failed operator may have written half of its result.
            step.note_written(py, &begun)?;
            step.fail(begun, reason);
            Ok(())
        });
    }

    /// Ends the step, and writes its description. `error` is the reason if it failed.
    #[pyo3(signature = (session, error=None))]
    fn end(&self, py: Python<'_>, session: &Bound<'_, TorchSession>, error: Option<&str>) {
        self.guard(|step| {
            match error {
                None => py.detach(|| step.tap.end_step()),
                Some(error) => {
                    let failed = &step.inner.shared.n_runs_failed;
                    failed.fetch_add(1, Ordering::Relaxed);
                    step.tap.fail_step(error);
                }
            }
            if let Some(link) = &step.inner.shared.devices {
                link.flush(py, &step.inner.shared);
            }
            let noted = std::mem::take(&mut *lock(&step.noted));
            if step.tap.is_active() && !noted.operators.is_empty() {
                let number = step.number;
                let name = format!("eager_{number}");
                let text = {
                    let name = name.clone();
                    move || description::to_json(&name, number, &noted)
                };
                let session = session.get();
                // The call blocks while too many descriptions are queued.
                py.detach(|| session.describe_later(&name, text));
            }
            tidy(py, &step.inner.shared);
            step.inner.sweep(py)
        });
    }
}

impl EagerStep {
    /// Catches and records all errors inside.
    fn guard<T>(&self, work: impl FnOnce(&EagerStep) -> PyResult<T>) -> Option<T> {
        if self.inner.shared.is_past() {
            return None;
        }
        let result = catch_unwind(AssertUnwindSafe(|| work(self)));
        if let Some(link) = &self.inner.shared.devices {
            link.pass_interrupt_on(&self.inner.shared);
        }
        match result {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) => self.inner.shared.note_fault(|| error.to_string()),
            Err(_) => self.inner.shared.note_fault(|| "a tap panicked".to_owned()),
        }
        None
    }

    fn begin(
        &self,
        func: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        origin: CallOrigin,
        (sequence, node): (u64, Option<(u64, String)>),
        shared: Option<CollectiveCall<'_>>,
    ) -> PyResult<Option<EagerCall>> {
        let py = func.py();
        let inner = &self.inner;
        let kind = inner.kinds.find_or_describe(func)?;
        if kind.is_ignored {
            return Ok(None);
        }
        let tensor = inner.tensor.bind(py);
        let mut found = CallArguments::new(&kind, tensor, args, Some(kwargs))?;
        let collective = shared
            .as_ref()
            .and_then(|shared| collective(&shared.kind, shared.ranks.clone()));
        let mut written: Vec<Py<PyAny>> = (found.written.iter())
            .map(|&i| found.tensors[i].clone().unbind())
            .collect();
        if let Some(shared) = shared {
            // Buffers that it only writes are undefined so far, and are not inputs.
            found.tensors = shared.inputs;
            written = shared.outputs.into_iter().map(Bound::unbind).collect();
        }
        // Operators are counted whether selected or not: names must not depend on the selection.
        let (task_id, op_name) = lock(&self.names).operator(&kind.base);
        let own = own_number(sequence, &found.tensors)?;
        let origin = self.origin(origin, own, node, &op_name);
        let names = [&*op_name, &kind.alias, &kind.target, &kind.base];
        let is_selected =
            self.tap.is_active() && inner.chooser.is_chosen(py, names, &origin.module)?;
        let is_read = is_selected && inner.chooser.wants_inputs();
        let mut inputs = Vec::with_capacity(found.tensors.len());
        // Unselected inputs are located as well, because the description names all values.
        for tensor in &found.tensors {
            self.add_input(&mut inputs, tensor, is_read)?;
        }
        Ok(Some(EagerCall::new(PendingOperator {
            written,
            kind,
            task_id,
            op_name,
            inputs,
            texts: found.texts,
            origin,
            is_selected,
            collective,
        })))
    }

    /// Completes an operator's origin, and records it for its backward operators.
    fn origin(
        &self,
        mut origin: CallOrigin,
        own: Option<u64>,
        node: Option<(u64, String)>,
        op_name: &Arc<str>,
    ) -> CallOrigin {
        let mut links = lock(&self.inner.links);
        origin.seq_nr = own;
        if let Some((seq_nr, name)) = node {
            origin.node = Some(name);
            // Nodes that accumulate gradients have the largest number, so that they run first; they
            // have no forward operator.
            origin.seq_nr = Some(seq_nr).filter(|&seq_nr| seq_nr != u64::MAX);
            origin.forward = links.find(seq_nr).cloned();
            if let Some(forward) = &origin.forward {
                // Operators recomputed in backward have their own module.
                if origin.module.is_empty() {
                    origin.module = forward.module.clone();
                }
                if origin.source.is_empty() {
                    origin.source = forward.source.clone();
                }
            }
        }
        if let Some(own) = own {
            let link = ForwardLink {
                step: self.number,
                op_name: op_name.clone(),
                module: origin.module.clone(),
                source: origin.source.clone(),
            };
            links.add(own, link);
        }
        origin
    }

    /// Adds an input; several for a tensor with parts, such as a sparse one.
    fn add_input(
        &self,
        inputs: &mut Vec<CallInput>,
        object: &Bound<'_, PyAny>,
        is_read: bool,
    ) -> PyResult<()> {
        match self.inner.look(object) {
            Ok(looked) => inputs.push(self.input(&looked, is_read)?),
            Err(reason) => {
                let name = self.argument();
                let parts = self.parts(object, reason, is_read, &name);
                inputs.extend(parts.into_iter().map(|(name, tensor)| CallInput {
                    name,
                    tensor,
                    memory: None,
                    placement: None,
                }));
            }
        }
        Ok(())
    }

    /// Named parts of a tensor without plain memory; empty if it has no readable elements.
    fn parts(
        &self,
        object: &Bound<'_, PyAny>,
        reason: UnseenReason,
        is_read: bool,
        name: &Arc<str>,
    ) -> Vec<(Arc<str>, Option<Tensor>)> {
        let shown = is_read.then(|| {
            self.inner
                .shared
                .show_parts(object, reason, Some(&self.tap))
        });
        match shown {
            Some(Ok(ShownValue::Whole(tensor))) => vec![(name.clone(), Some(tensor))],
            Some(Ok(ShownValue::Parts(parts))) => {
                let parts = parts.into_iter();
                parts
                    .map(|(part, tensor)| (format!("{name}.{part}").into(), Some(tensor)))
                    .collect()
            }
            Some(Err(reason)) => {
                self.inner.shared.note_unseen(&reason);
                vec![(name.clone(), None)]
            }
            None => vec![(name.clone(), None)],
        }
    }

    fn input(&self, looked: &ReadableTensor<'_>, is_read: bool) -> PyResult<CallInput> {
        let inner = &self.inner;
        let Some(found) = &looked.found else {
            return Ok(CallInput {
                name: self.argument(),
                tensor: if is_read { self.read(looked).0 } else { None },
                memory: None,
                placement: looked.placement.clone(),
            });
        };
        let (name, content) = lock(&inner.values).find(found);
        let name = self.name(name);
        let (mut tensor, mut fresh) = (None, ValueContent::None);
        if is_read {
            tensor = inner.again(looked, &content);
            if let ValueContent::Unseen(reason) = &content {
                inner.shared.note_unseen(reason);
            } else if tensor.is_none() {
                (tensor, fresh) = self.read(looked);
            }
        }
        let pin = inner.pin(&looked.subject, found.storage)?;
        let memory = Some((found.storage, found.version));
        let mut values = lock(&inner.values);
        values.record(found.clone(), pin, name.clone(), fresh, false);
        Ok(CallInput {
            name,
            tensor,
            memory,
            placement: looked.placement.clone(),
        })
    }

    fn read(&self, looked: &ReadableTensor<'_>) -> (Option<Tensor>, ValueContent) {
        match self.inner.read(&self.tap, looked) {
            Ok((tensor, content)) => (Some(tensor), content),
            Err(reason) => {
                self.inner.shared.note_unseen(&reason);
                (None, ValueContent::None)
            }
        }
    }

    fn argument(&self) -> Arc<str> {
        let name = lock(&self.names).argument();
        self.note_argument(&name);
        name
    }

    fn note_argument(&self, name: &Arc<str>) {
        // A step that is only for hooks has no description, so names would accumulate.
        if self.tap.is_active() {
            lock(&self.noted).arguments.push(name.clone());
        }
    }

    fn name(&self, name: TensorName) -> Arc<str> {
        match name {
            TensorName::Known(name) => name,
            TensorName::Given(name) => {
                self.note_argument(&name);
                if self.tap.is_active() {
                    lock(&self.noted).named.insert(name.clone());
                }
                name
            }
            TensorName::Unknown => self.argument(),
            TensorName::Changed(of) => {
                let name = lock(&self.names).alias(&of);
                if self.tap.is_active() {
                    lock(&self.noted).aliases.push((name.clone(), of));
                }
                name
            }
        }
    }

    /// Invalidates memory that the operator has written to.
    fn note_written(&self, py: Python<'_>, begun: &PendingOperator) -> PyResult<()> {
        // Undeclared writes leave names unchanged, but the values are read again.
        if begun.kind.may_write_all {
            let mut values = lock(&self.inner.values);
            for (storage, _) in begun.inputs.iter().filter_map(|input| input.memory) {
                values.distrust(storage);
            }
        }
        for object in &begun.written {
            let Ok(looked) = self.inner.look(object.bind(py)) else {
                continue;
            };
            if let Some(found) = looked.found {
                let pin = self.inner.pin(&looked.subject, found.storage)?;
                let mut values = lock(&self.inner.values);
                let name = begun.op_name.clone();
                // A collective no longer writes after the wait.
                let is_late = begun.kind.is_late && begun.collective.is_none();
                values.write(found.storage, pin, name, is_late);
            }
        }
        Ok(())
    }

    /// Invalidates memory that an operator will write to unobserved.
    fn note_late(&self, py: Python<'_>, name: &Arc<str>, tensors: &[Py<PyAny>]) -> PyResult<()> {
        for object in tensors {
            let Ok(looked) = self.inner.look(object.bind(py)) else {
                continue;
            };
            if let Some(found) = looked.found {
                let pin = self.inner.pin(&looked.subject, found.storage)?;
                let mut values = lock(&self.inner.values);
                values.write(found.storage, pin, name.clone(), true);
            }
        }
        Ok(())
    }

    fn submit(&self, py: Python<'_>, begun: PendingOperator, outputs: Vec<CallOutput>) {
        let (operator, details, inputs) = described(begun, &outputs);
        let is_selected = details.is_selected;
        if self.tap.is_active() {
            lock(&self.noted)
                .operators
                .push((operator.clone(), details));
        }
        if !is_selected {
            return;
        }
        let Some(kept) = self.inner.chooser.slots_to_keep(&operator) else {
            return;
        };
        let Some(probe) = self.tap.open_kept(&operator, &kept) else {
            return;
        };
        let inputs = inputs.into_iter().enumerate();
        let outputs = outputs.into_iter().enumerate();
        let record = ShownRecord {
            probe,
            inputs: inputs
                .filter_map(|(i, one)| Some((i, one.tensor?)))
                .collect(),
            outputs: outputs
                .filter_map(|(i, one)| Some((i, one.tensor?)))
                .collect(),
        };
        self.inner.shared.submit(py, record);
    }

    fn fail(&self, begun: PendingOperator, reason: &str) {
        let (operator, mut details, inputs) = described(begun, &[]);
        // It has no record.
        let is_selected = std::mem::replace(&mut details.is_selected, false);
        if self.tap.is_active() {
            lock(&self.noted)
                .operators
                .push((operator.clone(), details));
        }
        let kept = self.inner.chooser.slots_to_keep(&operator);
        let Some(kept) = kept.filter(|_| is_selected) else {
            return;
        };
        if let Some(probe) = self.tap.open_kept(&operator, &kept) {
            let inputs = inputs.into_iter().enumerate();
            let record = ShownRecord {
                probe,
                inputs: inputs
                    .filter_map(|(i, one)| Some((i, one.tensor?)))
                    .collect(),
                outputs: Vec::new(),
            };
            record.fail(reason);
        }
    }
}

/// The sequence number of the node that autograd has just created for an operator, if any.
fn own_number(sequence: u64, tensors: &[Bound<'_, PyAny>]) -> PyResult<Option<u64>> {
    // Autograd's number grows with each node: none was created here since the last check.
    if SEQUENCE.replace(sequence) >= sequence {
        return Ok(None);
    }
    // The node may belong to one of the program's functions; only an operator with an input that
    // requires a gradient has one.
    for tensor in tensors {
        let py = tensor.py();
        if tensor.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
            return Ok(Some(sequence - 1));
        }
    }
    Ok(None)
}
