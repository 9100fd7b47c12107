//! Weights that stay in the model's file.
//!
//! A model that is handed over as bytes would hold its weights a second time, and may not have more
//! than 2 GiB. So weights that lie in the file as they are become *external data* whose file is the
//! model's own.

use std::path::{Path, PathBuf};

use opscope_tensor::{SharedBytes, TensorElements};
use prost::Message;
use prost::bytes::Bytes;

use super::weights::{ModelWeight, ModelWeights};
use crate::onnx::schema::{DataLocation, GraphProto, ModelProto, TensorProto};
use crate::onnx::{external, proto};

/// Smaller weights are handed over: the engine wants to know some of them early, and a reference is
/// not free.
const N_BYTES_MIN: usize = 4 << 10;

/// The folder and file of a model, in which its weights can stay.
pub(super) struct ModelHome {
    /// The folder that the engine is to look for data in.
    pub(super) folder: PathBuf,
    /// The file's name in it; `None` if the weights have to be handed over.
    pub(super) file_name: Option<String>,
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

impl ModelHome {
    /// The home of a model that was read from `path`.
    pub(super) fn for_model(path: &Path, model: &ModelProto) -> ModelHome {
        let folder = folder_of(path);
        // The library follows no link that leads out of its folder, so that the folder is that of
        // the real file.
        let real = path.canonicalize().ok();
        let real_folder = real.as_deref().map(folder_of);
        let is_same = real_folder.is_some() && real_folder == folder.canonicalize().ok();
        // The engine follows no link out of the folder, but external data are there.
        if !is_same && model.graph.as_ref().is_some_and(proto::has_data_outside) {
            return ModelHome {
                folder,
                file_name: None,
            };
        }
        let file_name = real.as_deref().and_then(Path::file_name);
        ModelHome {
            folder: real_folder.unwrap_or(folder),
            file_name: file_name
                .and_then(|name| name.to_str())
                .map(ToOwned::to_owned),
        }
    }
}

/// Turns weights that lie in `file`, the bytes of the file called `file_name`, into references to
/// it.
pub(super) fn refer(model: &mut ModelProto, file: &[u8], file_name: &str) {
    if let Some(graph) = &mut model.graph {
        refer_in(graph, file, file_name);
    }
}

fn refer_in(graph: &mut GraphProto, file: &[u8], file_name: &str) {
    for weight in &mut graph.initializer {
        let Some(bytes) = weight
            .raw_data
            .as_ref()
            // Shapes and axes are needed when the graph is built, and the library may not have
            // loaded outside data then.
            .filter(|bytes| bytes.len() >= N_BYTES_MIN)
        else {
            continue;
        };
        // Messages share the bytes of the file, so a weight's address determines its offset in the
        // file.
        if let Some(offset) = offset_in(file, bytes) {
            weight.external_data = external::entries(file_name, offset as u64, bytes.len() as u64);
            weight.data_location = Some(DataLocation::External as i32);
            weight.raw_data = None;
        }
    }
    for node in &mut graph.node {
        for body in proto::bodies_mut(node) {
            refer_in(body, file, file_name);
        }
    }
}

/// Puts weights that are kept outside into the model, if `weights` has found them. Older libraries
/// find no outside data for a model in memory.
pub(super) fn embed(model: &mut ModelProto, weights: &ModelWeights) {
    if let Some(graph) = &mut model.graph {
        embed_in(graph, weights, &mut 0);
    }
}

fn embed_in(graph: &mut GraphProto, weights: &ModelWeights, n_graphs: &mut usize) {
    let number = *n_graphs;
    *n_graphs += 1;
    for weight in &mut graph.initializer {
        take_in(weights.get(number, &weight.name), weight);
    }
    for node in &mut graph.node {
        if let (true, Some(name)) = (proto::is_constant(node), node.output.first()) {
            let found = weights.get(number, name);
            let tensors = node
                .attribute
                .iter_mut()
                .filter_map(|attribute| attribute.t.as_mut());
            tensors.for_each(|tensor| take_in(found, tensor));
        }
        for body in proto::bodies_mut(node) {
            embed_in(body, weights, n_graphs);
        }
    }
}

fn take_in(weight: Option<&ModelWeight>, tensor: &mut TensorProto) {
    if let Some(ModelWeight::Tensor(found)) = weight
        && let TensorElements::Host(bytes) = found.elements()
        && tensor.data_location() == DataLocation::External
    {
        tensor.raw_data = Some(Bytes::from_owner(WeightBytes(bytes.clone())));
        tensor.external_data = Vec::new();
        tensor.data_location = None;
    }
}

/// The elements of a weight, as an owner from which messages can share bytes.
struct WeightBytes(SharedBytes);

impl AsRef<[u8]> for WeightBytes {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// Where in `whole` a slice of it begins; `None` for bytes from elsewhere.
fn offset_in(whole: &[u8], part: &[u8]) -> Option<usize> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then_some(start)
}

/// The model as a message.
///
/// # Errors
/// If it is larger than a message may be.
pub(super) fn encode(model: &ModelProto) -> Result<Vec<u8>, String> {
    let n_bytes = model.encoded_len();
    if n_bytes > proto::N_MESSAGE_BYTES_MAX {
        return Err(format!(
            "the model takes {n_bytes} bytes without the weights that can stay in its file, and a message holds at \
             most {}; from ONNX Runtime 1.21 on all large weights of a file can stay there",
            proto::N_MESSAGE_BYTES_MAX
        ));
    }
    Ok(model.encode_to_vec())
}
