//! Remote files: in object storage, or behind HTTP.
//!
//! Their paths are URLs, such as `s3://bucket/run/step-0.parquet`, and stay URLs wherever a path is
//! kept, compared or shown. Readers make their file system requests here: the file system answers
//! for local paths, and a [`RemoteFiles`] that the program provides answers for URLs. It creates a
//! private directory of empty files with the names and sizes of the remote ones, so that listing
//! needs no separate code. Content comes through [`regular_file`](crate::regular_file) and
//! [`read_part`] alone.
//!
//! Nothing is written to such a path.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, Metadata, ReadDir};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use opscope_tensor::SharedBytes;

use crate::StoreError;

/// How URLs of files begin that are read.
pub const SCHEMES: [&str; 5] = ["s3", "gs", "az", "http", "https"];

/// Reads files that have URLs.
pub trait RemoteFiles: Send + Sync {
    /// The local placeholder of a directory or file, which has its names and sizes but no content.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if nothing has this URL; others contain the failing bucket or
    /// server, and the reason.
    fn stand_in(&self, url: &str) -> io::Result<PathBuf>;

    /// Opens a file with all of its content.
    ///
    /// # Errors
    /// As for [`RemoteFiles::stand_in`]; also if the file is another than when it was listed.
    fn open(&self, url: &str) -> io::Result<(File, Metadata)>;

    /// Reads a part of a file, which reaches as far.
    ///
    /// # Errors
    /// As for [`RemoteFiles::open`].
    fn read_part(&self, url: &str, range: Range<u64>) -> io::Result<SharedBytes>;

    /// Reads the first bytes of a file, which has as many, and no others.
    ///
    /// # Errors
    /// As for [`RemoteFiles::open`].
    fn read_start(&self, url: &str, n_bytes: u64) -> io::Result<SharedBytes>;

    /// Files below a directory that could not be listed: each with its URL and the reason.
    fn unlisted(&self, url: &str) -> Vec<(PathBuf, io::Error)>;

    /// Lists a URL again on the next request.
    fn forget(&self, url: &str);
}

static PROVIDED: OnceLock<Box<dyn RemoteFiles>> = OnceLock::new();

/// Lets this process read URLs. The first that is provided stays.
pub fn provide(files: Box<dyn RemoteFiles>) {
    // A second front in the same process brings the same.
    let _ = PROVIDED.set(files);
}

/// The URL that a path is; none of a path of this machine.
pub fn url_of(path: &Path) -> Option<&str> {
    let bytes = path.as_os_str().as_encoded_bytes();
    // Most paths begin with a slash, and every tensor of a dump asks.
    if !matches!(bytes.first(), Some(b'a' | b'g' | b'h' | b's')) {
        return None;
    }
    let text = path.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    SCHEMES.contains(&scheme).then_some(text)
}

/// Whether a path is a URL.
pub fn is_remote(path: &Path) -> bool {
    url_of(path).is_some()
}

fn provided() -> io::Result<&'static dyn RemoteFiles> {
    let files = PROVIDED.get().map(|files| &**files);
    files.ok_or_else(|| {
        let reason = "URLs are read by the command line and by Python alone";
        io::Error::new(io::ErrorKind::Unsupported, reason)
    })
}

/// The path at which the file system has names and sizes: the path itself, or the placeholder of a
/// URL.
///
/// # Errors
/// As for [`RemoteFiles::stand_in`].
pub fn local(path: &Path) -> io::Result<Cow<'_, Path>> {
    match url_of(path) {
        None => Ok(Cow::Borrowed(path)),
        Some(url) => Ok(Cow::Owned(provided()?.stand_in(url)?)),
    }
}

/// [`std::fs::metadata`].
///
/// # Errors
/// The operating system's, or as for [`local`].
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    std::fs::metadata(local(path)?)
}

