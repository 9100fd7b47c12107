//! Events.

use crate::argument::{Word32Arg, WordArg};
use crate::call::process;
use crate::table::table;

table! {
    pairs {
        /// aclrtCreateEvent: a handle and the code.
        create_event() -> usize => process().create_event();
        /// aclrtCreateEventWithFlag: a handle and the code. The flag has no effect.
        create_event_with_flag(_flag: Word32Arg) -> usize => process().create_event();
        /// aclrtQueryEvent: 0 after it has happened and 1 before, and the code.
        query_event(event: WordArg) -> i32 => process().query_event(event.0);
        /// aclrtEventElapsedTime: milliseconds from one event to another, and the code.
        event_elapsed_time(start: WordArg, end: WordArg) -> f32
            => process().event_elapsed_ms(start.0, end.0);
    }

    codes {
        /// aclrtDestroyEvent.
        destroy_event(event: WordArg) => process().destroy_event(event.0);
        /// aclrtRecordEvent.
        record_event(event: WordArg, stream: WordArg) => process().record_event(event.0, stream.0);
        /// aclrtSynchronizeEvent: waits for an event.
        synchronize_event(event: WordArg) => process().synchronize_event(event.0);
        /// aclrtStreamWaitEvent.
        stream_wait_event(stream: WordArg, event: WordArg)
            => process().stream_wait_event(stream.0, event.0);
    }
}
