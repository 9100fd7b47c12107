//! Program functions that run between the tasks of a stream.

use pyo3::prelude::*;

use crate::argument::{NumberArg, WordArg, callable};
use crate::call::{code, process};
use crate::callback;
use crate::table::table;

table! {
    [also launch_callback, process_report]

    codes {
        /// aclrtSubscribeReport: makes a thread, with its id from `acl.util.start_thread`, run the
        /// functions of a stream.
        subscribe_report(thread_id: NumberArg<u64>, stream: WordArg)
            => process().subscribe_report(thread_id.0, stream.0);
        /// aclrtUnSubscribeReport.
        unsubscribe_report(thread_id: NumberArg<u64>, stream: WordArg)
            => process().unsubscribe_report(thread_id.0, stream.0);
    }
}

/// aclrtLaunchCallback: `fn(user_data_list)` runs when the stream reaches it, in the subscribed
/// thread.
#[pyfunction]
#[pyo3(signature = (r#fn, user_data_list, block_type, stream))]
fn launch_callback(
    py: Python<'_>,
    r#fn: &Bound<'_, PyAny>,
    user_data_list: Py<PyAny>,
    block_type: NumberArg<i32>,
    stream: WordArg,
) -> PyResult<i32> {
    let function = callable("fn", r#fn)?;
    let work = Box::new(move || {
        callback::run(&function, |py, function| {
            function.call1((user_data_list.bind(py),))
        });
    });
    Ok(code(py, || {
        process().launch_callback(work, block_type.0, stream.0)
    }))
}

/// aclrtProcessReport: runs the pending functions of the calling thread's streams, or waits for
/// some for so many milliseconds.
#[pyfunction]
fn process_report(py: Python<'_>, timeout: NumberArg<i32>) -> PyResult<i32> {
    // The result of C's `pthread_self`.
    let thread_id: u64 = py.import("_thread")?.call_method0("get_ident")?.extract()?;
    Ok(code(py, || process().process_report(thread_id, timeout.0)))
}
