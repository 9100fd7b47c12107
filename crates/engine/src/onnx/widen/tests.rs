//! Models with each construct that may hold a float16, widened.

use std::path::Path;

use opscope_tensor::{DType, Shape, Tensor};
use prost::Message;
use prost::bytes::Bytes;

use super::{WidenedModel, widen, widen_input, widen_model};
use crate::ModelSource;
use crate::onnx::proto;
use crate::onnx::schema::{
    AttributeProto, DataLocation, ElementTypeProto, FunctionProto, GraphProto, ModelProto,
    NodeProto, OnnxDataType, StringStringEntryProto, TensorProto, TensorTypeProto, TypeProto,
    TypeValue, ValueInfoProto,
};

const F32: i32 = OnnxDataType::Float as i32;
const F16: i32 = OnnxDataType::Float16 as i32;
const BF16: i32 = OnnxDataType::Bfloat16 as i32;

fn tensor_type(code: i32) -> TypeProto {
    TypeProto {
        value: Some(TypeValue::TensorType(TensorTypeProto {
            elem_type: Some(code),
            shape: None,
        })),
        denotation: None,
    }
}

fn value(name: &str, r#type: TypeProto) -> ValueInfoProto {
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(r#type),
        ..ValueInfoProto::default()
    }
}

fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        i: Some(i),
        r#type: Some(2),
        ..AttributeProto::default()
    }
}

fn node(op_type: &str, input: &[&str], output: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        op_type: op_type.to_owned(),
        input: input.iter().map(|name| (*name).to_owned()).collect(),
        output: vec![output.to_owned()],
        attribute,
        ..NodeProto::default()
    }
}

fn raw(name: &str, code: i32, dims: &[i64], bytes: &[u8]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type: Some(code),
        dims: dims.to_vec(),
        raw_data: Some(Bytes::copy_from_slice(bytes)),
        ..TensorProto::default()
    }
}

