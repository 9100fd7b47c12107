//! One progress bar on standard error, if that is a terminal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use opscope_analysis::compare::measure::SlotProgress;

use crate::console;

const COMPARING: &str = "comparing";
const STYLE_BYTES: &str =
    "{msg} [{bar:30}] {bytes}/{total_bytes} {decimal_bytes_per_sec}, {eta} left";
const STYLE_COUNT: &str = "{msg} [{bar:30}] {pos}/{len} operators, {eta} left";
const STYLE_TENSORS: &str = "{msg} [{bar:30}] {pos}/{len} tensors, {eta} left";
const REFRESH: Duration = Duration::from_millis(100);

/// A bar over `n_bytes` bytes; invisible unless standard error is a terminal.
pub(crate) fn bytes_bar(message: &'static str, n_bytes: u64) -> ProgressBar {
    bar(message, n_bytes, STYLE_BYTES)
}

/// Runs `work` under a bar that polls `position`.
pub(crate) fn with_operator_bar<T>(
    message: &'static str,
    n_operators: u64,
    position: impl Fn() -> u64 + Sync,
    work: impl FnOnce() -> T,
) -> T {
    if !console::is_talk_terminal() {
        return work();
    }
    let bar = bar(message, n_operators, STYLE_COUNT);
    polled(&bar, || bar.set_position(position()), work)
}

/// Runs `work`, which compares dumps, under a bar of tensors.
pub(crate) fn with_comparing_bar<T>(
    progress: Option<&SlotProgress>,
    work: impl FnOnce() -> T,
) -> T {
    let Some(progress) = progress.filter(|_| console::is_talk_terminal()) else {
        return with_spinner(COMPARING, work);
    };
    let bar = bar(COMPARING, 0, STYLE_TENSORS);
    let show = || {
        let [n_done, n_all] = progress.position();
        // Reading and matching come first; experiments and the verdict come last.
        bar.set_length(n_all);
        bar.set_position(n_done);
    };
    polled(&bar, show, work)
}

/// Runs `work` while a thread calls `show` again and again.
fn polled<T>(bar: &ProgressBar, show: impl Fn() + Sync, work: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        // The bar polls the position itself, so that working threads do nothing for it.
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                show();
                thread::park_timeout(REFRESH);
            }
            bar.finish_and_clear();
        });
        // A panic must end the bar as well, because the scope waits for its thread.
        let _end = BarEnd(&is_done);
        work()
    })
}

/// Ends the bar when it is dropped.
struct BarEnd<'a>(&'a AtomicBool);

impl Drop for BarEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` under a spinner.
pub(crate) fn with_spinner<T>(message: &'static str, work: impl FnOnce() -> T) -> T {
    if !console::is_talk_terminal() {
        return work();
    }
    let spinner = ProgressBar::new_spinner().with_message(message);
    spinner.enable_steady_tick(REFRESH);
    let result = work();
    spinner.finish_and_clear();
    result
}

/// Prints a line to standard error, after clearing a bar on that line.
pub(crate) fn report(line: &str) {
    console::report_beside_bar(format_args!("opscope: {line}"));
}

fn bar(message: &'static str, length: u64, style: &str) -> ProgressBar {
    if !console::is_talk_terminal() {
        return ProgressBar::hidden();
    }
    let style =
        // The templates are constants, and a mistake in one must not end a run.
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length)
        .with_style(style)
        .with_message(message)
}
