//! A dump that is shown while its elements are being read.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opscope_analysis::survey::{self, SurveyProgress};

use crate::shown::{PageState, ShownRuns};
use crate::viewed::{OperatorFinding, ViewError, ViewedDump, ViewedRuns};

/// A survey that is partly shown.
pub struct UnfinishedSurvey {
    runs: ViewedRuns,
    progress: SurveyProgress,
    n_threads: usize,
    start: Instant,
}

/// How long a page waits for the survey before it shows a part.
const FIRST_LOOK: Duration = Duration::from_millis(400);
/// Interval between news.
pub(crate) const BETWEEN_NEWS: Duration = Duration::from_millis(700);
/// A survey that took longer is cached.
const WORTH_KEEPING: Duration = Duration::from_millis(500);

impl UnfinishedSurvey {
    /// Reads a dump and surveys its values, deferring the rest of a long survey. Uses a cached
    /// survey. The page opens on `findings`, if there are any.
    ///
    /// # Errors
    ///
    /// [`ViewError`] if there is nothing to show.
    pub fn begin(
        path: &Path,
        findings: Vec<OperatorFinding>,
        n_threads: usize,
        program: &str,
    ) -> Result<(Arc<ViewedRuns>, Option<UnfinishedSurvey>), ViewError> {
        let target = ViewedDump::open(path, n_threads)?.with_findings(findings);
        // An empty page would look like a dump without a fault.
        if target.dump.runs.is_empty() {
            let (path, problems) = (target.path, target.dump.problems);
            return Err(ViewError::Empty { path, problems });
        }
        let kept = survey::kept(&target.dump);
        let is_kept = kept.is_some();
        let runs = ViewedRuns::surveyed(Arc::new(target), kept.unwrap_or_default(), program);
        if is_kept {
            return Ok((Arc::new(runs), None));
        }
        let progress = SurveyProgress::new(&runs.target.dump);
        let mut unfinished = UnfinishedSurvey::new(runs, progress, n_threads);
        // Most dumps are surveyed within this time.
        let is_done = unfinished.advance(FIRST_LOOK);
        // The state so far, even if nothing is known yet.
        let runs = unfinished.runs();
        Ok((runs, (!is_done).then_some(unfinished)))
    }

    /// A survey of the target of `runs`, continued from `progress`.
    pub(crate) fn new(
        runs: ViewedRuns,
        progress: SurveyProgress,
        n_threads: usize,
    ) -> UnfinishedSurvey {
        UnfinishedSurvey {
            runs,
            progress,
            n_threads,
            start: Instant::now(),
        }
    }

    /// The survey's progress.
    pub fn state(&self) -> PageState {
        let survey = self.progress.survey();
        PageState::Reading {
            n_done: survey.n_surveyed,
            n: survey.executions.len(),
        }
    }

    /// Finishes the survey while the page shows its progress. Caches it in the dump.
    pub fn finish(mut self, page: &ShownRuns) {
        while !self.advance(BETWEEN_NEWS) {
            // The rest will not be shown.
            if page.is_ending() {
                return;
            }
            page.show(self.runs(), self.state());
        }
        page.show(self.runs(), PageState::Whole);
        if self.start.elapsed() > WORTH_KEEPING {
            survey::keep(&self.runs.target.dump, self.progress.survey());
        }
    }

    /// Continues for some time; returns whether the survey is done.
    pub(crate) fn advance(&mut self, time: Duration) -> bool {
        let start = Instant::now();
        while !self.progress.is_done() && start.elapsed() < time {
            self.progress
                .advance(&self.runs.target.dump, self.n_threads);
        }
        self.progress.is_done()
    }

    /// The dump with the findings so far.
    pub(crate) fn runs(&self) -> Arc<ViewedRuns> {
        let (target, survey) = (self.runs.target.clone(), self.progress.survey().clone());
        Arc::new(ViewedRuns::surveyed(target, survey, &self.runs.program))
    }
}
