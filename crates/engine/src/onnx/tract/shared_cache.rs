//! Plans that nodes of a large graph share.
//!
//! A plan takes some kilobytes. Graphs of very many nodes have few that differ, so nodes that are certain to be the
//! same computation have their plans in one place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prost::Message;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::konst::Const;
use tract_onnx::tract_hir::internal::*;

use super::super::proto;
use super::super::schema::NodeProto;
use super::nodewise::NodeCache;

/// Nodes with longer attributes, in bytes, share nothing.
const N_ATTRIBUTE_BYTES_MAX: usize = 4 << 10;
/// Operators that tract may keep something of from one execution to the next.
const WITH_STATE: &[&str] = &[
    "Bernoulli",
    "Dropout",
    "GRU",
    "LSTM",
    "Multinomial",
    "RNN",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Scan",
];

/// The plans of a node, and of those that are the same computation.
#[derive(Clone, Default)]
pub(super) struct SharedCache(Arc<Mutex<NodeCache>>);

impl SharedCache {
    pub(super) fn lock(&self) -> MutexGuard<'_, NodeCache> {
        // A plan that panicked is built anew or gives the same again.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What tells that two nodes are the same computation.
#[derive(PartialEq, Eq, Hash)]
struct Likeness {
    op_type: String,
    domain: String,
    /// The attributes as messages, in order.
    attributes: Vec<u8>,
    /// Whether each input of the file's node is there, and likewise for outputs.
    inputs: Vec<bool>,
    outputs: Vec<bool>,
    /// For each input that is there, the constant that it is. Plans hold constants.
    constants: Vec<Option<usize>>,
}

/// The plans of a graph's nodes.
pub(super) struct SharedCaches {
    is_sharing: bool,
    known: HashMap<Likeness, SharedCache>,
}

impl SharedCaches {
    pub(super) fn new(is_sharing: bool) -> SharedCaches {
        SharedCaches {
            is_sharing,
            known: HashMap::new(),
        }
    }

    /// Where the plans of a node are to be.
    pub(super) fn of_node(
        &mut self,
        model: &InferenceModel,
        node: &InferenceNode,
        node_proto: &NodeProto,
    ) -> SharedCache {
        let n_bytes: usize = (node_proto.attribute.iter())
            .map(Message::encoded_len)
            .sum();
        let has_bodies = proto::bodies(node_proto).next().is_some();
        let has_state = WITH_STATE.contains(&node_proto.op_type.as_str());
        if !self.is_sharing || has_bodies || has_state || n_bytes > N_ATTRIBUTE_BYTES_MAX {
            return SharedCache::default();
        }
        let attributes = node_proto.attribute.iter();
        let inlets = node.inputs.iter();
        let constant = |inlet: &OutletId| {
            let is_constant = model.node(inlet.node).op_is::<Const>();
            is_constant.then_some(inlet.node)
        };
        let are_there = |names: &[String]| names.iter().map(|name| !name.is_empty()).collect();
        let likeness = Likeness {
            op_type: node_proto.op_type.clone(),
            domain: node_proto.domain.clone(),
            attributes: attributes
                .flat_map(Message::encode_length_delimited_to_vec)
                .collect(),
            inputs: are_there(&node_proto.input),
            outputs: are_there(&node_proto.output),
            constants: inlets.map(constant).collect(),
        };
        match self.known.get(&likeness) {
            Some(cache) => {
                cache.lock().share();
                cache.clone()
            }
            None => (self.known.entry(likeness)).or_default().clone(),
        }
    }
}
