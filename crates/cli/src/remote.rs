//! Dumps at URLs.

use std::ffi::OsString;
use std::path::Path;

use opscope_store::remote::{is_remote, without_secrets};

pub use opscope_remote::{clean, enable};

/// Arguments that are safe to show and store: passwords are moved from URLs to a separate store.
pub(crate) fn without_passwords(arguments: Vec<OsString>) -> Vec<OsString> {
    let arguments = arguments.into_iter();
    let shown = arguments.map(|argument| {
        let shown = argument.to_str().and_then(|text| {
            let (option, value) = value_of(text);
            Some(format!("{option}{}", without_secrets(value)?))
        });
        shown.map_or(argument, OsString::from)
    });
    shown.collect()
}

/// Whether an argument is a URL, or an option with one.
pub(crate) fn has_url(argument: &OsString) -> bool {
    let text = argument.to_str();
    text.is_some_and(|text| is_remote(Path::new(value_of(text).1)))
}

/// Splits an argument into a leading option and its value: `--dump=` and `s3://…`, `-d` and
/// `s3://…`.
fn value_of(argument: &str) -> (&str, &str) {
    // A short option may be followed by its value at once. A letter of several bytes is no option,
    // and splitting inside of it would panic.
    let n_option = match argument.as_bytes() {
        [b'-', b'-', ..] => argument.find('=').map_or(0, |at| at + 1),
        [b'-', letter, b'=', ..] if letter.is_ascii() => 3,
        [b'-', letter, ..] if letter.is_ascii() => 2,
        _ => 0,
    };
    argument.split_at(n_option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_taken_out_of_options_too() {
        for (given, shown) in [
            ("https://me:word@host/run", "https://host/run"),
            ("--dump=https://me:word@host/run", "--dump=https://host/run"),
            ("-dhttps://me:word@host/run", "-dhttps://host/run"),
            ("-d=https://me:word@host/run", "-d=https://host/run"),
            (
                "select 'https://me:word@host/run'",
                "select 'https://me:word@host/run'",
            ),
            ("-é", "-é"),
        ] {
            let found = without_passwords(vec![given.into()]);
            assert_eq!(found, [OsString::from(shown)]);
        }
        assert!(has_url(&"--dump=s3://bucket/run".into()));
        assert!(!has_url(&"--on=ray://host".into()));
    }
}
