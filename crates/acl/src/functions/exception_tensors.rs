//! Tensors that a program saves next to the dumps of failing operators.

use std::path::{Component, Path};

use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::file_format::ascend_codes::dtype_from_graph_engine;
use opscope_store::file_format::dump_data::{
    DumpHeader, HeaderAttribute, SpaceEntry, TensorEntry, VERSION, dtype_code, with_length,
};
use opscope_store::tree::acl::custom_file_name;

use crate::exception::ExceptionTensor;
use crate::status::{FAILURE, INVALID_PARAM};
use crate::{AclProcess, Answer};

const NAME: &str = "acldumpSaveExceptionInfo";
/// Maximum number of dimensions of a tensor.
const N_DIMS_MAX: u32 = 25;
/// `acldumpTensorType`.
const INPUT: i32 = 0;
const OUTPUT: i32 = 1;
const WORKSPACE: i32 = 2;
/// `ACL_DUMP_ADDR_RAW`.
const RAW_ADDRESS: i32 = 2;
/// `ACL_DUMP_PLACEMENT_DEVICE`.
const ON_DEVICE: i32 = 0;
/// The type that marks an entry as an input.
const INPUT_TYPE_INPUT: u32 = 2;
/// Only the owner may read saved tensors, and no user may change them.
const MODES: PermissionModes = PermissionModes {
    dir: 0o700,
    file: 0o400,
};

impl AclProcess {
    /// `acldumpSaveExceptionInfo`: writes tensors to `{file_name}.custom.{time}` next to the dumps
    /// of failing operators. `None` means a null pointer.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null, an empty name, one with `..` in it, no tensors and invalid
    /// tensors, `FAILURE` if no dump of failing operators is on or the file cannot be written.
    pub fn save_exception_info(
        &self,
        file_name: Option<&str>,
        user_tag: Option<&str>,
        tensors: Option<&[ExceptionTensor]>,
    ) -> Answer {
        let file_name = self.check_file_name(file_name)?;
        let Some(tensors) = tensors else {
            return Err(self.null_pointer(NAME, "tensors"));
        };
        if tensors.is_empty() {
            let placeholders = [NAME, "0", "tensorCount", "it must be more than 0"];
            return Err(self.refuse(INVALID_PARAM, "EP0006", &placeholders));
        }
        let dir = self.exception_dir(NAME)?;
        tensors
            .iter()
            .try_for_each(|tensor| self.check_tensor(tensor))?;
        let (header, payload) = self.collect(file_name, user_tag, tensors)?;
        let time = opscope_store::clock::local();
        let time = format!("{}{:03}", time.strftime("%Y%m%d%H%M%S"), time.millisecond());
        let path = dir.join(custom_file_name(file_name, &time));
        let prelude = with_length(&header);
        let mut parts: Vec<&[u8]> = vec![&prelude];
        parts.extend(payload.iter().map(Vec::as_slice));
        let written = Creator::in_dump(&dir, MODES).create_file(&path, &parts);
        let failed =
            |reason: &str| self.inner_error(FAILURE, &format!("`{}`: {reason}", path.display()));
        match written {
            Ok(true) => Ok(()),
            Ok(false) => Err(failed("the file exists already")),
            Err(error) => Err(failed(&error.to_string())),
        }
    }

    /// The name, which must stay below the directory.
    fn check_file_name<'a>(&self, name: Option<&'a str>) -> Answer<&'a str> {
        let Some(name) = name else {
            return Err(self.null_pointer(NAME, "fileName"));
        };
        let below = name.trim_start_matches('/');
        let reason = if below.is_empty() || below.ends_with('/') {
            "it names no file"
        } else if Path::new(below)
            .components()
            .any(|component| component == Component::ParentDir)
        {
            "it must not leave the directory"
        } else {
            return Ok(below);
        };
        Err(self.refuse(INVALID_PARAM, "EP0006", &[NAME, name, "fileName", reason]))
    }

    fn check_tensor(&self, tensor: &ExceptionTensor) -> Answer {
        let is_fine = tensor.shape_num <= N_DIMS_MAX
            && tensor.origin_shape_num <= N_DIMS_MAX
            && (INPUT..=WORKSPACE).contains(&tensor.kind)
            && tensor.address_kind == RAW_ADDRESS
            && tensor.placement == ON_DEVICE
            && tensor.address != 0
            && tensor.size != 0;
        if is_fine {
            return Ok(());
        }
        let reason = "a tensor has no address, no bytes, too many dimensions, or an unknown kind";
        let placeholders = [NAME, &format!("{tensor:?}"), "tensors", reason];
        Err(self.refuse(INVALID_PARAM, "EP0006", &placeholders))
    }

    /// The header, and the tensors' bytes in its order: inputs, outputs, workspaces.
    fn collect(
        &self,
        file_name: &str,
        user_tag: Option<&str>,
        tensors: &[ExceptionTensor],
    ) -> Answer<(DumpHeader, Vec<Vec<u8>>)> {
        let now = opscope_store::clock::timestamp().as_microsecond();
        let base_name = file_name.rsplit('/').next().unwrap_or(file_name);
        let mut header = DumpHeader {
            version: VERSION.to_owned(),
            dump_time: u64::try_from(now).unwrap_or(0),
            op_name: base_name.to_owned(),
            ..DumpHeader::default()
        };
        header.attrs = user_tag
            .map(|tag| HeaderAttribute {
                name: "user_tag".to_owned(),
                value: tag.to_owned(),
            })
            .into_iter()
            .collect();
        let mut payload = Vec::new();
        // The file format stores payloads by kind, whatever the order of the program's list.
        for kind in [INPUT, OUTPUT, WORKSPACE] {
            for tensor in tensors.iter().filter(|tensor| tensor.kind == kind) {
                let bytes = self.memory.read(tensor.address, tensor.size);
                // An invalid address of any tensor refuses the whole call.
                payload.push(bytes.ok_or(INVALID_PARAM)?);
                match kind {
                    INPUT => header.inputs.push(TensorEntry {
                        input_type: INPUT_TYPE_INPUT,
                        ..entry(tensor)
                    }),
                    OUTPUT => header.outputs.push(entry(tensor)),
                    _ => header.spaces.push(SpaceEntry {
                        space_type: 0,
                        size: tensor.size as u64,
                        arg_index: tensor.args_offset,
                    }),
                }
            }
        }
        Ok((header, payload))
    }
}

fn entry(tensor: &ExceptionTensor) -> TensorEntry {
    TensorEntry {
        // 0 is the file format's undefined type: bytes of an unknown type are saved too.
        data_type: dtype_from_graph_engine(tensor.data_type)
            .and_then(dtype_code)
            .unwrap_or(0),
        format: u32::try_from(tensor.format).unwrap_or(0),
        shape: Some(tensor.shape.clone()),
        original_shape: Some(tensor.origin_shape.clone()),
        size: tensor.size as u64,
        address: tensor.address as u64,
        arg_index: tensor.args_offset,
        ..TensorEntry::default()
    }
}
