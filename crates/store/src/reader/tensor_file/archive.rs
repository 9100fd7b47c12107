//! Archives of named tensors: npz, safetensors, HDF5, Polygraphy's JSON, PyTorch's files and ONNX
//! Runtime's databases; and ONNX's file of a named tensor.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use opscope_tensor::{DType, Layout};

use super::open_archives::{NamedDataset, OpenArchive, with_archive};
use super::{FileFacts, FileKind, StoredRun, StoredTensor, TensorFile};
use crate::file_format::hdf5::{self, Hdf5Array};
use crate::file_format::npz::Archive;
use crate::file_format::onnx_tensor::{self, OnnxElements};
use crate::file_format::ort_trace::{self, OrtTrace, TraceValue};
use crate::file_format::polygraphy_json::{self, PolygraphyArray, ReadArray};
use crate::file_format::safetensors;
use crate::file_format::torch_save::{self, TorchContent, TorchFile, TorchTensor};
use crate::file_parts::{FilePart, FileParts};
use crate::reader::term::DumpTerm;
use crate::{FormatError, StoreError, check_memory};

/// Prefix of the attributes for facts about the value in a file.
pub(crate) const META_PREFIX: &str = "meta.";

/// Reads the arrays of an archive, or only the one at a position: single arrays of large archives
/// are asked for one after the other.
pub(super) fn open_npz(
    path: &Path,
    file_name: &str,
    wanted: Option<usize>,
) -> Result<TensorFile, StoreError> {
    if wanted.is_none() {
        return read_npz(&mut Archive::open(path)?, path, file_name, None);
    }
    let open = || Ok(OpenArchive::Npz(Archive::open(path)?));
    with_archive(path, open, |archive| match archive {
        OpenArchive::Npz(archive) => read_npz(archive, path, file_name, wanted),
        OpenArchive::Hdf5(_) => read_npz(&mut Archive::open(path)?, path, file_name, wanted),
    })
}

