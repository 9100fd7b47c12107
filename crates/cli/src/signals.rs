//! Signals whose default would end the command without a word.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::{emulate_default_handler, pipe};

use crate::progress;

/// Takes them over for the rest of the process: a file beyond the size limit is an error of the
/// write that meets it, and SIGUSR2 is for the steps of a run, whether or not there are any to
/// keep.
pub(crate) fn take_over() {
    // Nobody reads these flags: that there is a handler keeps the system from ending the process. A
    // write beyond the limit then fails with EFBIG.
    for signal in [SIGXFSZ, SIGUSR2] {
        // Where the system refuses, the default stays.
        let _ = flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
}

/// Signals that ask a process to end.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Cleans up when a signal ends the command. For commands that do not end themselves on a signal.
pub(crate) fn clean_before_the_end(clean: impl Fn() + Send + Sync + 'static) {
    // Where the system refuses, temporary files stay, and the next command that reads a URL removes
    // those of URLs.
    let _ = on_ending_signal(move |signal| {
        clean();
        let _ = emulate_default_handler(signal);
    });
}

/// Calls `action` for each signal that asks the process to end, on a thread that may take locks and
/// remove files: a signal handler may do neither.
///
/// # Errors
/// Where the system refuses: signals whose handler could not be set keep their default.
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

/// Notes SIGUSR2 where no run keeps steps, until it is dropped, and then says what became of it.
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
        // The handler of `take_over` stays, so that a signal after this does not end the process.
        self.id.map(signal_hook::low_level::unregister);
        if self.has_come.load(Ordering::Relaxed) {
            progress::report(
                "warning: SIGUSR2 kept nothing: it keeps steps with `--keep-last N` and the trigger \
                 `signal`",
            );
        }
    }
}
