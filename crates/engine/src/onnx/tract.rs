//! tract as the embedded engine.
//!
//! The un-typed plan is kept, in which one tract node is one ONNX node, so that every operator
//! keeps its name, type and values; each node is evaluated through a separate small compiled plan,
//! which is about as fast as the whole optimised graph (`nodewise`).

mod activation;
mod attention;
mod bit_shift;
mod cast;
mod composition;
mod constant_of_shape;
mod dropout;
mod error;
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
mod observation;
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

use std::cell::RefCell;
use std::path::Path;

use opscope_capture::Tap;
use opscope_tensor::Tensor;
use tract_onnx::prelude::*;

use self::activation::ActivationComposition;
use self::attention::AttentionComposition;
use self::bit_shift::BitShift;
use self::composition::{Builder, build};
use self::dropout::DropoutComposition;
use self::error::{NAME, quietly};
use self::gemm::GemmComposition;
use self::graph::TractGraph;
use self::inverse_hyperbolic::InverseHyperbolic;
use self::logarithm::{LogSoftmax, LogSumExp, SoftplusComposition};
use self::observation::Observation;
use self::pool::GlobalLpPool;
use self::pow::PowComposition;
use self::quantise::DynamicQuantizeLinear;
use self::recurrent::RecurrentComposition;
use self::slice::SliceComposition;

use super::description::describe;
use super::proto::{self, ModelBytes};
use super::schema::ModelProto;
use crate::{
    Engine, EngineError, GraphKind, LoadOptions, LoadedModel, ModelDescription, ModelSource,
    ResultRounding, ResultSurvey,
};

/// The version that `Cargo.toml` pins.
const VERSION: &str = "0.23.9";

/// The tract engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tract;

struct TractModel {
    description: ModelDescription,
    graph: TractGraph,
    warnings: Vec<String>,
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
        // An option that is not followed would make a dump that is not what it says.
        if options.graph == GraphKind::Executed || !options.providers.is_empty() {
            return Err(EngineError::Engine {
                engine: NAME,
                reason: "it runs the model's own graph, on the CPU; ONNX Runtime can do more"
                    .into(),
            });
        }
        let (model, path) = match source {
            ModelSource::File(path) => (proto::read(path)?, path),
            ModelSource::Memory(bytes) => (proto::decode(bytes)?, Path::new(proto::MEMORY)),
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
        let graph_proto = proto
            .graph
            .as_ref()
            .ok_or_else(|| EngineError::invalid(path, "no graph"))?;
        let mut description =
            describe(proto, graph_proto).map_err(|reason| EngineError::invalid(path, reason))?;
        let framework = framework(proto);
        // Before loading, as tract would load some of these models and compute wrong values.
        limits::check(&framework, proto, graph_proto)?;
        let dir = path.parent().and_then(Path::to_str).unwrap_or("");
        let own =
            message::decode(&model.bytes).map_err(|reason| EngineError::invalid(path, reason))?;
        let parsed = quietly(|| framework.parse(&own, Some(dir))).map_err(|reason| {
            limits::name_failing_node(proto, graph_proto, EngineError::invalid(path, reason))
        })?;
        // The second copy of the message has all weights, and the graph has taken over what it
        // needs.
        drop(own);
        let graph = quietly(|| {
            let ModelDescription {
                opsets, operators, ..
            } = &mut description;
            TractGraph::new(parsed.model, graph_proto, options, opsets, operators)
        });
        Ok(TractModel {
            graph: graph.map_err(|reason| EngineError::invalid(path, reason))?,
            description,
            warnings: Vec::from_iter(
                model
                    .is_sorted_anew
                    .then(|| proto::SORTED_WARNING.to_owned()),
            ),
        })
    }
}

impl LoadedModel for TractModel {
    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn description(&self) -> &ModelDescription {
        &self.description
    }

