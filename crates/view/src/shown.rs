//! The dumps on display, which may change: a large dump is surveyed while it is shown, and an
//! ongoing run adds to its dump.

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::viewed::ViewedRuns;

/// The dumps on display. Clones share the same page.
#[derive(Clone)]
pub struct ShownRuns(Arc<Shown>);

struct Shown {
    current: RwLock<Arc<ViewedRuns>>,
    news: watch::Sender<PageNews>,
}

/// How much of the dumps has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PageState {
    /// Everything.
    #[default]
    Whole,
    /// Elements are being read; `n_done` of `n` operators are known.
    Reading {
        /// Number of surveyed operators.
        n_done: usize,
        /// Number of all operators.
        n: usize,
    },
    /// The run is still writing the dump.
    Running(RunProgress),
    /// The run failed, or its dump cannot be read, with the reason.
    Failed(String),
    /// The dump is no longer on the disk.
    Removed,
}

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// The name of the model.
    pub title: String,
    /// Steps of the whole run.
    pub n_steps: u64,
    /// The step that the dump has last, from 0; unknown before the first operator.
    pub step: Option<u64>,
    /// Estimated from the time of the steps so far.
    pub seconds_left: Option<u64>,
}

/// News for open pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageNews {
    /// How many times the dumps were replaced.
    generation: u64,
    state: PageState,
    /// Whether the server is stopping, which ends all waiting for news.
    pub(crate) is_ending: bool,
}

impl ShownRuns {
    /// The dumps of a page that is not served yet.
    pub(crate) fn new(runs: Arc<ViewedRuns>, state: PageState) -> ShownRuns {
        let news = PageNews {
            state,
            ..PageNews::default()
        };
        ShownRuns(Arc::new(Shown {
            current: RwLock::new(runs),
            news: watch::Sender::new(news),
        }))
    }

    /// Shows these dumps from now on, and notifies all open pages.
    pub fn show(&self, runs: Arc<ViewedRuns>, state: PageState) {
        // The dumps are complete even after a panic elsewhere, so poisoning is ignored.
        let current = self.0.current.write();
        *current.unwrap_or_else(PoisonError::into_inner) = runs;
        self.0.news.send_modify(|news| {
            news.generation += 1;
            news.state = state;
        });
    }

    /// Tells all open pages about a state of the dumps that stay on display.
    pub fn announce(&self, state: PageState) {
        self.0.news.send_modify(|news| news.state = state);
    }

    /// The current dumps.
    pub(crate) fn current(&self) -> Arc<ViewedRuns> {
        let current = self.0.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends all waiting for news, and the page.
    pub fn end(&self) {
        self.0.news.send_modify(|news| news.is_ending = true);
    }

    /// Whether the page is no longer served.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.news.borrow().is_ending
    }

    pub(crate) fn news(&self) -> watch::Receiver<PageNews> {
        self.0.news.subscribe()
    }
}

impl PageNews {
    pub(crate) fn json(&self) -> Value {
        let (state, n_done, n, message) = match &self.state {
            PageState::Whole => ("whole", 0, 0, None),
            PageState::Reading { n_done, n } => ("reading", *n_done, *n, None),
            PageState::Running(_) => ("running", 0, 0, None),
            PageState::Failed(message) => ("failed", 0, 0, Some(message)),
            PageState::Removed => ("removed", 0, 0, None),
        };
        let run = match &self.state {
            PageState::Running(run) => json!({
                "title": run.title,
                "n_steps": run.n_steps,
                "step": run.step,
                "seconds_left": run.seconds_left,
            }),
            _ => Value::Null,
        };
        json!({
            "generation": self.generation,
            "state": state,
            "n_done": n_done,
            "n": n,
            "message": message,
            "run": run,
        })
    }
}
