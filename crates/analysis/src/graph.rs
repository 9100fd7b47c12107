//! Reads graph and statistics files next to the tensors of a dump.

use std::path::Path;

use opscope_store::dump::mindspore::open_named;
use opscope_store::file_format::statistic_csv::{self, StatisticRows};
use opscope_store::file_format::{ms_graph_ir, ms_graph_pb, onnx_tensor};
use opscope_store::record::graph::{GraphDescription, TensorType, ValueType};
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
    let bytes = || open_named(path);
    let corrupt = |format, source| StoreError::Corrupt {
        format,
        path: path.to_owned(),
        source,
    };
    let beside = match extension {
        _ if is_statistics => {
            let format = statistic_csv::FORMAT_NAME;
            let table = text(bytes()?.as_ref(), statistic_csv::parse);
            BesideFile::Statistics(table.map_err(|error| corrupt(format, error))?)
        }
        Some(ms_graph_ir::EXTENSION) => {
            let format = ms_graph_ir::FORMAT_NAME;
            let graph = text(bytes()?.as_ref(), ms_graph_ir::decode);
            BesideFile::Graph {
                graph: graph.map_err(|error| corrupt(format, error))?,
                has_text: true,
            }
        }
        Some(ms_graph_pb::EXTENSION) if onnx_tensor::is_tensor(bytes()?.as_ref()) => {
            return Ok(None);
        }
        Some(ms_graph_pb::EXTENSION) => {
            let format = ms_graph_pb::FORMAT_NAME;
            let graph = ms_graph_pb::decode(bytes()?.as_ref());
            // The protobuf message omits values in tuples, which the text has.
            let mut graph = graph.map_err(|error| corrupt(format, error))?.completed();
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
    let tensor = |tensor: &TensorType| {
        let dims: Vec<_> = tensor.shape.iter().map(i64::to_string).collect();
        let shape = match dims.len() {
            _ if tensor.is_of_any_rank() => "of any shape".to_owned(),
            0 => "scalar".to_owned(),
            _ => dims.join("x"),
        };
        format!("{} {shape}", tensor.dtype)
    };
    match value {
        ValueType::Tensor(t) | ValueType::Reference { tensor: t, .. } => tensor(t),
        ValueType::Scalar(dtype) => dtype.to_string(),
        ValueType::Tuple(types) => {
            let types: Vec<_> = types.iter().map(type_text).collect();
            format!("({})", types.join(", "))
        }
        ValueType::Monad(text) | ValueType::Other(text) => text.clone(),
    }
}
