//! The graph that ONNX Runtime really executes.
//!
//! A session with every optimisation writes the graph that it made into a private directory. That
//! graph is then loaded like any other, with optimisation off: it computes the same to the last
//! bit, and can be tapped. It fits the machine that it was made on.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_store::record::{CallSite, Operator};
use ort::session::builder::GraphOptimizationLevel;

use super::error::{self, NAME};
use super::library::OrtLibrary;
use super::session::{self, LoadedSession, SessionSource};
use crate::onnx::call_site::call_site;
use crate::onnx::origin;
use crate::onnx::private_dir::PrivateDir;
use crate::onnx::proto::{self, ModelBytes};
use crate::onnx::schema::{GraphProto, OnnxDataType};
use crate::{EngineError, LoadOptions};

const MODEL_FILE: &str = "model.onnx";
const WEIGHTS_FILE: &str = "weights.bin";
/// Where the weights of a written graph go.
const WEIGHTS_KEY: &str = "session.optimized_model_external_initializers_file_name";
/// How large weights are that go there.
const WEIGHTS_SIZE_KEY: &str = "session.optimized_model_external_initializers_min_size_in_bytes";
/// The size, as text. Small ones stay, because operators want to know some of them early.
const WEIGHTS_SIZE: &str = "4096";
/// Models with more bytes of weights get a file for them: a message holds 2 GiB, and weights that
/// are computed beforehand come on top.
const WEIGHT_BYTES_INSIDE_MAX: u64 = 512 << 20;

/// A graph that an engine made of a model.
pub(super) struct ExecutedGraph {
    pub(super) model: ModelBytes,
    /// The directory that it lies in.
    pub(super) dir: PrivateDir,
    origins: Vec<origin::OperatorOrigin>,
    /// Of the original operators, by name.
    call_sites: HashMap<String, CallSite>,
}

impl ExecutedGraph {
    /// Lets ONNX Runtime optimise a model that was read from `path`, or is part of one that was.
    ///
    /// # Errors
    /// [`EngineError`] if the library refuses the model or cannot write what it made.
    pub(super) fn new(
        library: &OrtLibrary,
        options: &LoadOptions,
        original: &ModelBytes,
        (path, is_file): (&Path, bool),
    ) -> Result<ExecutedGraph, EngineError> {
        let fail = |reason: String| EngineError::Engine {
            engine: NAME,
            reason: format!("the graph that is executed: {reason}"),
        };
        let empty = GraphProto::default();
        let graph = original.proto.graph.as_ref().unwrap_or(&empty);
        // The file contains the user's weights, so only the user may read it.
        let dir = PrivateDir::new(&std::env::temp_dir()).map_err(fail)?;
        let file = dir.path().join(MODEL_FILE);
        // Folding constants may double the weights, and a message that grew too large would lose
        // the whole graph.
        let has_weights_file = weight_bytes(graph) > WEIGHT_BYTES_INSIDE_MAX;
        let builder = session::builder(library, options).map_err(fail)?;
        let builder = error::quietly(|| {
            // The highest level is the library's default and hence what a program without a dump
            // runs.
            let builder = builder.with_optimization_level(GraphOptimizationLevel::All)?;
            let builder = builder.with_optimized_model_path(&file)?;
            if !has_weights_file {
                return Ok(builder);
            }
            let builder = builder.with_config_entry(WEIGHTS_KEY, WEIGHTS_FILE)?;
            Ok(builder.with_config_entry(WEIGHTS_SIZE_KEY, WEIGHTS_SIZE)?)
        });
        let folder = proto::has_data_outside(graph).then(|| path.parent().unwrap_or(Path::new("")));
        let source = if is_file {
            SessionSource::File(path)
        } else {
            SessionSource::Bytes(&original.bytes, folder)
        };
        // Only making the session writes the file; it is never run.
        let session = LoadedSession::new(library, builder.map_err(fail)?, source);
        session.map_err(|text| error::at_load(&text, path, &original.proto, &library.version))?;
        let mut model = proto::read(&file)?;
        if let Some(executed) = &mut model.proto.graph {
            // Weights that were folded away stay listed as inputs, and a caller would be asked for
            // them.
            keep_inputs(executed, graph);
        }
        let executed = model.proto.graph.as_ref().unwrap_or(&empty);
        let origins = origin::origins(graph, executed);
        let nodes = proto::all_nodes(graph).into_iter();
        let call_sites = nodes.filter_map(|node| Some((proto::node_name(node), call_site(node)?)));
        Ok(ExecutedGraph {
            call_sites: call_sites.collect(),
            model,
            dir,
            origins,
        })
    }

