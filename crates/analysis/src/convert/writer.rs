//! Converts one dump file.

mod tensors;
mod texts;

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use opscope_store::atomic_file::{Creator, write_all_vectored};
use opscope_store::file_format::mapping_csv;
use opscope_store::file_format::op_debug::OverflowRecord;
use opscope_store::reader::{ExtraKind, OpenedTensor, StoredTensor, TensorFile};
use opscope_store::record::SlotSide;

use super::names::{OutputName, without_controls};
use super::{ConversionOptions, ConvertError, ConvertSource, ConvertedForm, PickedTensor};
use crate::elements::{DumpElements, ElementsError};

/// Writes results; shared by all threads.
pub(super) struct ResultWriter<'a> {
    creator: Creator,
    options: &'a ConversionOptions,
    mapping: Mutex<()>,
}

/// The outcome of converting one file.
#[derive(Default)]
pub(super) struct ConvertedFile {
    pub(super) n_arrays: u64,
    pub(super) n_records: u64,
    pub(super) n_rest: u64,
    pub(super) n_bytes: u64,
    pub(super) errors: Vec<ConvertError>,
}

/// An opened source and its output directory.
struct OpenedSource<'a> {
    source: &'a ConvertSource,
    file: TensorFile,
    dir: PathBuf,
    repeated_names: HashSet<usize>,
}

/// Indices of archive tensors whose names collide with earlier ones after they are cleaned for use
/// in file names.
fn repeated_names(file: &TensorFile) -> HashSet<usize> {
    let mut seen = HashSet::new();
    let named = file.tensors().filter(|stored| stored.name.is_some());
    let repeated = named.filter(|stored| !seen.insert(without_controls(&stored.label())));
    repeated.map(|stored| stored.index).collect()
}