fn read_npz(
    archive: &mut Archive,
    path: &Path,
    file_name: &str,
    wanted: Option<usize>,
) -> Result<TensorFile, StoreError> {
    let n = archive.names().len();
    let indices = wanted.map_or(0..n, |index| index.min(n)..index.saturating_add(1).min(n));
    let mut bytes: Vec<u8> = Vec::new();
    let mut tensors = Vec::new();
    for index in indices {
        let name = archive.names()[index].clone();
        let array = archive.read(&name, None)?;
        let elements = array.host_bytes().map_err(std::io::Error::other);
        let elements = elements.map_err(StoreError::io("read", path))?;
        // Each array fits in memory; all of them together may not.
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

/// The arrays of an archive, from their headers. A header of text does not contain the size, so the
/// text is read.
pub(super) fn npz_members(path: &Path) -> Result<Vec<StoredTensor>, StoreError> {
    let mut archive = Archive::open(path)?;
    let names = archive.names().to_vec();
    let members = names.into_iter().enumerate().map(|(index, name)| {
        let header = archive.header(&name)?;
        let n_bytes = match header.dtype {
            DType::String => archive.read(&name, None)?.n_bytes(),
            _ => header.n_data_bytes().unwrap_or(usize::MAX),
        };
        // Nothing was decompressed: the range only represents the size, not a position in a file.
        let range = 0..n_bytes;
        let stored = StoredTensor::array(header.dtype, &header.shape, Layout::Nd, range);
        Ok(member(stored, index, name))
    });
    members.collect()
}

/// Reads the datasets of a file, or only the one at a position.
pub(super) fn open_hdf5(
    path: &Path,
    file_name: &str,
    wanted: Option<usize>,
) -> Result<TensorFile, StoreError> {
    let open = || Ok(OpenArchive::Hdf5(hdf5_arrays(path)?));
    with_archive(path, open, |archive| match archive {
        OpenArchive::Hdf5(arrays) => read_hdf5(arrays, path, file_name, wanted),
        OpenArchive::Npz(_) => read_hdf5(&hdf5_arrays(path)?, path, file_name, wanted),
    })
}

fn read_hdf5(
    arrays: &[NamedDataset],
    path: &Path,
    file_name: &str,
    wanted: Option<usize>,
) -> Result<TensorFile, StoreError> {
    let n = arrays.len();
    let indices = wanted.map_or(0..n, |index| index.min(n)..index.saturating_add(1).min(n));
    let mut bytes: Vec<u8> = Vec::new();
    let mut tensors = Vec::new();
    for index in indices {
        let (array, name) = &arrays[index];
        let elements = array.read();
        let elements = elements.map_err(StoreError::corrupt(hdf5::FORMAT_NAME, path))?;
        let n_bytes = (bytes.len() as u64).saturating_add(elements.len() as u64);
        check_memory(n_bytes).map_err(StoreError::io("read", path))?;
        let range = bytes.len()..bytes.len() + elements.len();
        bytes.extend_from_slice(&elements);
        let stored = StoredTensor::array(array.dtype, &array.shape, Layout::Nd, range);
        tensors.push(member(stored, index, name.clone()));
    }
    let bytes = bytes.into();
    Ok(archive_file(FileKind::Hdf5, file_name, tensors, bytes))
}

/// The datasets of a file by their descriptions.
pub(super) fn hdf5_members(path: &Path) -> Result<Vec<StoredTensor>, StoreError> {
    let arrays = hdf5_arrays(path)?.into_iter().enumerate();
    let members = arrays.map(|(index, (array, name))| {
        let n_bytes = array.n_bytes();
        let n_bytes = n_bytes.map_err(StoreError::corrupt(hdf5::FORMAT_NAME, path))?;
        let range = 0..usize::try_from(n_bytes).unwrap_or(usize::MAX);
        let stored = StoredTensor::array(array.dtype, &array.shape, Layout::Nd, range);
        Ok(member(stored, index, name))
    });
    members.collect()
}

fn hdf5_arrays(path: &Path) -> Result<Vec<NamedDataset>, StoreError> {
    let file = FileParts::open(path).map_err(StoreError::io("read", path))?;
    let arrays = hdf5::decode(file).map_err(StoreError::corrupt(hdf5::FORMAT_NAME, path))?;
    let names = hdf5_names(&arrays);
    Ok(arrays.into_iter().zip(names).collect())
}

/// Names of datasets by their paths. Of `{operator}/{order}/{input|output}/{name}`, as PyTorch for
/// Ascend wrote them, the name becomes its position in the group: it says which tensor of the
/// program it was, and no slot.
fn hdf5_names(arrays: &[Hdf5Array]) -> Vec<String> {
    let mut n_in_group: HashMap<&str, usize> = HashMap::new();
    let names = arrays.iter().map(|array| {
        let (group, _) = array.path.rsplit_once('/').unwrap_or_default();
        let is_slot = group.ends_with("/input") || group.ends_with("/output");
        if !is_slot || group.matches('/').count() != 2 {
            return array.path.clone();
        }
        let position = n_in_group.entry(group).or_default();
        *position += 1;
        format!("{group}/{}", *position - 1)
    });
    names.collect()
}

/// Decodes the arrays of a file, or only the one at a position.
pub(super) fn polygraphy_file(
    file: &[u8],
    file_name: &str,
    wanted: Option<usize>,
) -> Result<TensorFile, FormatError> {
    let arrays = polygraphy_json::decode(file)?;
    let runs = polygraphy_runs(&arrays);
    let wanted: Vec<(usize, PolygraphyArray<'_>)> = (0..)
        .zip(arrays)
        .filter(|(index, _)| wanted.is_none_or(|wanted| wanted == *index))
        .collect();
    let n_bytes = polygraphy_json::n_bytes(wanted.iter().map(|(_, array)| array));
    check_memory(n_bytes)
        .map_err(|error| FormatError::new(0, "arrays that fit memory", error.to_string()))?;
    // Allocated once, because a growing list takes twice as much for a while.
    let mut bytes: Vec<u8> = Vec::with_capacity(usize::try_from(n_bytes).unwrap_or(0));
    let mut tensors = Vec::new();
    for (index, array) in wanted {
        let read = array.read(&mut bytes)?;
        tensors.push(polygraphy_member(index, array, read, runs));
    }
    let bytes = bytes.into();
    Ok(archive_file(
        FileKind::PolygraphyJson,
        file_name,
        tensors,
        bytes,
    ))
}

/// The arrays of a file by their headers.
pub(super) fn polygraphy_members(file: &[u8]) -> Result<Vec<StoredTensor>, FormatError> {
    let arrays = polygraphy_json::decode(file)?;
    let runs = polygraphy_runs(&arrays);
    let members = arrays.into_iter().enumerate().map(|(index, array)| {
        let described = array.describe()?;
        Ok(polygraphy_member(index, array, described, runs))
    });
    members.collect()
}

/// Whether a file has several runners, and whether it has several iterations.
fn polygraphy_runs(arrays: &[PolygraphyArray<'_>]) -> [bool; 2] {
    // A single runner and iteration need no words in the names of arrays.
    let mut others = arrays.iter().skip(1);
    let first = arrays.first().map(|array| &array.runner);
    [
        others.any(|array| Some(&array.runner) != first),
        arrays.iter().any(|array| array.iteration > 0),
    ]
}

fn polygraphy_member(
    index: usize,
    array: PolygraphyArray<'_>,
    read: ReadArray,
    [has_runners, has_iterations]: [bool; 2],
) -> StoredTensor {
    let runner = array.runner.clone().filter(|_| has_runners);
    let iteration = has_iterations.then(|| array.iteration.to_string());
    let parts: Vec<String> = runner.into_iter().chain(iteration).collect();
    let run = StoredRun {
        runner: array.runner,
        iteration: array.iteration,
        label: (!parts.is_empty()).then(|| parts.join("/")),
    };
    let stored = StoredTensor::array(read.dtype, &read.shape, Layout::Nd, read.range);
    StoredTensor {
        run: Some(run),
        ..member(stored, index, array.name)
    }
}

/// A file whose tensors stay where they are.
pub(super) fn safetensors_file(
    parts: FileParts,
    file_name: &str,
) -> Result<TensorFile, FormatError> {
    let start = parts.length_and_header(safetensors::HEADER_BYTES_MAX);
    let start = start.map_err(FormatError::unreadable)?;
    let found = safetensors::decode_head(start.as_ref(), parts.n_bytes())?;
    let members = found.into_iter().enumerate();
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
        parts,
    ))
}

/// A file with one tensor, which stays where it is unless its elements are written one by one.
pub(super) fn onnx_tensor_file(
    bytes: FilePart,
    file_name: &str,
) -> Result<TensorFile, FormatError> {
    let found = onnx_tensor::decode(bytes.as_ref())?;
    let (range, offset, parts) = match found.elements {
        OnnxElements::InFile(range) => (range.clone(), Some(range.start as u64), bytes.into()),
        OnnxElements::Decoded(elements) => (0..elements.len(), None, elements.into()),
    };
    let stored = StoredTensor {
        name: Some(found.name).filter(|name| !name.is_empty()),
        offset,
        ..StoredTensor::array(found.dtype, &found.shape, Layout::Nd, range)
    };
    Ok(archive_file(
        FileKind::TensorProto,
        file_name,
        vec![stored],
        parts,
    ))
}

/// Reads the tensors of a file, or only the one at a position. They stay where they are if all of
/// them lie there as they are needed; copies are made otherwise.
pub(super) fn torch_file(
    parts: FileParts,
    file_name: &str,
    wanted: Option<usize>,
) -> Result<TensorFile, FormatError> {
    let decoded = torch_save::decode(&parts)?;
    let facts = torch_facts(&decoded);
    let mut found = decoded.tensors;
    let mut first = 0;
    // Copying the others could exceed the memory that one tensor fits.
    if let Some(wanted) = wanted {
        first = wanted;
        found = found.into_iter().skip(wanted).take(1).collect();
    }
    let kind = FileKind::TorchSave;
    if found.iter().all(|tensor| tensor.place().is_some()) {
        let tensors = (first..).zip(found).map(torch_member).collect();
        let file = archive_file(kind, file_name, tensors, parts);
        return Ok(TensorFile { facts, ..file });
    }
    let n_bytes = torch_save::n_copied_bytes(&found, parts.n_bytes())?;
    // Allocated once, because a growing list takes twice as much for a while.
    let mut copied: Vec<u8> = Vec::with_capacity(n_bytes);
    let mut tensors = Vec::new();
    for (index, tensor) in (first..).zip(found) {
        let start = copied.len();
        // One file has one piece of memory, so contiguous tensors are copied together with the
        // others.
        match tensor.place() {
            Some(range) => {
                let elements = parts.part(range).map_err(FormatError::unreadable)?;
                copied.extend_from_slice(elements.as_ref());
            }
            None => copied.extend(tensor.read(&parts)?),
        }
        let stored = torch_member((index, tensor));
        tensors.push(StoredTensor {
            range: start..copied.len(),
            ..stored
        });
    }
    let file = archive_file(kind, file_name, tensors, copied.into());
    Ok(TensorFile { facts, ..file })
}

/// Values other than tensors are not listed, but a file that has some should not look empty. Facts
/// of the file about its value come first.
fn torch_facts(file: &TorchFile) -> FileFacts {
    let meta = file.meta.iter();
    let meta = meta.map(|(key, value)| (format!("{META_PREFIX}{key}"), value.clone()));
    let n_others = file.n_others.saturating_sub(file.meta.len());
    let n_others = Some(n_others).filter(|n| *n > 0);
    let others = n_others.map(|n| ("other_values".to_owned(), n.to_string()));
    FileFacts {
        attributes: meta.chain(others).collect(),
        ..FileFacts::default()
    }
}

/// The tensors of a file by their descriptions, and the file's attributes.
pub(super) fn torch_members(
    file: &FileParts,
) -> Result<(Vec<StoredTensor>, FileFacts), FormatError> {
    let decoded = torch_save::decode(file)?;
    let facts = torch_facts(&decoded);
    let tensors = decoded.tensors.into_iter().enumerate();
    Ok((tensors.map(torch_member).collect(), facts))
}

fn torch_member((index, tensor): (usize, TorchTensor)) -> StoredTensor {
    let place = tensor.place();
    let range = place.clone().unwrap_or(0..tensor.n_bytes());
    let (dtype, has_shape) = match &tensor.content {
        TorchContent::Dense(elements) => (DumpTerm::Known(elements.dtype), true),
        // A tensor without elements here may also lack a shape.
        TorchContent::Unread(word) => {
            let has_shape = tensor.shape.n_axes() > 0;
            (DumpTerm::Word(word.clone(), None), has_shape)
        }
    };
    let stored = StoredTensor::array(DType::Undefined, &tensor.shape, Layout::Nd, range);
    StoredTensor {
        index,
        name: Some(tensor.name).filter(|name| !name.is_empty()),
        // An empty tensor has no byte that could be shown.
        offset: place
            .filter(|range| !range.is_empty())
            .map(|range| range.start as u64),
        dtype,
        shape: stored.shape.clone().filter(|_| has_shape),
        ..stored
    }
}

/// Reads the values of a database, or only the one at a position.
pub(super) fn open_trace(
    path: &Path,
    file_name: &str,
    wanted: Option<usize>,
) -> Result<TensorFile, StoreError> {
    let trace = OrtTrace::open(path)?;
    let mut bytes: Vec<u8> = Vec::new();
    let mut tensors = Vec::new();
    // Values are spread over the file's pages, so that they cannot stay where they are.
    let mut take = |value: TraceValue<'_>| {
        // Each value fits in memory; all of them together may not.
        let n_bytes = (bytes.len() as u64).saturating_add(value.elements.len() as u64);
        check_memory(n_bytes)
            .map_err(|error| FormatError::new(0, "values that fit memory", error.to_string()))?;
        let range = bytes.len()..bytes.len() + value.elements.len();
        bytes.extend_from_slice(value.elements);
        tensors.push(trace_member(value, range));
        Ok(())
    };
    let visited = match wanted {
        Some(position) => trace.visit_one(position, &mut take),
        None => trace.visit(&mut take),
    };
    visited.map_err(StoreError::corrupt(ort_trace::FORMAT_NAME, path))?;
    label_runs(&mut tensors);
    let kind = FileKind::OrtTrace;
    Ok(archive_file(kind, file_name, tensors, bytes.into()))
}

/// The values of a database by their descriptions.
pub(super) fn trace_members(path: &Path) -> Result<Vec<StoredTensor>, StoreError> {
    let trace = OrtTrace::open(path)?;
    let mut tensors = Vec::new();
    let visited = trace.visit(|value| {
        let range = 0..value.elements.len();
        tensors.push(trace_member(value, range));
        Ok(())
    });
    visited.map_err(StoreError::corrupt(ort_trace::FORMAT_NAME, path))?;
    label_runs(&mut tensors);
    Ok(tensors)
}

fn trace_member(value: TraceValue<'_>, range: Range<usize>) -> StoredTensor {
    let run = StoredRun {
        runner: None,
        iteration: value.run,
        label: None,
    };
    let stored = StoredTensor::array(value.dtype, &value.shape, Layout::Nd, range);
    StoredTensor {
        run: Some(run),
        uses: value.uses,
        offset: value.offset,
        ..member(stored, value.position, value.name.to_owned())
    }
}

/// Labels each tensor with its run, if there are several.
fn label_runs(tensors: &mut [StoredTensor]) {
    let runs = tensors.iter().filter_map(|stored| stored.run.as_ref());
    let mut iterations = runs.map(|run| run.iteration);
    let first = iterations.next();
    if iterations.all(|iteration| Some(iteration) == first) {
        return;
    }
    for run in tensors.iter_mut().filter_map(|stored| stored.run.as_mut()) {
        run.label = Some(run.iteration.to_string());
    }
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
    parts: FileParts,
) -> TensorFile {
    let starts = tensors.iter().map(|tensor| tensor.range.start as u64);
    TensorFile {
        path: PathBuf::new(),
        kind,
        file_name: file_name.to_owned(),
        facts: FileFacts::default(),
        n_start: starts.min().unwrap_or(0),
        n_decompressed: None,
        tensors,
        extras: Vec::new(),
        parts,
        gathered: Vec::new(),
    }
}
