//! Functions of the program's that run between the tasks of a stream.

use pyo3::prelude::*;

use crate::argument::{NumberArg, WordArg, callable};
use crate::call::{code, process};
use crate::callback;
use crate::table::table;

table! {
    [also launch_callback, process_report]

    codes {
        /// aclrtSubscribeReport: lets a thread, whose id `acl.util.start_thread` gives, run the
        /// functions of a stream.
        subscribe_report(thread_id: NumberArg<u64>, stream: WordArg)
            => process().subscribe_report(thread_id.0, stream.0);
        /// aclrtUnSubscribeReport.
        unsubscribe_report(thread_id: NumberArg<u64>, stream: WordArg)
            => process().unsubscribe_report(thread_id.0, stream.0);
    }
}

/// aclrtLaunchCallback: `fn(user_data_list)` runs when the stream comes to it, in the thread that
/// is subscribed.
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

/// aclrtProcessReport: runs what the streams of the calling thread have to run, or waits for so
/// many milliseconds until there is something.
#[pyfunction]
fn process_report(py: Python<'_>, timeout: NumberArg<i32>) -> PyResult<i32> {
    // What C calls `pthread_self`.
    let thread_id: u64 = py.import("_thread")?.call_method0("get_ident")?.extract()?;
    Ok(code(py, || process().process_report(thread_id, timeout.0)))
}