/// A model that adds its weights to its input.
fn model(weights: Vec<TensorProto>) -> ModelProto {
    let add = |weight: &TensorProto| node("Add", &["x", &weight.name], &weight.name, vec![]);
    let mut nodes: Vec<NodeProto> = weights.iter().map(add).collect();
    nodes
        .iter_mut()
        .for_each(|node| node.output[0].push_str(".sum"));
    nodes.push(node("Identity", &["x"], "y", vec![]));
    ModelProto {
        ir_version: Some(10),
        graph: Some(GraphProto {
            node: nodes,
            initializer: weights,
            input: vec![value("x", tensor_type(F32))],
            output: vec![value("y", tensor_type(F32))],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

fn nodes(nodes: Vec<NodeProto>) -> ModelProto {
    let mut model = model(vec![]);
    model.graph.as_mut().unwrap().node.extend(nodes);
    model
}

fn read(widened: &WidenedModel) -> ModelProto {
    match widened.source() {
        ModelSource::Part { bytes, .. } => ModelProto::decode(bytes).unwrap(),
        ModelSource::File(path) => proto::read(path).unwrap().proto,
        ModelSource::Memory(_) => panic!("outside data would be looked for elsewhere"),
    }
}

fn widened(model: &ModelProto) -> ModelProto {
    let bytes = model.encode_to_vec();
    let widened = widen_model(ModelSource::Memory(&bytes)).unwrap();
    read(&widened.expect("something to widen"))
}

fn refusal(model: &ModelProto, path: &Path) -> String {
    let bytes = model.encode_to_vec();
    let source = ModelSource::Part {
        bytes: &bytes,
        path,
    };
    widen_model(source).err().unwrap().to_string()
}

fn le(bits: &[u32]) -> Vec<u8> {
    bits.iter().flat_map(|bits| bits.to_le_bytes()).collect()
}

#[test]
fn every_value_keeps_its_number() {
    // Zeros, the smallest subnormal, the largest one, the largest number, infinity, a quiet and a
    // signalling NaN.
    let halves = [
        (0x0000, 0x0000_0000),
        (0x8000, 0x8000_0000),
        (0x0001, 0x3380_0000),
        (0x83ff, 0xb87f_c000),
        (0x7bff, 0x477f_e000),
        (0xfc00, 0xff80_0000),
        (0x7e01, 0x7fc0_2000),
        (0xfd55, 0xffaa_a000),
    ];
    let brains = [
        (0x8000, 0x8000_0000),
        (0x0001, 0x0001_0000),
        (0x3f80, 0x3f80_0000),
        (0xff80, 0xff80_0000),
        (0x7fa5, 0x7fa5_0000),
    ];
    let check = |dtype, code, cases: &[(u16, u32)]| {
        let narrow: Vec<u8> = cases.iter().flat_map(|case| case.0.to_le_bytes()).collect();
        let wide = le(&cases.iter().map(|case| case.1).collect::<Vec<_>>());
        let dims = [cases.len() as i64];
        let fields = TensorProto {
            raw_data: None,
            int32_data: cases.iter().map(|case| i32::from(case.0)).collect(),
            ..raw("fields", code, &dims, &[])
        };
        let given = model(vec![raw("raw", code, &dims, &narrow), fields]);
        for weight in &widened(&given).graph.unwrap().initializer {
            let expected = raw(&weight.name, F32, &dims, &wide);
            assert_eq!(*weight, expected);
        }
        let input = Tensor::from_vec(dtype, Shape::new([cases.len()]).unwrap(), narrow).unwrap();
        let input = widen_input("x", &input).unwrap();
        assert_eq!(
            (input.dtype(), input.host_bytes().unwrap()),
            (DType::F32, &*wide)
        );
    };
    check(DType::F16, F16, &halves);
    check(DType::BF16, BF16, &brains);
}

#[test]
fn every_half_is_the_number_that_arithmetic_gives() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let wide = super::elements::widened(DType::F16, &all);
    for (half, wide) in (0..=u16::MAX).zip(wide.as_chunks::<4>().0) {
        let wide = f32::from_le_bytes(*wide);
        let exponent = i32::from(half >> 10 & 0x1f);
        let mantissa = f32::from(half & 0x3ff) / 1024.0;
        let size = match exponent {
            0 => mantissa * 2.0_f32.powi(-14),
            31 if mantissa == 0.0 => f32::INFINITY,
            31 => f32::NAN,
            _ => (1.0 + mantissa) * 2.0_f32.powi(exponent - 15),
        };
        let expected = if half & 0x8000 == 0 { size } else { -size };
        let is_same = wide == expected || (wide.is_nan() && expected.is_nan());
        assert!(
            is_same && wide.is_sign_negative() == (half & 0x8000 != 0),
            "{half:#x}"
        );
    }
}

#[test]
fn other_tensors_stay() {
    let bytes = 3.0_f64.to_le_bytes();
    let double = raw("double", OnnxDataType::Double as i32, &[], &bytes);
    let empty = raw("empty", F16, &[0, 3], &[]);
    let given = model(vec![double.clone(), empty]);
    let weights = widened(&given).graph.unwrap().initializer;
    assert_eq!(weights, [double.clone(), raw("empty", F32, &[0, 3], &[])]);
    let bytes = model(vec![double]).encode_to_vec();
    assert!(widen_model(ModelSource::Memory(&bytes)).unwrap().is_none());
}

#[test]
fn types_are_declared_anew() {
    let nested = |code| TypeProto {
        value: Some(TypeValue::OptionalType(Box::new(ElementTypeProto {
            elem_type: Some(Box::new(TypeProto {
                value: Some(TypeValue::SequenceType(Box::new(ElementTypeProto {
                    elem_type: Some(Box::new(tensor_type(code))),
                }))),
                denotation: None,
            })),
        }))),
        denotation: None,
    };
    let with_types = |code: i32| {
        let body = GraphProto {
            input: vec![value("i", tensor_type(code))],
            output: vec![value("i", tensor_type(code))],
            value_info: vec![value("j", nested(code))],
            ..GraphProto::default()
        };
        let attributes = vec![
            AttributeProto {
                name: "type".into(),
                tp: Some(nested(code)),
                ..AttributeProto::default()
            },
            AttributeProto {
                name: "body".into(),
                g: Some(body),
                ..AttributeProto::default()
            },
        ];
        let mut model = nodes(vec![node("Loop", &[], "z", attributes)]);
        let graph = model.graph.as_mut().unwrap();
        graph.input.push(value("half", tensor_type(code)));
        graph.output.push(value("z", nested(code)));
        graph.value_info.push(value("v", tensor_type(code)));
        model.functions.push(FunctionProto {
            value_info: vec![value("f", nested(code))],
            ..FunctionProto::default()
        });
        model
    };
    assert_eq!(widened(&with_types(F16)), with_types(F32));
    assert_eq!(widened(&with_types(BF16)), with_types(F32));
}

#[test]
fn attributes_that_hold_a_dtype_change() {
    let with = |op_type: &str, domain: &str, attribute: AttributeProto| {
        let mut node = node(op_type, &["x"], "z", vec![attribute]);
        node.domain = domain.to_owned();
        // A second node, so that there is always something to widen.
        let bytes = [0; 2];
        let mut model = model(vec![raw("w", F16, &[1], &bytes)]);
        model.graph.as_mut().unwrap().node.push(node);
        model
    };
    let check = |op_type: &str, domain: &str, name: &str, from: i64, to: i64| {
        let found = widened(&with(op_type, domain, int(name, from)));
        let node = found.graph.unwrap().node.pop().unwrap();
        assert_eq!(node.attribute, [int(name, to)], "{op_type}");
    };
    check("Cast", "", "to", 10, 1);
    check("Cast", "ai.onnx", "to", 16, 1);
    check("Cast", "", "to", 11, 11);
    check("Cast", "", "to", 7, 7);
    check("EyeLike", "", "dtype", 10, 1);
    check("HannWindow", "", "output_datatype", 10, 1);
    check("DequantizeLinear", "", "output_dtype", 16, 1);
    check("QuantizeLinear", "", "output_dtype", 3, 3);
    check("QuantizeLinear", "", "precision", 10, 1);
    check("Attention", "", "softmax_precision", 10, 1);
    check("LayerNormalization", "", "stash_type", 16, 1);
    check("BitCast", "", "to", 1, 1);
    check("MatMulNBits", "com.microsoft", "accuracy_level", 2, 1);
    check("MatMulNBits", "com.microsoft", "accuracy_level", 4, 4);
    // Ten and sixteen are numbers like any other elsewhere.
    check("TopK", "", "axis", 10, 10);
    check("Cast", "of.somebody", "to", 10, 10);
    let text = |text: &'static [u8]| AttributeProto {
        name: "to".into(),
        s: Some(Bytes::from_static(text)),
        ..AttributeProto::default()
    };
    let found = widened(&with("Cast", "", text(b"FLOAT16")));
    let found = found.graph.unwrap().node.pop().unwrap();
    assert_eq!(found.attribute, [text(b"FLOAT")]);
}

#[test]
fn functions_hand_dtypes_on() {
    let reference = |name: &str, to: &str| AttributeProto {
        name: name.to_owned(),
        ref_attr_name: Some(to.to_owned()),
        ..AttributeProto::default()
    };
    let in_domain = |node: NodeProto| NodeProto {
        domain: "own".into(),
        ..node
    };
    let function = |name: &str, node: NodeProto| FunctionProto {
        name: Some(name.to_owned()),
        domain: Some("own".to_owned()),
        node: vec![node],
        ..FunctionProto::default()
    };
    let with = |code: i64| {
        // The outer one comes first, and calls one that is not known yet.
        let call = in_domain(node(
            "Inner",
            &["a"],
            "b",
            vec![reference("kind", "wanted")],
        ));
        let cast = node("Cast", &["a"], "b", vec![reference("to", "kind")]);
        let mut model = nodes(vec![in_domain(node(
            "Outer",
            &["x"],
            "z",
            vec![int("wanted", code), int("other", 10)],
        ))]);
        model.functions = vec![
            FunctionProto {
                attribute_proto: vec![int("wanted", code), int("other", 10)],
                ..function("Outer", call)
            },
            function("Inner", cast),
        ];
        model
    };
    assert_eq!(widened(&with(10)), with(1));
}

#[test]
fn elements_outside_are_read() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("data"), [0, 0, 0x00, 0x3c, 0x00, 0xc0]).unwrap();
    let path = dir.path().join("model.onnx");
    let outside = |code, offset: &str| {
        let entry = |key: &str, value: &str| StringStringEntryProto {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        TensorProto {
            raw_data: None,
            data_location: Some(DataLocation::External as i32),
            external_data: vec![entry("location", "data"), entry("offset", offset)],
            ..raw("w", code, &[2], &[])
        }
    };
    let kept = TensorProto {
        name: "kept".into(),
        ..outside(OnnxDataType::Int16 as i32, "0")
    };
    let given = model(vec![outside(F16, "2"), kept.clone()]).encode_to_vec();
    let source = ModelSource::Part {
        bytes: &given,
        path: &path,
    };
    let expected = raw("w", F32, &[2], &le(&[0x3f80_0000, 0xc000_0000]));
    let found = read(&widen_model(source).unwrap().unwrap());
    assert_eq!(found.graph.unwrap().initializer, [expected, kept]);
    let text = refusal(&model(vec![outside(F16, "4")]), &path);
    let expected = "weight `w` is not where the model says; expected 4 bytes from byte 4 on in the \
                    file `data` beside the model";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn large_models_go_to_files() {
    let dir = tempfile::tempdir().unwrap();
    let outside: Vec<u8> = (0..10_000_u32).map(|i| (i % 7) as u8).collect();
    std::fs::write(dir.path().join("data"), &outside).unwrap();
    let ones: Vec<u8> = [0x00, 0x3c].repeat(5000);
    let location = StringStringEntryProto {
        key: "location".into(),
        value: "data".into(),
    };
    let kept = TensorProto {
        raw_data: None,
        data_location: Some(DataLocation::External as i32),
        external_data: vec![location],
        ..raw("kept", OnnxDataType::Uint8 as i32, &[10_000], &[])
    };
    let weights = vec![
        raw("large", F16, &[50, 100], &ones),
        kept,
        raw("small", BF16, &[1], &[0x80, 0x3f]),
    ];
    let given = model(weights).encode_to_vec();
    let path = dir.path().join("model.onnx");
    let source = ModelSource::Part {
        bytes: &given,
        path: &path,
    };
    let found = widen(source, 1000).unwrap().unwrap();
    let ModelSource::File(file) = found.source() else {
        panic!("its weights would be in memory");
    };
    let file = file.to_owned();
    let data =
        opscope_store::regular_file::read(&file.with_file_name("weights.bin"), 1 << 20).unwrap();
    let weights = read(&found).graph.unwrap().initializer;
    let part = |weight: &TensorProto| {
        let number = |i: usize| weight.external_data[i].value.parse::<usize>().unwrap();
        data[number(1)..number(1) + number(2)].to_vec()
    };
    assert_eq!(part(&weights[0]), le(&[0x3f80_0000]).repeat(5000));
    assert_eq!(part(&weights[1]), outside);
    assert_eq!(weights[2], raw("small", F32, &[1], &le(&[0x3f80_0000])));
    let types = weights.iter().map(|weight| weight.data_type());
    assert_eq!(types.collect::<Vec<_>>(), [F32, 2, F32]);
    drop(found);
    assert!(!file.exists());
}

#[test]
fn refusals_name_place_and_expectation() {
    let path = Path::new("model.onnx");
    let check = |model: ModelProto, expected: &str| {
        let found = refusal(&model, path);
        let begin = "`model.onnx` is not a usable ONNX model: ";
        assert_eq!(found.strip_prefix(begin), Some(expected));
    };
    check(
        model(vec![raw("w", F16, &[3], &[0; 4])]),
        "weight `w` has 4 bytes; expected 6 for float16 [3]",
    );
    check(
        model(vec![raw("w", F16, &[-1], &[])]),
        "weight `w` has the shape [-1]; expected one that fits memory",
    );
    let no_elements = TensorProto {
        raw_data: None,
        ..raw("", BF16, &[2], &[])
    };
    let constant = AttributeProto {
        name: "value".into(),
        t: Some(no_elements),
        ..AttributeProto::default()
    };
    check(
        nodes(vec![node("Constant", &[], "c", vec![constant])]),
        "a tensor of node `c` has another number of elements than bfloat16 [2] asks for",
    );
    check(
        nodes(vec![node("BitCast", &["x"], "bits", vec![int("to", 10)])]),
        "node `bits` is a `BitCast` of elements of 16 bits, and float16 has other bits in float32; \
         expected a model that does not look at them",
    );
}

#[test]
fn narrower_floats_are_told() {
    let float8 = OnnxDataType::Float8e4m3fn as i32;
    let given = model(vec![
        raw("w", float8, &[1], &[0x38]),
        raw("s", F16, &[1], &[0; 2]),
    ]);
    let given = given.encode_to_vec();
    let found = widen_model(ModelSource::Memory(&given)).unwrap().unwrap();
    assert_eq!(found.kept_dtypes(), [DType::F8E4M3FN]);
    let weights = read(&found).graph.unwrap().initializer;
    assert_eq!(weights[0], raw("w", float8, &[1], &[0x38]));
}
