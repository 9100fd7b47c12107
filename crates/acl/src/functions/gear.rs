//! The open dimensions of a model: setting them, and reading the supported ones.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use opscope_engine::ModelSignature;
use opscope_store::file_format::gears_json::{self, FILE_BYTES_MAX};
use opscope_store::regular_file;

use crate::data::{DataBuffer, GearChoice};
use crate::handle::Handle;
use crate::model::ModelGears;
use crate::status::{
    GE_DYNAMIC_INPUT_LENGTH_INVALID, GE_EXEC_MODEL_DATA_SIZE_INVALID, GE_PARAM_INVALID,
    INVALID_PARAM,
};
use crate::{AclProcess, Answer};

/// The variable with the gears of models that are loaded from memory.
const VARIABLE: &str = "OPSCOPE_GEARS";

impl AclProcess {
    /// `aclmdlSetDynamicBatchSize`: sets the first dimension of every input to `n` if it is open,
    /// for future executions with the dataset `inputs`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for 0, for a handle that is not a dataset, and if there is no buffer at
    /// `index` or it has no address; `GE_EXEC_MODEL_ID_INVALID`; `GE_PARAM_INVALID` for a model
    /// without open dimensions. For a model with gears also `INVALID_PARAM` for an index other than
    /// that of `ascend_mbatch_shape_data`, `GE_DYNAMIC_INPUT_LENGTH_INVALID` for a short buffer
    /// there or the wrong number of dimensions, `GE_DYNAMIC_BATCH_SIZE_INVALID` for a value that is
    /// not a gear.
    pub fn set_dynamic_batch_size(
        &self,
        model_id: u32,
        inputs: Handle,
        index: usize,
        n: u64,
    ) -> Answer {
        if n == 0 {
            return Err(INVALID_PARAM);
        }
        self.set_gear(model_id, inputs, index, GearChoice::Batch(n))
    }

    /// `aclmdlSetDynamicHWSize`: sets height and width of the inputs with four axes, if they are
    /// open.
    ///
    /// # Errors
    /// As for [`AclProcess::set_dynamic_batch_size`].
    pub fn set_dynamic_hw_size(
        &self,
        model_id: u32,
        inputs: Handle,
        index: usize,
        height: u64,
        width: u64,
    ) -> Answer {
        if height == 0 || width == 0 {
            return Err(INVALID_PARAM);
        }
        self.set_gear(model_id, inputs, index, GearChoice::Size { height, width })
    }

    /// `aclmdlSetInputDynamicDims`: sets the shapes of all inputs, concatenated.
    ///
    /// # Errors
    /// As for [`AclProcess::set_dynamic_batch_size`].
    pub fn set_input_dynamic_dims(
        &self,
        model_id: u32,
        inputs: Handle,
        index: usize,
        dims: &[i64],
    ) -> Answer {
        if dims.is_empty() {
            return Err(INVALID_PARAM);
        }
        self.set_gear(model_id, inputs, index, GearChoice::Dims(dims.to_vec()))
    }

    fn set_gear(&self, model_id: u32, inputs: Handle, index: usize, gear: GearChoice) -> Answer {
        self.check_executor("open dimensions were set")?;
        let description = self.model(model_id)?.description.clone();
        let mut objects = self.objects();
        let dataset = objects.datasets.find(inputs)?;
        let buffer = match dataset.entries.get(index) {
            Some(entry) => {
                let buffer = objects.buffers.find(entry.buffer)?;
                // The vendor's executor refuses a buffer without memory, although nothing is
                // written to it here.
                if buffer.address == 0 {
                    return Err(INVALID_PARAM);
                }
                Some(*buffer)
            }
            // The buffer for the dimensions is optional.
            None if index == description.n_inputs() => None,
            None => return Err(INVALID_PARAM),
        };
        if !description.is_dynamic() {
            let placeholders = [
                &model_id.to_string(),
                "modelId",
                "the model has no open dimensions",
            ];
            return Err(self.refuse(GE_PARAM_INVALID, "EH0001", &placeholders));
        }
        // Without gears any dimensions are accepted, as long as they match when the model runs.
        if let Some(gears) = &description.gears {
            if index != description.n_inputs() {
                let reason = "expected the index of `ascend_mbatch_shape_data`";
                let placeholders = [&index.to_string(), "index", reason];
                return Err(self.refuse(INVALID_PARAM, "EH0001", &placeholders));
            }
            self.check_gear_buffer(buffer, gears.n_values() * size_of::<u64>())?;
            let found = gears
                .find(&gear)
                .map_err(|(status, reason)| self.inner_error(status, &reason))?;
            description.note_gear(found);
        }
        if let Some(dataset) = objects.datasets.get_mut(inputs) {
            dataset.gear = Some(gear);
        }
        Ok(())
    }

    fn check_gear_buffer(&self, buffer: Option<DataBuffer>, n_needed: usize) -> Answer {
        match buffer {
            Some(buffer) if buffer.size < n_needed => {
                let text = format!(
                    "`ascend_mbatch_shape_data` takes {n_needed} bytes, its buffer has {}",
                    buffer.size
                );
                Err(self.inner_error(GE_DYNAMIC_INPUT_LENGTH_INVALID, &text))
            }
            _ => Ok(()),
        }
    }

    /// The gears of a model: those next to its file, or those named by the environment for a model
    /// without a file.
    pub(super) fn gears(
        &self,
        file: Option<&Path>,
        signature: &ModelSignature,
    ) -> Answer<Option<ModelGears>> {
        let path = match file {
            Some(file) => gears_json::path_of(file),
            None => match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
                Some(path) => PathBuf::from(path),
                None => return Ok(None),
            },
        };
        let refused = |reason: &str| {
            let placeholders = [&*path.to_string_lossy(), reason];
            self.refuse(GE_EXEC_MODEL_DATA_SIZE_INVALID, "EH0004", &placeholders)
        };
        let bytes = match regular_file::read(&path, FILE_BYTES_MAX as u64) {
            Ok(bytes) => bytes,
            // Most models have no gears, but a file named by the environment must exist.
            Err(error) if error.kind() == ErrorKind::NotFound && file.is_some() => {
                return Ok(None);
            }
            Err(error) => return Err(refused(&error.to_string())),
        };
        let gears = gears_json::parse(&bytes).map_err(|error| {
            let (offset, expected, found) = (error.offset, &error.expected, &error.found);
            refused(&format!(
                "at byte {offset}: expected {expected}, found {found}"
            ))
        })?;
        let gears = ModelGears::new(gears, signature);
        gears.map(Some).map_err(|reason| refused(&reason))
    }
}
