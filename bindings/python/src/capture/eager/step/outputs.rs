//! The results of an operator, and the arguments that it writes to.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;

use super::EagerStep;
use crate::capture::eager::arguments::flatten;
use crate::capture::eager::call::PendingOperator;
use crate::capture::eager::lock::lock;
use crate::capture::eager::look::ReadableTensor;
use crate::capture::eager::noted::CallOutput;
use crate::capture::eager::values::{ElementPlace, Pin, ValueContent};
use crate::capture::reason::UnseenReason;

/// A tensor with the name that the program gives to it.
type NamedTensor<'py> = (Bound<'py, PyAny>, Arc<str>);

/// Maximum nesting depth of results.
const N_LEVELS_MAX: usize = 16;

impl EagerStep {
    /// Returns the operator's result tensors, then written arguments that are not among them, then
    /// the program's tensors in written memory, such as the parameters in one buffer.
    pub(super) fn see_outputs(
        &self,
        begun: &PendingOperator,
        result: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<CallOutput>> {
        let py = result.py();
        let mut results: Vec<Option<Bound<'_, PyAny>>> = Vec::new();
        let tensor = self.inner.tensor.bind(py);
        flatten(result, tensor, N_LEVELS_MAX, &mut |part| {
            results.push(part.cloned());
        })?;
        let is_list = !matches!(results.as_slice(), [Some(only)] if only.is(result));
        // `flatten` takes `None` for a single result that is not a tensor.
        if result.is_none() {
            results.clear();
        }
        let mut given: Vec<usize> = (results.iter().flatten())
            .map(|part| part.as_ptr().addr())
            .collect();
        // A collective returns all meaningful outputs: in `reduce` only one rank receives the
        // result.
        let written = begun.collective.is_none().then_some(&begun.written);
        for object in written.into_iter().flatten() {
            // In-place operators usually return the argument that they write to, which is one
            // output.
            if !given.contains(&object.as_ptr().addr()) {
                given.push(object.as_ptr().addr());
                results.push(Some(object.bind(py).clone()));
            }
        }
        let is_list = is_list || results.len() > 1;
        let mut outputs = Vec::with_capacity(results.len());
        let mut covered = Vec::new();
        for (i, part) in results.iter().enumerate() {
            let Some(part) = part else {
                outputs.push(CallOutput {
                    name: "".into(),
                    tensor: None,
                    given_name: None,
                    placement: None,
                });
                continue;
            };
            let name = begun.result_name(i, is_list);
            let reason = begun.reason(i);
            covered.extend(self.add_output(&mut outputs, begun, part, (name, reason))?);
        }
        for (tensor, given_name) in covered {
            let mut listed = outputs.iter().map(|output| output.given_name.as_ref());
            if !listed.any(|name| name == Some(&given_name)) {
                let name = begun.result_name(outputs.len(), true);
                let reason = begun.reason(0);
                self.add_output(&mut outputs, begun, &tensor, (name, reason))?;
                if let Some(output) = outputs.last_mut() {
                    output.given_name = Some(given_name);
                }
            }
        }
        Ok(outputs)
    }

    /// Adds an output; several for a tensor with parts. Returns other tensors of the program that
    /// the operator wrote to through it, with their names.
    fn add_output<'py>(
        &self,
        outputs: &mut Vec<CallOutput>,
        begun: &PendingOperator,
        object: &Bound<'py, PyAny>,
        (name, reason): (Arc<str>, Option<UnseenReason>),
    ) -> PyResult<Vec<NamedTensor<'py>>> {
        let mut covered = Vec::new();
        match self.inner.look(object) {
            Ok(looked) => {
                let (output, within) = self.output(begun, object, looked, (name, reason))?;
                outputs.push(output);
                covered = within;
            }
            Err(found) => {
                let is_read = begun.is_selected && self.inner.chooser.wants_outputs();
                if let (Some(reason), true) = (&reason, is_read) {
                    self.inner.shared.note_unseen(reason);
                }
                let is_read = is_read && reason.is_none();
                let parts = self.parts(object, found, is_read, &name);
                let parts = parts.into_iter();
                outputs.extend(parts.map(|(name, tensor)| CallOutput {
                    name,
                    tensor,
                    given_name: None,
                    placement: None,
                }));
            }
        }
        Ok(covered)
    }

    fn output<'py>(
        &self,
        begun: &PendingOperator,
        object: &Bound<'py, PyAny>,
        mut looked: ReadableTensor<'py>,
        (name, reason): (Arc<str>, Option<UnseenReason>),
    ) -> PyResult<(CallOutput, Vec<NamedTensor<'py>>)> {
        let inner = &self.inner;
        let placement = looked.placement.clone();
        let is_read = begun.is_selected && inner.chooser.wants_outputs();
        // By the end of a collective torch has updated its version counters.
        let is_written =
            begun.collective.is_none() && begun.written.iter().any(|written| written.is(object));
        if let Some(found) = &mut looked.found {
            // Torch updates a view's version counter only after the operator.
            let memory = begun.inputs.iter().filter_map(|input| input.memory);
            let same = memory
                .clone()
                .find(|(storage, _)| *storage == found.storage);
            if begun.collective.is_none() {
                found.version = same.map_or(found.version, |(_, version)| version);
            }
        }
        let known = match &looked.found {
            Some(found) if reason.is_none() => lock(&inner.values).find(found).1,
            _ => ValueContent::None,
        };
        let (mut tensor, mut fresh) = (None, known.clone());
        if let Some(reason) = reason {
            fresh = ValueContent::Unseen(reason);
        }
        if let (ValueContent::Unseen(reason), true) = (&fresh, is_read) {
            inner.shared.note_unseen(reason);
        } else if is_read {
            tensor = inner.again(&looked, &known);
            if tensor.is_none() {
                (tensor, fresh) = self.read(&looked);
            }
        }
        let (mut given_name, mut covered) = (None, Vec::new());
        if let Some(found) = looked.found {
            let pin: Pin = inner.pin(&looked.subject, found.storage)?;
            if is_written {
                let within = lock(&inner.values).named_within(&found);
                let own = within
                    .iter()
                    .find(|(place, _)| place.is_dense_as(&found.place));
                given_name = own.map(|(_, name)| name.clone());
                if own.is_none() {
                    covered = tensors_at(&looked.subject, &found.place, within)?;
                }
            }
            let mut values = lock(&inner.values);
            // A collective returns before its result is ready.
            if begun.kind.is_late && begun.collective.is_none() {
                values.write(found.storage, pin, name.clone(), true);
            }
            values.record(found, pin, name.clone(), fresh, is_written);
        }
        let output = CallOutput {
            name,
            tensor,
            given_name,
            placement,
        };
        Ok((output, covered))
    }
}

fn row_major(dims: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis] as isize;
    }
    strides
}

/// Views of the memory of a plain tensor at other places of the same dtype.
fn tensors_at<'py>(
    object: &Bound<'py, PyAny>,
    own: &ElementPlace,
    places: Vec<(ElementPlace, Arc<str>)>,
) -> PyResult<Vec<NamedTensor<'py>>> {
    let py = object.py();
    let first: usize = object
        .call_method0(intern!(py, "storage_offset"))?
        .extract()?;
    let size = own.dtype.bytes().unwrap_or(1);
    let origin = own.address - first * size;
    let places = places.into_iter();
    let alike =
        places.filter(|(place, _)| place.dtype == own.dtype && place.is_lazy == own.is_lazy);
    let tensors = alike.map(|(place, name)| {
        let strides = place
            .strides
            .unwrap_or_else(|| row_major(place.shape.dims()));
        let offset = (place.address - origin) / size;
        let arguments = (place.shape.dims(), strides, offset);
        let view = object.call_method1(intern!(py, "as_strided"), arguments)?;
        Ok((view, name))
    });
    tensors.collect()
}
