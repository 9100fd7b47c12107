//! Reads graph and statistics files next to the tensors of a dump.

use std::path::Path;

use opscope_store::dump::mindspore::open_named;
use opscope_store::file_format::statistic_csv::{self, StatisticRows};
use opscope_store::file_format::{ms_graph_ir, ms_graph_pb, onnx_tensor};
use opscope_store::record::graph::{GraphDescription, ValueType};
use opscope_store::tree::mindspore::STATISTIC_FILE_NAME;
use opscope_store::{FormatError, StoreError};

/// A graph or statistics file.
#[derive(Clone, Debug)]
pub enum BesideFile {
    /// A graph of operators.
    Graph {
        /// The graph.
        graph: GraphDescription,
        /// Whether it has what only the text contains: weights, and attributes of nodes and
        /// origins.
        has_text: bool,
    },
    /// Statistics of tensors.
    Statistics(StatisticRows),
}

/// Reads a graph (`.ir`, `.pb`) or statistics (`statistic.csv`). `None` for other names, and for a
/// `.pb` file that is an ONNX tensor.
///
/// # Errors
/// [`StoreError`] if the file cannot be read or is damaged.
pub fn open(path: &Path) -> Result<Option<BesideFile>, StoreError> {
    let is_statistics = path
        .file_name()
        .is_some_and(|name| name == STATISTIC_FILE_NAME);
    let extension = path.extension().and_then(|e| e.to_str());
    let beside = match extension {
        _ if is_statistics => {
            let table = text(open_named(path)?.as_ref(), statistic_csv::parse);
            let corrupt = StoreError::corrupt(statistic_csv::FORMAT_NAME, path);
            BesideFile::Statistics(table.map_err(corrupt)?)
        }
        Some(ms_graph_ir::EXTENSION) => {
            let graph = text(open_named(path)?.as_ref(), ms_graph_ir::decode);
            let corrupt = StoreError::corrupt(ms_graph_ir::FORMAT_NAME, path);
            BesideFile::Graph {
                graph: graph.map_err(corrupt)?,
                has_text: true,
            }
        }
        Some(ms_graph_pb::EXTENSION) => {
            let bytes = open_named(path)?;
            if onnx_tensor::is_tensor(bytes.as_ref()) {
                return Ok(None);
            }
            let graph = ms_graph_pb::decode(bytes.as_ref());
            let corrupt = StoreError::corrupt(ms_graph_pb::FORMAT_NAME, path);
            // The protobuf message omits values in tuples, which the text has.
            let mut graph = graph.map_err(corrupt)?.completed();
            let has_text = text_beside(path).is_some_and(|text| graph.take_text(&text));
            BesideFile::Graph { graph, has_text }
        }
        _ => return Ok(None),
    };
    Ok(Some(beside))
}

/// The graph in the text file of the same name, if there is a sound one.
fn text_beside(path: &Path) -> Option<GraphDescription> {
    let bytes = open_named(&path.with_extension(ms_graph_ir::EXTENSION)).ok()?;
    text(bytes.as_ref(), ms_graph_ir::decode).ok()
}

fn text<T>(
    bytes: &[u8],
    parse: impl FnOnce(&str) -> Result<T, FormatError>,
) -> Result<T, FormatError> {
    let text = str::from_utf8(bytes).map_err(|error| {
        FormatError::new(error.valid_up_to() as u64, "text in UTF-8", "other bytes")
    });
    text.and_then(parse)
}

/// Dtype and shape of each tensor in a value: `float32 2x3`, in parentheses for a tuple.
pub fn type_text(value: &ValueType) -> String {
    match value {
        ValueType::Tensor(tensor) | ValueType::Reference { tensor, .. } => {
            let dims: Vec<_> = tensor.shape.iter().map(i64::to_string).collect();
            let shape = match dims.len() {
                _ if tensor.is_of_any_rank() => "of any shape".to_owned(),
                0 => "scalar".to_owned(),
                _ => dims.join("x"),
            };
            format!("{} {shape}", tensor.dtype)
        }
        ValueType::Scalar(dtype) => dtype.to_string(),
        ValueType::Tuple(types) => {
            let types: Vec<_> = types.iter().map(type_text).collect();
            format!("({})", types.join(", "))
        }
        ValueType::Monad(text) | ValueType::Other(text) => text.clone(),
    }
}
