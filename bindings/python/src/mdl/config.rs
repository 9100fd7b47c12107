//! Loading with options, and executing with options.

use opscope_acl::ConfigValue;
use pyo3::prelude::*;

use crate::argument::{FilePath, Number, Word, wrong_type};
use crate::call::{Pair, code, pair, value};
use crate::functions;

/// Options of `aclmdlConfigAttr` that are addresses: of the model, of weights and of work memory.
const ADDRESSES: [i32; 3] = [3, 5, 7];

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        create_config_handle,
        set_config_opt,
        load_with_config,
        destroy_config_handle,
    );
    Ok(())
}

/// aclmdlCreateConfigHandle: a handle.
#[pyfunction]
fn create_config_handle(py: Python<'_>) -> usize {
    value(py, |process| process.create_config_handle())
}

/// aclmdlSetConfigOpt: a text for the option that is a path, a number for the others.
#[pyfunction]
fn set_config_opt(
    py: Python<'_>,
    config_handle: Word,
    attr: Number<i32>,
    attr_value: &Bound<'_, PyAny>,
) -> PyResult<i32> {
    let path = attr_value.extract::<FilePath>().ok();
    let option = match &path {
        Some(path) => ConfigValue::Path(path.as_path()),
        None => {
            let number = attr_value.extract();
            let Word(number) = number.map_err(|_: PyErr| {
                wrong_type("attr_value", attr_value, "a whole number or a path")
            })?;
            if ADDRESSES.contains(&attr.0) {
                ConfigValue::Address(number)
            } else {
                ConfigValue::Number(number as u64)
            }
        }
    };
    Ok(code(py, |process| {
        process.set_config_option(config_handle.0, attr.0, option)
    }))
}

/// aclmdlLoadWithConfig: the model's id and the code.
#[pyfunction]
fn load_with_config(py: Python<'_>, config_handle: Word) -> Pair<u32> {
    pair(py, |process| process.load_with_config(config_handle.0))
}

/// aclmdlDestroyConfigHandle.
#[pyfunction]
fn destroy_config_handle(py: Python<'_>, config_handle: Word) -> i32 {
    code(py, |process| process.destroy_config_handle(config_handle.0))
}
