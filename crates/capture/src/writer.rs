//! The threads between queue and sink.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use opscope_store::record::Record;
use opscope_tensor::non_finite;

use crate::counters::add;
use crate::queue::cost;
use crate::session::Shared;
use crate::{FirstNonFinite, SinkError};

/// Writes records until the queue is closed and empty.
pub(crate) fn run(shared: &Shared) {
    while let Some((order, record)) = shared.queue.pop() {
        let bytes = cost(&record);
        write(shared, order, &record);
        drop(record);
        shared.queue.release(bytes);
    }
}

fn write(shared: &Shared, order: u64, record: &Record) {
    // A sink that panics must not take the host's thread, or the other records, with it.
    let result = catch_unwind(AssertUnwindSafe(|| {
        note_non_finite(shared, order, record);
        shared.sink.write(record)
    }));
    let result = result.unwrap_or_else(|panic| Err(SinkError::Panicked(panic_text(&*panic))));
    let counters = &shared.counters;
    match result {
        Ok(written) => {
            add(&counters.n_operators_written, 1);
            add(&counters.n_written, record.n_slots());
            add(&counters.n_files, written.n_files);
            add(&counters.n_bytes_written, written.n_bytes);
        }
        Err(error) => {
            add(&counters.n_failed, record.n_slots());
            let mut first = shared
                .first_error
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
        }
    }
}

/// Remembers the earliest operator, in execution order, that holds NaN or an infinity.
fn note_non_finite(shared: &Shared, order: u64, record: &Record) {
    let found = record.slots().find_map(|(side, index, tensor)| {
        let counts = non_finite(tensor.view());
        counts.any().then_some((side, index, counts))
    });
    let Some((side, index, counts)) = found else {
        return;
    };
    let mut first = shared
        .first_non_finite
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if first.as_ref().is_none_or(|(earlier, _)| order < *earlier) {
        let operator = &record.operator;
        *first = Some((
            order,
            FirstNonFinite {
                step: record.step,
                task_id: operator.task_id,
                op_type: operator.op_type.clone(),
                op_name: operator.op_name.clone(),
                side,
                index,
                counts,
            },
        ));
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
