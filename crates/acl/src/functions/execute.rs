//! Executes a model, and dumps it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use opscope_capture::SessionOptions;
use opscope_engine::ValueInfo;
use opscope_tensor::{Shape, Tensor};

use super::execution::EngineExecution;
use crate::aipp::{AippParameters, prepare};
use crate::capture::ExecutionCapture;
use crate::data::{DataBuffer, GearChoice, TensorDesc};
use crate::data_type::{self, FORMAT_ND};
use crate::handle::Handle;
use crate::lock::lock;
use crate::model::{AclModel, AippRole, InputAipp, InputBuffer, ModelRunState, extents, resolve};
use crate::status::{FEATURE_UNSUPPORTED, GE_INTERNAL_ERROR, GE_PARAM_INVALID, INVALID_PARAM};
use crate::{AclProcess, Answer, Status};

/// A buffer may be this many bytes shorter than its tensor, as in the vendor's executor.
const N_BYTES_SHORT_MAX: usize = 64;

/// Why tensors are missing in a written dump.
const NOT_SHOWN: &str = "the engine does not show values of their kind";

/// A resolved buffer of a dataset.
struct DatasetSlot {
    handle: Handle,
    buffer: DataBuffer,
    dims: Option<Vec<i64>>,
}

/// A resolved dataset.
struct DatasetSlots {
    slots: Vec<DatasetSlot>,
    gear: Option<GearChoice>,
    aipp: BTreeMap<usize, Arc<AippParameters>>,
}

impl AclProcess {
    /// `aclmdlExecute`: reads the buffers of `inputs`, runs the model and fills those of `outputs`.
    /// Memory is allocated for an output buffer without an address; the caller frees it with
    /// [`AclProcess::free`]. Files of the dump are complete on return; a failure to write one is
    /// reported ([`AclProcess::recent_error`]) but does not fail the call.
    ///
    /// # Errors
    /// `GE_EXEC_NOT_INIT`, `GE_EXEC_MODEL_ID_INVALID`, `INVALID_PARAM` for a handle that is not a
    /// dataset, an invalid buffer or an input without address, `GE_PARAM_INVALID` for the wrong
    /// number of buffers, short buffers and shapes that do not match, `RT_MODEL_EXECUTE` if an
    /// operator fails.
    pub fn execute(&self, model_id: u32, inputs: Handle, outputs: Handle) -> Answer {
        self.execute_model(model_id, inputs, outputs, true)
    }

    /// `aclmdlExecuteAsync`: like [`AclProcess::execute`], complete on return. Output buffers must
    /// have addresses.
    ///
    /// # Errors
    /// As for [`AclProcess::execute`] and [`AclProcess::synchronize_stream`].
    pub fn execute_async(
        &self,
        model_id: u32,
        inputs: Handle,
        outputs: Handle,
        stream: Handle,
    ) -> Answer {
        self.check_stream(stream)?;
        self.execute_model(model_id, inputs, outputs, false)
    }

    fn execute_model(
        &self,
        model_id: u32,
        inputs: Handle,
        outputs: Handle,
        may_allocate: bool,
    ) -> Answer {
        self.check_executor("a model was executed")?;
        // All arguments are checked before the model runs, which may take long.
        let inputs = self.slots(inputs)?;
        let output_slots = self.slots(outputs)?;
        let model = self.model(model_id)?;
        self.check_outputs(&model, &output_slots, may_allocate)?;
        let tensors = self.read_inputs(&model, &inputs)?;
        let results = self.run_model(&model, &tensors)?;
        model.description.note_outputs(&results);
        self.write_outputs(outputs, &output_slots, &results)
    }

