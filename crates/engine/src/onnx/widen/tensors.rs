//! The tensors that a model holds: finding them all, and widening their elements.

use std::fmt;
use std::path::Path;

use opscope_tensor::{DType, Shape};
use prost::bytes::Bytes;

use super::elements::widened;
use super::is_widened;
use super::outlet::{DataFile, Outlet};
use crate::EngineError;
use crate::onnx::external::{self, ExternalFiles};
use crate::onnx::proto;
use crate::onnx::schema::{
    AttributeProto, DataLocation, GraphProto, ModelProto, NodeProto, OnnxDataType, TensorProto,
};
use crate::onnx::typed;

/// The holder of a tensor.
pub(super) enum TensorPlace {
    /// A graph, under this name.
    Initializer(String),
    /// An attribute of the node of this name.
    Attribute(String),
}

impl fmt::Display for TensorPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorPlace::Initializer(name) => write!(f, "weight `{name}`"),
            TensorPlace::Attribute(node) => write!(f, "a tensor of node `{node}`"),
        }
    }
}

/// Called with each tensor.
type Visit<'a, E> = dyn FnMut(&mut TensorProto, &TensorPlace) -> Result<(), E> + 'a;

/// Visits every tensor of a model: those of its graph, of bodies and of functions.
pub(super) fn for_each<E>(model: &mut ModelProto, visit: &mut Visit<'_, E>) -> Result<(), E> {
    for function in &mut model.functions {
        let name = function.name().to_owned();
        let defaults = &mut function.attribute_proto;
        defaults
            .iter_mut()
            .try_for_each(|default| in_attribute(default, &name, visit))?;
        function
            .node
            .iter_mut()
            .try_for_each(|node| in_node(node, visit))?;
    }
    model
        .graph
        .iter_mut()
        .try_for_each(|graph| in_graph(graph, visit))
}

fn in_graph<E>(graph: &mut GraphProto, visit: &mut Visit<'_, E>) -> Result<(), E> {
    let sparse = graph.sparse_initializer.iter_mut();
    let sparse = sparse.filter_map(|tensor| tensor.values.as_mut());
    for tensor in graph.initializer.iter_mut().chain(sparse) {
        let place = TensorPlace::Initializer(tensor.name.clone());
        visit(tensor, &place)?;
    }
    graph
        .node
        .iter_mut()
        .try_for_each(|node| in_node(node, visit))
}

fn in_node<E>(node: &mut NodeProto, visit: &mut Visit<'_, E>) -> Result<(), E> {
    let name = proto::node_name(node);
    node.attribute
        .iter_mut()
        .try_for_each(|attribute| in_attribute(attribute, &name, visit))
}

fn in_attribute<E>(
    attribute: &mut AttributeProto,
    node: &str,
    visit: &mut Visit<'_, E>,
) -> Result<(), E> {
    let sparse = attribute
        .sparse_tensor
        .iter_mut()
        .chain(&mut attribute.sparse_tensors)
        .filter_map(|tensor| tensor.values.as_mut());
    let dense = attribute.t.iter_mut().chain(&mut attribute.tensors);
    for tensor in dense.chain(sparse) {
        visit(tensor, &TensorPlace::Attribute(node.to_owned()))?;
    }
    let mut bodies = attribute.g.iter_mut().chain(&mut attribute.graphs);
    bodies.try_for_each(|body| in_graph(body, visit))
}

/// The dimensions of a tensor.
///
/// # Errors
/// Text that says which tensor has impossible ones.
pub(super) fn shape(tensor: &TensorProto, place: &TensorPlace) -> Result<Shape, String> {
    let dims = tensor.dims.iter().map(|&n| usize::try_from(n));
    let dims = dims.collect::<Result<Vec<_>, _>>();
    let shape = dims.ok().and_then(|dims| Shape::new(dims).ok());
    shape.ok_or_else(|| {
        let dims = &tensor.dims;
        format!("{place} has the shape {dims:?}; expected one that fits memory")
    })
}

/// Converts the elements of tensors to float32.
pub(super) struct TensorWidening<'a> {
    path: &'a Path,
    files: ExternalFiles,
    outlet: Outlet,
}

