//! One dump file to one array for each of its tensors.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use opscope_store::atomic_file::Creator;
use opscope_store::file_format::dump_data::{DumpFile, DumpTensor};
use opscope_store::file_format::mapping_csv;
use opscope_store::file_format::npy::encode_header;
use opscope_tensor::convert::dtype::{Decoded, decode};

use super::names::array_name;
use super::{ConvertError, Options, Source};
use crate::describe::{shape_of, slot_name};

/// Writes arrays; shared by all threads.
pub(super) struct Writer<'a> {
    pub(super) creator: Creator,
    pub(super) options: &'a Options,
    pub(super) mapping: Mutex<()>,
}

/// What became of one file.
#[derive(Default)]
pub(super) struct Converted {
    pub(super) n_arrays: u64,
    pub(super) n_bytes: u64,
    pub(super) errors: Vec<ConvertError>,
}

impl Writer<'_> {
    pub(super) fn convert(&self, source: &Source) -> Converted {
        let mut converted = Converted::default();
        let file = match DumpFile::open(&source.path) {
            Ok(file) => file,
            Err(error) => {
                converted.errors.push(error.into());
                return converted;
            }
        };
        let dir = self.options.out.join(&source.subdir);
        for tensor in file.tensors() {
            match self.convert_tensor(&dir, source, &tensor) {
                Ok(n_bytes) => {
                    converted.n_arrays += 1;
                    converted.n_bytes += n_bytes;
                }
                Err(error) => converted.errors.push(error),
            }
        }
        converted
    }

    fn convert_tensor(
        &self,
        dir: &Path,
        source: &Source,
        tensor: &DumpTensor<'_>,
    ) -> Result<u64, ConvertError> {
        let slot = slot_name(tensor);
        let decoded = decode_tensor(tensor)?;
        // `decode` gives dtypes that numpy has.
        let header = encode_header(decoded.dtype, &decoded.shape).unwrap_or_default();
        let (name, full_name) = array_name(source, &slot, "npy");
        let path = dir.join(&name);
        if self.options.is_replacing {
            self.creator.create_dir(dir)?;
            // Absent is the usual case, and a file that stays in the way is reported below.
            let _ = std::fs::remove_file(&path);
        }
        if !self
            .creator
            .create_file(&path, &[&header, &decoded.bytes])?
        {
            return Err(ConvertError::Exists(path));
        }
        if let Some(full_name) = full_name {
            let _guard = self.mapping.lock().unwrap_or_else(PoisonError::into_inner);
            let line = mapping_csv::line(&name, &full_name);
            self.creator
                .append_line(&dir.join(mapping_csv::FILE_NAME), &line)?;
        }
        Ok((header.len() + decoded.bytes.len()) as u64)
    }
}

/// The tensor in a dtype that numpy has. Bytes beyond those that dtype and shape ask for are left
/// out: device buffers are often longer than their tensors.
pub(crate) fn decode_tensor<'a>(tensor: &DumpTensor<'a>) -> Result<Decoded<'a>, ConvertError> {
    let slot = || slot_name(tensor);
    let code = tensor.entry.data_type;
    let dtype = tensor
        .entry
        .dtype()
        .ok_or_else(|| ConvertError::UnknownDtype { slot: slot(), code })?;
    let shape = shape_of(tensor.entry).map_err(|source| ConvertError::Shape {
        slot: slot(),
        source,
    })?;
    let bytes = match shape.n_bytes(dtype) {
        Ok(n_bytes) => tensor.bytes.get(..n_bytes).unwrap_or(tensor.bytes),
        Err(_) => tensor.bytes,
    };
    decode(dtype, &shape, bytes).map_err(|source| ConvertError::Decode {
        slot: slot(),
        source,
    })
}
