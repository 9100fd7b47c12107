//! Where widened elements go.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use opscope_tensor::DType;

use super::elements::widened;
use super::is_widened;
use crate::EngineError;
use crate::onnx::external;
use crate::onnx::schema::StringStringEntryProto;

const MODEL_FILE: &str = "model.onnx";
const DATA_FILE: &str = "weights.bin";
/// Smaller tensors stay in the model, because operators want to know some of them early.
const N_BYTES_MIN: usize = 4 << 10;
/// Tensors begin at multiples of this, so that engines can map them.
const ALIGNMENT: u64 = 4 << 10;
/// How many bytes are widened at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Where elements go.
pub(super) enum Outlet {
    /// Into the model itself.
    Message,
    /// Large ones into a separate file.
    File(DataFile),
}

/// A file with elements, external data of the model.
pub(super) struct DataFile {
    dir: PathBuf,
    file: BufWriter<File>,
    n_bytes: u64,
}

impl Outlet {
    /// Begins a file in a directory.
    pub(super) fn create(dir: &Path) -> Result<Outlet, EngineError> {
        let path = dir.join(DATA_FILE);
        let file = File::create_new(&path).map_err(|source| EngineError::Write { path, source })?;
        Ok(Outlet::File(DataFile {
            dir: dir.to_owned(),
            file: BufWriter::new(file),
            n_bytes: 0,
        }))
    }

    /// The file, complete.
    pub(super) fn finish(self) -> Result<Option<DataFile>, EngineError> {
        let Outlet::File(mut file) = self else {
            return Ok(None);
        };
        let result = file.file.flush();
        result.map_err(|source| file.error(source))?;
        Ok(Some(file))
    }
}

impl DataFile {
    /// Whether a tensor of so many bytes goes here.
    pub(super) fn is_for(&self, n_bytes: usize) -> bool {
        n_bytes >= N_BYTES_MIN
    }

    /// Writes elements, widened if they are of such a dtype, and returns where they are.
    pub(super) fn append(
        &mut self,
        bytes: &[u8],
        dtype: DType,
    ) -> Result<Vec<StringStringEntryProto>, EngineError> {
        let start = self.n_bytes.next_multiple_of(ALIGNMENT);
        let result = self.write(start, bytes, dtype);
        result.map_err(|source| self.error(source))?;
        Ok(external::entries(DATA_FILE, start, self.n_bytes - start))
    }

    fn write(&mut self, start: u64, bytes: &[u8], dtype: DType) -> io::Result<()> {
        let gap = usize::try_from(start - self.n_bytes).unwrap_or(0);
        self.file.write_all(&[0; ALIGNMENT as usize][..gap])?;
        self.n_bytes = start;
        // In pieces, so that the largest weight is not in memory as a whole.
        for chunk in bytes.chunks(CHUNK_BYTES) {
            let wide;
            let chunk = if is_widened(dtype) {
                wide = widened(dtype, chunk);
                &wide
            } else {
                chunk
            };
            self.file.write_all(chunk)?;
            self.n_bytes += chunk.len() as u64;
        }
        Ok(())
    }

    /// Writes the model that the elements belong to, and returns its path.
    pub(super) fn write_model(&self, bytes: &[u8]) -> Result<PathBuf, EngineError> {
        let path = self.dir.join(MODEL_FILE);
        let written = File::create_new(&path).and_then(|mut file| file.write_all(bytes));
        match written {
            Ok(()) => Ok(path),
            Err(source) => Err(EngineError::Write { path, source }),
        }
    }

    fn error(&self, source: io::Error) -> EngineError {
        EngineError::Write {
            path: self.dir.join(DATA_FILE),
            source,
        }
    }
}