    fn slots(&self, dataset: Handle) -> Answer<DatasetSlots> {
        let objects = self.objects();
        let dataset = objects.datasets.find(dataset)?;
        let mut slots = Vec::with_capacity(dataset.entries.len());
        for entry in &dataset.entries {
            let desc = objects.tensor_descs.get(entry.tensor_desc);
            slots.push(DatasetSlot {
                handle: entry.buffer,
                buffer: *objects.buffers.find(entry.buffer)?,
                dims: desc.map(|desc| desc.dims.clone()),
            });
        }
        // Copies, so that no lock is held while the model runs.
        let gear = dataset.gear.clone();
        let aipp = dataset.aipp.clone();
        Ok(DatasetSlots { slots, gear, aipp })
    }

    fn unfit(&self, reason: &str) -> Status {
        self.inner_error(GE_PARAM_INVALID, reason)
    }

    fn check_outputs(
        &self,
        model: &AclModel,
        outputs: &DatasetSlots,
        may_allocate: bool,
    ) -> Answer {
        let n_expected = model.signature.outputs.len();
        let n_found = outputs.slots.len();
        if n_found != n_expected {
            let reason =
                format!("the model has {n_expected} outputs, {n_found} buffers were given");
            return Err(self.unfit(&reason));
        }
        for (i, slot) in outputs.slots.iter().enumerate() {
            if slot.buffer.address == 0 {
                // Memory is allocated once the result exists: its size may be unknown before.
                if may_allocate {
                    continue;
                }
                return Err(INVALID_PARAM);
            }
            self.check_length("output", i, model.description.output_bytes(i), slot)?;
        }
        Ok(())
    }

    fn check_length(
        &self,
        side: &str,
        index: usize,
        n_needed: usize,
        slot: &DatasetSlot,
    ) -> Answer {
        let n_found = slot.buffer.size;
        if n_found.saturating_add(N_BYTES_SHORT_MAX) >= n_needed {
            return Ok(());
        }
        let reason = format!("{side} {index} takes {n_needed} bytes, its buffer has {n_found}");
        Err(self.unfit(&reason))
    }

    fn read_inputs(&self, model: &AclModel, inputs: &DatasetSlots) -> Answer<Vec<Tensor>> {
        let declared = &model.signature.inputs;
        let description = &*model.description;
        let (n_expected, n_found) = (description.n_inputs(), inputs.slots.len());
        // The buffer for open dimensions may follow at the end.
        let has_extra = description.is_dynamic() && n_found == n_expected + 1;
        if n_found != n_expected && !has_extra {
            let reason = format!("the model has {n_expected} inputs, {n_found} buffers were given");
            return Err(self.unfit(&reason));
        }
        let mut given = Vec::with_capacity(declared.len());
        for (i, slot) in inputs.slots.iter().take(declared.len()).enumerate() {
            // For an input with AIPP, a program describes the unprocessed picture.
            let is_picture = description.aipp_role(i) != AippRole::None;
            given.push(InputBuffer {
                n_bytes: slot.buffer.size,
                dims: slot.dims.clone().filter(|_| !is_picture),
            });
        }
        let gear = inputs.gear.as_ref();
        let shapes = match &description.gears {
            Some(gears) => {
                let described: Vec<_> = given.into_iter().map(|given| given.dims).collect();
                gears.shapes(gear, &described)
            }
            None => resolve(declared, &given, gear),
        };
        let shapes = shapes.map_err(|reason| self.unfit(&reason))?;
        let mut tensors = Vec::with_capacity(declared.len());
        let slots = inputs.slots.iter().enumerate();
        for ((i, slot), (value, shape)) in slots.zip(declared.iter().zip(shapes)) {
            tensors.push(match description.aipp(i) {
                None => self.read_input(i, slot, value, shape)?,
                Some(aipp) => {
                    let parameters = match description.aipp_role(i) {
                        AippRole::Dynamic(attached) => inputs.aipp.get(&attached).cloned(),
                        _ => Some(Arc::new(aipp.parameters(&shape))),
                    };
                    self.read_pictures((i, slot), value, shape, aipp, parameters)?
                }
            });
        }
        Ok(tensors)
    }

