//! One remote file, and whether it is still the one that was listed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use object_store::ObjectMeta;
use object_store::path::Path as ObjectPath;
use opscope_store::file_bytes::FileBytes;
use opscope_store::{regular_file, space};

use crate::background::wait_for;
use crate::client::Client;
use crate::stand_in::StandIns;
use crate::{failure, lock, transfer};

/// A file elsewhere.
pub(crate) struct RemoteObject {
    url: String,
    key: ObjectPath,
    client: Arc<Client>,
    n_bytes: u64,
    /// Seconds since 1970-01-01 UTC, and nanoseconds; none where the server does not say.
    modified: Option<(u64, u32)>,
    /// The version, which every answer has to name again.
    version: Mutex<Option<String>>,
    place: PathBuf,
    /// A directory that no reader lists, in the same file system.
    arrivals: Arc<Path>,
    /// Whether the file at `place` has its content.
    is_whole: Mutex<bool>,
}

impl RemoteObject {
    pub(crate) fn new(
        url: String,
        (place, arrivals): (PathBuf, Arc<Path>),
        meta: &ObjectMeta,
        client: Arc<Client>,
    ) -> RemoteObject {
        // Listings by WebDAV and answers of the same server may name versions by other words.
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
    /// With what is different.
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
        // Headers have whole seconds.
        if let (None, Some((before, _)), Some((now, _))) = (&version, self.modified, modified(meta))
            && before != now
        {
            return Err(failure::changed("another time of its last change"));
        }
        Ok(())
    }

    /// Makes the file without content that has the size and the time of this one.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn create_stand_in(&self) -> io::Result<()> {
        let file = self.new_file(&self.place)?;
        // Nothing of this is on the disk: it is all one hole.
        file.set_len(self.n_bytes)?;
        self.settle(&file)
    }

    fn new_file(&self, place: &Path) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(place)
    }

    /// Gives a file the time of this one, by which those who keep results know it again.
    fn settle(&self, file: &File) -> io::Result<()> {
        let Some((seconds, nanoseconds)) = self.modified else {
            return Ok(());
        };
        let time: Option<SystemTime> = UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds));
        time.map_or(Ok(()), |time| file.set_modified(time))
    }

    /// Opens the file with all of its content, which is fetched if it is not there.
    ///
    /// # Errors
    /// Those of [`transfer::fetch`] and of the operating system.
    pub(crate) fn open_whole(self: &Arc<RemoteObject>) -> io::Result<(File, Metadata)> {
        // Others who want it wait for it.
        let mut is_whole = lock(&self.is_whole);
        if !*is_whole {
            self.check_room(self.n_bytes)?;
            let arriving = self.arriving();
            let _ = fs::remove_file(&arriving);
            let file = Arc::new(self.new_file(&arriving)?);
            let result = self.fetch(0..self.n_bytes, file.clone());
            let result = result.and_then(|()| {
                self.settle(&file)?;
                fs::rename(&arriving, &self.place)
            });
            if let Err(error) = result {
                let _ = fs::remove_file(&arriving);
                return Err(error);
            }
            *is_whole = true;
        }
        regular_file::open_in_dump(&self.place)
    }

    /// Where content is until it is whole: beside all listings, so that no reader finds it.
    fn arriving(&self) -> PathBuf {
        let number = std::ptr::from_ref(self).addr();
        self.arrivals.join(format!("{number:x}.arriving"))
    }

    /// Puts the file without content back in its place. Whoever has the content open keeps it.
    pub(crate) fn drop_content(&self) {
        let mut is_whole = lock(&self.is_whole);
        if *is_whole && fs::remove_file(&self.place).is_ok() {
            *is_whole = false;
            // Without it the name is missing in a later listing of the directory, which is told.
            let _ = self.create_stand_in();
        }
    }

    /// Reads a part into a file that has no name, and maps it.
    ///
    /// # Errors
    /// As for [`RemoteObject::open_whole`].
    pub(crate) fn read_into_file(
        self: &Arc<RemoteObject>,
        range: Range<u64>,
        stand_ins: &StandIns,
    ) -> io::Result<FileBytes> {
        let n_bytes = range.end - range.start;
        self.check_room(n_bytes)?;
        let file = Arc::new(stand_ins.unnamed_file()?);
        self.fetch(range, file.clone())?;
        let n_bytes = usize::try_from(n_bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        FileBytes::part(&file, 0, n_bytes)
    }

    fn fetch(self: &Arc<RemoteObject>, range: Range<u64>, file: Arc<File>) -> io::Result<()> {
        let object = self.clone();
        wait_for(async move { transfer::fetch(&object, range, &file).await })
    }

    fn check_room(&self, n_bytes: u64) -> io::Result<()> {
        let Ok(space) = space(&self.place) else {
            return Ok(());
        };
        if n_bytes > space.n_bytes_free {
            let dir = std::env::temp_dir();
            let reason = format!(
                "{n_bytes} bytes of it do not fit into `{}`, where {} are free; TMPDIR names \
                 another place",
                dir.display(),
                space.n_bytes_free
            );
            return Err(io::Error::new(io::ErrorKind::StorageFull, reason));
        }
        Ok(())
    }
}

/// A version without the marks around it, which listings and answers put differently.
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
    // A server that says nothing is taken for one that says 1970.
    (seconds > 0).then(|| (seconds, meta.last_modified.timestamp_subsec_nanos()))
}
