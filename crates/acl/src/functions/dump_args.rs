//! Descriptions of two-stage operators, requested by `aclopStartDumpArgs`: a file for each operator
//! with different types, shapes or attributes. The vendor's format is not public, so this one is
//! Opscope's, documented in `docs/acl/process.md`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::file_format::ascend_codes::layout_from_code;
use opscope_store::record::SlotSide;
use opscope_tensor::digest::xxh3_128;
use serde_json::{Map, Value, json};

use super::exception::is_usable;
use crate::aclnn::executor::OperatorExecutor;
use crate::lock::lock;
use crate::status::FAILURE;
use crate::{AclProcess, Answer};

/// `ACL_OP_DUMP_OP_AICORE_ARGS`.
const AICORE_ARGS: u32 = 1;
/// Bytes of the digest that distinguishes descriptions of one operator by name.
const N_NAME_BYTES: usize = 8;

/// The requested descriptions.
pub(crate) struct OperatorDescriptions {
    dir: PathBuf,
    /// Names of the written files.
    written: HashSet<String>,
}

impl AclProcess {
    /// `aclopStartDumpArgs`: begins to describe two-stage operators in this directory.
    ///
    /// # Errors
    /// `FAILURE` for a null path, a kind without its lowest bit, for a repeated call, and for a
    /// directory that cannot be created, read or written.
    pub fn start_dump_args(&self, kind: u32, path: Option<&Path>) -> Answer {
        const NAME: &str = "aclopStartDumpArgs";
        let Some(path) = path else {
            return Err(self.refuse(FAILURE, "EP0007", &[NAME, "path"]));
        };
        self.check_kind(NAME, kind)?;
        let mut descriptions = lock(&self.operator_descriptions);
        if descriptions.is_some() {
            let reason = "it was called before, without aclopStopDumpArgs since";
            return Err(self.refuse(FAILURE, "EP0008", &[NAME, reason]));
        }
        if path.as_os_str().is_empty() || !is_usable(path) {
            let reason = "expected a readable and writable directory";
            let placeholders = [NAME, &*path.to_string_lossy(), "path", reason];
            return Err(self.refuse(FAILURE, "EP0006", &placeholders));
        }
        *descriptions = Some(OperatorDescriptions {
            dir: path.to_owned(),
            written: HashSet::new(),
        });
        Ok(())
    }

    /// `aclopStopDumpArgs`, also without [`AclProcess::start_dump_args`] before.
    ///
    /// # Errors
    /// `FAILURE` for a kind without its lowest bit.
    pub fn stop_dump_args(&self, kind: u32) -> Answer {
        self.check_kind("aclopStopDumpArgs", kind)?;
        *lock(&self.operator_descriptions) = None;
        Ok(())
    }

    fn check_kind(&self, name: &str, kind: u32) -> Answer {
        if kind & AICORE_ARGS != 0 {
            return Ok(());
        }
        let reason = "its lowest bit must be set";
        let placeholders = [name, &kind.to_string(), "dumpType", reason];
        Err(self.refuse(FAILURE, "EP0006", &placeholders))
    }

    /// Describes an operator that runs, if requested and not described yet.
    pub(super) fn describe_operator(&self, executor: &OperatorExecutor) {
        if lock(&self.operator_descriptions).is_none() {
            return;
        }
        let text = format!("{:#}\n", described(executor));
        let digest = xxh3_128(text.as_bytes());
        let digest: String = digest[..N_NAME_BYTES]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let name = format!("{}.{digest}.json", executor.row.op_type);
        let mut descriptions = lock(&self.operator_descriptions);
        // Descriptions may have been stopped concurrently.
        let Some(known) = descriptions.as_mut() else {
            return;
        };
        let path = known.dir.join(&name);
        if !known.written.insert(name) {
            return;
        }
        drop(descriptions);
        let creator = Creator::new(PermissionModes::default());
        let written = creator.replace_file(&path, &[text.as_bytes()]);
        // The operator itself has run: a full disk must not fail it.
        if let Err(error) = written {
            self.dump_failed(&error.to_string());
        }
    }
}

fn described(executor: &OperatorExecutor) -> Value {
    let operator = executor.operator.description.operators.first();
    let attributes = operator.map(|operator| operator.attributes.iter());
    let attributes = attributes.into_iter().flatten();
    let attributes: Map<String, Value> = attributes
        .map(|(name, text)| (name.clone(), Value::from(text.clone())))
        .collect();
    json!({
        "function": executor.row.function,
        "op_type": executor.row.op_type,
        "attributes": attributes,
        "inputs": tensors(executor, SlotSide::Input),
        "outputs": tensors(executor, SlotSide::Output),
    })
}

fn tensors(executor: &OperatorExecutor, side: SlotSide) -> Vec<Value> {
    let operator = executor.operator.description.operators.first();
    let (tensors, names) = match side {
        SlotSide::Input => (
            &executor.operator.reads,
            operator.map(|operator| &operator.inputs),
        ),
        SlotSide::Output => (
            &executor.operator.writes,
            operator.map(|operator| &operator.outputs),
        ),
    };
    let described = tensors.iter().filter_map(|tensor| {
        let view = executor.view(tensor.place)?;
        let code = u32::try_from(view.format).ok();
        let format = code.and_then(layout_from_code);
        Some(json!({
            "name": names.and_then(|names| names.get(tensor.position)),
            "dtype": tensor.dtype.name(),
            "format": format.map_or_else(|| view.format.to_string(), |format| format.name().to_owned()),
            "shape": view.dims,
            "strides": view.strides,
            "offset": view.offset,
            "storage_shape": view.storage_dims,
        }))
    });
    described.collect()
}
