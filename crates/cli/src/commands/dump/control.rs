//! Switching the dump while a model runs: by a control file or SIGUSR1.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use opscope_capture::{Plan, SessionControl, Tap};
use opscope_config::{ControlConfig, ControlRequests as ControlFile, FileStamp};
use opscope_dump::DumpRequest;
use signal_hook::consts::SIGUSR1;

use super::RunArguments;
use super::request::{ConfigSource, refused};
use crate::exit::{CommandFailure, CommandResult, PARTIAL, USAGE, chain};
use crate::progress;

/// Interval between checks of the control file.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Byte that ends the watching thread; the signal handler writes another one.
const END: u8 = b'E';

/// How to switch the dump while the model runs.
#[derive(clap::Args)]
#[command(next_help_heading = "Control while running")]
pub(crate) struct ControlArguments {
    /// Watch this JSON file while the model runs: `{"enabled": false}` switches the dump off from
    /// the next step on, `"config"` replaces the configuration. SIGUSR1 re-reads it at once;
    /// without this option SIGUSR1 switches the dump off and on
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
}

/// Watches signals and the control file for all models of a command.
pub(crate) struct RemoteControl<'a> {
    arguments: &'a RunArguments,
    request: &'a DumpRequest,
    /// Whether operators run without a model.
    is_single: bool,
    /// A byte for each signal.
    signals: UnixStream,
    waker: UnixStream,
    state: Mutex<RequestedState>,
}

/// The state requested last.
struct RequestedState {
    is_enabled: bool,
    /// `None` means the plan of the command line.
    plan: Option<Plan>,
    /// The control file when last seen; `None` if it was missing.
    stamp: Option<FileStamp>,
}

/// Requests in a control file.
#[derive(Default)]
struct ControlWish {
    is_enabled: Option<bool>,
    plan: Option<Plan>,
}