    /// Reads pictures and converts them to the model's input.
    fn read_pictures(
        &self,
        (index, slot): (usize, &DatasetSlot),
        value: &ValueInfo,
        shape: Shape,
        aipp: &InputAipp,
        parameters: Option<Arc<AippParameters>>,
    ) -> Answer<Tensor> {
        let parameters = parameters.ok_or_else(|| {
            let reason = "its AIPP parameters are not set: call aclmdlSetInputAIPP";
            self.unfit_input(value, &reason)
        })?;
        if aipp.is_dynamic() {
            // They may have been set for another model, or for another gear.
            let checked = aipp.check(&parameters);
            let checked = checked.and_then(|()| aipp.check_fit(&parameters, &shape));
            checked.map_err(|reason| self.unfit_input(value, &reason))?;
        }
        let n = shape.dims().first().copied().unwrap_or(0);
        let n_bytes = parameters.picture_bytes().saturating_mul(n);
        self.check_length("input", index, n_bytes, slot)?;
        let pictures = self.read_padded(slot.buffer, n_bytes)?;
        let prepared = prepare(&parameters, &pictures, value.dtype, shape);
        prepared.map_err(|reason| self.unfit_input(value, &reason))
    }

    fn read_input(
        &self,
        index: usize,
        slot: &DatasetSlot,
        value: &ValueInfo,
        shape: Shape,
    ) -> Answer<Tensor> {
        let n_bytes = shape.n_bytes(value.dtype);
        let n_bytes = n_bytes.map_err(|error| self.unfit_input(value, &error))?;
        self.check_length("input", index, n_bytes, slot)?;
        let bytes = self.read_padded(slot.buffer, n_bytes)?;
        let tensor = Tensor::from_vec(value.dtype, shape, bytes);
        tensor.map_err(|error| self.unfit_input(value, &error))
    }

    fn unfit_input(&self, value: &ValueInfo, reason: &dyn Display) -> Status {
        self.unfit(&format!("input `{}`: {reason}", value.name))
    }

    /// Reads a tensor of `n_bytes`, padded with zeros if its buffer is shorter.
    pub(crate) fn read_padded(&self, buffer: DataBuffer, n_bytes: usize) -> Answer<Vec<u8>> {
        let n_there = n_bytes.min(buffer.size);
        if n_there > 0 && buffer.address == 0 {
            return Err(INVALID_PARAM);
        }
        let bytes = self.memory.read(buffer.address, n_there);
        let mut bytes = bytes.ok_or_else(|| {
            self.unfit(&format!(
                "{n_there} bytes at {:#x} cannot be read",
                buffer.address
            ))
        })?;
        bytes.resize(n_bytes, 0);
        Ok(bytes)
    }

    fn write_outputs(&self, dataset: Handle, outputs: &DatasetSlots, results: &[Tensor]) -> Answer {
        if results.len() != outputs.slots.len() {
            let (n, wanted) = (results.len(), outputs.slots.len());
            return Err(self.unfit(&format!("the engine returned {n} of {wanted} results")));
        }
        for (i, (slot, result)) in outputs.slots.iter().zip(results).enumerate() {
            self.write_output(i, slot, result)?;
            self.describe_output(dataset, i, result)?;
        }
        Ok(())
    }

    fn write_output(&self, index: usize, slot: &DatasetSlot, result: &Tensor) -> Answer {
        if result.dtype().bits().is_none() {
            let dtype = result.dtype();
            let text = format!("output {index} is of type {dtype}, which has no fixed size");
            return Err(self.inner_error(FEATURE_UNSUPPORTED, &text));
        }
        self.check_buffer_and_write(index, slot.handle, slot.buffer, result)
    }

