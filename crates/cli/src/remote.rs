//! Dumps with URLs, in builds that have the feature `remote`.

use std::ffi::OsString;

use opscope_store::remote::without_secrets;

/// Lets commands read dumps in object storage and behind HTTP, if this build can.
pub fn enable() {
    #[cfg(feature = "remote")]
    opscope_remote::enable();
}

/// Removes what commands have put on the disk for such dumps.
pub fn clean() {
    #[cfg(feature = "remote")]
    opscope_remote::clean();
}

/// Arguments as they may be shown and written down: passwords in URLs are kept apart from them.
pub(crate) fn without_passwords(arguments: Vec<OsString>) -> Vec<OsString> {
    let arguments = arguments.into_iter();
    let shown = arguments.map(|argument| {
        let shown = argument.to_str().and_then(without_secrets);
        shown.map_or(argument, OsString::from)
    });
    shown.collect()
}