impl<'a> ResultWriter<'a> {
    pub(super) fn new(creator: Creator, options: &'a ConversionOptions) -> ResultWriter<'a> {
        ResultWriter {
            creator,
            options,
            mapping: Mutex::new(()),
        }
    }

    pub(super) fn convert(&self, source: &ConvertSource) -> ConvertedFile {
        let mut converted = ConvertedFile::default();
        let opened = if source.records.is_empty() {
            TensorFile::open(&source.path, source.telling_name())
        } else {
            TensorFile::gather(&source.file_name, &source.records)
        };
        let opened = match opened {
            Ok(file) => OpenedSource {
                source,
                repeated_names: repeated_names(&file),
                file,
                dir: self.options.out.join(&source.subdir),
            },
            Err(error) => {
                converted.errors.push(error.into());
                return converted;
            }
        };
        if opened.file.holds_records() {
            self.convert_records(&opened, &mut converted);
        } else if self.options.kind == ConvertedForm::Safetensors {
            self.convert_together(&opened, &mut converted);
        } else {
            self.convert_tensors(&opened, &mut converted);
        }
        // Buffers and workspaces have no layout to change, and a picked tensor excludes everything
        // else.
        if self.options.pick.is_none() && self.options.relayout.is_none() {
            self.convert_rest(&opened, &mut converted);
        }
        converted
    }

    fn convert_tensors(&self, opened: &OpenedSource<'_>, converted: &mut ConvertedFile) {
        let tensors = self.picked(&opened.file, converted);
        for stored in tensors {
            match self.convert_tensor(opened, stored) {
                Ok(n_bytes) => {
                    converted.n_arrays += 1;
                    converted.n_bytes += n_bytes;
                }
                Err(error) => converted.errors.push(error),
            }
        }
    }

    fn convert_tensor(
        &self,
        opened: &OpenedSource<'_>,
        stored: &StoredTensor,
    ) -> Result<u64, ConvertError> {
        let part = opened.file.elements(stored)?;
        let bytes = part.as_ref();
        let elements = self.elements(OpenedTensor { stored, bytes })?;
        self.write_tensor(opened, stored, elements)
    }

    /// The tensors to convert. A requested tensor that is absent is an error.
    fn picked<'f>(
        &self,
        file: &'f TensorFile,
        converted: &mut ConvertedFile,
    ) -> Vec<&'f StoredTensor> {
        let Some(PickedTensor { side, index }) = self.options.pick else {
            return file.tensors().collect();
        };
        let picked = file.tensor(side, index);
        if picked.is_none() {
            let error = ElementsError::NoSlot {
                slot: format!("{}.{index}", side.name()),
                n: file.n_tensors(side),
            };
            converted.errors.push(error.into());
        }
        picked.into_iter().collect()
    }

    /// The elements of a tensor, in the wanted layout.
    fn elements<'f>(&self, tensor: OpenedTensor<'f>) -> Result<DumpElements<'f>, ElementsError> {
        let elements = DumpElements::from_tensor(tensor)?;
        match &self.options.relayout {
            None => Ok(elements),
            Some(relayout) => {
                let result = relayout.apply(elements, tensor.stored);
                result.map_err(|source| ElementsError::Relayout {
                    slot: tensor.stored.label(),
                    source,
                })
            }
        }
    }

    /// Overflow records become JSON in every output format.
    fn convert_records(&self, opened: &OpenedSource<'_>, converted: &mut ConvertedFile) {
        let tensors = self.picked(&opened.file, converted);
        let outputs = tensors.into_iter().filter(|t| t.side == SlotSide::Output);
        for stored in outputs {
            let slot = stored.label();
            let offset = stored.start();
            let part = match opened.file.elements(stored) {
                Ok(part) => part,
                Err(error) => {
                    converted.errors.push(error.into());
                    continue;
                }
            };
            let record = OverflowRecord::decode(part.as_ref());
            let result = record
                .map_err(|source| ConvertError::Record {
                    slot: slot.clone(),
                    source: source.shifted(offset),
                })
                .and_then(|record| {
                    let text = record.to_json_text();
                    let name = OutputName::new(opened.source, &format!(".{slot}"), ".json");
                    self.put(&opened.dir, &name, &[text.as_bytes()])
                });
            match result {
                Ok(n_bytes) => {
                    converted.n_records += 1;
                    converted.n_bytes += n_bytes;
                }
                Err(error) => converted.errors.push(error),
            }
        }
    }

    /// Writes buffers and workspaces unchanged.
    fn convert_rest(&self, opened: &OpenedSource<'_>, converted: &mut ConvertedFile) {
        for piece in opened.file.extras() {
            let kind = match piece.kind {
                ExtraKind::L1Buffer => "l1buffer",
                ExtraKind::Buffer => "buffer",
                ExtraKind::Space => "space",
            };
            let tail = format!(".{kind}.{}", piece.index);
            let name = OutputName::new(opened.source, &tail, ".bin");
            let bytes = opened.file.extra_bytes(piece).map_err(ConvertError::from);
            match bytes.and_then(|bytes| self.put(&opened.dir, &name, &[bytes.as_ref()])) {
                Ok(n_bytes) => {
                    converted.n_rest += 1;
                    converted.n_bytes += n_bytes;
                }
                Err(error) => converted.errors.push(error),
            }
        }
    }

    /// Writes a file from its parts and returns its size.
    fn put(&self, dir: &Path, name: &OutputName, parts: &[&[u8]]) -> Result<u64, ConvertError> {
        self.put_with(dir, name, |file| write_all_vectored(file, parts))?;
        Ok(parts.iter().map(|part| part.len() as u64).sum())
    }

    /// Writes a file with content that `write` produces.
    fn put_with(
        &self,
        dir: &Path,
        name: &OutputName,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), ConvertError> {
        let path = dir.join(&name.name);
        if self.options.is_replacing {
            self.creator.replace_with(&path, write)?;
        } else if !self.creator.create_with(&path, write)? {
            return Err(ConvertError::Exists(path));
        }
        // The entry is written after its file, so a failed result leaves no name.
        if let Some(line) = name.mapping_line() {
            let _guard = self.mapping.lock().unwrap_or_else(PoisonError::into_inner);
            let mapping = dir.join(mapping_csv::FILE_NAME);
            self.creator.append_line(&mapping, &line)?;
        }
        Ok(())
    }
}
