//! Nodes made from the description of a graph in a dump.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use opscope_store::file_format::graph_json::{GraphFile, GraphOperator, STANDARD_DOMAIN};
use opscope_store::record::{AttributeKind, Operator};

use super::{ListedNode, OnnxOperators, ValueScope};
use crate::SharedEngine;
use crate::onnx::attribute;
use crate::onnx::schema::{ModelProto, NodeProto, OperatorSetIdProto};
use crate::operator_source::SourceOperator;

/// Version of the model file format that carries every operator set that engines know.
const IR_VERSION: i64 = 8;

pub(super) fn operators(engine: SharedEngine, path: &Path, graph: &GraphFile) -> OnnxOperators {
    let (nodes, operators) = graph.operators.iter().map(of_operator).unzip();
    OnnxOperators {
        engine,
        path: path.to_owned(),
        frame: ModelProto {
            ir_version: Some(IR_VERSION),
            opset_import: graph
                .opsets
                .iter()
                .map(|(domain, version)| OperatorSetIdProto {
                    domain: Some(match domain.as_str() {
                        STANDARD_DOMAIN => String::new(),
                        other => other.to_owned(),
                    }),
                    version: Some(*version),
                })
                .collect(),
            ..ModelProto::default()
        },
        scopes: vec![ValueScope::default()],
        nodes,
        operators,
        named_constants: graph.constants.iter().cloned().collect::<HashSet<_>>(),
    }
}

fn of_operator(described: &GraphOperator) -> (ListedNode, SourceOperator) {
    let [inputs, outputs] = [&described.inputs, &described.outputs].map(|names| {
        let names = names.iter().cloned();
        names.map(Option::unwrap_or_default).collect()
    });
    let mut obstacle = None;
    let mut attributes = Vec::new();
    let types: &BTreeMap<String, AttributeKind> = &described.attribute_types;
    for (name, text) in &described.attributes {
        let known = types.get(name).copied().unwrap_or_default();
        match attribute::parse(name, text, known) {
            Some(attribute) => attributes.push(attribute),
            None => {
                // The operator can still be listed and compared; only running it is impossible.
                obstacle = Some(format!("it does not have all of the attribute `{name}`"));
            }
        }
    }
    let operator = Operator {
        task_id: described.task_id,
        op_type: described.op_type.clone(),
        op_name: described.op_name.clone(),
        inputs,
        outputs,
        domain: described.domain.clone(),
        ..Operator::default()
    };
    let proto = NodeProto {
        name: operator.op_name.clone(),
        op_type: operator.op_type.clone(),
        domain: operator.domain.clone(),
        input: operator.inputs.clone(),
        output: operator.outputs.clone(),
        attribute: attributes,
        ..NodeProto::default()
    };
    let node = ListedNode {
        proto,
        scope: 0,
        obstacle,
    };
    let captured = Vec::new();
    (node, SourceOperator { operator, captured })
}
