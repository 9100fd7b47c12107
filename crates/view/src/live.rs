//! A dump that a run is still writing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use opscope_analysis::compare::side::{ComparedDump, OperatorExecution};
use opscope_analysis::survey::{DumpSurvey, SurveyProgress};
use opscope_store::StoreError;

use crate::answers::elements::chain;
use crate::shown::{PageState, RunProgress, ShownRuns};
use crate::unfinished::{BETWEEN_NEWS, UnfinishedSurvey};
use crate::viewed::{ViewedDump, ViewedRuns};

/// Minimum time between two reads of the dump once there is an operator to show; the maximum until
/// then.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// The next read waits this many times the duration of the last, so that the run keeps most of the
/// processor.
const SHARE_OF_LOOKS: u32 = 8;
/// Interval between checks whether the run is over.
const BETWEEN_CHECKS: Duration = Duration::from_millis(50);

/// A dump that a run is still writing.
pub struct LiveDump {
    path: PathBuf,
    n_threads: usize,
    program: String,
    /// The run as it was planned.
    run: RunProgress,
    start: Instant,
    /// The findings of the last read.
    last: Arc<ViewedRuns>,
}

impl LiveDump {
    /// The dump at `path`, which need not exist yet, of a run that begins now.
    pub fn new(path: &Path, run: RunProgress, n_threads: usize, program: &str) -> LiveDump {
        let nothing = Arc::new(ViewedDump::with_nothing(path));
        LiveDump {
            path: path.to_owned(),
            n_threads,
            program: program.to_owned(),
            run,
            start: Instant::now(),
            last: Arc::new(ViewedRuns::surveyed(
                nothing,
                DumpSurvey::default(),
                program,
            )),
        }
    }

    /// The dump as far as it is known.
    pub fn runs(&self) -> Arc<ViewedRuns> {
        self.last.clone()
    }

    /// How far the run is, according to the dump.
    pub fn state(&self) -> PageState {
        let executions = self.last.target.dump.runs.iter();
        let step = executions.filter_map(|run| run.place.step).max();
        let seconds_left = step.and_then(|n_done| {
            // The last step in the dump may not be over.
            let n_left = self.run.n_steps.checked_sub(n_done)?;
            let elapsed = self.start.elapsed().as_secs_f64();
            (n_done > 0).then(|| (elapsed / n_done as f64 * n_left as f64).ceil() as u64)
        });
        PageState::Running(RunProgress {
            step,
            seconds_left,
            ..self.run.clone()
        })
    }

    /// Shows new content until the run is over.
    pub fn follow(&mut self, page: &ShownRuns, is_over: &AtomicBool) {
        let mut pause = Duration::ZERO;
        let mut last_look = Instant::now();
        while !is_over.load(Ordering::Acquire) {
            // Short pauses, so that the end of the run is noticed quickly.
            thread::sleep(BETWEEN_CHECKS);
            if last_look.elapsed() < pause {
                continue;
            }
            let start = Instant::now();
            // The directory may not exist yet, and files come and go while being read. Permanent
            // damage is reported at the end.
            let _ = self.look(page, false);
            if self.last.n_operators() > 0 && !self.path.exists() {
                page.announce(PageState::Removed);
            }
            pause = pause_after(start.elapsed(), self.last.n_operators());
            last_look = Instant::now();
        }
    }

    /// Shows the complete dump of a finished run; `failure` is why the run failed.
    pub fn finish(mut self, page: &ShownRuns, failure: Option<String>) {
        // Lists of findings may have been written after the last tensor.
        let unreadable = self.look(page, true).err();
        // A dump of findings creates no directory if there are none.
        let unreadable = unreadable.filter(|_| self.path.exists());
        let reason = failure.or(unreadable.map(|error| chain(&error)));
        let state = reason.map_or(PageState::Whole, PageState::Failed);
        page.show(self.runs(), state);
    }

