//! What an operator is called with: tensors in order, and the rest as text.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use super::kind::Kind;

/// Longest text of an argument that is kept.
const CHARACTERS_MAX: usize = 200;
/// Lists in lists beyond this are not gone into.
const N_LEVELS_MAX: usize = 16;

/// Arguments of one call.
#[derive(Default)]
pub(super) struct Arguments<'py> {
    /// Tensors, lists spread out.
    pub(super) tensors: Vec<Bound<'py, PyAny>>,
    /// Which of them the operator writes to.
    pub(super) written: Vec<usize>,
    /// Arguments that are no tensors, by position or name.
    pub(super) texts: Vec<(String, String)>,
}

impl<'py> Arguments<'py> {
    pub(super) fn new(
        kind: &Kind,
        tensor: &Bound<'py, PyType>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Arguments<'py>> {
        let mut found = Arguments::default();
        for (i, argument) in args.iter_borrowed().enumerate() {
            let mut written = kind.written.iter();
            let is_written = written.any(|w| w.position == i && w.applies(args));
            found.add(&argument, tensor, is_written, || i.to_string())?;
        }
        for (name, argument) in kwargs.into_iter().flatten() {
            let name: String = name.extract()?;
            let is_written = kind.written.iter().any(|written| written.name == name);
            found.add(&argument, tensor, is_written, || name)?;
        }
        Ok(found)
    }

    fn add(
        &mut self,
        argument: &Bound<'py, PyAny>,
        tensor: &Bound<'py, PyType>,
        is_written: bool,
        name: impl FnOnce() -> String,
    ) -> PyResult<()> {
        let n_before = self.tensors.len();
        flatten(argument, tensor, N_LEVELS_MAX, &mut |found| {
            self.tensors.extend(found.cloned());
        })?;
        let n = self.tensors.len();
        if is_written {
            self.written.extend(n_before..n);
        }
        if n == n_before && !argument.is_none() {
            self.texts.push((name(), text(argument)?));
        }
        Ok(())
    }
}

impl super::kind::Written {
    fn applies(&self, args: &Bound<'_, PyTuple>) -> bool {
        let Some(condition) = self.only_if else {
            return true;
        };
        let condition = args.get_item(condition);
        condition.is_ok_and(|condition| condition.is_truthy().unwrap_or(true))
    }
}

/// Goes through a value, of which some parts may be lists. `found` gets each tensor, and `None` for each part
/// that is none.
pub(super) fn flatten<'py>(
    value: &Bound<'py, PyAny>,
    tensor: &Bound<'py, PyType>,
    n_levels: usize,
    found: &mut dyn FnMut(Option<&Bound<'py, PyAny>>),
) -> PyResult<()> {
    if value.is_none()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyString>()
    {
        found(None);
    } else if value.get_type().is(tensor) || value.is_instance(tensor)? {
        found(Some(value));
    } else if n_levels == 0 {
        found(None);
    } else if let Ok(parts) = value.cast::<PyTuple>() {
        for part in parts.iter() {
            flatten(&part, tensor, n_levels - 1, found)?;
        }
    } else if let Ok(parts) = value.cast::<PyList>() {
        for part in parts.iter() {
            flatten(&part, tensor, n_levels - 1, found)?;
        }
    } else if let Ok(parts) = value.cast::<PyDict>() {
        for (_, part) in parts.iter() {
            flatten(&part, tensor, n_levels - 1, found)?;
        }
    } else {
        found(None);
    }
    Ok(())
}

/// Python's text of an argument, by a short way for numbers.
fn text(argument: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Some(number) = short(argument) {
        return Ok(number);
    }
    if let Ok(list) = argument.cast::<PyList>() {
        let numbers: Option<Vec<String>> = list.iter().map(|item| short(&item)).collect();
        if let Some(numbers) = numbers {
            let text = format!("[{}]", numbers.join(", "));
            return Ok(text.chars().take(CHARACTERS_MAX).collect());
        }
    }
    let text = argument.str()?;
    Ok(text
        .to_string_lossy()
        .chars()
        .take(CHARACTERS_MAX)
        .collect())
}

fn short(argument: &Bound<'_, PyAny>) -> Option<String> {
    if argument.is_exact_instance_of::<PyBool>() {
        let is_true = argument.is_truthy().ok()?;
        return Some(if is_true { "True" } else { "False" }.to_owned());
    }
    if argument.is_exact_instance_of::<PyInt>() {
        return argument.extract::<i64>().ok().map(|n| n.to_string());
    }
    None
}
