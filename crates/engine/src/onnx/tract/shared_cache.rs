//! Plans that nodes of a large graph share.
//!
//! A plan takes some kilobytes. Graphs of very many nodes have few that differ, so nodes that are
//! certain to be the same computation have their plans in one place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prost::Message;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::konst::Const;
use tract_onnx::tract_hir::internal::*;

use super::nodewise::{self, NodeCache};
use crate::onnx::proto;
use crate::onnx::schema::NodeProto;

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
        // A plan that panicked is rebuilt or yields the same again.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key that is equal for two nodes with the same computation.
#[derive(PartialEq, Eq, Hash)]
struct NodeLikeness {
    op_type: String,
    domain: String,
    /// The attributes as messages, in order.
    attributes: Vec<u8>,
    /// Whether each input of the file's node is there, and likewise for outputs.
    inputs: Vec<bool>,
    outputs: Vec<bool>,
    /// For each input that is there, where its value is from.
    sources: Vec<ValueSource>,
}

/// Where a value is from, as far as plans depend on it.
#[derive(PartialEq, Eq, Hash)]
enum ValueSource {
    /// From an operator or an input of the model.
    Computed,
    /// From a constant that plans are not built for.
    AnyConstant,
    /// From the constant of this node. Plans hold it.
    Constant(usize),
}

/// The plans of a graph's nodes.
pub(super) struct SharedCaches {
    is_sharing: bool,
    known: HashMap<NodeLikeness, SharedCache>,
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
        // Each of these could make two nodes differ that look alike, or takes longer to compare
        // than a plan to build.
        if !self.is_sharing || has_bodies || has_state || n_bytes > N_ATTRIBUTE_BYTES_MAX {
            return SharedCache::default();
        }
        let attributes = node_proto.attribute.iter();
        let constants: Vec<_> = node
            .inputs
            .iter()
            .map(|inlet| constant(model, inlet))
            .collect();
        let is_all_constant = constants.iter().all(Option::is_some);
        // The same rule as in `nodewise`: the constants in a plan must be equal.
        let is_built_in = is_all_constant || nodewise::is_weighted(&node_proto.op_type);
        let [inputs, outputs] = [&node_proto.input, &node_proto.output]
            .map(|names| names.iter().map(|name| !name.is_empty()).collect());
        let likeness = NodeLikeness {
            op_type: node_proto.op_type.clone(),
            domain: node_proto.domain.clone(),
            attributes: attributes
                .flat_map(Message::encode_length_delimited_to_vec)
                .collect(),
            inputs,
            outputs,
            sources: node
                .inputs
                .iter()
                .zip(&constants)
                .map(
                    |(inlet, constant): (&OutletId, &Option<&Const>)| match constant {
                        None => ValueSource::Computed,
                        Some(constant)
                            if !is_built_in && constant.val().datum_type().is_float() =>
                        {
                            ValueSource::AnyConstant
                        }
                        Some(_) => ValueSource::Constant(inlet.node),
                    },
                )
                .collect(),
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

/// The constant that a value is.
fn constant<'a>(model: &'a InferenceModel, inlet: &OutletId) -> Option<&'a Const> {
    model.node(inlet.node).op_as::<Const>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tract_onnx::tract_hir::ops::binary::BinIntoHir;
    use tract_onnx::tract_hir::ops::math::Add;

    /// Nodes that differ in a constant share their plans if these are not built for it.
    #[test]
    fn constants_that_plans_do_not_hold_do_not_matter() {
        for (op_type, constants, is_shared) in [
            ("Add", [tensor0(1.0_f32), tensor0(2.0_f32)], true),
            ("MatMul", [tensor0(1.0_f32), tensor0(2.0_f32)], false),
            ("Add", [tensor0(1_i64), tensor0(2_i64)], false),
        ] {
            let mut model = InferenceModel::default();
            let x = model.add_source("x", InferenceFact::default()).unwrap();
            let proto = NodeProto {
                op_type: op_type.to_owned(),
                input: vec!["x".into(), "c".into()],
                output: vec!["y".into()],
                ..NodeProto::default()
            };
            let mut caches = SharedCaches::new(true);
            let found = constants.map(|constant| {
                let name = format!("c{constant:?}");
                let constant = model.add_const(name.clone(), constant).unwrap();
                let id = model
                    .add_node(
                        format!("n{name}"),
                        Add.into_hir(),
                        tvec!(InferenceFact::default()),
                    )
                    .unwrap();
                for (slot, outlet) in [x, constant].into_iter().enumerate() {
                    model.add_edge(outlet, InletId::new(id, slot)).unwrap();
                }
                caches.of_node(&model, model.node(id), &proto)
            });
            let [first, second] = found;
            assert_eq!(Arc::ptr_eq(&first.0, &second.0), is_shared, "{op_type}");
        }
    }
}
