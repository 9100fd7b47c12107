//! Single files written by `opscope.torchair` outside a session: arrays and texts.

use std::borrow::Cow;
use std::path::PathBuf;

use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::file_format::npy::encode_header;
use opscope_tensor::convert::dtype::decode;
use opscope_tensor::dense_copy;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::memory::TensorLender;
use super::reason::UnseenReason;
use crate::os_error;

/// Maximum size of an expanded tensor to write, as in a session.
const EXPANDED_BYTES_MAX: usize = 256 << 20;

/// Creates files below a directory atomically, without following symbolic links below it.
#[pyclass(frozen, module = "opscope._native.capture")]
pub(super) struct FileWriter {
    lender: TensorLender,
    creator: Creator,
}

#[pymethods]
impl FileWriter {
    /// `plain_types` are `torch.Tensor` and subclasses that only add a name; empty if there are no
    /// tensors to write.
    #[new]
    #[pyo3(signature = (root, plain_types, *, dir_mode=0o700, file_mode=0o600))]
    fn new(
        py: Python<'_>,
        root: PathBuf,
        plain_types: Vec<Bound<'_, PyType>>,
        dir_mode: u32,
        file_mode: u32,
    ) -> PyResult<FileWriter> {
        let modes = PermissionModes {
            dir: dir_mode,
            file: file_mode,
        };
        Ok(FileWriter {
            lender: TensorLender::new(py, &plain_types)?,
            creator: Creator::in_dump(&root, modes),
        })
    }

    /// Writes a tensor as an npy file, or returns why it cannot be one. Dtypes that numpy lacks
    /// become wider ones that hold the same values.
    ///
    /// # Errors
    ///
    /// `OSError` if the file cannot be written.
    fn npy(
        &self,
        py: Python<'_>,
        path: PathBuf,
        tensor: &Bound<'_, PyAny>,
    ) -> PyResult<Option<String>> {
        let lent = match self.lender.look(tensor) {
            Ok(lent) => lent,
            Err(reason) => return Ok(Some(reason.name().into_owned())),
        };
        let (true_dtype, true_shape) = match lent.unpacked() {
            Ok(found) => found,
            Err(reason) => return Ok(Some(reason.name().into_owned())),
        };
        let (dtype, shape, strides) = (lent.dtype, &lent.shape, &lent.strides);
        let bytes = lent.bytes();
        let unknown = || UnseenReason::ElementType(true_dtype.name().to_owned());
        match py.detach(|| -> Result<Result<(), StoreError>, UnseenReason> {
            let dense: Cow<'_, [u8]> = match strides {
                None => bytes.into(),
                Some(strides) => {
                    let n_bytes = shape.n_bytes(dtype).map_err(|_| UnseenReason::Shape)?;
                    // Strides of 0 can expand a few bytes to any size.
                    if n_bytes > bytes.len() && n_bytes > EXPANDED_BYTES_MAX {
                        return Err(UnseenReason::Expanded);
                    }
                    let copy = dense_copy(dtype, shape, strides, 0, bytes);
                    copy.map_err(|_| UnseenReason::Copy)?.into()
                }
            };
            let known = decode(true_dtype, &true_shape, &dense).map_err(|_| unknown())?;
            let header = encode_header(known.dtype, &known.shape).ok_or_else(unknown)?;
            Ok(self.put(&path, &[&header, &known.bytes]))
        }) {
            Ok(written) => written
                .map(|()| None)
                .map_err(|error| os_error::of_store(&error)),
            Err(reason) => Ok(Some(reason.name().into_owned())),
        }
    }

    /// Writes raw bytes.
    ///
    /// # Errors
    ///
    /// `OSError` if the file cannot be written.
    fn bytes(&self, py: Python<'_>, path: PathBuf, content: &[u8]) -> PyResult<()> {
        py.detach(|| self.put(&path, &[content]))
            .map_err(|error| os_error::of_store(&error))
    }
}

impl FileWriter {
    fn put(&self, path: &std::path::Path, parts: &[&[u8]]) -> Result<(), StoreError> {
        let above = path.parent().unwrap_or(path);
        let written = self.creator.create_dir(above);
        written.and_then(|()| self.creator.replace_file(path, parts))
    }
}
