//! Loading with options.

use opscope_acl::ConfigValue;
use pyo3::prelude::*;

use crate::argument::{FilePath, NumberArg, WordArg, wrong_type};
use crate::call::{code, process};
use crate::table::table;

/// Options of `aclmdlConfigAttr` that are addresses: of the model, of weights and of work memory.
const ADDRESSES: [i32; 3] = [3, 5, 7];

table! {
    [also set_config_opt]

    values {
        /// aclmdlCreateConfigHandle: a handle.
        create_config_handle() -> usize => process().create_config_handle(), or 0;
    }

    pairs {
        /// aclmdlLoadWithConfig: the model's id and the code.
        load_with_config(config_handle: WordArg) -> u32
            => process().load_with_config(config_handle.0);
    }

    codes {
        /// aclmdlDestroyConfigHandle.
        destroy_config_handle(config_handle: WordArg)
            => process().destroy_config_handle(config_handle.0);
    }
}

/// aclmdlSetConfigOpt: a text for the path option, a number for the others.
#[pyfunction]
fn set_config_opt(
    py: Python<'_>,
    config_handle: WordArg,
    attr: NumberArg<i32>,
    attr_value: &Bound<'_, PyAny>,
) -> PyResult<i32> {
    // The value's type decides: a wrong combination is refused with the interface's code.
    let path = attr_value.extract::<FilePath>().ok();
    let option = match &path {
        Some(path) => ConfigValue::Path(path.as_path()),
        None => {
            let number = attr_value.extract();
            let WordArg(number) = number.map_err(|_: PyErr| {
                wrong_type("attr_value", attr_value, "a whole number or a path")
            })?;
            if ADDRESSES.contains(&attr.0) {
                ConfigValue::Address(number)
            } else {
                ConfigValue::Number(number as u64)
            }
        }
    };
    Ok(code(py, || {
        process().set_config_option(config_handle.0, attr.0, option)
    }))
}
