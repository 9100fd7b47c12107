//! Models that are made here, in the library that `OPSCOPE_ENGINE_LIB` names.

use std::io::Write;
use std::path::PathBuf;

use opscope_tensor::{DType, Shape, text};
use prost::Message;

use super::*;
use crate::onnx::schema::{
    AttributeProto, DataLocation, DimValue, DimensionProto, ElementTypeProto, ModelProto,
    NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto,
    TensorTypeProto, TypeProto, TypeValue, ValueInfoProto,
};

mod bodies;
mod refusals;
mod taps;
mod values;

const FLOAT: i32 = 1;
const INT64: i32 = 7;
const BOOL: i32 = 9;

/// The engine, or nothing if no library was named; then that is said.
fn engine() -> Option<OnnxRuntime> {
    let Some(path) = std::env::var_os("OPSCOPE_ENGINE_LIB") else {
        // Not by a macro, whose output a passing test keeps to itself.
        let _ = writeln!(std::io::stderr(), "skipped: OPSCOPE_ENGINE_LIB is not set");
        return None;
    };
    Some(OnnxRuntime::load(Path::new(&path)).unwrap())
}

fn typed(name: &str, value: TypeValue) -> ValueInfoProto {
    ValueInfoProto {
        name: name.into(),
        r#type: Some(TypeProto {
            value: Some(value),
            denotation: None,
        }),
        ..ValueInfoProto::default()
    }
}

fn tensor_type(code: i32, dims: &[i64]) -> TypeValue {
    let dim = |&n: &i64| DimensionProto {
        value: Some(DimValue::DimValue(n)),
        ..DimensionProto::default()
    };
    TypeValue::TensorType(TensorTypeProto {
        elem_type: Some(code),
        shape: Some(TensorShapeProto {
            dim: dims.iter().map(dim).collect(),
        }),
    })
}

fn value(name: &str, code: i32, dims: &[i64]) -> ValueInfoProto {
    typed(name, tensor_type(code, dims))
}

fn sequence(name: &str) -> ValueInfoProto {
    let element = TypeProto {
        value: Some(tensor_type(FLOAT, &[2])),
        denotation: None,
    };
    let element = ElementTypeProto {
        elem_type: Some(Box::new(element)),
    };
    typed(name, TypeValue::SequenceType(Box::new(element)))
}

fn node(op_type: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: op_type.into(),
        name: name.into(),
        input: inputs.iter().map(|&name| name.into()).collect(),
        output: outputs.iter().map(|&name| name.into()).collect(),
        ..NodeProto::default()
    }
}

fn graph(
    node: Vec<NodeProto>,
    input: Vec<ValueInfoProto>,
    output: Vec<ValueInfoProto>,
) -> GraphProto {
    GraphProto {
        name: "g".into(),
        node,
        input,
        output,
        ..GraphProto::default()
    }
}

fn model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: Some(10),
        opset_import: vec![OperatorSetIdProto {
            domain: None,
            version: Some(21),
        }],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

fn load(engine: &OnnxRuntime, model: &ModelProto) -> Result<Box<dyn LoadedModel>, EngineError> {
    let bytes = model.encode_to_vec();
    engine.load(ModelSource::Memory(&bytes), &LoadOptions::with_threads(1))
}

fn refusal(engine: &OnnxRuntime, model: &ModelProto) -> String {
    load(engine, model).map(drop).unwrap_err().to_string()
}

fn tensor(dtype: DType, dims: &[usize], bytes: Vec<u8>) -> Tensor {
    Tensor::from_vec(dtype, Shape::new(dims).unwrap(), bytes).unwrap()
}

fn floats(values: &[f32]) -> Tensor {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    tensor(DType::F32, &[values.len()], bytes)
}

fn ints(values: &[i64]) -> Tensor {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    tensor(DType::I64, &[values.len()], bytes)
}

/// A weight of two floats.
fn weight(name: &str) -> TensorProto {
    TensorProto {
        name: name.into(),
        data_type: Some(FLOAT),
        dims: vec![2],
        float_data: vec![3.0, 4.0],
        ..TensorProto::default()
    }
}
