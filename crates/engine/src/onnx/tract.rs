//! tract as the embedded engine.
//!
//! The un-typed plan is kept, in which one tract node is one ONNX node, so that every operator keeps
//! its name, type and values; each node is evaluated through a small compiled plan of its own, which
//! gives it about the speed of the whole optimised graph (`nodewise`).

mod activation;
mod attention;
mod bit_shift;
mod cast;
mod composition;
mod constant_of_shape;
mod dropout;
mod extents;
mod fourier;
mod gemm;
mod graph;
mod inverse_hyperbolic;
mod limits;
mod logarithm;
mod message;
mod nodewise;
mod non_finite;
mod pool;
mod pow;
mod quantise;
mod random;
mod recurrent;
mod repeatable;
mod resize;
mod scan;
mod shared_cache;
mod slice;
mod value;
mod wiring;

use std::path::Path;

use opscope_capture::Tap;
use opscope_tensor::Tensor;
use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::internal::*;

use self::graph::Graph;

use super::description::describe;
use super::proto::{self, ModelBytes};
use super::schema::ModelProto;
use crate::guard;
use crate::{
    Engine, EngineError, GraphKind, LoadOptions, LoadedModel, ModelDescription, ModelSource,
};

/// The engine's name.
const NAME: &str = "tract";
/// The version that `Cargo.toml` pins.
const VERSION: &str = "0.23.9";
/// The engine to suggest where tract does not do.
const OTHER_ENGINE: &str = "ONNX Runtime";

/// The tract engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tract;

struct TractModel {
    description: ModelDescription,
    graph: Graph,
}

impl Engine for Tract {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> Option<&str> {
        Some(VERSION)
    }

    fn load(
        &self,
        source: ModelSource<'_>,
        options: &LoadOptions,
    ) -> Result<Box<dyn LoadedModel>, EngineError> {
        if options.graph == GraphKind::Executed || !options.providers.is_empty() {
            return Err(EngineError::Engine {
                engine: NAME,
                reason: "it runs the model's own graph, on the CPU; ONNX Runtime can do more"
                    .into(),
            });
        }
        let (model, path) = match source {
            ModelSource::File(path) => (proto::read(path)?, path),
            ModelSource::Memory(bytes) => (proto::decode(bytes)?, Path::new(super::MEMORY)),
            ModelSource::Part { bytes, path } => (proto::decode(bytes)?, path),
        };
        Ok(Box::new(TractModel::new(&model, path, options)?))
    }
}

impl TractModel {
    /// Prepares a model that was read from `path`, or is part of one that was.
    fn new(
        model: &ModelBytes,
        path: &Path,
        options: &LoadOptions,
    ) -> Result<TractModel, EngineError> {
        let proto = &model.proto;
        let invalid = |reason: String| EngineError::Invalid {
            path: path.to_owned(),
            reason,
        };
        let graph_proto = proto
            .graph
            .as_ref()
            .ok_or_else(|| invalid("no graph".into()))?;
        let mut description = describe(proto, graph_proto).map_err(invalid)?;
        let framework = framework(proto);
        limits::check(&framework, proto, graph_proto)?;
        let dir = path.parent().and_then(Path::to_str).unwrap_or("");
        let own = message::decode(&model.bytes).map_err(invalid)?;
        let parsed = quietly(|| framework.parse(&own, Some(dir)))
            .map_err(|reason| limits::name_failing_node(proto, graph_proto, invalid(reason)))?;
        drop(own);
        let graph = quietly(|| {
            let ModelDescription {
                opsets, operators, ..
            } = &mut description;
            Graph::new(parsed.model, graph_proto, options, opsets, operators)
        });
        Ok(TractModel {
            graph: graph.map_err(invalid)?,
            description,
        })
    }
}

impl LoadedModel for TractModel {
    fn description(&self) -> &ModelDescription {
        &self.description
    }

    fn run(&mut self, inputs: &[Tensor], tap: Option<&Tap>) -> Result<Vec<Tensor>, EngineError> {
        // One branch for a step of which nothing is kept.
        let tap = tap.filter(|tap| tap.is_active());
        let fail = |reason| EngineError::Engine {
            engine: NAME,
            reason,
        };
        let inputs = inputs
            .iter()
            .map(|tensor| value::from_tensor(tensor).map(IntoTValue::into_tvalue))
            .collect::<Result<TVec<_>, _>>()
            .map_err(fail)?;
        let outputs = self.graph.run(inputs, tap)?;
        let to_tensor = |output: &TValue| {
            value::to_tensor(output)
                .ok_or_else(|| fail(format!("a result of type {:?}", output.datum_type())))
        };
        outputs.iter().map(to_tensor).collect()
    }
}

fn framework(model: &ModelProto) -> tract_onnx::Onnx {
    // Shapes that an exporter has noted beside the values may contradict the shapes that are run.
    let mut framework = onnx().with_ignore_value_info(true);
    let register = &mut framework.op_register;
    let builders: [(&'static str, Builder); 27] = [
        ("Acosh", inverse_hyperbolic::acosh_of),
        ("Asinh", inverse_hyperbolic::asinh_of),
        ("Attention", attention::build),
        ("BitShift", bit_shift::build),
        ("Cast", cast::build),
        ("Celu", activation::celu),
        ("ConstantOfShape", constant_of_shape::build),
        ("DFT", fourier::dft),
        ("DynamicQuantizeLinear", quantise::dynamic),
        ("GRU", recurrent::gru),
        ("Gelu", activation::gelu),
        ("Gemm", gemm::build),
        ("GlobalLpPool", pool::global_lp_pool),
        ("HardSwish", activation::hard_swish),
        ("LSTM", recurrent::lstm),
        ("LogSoftmax", logarithm::log_softmax),
        ("MaxPool", pool::max_pool),
        ("Pow", pow::build),
        ("RNN", recurrent::rnn),
        ("ReduceLogSumExp", logarithm::log_sum_exp),
        ("Resize", resize::build),
        ("Selu", activation::selu),
        ("Shrink", activation::shrink),
        ("Sigmoid", activation::sigmoid),
        ("Slice", slice::build),
        ("Softplus", logarithm::softplus),
        ("Swish", activation::swish),
    ];
    for (op_type, builder) in builders {
        register.insert(op_type, builder);
    }
    for op_type in random::OP_TYPES {
        register.insert(op_type, random::build);
    }
    if proto::opset(model) < dropout::OPSET_WITH_FULL_MASK {
        register.insert("Dropout", dropout::build);
    }
    framework
}

/// Makes an operator of a node; with it come the outer values that its bodies read.
type Builder =
    fn(&ParsingContext<'_>, &NodeProto) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)>;

/// The engine's own builder of an operator.
fn builder_of_engine(op_type: &str) -> TractResult<Builder> {
    let builder = onnx().op_register.0.get(op_type).copied();
    builder.with_context(|| format!("the engine has no operator `{op_type}`"))
}

/// An error with its causes on one line.
fn chain(error: &TractError) -> String {
    let parts: Vec<String> = error.chain().map(ToString::to_string).collect();
    parts.join(": ").replace('\n', " ")
}

/// Runs the engine's own code, turning its errors and panics into text.
fn quietly<T>(work: impl FnOnce() -> TractResult<T>) -> Result<T, String> {
    guard::catch(work)?.map_err(|error| chain(&error))
}

#[cfg(test)]
mod tests;
