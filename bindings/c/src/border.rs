//! Where C calls end and Rust begins.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use opscope_acl::{AclProcess, Answer, Status, engine_of_environment, status};
use opscope_store::guard::silence_caught_panics;

/// A code as C sees it.
pub(crate) type Code = i32;

/// A fixed number that stands for success.
pub(crate) const SUCCESS: Code = 0;

thread_local! {
    static LAST_FAILURE: Cell<Code> = const { Cell::new(SUCCESS) };
}

/// The process that every function asks.
pub(crate) fn process() -> &'static AclProcess {
    AclProcess::global(|| {
        // This library has a Rust runtime of its own: the hook is nobody else's.
        silence_caught_panics();
        engine_of_environment()
    })
}

/// Makes a call that answers with a code. A panic is an internal error.
pub(crate) fn call(work: impl FnOnce() -> Answer) -> Code {
    let answer = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(status::INTERNAL_ERROR));
    let code = status::code(answer);
    if code != SUCCESS {
        LAST_FAILURE.set(code);
    }
    code
}

/// Makes a call that answers with a value; `otherwise` is what a panic turns into.
pub(crate) fn value<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// The last code of this thread that was not success.
pub(crate) fn last_failure() -> Code {
    LAST_FAILURE.get()
}

/// As [`last_failure`], and forgets it.
pub(crate) fn take_last_failure() -> Code {
    LAST_FAILURE.replace(SUCCESS)
}

/// A count that C gives as `int`.
pub(crate) fn count(n: i32) -> Answer<usize> {
    usize::try_from(n).map_err(|_| status::INVALID_PARAM)
}

/// Reports a null pointer where an address is needed.
pub(crate) fn null(function: &'static str, parameter: &'static str) -> Status {
    process().null_argument(function, parameter)
}
