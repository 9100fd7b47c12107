//! Files that grow under their final name, for formats whose readers can detect where the complete
//! part ends.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::Creator;
use super::directories::split;
use super::pretend::n_bytes;
use super::size_limit::without_signal;
use crate::StoreError;

/// Shorter parts are combined before they are written.
const N_GATHERED_MAX: usize = 64 << 10;

/// A file of ours that grows.
#[derive(Debug)]
pub struct GrowingFile {
    path: PathBuf,
    /// `None` if nothing is written, only counted.
    file: Option<File>,
}

impl GrowingFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Creator {
    /// Creates an empty file that is to grow, and its directory if that is missing; `None` if the
    /// name is taken.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn create_growing(&self, path: &Path) -> Result<Option<GrowingFile>, StoreError> {
        let new = |file| GrowingFile {
            path: path.to_owned(),
            file,
        };
        let (dir, name) = split(path);
        if let Some(pretence) = &self.pretence {
            self.create_dir(dir)?;
            let is_new = pretence.create(path, 0);
            let is_new = is_new.map_err(StoreError::io("write", path))?;
            return Ok(is_new.then(|| new(None)));
        }
        match self.in_dir(dir, |dir, mode| dir.target(name).create(mode)) {
            Ok((_, file)) => {
                self.modes.settle_file(&file);
                Ok(Some(new(Some(file))))
            }
            Err(error) if error.is_already_there() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Ends a file after `n_bytes`. There must be no concurrent writes.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn end_at(&self, file: &GrowingFile, n_bytes: u64) -> Result<(), StoreError> {
        let failed = StoreError::io("write", &file.path);
        let Some(file) = &file.file else {
            return Ok(());
        };
        without_signal(|| file.set_len(n_bytes)).map_err(failed)
    }

    /// Writes `parts`, one after the other, from byte `offset` on. Several threads may write to
    /// different places.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn write_at(
        &self,
        file: &GrowingFile,
        offset: u64,
        parts: &[&[u8]],
    ) -> Result<(), StoreError> {
        let failed = StoreError::io("write", &file.path);
        let Some(file) = &file.file else {
            let pretence = self.pretence.as_ref();
            let counted = pretence.map(|pretence| pretence.append(&file.path, n_bytes(parts)));
            return counted.transpose().map(drop).map_err(failed);
        };
        let mut at = offset;
        let mut gathered = Vec::new();
        let written = without_signal(|| {
            for part in parts {
                // Copying some bytes is cheaper than a call for each part.
                if gathered.len() + part.len() <= N_GATHERED_MAX && parts.len() > 1 {
                    gathered.extend_from_slice(part);
                    continue;
                }
                file.write_all_at(&gathered, at)?;
                at += gathered.len() as u64;
                gathered.clear();
                file.write_all_at(part, at)?;
                at += part.len() as u64;
            }
            file.write_all_at(&gathered, at)
        });
        written.map_err(failed)
    }
}