impl TensorWidening<'_> {
    /// For the model at `path`, to whose directory external data are relative.
    pub(super) fn new(path: &Path, outlet: Outlet) -> TensorWidening<'_> {
        let folder = path.parent().map(Path::to_owned);
        TensorWidening {
            path,
            files: ExternalFiles::new(&folder.unwrap_or_default()),
            outlet,
        }
    }

    /// Widens one tensor, and moves it to where the outlet wants it.
    pub(super) fn widen(
        &mut self,
        tensor: &mut TensorProto,
        place: &TensorPlace,
    ) -> Result<(), EngineError> {
        // The engine refuses unknown dtypes.
        let Some(dtype) = proto::dtype(tensor.data_type()) else {
            return Ok(());
        };
        let is_outside = tensor.data_location() == DataLocation::External;
        let is_weight = matches!(place, TensorPlace::Initializer(_));
        let moves = match &self.outlet {
            Outlet::Message => false,
            // External data of the model are not next to the file.
            Outlet::File(_) => is_outside || (is_weight && dtype != DType::String),
        };
        if !is_widened(dtype) && !moves {
            return Ok(());
        }
        let shape =
            shape(tensor, place).map_err(|reason| EngineError::invalid(self.path, reason))?;
        let elements = elements(&mut self.files, tensor, dtype, &shape);
        let elements = elements
            .map_err(|reason| EngineError::invalid(self.path, format!("{place} {reason}")))?;
        // One field holds the elements from here on, or an engine might read those of before.
        typed::clear(tensor);
        tensor.external_data = Vec::new();
        tensor.data_location = None;
        tensor.raw_data = None;
        if is_widened(dtype) {
            tensor.data_type = Some(OnnxDataType::Float as i32);
        }
        let bytes = &elements[..];
        if let Outlet::File(file) = &mut self.outlet
            && file.is_for(bytes.len())
            && moves
        {
            tensor.external_data = file.append(bytes, dtype)?;
            tensor.data_location = Some(DataLocation::External as i32);
            return Ok(());
        }
        tensor.raw_data = Some(if is_widened(dtype) {
            Bytes::from(widened(dtype, bytes))
        } else {
            elements
        });
        Ok(())
    }

    /// The file that tensors were moved to, if so, complete.
    pub(super) fn finish(self) -> Result<Option<DataFile>, EngineError> {
        self.outlet.finish()
    }
}

/// Reads the elements of a tensor.
///
/// # Errors
/// The end of a sentence that begins with the tensor.
pub(crate) fn elements(
    files: &mut ExternalFiles,
    tensor: &TensorProto,
    dtype: DType,
    shape: &Shape,
) -> Result<Bytes, String> {
    let n_bytes = shape.n_bytes(dtype).map_err(|error| error.to_string())?;
    if tensor.data_location() == DataLocation::External {
        let part = files.part(&tensor.external_data, n_bytes);
        let part = part.ok_or_else(|| not_there(tensor, n_bytes))?;
        return Ok(Bytes::from_owner(part));
    }
    let found = match &tensor.raw_data {
        Some(bytes) => bytes.clone(),
        None => match typed::bytes(tensor, dtype, shape) {
            Some(bytes) => Bytes::from(bytes),
            None => {
                return Err(format!(
                    "has another number of elements than {dtype} {shape} asks for"
                ));
            }
        },
    };
    // An engine would judge it too, but only what fits can be turned into elements of another size.
    if found.len() != n_bytes {
        return Err(format!(
            "has {} bytes; expected {n_bytes} for {dtype} {shape}",
            found.len()
        ));
    }
    Ok(found)
}

fn not_there(tensor: &TensorProto, n_bytes: usize) -> String {
    let file = external::entry(&tensor.external_data, "location").unwrap_or_default();
    let start = external::entry(&tensor.external_data, "offset");
    let start = start.filter(|start| !start.is_empty()).unwrap_or("0");
    format!(
        "is not where the model says; expected {n_bytes} bytes from byte {start} on in the file \
         `{file}` beside the model"
    )
}
