//! Events.

use pyo3::prelude::*;

use crate::argument::{Word, Word32};
use crate::call::{Pair, code, pair};
use crate::functions;

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        create_event,
        create_event_with_flag,
        destroy_event,
        record_event,
        query_event,
        synchronize_event,
        event_elapsed_time,
        stream_wait_event,
    );
    Ok(())
}

/// aclrtCreateEvent: a handle and the code.
#[pyfunction]
fn create_event(py: Python<'_>) -> Pair<usize> {
    pair(py, |process| process.create_event())
}

/// aclrtCreateEventWithFlag: a handle and the code. Every flag gives the same kind of event.
#[pyfunction]
fn create_event_with_flag(py: Python<'_>, _flag: Word32) -> Pair<usize> {
    create_event(py)
}

/// aclrtDestroyEvent.
#[pyfunction]
fn destroy_event(py: Python<'_>, event: Word) -> i32 {
    code(py, |process| process.destroy_event(event.0))
}

/// aclrtRecordEvent.
#[pyfunction]
fn record_event(py: Python<'_>, event: Word, stream: Word) -> i32 {
    code(py, |process| process.record_event(event.0, stream.0))
}

/// aclrtQueryEvent: 0 when it has happened and 1 before, and the code.
#[pyfunction]
fn query_event(py: Python<'_>, event: Word) -> Pair<i32> {
    pair(py, |process| process.query_event(event.0))
}

/// aclrtSynchronizeEvent: waits for it.
#[pyfunction]
fn synchronize_event(py: Python<'_>, event: Word) -> i32 {
    code(py, |process| process.synchronize_event(event.0))
}

/// aclrtEventElapsedTime: milliseconds from one event to another, and the code.
#[pyfunction]
fn event_elapsed_time(py: Python<'_>, start: Word, end: Word) -> Pair<f32> {
    pair(py, |process| process.event_elapsed_ms(start.0, end.0))
}

/// aclrtStreamWaitEvent.
#[pyfunction]
fn stream_wait_event(py: Python<'_>, stream: Word, event: Word) -> i32 {
    code(py, |process| process.stream_wait_event(stream.0, event.0))
}
