//! Error messages without secrets.

use std::error::Error;
use std::io;

use object_store::Error as ObjectError;
use rustix::io::Errno;

use crate::http_client;
use crate::location::{Location, Service};

/// Maximum length of server text in a message.
const N_CHARACTERS_MAX: usize = 400;

/// Words in a URL or a message that a secret follows.
const SECRET_WORDS: [&str; 6] = [
    "sig=",
    "x-amz-signature=",
    "x-amz-credential=",
    "x-amz-security-token=",
    "x-goog-signature=",
    "authorization: ",
];

/// The reported error: the place, the cause, and a remedy where one is known.
pub(crate) fn in_words(error: &ObjectError, location: &Location, login: &str) -> io::Error {
    let text = chain(error);
    let place = location.place_name();
    let says = |word: &str| text.contains(word);
    if says("NoSuchBucket") || says("ContainerNotFound") || says("bucket does not exist") {
        return io::Error::new(io::ErrorKind::NotFound, format!("there is no {place}"));
    }
    let is_denied = matches!(
        error,
        ObjectError::PermissionDenied { .. } | ObjectError::Unauthenticated { .. }
    );
    if is_denied || says("403 Forbidden") || says("401 Unauthorized") || says("AccessDenied") {
        let reason = format!("{place} denies access to {login}: {}", masked(&text));
        return io::Error::new(io::ErrorKind::PermissionDenied, reason);
    }
    if matches!(error, ObjectError::NotFound { .. }) {
        return not_found();
    }
    if location.service == Service::S3 && (says("redirect") || says("PermanentRedirect")) {
        let reason = format!("{place} is in another region: AWS_REGION names it");
        return io::Error::other(reason);
    }
    io::Error::other(format!("{place}: {}", masked(&text)))
}

/// The operating system's "not found" error.
pub(crate) fn not_found() -> io::Error {
    Errno::NOENT.into()
}

/// Whether an answer broke off, so that a retry may return the rest.
pub(crate) fn is_broken_off(error: &ObjectError) -> bool {
    http_client::is_broken_off(&chain(error))
}

/// An error with its causes, each once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Many errors repeat their cause.
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// A message on one line, of bounded length and with secrets masked.
pub(crate) fn masked(text: &str) -> String {
    let mut text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in SECRET_WORDS {
        let mut from = 0;
        while let Some(at) = find_from(&text, word, from) {
            let start = at + word.len();
            let rest = &text[start..];
            let end = rest.find(['&', ' ', '"', ')', '\'']).unwrap_or(rest.len());
            text.replace_range(start..start + end, "\u{2026}");
            from = start;
        }
    }
    let mut from = 0;
    while let Some(at) = text[from..].find("://").map(|at| from + at + 3) {
        let rest = &text[at..];
        let end = rest.find(['/', ' ', '"', ')']).unwrap_or(rest.len());
        if let Some(login) = rest[..end].rfind('@') {
            text.replace_range(at..at + login, "\u{2026}");
        }
        from = at;
    }
    if text.chars().count() > N_CHARACTERS_MAX {
        text = text.chars().take(N_CHARACTERS_MAX).collect();
        text.push('\u{2026}');
    }
    text
}

/// Case-insensitive search for a word.
fn find_from(text: &str, word: &str, from: usize) -> Option<usize> {
    // Only ASCII changes, so positions stay the same.
    let lower = text.to_ascii_lowercase();
    lower[from..].find(word).map(|at| from + at)
}

/// The error of a file that changed since it was listed.
pub(crate) fn changed(what: &str) -> io::Error {
    let reason = format!("it has changed since it was listed: {what}");
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        let text = "GET https://me:word@host/a?X=1&SIG=abc%2B&y=2 failed\n  (sig=zz)";
        assert_eq!(
            masked(text),
            "GET https://\u{2026}@host/a?X=1&SIG=\u{2026}&y=2 failed (sig=\u{2026})"
        );
        assert_eq!(
            masked(&"x".repeat(1000)).chars().count(),
            N_CHARACTERS_MAX + 1
        );
    }
}