    /// Where the graph lies.
    pub(super) fn file(&self) -> PathBuf {
        self.dir.path().join(MODEL_FILE)
    }

    /// Its operators with what they were made of.
    pub(super) fn operators(&mut self) -> Vec<Arc<Operator>> {
        let empty = GraphProto::default();
        let graph = self.model.proto.graph.as_ref().unwrap_or(&empty);
        let operators = proto::operators(graph).into_iter();
        let described = operators.map(|operator| {
            let mut operator = Arc::unwrap_or_clone(operator);
            let origin = self.origins.get_mut(operator.task_id as usize);
            origin
                .map(std::mem::take)
                .unwrap_or_default()
                .describe(&mut operator);
            // The last one made what the operator makes.
            let names = operator.original_names.iter().rev();
            let mut names = names.chain(std::iter::once(&operator.op_name));
            operator.call_site = names.find_map(|name| self.call_sites.get(name).cloned());
            Arc::new(operator)
        });
        described.collect()
    }
}

/// Takes away inputs whose values the original graph has and the executed one no longer needs.
fn keep_inputs(executed: &mut GraphProto, original: &GraphProto) {
    let held = original
        .initializer
        .iter()
        .map(|weight| weight.name.as_str());
    let mut gone: HashSet<&str> = held.collect();
    for weight in &executed.initializer {
        gone.remove(weight.name.as_str());
    }
    executed
        .input
        .retain(|value| !gone.contains(value.name.as_str()));
}

/// Bytes of a graph's weights, by their shapes.
fn weight_bytes(graph: &GraphProto) -> u64 {
    let bytes = graph.initializer.iter().map(|weight| {
        let size = match OnnxDataType::try_from(weight.data_type()) {
            Ok(OnnxDataType::Complex128) => 16,
            Ok(
                OnnxDataType::Double
                | OnnxDataType::Int64
                | OnnxDataType::Uint64
                | OnnxDataType::Complex64,
            ) => 8,
            Ok(OnnxDataType::Float | OnnxDataType::Int32 | OnnxDataType::Uint32) => 4,
            Ok(
                OnnxDataType::Float16
                | OnnxDataType::Bfloat16
                | OnnxDataType::Int16
                | OnnxDataType::Uint16,
            ) => 2,
            _ => 1,
        };
        let dims = weight
            .dims
            .iter()
            .map(|dim| u64::try_from(*dim).unwrap_or(0));
        dims.fold(size, u64::saturating_mul)
    });
    bytes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::schema::{TensorProto, ValueInfoProto};

    #[test]
    fn weights_are_counted() {
        let weight = |data_type: OnnxDataType, dims: &[i64]| TensorProto {
            data_type: Some(data_type as i32),
            dims: dims.to_vec(),
            ..TensorProto::default()
        };
        let check = |weights: Vec<TensorProto>, expected: u64| {
            let graph = GraphProto {
                initializer: weights,
                ..GraphProto::default()
            };
            assert_eq!(weight_bytes(&graph), expected);
        };
        check(vec![], 0);
        check(
            vec![
                weight(OnnxDataType::Float, &[2, 3]),
                weight(OnnxDataType::Int64, &[]),
            ],
            32,
        );
        check(vec![weight(OnnxDataType::Float, &[i64::MAX, 8])], u64::MAX);
        check(vec![weight(OnnxDataType::Float, &[-1])], 0);
    }

    #[test]
    fn inputs_of_vanished_weights_go() {
        let names = |names: &[&str]| -> Vec<ValueInfoProto> {
            let value = |name: &&str| ValueInfoProto {
                name: (*name).to_owned(),
                ..ValueInfoProto::default()
            };
            names.iter().map(value).collect()
        };
        let weights = |names: &[&str]| -> Vec<TensorProto> {
            let weight = |name: &&str| TensorProto {
                name: (*name).to_owned(),
                ..TensorProto::default()
            };
            names.iter().map(weight).collect()
        };
        let graph = |held: &[&str]| GraphProto {
            input: names(&["x", "w", "shape"]),
            initializer: weights(held),
            ..GraphProto::default()
        };
        let mut executed = graph(&["w"]);
        keep_inputs(&mut executed, &graph(&["w", "shape"]));
        assert_eq!(executed.input, names(&["x", "w"]));
    }
}
