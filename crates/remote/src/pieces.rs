//! A cache of large tensors.
//!
//! A comparison reads a tensor more than once, and steps share unchanged tensors. Such pieces are
//! mapped from unnamed files: they take space on the disk, not in memory.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use opscope_store::file_bytes::FileBytes;

use crate::object::RemoteObject;
use crate::stand_in::StandIns;
use crate::{content, lock};

/// One piece. Threads that need it while it arrives wait for the lock.
struct Piece {
    object: Arc<RemoteObject>,
    range: Range<u64>,
    bytes: Mutex<Option<FileBytes>>,
}

/// The cached pieces, the oldest first.
#[derive(Default)]
pub(crate) struct PieceCache {
    pieces: Mutex<Vec<Arc<Piece>>>,
}

impl PieceCache {
    /// Reads a part of an object, and caches it while the cache stays within `n_bytes_max`.
    ///
    /// # Errors
    /// Those of [`content::read_into_file`].
    pub(crate) fn read(
        &self,
        object: &Arc<RemoteObject>,
        range: Range<u64>,
        stand_ins: &StandIns,
        n_bytes_max: u64,
    ) -> io::Result<FileBytes> {
        let piece = self.piece(object, &range, n_bytes_max);
        let mut bytes = lock(&piece.bytes);
        if let Some(bytes) = &*bytes {
            return Ok(bytes.clone());
        }
        let read = content::read_into_file(object, range, stand_ins)?;
        *bytes = Some(read.clone());
        Ok(read)
    }

    /// The piece of a range, which becomes the youngest. Readers keep evicted pieces open.
    fn piece(
        &self,
        object: &Arc<RemoteObject>,
        range: &Range<u64>,
        n_bytes_max: u64,
    ) -> Arc<Piece> {
        let mut pieces = lock(&self.pieces);
        let known = pieces
            .iter()
            .position(|piece| Arc::ptr_eq(&piece.object, object) && piece.range == *range);
        let piece = match known {
            // Moved to the end, as the youngest.
            Some(index) => pieces.remove(index),
            None => Arc::new(Piece {
                object: object.clone(),
                range: range.clone(),
                bytes: Mutex::default(),
            }),
        };
        pieces.push(piece.clone());
        let mut n_bytes: u64 = pieces.iter().map(|piece| piece.n_bytes()).sum();
        // Evicts from the oldest on until the rest fits.
        let n_old = pieces
            .iter()
            .take_while(|piece| {
                let is_too_much = n_bytes > n_bytes_max;
                n_bytes -= piece.n_bytes();
                is_too_much
            })
            .count();
        pieces.drain(..n_old);
        piece
    }

    /// Evicts the pieces of objects.
    pub(crate) fn forget(&self, is_forgotten: impl Fn(&RemoteObject) -> bool) {
        lock(&self.pieces).retain(|piece| !is_forgotten(&piece.object));
    }
}

impl Piece {
    fn n_bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}
