//! Signals whose default action would silently end the command.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::{emulate_default_handler, pipe};

use crate::progress;

/// Handles them for the rest of the process: exceeding the file size limit becomes a write error,
/// and SIGUSR2 affects only the ring of steps, if there is one.
pub(crate) fn take_over() {
    // These flags are never read: a handler alone keeps the system from ending the process. Writes
    // beyond the limit then fail with EFBIG.
    for signal in [SIGXFSZ, SIGUSR2] {
        // If the system refuses, the default stays.
        let _ = flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
}

/// Signals that ask a process to end.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Cleans up when a signal ends the command, for commands that do not handle signals themselves.
pub(crate) fn clean_before_the_end(clean: impl Fn() + Send + Sync + 'static) {
    // If the system refuses, temporary files stay; the next command that reads a URL removes those
    // of URLs.
    let _ = on_ending_signal(move |signal| {
        clean();
        let _ = emulate_default_handler(signal);
    });
}

/// Calls `action` for each ending signal, on a thread that may take locks and remove files, unlike
/// a signal handler.
///
/// # Errors
///
/// If the system refuses, signals without a handler keep their default action.
pub(crate) fn on_ending_signal(action: impl Fn(i32) + Send + Sync + 'static) -> io::Result<()> {
    let action = Arc::new(action);
    for signal in ENDING {
        let (mut arrivals, notify) = UnixStream::pair()?;
        pipe::register(signal, notify)?;
        let action = action.clone();
        thread::Builder::new().spawn(move || {
            while arrivals.read_exact(&mut [0]).is_ok() {
                action(signal);
            }
        })?;
    }
    Ok(())
}

/// Records SIGUSR2 if no run keeps steps, and reports when dropped that the signal had no effect.
pub(crate) struct UnusedSignal {
    id: Option<signal_hook::SigId>,
    has_come: Arc<AtomicBool>,
}

impl UnusedSignal {
    pub(crate) fn watch() -> UnusedSignal {
        let has_come = Arc::new(AtomicBool::new(false));
        UnusedSignal {
            id: flag::register(SIGUSR2, has_come.clone()).ok(),
            has_come,
        }
    }
}

impl Drop for UnusedSignal {
    fn drop(&mut self) {
        // The handler of `take_over` stays, so a later signal does not end the process.
        self.id.map(signal_hook::low_level::unregister);
        if self.has_come.load(Ordering::Relaxed) {
            progress::report(
                "warning: SIGUSR2 kept nothing: it keeps steps with `--keep-last N` and the trigger \
                 `signal`",
            );
        }
    }
}
