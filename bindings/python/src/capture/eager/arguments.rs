//! Arguments of an operator's call: tensors in order, and the rest as text.

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple, PyType,
};

use super::kind::OperatorKind;

/// Maximum length of an argument's text.
const CHARACTERS_MAX: usize = 200;
/// Maximum length of a list's text.
const N_ITEMS_MAX: usize = 64;
/// Torch's own small types, which have their own texts.
const WORDS_OF_TORCH: [&str; 6] = [
    "dtype",
    "device",
    "layout",
    "memory_format",
    "qscheme",
    "Size",
];
/// Maximum nesting depth of lists.
const N_LEVELS_MAX: usize = 16;

/// Arguments of one call.
#[derive(Default)]
pub(super) struct CallArguments<'py> {
    /// Tensors, with lists flattened.
    pub(super) tensors: Vec<Bound<'py, PyAny>>,
    /// Those that the operator writes to.
    pub(super) written: Vec<usize>,
    /// Non-tensor arguments: `argument.` with position or name, and a text.
    pub(super) texts: Vec<(String, String)>,
}

impl<'py> CallArguments<'py> {
    pub(super) fn new(
        kind: &OperatorKind,
        tensor: &Bound<'py, PyType>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<CallArguments<'py>> {
        let mut found = CallArguments::default();
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
            self.texts
                .push((format!("argument.{}", name()), text(argument)));
        }
        Ok(())
    }
}

impl super::kind::WrittenArgument {
    fn applies(&self, args: &Bound<'_, PyTuple>) -> bool {
        let Some(condition) = self.only_if else {
            return true;
        };
        let condition = args.get_item(condition);
        // When in doubt, the argument counts as written: a needless read is better than an outdated
        // value.
        condition.is_ok_and(|condition| condition.is_truthy().unwrap_or(true))
    }
}

/// Visits a value and the items of lists. `found` receives each tensor, and `None` for every other
/// part.
pub(super) fn flatten<'py>(
    value: &Bound<'py, PyAny>,
    tensor: &Bound<'py, PyType>,
    n_levels: usize,
    found: &mut dyn FnMut(Option<&Bound<'py, PyAny>>),
) -> PyResult<()> {
    // Cheap type checks come first, because this runs for each argument of each operator.
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

/// The text of an argument that is a scalar, a text, or a short list of these; otherwise the name
/// of its type. The argument's own code never runs: it may be slow, or have side effects.
fn text(argument: &Bound<'_, PyAny>) -> String {
    if let Some(text) = scalar(argument) {
        return text;
    }
    let (open, close) = match () {
        () if argument.is_exact_instance_of::<PyList>() => ("[", "]"),
        () if argument.is_exact_instance_of::<PyTuple>() => ("(", ")"),
        () => return kind_of(argument),
    };
    let n_items = argument.len().unwrap_or(usize::MAX);
    if n_items > N_ITEMS_MAX {
        return format!("{} of {n_items}", kind_of(argument));
    }
    let items = argument.try_iter().into_iter().flatten().flatten();
    let items: Vec<String> = items
        .map(|item| scalar(&item).unwrap_or_else(|| kind_of(&item)))
        .collect();
    let text = format!("{open}{}{close}", items.join(", "));
    cut(&text)
}

/// For numbers, texts, and torch's dtypes, devices and similar; otherwise `None`.
fn scalar(argument: &Bound<'_, PyAny>) -> Option<String> {
    if argument.is_none() {
        return Some("None".to_owned());
    }
    if argument.is_exact_instance_of::<PyBool>() {
        let is_true = argument.is_truthy().ok()?;
        return Some(if is_true { "True" } else { "False" }.to_owned());
    }
    if let Ok(number) = argument.cast_exact::<PyInt>() {
        // Python formats long numbers in quadratic time.
        let found = number.extract::<i64>().map(|n| n.to_string());
        return Some(found.unwrap_or_else(|_| "int of more than 64 bits".to_owned()));
    }
    if let Ok(text) = argument.cast_exact::<PyString>() {
        return Some(cut(&start_of(text)));
    }
    let is_plain = argument.is_exact_instance_of::<PyFloat>()
        || argument.is_exact_instance_of::<PyComplex>()
        || is_word_of_torch(argument);
    is_plain
        .then(|| argument.str().ok())
        .flatten()
        .map(|text| cut(&text.to_string_lossy()))
}

/// The first characters, without copying the rest.
fn start_of(text: &Bound<'_, PyString>) -> String {
    let is_long = text.len().is_ok_and(|n| n > CHARACTERS_MAX);
    if !is_long {
        return text.to_string_lossy().into_owned();
    }
    let start = text
        .as_any()
        .get_item(PySlice::new(text.py(), 0, CHARACTERS_MAX as isize, 1));
    start
        .and_then(|start| {
            Ok(start
                .cast_into::<PyString>()?
                .to_string_lossy()
                .into_owned())
        })
        .unwrap_or_default()
}

fn is_word_of_torch(argument: &Bound<'_, PyAny>) -> bool {
    let kind = argument.get_type();
    let is_of_torch = kind.module().is_ok_and(|module| module == "torch");
    is_of_torch
        && kind
            .name()
            .is_ok_and(|name| WORDS_OF_TORCH.iter().any(|word| name == *word))
}

fn kind_of(argument: &Bound<'_, PyAny>) -> String {
    let name = argument.get_type().name();
    name.map_or_else(|_| "object".to_owned(), |name| cut(&name.to_string_lossy()))
}

fn cut(text: &str) -> String {
    text.chars().take(CHARACTERS_MAX).collect()
}
