//! The process that something belongs to.
//!
//! A fork has a copy of everything but of other threads: nobody writes there, and a lock that a
//! writer held at that moment stays locked for ever. So nothing that could wait for a writer, or
//! for a lock of one, is done there.

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
