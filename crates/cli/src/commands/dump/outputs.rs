//! The model's own outputs, as array files.

use std::fs;
use std::path::{Path, PathBuf};

use opscope_engine::ModelSignature;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::file_format::npy;
use opscope_store::tree::outputs::{LIST_FILE, file_name, step_dir};
use opscope_tensor::{DType, Tensor};
use serde_json::{Value, json};

use crate::exit::{CommandFailure, CommandResult, PARTIAL, USAGE};

/// Writes the model's outputs at each step below one directory.
pub(crate) struct OutputFiles {
    dir: PathBuf,
    creator: Creator,
    /// Names of the model's outputs, in order.
    names: Vec<String>,
}

impl OutputFiles {
    /// Creates nothing before the first step has run; refuses a non-empty directory.
    pub(super) fn new(
        dir: &Path,
        signature: &ModelSignature,
        modes: PermissionModes,
    ) -> CommandResult<OutputFiles> {
        // Steps of an earlier run would be indistinguishable from this one's.
        let is_taken = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
        if is_taken || (dir.exists() && !dir.is_dir()) {
            let message = format!(
                "`--save-outputs` needs a new or empty directory, but `{}` is neither",
                dir.display()
            );
            return Err(CommandFailure::message(USAGE, message));
        }
        let names = signature.outputs.iter().map(|value| value.name.clone());
        Ok(OutputFiles {
            dir: dir.to_owned(),
            creator: Creator::new(modes),
            names: names.collect(),
        })
    }

    /// Writes the outputs of a step, and their list last.
    pub(super) fn write(&self, step: u64, outputs: &[Tensor]) -> CommandResult {
        let dir = step_dir(&self.dir, step);
        let named = self.names.iter().zip(outputs).enumerate();
        let list = named
            .map(|(position, (name, tensor))| self.write_one(&dir, position, name, tensor))
            .collect::<Result<Vec<_>, _>>()?;
        let text = format!("{:#}\n", json!({ "outputs": list }));
        // The list is complete: when it exists, so do the arrays. Programs can wait for it.
        self.create(&dir.join(LIST_FILE), &[text.as_bytes()])
    }

    fn write_one(
        &self,
        dir: &Path,
        position: usize,
        name: &str,
        tensor: &Tensor,
    ) -> CommandResult<Value> {
        let array = array(tensor)?;
        let file = file_name(name, position, array.is_some());
        let (header, data) = array.unwrap_or_default();
        // Writes elements from the tensor's own memory, except text, which numpy encodes
        // differently.
        let elements = if data.is_empty() {
            let bytes = tensor.host_bytes();
            bytes.map_err(|error| CommandFailure::new(PARTIAL, error))?
        } else {
            &data
        };
        self.create(&dir.join(&file), &[&header, elements])?;
        Ok(json!({
            "name": name,
            "dtype": tensor.dtype().name(),
            "shape": tensor.shape().dims(),
            "file": file,
        }))
    }

    fn create(&self, path: &Path, parts: &[&[u8]]) -> CommandResult {
        let is_new = self.creator.create_file(path, parts);
        if is_new.map_err(|error| CommandFailure::new(PARTIAL, error))? {
            Ok(())
        } else {
            let message = format!("`{}` already exists", path.display());
            Err(CommandFailure::message(USAGE, message))
        }
    }
}

type HeaderAndData = (Vec<u8>, Vec<u8>);

/// The header of an array file, with its data unless the tensor's own bytes serve; `None` for
/// dtypes that numpy lacks.
fn array(tensor: &Tensor) -> CommandResult<Option<HeaderAndData>> {
    if tensor.dtype() == DType::String {
        let view = tensor.host_view();
        let view = view.map_err(|error| CommandFailure::new(PARTIAL, error))?;
        let array = npy::text_array(view);
        return array
            .map(Some)
            .map_err(|error| CommandFailure::new(PARTIAL, error));
    }
    let header = npy::encode_header(tensor.dtype(), tensor.shape());
    Ok(header.map(|header| (header, Vec::new())))
}
