//! Operating system errors as Python's `OSError`, with `errno`, reason and path.

use std::error::Error;
use std::io;
use std::path::Path;

use opscope_store::StoreError;
use opscope_store::visible::visible;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// Python's exception for an inaccessible file or directory.
pub(crate) fn of_store(error: &StoreError) -> PyErr {
    match error {
        StoreError::Io { action, path, .. } => {
            of_chain(error, &format!("cannot {action}"), Some(path))
        }
        StoreError::Corrupt { .. } => PyOSError::new_err(visible(&error.to_string()).into_owned()),
    }
}

/// Python's exception for the operating system error in the chain of `error`, with a path if given.
pub(crate) fn of_chain(error: &(dyn Error + 'static), what: &str, path: Option<&Path>) -> PyErr {
    let refusal = refusal_in(error);
    let Some((refusal, errno)) =
        refusal.and_then(|refusal| Some((refusal, refusal.raw_os_error()?)))
    else {
        // Without a number Python cannot choose a class or a text, so both come from the error
        // itself.
        let reason = refusal.map_or_else(|| error.to_string(), ToString::to_string);
        let place = path.map_or_else(String::new, |path| format!(" `{}`", path.display()));
        let message = format!("{what}{place}: {reason}");
        return PyOSError::new_err(visible(&message).into_owned());
    };
    let reason = refusal.to_string();
    // Rust appends the number to the text, and Python would show it a second time.
    let reason = reason.split(" (os error").next().unwrap_or_default();
    let reason = visible(&format!("{what}: {reason}")).into_owned();
    match path {
        // With a number Python chooses the class, such as `PermissionError`.
        Some(path) => PyOSError::new_err((errno, reason, path.as_os_str().to_owned())),
        None => PyOSError::new_err((errno, reason)),
    }
}

/// The operating system error in an error's chain.
fn refusal_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refusal) = error.downcast_ref::<io::Error>() {
            // One of our errors may be wrapped in an `io::Error`.
            let inner = refusal.get_ref();
            let inner = inner.and_then(|inner| inner.downcast_ref::<StoreError>());
            return match inner {
                Some(StoreError::Io { source, .. }) => Some(source),
                _ => Some(refusal),
            };
        }
        cause = error.source();
    }
    None
}
