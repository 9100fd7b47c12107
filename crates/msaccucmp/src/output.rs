//! Writing output files.

use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::file_format::npy::{ItemForm, NpyHeader};
use opscope_store::file_format::torch_save;
use opscope_tensor::Shape;

use crate::array::{ElementArray, SaveOrder};
use crate::failure::{ErrorCode, ToolFailure};
use crate::log;
use crate::names::Namer;

/// The list of files that failed to convert.
const FAILED_LIST_NAME: &str = "convert_failed_file_list.txt";

/// Writes files of all kinds into one directory, replacing existing ones.
pub(super) struct OutputFolder {
    namer: Namer,
}

impl OutputFolder {
    /// Output into `dir`, which exists.
    pub(super) fn new(dir: PathBuf) -> OutputFolder {
        OutputFolder {
            namer: Namer::new(dir),
        }
    }

    /// Writes `{stem}{suffix}` as an array file.
    pub(super) fn npy(
        &self,
        stem: &str,
        suffix: &str,
        array: &ElementArray<'_>,
    ) -> Result<PathBuf, ToolFailure> {
        let path = self.path(stem, suffix)?;
        let order = array.saved_order();
        let header = Shape::new(array.dims()).ok().and_then(|shape| {
            let header = NpyHeader {
                dtype: array.dtype(),
                items: ItemForm::Numbers,
                is_big_endian: false,
                is_fortran_order: order == SaveOrder::Fortran,
                shape,
            };
            header.encode()
        });
        let header = header.ok_or_else(|| ToolFailure::unexpected("numpy has no such array"))?;
        let bytes = array.bytes_in_order(order);
        let written = self.namer.creator().replace_file(&path, &[&header, &bytes]);
        written.map_err(write_failure)?;
        Ok(path)
    }

    /// Writes `{stem}.bin` with the raw elements in C order.
    pub(super) fn bin(&self, stem: &str, array: &ElementArray<'_>) -> Result<PathBuf, ToolFailure> {
        self.raw(stem, &array.bytes_in_order(SaveOrder::C))
    }

    /// Writes `{stem}.bin` with these bytes.
    pub(super) fn raw(&self, stem: &str, bytes: &[u8]) -> Result<PathBuf, ToolFailure> {
        let path = self.path(stem, ".bin")?;
        let written = self.namer.creator().replace_file(&path, &[bytes]);
        written.map_err(write_failure)?;
        Ok(path)
    }

    /// Writes `{stem}.pt` in the format of `torch.save`.
    pub(super) fn torch(
        &self,
        stem: &str,
        array: &ElementArray<'_>,
    ) -> Result<PathBuf, ToolFailure> {
        let path = self.path(stem, ".pt")?;
        let bytes = array.bytes_in_order(SaveOrder::C);
        let written = self.namer.creator().replace_with(&path, |file| {
            torch_save::write(file, array.dtype(), array.dims(), &bytes)
        });
        written.map_err(write_failure)?;
        Ok(path)
    }

    /// Writes the file `name`, without shortening the name.
    pub(super) fn text(&self, name: &str, text: &str) -> Result<PathBuf, ToolFailure> {
        let path = self.namer.exact(name);
        let written = self.namer.creator().replace_file(&path, &[text.as_bytes()]);
        written.map_err(write_failure)?;
        Ok(path)
    }

    /// Adds a failed file, with its failed tensors, to the list.
    pub(super) fn note_failed(&self, path: &Path, tensors: &[String]) {
        let mut line = path.display().to_string();
        for tensor in tensors {
            line.push(',');
            line.push_str(tensor);
        }
        line.push('\n');
        // The file has failed already, so an error of the list is only logged.
        if let Err(error) = self.namer.creator().append_line(&self.failed_list(), &line) {
            log::error(&error.to_string());
        }
    }

    /// The path of the list of failed files.
    pub(super) fn failed_list(&self) -> PathBuf {
        self.namer.exact(FAILED_LIST_NAME)
    }

    fn path(&self, stem: &str, suffix: &str) -> Result<PathBuf, ToolFailure> {
        self.namer.shortened(stem, suffix).map_err(write_failure)
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is the function of `map_err`"
)]
fn write_failure(error: StoreError) -> ToolFailure {
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    let message = format!("{error}: {}", cause.unwrap_or_default());
    ToolFailure::new(ErrorCode::WriteFile, message)
}
