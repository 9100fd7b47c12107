//! Elements in a file without a description, which a record of a table contains.

use opscope_tensor::Layout;

use super::{FileFacts, FileKind, StoredTensor, TensorFile};
use crate::file_bytes::FileBytes;
use crate::reader::index::IndexedTensor;
use crate::reader::term::DumpTerm;
use crate::record::SlotSide;
use crate::{FormatError, StoreError, remote};

impl TensorFile {
    /// Opens the file of a record's elements as the record describes it. Elements in this process's
    /// memory act as a separate file.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read, or does not reach as far.
    pub fn open_elements(record: &IndexedTensor) -> Result<TensorFile, StoreError> {
        let path = &record.path;
        // Elements in memory have no path to open.
        let bytes = match &record.held {
            Some(held) => held.bytes(),
            // Of a remote file no more is read than the record asks for, once it does.
            None if remote::is_remote(path) => Ok(Vec::new().into()),
            None => FileBytes::open_in_dump(path),
        };
        TensorFile::of_elements(bytes.map_err(StoreError::io("read", path))?, record)
    }

    /// [`TensorFile::open_elements`] in a file that is open.
    ///
    /// # Errors
    /// [`StoreError`] if the file does not reach as far.
    pub fn of_elements(bytes: FileBytes, record: &IndexedTensor) -> Result<TensorFile, StoreError> {
        let mut file = TensorFile {
            kind: FileKind::Elements,
            file_name: String::new(),
            facts: FileFacts::default(),
            tensors: Vec::new(),
            extras: Vec::new(),
            n_start: 0,
            n_decompressed: None,
            bytes,
        };
        file.turn_to(record)?;
        Ok(file)
    }

    /// Reads the elements of an execution's tensors, wherever they are, as if they were in a file
    /// of this name.
    ///
    /// # Errors
    /// As for [`TensorFile::open_elements`]; also if they are too many for the memory.
    pub fn gather(file_name: &str, records: &[IndexedTensor]) -> Result<TensorFile, StoreError> {
        let mut bytes = Vec::new();
        let mut tensors = Vec::new();
        for record in records {
            let file = TensorFile::open_elements(record)?;
            let Some(found) = file.tensors().next() else {
                continue;
            };
            let (side, index) = record.slot.unwrap_or((SlotSide::Output, 0));
            let n_bytes = (bytes.len() as u64).saturating_add(found.bytes.len() as u64);
            // Each fits, as it is in a file; together they may not.
            crate::check_memory(n_bytes).map_err(StoreError::io("read", &record.path))?;
            tensors.push(StoredTensor {
                side,
                index: index as usize,
                range: bytes.len()..bytes.len() + found.bytes.len(),
                offset: None,
                ..found.stored.clone()
            });
            bytes.extend_from_slice(found.bytes);
        }
        Ok(TensorFile {
            kind: FileKind::Elements,
            file_name: file_name.to_owned(),
            facts: FileFacts::default(),
            tensors,
            extras: Vec::new(),
            n_start: 0,
            n_decompressed: None,
            bytes: bytes.into(),
        })
    }

    /// Makes `record`, whose elements are in this file, its only tensor.
    ///
    /// # Errors
    /// [`StoreError`] if the file does not reach as far.
    pub fn turn_to(&mut self, record: &IndexedTensor) -> Result<(), StoreError> {
        let is_remote = record.held.is_none() && remote::is_remote(&record.path);
        let n_file = if is_remote {
            let metadata = remote::metadata(&record.path);
            let metadata = metadata.map_err(StoreError::io("read", &record.path))?;
            usize::try_from(metadata.len()).unwrap_or(usize::MAX)
        } else {
            self.bytes.as_ref().len()
        };
        let offset = record.elements.as_ref().and_then(|place| place.offset);
        let Some(offset) = offset else {
            let error = FormatError::new(0, "a place of the elements", "none");
            return Err(StoreError::corrupt(FileKind::Elements.name(), &record.path)(error));
        };
        let n_bytes = record.n_bytes.unwrap_or(0);
        let range = usize::try_from(offset)
            .ok()
            .zip(usize::try_from(n_bytes).ok());
        let range = range.and_then(|(start, n)| Some(start..start.checked_add(n)?));
        let Some(mut range) = range.filter(|range| range.end <= n_file) else {
            let found = format!("a file of {n_file} bytes");
            let error = FormatError::new(offset, format!("{n_bytes} bytes of elements"), found);
            return Err(StoreError::corrupt(FileKind::Elements.name(), &record.path)(error));
        };
        if is_remote {
            let part = remote::read_part(&record.path, range.start as u64..range.end as u64);
            let part = part.map_err(StoreError::io("read", &record.path))?;
            self.bytes = FileBytes::shared(part);
            range = 0..range.len();
        }
        let unknown = || DumpTerm::Word("unknown".to_owned(), None);
        // The elements are what the file has, which need not be what the operator had.
        let dtype = record.stored_dtype.clone().or_else(|| record.dtype.clone());
        self.tensors = vec![StoredTensor {
            side: SlotSide::Output,
            index: 0,
            slot: None,
            name: None,
            run: None,
            uses: Vec::new(),
            dtype: dtype.unwrap_or_else(unknown),
            layout: record.layout.clone().unwrap_or(DumpTerm::Known(Layout::Nd)),
            shape: record.shape.clone(),
            original_shape: None,
            original_layout: None,
            original: None,
            n_groups: None,
            n_bytes,
            offset: Some(offset),
            range,
        }];
        Ok(())
    }
}
