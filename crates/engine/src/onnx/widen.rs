//! A model in float32 in place of float16 and bfloat16.
//!
//! Every value of these two dtypes becomes float32: weights, constants, inputs, results, and
//! outputs whose dtype an attribute sets. Names and operators stay, one for one; a `Cast` to
//! float16 remains as a `Cast` to float32, which changes nothing. So a run of the widened model
//! shows the results of the same operators without the rounding.
//!
//! Narrower floats, such as those of float8, are not arithmetic but quantisation, and stay as
//! integers do.

mod declarations;
mod dtype_attributes;
mod elements;
mod outlet;
mod tensors;

use std::path::{Path, PathBuf};

use opscope_tensor::DType;
use prost::Message;

use self::declarations::Declarations;
use self::outlet::Outlet;
use self::tensors::TensorWidening;
use super::private_dir::PrivateDir;
use super::proto::{self, ModelBytes};
use super::schema::ModelProto;
use crate::{EngineError, ModelSource};

pub use self::elements::widen_input;
pub(super) use self::tensors::elements as tensor_elements;

/// Models that take more bytes in float32 go to a file: engines hold a message several times, and
/// may not hold one of more than 2 GiB.
const N_BYTES_IN_MEMORY_MAX: u64 = 512 << 20;

/// A model in which float16 and bfloat16 have become float32.
pub struct WidenedModel {
    bytes: Vec<u8>,
    /// The original, or the file in `dir` that has the `bytes`.
    path: PathBuf,
    /// Holds the weights of a large model.
    dir: Option<PrivateDir>,
    kept_dtypes: Vec<DType>,
}

impl WidenedModel {
    /// The model for an engine to load. The weights of a large model lie in files that go with this value,
    /// which therefore has to outlive the model that is loaded from it.
    pub fn source(&self) -> ModelSource<'_> {
        match self.dir {
            Some(_) => ModelSource::File(&self.path),
            None => ModelSource::Part {
                bytes: &self.bytes,
                path: &self.path,
            },
        }
    }

    /// Dtypes narrower than float16 in which the model keeps floats, and still does.
    pub fn kept_dtypes(&self) -> &[DType] {
        &self.kept_dtypes
    }
}

/// Turns float16 and bfloat16 of a model into float32. Every element keeps its value, infinities
/// and the payload of NaN included.
///
/// Returns `None` if the model has neither of them, so that nothing would change.
///
/// # Errors
/// [`EngineError`] if the model cannot be read, its weights are missing, it reads the bits of a
/// float16 (`BitCast`), or there is no room for the weights of a large one.
pub fn widen_model(source: ModelSource<'_>) -> Result<Option<WidenedModel>, EngineError> {
    widen(source, N_BYTES_IN_MEMORY_MAX)
}

/// [`widen_model`] with another limit.
fn widen(
    source: ModelSource<'_>,
    n_bytes_in_memory_max: u64,
) -> Result<Option<WidenedModel>, EngineError> {
    let (model, path) = match source {
        ModelSource::File(path) => (proto::read(path)?, path),
        ModelSource::Memory(bytes) => (proto::decode(bytes)?, Path::new(proto::MEMORY)),
        ModelSource::Part { bytes, path } => (proto::decode(bytes)?, path),
    };
    let ModelBytes { mut proto, .. } = model;
    // Declarations go first, as they show whether there is anything to do.
    let mut declarations = Declarations::new(&proto);
    declarations
        .widen(&mut proto)
        .map_err(|reason| EngineError::invalid(path, reason))?;
    let n_bytes = widened_size(&mut proto, &mut declarations)
        .map_err(|reason| EngineError::invalid(path, reason))?;
    declarations
        .check_operators(&proto)
        .map_err(|reason| EngineError::invalid(path, reason))?;
    if !declarations.has_changes {
        return Ok(None);
    }
    // Known before the first element is read, so that a large model never lies in memory whole.
    let is_large = n_bytes > n_bytes_in_memory_max;
    let dir = is_large
        .then(|| PrivateDir::new(&std::env::temp_dir()))
        .transpose()
        .map_err(|reason| EngineError::Engine {
            engine: "the model in float32",
            reason,
        })?;
    let outlet = match &dir {
        Some(dir) => Outlet::create(dir.path())?,
        None => Outlet::Message,
    };
    let mut widening = TensorWidening::new(path, outlet);
    tensors::for_each(&mut proto, &mut |tensor, place| {
        widening.widen(tensor, place)
    })?;
    let file = widening.finish()?;
    let bytes = encode(&proto).map_err(|reason| EngineError::invalid(path, reason))?;
    Ok(Some(WidenedModel {
        path: match &file {
            Some(file) => file.write_model(&bytes)?,
            None => path.to_owned(),
        },
        // They are not needed twice.
        bytes: if file.is_some() { Vec::new() } else { bytes },
        dir,
        kept_dtypes: declarations.kept_dtypes(),
    }))
}

/// Whether a dtype becomes float32.
fn is_widened(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// Bytes that the model takes in float32 at most, and notes which dtypes its tensors have.
fn widened_size(model: &mut ModelProto, declarations: &mut Declarations) -> Result<u64, String> {
    // An upper bound: the narrow elements are in it as well. Only its magnitude matters.
    let mut n_bytes = model.encoded_len() as u64;
    tensors::for_each(model, &mut |tensor, place| {
        let Some(dtype) = proto::dtype(tensor.data_type()) else {
            return Ok(());
        };
        declarations.note(dtype);
        if is_widened(dtype) {
            let shape = tensors::shape(tensor, place)?;
            let wide = shape
                .n_bytes(DType::F32)
                .map_err(|error| format!("{place} in float32: {error}"))?;
            n_bytes = n_bytes.saturating_add(wide as u64);
        }
        Ok::<(), String>(())
    })?;
    Ok(n_bytes)
}

fn encode(model: &ModelProto) -> Result<Vec<u8>, String> {
    let n_bytes = model.encoded_len();
    if n_bytes > proto::N_MESSAGE_BYTES_MAX {
        return Err(format!(
            "in float32 it takes {n_bytes} bytes without the weights that can lie in a file of \
             their own; expected at most {}, which is what a message holds",
            proto::N_MESSAGE_BYTES_MAX
        ));
    }
    Ok(model.encode_to_vec())
}

#[cfg(test)]
mod tests;
