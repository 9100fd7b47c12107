//! The dumps that the page shows, which may change: a large dump is surveyed while it is shown, and a
//! run that goes on adds to its dump.

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::viewed::ViewedRuns;

/// The dumps that a page shows. Copies are of one page.
#[derive(Clone)]
pub struct ShownRuns(Arc<Shown>);

struct Shown {
    current: RwLock<Arc<ViewedRuns>>,
    news: watch::Sender<PageNews>,
}

/// How far the dumps that are shown are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PageState {
    /// As a whole.
    #[default]
    Whole,
    /// Elements are read, and those of `n_done` operators of `n` are known.
    Reading {
        /// Operators that are surveyed.
        n_done: usize,
        /// All operators.
        n: usize,
    },
    /// The run that writes the dump goes on.
    Running,
    /// The run did not go to its end, or its dump cannot be read, with the reason.
    Failed(String),
}

/// News for the pages that are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageNews {
    /// How often the dumps were replaced.
    generation: u64,
    state: PageState,
    /// Whether the server ends, and with it all that waits for news.
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

    /// Shows these dumps from now on, and tells all pages that are open.
    pub fn show(&self, runs: Arc<ViewedRuns>, state: PageState) {
        // Whoever panicked meanwhile has left whole dumps behind.
        let current = self.0.current.write();
        *current.unwrap_or_else(PoisonError::into_inner) = runs;
        self.0.news.send_modify(|news| {
            news.generation += 1;
            news.state = state;
        });
    }

    /// The dumps that are shown now.
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
            PageState::Running => ("running", 0, 0, None),
            PageState::Failed(message) => ("failed", 0, 0, Some(message)),
        };
        json!({
            "generation": self.generation,
            "state": state,
            "n_done": n_done,
            "n": n,
            "message": message,
        })
    }
}
