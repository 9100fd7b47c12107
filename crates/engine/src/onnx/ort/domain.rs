//! The domain of our operators in the library's own list of domains.

use ort::environment::Environment;
use ort::operator::OperatorDomain;
use ort::session::builder::SessionBuilder;
use prost::Message;

use super::error;
use super::rewrite::DOMAIN;
use crate::onnx::schema::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorTypeProto, TypeProto, TypeValue,
    ValueInfoProto,
};

/// A form of models and a version of operators that every library takes.
const IR_VERSION: i64 = 7;
const OPSET: i64 = 13;
/// ONNX's number for float32.
const FLOAT: i32 = 1;

/// Makes the library take our domain into its list, by a session of the smallest model.
///
/// The first session with a domain adds it to that list, without regard to others that read it.
/// Later ones find it there: only then may sessions be made side by side.
pub(super) fn introduce(environment: &Environment) -> Result<(), String> {
    let model = smallest_model().encode_to_vec();
    error::quietly(|| {
        let mut builder = SessionBuilder::new(environment)?
            .with_intra_threads(1)?
            .with_operators(OperatorDomain::new(DOMAIN)?)?;
        builder.commit_from_memory(&model).map(drop)
    })
}

fn smallest_model() -> ModelProto {
    let [input, output] = ["x", "y"].map(|name| ValueInfoProto {
        name: name.into(),
        r#type: Some(TypeProto {
            value: Some(TypeValue::TensorType(TensorTypeProto {
                elem_type: Some(FLOAT),
                shape: None,
            })),
            denotation: None,
        }),
        ..ValueInfoProto::default()
    });
    // Any standard operator will do: the session registers the domain.
    ModelProto {
        ir_version: Some(IR_VERSION),
        opset_import: vec![OperatorSetIdProto {
            domain: None,
            version: Some(OPSET),
        }],
        graph: Some(GraphProto {
            name: "domain".into(),
            node: vec![NodeProto {
                op_type: "Identity".into(),
                input: vec!["x".into()],
                output: vec!["y".into()],
                ..NodeProto::default()
            }],
            input: vec![input],
            output: vec![output],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}
