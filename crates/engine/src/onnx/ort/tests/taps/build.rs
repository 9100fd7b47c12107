//! Small models for tests.

use prost::Message;
use prost::bytes::Bytes;

use crate::onnx::schema::*;

pub(super) const FLOAT: i32 = OnnxDataType::Float as i32;
pub(super) const INT64: i32 = OnnxDataType::Int64 as i32;
pub(super) const BOOL: i32 = OnnxDataType::Bool as i32;
pub(super) const TEXT: i32 = OnnxDataType::String as i32;

/// A node whose name is that of its type and first output.
pub(super) fn node(op_type: &str, input: &[&str], output: &[&str]) -> NodeProto {
    NodeProto {
        input: input.iter().map(|name| (*name).to_owned()).collect(),
        output: output.iter().map(|name| (*name).to_owned()).collect(),
        name: format!("{op_type}_{}", output.first().unwrap_or(&"")),
        op_type: op_type.to_owned(),
        ..NodeProto::default()
    }
}

impl NodeProto {
    pub(super) fn with(mut self, attribute: AttributeProto) -> NodeProto {
        self.attribute.push(attribute);
        self
    }

    pub(super) fn int(self, name: &str, i: i64) -> NodeProto {
        self.with(AttributeProto {
            name: name.to_owned(),
            r#type: Some(OnnxAttributeType::Int as i32),
            i: Some(i),
            ..AttributeProto::default()
        })
    }

    pub(super) fn body(self, name: &str, graph: GraphProto) -> NodeProto {
        self.with(AttributeProto {
            name: name.to_owned(),
            r#type: Some(OnnxAttributeType::Graph as i32),
            g: Some(graph),
            ..AttributeProto::default()
        })
    }

    pub(super) fn tensor(self, name: &str, tensor: TensorProto) -> NodeProto {
        self.with(AttributeProto {
            name: name.to_owned(),
            r#type: Some(OnnxAttributeType::Tensor as i32),
            t: Some(tensor),
            ..AttributeProto::default()
        })
    }

    pub(super) fn in_domain(mut self, domain: &str) -> NodeProto {
        domain.clone_into(&mut self.domain);
        self
    }

    pub(super) fn called(mut self, name: &str) -> NodeProto {
        name.clone_into(&mut self.name);
        self
    }
}

/// A tensor value with dynamic dimensions.
pub(super) fn value(name: &str, elem_type: i32, n_axes: usize) -> ValueInfoProto {
    let dim = DimensionProto {
        value: None,
        denotation: None,
    };
    let tensor = TensorTypeProto {
        elem_type: Some(elem_type),
        shape: Some(TensorShapeProto {
            dim: vec![dim; n_axes],
        }),
    };
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            value: Some(TypeValue::TensorType(tensor)),
            denotation: None,
        }),
        ..ValueInfoProto::default()
    }
}

/// A value with only a name.
pub(super) fn named(name: &str) -> ValueInfoProto {
    ValueInfoProto {
        name: name.to_owned(),
        ..ValueInfoProto::default()
    }
}

pub(super) fn floats(name: &str, dims: &[i64], elements: &[f32]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: dims.to_vec(),
        data_type: Some(FLOAT),
        float_data: elements.to_vec(),
        ..TensorProto::default()
    }
}

pub(super) fn ints(name: &str, dims: &[i64], elements: &[i64]) -> TensorProto {
    let bytes: Vec<u8> = elements.iter().flat_map(|i| i.to_le_bytes()).collect();
    TensorProto {
        name: name.to_owned(),
        dims: dims.to_vec(),
        data_type: Some(INT64),
        raw_data: Some(Bytes::from(bytes)),
        ..TensorProto::default()
    }
}

pub(super) fn graph(
    input: &[ValueInfoProto],
    initializer: &[TensorProto],
    node: &[NodeProto],
    output: &[ValueInfoProto],
) -> GraphProto {
    GraphProto {
        name: "g".to_owned(),
        input: input.to_vec(),
        initializer: initializer.to_vec(),
        node: node.to_vec(),
        output: output.to_vec(),
        ..GraphProto::default()
    }
}

pub(super) fn model(graph: GraphProto) -> ModelProto {
    let set = |domain: &str, version| OperatorSetIdProto {
        domain: Some(domain.to_owned()),
        version: Some(version),
    };
    ModelProto {
        ir_version: Some(10),
        opset_import: vec![set("", 21), set("ai.onnx.ml", 3), set("local", 1)],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

pub(super) fn bytes(model: &ModelProto) -> Vec<u8> {
    model.encode_to_vec()
}