    fn run(&mut self, inputs: &[Tensor], tap: Option<&Tap>) -> Result<Vec<Tensor>, EngineError> {
        // One branch for a step that keeps nothing.
        let tap = tap.filter(|tap| tap.is_active());
        let observation = Observation {
            tap,
            ..Observation::default()
        };
        self.run_observed(inputs, observation)
    }

    fn survey_results(&mut self, inputs: &[Tensor]) -> Result<ResultSurvey, EngineError> {
        let survey = RefCell::default();
        let observation = Observation {
            survey: Some(&survey),
            ..Observation::default()
        };
        self.run_observed(inputs, observation)?;
        Ok(survey.into_inner())
    }

    fn run_rounded(
        &mut self,
        inputs: &[Tensor],
        rounding: &ResultRounding,
    ) -> Result<Vec<Tensor>, EngineError> {
        let observation = Observation {
            rounding: Some(rounding),
            ..Observation::default()
        };
        self.run_observed(inputs, observation)
    }
}

impl TractModel {
    fn run_observed(
        &self,
        inputs: &[Tensor],
        observation: Observation<'_>,
    ) -> Result<Vec<Tensor>, EngineError> {
        let fail = |reason| EngineError::Engine {
            engine: NAME,
            reason,
        };
        let inputs = inputs
            .iter()
            .map(|tensor| value::from_tensor(tensor).map(IntoTValue::into_tvalue))
            .collect::<Result<TVec<_>, _>>()
            .map_err(fail)?;
        let outputs = self.graph.run(inputs, observation)?;
        outputs
            .iter()
            .map(|output| {
                value::to_tensor(output)
                    .ok_or_else(|| fail(format!("a result of type {:?}", output.datum_type())))
            })
            .collect()
    }
}

fn framework(model: &ModelProto) -> tract_onnx::Onnx {
    // Shapes that an exporter has noted for the values may contradict the shapes of the run.
    let mut framework = onnx().with_ignore_value_info(true);
    let register = &mut framework.op_register;
    let builders: [(&'static str, Builder); 27] = [
        ("Acosh", build::<InverseHyperbolic>),
        ("Asinh", build::<InverseHyperbolic>),
        ("Attention", build::<AttentionComposition>),
        ("BitShift", build::<BitShift>),
        ("Cast", cast::cast_to),
        ("Celu", build::<ActivationComposition>),
        ("ConstantOfShape", constant_of_shape::constant_of_shape),
        ("DFT", fourier::dft),
        ("DynamicQuantizeLinear", build::<DynamicQuantizeLinear>),
        ("GRU", build::<RecurrentComposition>),
        ("Gelu", build::<ActivationComposition>),
        ("Gemm", build::<GemmComposition>),
        ("GlobalLpPool", build::<GlobalLpPool>),
        ("HardSwish", build::<ActivationComposition>),
        ("LSTM", build::<RecurrentComposition>),
        ("LogSoftmax", build::<LogSoftmax>),
        ("MaxPool", pool::max_pool),
        ("Pow", build::<PowComposition>),
        ("RNN", build::<RecurrentComposition>),
        ("ReduceLogSumExp", build::<LogSumExp>),
        ("Resize", resize::resize),
        ("Selu", activation::selu),
        ("Shrink", build::<ActivationComposition>),
        ("Sigmoid", build::<ActivationComposition>),
        ("Slice", build::<SliceComposition>),
        ("Softplus", build::<SoftplusComposition>),
        ("Swish", build::<ActivationComposition>),
    ];
    for (op_type, builder) in builders {
        // The registry goes by type alone, so that our builders take the place of tract's own.
        register.insert(op_type, builder);
    }
    for op_type in random::OP_TYPES {
        register.insert(op_type, random::draw);
    }
    if proto::opset(model) < dropout::OPSET_WITH_FULL_MASK {
        register.insert("Dropout", build::<DropoutComposition>);
    }
    framework
}

#[cfg(test)]
mod tests;
