//! Keeping the panics of engines to ourselves.

use opscope_store::guard;

pub(crate) use opscope_store::guard::ENGINE_THREAD;

/// Runs `work`; a panic becomes an error text.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    guard::catch(work).map_err(|text| format!("the engine panicked: {text}"))
}
