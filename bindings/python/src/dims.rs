//! Dictionaries that pyACL returns instead of C structures.

use opscope_acl::{Answer, NamedDims};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::argument::{ListArg, WordArg, wrong_type};

/// A dictionary, empty on failure, and the code.
pub(crate) type Described<'py> = PyResult<(Bound<'py, PyDict>, i32)>;

/// `aclmdlIODims`.
pub(crate) fn fill_dims(dict: &Bound<'_, PyDict>, dims: NamedDims) -> PyResult<()> {
    dict.set_item("name", dims.name)?;
    dict.set_item("dimCount", dims.dims.len())?;
    dict.set_item("dims", dims.dims)
}

/// Returns a dictionary filled from the answer, and the code. The dictionary is empty on failure.
pub(crate) fn described<'py, T>(
    py: Python<'py>,
    answer: Answer<T>,
    fill: impl FnOnce(&Bound<'py, PyDict>, T) -> PyResult<()>,
) -> Described<'py> {
    let dict = PyDict::new(py);
    match answer {
        Ok(value) => {
            fill(&dict, value)?;
            Ok((dict, 0))
        }
        Err(status) => Ok((dict, status.0)),
    }
}

/// The shape in the caller's dictionary: the first `dimCount` numbers of `dims`.
///
/// # Errors
///
/// `KeyError`, `TypeError` or `ValueError` if the dictionary has another structure.
pub(crate) fn extents(dict: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let members = dict
        .cast::<PyDict>()
        .map_err(|_| wrong_type("dims", dict, "a dictionary with `dimCount` and `dims`"))?;
    let WordArg(n_dims) = member(members, "dimCount")?.extract()?;
    let ListArg(mut dims): ListArg<i64> = member(members, "dims")?.extract()?;
    if dims.len() < n_dims {
        let message = format!(
            "`dimCount` is {n_dims}, but `dims` has {} numbers",
            dims.len()
        );
        return Err(PyValueError::new_err(message));
    }
    // The list corresponds to C's array of 128, of which a program may pass all.
    dims.truncate(n_dims);
    Ok(dims)
}

fn member<'py>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    dict.get_item(name)?.ok_or_else(|| {
        PyKeyError::new_err(format!(
            "dims: a dictionary with `dimCount` and `dims` is expected, `{name}` is missing"
        ))
    })
}
