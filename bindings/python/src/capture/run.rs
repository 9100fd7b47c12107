//! One execution of a graph.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use opscope_capture::Tap;
use opscope_store::record::Operator;
use opscope_tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::bodies::BodyCalls;
use super::description::Stability;
use super::device::ShownRecord;
use super::executions::ExecutionPhase;
use super::parts::GraphParts;
use super::reason::UnseenReason;
use super::shared::{TorchSessionState, tidy};
use super::shown::{RecordSlots, ShownValue};
use super::take::{KnownNumbers, NumberTaker};
use super::taps::Home;

/// One execution of a graph, which receives the values that operators produce. Nothing here raises:
/// errors of the dump do not stop the model.
#[pyclass(name = "Run", module = "opscope._native.capture")]
pub(super) struct RunningGraph {
    shared: Arc<TorchSessionState>,
    parts: Arc<GraphParts>,
    /// `None` once the execution is over.
    tap: Option<Tap>,
    home: Home,
    /// Recorded values that are still needed.
    values: Vec<Option<ShownValue>>,
    /// Statistics of their memory, for operators that return views.
    known: Vec<Option<KnownNumbers>>,
    calls: BodyCalls,
    /// The running operator, if failures are reported.
    running: Option<usize>,
    /// Its index in the list of executions.
    position: Option<usize>,
    is_closed: bool,
}

impl RunningGraph {
    pub(super) fn new(
        shared: Arc<TorchSessionState>,
        parts: Arc<GraphParts>,
        (tap, home): (Tap, Home),
        position: Option<usize>,
    ) -> RunningGraph {
        let mut values = Vec::new();
        values.resize_with(parts.values.len(), || None);
        let mut known = Vec::new();
        known.resize_with(parts.values.len(), || None);
        RunningGraph {
            calls: BodyCalls::new(&parts),
            shared,
            parts,
            tap: Some(tap),
            home,
            values,
            known,
            running: None,
            position,
            is_closed: false,
        }
    }
}

#[pymethods]
impl RunningGraph {
    /// Reports that an operator runs a nested graph; returns whether that is part of the model.
    fn enter(&mut self, body: usize) -> bool {
        self.calls.enter(&self.parts, body)
    }

    /// Reports that an operator is about to run.
    fn enter_operator(&mut self, operator: usize) {
        self.running = Some(operator);
    }

    /// Records parameters at the end, after operators have written to them.
    fn refresh(&mut self, values: &Bound<'_, PyTuple>, tensors: &Bound<'_, PyTuple>) {
        self.guard(|run| {
            for (value, tensor) in values.iter().zip(tensors.iter()) {
                run.show_again(value.extract()?, &tensor);
            }
            Ok(())
        });
    }

    /// Records values without a producer, each before the first operator that reads it.
    fn give(&mut self, values: &Bound<'_, PyTuple>, tensors: &Bound<'_, PyTuple>) {
        self.guard(|run| {
            for (value, tensor) in values.iter().zip(tensors.iter()) {
                run.see(value.extract()?, &tensor, &[]);
            }
            Ok(())
        });
    }

    /// Records an operator's results, just after it ran.
    fn tap(&mut self, py: Python<'_>, operator: usize, result: &Bound<'_, PyAny>) {
        self.guard(|run| {
            // After every operator: otherwise torch would not get back the writers' finished memory
            // until the end of a long execution.
            tidy(py, &run.shared);
            // Later errors are not this operator's.
            run.running = None;
            let parts = run.parts.clone();
            if let Some(part) = parts.operators.get(operator) {
                let mut outputs = part.outputs.iter();
                run.see_results(&mut outputs, result, &part.reads)?;
                // Every selected tensor must be accounted for, even one that the operator did not
                // return.
                for value in outputs.flatten() {
                    run.miss(*value, &UnseenReason::Missing);
                }
                for &body in &part.hidden {
                    run.pass_over(py, body);
                }
                if part.is_kept {
                    run.submit(py, operator);
                }
                // Recorded values hold torch's memory or a copy, which would accumulate.
                for &value in &part.last_uses {
                    run.values[value] = None;
                }
            }
            Ok(())
        });
    }

    /// Reports the successful end of the execution.
    fn end(&mut self, py: Python<'_>) {
        self.guard(|run| {
            run.end_step(py);
            Ok(())
        });
        self.close(ExecutionPhase::Finished);
        tidy(py, &self.shared);
    }

