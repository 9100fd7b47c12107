//! The messages of an ONNX file.
//!
//! Names and numbers of the fields are those of ONNX 1.23 (IR version 14). Fields of later versions
//! are ignored when a file is read, and are lost when it is written again. Where it matters whether
//! a field was there at all, it is optional here. Bytes are not copied out of the buffer that a
//! file is read from.

use prost::bytes::Bytes;
use prost::{Enumeration, Message, Oneof};

/// A model file.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelProto {
    #[prost(int64, optional, tag = "1")]
    pub(crate) ir_version: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) producer_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(crate) producer_version: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(crate) domain: Option<String>,
    #[prost(int64, optional, tag = "5")]
    pub(crate) model_version: Option<i64>,
    #[prost(string, optional, tag = "6")]
    pub(crate) doc_string: Option<String>,
    #[prost(message, optional, tag = "7")]
    pub(crate) graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) opset_import: Vec<OperatorSetIdProto>,
    #[prost(message, repeated, tag = "14")]
    pub(crate) metadata_props: Vec<StringStringEntryProto>,
    #[prost(message, repeated, tag = "25")]
    pub(crate) functions: Vec<FunctionProto>,
}

/// A set of operators and its version.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OperatorSetIdProto {
    #[prost(string, optional, tag = "1")]
    pub(crate) domain: Option<String>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) version: Option<i64>,
}

/// A pair of texts.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StringStringEntryProto {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// An operator that the model itself defines.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FunctionProto {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(string, repeated, tag = "4")]
    pub(crate) input: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    pub(crate) output: Vec<String>,
    #[prost(string, repeated, tag = "6")]
    pub(crate) attribute: Vec<String>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) node: Vec<NodeProto>,
    #[prost(string, optional, tag = "8")]
    pub(crate) doc_string: Option<String>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) opset_import: Vec<OperatorSetIdProto>,
    #[prost(string, optional, tag = "10")]
    pub(crate) domain: Option<String>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) attribute_proto: Vec<AttributeProto>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) value_info: Vec<ValueInfoProto>,
    #[prost(string, optional, tag = "13")]
    pub(crate) overload: Option<String>,
    #[prost(message, repeated, tag = "14")]
    pub(crate) metadata_props: Vec<StringStringEntryProto>,
}

/// A graph: that of the model, or one inside an attribute.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) node: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) initializer: Vec<TensorProto>,
    #[prost(string, optional, tag = "10")]
    pub(crate) doc_string: Option<String>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) output: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) value_info: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "14")]
    pub(crate) quantization_annotation: Vec<TensorAnnotation>,
    #[prost(message, repeated, tag = "15")]
    pub(crate) sparse_initializer: Vec<SparseTensorProto>,
    #[prost(message, repeated, tag = "16")]
    pub(crate) metadata_props: Vec<StringStringEntryProto>,
}

/// How a tensor of the graph is quantised.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorAnnotation {
    #[prost(string, optional, tag = "1")]
    pub(crate) tensor_name: Option<String>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) quant_parameter_tensor_names: Vec<StringStringEntryProto>,
}

/// One operator of a graph.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub(crate) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) output: Vec<String>,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
    #[prost(string, tag = "4")]
    pub(crate) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) attribute: Vec<AttributeProto>,
    #[prost(string, optional, tag = "6")]
    pub(crate) doc_string: Option<String>,
    #[prost(string, tag = "7")]
    pub(crate) domain: String,
    #[prost(string, optional, tag = "8")]
    pub(crate) overload: Option<String>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) metadata_props: Vec<StringStringEntryProto>,
}

/// An attribute of an operator. Its type determines the field of the value.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AttributeProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(float, optional, tag = "2")]
    pub(crate) f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) i: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(crate) s: Option<Bytes>,
    #[prost(message, optional, tag = "5")]
    pub(crate) t: Option<TensorProto>,
    #[prost(message, optional, tag = "6")]
    pub(crate) g: Option<GraphProto>,
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub(crate) floats: Vec<f32>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub(crate) ints: Vec<i64>,
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub(crate) strings: Vec<Bytes>,
    #[prost(message, repeated, tag = "10")]
    pub(crate) tensors: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) graphs: Vec<GraphProto>,
    #[prost(string, optional, tag = "13")]
    pub(crate) doc_string: Option<String>,
    #[prost(message, optional, tag = "14")]
    pub(crate) tp: Option<TypeProto>,
    #[prost(message, repeated, tag = "15")]
    pub(crate) type_protos: Vec<TypeProto>,
    #[prost(enumeration = "OnnxAttributeType", optional, tag = "20")]
    pub(crate) r#type: Option<i32>,
    #[prost(string, optional, tag = "21")]
    pub(crate) ref_attr_name: Option<String>,
    #[prost(message, optional, tag = "22")]
    pub(crate) sparse_tensor: Option<SparseTensorProto>,
    #[prost(message, repeated, tag = "23")]
    pub(crate) sparse_tensors: Vec<SparseTensorProto>,
}

/// Which field of an attribute holds its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(crate) enum OnnxAttributeType {
    Undefined = 0,
    Float = 1,
    Int = 2,
    String = 3,
    Tensor = 4,
    Graph = 5,
    Floats = 6,
    Ints = 7,
    Strings = 8,
    Tensors = 9,
    Graphs = 10,
    SparseTensor = 11,
    SparseTensors = 12,
    TypeProto = 13,
    TypeProtos = 14,
}