    /// Writes a result into a buffer, allocating memory if it has no address.
    pub(crate) fn check_buffer_and_write(
        &self,
        index: usize,
        handle: Handle,
        mut buffer: DataBuffer,
        result: &Tensor,
    ) -> Answer {
        let bytes = result.host_bytes();
        let bytes =
            bytes.map_err(|error| self.inner_error(GE_INTERNAL_ERROR, &error.to_string()))?;
        // The program frees it like its other memory, so even an empty result gets an address.
        if buffer.address == 0 {
            buffer.size = bytes.len();
            buffer.address = self.malloc(bytes.len().max(1), 0)?;
            self.update_data_buffer(handle, buffer.address, buffer.size)?;
        }
        let slot = DatasetSlot {
            handle,
            buffer,
            dims: None,
        };
        self.check_length("output", index, bytes.len(), &slot)?;
        let there = &bytes[..bytes.len().min(buffer.size)];
        self.memory.write(buffer.address, there).ok_or_else(|| {
            let n = there.len();
            self.unfit(&format!(
                "{n} bytes at {:#x} cannot be written",
                buffer.address
            ))
        })
    }

    /// Sets the shape of a result in the dataset.
    fn describe_output(&self, dataset: Handle, index: usize, result: &Tensor) -> Answer {
        let dims = extents(result.shape());
        let mut objects = self.objects();
        let known = objects.datasets.find_mut(dataset)?;
        let Some(entry) = known.entries.get_mut(index) else {
            return Ok(());
        };
        let own = entry.tensor_desc;
        if let Some(desc) = objects.tensor_descs.get_mut(own) {
            // Type and format stay as described by the program.
            desc.dims = dims;
            return Ok(());
        }
        let own = self.handles.next();
        if let Some(known) = objects.datasets.get_mut(dataset) {
            known.entries[index].tensor_desc = own;
        }
        let desc = TensorDesc::new(data_type::number(result.dtype()), &dims, FORMAT_ND);
        objects.tensor_descs.insert(own, desc);
        Ok(())
    }

    fn run_model(&self, model: &AclModel, inputs: &[Tensor]) -> Answer<Vec<Tensor>> {
        let mut running = lock(&model.running);
        let step = running.n_executions;
        // Steps count executions, including those that fail or dump nothing.
        running.n_executions += 1;
        let (values, failures) = if self.is_dump_enabled() {
            let values = self.value_capture(model, &mut running, step);
            (values, self.failure_capture())
        } else {
            (None, None)
        };
        let ModelRunState { engine, taken, .. } = &mut *running;
        let execution = EngineExecution {
            engine: &mut **engine,
            inputs,
            model: &model.id,
            graph_inputs: &model.signature.inputs,
            step: Some(step),
            taken: taken.as_ref(),
            options: SessionOptions::default(),
        };
        let outcome = self.run_dumped(execution, values, failures);
        if let Some(error) = outcome.dump_error {
            let text = format!("the model runs without it only: {error}");
            self.tell_once(&mut running, &text);
        }
        let results = outcome.results.map_err(|error| {
            self.call_exception_callback(running.engine.operators(), &error);
            self.engine_error(&error)
        })?;
        let n_not_shown = outcome.n_not_shown;
        if n_not_shown > 0 && running.told.insert(NOT_SHOWN.to_owned()) {
            let name = &model.id.file_stem;
            self.log.warning(format_args!(
                "model `{name}`: {n_not_shown} tensors of an execution are not dumped: {NOT_SHOWN}"
            ));
        }
        Ok(results)
    }

    /// The dump of values for this execution, if any.
    fn value_capture(
        &self,
        model: &AclModel,
        running: &mut ModelRunState,
        step: u64,
    ) -> Option<ExecutionCapture> {
        let (plan, settings) = lock(&model.registration).current()?;
        if !plan.steps.contains(step) || !self.can_follow(model, running, plan.purpose) {
            return None;
        }
        let sink = self.dump_sink(&settings)?;
        let run = Some(settings.run.clone());
        Some(ExecutionCapture { plan, sink, run })
    }
}
