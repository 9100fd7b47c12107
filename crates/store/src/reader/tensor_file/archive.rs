//! Archives of named tensors: npz and safetensors.

use std::ops::Range;
use std::path::Path;

use opscope_tensor::{DType, Layout};

use super::{FileFacts, FileKind, StoredTensor, TensorFile};
use crate::file_bytes::FileBytes;
use crate::file_format::npz::Archive;
use crate::file_format::safetensors;
use crate::{FormatError, StoreError, check_memory};

/// Reads the arrays of an archive, or only the one at a position: single arrays of large archives
/// are asked for one after the other.
pub(super) fn open_npz(
    path: &Path,
    file_name: &str,
    wanted: Option<usize>,
) -> Result<TensorFile, StoreError> {
    let mut archive = Archive::open(path)?;
    let names = archive.names().to_vec();
    let is_wanted = |index: usize| wanted.is_none_or(|wanted| wanted == index);
    let names = names
        .into_iter()
        .enumerate()
        .filter(|(index, _)| is_wanted(*index));
    let mut bytes: Vec<u8> = Vec::new();
    let mut tensors = Vec::new();
    for (index, name) in names {
        let array = archive.read(&name, None)?;
        let elements = array.host_bytes().map_err(std::io::Error::other);
        let elements = elements.map_err(StoreError::io("read", path))?;
        // Each array fits memory by itself; all of them together may not.
        let n_bytes = (bytes.len() as u64).saturating_add(elements.len() as u64);
        check_memory(n_bytes).map_err(StoreError::io("read", path))?;
        let range = bytes.len()..bytes.len() + elements.len();
        bytes.extend_from_slice(elements);
        let stored = StoredTensor::array(array.dtype(), array.shape(), Layout::Nd, range);
        tensors.push(member(stored, index, name));
    }
    Ok(archive_file(
        FileKind::Npz,
        file_name,
        tensors,
        bytes.into(),
    ))
}

/// The arrays of an archive by their headers. That of text does not say its size, so that it is
/// read.
pub(super) fn npz_members(path: &Path) -> Result<Vec<StoredTensor>, StoreError> {
    let mut archive = Archive::open(path)?;
    let names = archive.names().to_vec();
    let members = names.into_iter().enumerate().map(|(index, name)| {
        let header = archive.header(&name)?;
        let n_bytes = match header.dtype {
            DType::String => archive.read(&name, None)?.n_bytes(),
            _ => header.n_data_bytes().unwrap_or(usize::MAX),
        };
        let range = 0..n_bytes;
        let stored = StoredTensor::array(header.dtype, &header.shape, Layout::Nd, range);
        Ok(member(stored, index, name))
    });
    members.collect()
}

/// A file of which every tensor stays where it is.
pub(super) fn safetensors_file(
    bytes: FileBytes,
    file_name: &str,
) -> Result<TensorFile, FormatError> {
    let members = safetensors::decode(bytes.as_ref())?.into_iter().enumerate();
    let tensors = members.map(|(index, found)| {
        let Range { start, end } = found.range;
        let stored = StoredTensor::array(found.dtype, &found.shape, Layout::Nd, start..end);
        StoredTensor {
            offset: Some(start as u64),
            ..member(stored, index, found.name)
        }
    });
    let tensors = tensors.collect();
    Ok(archive_file(
        FileKind::Safetensors,
        file_name,
        tensors,
        bytes,
    ))
}

fn member(stored: StoredTensor, index: usize, name: String) -> StoredTensor {
    StoredTensor {
        index,
        name: Some(name),
        ..stored
    }
}

fn archive_file(
    kind: FileKind,
    file_name: &str,
    tensors: Vec<StoredTensor>,
    bytes: FileBytes,
) -> TensorFile {
    let starts = tensors.iter().map(|tensor| tensor.range.start as u64);
    TensorFile {
        kind,
        file_name: file_name.to_owned(),
        facts: FileFacts::default(),
        n_start: starts.min().unwrap_or(0),
        n_decompressed: None,
        tensors,
        extras: Vec::new(),
        bytes,
    }
}
