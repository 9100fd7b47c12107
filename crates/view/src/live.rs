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
use crate::shown::{PageState, ShownRuns};
use crate::viewed::{ViewedDump, ViewedRuns};

/// Least time from one look at the dump to the next.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// The next look is put off by so many times what the last one took, so that the run keeps most of
/// the processor.
const SHARE_OF_LOOKS: u32 = 8;
/// Whether the run is over is looked at so often.
const BETWEEN_CHECKS: Duration = Duration::from_millis(50);

/// A dump that a run is still writing.
pub struct LiveDump {
    path: PathBuf,
    n_threads: usize,
    program: String,
    /// The findings of the last look.
    last: Arc<ViewedRuns>,
}

impl LiveDump {
    /// The dump at `path`, which need not exist yet.
    pub fn new(path: &Path, n_threads: usize, program: &str) -> LiveDump {
        let nothing = Arc::new(ViewedDump::with_nothing(path));
        LiveDump {
            path: path.to_owned(),
            n_threads,
            program: program.to_owned(),
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

    /// Shows what comes until the run is over.
    pub fn follow(&mut self, page: &ShownRuns, is_over: &AtomicBool) {
        let mut pause = BETWEEN_LOOKS;
        let mut last_look = Instant::now();
        while !is_over.load(Ordering::Acquire) {
            // Short pauses, so that the end of the run is not waited for.
            thread::sleep(BETWEEN_CHECKS);
            if last_look.elapsed() < pause {
                continue;
            }
            let start = Instant::now();
            // The directory may not be there yet, and files come and go under the reader's hands.
            // What is damaged for good is told at the end.
            if self.look(false).unwrap_or(false) {
                page.show(self.runs(), PageState::Running);
            }
            pause = BETWEEN_LOOKS.max(start.elapsed() * SHARE_OF_LOOKS);
            last_look = Instant::now();
        }
    }

    /// Shows the whole dump of a run that is over; `failure` is why it did not go to its end.
    pub fn finish(mut self, page: &ShownRuns, failure: Option<String>) {
        // Lists of findings may have come behind the last tensor.
        let unreadable = self.look(true).err();
        // A dump of findings makes no directory where there are none.
        let unreadable = unreadable.filter(|_| self.path.exists());
        let reason = failure.or(unreadable.map(|error| chain(&error)));
        let state = reason.map_or(PageState::Whole, PageState::Failed);
        page.show(self.runs(), state);
    }

    /// Reads the dump as it is now; whether it is another than at the last look, or is to be shown
    /// in any case.
    fn look(&mut self, is_last: bool) -> Result<bool, StoreError> {
        let dump = ViewedDump::open(&self.path, self.n_threads)?;
        let before = &self.last.target.dump;
        if !is_last && outline(&dump.dump) == outline(before) {
            return Ok(false);
        }
        let survey = self.last.survey().cloned().unwrap_or_default();
        // Reading what is being written may fail once, and is to be tried again.
        let mut progress = if survey.problems.is_empty() {
            SurveyProgress::continued(&dump.dump, before, &survey)
        } else {
            SurveyProgress::new(&dump.dump)
        };
        while !progress.is_done() {
            progress.advance(&dump.dump, self.n_threads);
        }
        let dump = Arc::new(dump);
        let runs = ViewedRuns::surveyed(dump, progress.into_survey(), &self.program);
        self.last = Arc::new(runs);
        Ok(true)
    }
}

/// The facts by which a dump that is being written changes. Where only the last steps are kept, the
/// numbers stay the same.
fn outline(dump: &ComparedDump) -> impl PartialEq + '_ {
    let ends = [dump.runs.first(), dump.runs.last()];
    let ends = ends.map(|run: Option<&OperatorExecution>| Some((&run?.place, &run?.op_name)));
    (dump.n_slots(), dump.problems.len(), ends)
}
