//! Transfers: concurrent parts, retries.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use object_store::{Error as ObjectError, GetOptions, GetRange, ObjectStore};
use tokio::sync::Semaphore;

use crate::failure;
use crate::location::Location;
use crate::object::RemoteObject;

/// Large files are requested in parts of this size.
const PART_BYTES: u64 = 8 << 20;
/// Maximum number of concurrent requests for one file.
const N_PARTS_AT_ONCE: usize = 8;
/// Maximum number of concurrent requests of this process.
const N_REQUESTS_MAX: usize = 16;
/// Maximum number of attempts for an answer that breaks off. The client itself retries requests
/// without an answer.
const N_ATTEMPTS: u32 = 5;

static REQUESTS: Semaphore = Semaphore::const_new(N_REQUESTS_MAX);

/// Why a part did not arrive.
enum PartError {
    /// The answer broke off.
    BrokenOff(io::Error),
    /// The server does not support ranges.
    NoRanges,
    Final(io::Error),
}

/// Writes a part of a remote file to the beginning of `file`.
///
/// # Errors
/// [`failure::in_words`]; if the file changed since it was listed or the answer is short; errors of
/// writing.
pub(crate) async fn fetch(
    object: &Arc<RemoteObject>,
    range: Range<u64>,
    file: &Arc<File>,
) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let is_whole = range == (0..object.n_bytes());
    if is_whole && (!object.has_ranges() || object.n_bytes() <= PART_BYTES) {
        return fetch_part(object, &range, None, file, 0).await;
    }
    let parts = (range.start..range.end).step_by(PART_BYTES as usize);
    let parts = parts.map(|start| start..range.end.min(start.saturating_add(PART_BYTES)));
    let parts = parts.map(|part| {
        let at = part.start - range.start;
        async move { fetch_part(object, &part, Some(part.clone()), file, at).await }
    });
    let fetched = stream::iter(parts)
        .buffer_unordered(N_PARTS_AT_ONCE)
        .try_collect::<()>()
        .await;
    // Without ranges the whole file is requested at once.
    if fetched.is_err() && is_whole && !object.has_ranges() {
        return fetch_part(object, &range, None, file, 0).await;
    }
    fetched
}

/// Reads a part of a remote file into memory.
///
/// # Errors
/// As for [`fetch`].
pub(crate) async fn read(object: &Arc<RemoteObject>, range: Range<u64>) -> io::Result<Vec<u8>> {
    let mut attempt = 0;
    loop {
        let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
        let result = receive(object, &range, Some(range.clone()), &mut |chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })
        .await;
        match again(object, result, &mut attempt).await {
            None => return Ok(bytes),
            Some(Ok(())) => {}
            Some(Err(error)) => return Err(error),
        }
    }
}

async fn fetch_part(
    object: &Arc<RemoteObject>,
    range: &Range<u64>,
    asked: Option<Range<u64>>,
    file: &File,
    at: u64,
) -> io::Result<()> {
    let mut attempt = 0;
    loop {
        // A retry overwrites the bytes of an answer that broke off.
        let mut next = at;
        let result = receive(object, range, asked.clone(), &mut |chunk| {
            file.write_all_at(chunk, next)?;
            next += chunk.len() as u64;
            Ok(())
        })
        .await;
        match again(object, result, &mut attempt).await {
            None => return Ok(()),
            Some(Ok(())) => {}
            Some(Err(error)) => return Err(error),
        }
    }
}

/// Pauses and returns whether to retry; none if nothing is left to request.
async fn again(
    object: &RemoteObject,
    result: Result<(), PartError>,
    attempt: &mut u32,
) -> Option<io::Result<()>> {
    match result {
        Ok(()) => None,
        Err(PartError::Final(error)) => Some(Err(error)),
        Err(PartError::NoRanges) => {
            object.client().note_no_ranges();
            Some(Err(io::ErrorKind::Unsupported.into()))
        }
        Err(PartError::BrokenOff(error)) => {
            *attempt += 1;
            if *attempt >= N_ATTEMPTS {
                return Some(Err(error));
            }
            tokio::time::sleep(Duration::from_millis(100 << *attempt)).await;
            Some(Ok(()))
        }
    }
}

/// Makes one request, and passes its content on.
async fn receive(
    object: &RemoteObject,
    range: &Range<u64>,
    asked: Option<Range<u64>>,
    take: &mut (dyn FnMut(&[u8]) -> io::Result<()> + Send),
) -> Result<(), PartError> {
    let _turn = REQUESTS.acquire().await;
    let options = GetOptions {
        range: asked.map(GetRange::Bounded),
        ..GetOptions::default()
    };
    let answer = object.client().store.get_opts(object.key(), options).await;
    let answer = answer.map_err(|error| refused(object, &error))?;
    object.check(&answer.meta).map_err(PartError::Final)?;
    let n_expected = range.end - range.start;
    let mut n_received: u64 = 0;
    let mut chunks = answer.into_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            let reason = failure::masked(&failure::chain(&error));
            PartError::BrokenOff(io::Error::other(format!("the answer broke off: {reason}")))
        })?;
        n_received += chunk.len() as u64;
        if n_received > n_expected {
            break;
        }
        take(&chunk).map_err(PartError::Final)?;
    }
    if n_received == n_expected {
        Ok(())
    } else {
        let reason = format!("expected {n_expected} bytes of it, received {n_received}");
        Err(PartError::BrokenOff(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            reason,
        )))
    }
}

fn refused(object: &RemoteObject, error: &ObjectError) -> PartError {
    match error {
        ObjectError::NotFound { .. } => {
            let reason = "it was deleted after it was listed";
            PartError::Final(io::Error::new(io::ErrorKind::NotFound, reason))
        }
        ObjectError::NotSupported { .. } => PartError::NoRanges,
        _ => {
            let text = failure::chain(error);
            if text.contains("non-partial response") {
                return PartError::NoRanges;
            }
            // A range beyond the end means that the file has become shorter.
            if text.contains("416") {
                return PartError::Final(failure::changed("it has become shorter"));
            }
            match Location::parse(object.url()) {
                Ok(location) => {
                    let login = &object.client().login;
                    PartError::Final(failure::in_words(error, &location, login))
                }
                Err(error) => PartError::Final(error),
            }
        }
    }
}
