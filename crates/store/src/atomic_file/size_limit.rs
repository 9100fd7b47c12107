//! Writing under a limit on the size of files (`RLIMIT_FSIZE`, `ulimit -f`).
//!
//! A write beyond it sends SIGXFSZ to the thread that writes, which ends a process that has not
//! configured the signal. Dispositions belong to the host, so the signal is blocked in the writing
//! thread only and removed from the queue before the thread continues. Only the error `EFBIG`
//! remains.

use std::io;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Does `write` on this thread; a file that would become too large is an error and nothing more.
pub(super) fn without_signal<T>(write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let is_limited =
        getrlimit(Resource::RLIMIT_FSIZE).is_ok_and(|(limit, _)| limit != RLIM_INFINITY);
    if !is_limited {
        return write();
    }
    let signal = SigSet::from(Signal::SIGXFSZ);
    let Ok(before) = signal.thread_swap_mask(SigmaskHow::SIG_BLOCK) else {
        return write();
    };
    let result = write();
    // A write that went through sent no signal, and where the host itself blocks the signal, the
    // old mask lets nothing through.
    let is_free = result.is_ok() || before.contains(Signal::SIGXFSZ) || take(&signal).is_ok();
    if is_free {
        // It was set a moment ago by the same call.
        let _ = before.thread_set_mask();
    }
    result
}

/// Takes the signal out of this thread's queue, if it is there. Where that fails the signal has to
/// stay held back: it would end the process.
fn take(signal: &SigSet) -> nix::Result<()> {
    let queue = SignalFd::with_flags(signal, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    queue.read_signal().map(drop)
}