    /// Reads the dump in its current state, and shows it if it has changed. The last read always
    /// reads, and the caller shows it.
    fn look(&mut self, page: &ShownRuns, is_last: bool) -> Result<(), StoreError> {
        let dump = ViewedDump::open(&self.path, self.n_threads)?;
        let before = &self.last.target.dump;
        if !is_last && outline(&dump.dump) == outline(before) {
            return Ok(());
        }
        let survey = self.last.survey().cloned().unwrap_or_default();
        // Reading a file that is being written may fail once, and is retried.
        let progress = if survey.problems.is_empty() {
            SurveyProgress::continued(&dump.dump, before, &survey)
        } else {
            SurveyProgress::new(&dump.dump)
        };
        let runs = ViewedRuns::surveyed(Arc::new(dump), survey, &self.program);
        let mut survey = UnfinishedSurvey::new(runs, progress, self.n_threads);
        // Large elements are slow to read, so operators are shown before their statistics.
        while !survey.advance(BETWEEN_NEWS) {
            page.show(survey.runs(), self.state());
        }
        self.last = survey.runs();
        if !is_last {
            page.show(self.runs(), self.state());
        }
        Ok(())
    }
}

/// The pause after a read that took `time`. While the page is empty, slow reads must not delay the
/// first operators.
fn pause_after(time: Duration, n_operators: usize) -> Duration {
    let pause = time * SHARE_OF_LOOKS;
    if n_operators == 0 {
        pause.min(BETWEEN_LOOKS)
    } else {
        pause.max(BETWEEN_LOOKS)
    }
}

/// The facts that change while a dump is written. With a ring of steps, the counts stay the same.
fn outline(dump: &ComparedDump) -> impl PartialEq + '_ {
    let ends = [dump.runs.first(), dump.runs.last()];
    let ends = ends.map(|run: Option<&OperatorExecution>| Some((&run?.place, &run?.op_name)));
    (dump.n_slots(), dump.problems.len(), ends)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use opscope_store::file_format::npy::encode_header;
    use opscope_tensor::{DType, Shape};
    use tokio::runtime;
    use tokio::time::timeout;

    use super::*;

    /// An array file that appears atomically.
    fn write_operator(root: &Path, name: &str) {
        let mut bytes = encode_header(DType::U8, &Shape::new([2]).unwrap()).unwrap();
        bytes.extend([1, 2]);
        fs::create_dir_all(root).unwrap();
        let hidden = root.join(format!(".{name}"));
        fs::write(&hidden, bytes).unwrap();
        fs::rename(hidden, root.join(format!("{name}.output.0.npy"))).unwrap();
    }

    #[test]
    fn an_operator_is_announced_without_a_further_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("dump");
        let run = RunProgress {
            n_steps: 4,
            ..RunProgress::default()
        };
        let mut live = LiveDump::new(&root, run, 1, "test");
        let page = ShownRuns::new(live.runs(), live.state());
        let is_over = AtomicBool::new(false);
        let waiting = runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let n_shown: Vec<_> = thread::scope(|scope| {
            scope.spawn(|| live.follow(&page, &is_over));
            let mut news = page.news();
            news.mark_unchanged();
            let n_shown = (1..=3).map(|n| {
                write_operator(&root, &format!("relu_{n}"));
                let announced = async { timeout(Duration::from_secs(60), news.changed()).await };
                let announced = waiting.block_on(announced).is_ok_and(|news| news.is_ok());
                announced.then(|| page.current().n_operators())
            });
            let n_shown = n_shown.collect();
            is_over.store(true, Ordering::Release);
            n_shown
        });
        assert_eq!(n_shown, [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn long_looks_delay_no_first_operator() {
        let long = Duration::from_secs(3);
        assert_eq!(pause_after(long, 0), BETWEEN_LOOKS);
        assert_eq!(pause_after(long, 1), long * SHARE_OF_LOOKS);
        assert_eq!(pause_after(Duration::ZERO, 0), Duration::ZERO);
        assert_eq!(pause_after(Duration::ZERO, 1), BETWEEN_LOOKS);
    }
}
