//! Dumps in object storage or behind HTTP, read by ranges.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `location` | a parsed URL |
//! | `client` | a connection to a bucket or a server |
//! | `http_client` | requests and answers: time-outs, certificates, redirects |
//! | `settings` | retries |
//! | `credentials` | where credentials come from |
//! | `aws_files` | AWS's files of credentials and settings |
//! | `listing` | the objects below a URL |
//! | `stand_in` | the private directory of files without content |
//! | `object` | one remote file, and whether it changed since it was listed |
//! | `content` | content of remote files on the local disk |
//! | `transfer` | transfers: concurrent parts, retries |
//! | `blocks` | a cache of small tensors and their neighbours |
//! | `pieces` | a cache of large tensors |
//! | `failure` | error messages without secrets |
//! | `background` | the threads that wait for servers |
//!
//! [`enable`] makes all this available to `opscope_store::remote`; there is no other entry point.

mod aws_files;
mod background;
mod blocks;
mod client;
mod content;
mod credentials;
mod failure;
mod http_client;
mod listing;
mod location;
mod object;
mod pieces;
mod settings;
mod stand_in;
mod transfer;

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use opscope_store::file_bytes::FileBytes;
use opscope_store::remote::{self, RemoteFiles};
use opscope_tensor::SharedBytes;

use self::background::wait_for;
use self::blocks::BlockCache;
use self::client::Clients;
use self::listing::ListedRoot;
use self::location::Location;
use self::object::RemoteObject;
use self::pieces::PieceCache;
use self::stand_in::StandIns;

/// Maximum size of the cached files and large tensors, in addition to the one being read, unless
/// `OPSCOPE_REMOTE_CACHE` sets another.
const KEPT_BYTES_MAX: u64 = 4 << 30;
/// The environment variable for that number of bytes.
const CACHE_VARIABLE: &str = "OPSCOPE_REMOTE_CACHE";
/// Tensors up to this size are read in blocks shared with their neighbours.
const IN_BLOCKS_BYTES_MAX: u64 = 4 << 20;

static SHARED: OnceLock<Arc<Remote>> = OnceLock::new();

/// Lets every reader of this process open URLs. Connections are made on first use.
pub fn enable() {
    let shared = SHARED.get_or_init(|| Arc::new(Remote::default()));
    remote::provide(Box::new(Provided(shared.clone())));
}

/// Removes the local files of this process. Call it before the process ends.
pub fn clean() {
    if let Some(shared) = SHARED.get() {
        // A later access lists again.
        lock(&shared.roots).clear();
        lock(&shared.kept).clear();
        shared.pieces.forget(|_| true);
        shared.stand_ins.remove();
    }
}

struct Provided(Arc<Remote>);

/// The state of this process for all URLs.
#[derive(Default)]
struct Remote {
    clients: Clients,
    stand_ins: StandIns,
    roots: Mutex<HashMap<String, Result<Arc<ListedRoot>, Refusal>>>,
    /// Cached files, the oldest first.
    kept: Mutex<Vec<Arc<RemoteObject>>>,
    blocks: BlockCache,
    pieces: PieceCache,
}

/// An error that is returned again on each access.
#[derive(Clone)]
struct Refusal {
    kind: io::ErrorKind,
    /// Empty if the URL does not exist.
    reason: String,
}

