//! Files by their content, on disk, for all processes that write below the same directory.
//!
//! `.opscope/content/{file mode}/{first two digits}/{digest}` is a further name of a file with
//! these bytes. It can be deleted at any time.

use std::path::{Path, PathBuf};

use opscope_capture::SinkError;
use opscope_store::atomic_file::{Creator, FileIdentity, PermissionModes, SharingOutcome};
use opscope_store::tree::own::content_dir;
use opscope_tensor::digest::hex;

use super::{FileOutcome, OriginalFile, WriteRequest};

pub(super) struct SourceIndex {
    /// Files with different permissions have a separate index.
    dir: PathBuf,
}

impl SourceIndex {
    pub(super) fn new(root: &Path, modes: PermissionModes) -> SourceIndex {
        SourceIndex {
            // All names of a file share its permissions, so a file with different permissions
            // cannot be linked.
            dir: content_dir(root).join(format!("{:o}", modes.file)),
        }
    }

    fn path(&self, digest: &[u8; 16]) -> PathBuf {
        let name = hex(digest);
        self.dir.join(&name[..2]).join(name)
    }

    /// A file with these bytes, other than the useless one. The bytes are compared: the file may
    /// have been changed since it got its name.
    pub(super) fn find(
        &self,
        digest: &[u8; 16],
        request: &WriteRequest<'_>,
        useless: Option<FileIdentity>,
    ) -> Option<OriginalFile> {
        let original = OriginalFile::new(request.creator, self.path(digest))?;
        // The stamp is taken before the bytes are compared and checked again afterwards, so that it
        // belongs to the compared bytes.
        let is_usable = Some(original.stamp) != useless
            && request.is_held_by(&original.path)
            && original.is_intact(request.creator);
        is_usable.then_some(original)
    }

    /// Adds a file that was just written, in place of the one that was not found or could not be
    /// used.
    ///
    /// Where the index cannot be written, the file is there nevertheless, and only those that other
    /// processes write will not be links to it.
    pub(super) fn add(
        &self,
        digest: &[u8; 16],
        put: FileOutcome,
        creator: &Creator,
    ) -> Result<FileOutcome, SinkError> {
        let Some(original) = &put.original else {
            return Ok(put);
        };
        let path = self.path(digest);
        let is_added = match creator.share_file(&original.path, &path) {
            Ok(SharingOutcome::Shared(_)) => true,
            // The file of that name was changed, or has the maximum number of names. If another
            // process was faster, either file is suitable.
            Ok(SharingOutcome::Taken) => creator
                .share_file_replacing(&original.path, &path)
                .is_ok_and(|is_replaced| is_replaced),
            Ok(SharingOutcome::Refused) | Err(_) => false,
        };
        // The index keeps the file when its own name is removed from the dump.
        let of_index = is_added.then(|| OriginalFile::new(creator, path)).flatten();
        Ok(FileOutcome {
            original: of_index.or(put.original),
            ..put
        })
    }
}
