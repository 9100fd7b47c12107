//! Describing a tensor as a dictionary, without its elements.

use opscope_analysis::catalogue::Item;
use opscope_tensor::Stats;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

pub(super) fn describe<'py>(py: Python<'py>, item: &Item) -> PyResult<Bound<'py, PyDict>> {
    let tuple =
        |dims: &Option<Vec<u64>>| dims.as_ref().map(|dims| PyTuple::new(py, dims)).transpose();
    let dict = PyDict::new(py);
    dict.set_item("kind", item.kind.name())?;
    dict.set_item("op_type", &item.op_type)?;
    dict.set_item("name", &item.op_name)?;
    dict.set_item("model", item.model.as_deref())?;
    dict.set_item("model_id", item.model_id)?;
    dict.set_item("rank", item.rank)?;
    dict.set_item("step", item.step)?;
    dict.set_item("run", item.run)?;
    dict.set_item("task_id", item.task_id)?;
    dict.set_item("stream_id", item.stream_id)?;
    dict.set_item("timestamp", item.timestamp)?;
    dict.set_item("side", item.slot.map(|(side, _)| side.name()))?;
    dict.set_item("slot", item.slot.map(|(_, index)| index))?;
    dict.set_item("dtype", item.dtype.as_deref())?;
    dict.set_item("stored_dtype", item.stored_dtype.as_deref())?;
    dict.set_item("layout", item.layout.as_deref())?;
    dict.set_item("shape", tuple(&item.shape)?)?;
    dict.set_item("original_shape", tuple(&item.original_shape)?)?;
    dict.set_item("nbytes", item.n_bytes)?;
    dict.set_item("path", item.path.as_os_str())?;
    dict.set_item("has_elements", item.elements.is_some())?;
    let columns = PyDict::new(py);
    for (column, value) in &item.statistics {
        columns.set_item(column, value.as_deref())?;
    }
    dict.set_item("columns", columns)?;
    Ok(dict)
}

pub(super) fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, count) in [
        ("n_elements", stats.n_elements),
        ("n_nan", stats.n_nan),
        ("n_pos_inf", stats.n_pos_inf),
        ("n_neg_inf", stats.n_neg_inf),
        ("n_zero", stats.n_zero),
        ("n_neg_zero", stats.n_neg_zero),
        ("n_positive", stats.n_positive),
        ("n_negative", stats.n_negative),
        ("n_subnormal", stats.n_subnormal),
        ("n_saturated", stats.n_saturated),
    ] {
        dict.set_item(name, count)?;
    }
    for (name, value) in [
        ("min", stats.min),
        ("max", stats.max),
        ("sum", stats.sum),
        ("mean", stats.mean),
        ("std", stats.std),
        ("l1", stats.l1),
        ("l2", stats.l2),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}
