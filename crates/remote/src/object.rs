//! One remote file, and whether it changed since it was listed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use object_store::ObjectMeta;
use object_store::path::Path as ObjectPath;

use crate::client::Client;
use crate::{failure, lock};

/// A remote file.
pub(crate) struct RemoteObject {
    url: String,
    key: ObjectPath,
    client: Arc<Client>,
    n_bytes: u64,
    /// Seconds since 1970-01-01 UTC, and nanoseconds; none if the server does not report it.
    modified: Option<(u64, u32)>,
    /// The version, which every answer has to repeat.
    version: Mutex<Option<String>>,
    pub(crate) place: PathBuf,
    /// A directory in the same file system that no reader lists.
    arrivals: Arc<Path>,
    /// Whether the file at `place` has its content.
    pub(crate) is_whole: Mutex<bool>,
}

impl RemoteObject {
    pub(crate) fn new(
        url: String,
        (place, arrivals): (PathBuf, Arc<Path>),
        meta: &ObjectMeta,
        client: Arc<Client>,
    ) -> RemoteObject {
        // A server's WebDAV listing and its answers may name versions differently.
        let is_bucket = !url.starts_with("http");
        let version = meta.e_tag.as_deref().filter(|_| is_bucket).map(plain);
        RemoteObject {
            url,
            key: meta.location.clone(),
            client,
            n_bytes: meta.size,
            modified: modified(meta),
            version: Mutex::new(version),
            place,
            arrivals,
            is_whole: Mutex::new(false),
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn key(&self) -> &ObjectPath {
        &self.key
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    pub(crate) fn has_ranges(&self) -> bool {
        self.client.has_ranges()
    }

    pub(crate) fn is_whole(&self) -> bool {
        *lock(&self.is_whole)
    }

    /// Whether an answer is about the file that was listed.
    ///
    /// # Errors
    /// If a property differs, naming it.
    pub(crate) fn check(&self, meta: &ObjectMeta) -> io::Result<()> {
        if meta.size != self.n_bytes {
            let (before, now) = (self.n_bytes, meta.size);
            return Err(failure::changed(&format!("{before} bytes then, {now} now")));
        }
        let version = meta.e_tag.as_deref().map(plain);
        let mut known = lock(&self.version);
        match (&*known, &version) {
            (Some(known), Some(version)) if known != version => {
                let what = format!("version {known} then, {version} now");
                return Err(failure::changed(&what));
            }
            (None, Some(_)) => *known = version.clone(),
            _ => {}
        }
        // Headers have a resolution of one second.
        if let (None, Some((before, _)), Some((now, _))) = (&version, self.modified, modified(meta))
            && before != now
        {
            return Err(failure::changed("its modification time differs"));
        }
        Ok(())
    }

    /// Creates a placeholder: a file without content, with the size and the time of this one.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn create_stand_in(&self) -> io::Result<()> {
        let file = self.new_file(&self.place)?;
        // A sparse file: it takes no space on the disk.
        file.set_len(self.n_bytes)?;
        self.settle(&file)
    }

    /// Creates a file that only this user can read.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn new_file(&self, place: &Path) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(place)
    }

    /// Sets the modification time of this file, by which cached results recognise it.
    pub(crate) fn settle(&self, file: &File) -> io::Result<()> {
        let Some((seconds, nanoseconds)) = self.modified else {
            return Ok(());
        };
        let time: Option<SystemTime> = UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds));
        time.map_or(Ok(()), |time| file.set_modified(time))
    }

    /// The path of a file that is still being fetched: outside of all listings, so that no reader
    /// sees it.
    pub(crate) fn arriving(&self) -> PathBuf {
        let number = std::ptr::from_ref(self).addr();
        self.arrivals.join(format!("{number:x}.arriving"))
    }

    /// Restores the placeholder. Readers with the content open keep it.
    pub(crate) fn drop_content(&self) {
        let mut is_whole = lock(&self.is_whole);
        if *is_whole && fs::remove_file(&self.place).is_ok() {
            *is_whole = false;
            // Without it the name is missing in a later listing of the directory, which is
            // reported.
            let _ = self.create_stand_in();
        }
    }
}

/// A version without quotes, which listings and answers use differently.
fn plain(e_tag: &str) -> String {
    let e_tag = e_tag.trim();
    e_tag
        .strip_prefix("W/")
        .unwrap_or(e_tag)
        .trim_matches('"')
        .to_owned()
}

fn modified(meta: &ObjectMeta) -> Option<(u64, u32)> {
    let seconds = u64::try_from(meta.last_modified.timestamp()).ok()?;
    // A missing time is reported as 1970.
    (seconds > 0).then(|| (seconds, meta.last_modified.timestamp_subsec_nanos()))
}
