//! A sink that writes the AscendCL tree: one tensor file for each operator execution.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, Modes};
use opscope_store::file_format::{dump_data, mapping_csv};
use opscope_store::record::Record;
use opscope_store::tree::acl::{AclTree, hash_name};

use super::{Sink, SinkError, Written};

/// How often a taken name is tried again with a later time stamp.
const N_NAME_ATTEMPTS: u64 = 1000;

/// Writes below `{dump_path}/{time}`.
pub struct AclSink {
    tree: AclTree,
    creator: Creator,
    mapping: Mutex<()>,
}

impl AclSink {
    /// Creates the tree's root directory, so that an unusable place is found before a model runs.
    ///
    /// `times` are the names that the directory may have, the first free one is taken: two dumps
    /// never share a tree.
    ///
    /// # Errors
    /// [`StoreError::Io`] if `dump_path` or the directory in it cannot be created.
    pub fn create(
        dump_path: &Path,
        times: impl IntoIterator<Item = String>,
        modes: Modes,
    ) -> Result<AclSink, StoreError> {
        let creator = Creator::new(modes);
        creator.create_dir(dump_path)?;
        let mut tree = AclTree::new(dump_path, "");
        for time in times {
            tree = AclTree::new(dump_path, &time);
            if creator.create_new_dir(tree.root())? {
                break;
            }
        }
        Ok(AclSink {
            tree,
            creator,
            mapping: Mutex::new(()),
        })
    }

    /// The directories that `model` writes to.
    pub fn tree(&self) -> &AclTree {
        &self.tree
    }

    /// Writes the file unless its name is taken; returns whether it did.
    fn try_write(
        &self,
        record: &Record,
        timestamp_us: u64,
        parts: &[&[u8]],
    ) -> Result<bool, StoreError> {
        let place = self.tree.place(record, timestamp_us);
        let Some(short_name) = hash_name(&place.dir, &place.file_name) else {
            return self
                .creator
                .create_file(&place.dir.join(&place.file_name), parts);
        };
        self.creator.create_dir(&place.dir)?;
        // The line goes first: a name without a file misleads nobody, a file without a name is lost.
        // Lines are appended whole, and the lock keeps them in the order of their files.
        let guard = self.mapping.lock().unwrap_or_else(PoisonError::into_inner);
        let path = place.dir.join(&short_name);
        if path.exists() {
            return Ok(false);
        }
        let line = mapping_csv::line(&short_name, &place.file_name);
        self.creator
            .append_line(&place.dir.join(mapping_csv::FILE_NAME), &line)?;
        drop(guard);
        self.creator.create_file(&path, parts)
    }
}

impl Sink for AclSink {
    fn write(&self, record: &Record) -> Result<Written, SinkError> {
        let prelude = dump_data::prelude(record);
        let mut parts: Vec<&[u8]> = vec![&prelude];
        parts.extend(record.slots().map(|(_, _, tensor)| tensor.bytes()));
        let n_bytes = parts.iter().map(|part| part.len() as u64).sum();
        for attempt in 0..N_NAME_ATTEMPTS {
            if self.try_write(record, record.timestamp_us + attempt, &parts)? {
                return Ok(Written {
                    n_files: 1,
                    n_bytes,
                });
            }
        }
        let name = &record.operator.op_name;
        Err(SinkError::Other(format!(
            "no free file name for operator `{name}`"
        )))
    }
}
