//! Reads the description of a file's tensors, without looking at their elements.

use std::path::Path;

use opscope_store::StoreError;
use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::dump_data::{PayloadKind, TensorEntry};
use opscope_store::file_format::npy_zst;
use opscope_tensor::{DType, Layout};

use super::array::array_entry;
use super::{FileKind, TensorFile};

/// The beginning of a checked file.
pub(crate) struct Head {
    pub(crate) kind: FileKind,
    /// Whether the outputs are overflow records.
    pub(crate) holds_records: bool,
    /// When the file was made, in microseconds since 1970-01-01 UTC; 0 where it does not say.
    pub(crate) dump_time: u64,
    /// The operator's name; empty where the file does not say.
    pub(crate) op_name: String,
    /// Inputs, then outputs, each with its position.
    pub(crate) tensors: Vec<(PayloadKind, usize, TensorEntry)>,
}

impl Head {
    /// Opens a file of any format. `file_name` is its real name. A compressed array is decompressed as far
    /// as its header goes, so that damage further on is not noticed here.
    pub(crate) fn read(path: &Path, file_name: &str) -> Result<Head, StoreError> {
        if file_name.ends_with(npy_zst::SUFFIX)
            && let Some(head) = compressed(path)?
        {
            return Ok(head);
        }
        let file = TensorFile::open(path, file_name)?;
        let tensors = file.tensors();
        Ok(Head {
            kind: file.kind(),
            holds_records: file.holds_records(),
            dump_time: file.header().dump_time,
            op_name: file.header().op_name.clone(),
            tensors: tensors
                .map(|tensor| (tensor.kind, tensor.index, tensor.entry.clone()))
                .collect(),
        })
    }
}

/// The head of an array whose header says everything; `None` of text, whose size it does not say.
fn compressed(path: &Path) -> Result<Option<Head>, StoreError> {
    let bytes = FileBytes::open(path).map_err(|source| StoreError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    let corrupt = |source| StoreError::Corrupt {
        format: npy_zst::FORMAT_NAME,
        path: path.to_owned(),
        source,
    };
    let (header, _) = npy_zst::header(bytes.as_ref()).map_err(corrupt)?;
    let (dtype, shape) = (header.dtype, &header.shape);
    let n_bytes = header.n_data_bytes().unwrap_or(usize::MAX) as u64;
    if dtype == DType::String {
        return Ok(None);
    }
    let entry = array_entry(dtype, shape, Layout::Nd, n_bytes);
    Ok(Some(Head {
        kind: FileKind::Npy,
        holds_records: false,
        dump_time: 0,
        op_name: String::new(),
        tensors: vec![(PayloadKind::Output, 0, entry)],
    }))
}