    /// Writes the inputs of an operator that raised, and ends the execution. `n_before` operators
    /// ran before it, `inputs` are pairs of a position and a tensor, `notes` are lines of the
    /// report.
    fn fail_operator(
        &mut self,
        py: Python<'_>,
        operator: usize,
        n_before: u64,
        inputs: Vec<(usize, Bound<'_, PyAny>)>,
        reason: &str,
        notes: &str,
    ) {
        if let Some(tap) = &self.tap {
            // If only failures are wanted, successful operators are not reported, so they are
            // counted at once.
            tap.count_seen(n_before);
        }
        self.guard(|run| run.write_failure(py, operator, &inputs, (reason, notes)));
        self.fail(py, reason);
    }

    /// Counts the graph's operators after a success in which none was reported.
    fn count_all(&mut self) {
        if let Some(tap) = &self.tap {
            tap.count_seen(self.parts.operators.len() as u64);
        }
    }

    /// Reports that the execution raised.
    fn fail(&mut self, py: Python<'_>, reason: &str) {
        let failed = &self.shared.n_runs_failed;
        failed.fetch_add(1, Ordering::Relaxed);
        self.guard(|run| {
            if let Some(operator) = run.running.take() {
                run.tell_failure(operator, reason);
            }
            if let Some(tap) = &run.tap {
                tap.fail_step(reason);
            }
            Ok(())
        });
        self.close(ExecutionPhase::Failed);
        tidy(py, &self.shared);
    }
}

impl RunningGraph {
    /// Catches and records all errors inside.
    fn guard(&mut self, work: impl FnOnce(&mut RunningGraph) -> PyResult<()>) {
        // In a fork any of the locks below may be held by a thread that does not exist.
        if self.shared.is_past() {
            return;
        }
        let result = catch_unwind(AssertUnwindSafe(|| work(self)));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.shared.note_fault(|| error.to_string()),
            Err(_) => self.shared.note_fault(|| "a tap panicked".to_owned()),
        }
        if let Some(link) = &self.shared.devices {
            link.pass_interrupt_on(&self.shared);
        }
    }

    /// Ends the step, after records that wait for a device.
    fn end_step(&mut self, py: Python<'_>) {
        let Some(link) = &self.shared.devices else {
            if let Some(tap) = &self.tap {
                py.detach(|| tap.end_step());
            }
            return;
        };
        self.tap = self
            .tap
            .take()
            .and_then(|tap| link.end_step(tap, &self.home));
        if let Some(tap) = &self.tap {
            py.detach(|| tap.end_step());
        }
        link.flush(py, &self.shared);
    }

    fn close(&mut self, state: ExecutionPhase) {
        self.values.fill_with(|| None);
        let tap = self.tap.take();
        // `Drop` comes here after `end` and `fail` as well.
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        // In a fork the pool of taps and the list of executions may stay locked forever.
        if self.shared.is_past() {
            return;
        }
        // A tap that waits for device records is returned with them.
        if let Some(tap) = tap {
            self.home.put_back(tap);
        }
        let executions = &self.shared.executions;
        if executions.end(self.position, state)
            && let Err(error) = executions.write()
        {
            self.shared.note_fault(|| error.to_string());
        }
    }

    /// Counts the values of a nested graph that cannot be observed.
    fn pass_over(&self, py: Python<'_>, body: usize) {
        let parts = &self.parts;
        let part = &parts.bodies[body];
        let Some(reason) = &part.reason else {
            return;
        };
        for &operator in &part.operators {
            for &value in parts.operators[operator].outputs.iter().flatten() {
                self.miss(value, reason);
            }
            if parts.operators[operator].is_kept {
                self.submit(py, operator);
            }
        }
    }

