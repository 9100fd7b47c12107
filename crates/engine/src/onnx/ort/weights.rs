//! Values that a model holds itself: weights and constants as tensors, made once.
//!
//! Operators' weights are passed from the file's own bytes. So an engine passes none, and results
//! computed from a weight are cached over all steps.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use opscope_tensor::{DType, Shape, Tensor, TensorIdentity, text};
use prost::bytes::Bytes;

use crate::onnx::external::ExternalFiles;
use crate::onnx::proto;
use crate::onnx::schema::{AttributeProto, DataLocation, GraphProto, ModelProto, TensorProto};
use crate::onnx::typed;

/// Weights and constants of all graphs of a model. Graphs are numbered in the order of the file,
/// each before those inside it.
#[derive(Default)]
pub(super) struct ModelWeights {
    by_name: HashMap<(usize, String), ModelWeight>,
}

/// A value that the model holds.
#[derive(Clone)]
pub(super) enum ModelWeight {
    /// Its elements.
    Tensor(Tensor),
    /// It is no tensor, or its elements are not where the file says; the engine judges that.
    Unknown,
}

impl ModelWeights {
    /// Takes the weights of a model; outside data lie in `folder`. Elements in typed fields move to
    /// the raw form, in the model as well, so that both share their memory.
    pub(super) fn take(model: &mut ModelProto, folder: &Path) -> ModelWeights {
        let mut walk = WeightWalk {
            files: ExternalFiles::new(folder),
            n_graphs: 0,
            weights: ModelWeights::default(),
        };
        if let Some(graph) = &mut model.graph {
            walk.graph(graph);
        }
        walk.weights
    }

    /// The weight of this name that belongs to the graph of this number.
    pub(super) fn get(&self, graph: usize, name: &str) -> Option<&ModelWeight> {
        self.by_name.get(&(graph, name.to_owned()))
    }
}

struct WeightWalk {
    files: ExternalFiles,
    n_graphs: usize,
    weights: ModelWeights,
}

impl WeightWalk {
    fn graph(&mut self, graph: &mut GraphProto) {
        let number = self.n_graphs;
        self.n_graphs += 1;
        for weight in &mut graph.initializer {
            let tensor = self.tensor(weight);
            self.add(number, weight.name.clone(), tensor);
        }
        for node in &mut graph.node {
            if proto::is_constant(node)
                && let (Some(name), Some(attribute)) =
                    (node.output.first(), node.attribute.first_mut())
            {
                let tensor = self.constant(attribute);
                self.add(number, name.clone(), tensor);
            }
            for body in proto::bodies_mut(node) {
                self.graph(body);
            }
        }
    }

    fn add(&mut self, graph: usize, name: String, tensor: Option<Tensor>) {
        let weight = tensor.map_or(ModelWeight::Unknown, ModelWeight::Tensor);
        self.weights.by_name.insert((graph, name), weight);
    }

    fn tensor(&mut self, tensor: &mut TensorProto) -> Option<Tensor> {
        let dtype = proto::dtype(tensor.data_type())?;
        let dims = tensor.dims.iter().map(|&n| usize::try_from(n).ok());
        let shape = Shape::new(dims.collect::<Option<Vec<_>>>()?).ok()?;
        // Checked first: such a tensor has no inline elements, and its other fields are
        // meaningless.
        if tensor.data_location == Some(DataLocation::External as i32) {
            let part = self
                .files
                .part(&tensor.external_data, shape.n_bytes(dtype).ok()?)?;
            return shared(dtype, shape, part);
        }
        if dtype == DType::String {
            let has_all = tensor.string_data.len() == shape.n_elements();
            let bytes = has_all.then(|| text::encode(&tensor.string_data))?;
            return shared(dtype, shape, bytes);
        }
        if tensor.raw_data.is_none() && shape.n_elements() > 0 {
            let bytes = typed::bytes(tensor, dtype, &shape)?;
            // The model gets the same bytes, or the weight would be in memory twice.
            tensor.raw_data = Some(Bytes::from(bytes));
            typed::clear(tensor);
        }
        shared(dtype, shape, tensor.raw_data.clone().unwrap_or_default())
    }

    /// A `Constant` node has one attribute, named after the form in which it holds its value.
    fn constant(&mut self, attribute: &mut AttributeProto) -> Option<Tensor> {
        let (dtype, shape, bytes) = match attribute.name.as_str() {
            "value" => return self.tensor(attribute.t.as_mut()?),
            "value_float" => (
                DType::F32,
                Shape::scalar(),
                attribute.f().to_le_bytes().to_vec(),
            ),
            "value_int" => (
                DType::I64,
                Shape::scalar(),
                attribute.i().to_le_bytes().to_vec(),
            ),
            "value_floats" => {
                let bytes = attribute.floats.iter().flat_map(|f| f.to_le_bytes());
                let shape = Shape::new([attribute.floats.len()]).ok()?;
                (DType::F32, shape, bytes.collect())
            }
            "value_ints" => {
                let bytes = attribute.ints.iter().flat_map(|i| i.to_le_bytes());
                let shape = Shape::new([attribute.ints.len()]).ok()?;
                (DType::I64, shape, bytes.collect())
            }
            "value_string" => (
                DType::String,
                Shape::scalar(),
                text::encode(&[attribute.s()]),
            ),
            "value_strings" => {
                let shape = Shape::new([attribute.strings.len()]).ok()?;
                (DType::String, shape, text::encode(&attribute.strings))
            }
            _ => return None,
        };
        shared(dtype, shape, bytes)
    }
}

/// A tensor over memory that stays; nothing is copied.
fn shared<T>(dtype: DType, shape: Shape, bytes: T) -> Option<Tensor>
where
    T: AsRef<[u8]> + Send + Sync + 'static,
{
    let bytes = Arc::new(bytes);
    // Weights keep their elements over all steps, so that what was computed of one is found again
    // by this.
    let identity = TensorIdentity::from_owner(&bytes);
    let tensor = Tensor::new(dtype, shape, bytes).ok()?;
    Some(tensor.with_identity(identity))
}