/// [`Path::is_dir`]: an error counts as no.
pub fn is_dir(path: &Path) -> bool {
    metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// [`Path::exists`]: an error counts as no.
pub fn exists(path: &Path) -> bool {
    metadata(path).is_ok()
}

/// [`std::fs::read_dir`]. Of a URL the entries have paths on this machine: only their names count.
///
/// # Errors
/// The operating system's, or as for [`local`].
pub fn read_dir(path: &Path) -> io::Result<ReadDir> {
    std::fs::read_dir(local(path)?)
}

/// [`std::path::absolute`]. URLs are absolute.
///
/// # Errors
/// As for [`std::path::absolute`].
pub fn absolute(path: &Path) -> io::Result<PathBuf> {
    if is_remote(path) {
        Ok(path.to_owned())
    } else {
        std::path::absolute(path)
    }
}

/// Opens what has a URL, with all of its content; none if the path is of this machine.
pub(crate) fn open(path: &Path) -> Option<io::Result<(File, Metadata)>> {
    let url = url_of(path)?;
    Some(provided().and_then(|files| files.open(url)))
}

/// Reads a part of what has a URL.
///
/// # Errors
/// As for [`RemoteFiles::read_part`]; [`io::ErrorKind::UnexpectedEof`] if it is shorter.
pub fn read_part(path: &Path, range: Range<u64>) -> io::Result<SharedBytes> {
    let Some(url) = url_of(path) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if range.end > metadata(path)?.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    provided()?.read_part(url, range)
}

/// Reads the first bytes of what has a URL.
///
/// # Errors
/// As for [`read_part`].
pub(crate) fn read_start(path: &Path, n_bytes: u64) -> io::Result<SharedBytes> {
    let Some(url) = url_of(path) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if n_bytes > metadata(path)?.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    provided()?.read_start(url, n_bytes)
}

/// Errors of files below a directory that could not be listed; none of a directory of this machine.
pub(crate) fn unlisted(dir: &Path) -> Vec<StoreError> {
    let (Some(url), Ok(files)) = (url_of(dir), provided()) else {
        return Vec::new();
    };
    let unlisted = files.unlisted(url).into_iter();
    unlisted
        .map(|(path, error)| StoreError::io("read", &path)(error))
        .collect()
}

/// Reopening a dump should show files added since.
pub fn forget(path: &Path) {
    if let (Some(url), Ok(files)) = (url_of(path), provided()) {
        files.forget(url);
    }
}

/// The error of something that would be written to a URL.
///
/// # Errors
/// If the path is a URL.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    if is_remote(path) {
        let reason = "object storage is read, and never written to";
        return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, reason));
    }
    Ok(())
}

/// A name and a password for a server.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerLogin {
    /// The name.
    pub user: String,
    /// The password, which is shown nowhere.
    pub password: String,
}

static LOGINS: Mutex<Option<HashMap<String, ServerLogin>>> = Mutex::new(None);

/// The login that a URL of this server was given with; a server is a host, with its port if it was
/// named.
pub fn login_of(server: &str) -> Option<ServerLogin> {
    let logins = LOGINS.lock().unwrap_or_else(PoisonError::into_inner);
    logins.as_ref()?.get(server).cloned()
}

/// A URL as it may be shown: without name and password, which are kept for [`login_of`], and
/// without the values behind a `?`, which may be a signature. `None` of a text that has neither.
pub fn without_secrets(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    if !SCHEMES.contains(&scheme) {
        return None;
    }
    let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut shown = format!("{scheme}://");
    match server.rsplit_once('@') {
        Some((login, server)) => {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            let login = ServerLogin {
                user: user.to_owned(),
                password: password.to_owned(),
            };
            let mut logins = LOGINS.lock().unwrap_or_else(PoisonError::into_inner);
            let logins = logins.get_or_insert_default();
            logins.insert(server.to_owned(), login);
            shown += server;
        }
        None => shown += server,
    }
    match path.split_once('?') {
        // Names of objects may hold a question mark; those of servers' files do not.
        Some((path, _)) if scheme.starts_with("http") => {
            shown += path;
            shown += "?\u{2026}";
        }
        _ => shown += path,
    }
    (shown != text).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_paths() {
        for (path, is_url) in [
            ("s3://bucket/run", true),
            ("gs://bucket", true),
            ("https://host/run/", true),
            ("s3:/bucket/run", false),
            ("/s3://bucket", false),
            ("ftp://host/run", false),
            ("s3", false),
            ("", false),
        ] {
            assert_eq!(is_remote(Path::new(path)), is_url, "{path}");
        }
        // A path joined to a URL is a URL, and so is its parent.
        let below = Path::new("s3://bucket/run").join("step-0.parquet");
        assert_eq!(url_of(&below), Some("s3://bucket/run/step-0.parquet"));
        assert_eq!(url_of(below.parent().unwrap()), Some("s3://bucket/run"));
        assert_eq!(absolute(&below).unwrap(), below);
    }

    #[test]
    fn secrets_are_taken_out() {
        let shown = without_secrets("https://me:pass%40word@host:8080/run/a.npy?sig=abc&x=1");
        assert_eq!(
            shown.as_deref(),
            Some("https://host:8080/run/a.npy?\u{2026}")
        );
        let login = login_of("host:8080").unwrap();
        assert_eq!((&*login.user, &*login.password), ("me", "pass%40word"));
        for text in ["s3://bucket/a?b@c", "dump", "/a/b?c", "--on=ray://a:b@c"] {
            assert_eq!(without_secrets(text), None, "{text}");
        }
    }
}
