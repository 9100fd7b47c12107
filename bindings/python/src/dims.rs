//! Dictionaries that pyACL returns in place of C's structures.

use opscope_acl::{Answer, Dims};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::argument::{List, Word, wrong_type};

/// A dictionary, or an empty one where the call failed, beside the code.
pub(crate) type Described<'py> = PyResult<(Bound<'py, PyDict>, i32)>;

/// `aclmdlIODims`.
pub(crate) fn dict<'py>(py: Python<'py>, dims: &Dims) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &dims.name)?;
    dict.set_item("dimCount", dims.dims.len())?;
    dict.set_item("dims", &dims.dims)?;
    Ok(dict)
}

/// Returns the result of a function that describes something: a dictionary filled from the answer,
/// and the code. The dictionary is empty where the call fails.
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

/// The extents in a dictionary of the caller's: the first `dimCount` numbers of `dims`.
///
/// # Errors
/// `KeyError`, `TypeError` or `ValueError` if it is not laid out so.
pub(crate) fn extents(dict: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let lacking = |name: &str| {
        format!("dims: a dictionary with `dimCount` and `dims` is expected, `{name}` is missing")
    };
    let member = |name: &'static str| {
        let members = dict.cast::<PyDict>();
        let members = members
            .map_err(|_| wrong_type("dims", dict, "a dictionary with `dimCount` and `dims`"))?;
        let found = members.get_item(name)?;
        found.ok_or_else(|| PyKeyError::new_err(lacking(name)))
    };
    let n_dims: Word = member("dimCount")?.extract()?;
    let n_dims = n_dims.0;
    let List(mut dims): List<i64> = member("dims")?.extract()?;
    if dims.len() < n_dims {
        let message = format!(
            "`dimCount` is {n_dims}, but `dims` has {} numbers",
            dims.len()
        );
        return Err(pyo3::exceptions::PyValueError::new_err(message));
    }
    dims.truncate(n_dims);
    Ok(dims)
}