impl<'a> RemoteControl<'a> {
    /// Handles SIGUSR1, so that it no longer ends the process, and reads an existing control file.
    pub(crate) fn start(
        arguments: &'a RunArguments,
        request: &'a DumpRequest,
        is_single: bool,
    ) -> CommandResult<RemoteControl<'a>> {
        let (signals, waker) = listen(arguments.control.control.is_some()).map_err(|error| {
            let error = anyhow!(error).context("cannot listen to signals");
            CommandFailure::new(PARTIAL, error)
        })?;
        let remote = RemoteControl {
            arguments,
            request,
            is_single,
            signals,
            waker,
            state: Mutex::new(RequestedState {
                is_enabled: true,
                plan: None,
                stamp: None,
            }),
        };
        if let Some(path) = &arguments.control.control {
            let stamp = FileStamp::read(path);
            let wish = stamp.map_or_else(|| Ok(ControlWish::default()), |_| remote.read(path))?;
            let mut state = remote.state();
            state.stamp = stamp;
            state.apply(wish);
        }
        Ok(remote)
    }

    /// Passes the requests so far to a session before models are attached to it.
    pub(super) fn begin(&self, control: &SessionControl) -> CommandResult {
        let state = self.state();
        control
            .change(Some(state.is_enabled), state.plan.clone())
            .map_err(|error| CommandFailure::new(USAGE, error))
    }

    /// Does `work` and switches `control` meanwhile.
    pub(super) fn during<T>(
        &self,
        control: &SessionControl,
        work: impl FnOnce() -> T,
    ) -> CommandResult<T> {
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            thread::Builder::new()
                .name("opscope-control".to_owned())
                .spawn_scoped(scope, || self.watch(control, &is_done))
                .map_err(|error| {
                    CommandFailure::new(PARTIAL, anyhow!(error).context("cannot start a thread"))
                })?;
            // Also when `work` panics, because the scope waits for the thread.
            let _end = WatchEnd {
                is_done: &is_done,
                waker: &self.waker,
            };
            Ok(work())
        })
    }

    fn watch(&self, control: &SessionControl, is_done: &AtomicBool) {
        loop {
            let n_signals = self.wait();
            match &self.arguments.control.control {
                Some(path) => self.look(path, control, n_signals > 0),
                None => {
                    // Counts signals that came at about the same time, or two of them would switch
                    // once.
                    for _ in 0..n_signals {
                        self.state().is_enabled = control.toggle();
                    }
                }
            }
            // Checked last, so that a signal at the very end still reaches the next model.
            if is_done.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Waits for signals or the next check of the control file; returns the number of signals.
    fn wait(&self) -> usize {
        let mut bytes = [0; 64];
        match (&self.signals).read(&mut bytes) {
            Ok(n) => bytes[..n].iter().filter(|&&byte| byte != END).count(),
            Err(error) => {
                let is_expected = matches!(
                    error.kind(),
                    // A read that times out returns one of the first two kinds, depending on the
                    // system.
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                );
                if !is_expected {
                    // An error that recurs at once must not keep a processor busy.
                    thread::sleep(LOOK_INTERVAL);
                }
                0
            }
        }
    }

    /// Applies the control file if it changed, or if `is_asked`.
    fn look(&self, path: &Path, control: &SessionControl, is_asked: bool) {
        // Stamped before the file is read, so that a change in between is noticed next time.
        let stamp = FileStamp::read(path);
        let mut state = self.state();
        if !is_asked && stamp == state.stamp {
            return;
        }
        // Also stored for a refused file, so that it is reported once.
        state.stamp = stamp;
        // Removing the file changes nothing, but a signal expects one.
        if stamp.is_none() && !is_asked {
            return;
        }
        let followed = self.read(path).and_then(|wish| {
            control
                .change(wish.is_enabled, wish.plan.clone())
                .map_err(|error| CommandFailure::new(USAGE, error))?;
            Ok(wish)
        });
        match followed {
            // Models that run later begin with the last request.
            Ok(wish) => state.apply(wish),
            Err(failure) => {
                let reason = failure
                    .error
                    .map_or_else(String::new, |e| chain(e.as_ref()));
                let path = path.display();
                progress::report(&format!("warning: `{path}` changes nothing: {reason}"));
            }
        }
    }

    fn read(&self, path: &Path) -> CommandResult<ControlWish> {
        let text = opscope_config::read_text(path)?;
        let env = crate::commands::environment()?;
        let file = ControlFile::parse(&text, &env).map_err(|issues| refused(path, &issues))?;
        let plan = match &file.config {
            None => None,
            Some(ControlConfig::File(path)) => {
                let text = opscope_config::read_text(path)?;
                Some(self.plan(&ConfigSource::file(path, &text))?)
            }
            Some(ControlConfig::Inline(text)) => {
                let pointer = ControlFile::CONFIG_POINTER;
                Some(self.plan(&ConfigSource {
                    path,
                    text,
                    pointer,
                })?)
            }
        };
        Ok(ControlWish {
            is_enabled: file.enabled,
            plan,
        })
    }

    /// Returns the plan of another configuration, which must write in the form and place of the
    /// running dump.
    fn plan(&self, source: &ConfigSource<'_>) -> CommandResult<Plan> {
        let mut request = self.arguments.request_of(source)?;
        if self.is_single {
            request = request.for_single_operators();
        }
        let plan = self.request.plan_to_continue_with(request);
        plan.map_err(|message| CommandFailure::message(USAGE, message))
    }

    /// No caller leaves the state half-updated, so a poisoned lock is usable.
    fn state(&self) -> MutexGuard<'_, RequestedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestedState {
    fn apply(&mut self, wish: ControlWish) {
        self.is_enabled = wish.is_enabled.unwrap_or(self.is_enabled);
        self.plan = wish.plan.or(self.plan.take());
    }
}

/// Ends the watching thread.
struct WatchEnd<'a> {
    is_done: &'a AtomicBool,
    waker: &'a UnixStream,
}

impl Drop for WatchEnd<'_> {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        let mut waker = self.waker;
        // If the write fails, bytes are waiting that wake the thread as well.
        let _ = waker.write(&[END]);
    }
}

/// Makes every SIGUSR1 write a byte; returns both ends of the socket.
fn listen(has_file: bool) -> io::Result<(UnixStream, UnixStream)> {
    // A socket, because the standard library's pipes have no read timeout.
    let (signals, waker) = UnixStream::pair()?;
    // Without a file there is nothing to check between signals.
    signals.set_read_timeout(has_file.then_some(LOOK_INTERVAL))?;
    // A signal handler must never wait. A full socket wakes the thread anyway.
    waker.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGUSR1, waker.try_clone()?)?;
    Ok((signals, waker))
}

/// Dump state reported last, so that each change is reported once, with its step.
pub(super) struct ControlNotices {
    is_enabled: bool,
    plan: Arc<Plan>,
}

impl ControlNotices {
    /// Begins with the state of a tap that was just attached.
    pub(super) fn new(tap: &Tap) -> ControlNotices {
        ControlNotices {
            is_enabled: true,
            plan: tap.plan().clone(),
        }
    }

    /// Reports changes at `step`; returns whether the plan changed.
    pub(super) fn report(&mut self, tap: &Tap, step: u64) -> bool {
        let is_enabled = tap.is_enabled();
        if is_enabled != self.is_enabled {
            let word = if is_enabled { "on" } else { "off" };
            progress::report(&format!("dump {word} from step {step}"));
            self.is_enabled = is_enabled;
        }
        let has_new_plan = !Arc::ptr_eq(tap.plan(), &self.plan);
        if has_new_plan {
            progress::report(&format!("another configuration from step {step}"));
            self.plan = tap.plan().clone();
        }
        has_new_plan
    }
}
