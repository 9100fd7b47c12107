//! Elements in a file without a description, which a record of a table contains.

use opscope_tensor::Layout;

use super::{FileFacts, FileKind, StoredTensor, TensorFile};
use crate::file_bytes::FileBytes;
use crate::file_parts::FileParts;
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
        let parts = match &record.held {
            Some(held) => held.bytes().map(FileParts::from),
            // Of a remote file no more is read than the record asks for, once it does.
            None if remote::is_remote(path) => Ok(Vec::new().into()),
            None => FileParts::open_in_dump(path),
        };
        TensorFile::of_elements(parts.map_err(StoreError::io("read", path))?, record)
    }

    /// [`TensorFile::open_elements`] in a file that is open.
    ///
    /// # Errors
    /// [`StoreError`] if the file does not reach as far.
    pub fn of_elements(parts: FileParts, record: &IndexedTensor) -> Result<TensorFile, StoreError> {
        let mut file = TensorFile {
            path: record.path.to_path_buf(),
            kind: FileKind::Elements,
            file_name: String::new(),
            facts: FileFacts::default(),
            tensors: Vec::new(),
            extras: Vec::new(),
            n_start: 0,
            n_decompressed: None,
            parts,
            gathered: Vec::new(),
        };
        file.turn_to(record)?;
        Ok(file)
    }

    /// The elements of an execution's tensors, wherever they are, as if they were in a file of this
    /// name.
    ///
    /// # Errors
    /// As for [`TensorFile::open_elements`].
    pub fn gather(file_name: &str, records: &[IndexedTensor]) -> Result<TensorFile, StoreError> {
        let mut last: Option<(&IndexedTensor, TensorFile)> = None;
        let mut tensors = Vec::new();
        let mut gathered = Vec::new();
        for record in records {
            let file = match last.take() {
                // Neighbours are usually in one file, which is opened once.
                Some((known, mut file))
                    if known.path == record.path
                        && known.held.is_none()
                        && record.held.is_none() =>
                {
                    file.turn_to(record)?;
                    file
                }
                _ => TensorFile::open_elements(record)?,
            };
            let (side, index) = record.slot.unwrap_or((SlotSide::Output, 0));
            tensors.extend(file.tensors().next().map(|stored| StoredTensor {
                side,
                index: index as usize,
                offset: None,
                ..stored.clone()
            }));
            gathered.push(file.parts.clone());
            last = Some((record, file));
        }
        let path = records.first().map(|record| record.path.to_path_buf());
        Ok(TensorFile {
            path: path.unwrap_or_default(),
            kind: FileKind::Elements,
            file_name: file_name.to_owned(),
            facts: FileFacts::default(),
            tensors,
            extras: Vec::new(),
            n_start: 0,
            n_decompressed: None,
            parts: Vec::new().into(),
            gathered,
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
            self.parts.n_bytes()
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
            self.parts = FileBytes::shared(part).into();
            range = 0..range.len();
        }
        // The elements are what the file has, which need not be what the operator had.
        let dtype = record.stored_dtype.clone().or_else(|| record.dtype.clone());
        self.tensors = vec![StoredTensor {
            side: SlotSide::Output,
            index: 0,
            slot: None,
            name: None,
            run: None,
            uses: Vec::new(),
            dtype: dtype.unwrap_or_else(|| DumpTerm::Word("unknown".to_owned(), None)),
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