/// Name and type of a value.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ValueInfoProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) r#type: Option<TypeProto>,
    #[prost(string, optional, tag = "3")]
    pub(crate) doc_string: Option<String>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) metadata_props: Vec<StringStringEntryProto>,
}

/// A tensor with its elements, or with the place where they are.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorProto {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(crate) dims: Vec<i64>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) data_type: Option<i32>,
    #[prost(message, optional, tag = "3")]
    pub(crate) segment: Option<SegmentProto>,
    #[prost(float, repeated, tag = "4")]
    pub(crate) float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub(crate) int32_data: Vec<i32>,
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub(crate) string_data: Vec<Bytes>,
    #[prost(int64, repeated, tag = "7")]
    pub(crate) int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    pub(crate) name: String,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub(crate) raw_data: Option<Bytes>,
    #[prost(double, repeated, tag = "10")]
    pub(crate) double_data: Vec<f64>,
    #[prost(uint64, repeated, tag = "11")]
    pub(crate) uint64_data: Vec<u64>,
    #[prost(string, optional, tag = "12")]
    pub(crate) doc_string: Option<String>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) external_data: Vec<StringStringEntryProto>,
    #[prost(enumeration = "DataLocation", optional, tag = "14")]
    pub(crate) data_location: Option<i32>,
    #[prost(message, repeated, tag = "16")]
    pub(crate) metadata_props: Vec<StringStringEntryProto>,
}

/// Which part of a tensor this is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(crate) struct SegmentProto {
    #[prost(int64, optional, tag = "1")]
    pub(crate) begin: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) end: Option<i64>,
}

/// Whether a tensor's elements are in the message or in another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(crate) enum DataLocation {
    Default = 0,
    External = 1,
}

/// Type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(crate) enum OnnxDataType {
    Undefined = 0,
    Float = 1,
    Uint8 = 2,
    Int8 = 3,
    Uint16 = 4,
    Int16 = 5,
    Int32 = 6,
    Int64 = 7,
    String = 8,
    Bool = 9,
    Float16 = 10,
    Double = 11,
    Uint32 = 12,
    Uint64 = 13,
    Complex64 = 14,
    Complex128 = 15,
    Bfloat16 = 16,
    Float8e4m3fn = 17,
    Float8e4m3fnuz = 18,
    Float8e5m2 = 19,
    Float8e5m2fnuz = 20,
    Uint4 = 21,
    Int4 = 22,
    Float4e2m1 = 23,
    Float8e8m0 = 24,
    Uint2 = 25,
    Int2 = 26,
    Float6e2m3 = 27,
    Float6e3m2 = 28,
}

/// A tensor with only some of its elements given.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SparseTensorProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) values: Option<TensorProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) indices: Option<TensorProto>,
    #[prost(int64, repeated, packed = "false", tag = "3")]
    pub(crate) dims: Vec<i64>,
}

/// The shape of a tensor.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dim: Vec<DimensionProto>,
}

/// One dimension.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DimensionProto {
    #[prost(oneof = "DimValue", tags = "1, 2")]
    pub(crate) value: Option<DimValue>,
    #[prost(string, optional, tag = "3")]
    pub(crate) denotation: Option<String>,
}

/// A known dimension, or its name.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum DimValue {
    #[prost(int64, tag = "1")]
    DimValue(i64),
    #[prost(string, tag = "2")]
    DimParam(String),
}

/// Type of a value.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TypeProto {
    #[prost(oneof = "TypeValue", tags = "1, 4, 5, 7, 8, 9")]
    pub(crate) value: Option<TypeValue>,
    #[prost(string, optional, tag = "6")]
    pub(crate) denotation: Option<String>,
}

/// The type of a value.
#[derive(Clone, PartialEq, Oneof)]
#[expect(clippy::enum_variant_names, reason = "the names are those of ONNX")]
pub(crate) enum TypeValue {
    #[prost(message, tag = "1")]
    TensorType(TensorTypeProto),
    #[prost(message, tag = "4")]
    SequenceType(Box<ElementTypeProto>),
    #[prost(message, tag = "5")]
    MapType(Box<MapTypeProto>),
    #[prost(message, tag = "7")]
    OpaqueType(OpaqueTypeProto),
    #[prost(message, tag = "8")]
    SparseTensorType(TensorTypeProto),
    #[prost(message, tag = "9")]
    OptionalType(Box<ElementTypeProto>),
}

/// A tensor, dense or sparse.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorTypeProto {
    #[prost(int32, optional, tag = "1")]
    pub(crate) elem_type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<TensorShapeProto>,
}

/// A sequence, or a value that may be absent.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ElementTypeProto {
    #[prost(message, optional, boxed, tag = "1")]
    pub(crate) elem_type: Option<Box<TypeProto>>,
}

/// A map.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MapTypeProto {
    #[prost(int32, optional, tag = "1")]
    pub(crate) key_type: Option<i32>,
    #[prost(message, optional, boxed, tag = "2")]
    pub(crate) value_type: Option<Box<TypeProto>>,
}

/// A type that ONNX does not describe.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(crate) struct OpaqueTypeProto {
    #[prost(string, optional, tag = "1")]
    pub(crate) domain: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
}
