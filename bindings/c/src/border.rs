//! The border between C and Rust.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use opscope_acl::{AclProcess, Answer, Status, engine_of_environment, status};
use opscope_store::guard::silence_caught_panics;

/// A status code in C.
pub(crate) type Code = i32;

/// The code of success.
pub(crate) const SUCCESS: Code = 0;

thread_local! {
    static LAST_FAILURE: Cell<Code> = const { Cell::new(SUCCESS) };
}

/// The process behind every function.
pub(crate) fn process() -> &'static AclProcess {
    AclProcess::global(|| {
        // This library contains a separate Rust runtime: no other code uses its hook.
        silence_caught_panics();
        engine_of_environment()
    })
}

/// Makes a call that returns a code. A panic becomes an internal error.
pub(crate) fn call(work: impl FnOnce() -> Answer) -> Code {
    let answer = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(status::INTERNAL_ERROR));
    let code = status::code(answer);
    if code != SUCCESS {
        LAST_FAILURE.set(code);
    }
    code
}

/// Makes a call that returns a value, or `otherwise` after a panic.
pub(crate) fn value<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// The last code of this thread that was not success.
pub(crate) fn last_failure() -> Code {
    LAST_FAILURE.get()
}

/// Like [`last_failure`], and resets it.
pub(crate) fn take_last_failure() -> Code {
    LAST_FAILURE.replace(SUCCESS)
}

/// Converts a count of type `int`.
pub(crate) fn count(n: i32) -> Answer<usize> {
    usize::try_from(n).map_err(|_| status::INVALID_PARAM)
}

/// Reports a null pointer for a required address.
pub(crate) fn null(function: &'static str, parameter: &'static str) -> Status {
    process().null_argument(function, parameter)
}
