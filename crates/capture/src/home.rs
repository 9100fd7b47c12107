//! The process that something belongs to.
//!
//! A fork copies the memory but not the other threads. No writer runs there, and a lock that a
//! writer held at that moment stays locked forever. So a fork never waits for a writer or for a
//! lock that a writer takes.

/// The process that something belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HomeProcess(u32);

impl HomeProcess {
    /// This process.
    pub(crate) fn here() -> HomeProcess {
        HomeProcess(std::process::id())
    }

    /// Whether this is another process: a fork of the one it belongs to.
    pub(crate) fn is_elsewhere(self) -> bool {
        // Asked each time: a fork happens without notice.
        self != HomeProcess::here()
    }
}

impl Default for HomeProcess {
    fn default() -> HomeProcess {
        HomeProcess::here()
    }
}
