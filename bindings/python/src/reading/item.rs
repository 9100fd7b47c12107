//! Describing a tensor as a dictionary, without its elements.

use opscope_store::reader::IndexedTensor;

use opscope_tensor::{ElementCounts, Stats};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

pub(super) fn describe<'py>(
    py: Python<'py>,
    record: &IndexedTensor,
) -> PyResult<Bound<'py, PyDict>> {
    let tuple =
        |dims: &Option<Vec<u64>>| dims.as_ref().map(|dims| PyTuple::new(py, dims)).transpose();
    let dict = PyDict::new(py);
    let execution = &record.execution;
    let dtype = record.dtype.as_ref().map(ToString::to_string);
    let stored_dtype = record.stored_dtype.as_ref().map(ToString::to_string);
    let layout = record.layout.as_ref().map(ToString::to_string);
    let call_site = execution.call_site.as_ref();
    let collective = execution.collective.as_ref();
    let ranks = collective
        .map(|call| PyTuple::new(py, &call.ranks))
        .transpose()?;
    let placement = record.placement.as_ref().map(ToString::to_string);
    dict.set_item("module", call_site.map(|site| &*site.module))?;
    dict.set_item("collective", collective.map(|call| call.kind.to_string()))?;
    dict.set_item("group_ranks", ranks)?;
    dict.set_item("placement", placement)?;
    dict.set_item("kind", execution.kind.name())?;
    dict.set_item("op_type", execution.op_type.as_str())?;
    dict.set_item("name", execution.op_name.as_str())?;
    dict.set_item("model", execution.model.as_deref())?;
    dict.set_item("model_id", execution.model_id)?;
    dict.set_item("rank", execution.rank)?;
    dict.set_item("step", execution.model_step())?;
    dict.set_item("run", execution.run)?;
    dict.set_item("task_id", record.task_id)?;
    dict.set_item("stream_id", record.stream_id)?;
    dict.set_item("timestamp", record.timestamp)?;
    dict.set_item("side", record.slot.map(|(side, _)| side.name()))?;
    dict.set_item("slot", record.slot.map(|(_, index)| index))?;
    dict.set_item("dtype", dtype)?;
    dict.set_item("stored_dtype", stored_dtype)?;
    dict.set_item("layout", layout)?;
    dict.set_item("shape", tuple(&record.shape)?)?;
    dict.set_item("original_shape", tuple(&record.original_shape)?)?;
    dict.set_item("nbytes", record.n_bytes)?;
    dict.set_item("path", record.path.as_os_str())?;
    dict.set_item("has_elements", record.elements.is_some())?;
    let columns = PyDict::new(py);
    for (column, value) in record.statistics.iter() {
        columns.set_item(column, value.as_deref())?;
    }
    dict.set_item("columns", columns)?;
    Ok(dict)
}

pub(super) fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let counts = &stats.counts;
    for (name, count) in ElementCounts::NAMES.into_iter().zip(counts.to_array()) {
        dict.set_item(name, count)?;
    }
    dict.set_item("n_positive", counts.n_positive())?;
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
