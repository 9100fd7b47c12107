//! Keeping the panics of foreign code to ourselves.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::thread;

/// The name of engines' threads that run nothing else; their panics come back to the caller.
pub const ENGINE_THREAD: &str = "opscope-engine";

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread, now, would be caught and reported as an error.
///
/// A program that installs a panic hook can ask, and stay silent then.
pub fn is_guarded() -> bool {
    IS_GUARDED.get()
        || thread::current()
            .name()
            .is_some_and(|name| name.starts_with(ENGINE_THREAD))
}

/// Installs a panic hook, once, that stays silent about panics that are caught and reported, and
/// passes all others on. Only the owner of the process calls it: a binary, or a library for another
/// language.
pub fn silence_caught_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !is_guarded() {
                hook(info);
            }
        }));
    });
}

/// Runs `work`; a panic becomes the text that it carries.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // The value before is put back, since guarded code may call guarded code.
    let was_guarded = IS_GUARDED.replace(true);
    // Whatever a panic leaves half done belongs to the run that fails with it.
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(was_guarded);
    result.map_err(|panic| {
        panic
            // A panic with a plain text carries `&str`, one with a formatted text `String`.
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_text() {
        assert_eq!(catch(|| 7), Ok(7));
        let result: Result<(), String> = catch(|| {
            assert!(is_guarded());
            panic!("index {}", 3)
        });
        assert_eq!(result, Err("index 3".into()));
        assert!(!is_guarded());
    }
}
