//! The objects below a URL.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{Attribute, Error as ObjectError, GetOptions, ObjectMeta, ObjectStore};

use crate::background::wait_for;
use crate::client::Client;
use crate::failure;
use crate::location::{Location, Service};
use crate::object::RemoteObject;
use crate::stand_in::StandIns;

/// Maximum number of objects of a dump. Each takes an empty file on this machine.
const N_OBJECTS_MAX: usize = 1 << 22;
/// Maximum number of reported objects with unusable names.
const N_REFUSED_MAX: usize = 100;
/// Maximum number of attempts for a listing that breaks off.
const N_ATTEMPTS: u32 = 5;
/// Maximum length of a file name, in bytes.
const N_NAME_BYTES_MAX: usize = 255;

/// A file or a directory at a URL.
pub(crate) enum Found {
    /// A file.
    File(ObjectMeta),
    /// Everything below a directory.
    Directory(Below),
}

/// The objects below a directory, with their names relative to it.
#[derive(Default)]
pub(crate) struct Below {
    objects: Vec<(String, ObjectMeta)>,
    /// Objects with unusable names or sizes, and the reasons.
    refused: Vec<String>,
}

/// Lists what is at a location: everything below a directory, or a single file.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] if it does not exist; [`failure::in_words`] otherwise.
pub(crate) fn list(client: &Arc<Client>, location: &Location) -> io::Result<Found> {
    let (client, location) = (client.clone(), location.clone());
    wait_for(async move {
        match location.service {
            Service::Http => list_http(&client, &location).await,
            _ => list_bucket(&client, &location).await,
        }
    })
}

async fn list_bucket(client: &Client, location: &Location) -> io::Result<Found> {
    let below = everything_below(client, location).await;
    let below = below.map_err(|error| error.in_words(client, location))?;
    if !below.objects.is_empty() || location.key.as_ref().is_empty() {
        return Ok(Found::Directory(below));
    }
    let found = head(client, &location.key).await;
    let found = found.map_err(|error| failure::in_words(&error, location, &client.login))?;
    Ok(Found::File(found.0))
}

/// Servers list directories by WebDAV; without it only single files can be read.
async fn list_http(client: &Client, location: &Location) -> io::Result<Found> {
    let listed = everything_below(client, location).await;
    if let Ok(below) = &listed
        && !below.objects.is_empty()
    {
        return listed
            .map(Found::Directory)
            .map_err(|error| error.in_words(client, location));
    }
    let in_words = |error| failure::in_words(&error, location, &client.login);
    let found = head(client, &location.key).await;
    let is_file = found.as_ref().is_ok_and(|(_, is_page)| !is_page);
    match (listed, found) {
        (_, Ok((meta, _))) if is_file => Ok(Found::File(meta)),
        // An empty collection matches neither request.
        (Ok(_), Ok(_)) => Ok(Found::Directory(Below::default())),
        // The error of the listing is more informative than "not found".
        (Err(ListError::Store(error)), Err(_)) if is_unusable(&error) => Err(in_words(error)),
        (_, Err(error)) => Err(in_words(error)),
        (Err(ListError::Store(error)), Ok(_)) => {
            let reason = failure::masked(&failure::chain(&error));
            let reason = format!(
                "{} does not list directories (no WebDAV): {reason}; URLs of single files can be \
                 read, and so can a copy in a bucket or on a disk",
                location.place_name()
            );
            Err(io::Error::new(io::ErrorKind::Unsupported, reason))
        }
        (Err(error), Ok(_)) => Err(error.in_words(client, location)),
    }
}

/// Whether an answer is not a listing.
fn is_unusable(error: &ObjectError) -> bool {
    matches!(error, ObjectError::Generic { .. })
        && !failure::chain(error).contains("non-2xx status")
}

enum ListError {
    Store(ObjectError),
    TooMany,
}

impl ListError {
    fn in_words(self, client: &Client, location: &Location) -> io::Error {
        match self {
            ListError::Store(error) => failure::in_words(&error, location, &client.login),
            ListError::TooMany => {
                let reason = format!("expected at most {N_OBJECTS_MAX} objects, found more");
                io::Error::other(reason)
            }
        }
    }
}

async fn everything_below(client: &Client, location: &Location) -> Result<Below, ListError> {
    let mut n_attempts = 1;
    loop {
        match once_below(client, location).await {
            Err(ListError::Store(error))
                if n_attempts < N_ATTEMPTS && failure::is_broken_off(&error) =>
            {
                // The client retries requests without an answer, but not those whose answer broke
                // off.
                tokio::time::sleep(Duration::from_millis(100 << n_attempts)).await;
                n_attempts += 1;
            }
            result => return result,
        }
    }
}

