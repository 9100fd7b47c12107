//! The extents that a model leaves open: setting them, and reading which ones it is prepared for.

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

/// The variable that names the gears of models that are loaded from memory.
const VARIABLE: &str = "OPSCOPE_GEARS";

impl AclProcess {
    /// `aclmdlSetDynamicBatchSize`: `n` stands for the first axis of every input where it is open,
    /// in executions with the dataset `inputs` from now on.
    ///
    /// # Errors
    /// `INVALID_PARAM` for 0, for a handle that is not a dataset, and if there is no buffer at
    /// `index` or it has no address; `GE_EXEC_MODEL_ID_INVALID`; `GE_PARAM_INVALID` for a model
    /// without open extents. For a model with gears also `INVALID_PARAM` for another index than
    /// that of `ascend_mbatch_shape_data`, `GE_DYNAMIC_INPUT_LENGTH_INVALID` for a buffer there
    /// that is too short or the wrong number of extents, `GE_DYNAMIC_BATCH_SIZE_INVALID` for a
    /// value that is not a gear.
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

    /// `aclmdlSetDynamicHWSize`: height and width of the inputs with four axes, where they are
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

    /// `aclmdlSetInputDynamicDims`: the extents of all inputs, one input after the other.
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
        self.check_executor("open extents were set")?;
        let description = self.model(model_id)?.description.clone();
        let mut objects = self.objects();
        let dataset = objects.datasets.find(inputs)?;
        let buffer = match dataset.entries.get(index) {
            Some(entry) => {
                let buffer = objects.buffers.find(entry.buffer)?;
                // The vendor's executor takes no buffer without memory, although nothing is written
                // to it here.
                if buffer.address == 0 {
                    return Err(INVALID_PARAM);
                }
                Some(*buffer)
            }
            // Where the program has no buffer for the input that stands for the extents, none is
            // needed.
            None if index == description.n_inputs() => None,
            None => return Err(INVALID_PARAM),
        };
        if !description.is_dynamic() {
            let placeholders = [
                &model_id.to_string(),
                "modelId",
                "the model has no open extents",
            ];
            return Err(self.refuse(GE_PARAM_INVALID, "EH0001", &placeholders));
        }
        // Without gears any extents will do, as long as they fit when the model runs.
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

    /// The gears of a model: those beside its file, or those that the environment names for a model
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
            // A model without gears is the rule; what the environment names has to be there.
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
