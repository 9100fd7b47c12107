//! Recomputed outputs as array files.

use std::path::{Path, PathBuf};

use opscope_analysis::compare::side::OperatorExecution;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::file_format::npy;
use opscope_store::tree::acl::{clean_name, hash_file_name};

use super::run::Outputs;
use crate::exit::{CommandFailure, CommandResult, PARTIAL, USAGE};

/// Writes array files below one directory.
pub(super) struct ArrayFolder {
    dir: PathBuf,
    creator: Creator,
}

impl ArrayFolder {
    pub(super) fn new(dir: &Path, modes: PermissionModes) -> ArrayFolder {
        ArrayFolder {
            dir: dir.to_owned(),
            creator: Creator::new(modes),
        }
    }

    /// `[rank_{R}/][{model}/][{step}/]{op_type}.{op_name}.{task}.{repeat}.output.{i}.npy`.
    pub(super) fn write(&mut self, run: &OperatorExecution, outputs: &Outputs) -> CommandResult {
        let mut dir = self.dir.clone();
        dir.extend(run.place.rank.map(|rank| format!("rank_{rank}")));
        dir.extend(run.place.model.as_deref().map(clean_name));
        dir.extend(run.place.step.map(|step| step.to_string()));
        let task = run.task_id.unwrap_or(0);
        let (op_type, op_name) = (clean_name(&run.op_type), clean_name(&run.op_name));
        let stem = format!("{op_type}.{op_name}.{task}.{}", run.repeat);
        for (i, tensor) in outputs {
            let name = format!("{stem}.output.{i}.npy");
            // Names too long for file systems are replaced by a hash, as in dumps.
            let name = match hash_file_name(&name) {
                Some(digits) => format!("{digits}.npy"),
                None => name,
            };
            let path = dir.join(name);
            let Some(header) = npy::encode_header(tensor.dtype(), tensor.shape()) else {
                let message = format!("numpy has no dtype `{}`", tensor.dtype());
                return Err(CommandFailure::message(PARTIAL, message));
            };
            let elements = tensor.host_bytes();
            let elements = elements.map_err(|error| CommandFailure::new(PARTIAL, error))?;
            let written = self.creator.create_file(&path, &[&header, elements]);
            // Arrays of an earlier replay stay, because another engine may have computed them.
            if !written.map_err(|error| CommandFailure::new(PARTIAL, error))? {
                let message = format!("`{}` already exists", path.display());
                return Err(CommandFailure::message(USAGE, message));
            }
        }
        Ok(())
    }
}