    fn write_failure(
        &self,
        py: Python<'_>,
        operator: usize,
        inputs: &[(usize, Bound<'_, PyAny>)],
        (reason, notes): (&str, &str),
    ) -> PyResult<()> {
        let (Some(tap), Some(part)) = (&self.tap, self.parts.operators.get(operator)) else {
            return Ok(());
        };
        let Some(mut probe) = tap.open(&part.operator) else {
            return Ok(());
        };
        for (position, tensor) in inputs {
            // The record is written before this returns, so the memory is not written meanwhile.
            match self.shared.show(Stability::Held, tensor, None) {
                Ok(ShownValue::Whole(tensor)) => probe.input(*position, tensor),
                Ok(ShownValue::Parts(_)) => {
                    let reason = UnseenReason::Known("form of several tensors".to_owned());
                    self.shared.note_unseen(&reason);
                }
                Err(reason) => self.shared.note_unseen(&reason),
            }
        }
        py.detach(|| probe.fail_with_notes(reason, notes));
        Ok(())
    }

    /// Visits results, including list items, in step with their values.
    fn see_results(
        &mut self,
        outputs: &mut std::slice::Iter<'_, Option<usize>>,
        result: &Bound<'_, PyAny>,
        reads: &[usize],
    ) -> PyResult<()> {
        if let Ok(results) = result.cast::<PyTuple>() {
            for result in results.iter() {
                self.see_results(outputs, &result, reads)?;
            }
        } else if let Ok(results) = result.cast::<PyList>() {
            for result in results.iter() {
                self.see_results(outputs, &result, reads)?;
            }
        } else if let Some(Some(value)) = outputs.next() {
            self.see(*value, result, reads);
        } else if self.shared.lender.knows(result) {
            // Surplus numbers and `None` do not matter; a tensor does.
            self.shared.note_unseen(&UnseenReason::Undescribed);
        }
        Ok(())
    }

    fn see(&mut self, value: usize, object: &Bound<'_, PyAny>, reads: &[usize]) {
        let Some(part) = self.parts.values.get(value).filter(|part| part.is_wanted) else {
            return;
        };
        // A result that the operator need not compute, although its graph describes one: the
        // gradient of an input that requires none.
        if object.is_none() {
            (self.known[value], self.values[value]) = (None, None);
            return;
        }
        let taken = match &part.reason {
            Some(reason) => Err(reason.clone()),
            None => {
                let known = reads.iter().filter_map(|&read| self.known[read].as_ref());
                let known: Vec<&KnownNumbers> = known.collect();
                let (tap, known) = (self.tap.as_ref(), known.as_slice());
                (self.shared).show_knowing(
                    part.stability,
                    object,
                    &NumberTaker {
                        tap,
                        known,
                        may_wait: true,
                    },
                )
            }
        };
        // In a loop the value is seen again; statistics of the last iteration must not remain if
        // this one is unreadable.
        self.known[value] = None;
        match taken {
            Ok((shown, known)) => {
                self.values[value] = Some(shown);
                self.known[value] = known;
            }
            Err(reason) => self.shared.note_unseen(&reason),
        }
    }

    fn miss(&self, value: usize, reason: &UnseenReason) {
        if self
            .parts
            .values
            .get(value)
            .is_some_and(|part| part.is_wanted)
        {
            self.shared.note_unseen(reason);
        }
    }

    /// Records a parameter once more, if readable.
    fn show_again(&self, value: usize, object: &Bound<'_, PyAny>) {
        let Some(part) = self.parts.values.get(value) else {
            return;
        };
        match (
            self.shared.show(part.stability, object, self.tap.as_ref()),
            &self.tap,
        ) {
            (Ok(shown), Some(tap)) => {
                for tensor in shown.tensors() {
                    tap.show_parameter(&part.name, tensor.clone());
                }
            }
            (Ok(_), None) => {}
            (Err(reason), _) => self.shared.note_unseen(&reason),
        }
    }

    /// Opens the probe of an operator with its inputs, which are known before it runs. Returns it
    /// with the positions of tensors in its record.
    fn probe(&self, operator: usize) -> Option<(ShownRecord, Option<RecordSlots>)> {
        let part = self.parts.operators.get(operator)?;
        let tap = self.tap.as_ref()?;
        let named = self.calls.named(&self.parts, operator);
        let named = named.as_ref().unwrap_or(&part.operator);
        let slots = self.slots(operator, named);
        let probe = match &slots {
            Some(slots) => tap.open_as(&slots.operator, |kept| slots.kept(kept)),
            None => tap.open(named),
        }?;
        let mut inputs = Vec::new();
        for &(position, value) in &part.inputs {
            let first = slots
                .as_ref()
                .map_or(position, |slots| slots.input(position));
            for (nth, tensor) in self.tensors(value).enumerate() {
                inputs.push((first + nth, tensor.clone()));
            }
        }
        let record = ShownRecord {
            probe,
            inputs,
            outputs: Vec::new(),
        };
        Some((record, slots))
    }

    fn tell_failure(&self, operator: usize, reason: &str) {
        if let Some((record, _)) = self.probe(operator) {
            record.fail(reason);
        }
    }

    fn submit(&self, py: Python<'_>, operator: usize) {
        let part = &self.parts.operators[operator];
        let Some((mut record, slots)) = self.probe(operator) else {
            return;
        };
        for (position, value) in part.outputs.iter().enumerate() {
            let Some(value) = *value else {
                continue;
            };
            let first = slots
                .as_ref()
                .map_or(position, |slots| slots.output(position));
            for (nth, tensor) in self.tensors(value).enumerate() {
                record.outputs.push((first + nth, tensor.clone()));
            }
        }
        self.shared.submit(py, record);
    }

    fn tensors(&self, value: usize) -> impl Iterator<Item = &Tensor> {
        let shown = self.values[value].as_ref();
        shown.into_iter().flat_map(ShownValue::tensors)
    }

    /// Positions of tensors in the record, if some values have several.
    fn slots(&self, operator: usize, named: &Operator) -> Option<RecordSlots> {
        let part = &self.parts.operators[operator];
        let shown = |value: usize| self.values[value].as_ref();
        let inputs = part.inputs.iter().map(|(_, value)| *value);
        let values = inputs.chain(part.outputs.iter().flatten().copied());
        let mut parted = values.filter(|&value| matches!(shown(value), Some(ShownValue::Parts(_))));
        // Hardly any operator has such values; the others keep their precomputed names.
        parted.next()?;
        Some(RecordSlots::new(
            named,
            |position| {
                let found = part.inputs.iter().find(|(at, _)| *at == position);
                found.and_then(|(_, value)| shown(*value))
            },
            |position| part.outputs[position].and_then(shown),
        ))
    }
}

impl Drop for RunningGraph {
    fn drop(&mut self) {
        // Only an execution that Python abandoned still has its tap and counts as running.
        self.close(ExecutionPhase::Failed);
    }
}