async fn once_below(client: &Client, location: &Location) -> Result<Below, ListError> {
    let prefix = (!location.key.as_ref().is_empty()).then_some(&location.key);
    let mut listed = client.store.list(prefix);
    let mut found = Below::default();
    let mut first_error = None;
    while let Some(meta) = listed.next().await {
        let meta = match meta {
            Ok(meta) => meta,
            // WebDAV lists everything in one answer, so the failure concerns a single object; the
            // server may have no more answers for the others.
            Err(error) if location.service == Service::Http => {
                if found.refused.len() < N_REFUSED_MAX {
                    found.refused.push(failure::masked(&failure::chain(&error)));
                }
                first_error.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(ListError::Store(error)),
        };
        let name = meta.location.as_ref().to_owned();
        let below = match prefix {
            None => Some(&*name),
            Some(prefix) => name
                .strip_prefix(prefix.as_ref())
                .and_then(|below| below.strip_prefix('/')),
        };
        let Some(below) = below.filter(|below| !below.is_empty()) else {
            continue;
        };
        found.objects.push((below.to_owned(), meta));
        if found.objects.len() > N_OBJECTS_MAX {
            return Err(ListError::TooMany);
        }
    }
    match first_error.filter(|_| found.objects.is_empty()) {
        Some(error) => Err(ListError::Store(error)),
        None => Ok(found),
    }
}

/// A file's metadata, and whether it is an HTML page that the server generated.
async fn head(client: &Client, key: &ObjectPath) -> Result<(ObjectMeta, bool), ObjectError> {
    let options = GetOptions {
        head: true,
        ..GetOptions::default()
    };
    let found = client.store.get_opts(key, options).await?;
    let kind = found.attributes.get(&Attribute::ContentType);
    let is_page = kind.is_some_and(|kind| kind.starts_with("text/html"));
    let is_named_so = key.as_ref().ends_with(".html");
    Ok((found.meta, is_page && !is_named_so))
}

/// A listing with its local placeholders.
pub(crate) struct ListedRoot {
    url: String,
    place: PathBuf,
    /// The directory of files that are still being fetched.
    arrivals: Arc<Path>,
    objects: HashMap<String, Arc<RemoteObject>>,
    unlisted: Vec<(String, String)>,
}

impl ListedRoot {
    /// Creates the placeholders of the listed files.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn new(
        url: &str,
        found: Found,
        client: &Arc<Client>,
        stand_ins: &StandIns,
    ) -> io::Result<ListedRoot> {
        let url = url.trim_end_matches('/');
        let name = url.rsplit('/').next().unwrap_or_default();
        let arrivals: Arc<Path> = stand_ins.next_place()?.into();
        let place = arrivals.join(name);
        let mut root = ListedRoot {
            url: url.to_owned(),
            place,
            arrivals,
            objects: HashMap::new(),
            unlisted: Vec::new(),
        };
        match found {
            Found::File(meta) => {
                let place = root.place.clone();
                root.add(url.to_owned(), &place, &meta, client)?;
            }
            // An empty directory is created too, so that it differs from a missing one.
            Found::Directory(below) => {
                stand_ins.create_dir(&root.place)?;
                root.add_all(below.objects, client, stand_ins)?;
                let refused = below.refused.into_iter();
                let refused = refused.map(|reason| (root.url.clone(), reason));
                root.unlisted.extend(refused);
            }
        }
        Ok(root)
    }

    fn add_all(
        &mut self,
        objects: Vec<(String, ObjectMeta)>,
        client: &Arc<Client>,
        stand_ins: &StandIns,
    ) -> io::Result<()> {
        let dirs: HashSet<String> = objects.iter().flat_map(|(name, _)| dirs_of(name)).collect();
        for (name, meta) in objects {
            // Web consoles create an empty object for a directory.
            if dirs.contains(&name) && meta.size == 0 {
                continue;
            }
            let url = format!("{}/{name}", self.url);
            let refused = if dirs.contains(&name) {
                Some("its name is that of a directory as well")
            } else {
                reason_against(&name)
            };
            if let Some(reason) = refused {
                self.unlisted.push((url, reason.to_owned()));
                continue;
            }
            let place = self.place.join(&name);
            if let Some(dir) = place.parent() {
                stand_ins.create_dir(dir)?;
            }
            self.add(url, &place, &meta, client)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        url: String,
        place: &Path,
        meta: &ObjectMeta,
        client: &Arc<Client>,
    ) -> io::Result<()> {
        let places = (place.to_owned(), self.arrivals.clone());
        let object = RemoteObject::new(url.clone(), places, meta, client.clone());
        object.create_stand_in()?;
        self.objects.insert(url, Arc::new(object));
        Ok(())
    }

    /// The file at a URL.
    pub(crate) fn object(&self, url: &str) -> Option<&Arc<RemoteObject>> {
        self.objects.get(url)
    }

    /// The local path with the names and sizes of a URL's files.
    pub(crate) fn stand_in(&self, url: &str) -> PathBuf {
        let below = url.strip_prefix(&self.url).unwrap_or_default();
        match below.trim_start_matches('/') {
            // Joining an empty path would append a slash to a file.
            "" => self.place.clone(),
            below => self.place.join(below),
        }
    }

    /// Names below a URL that could not be listed, with reasons.
    pub(crate) fn unlisted(&self, url: &str) -> Vec<(PathBuf, io::Error)> {
        let below = self
            .unlisted
            .iter()
            .filter(|(name, _)| name.starts_with(url));
        below
            .map(|(url, reason)| (PathBuf::from(url), io::Error::other(reason.clone())))
            .collect()
    }
}

/// The parent directories of a name, which end before each of its slashes.
fn dirs_of(name: &str) -> impl Iterator<Item = String> {
    name.match_indices('/').map(|(at, _)| name[..at].to_owned())
}

/// Why a name is not usable for a file, if so.
fn reason_against(name: &str) -> Option<&'static str> {
    let mut parts = name.split('/');
    if name.contains('\0') {
        Some("its name contains a NUL byte")
    } else if parts.clone().any(|part| matches!(part, "" | "." | "..")) {
        Some("its name has an empty, `.` or `..` component")
    } else if parts.any(|part| part.len() > N_NAME_BYTES_MAX) {
        Some("a component of its name is longer than 255 bytes")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_file_can_have_are_refused() {
        for name in ["a//b", "../b", "a/./b", "a/", &"x".repeat(256), "a\0b"] {
            assert!(reason_against(name).is_some(), "{name}");
        }
        assert_eq!(reason_against("0/step-0.parquet"), None);
        assert_eq!(dirs_of("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
