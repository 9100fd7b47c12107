//! The page of an ongoing run.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use opscope_dump::OpenDump;
use opscope_view::{LiveDump, RunProgress, RunningPage};

use super::run_model::{is_signalled, stop_on_signal};
use crate::commands::saved_result::program;
use crate::commands::view::{self, ServerArguments};
use crate::console::{self, line, report};
use crate::exit::{CommandFailure, CommandResult, INTERRUPTED, USAGE, chain};

/// Threads that read the dump for the page; the run needs the rest.
const N_THREADS: usize = 1;
/// Interval between checks whether the user wants to leave.
const BETWEEN_CHECKS: Duration = Duration::from_millis(50);

/// A page that shows operators as they are written.
pub(super) struct LivePage {
    page: RunningPage,
    is_over: Arc<AtomicBool>,
    follower: JoinHandle<LiveDump>,
}

impl LivePage {
    /// Starts serving the dump and prints the address, to standard error if standard output belongs
    /// to a program.
    pub(super) fn begin(
        dump: &OpenDump,
        run: RunProgress,
        server: &ServerArguments,
        is_json: bool,
    ) -> CommandResult<LivePage> {
        let place = dump.written_place();
        let root = place.map(|place| place.root);
        let root = root.ok_or_else(|| {
            CommandFailure::message(USAGE, "`--view` shows a dump, but this run writes none")
        })?;
        let mut live = LiveDump::new(&root, run, N_THREADS, &program());
        let page = view::bind(live.runs(), live.state(), server, N_THREADS + 1)?;
        let page = page.start().map_err(view::failure)?;
        if is_json {
            report!("{}", page.address());
        } else {
            line!(console::out(), "{}", page.address())?;
            console::out().flush()?;
        }
        view::open_unless_asked(server, page.address());
        let is_over = Arc::new(AtomicBool::new(false));
        // A separate thread follows the dump, so that the run never waits for it.
        let (shown, flag) = (page.runs().clone(), is_over.clone());
        let follower = thread::spawn(move || {
            live.follow(&shown, &flag);
            live
        });
        Ok(LivePage {
            page,
            is_over,
            follower,
        })
    }

    /// Shows the whole dump until Ctrl-C, unless Ctrl-C has already ended the run.
    pub(super) fn finish(self, result: &CommandResult) {
        self.is_over.store(true, Ordering::Release);
        let failure = result.as_ref().err();
        // A user who interrupts the run wants the prompt back. The follower only reads, so it may
        // end with the process.
        if failure.is_some_and(|failure| failure.code == INTERRUPTED) {
            self.page.stop();
            return;
        }
        let live = match self.follower.join() {
            Ok(live) => live,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let text = failure.and_then(|failure| failure.error.as_ref());
        live.finish(self.page.runs(), text.map(|error| chain(error.as_ref())));
        report!("the page is shown until Ctrl-C");
        stop_on_signal(Arc::default());
        // An earlier signal, just after the run ended, is meant for the page.
        while !is_signalled() {
            thread::sleep(BETWEEN_CHECKS);
        }
        self.page.stop();
    }
}