impl Refusal {
    fn error(&self) -> io::Error {
        if self.reason.is_empty() {
            return failure::not_found();
        }
        io::Error::new(self.kind, self.reason.clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Remote {
    /// The listing that contains a URL, created if necessary.
    fn root_of(&self, url: &str) -> io::Result<Arc<ListedRoot>> {
        // The lock is held while listing: other threads usually wait for the same listing.
        let mut roots = lock(&self.roots);
        let above =
            std::iter::successors(Some(url), |url| url.rsplit_once('/').map(|(dir, _)| dir));
        for dir in above {
            match roots.get(dir) {
                Some(Ok(root)) => return Ok(root.clone()),
                Some(Err(refusal)) if dir == url => return Err(refusal.error()),
                _ => {}
            }
        }
        let listed = Location::parse(url).and_then(|location| self.list(url, &location));
        let entry = match listed {
            Ok(root) => Ok(Arc::new(root)),
            Err(error) => Err(Refusal {
                kind: error.kind(),
                reason: match error.raw_os_error() {
                    Some(_) if error.kind() == io::ErrorKind::NotFound => String::new(),
                    _ => error.to_string(),
                },
            }),
        };
        let found = entry.as_ref().map(Arc::clone).map_err(Refusal::error);
        roots.insert(url.to_owned(), entry);
        found
    }

    fn list(&self, url: &str, location: &Location) -> io::Result<ListedRoot> {
        let client = self.clients.of_place(location)?;
        let found = listing::list(&client, location)?;
        ListedRoot::new(url, found, &client, &self.stand_ins)
    }

    fn object(&self, url: &str) -> io::Result<Arc<RemoteObject>> {
        let url = trimmed(url);
        let root = self.root_of(url)?;
        root.object(url).cloned().ok_or_else(|| {
            if root.stand_in(url).is_dir() {
                io::ErrorKind::IsADirectory.into()
            } else {
                failure::not_found()
            }
        })
    }

    /// Opens a file with its whole content, and evicts the oldest cached files beyond the limit.
    fn open_whole(&self, object: &Arc<RemoteObject>) -> io::Result<(File, Metadata)> {
        let opened = content::open_whole(object)?;
        let mut kept = lock(&self.kept);
        // The most recently opened file stays longest.
        kept.retain(|known| !Arc::ptr_eq(known, object));
        kept.push(object.clone());
        let mut n_bytes: u64 = kept.iter().map(|known| known.n_bytes()).sum();
        let n_bytes_max = kept_bytes_max();
        while n_bytes > n_bytes_max && kept.len() > 1 {
            let oldest = kept.remove(0);
            n_bytes -= oldest.n_bytes();
            oldest.drop_content();
        }
        Ok(opened)
    }
}

/// A URL without trailing slashes.
fn trimmed(url: &str) -> &str {
    let trimmed = url.trim_end_matches('/');
    // A bare scheme stays as it is, and is refused later.
    if trimmed.ends_with(':') { url } else { trimmed }
}

fn kept_bytes_max() -> u64 {
    static N_BYTES_MAX: OnceLock<u64> = OnceLock::new();
    *N_BYTES_MAX.get_or_init(|| {
        let given = std::env::var(CACHE_VARIABLE).ok();
        let given = given.and_then(|text| text.trim().parse().ok());
        given.unwrap_or(KEPT_BYTES_MAX)
    })
}

impl RemoteFiles for Provided {
    fn stand_in(&self, url: &str) -> io::Result<PathBuf> {
        let url = trimmed(url);
        Ok(self.0.root_of(url)?.stand_in(url))
    }

    fn open(&self, url: &str) -> io::Result<(File, Metadata)> {
        let object = self.0.object(url)?;
        self.0.open_whole(&object)
    }

    fn read_part(&self, url: &str, range: Range<u64>) -> io::Result<SharedBytes> {
        let object = self.0.object(url)?;
        if range.end > object.n_bytes() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The whole file may already have been fetched.
        if object.is_whole() || !object.has_ranges() {
            let (file, _) = self.0.open_whole(&object)?;
            let [start, end] = [range.start, range.end].map(usize::try_from);
            let range = start.ok().zip(end.ok()).map(|(start, end)| start..end);
            let range = range.ok_or(io::ErrorKind::OutOfMemory)?;
            return Ok(Arc::new(FileBytes::read_part(&file, range)?));
        }
        let read = if range.end - range.start <= IN_BLOCKS_BYTES_MAX {
            let read = self.0.blocks.read(&object, range.clone());
            read.map(|bytes| Arc::new(bytes) as SharedBytes)
        } else {
            let remote = &self.0;
            let (range, n_bytes_max) = (range.clone(), kept_bytes_max());
            let pieces = &remote.pieces;
            let read = pieces.read(&object, range, &remote.stand_ins, n_bytes_max);
            read.map(|bytes| Arc::new(bytes) as SharedBytes)
        };
        match read {
            // The server just turned out not to support ranges, so the whole file is fetched.
            Err(_) if !object.has_ranges() => self.read_part(url, range),
            read => read,
        }
    }

    fn read_start(&self, url: &str, n_bytes: u64) -> io::Result<SharedBytes> {
        let object = self.0.object(url)?;
        if object.is_whole() || !object.has_ranges() {
            return self.read_part(url, 0..n_bytes);
        }
        let read = {
            let object = object.clone();
            wait_for(async move { transfer::read(&object, 0..n_bytes).await })
        };
        match read {
            Err(_) if !object.has_ranges() => self.read_part(url, 0..n_bytes),
            read => read.map(|bytes| Arc::new(bytes) as SharedBytes),
        }
    }

    fn unlisted(&self, url: &str) -> Vec<(PathBuf, io::Error)> {
        let root = self.0.root_of(trimmed(url));
        root.map(|root| root.unlisted(url)).unwrap_or_default()
    }

    fn forget(&self, url: &str) {
        let url = trimmed(url);
        let below = format!("{url}/");
        let is_other = |known: &str| {
            known != url && !known.starts_with(&below) && !url.starts_with(&format!("{known}/"))
        };
        lock(&self.0.roots).retain(|known, _| is_other(known));
        lock(&self.0.kept).retain(|object| is_other(object.url()));
        self.0.pieces.forget(|object| !is_other(object.url()));
    }
}
