//! Reports of a session, as dictionaries.

use std::sync::atomic::Ordering;

use opscope_capture::{Counters, FirstNonFinite, SessionSummary};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::shared::TorchSessionState;

/// The counts.
pub(super) fn counters<'py>(
    py: Python<'py>,
    counters: &Counters,
    shared: &TorchSessionState,
) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    for (name, n) in counters.fields() {
        report.set_item(name, n)?;
    }
    report.set_item("n_dropped", counters.n_dropped)?;
    let dropped = PyDict::new(py);
    for (reason, n) in counters.dropped.by_reason() {
        dropped.set_item(reason, n)?;
    }
    report.set_item("dropped", dropped)?;
    let (unseen, first_fault) = shared.notes();
    report.set_item("unseen", unseen)?;
    report.set_item("first_fault", first_fault)?;
    let devices = shared.devices.as_ref();
    let counts = devices.map(|link| [&link.n_reduced, &link.n_copied]);
    let [n_reduced, n_copied] =
        counts.map_or([0, 0], |counts| counts.map(|n| n.load(Ordering::Relaxed)));
    let n_copied_at_once = shared.n_copied_from_device.load(Ordering::Relaxed);
    report.set_item("n_reduced_on_device", n_reduced)?;
    report.set_item("n_copied_from_device", n_copied_at_once + n_copied)?;
    for (name, n) in [
        ("n_graphs", &shared.n_graphs),
        ("n_runs_failed", &shared.n_runs_failed),
    ] {
        report.set_item(name, n.load(Ordering::Relaxed))?;
    }
    Ok(report)
}

/// The counts, and the first events. `refused` are tensors that the dump's form cannot store, by
/// reason.
pub(super) fn summary<'py>(
    py: Python<'py>,
    summary: &SessionSummary,
    refused: Vec<(String, u64)>,
    shared: &TorchSessionState,
) -> PyResult<Bound<'py, PyDict>> {
    let report = counters(py, &summary.counters, shared)?;
    let by_reason = PyDict::new(py);
    for (reason, n) in refused {
        by_reason.set_item(reason, n)?;
    }
    report.set_item("refused", by_reason)?;
    let error = summary.first_error.as_ref().map(ToString::to_string);
    report.set_item("first_error", error)?;
    report.set_item("is_ended_by_failure", summary.is_ended_by_failure)?;
    let first = summary.first_non_finite.as_ref();
    let first = first.map(|first| non_finite(py, first)).transpose()?;
    report.set_item("first_non_finite", first)?;
    let deliberate = &summary.deliberate_infinities;
    let wanted = PyDict::new(py);
    wanted.set_item("n_operators", deliberate.n_operators)?;
    let first = deliberate.first.as_ref();
    let first = first.map(|first| non_finite(py, first)).transpose()?;
    wanted.set_item("first", first)?;
    report.set_item("deliberate_infinities", wanted)?;
    Ok(report)
}

fn non_finite<'py>(py: Python<'py>, first: &FirstNonFinite) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    report.set_item("step", first.step)?;
    report.set_item("graph", &first.graph)?;
    report.set_item("module", &*first.call_site.module)?;
    report.set_item("source", &*first.call_site.source)?;
    report.set_item("element", first.element)?;
    report.set_item("value", first.value)?;
    report.set_item("needed", first.needed)?;
    report.set_item("origin", first.origin.name())?;
    report.set_item("task_id", first.task_id)?;
    report.set_item("op_type", &first.op_type)?;
    report.set_item("op_name", &first.op_name)?;
    report.set_item("side", first.side.name())?;
    report.set_item("index", first.index)?;
    report.set_item("n_nan", first.counts.n_nan)?;
    report.set_item("n_positive_inf", first.counts.n_pos_inf)?;
    report.set_item("n_negative_inf", first.counts.n_neg_inf)?;
    Ok(report)
}
