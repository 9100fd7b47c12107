//! Where operators would come from, if they were models of their own.

use std::sync::atomic::{AtomicBool, Ordering};

use opscope_acl::status::{INVALID_PARAM, READ_MODEL_FAILURE, REPEAT_INITIALIZE};
use pyo3::prelude::*;

use crate::argument::{FilePath, Number};
use crate::call::code;
use crate::functions;

static HAS_MODEL_DIR: AtomicBool = AtomicBool::new(false);

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module, set_model_dir, set_max_op_queue_num);
    Ok(())
}

/// aclopSetModelDir: operators need no models here, so the directory only has to exist. It can be set
/// once.
#[pyfunction]
fn set_model_dir(py: Python<'_>, model_dir: FilePath) -> i32 {
    code(py, |_| {
        if !model_dir.as_path().is_dir() {
            return Err(READ_MODEL_FAILURE);
        }
        if HAS_MODEL_DIR.swap(true, Ordering::Relaxed) {
            return Err(REPEAT_INITIALIZE);
        }
        Ok(())
    })
}

/// aclopSetMaxOpQueueNum: operators are not kept, so the number only has to be one.
#[pyfunction]
fn set_max_op_queue_num(py: Python<'_>, max_op_num: Number<u64>) -> i32 {
    code(py, |_| {
        if max_op_num.0 == 0 {
            Err(INVALID_PARAM)
        } else {
            Ok(())
        }
    })
}
