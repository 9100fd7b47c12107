//! Models that are made here, in the library that `OPSCOPE_ENGINE_LIB` names.

use std::io::Write;
use std::path::PathBuf;

use opscope_tensor::{DType, Shape, text};
use prost::Message;

use super::super::schema::{
    AttributeProto, DataLocation, DimValue, Dimension, ElementTypeProto, ModelProto, NodeProto,
    OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto,
    TypeProto, TypeValue, ValueInfoProto,
};
use super::value::PAIRS;
use super::*;
use crate::InputError;

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
    let dim = |&n: &i64| Dimension {
        value: Some(DimValue::DimValue(n)),
        ..Dimension::default()
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

/// A copy of a tensor at an address that is not a multiple of two.
fn misaligned(tensor: &Tensor) -> Tensor {
    struct Odd(Vec<u8>, usize);
    impl AsRef<[u8]> for Odd {
        fn as_ref(&self) -> &[u8] {
            &self.0[self.1..]
        }
    }
    let n = tensor.n_bytes();
    let mut odd = Odd(vec![0; n + 2], 0);
    let start = 1 - odd.0.as_ptr().addr() % 2;
    odd.0.truncate(n + start);
    odd.0[start..].copy_from_slice(tensor.bytes());
    odd.1 = start;
    let odd = Tensor::new(tensor.dtype(), tensor.shape().clone(), Arc::new(odd)).unwrap();
    assert_eq!(odd.bytes().as_ptr().addr() % 2, 1);
    odd
}

#[test]
fn elements_of_every_dtype_arrive_and_come_back() {
    let Some(engine) = engine() else { return };
    for &(dtype, _) in PAIRS {
        let Some(code) = (1..40).find(|&code| proto::dtype(code) == Some(dtype)) else {
            panic!("{dtype} has no number");
        };
        for n in [0_usize, 1, 5] {
            let shape = Shape::new([n]).unwrap();
            let given = if dtype == DType::String {
                let texts: [&[u8]; 5] = [b"a", b"", b"b\0c", "\u{e4}".as_bytes(), b"\xff."];
                tensor(dtype, &[n], text::encode(&texts[..n]))
            } else {
                let n_bytes = shape.n_bytes(dtype).unwrap();
                let byte = |i: usize| {
                    if dtype == DType::Bool {
                        i % 2
                    } else {
                        i * 37 % 256
                    }
                };
                tensor(dtype, &[n], (0..n_bytes).map(|i| byte(i) as u8).collect())
            };
            let dims = [n as i64];
            // What is a result as it is takes no kernel, which older libraries lack for young dtypes.
            let graph = graph(
                vec![node("Identity", "", &["a"], &["b"])],
                vec![value("x", code, &dims), value("a", FLOAT, &[1])],
                vec![value("x", code, &dims), value("b", FLOAT, &[1])],
            );
            let loaded = load(&engine, &model(graph));
            if matches!(dtype, DType::C64 | DType::C128) {
                // The library has numbers for them, and nothing else.
                let text = loaded.map(drop).unwrap_err().to_string();
                assert!(
                    text.contains("not currently registered or supported"),
                    "{text}"
                );
                continue;
            }
            let mut model = loaded.unwrap();
            for given in [given.clone(), misaligned(&given)] {
                let results = model.run(&[given.clone(), floats(&[1.0])], None).unwrap();
                let (expected, place) = (given.bytes().to_vec(), given.bytes().as_ptr());
                drop(given);
                assert!(n == 0 || results[0].bytes().as_ptr() != place, "{dtype}");
                assert_eq!(results[0].dtype(), dtype);
                assert_eq!(results[0].shape().dims(), [n], "{dtype}");
                assert_eq!(results[0].bytes(), expected, "{dtype}");
            }
        }
    }
}

#[test]
fn texts_pass_through_a_kernel() {
    let Some(engine) = engine() else { return };
    let code = 8;
    let graph = graph(
        vec![node("Concat", "", &["x", "x"], &["y"])],
        vec![value("x", code, &[2])],
        vec![value("y", code, &[4])],
    );
    let mut with_axis = model(graph);
    with_axis.graph.as_mut().unwrap().node[0].attribute = vec![AttributeProto {
        name: "axis".into(),
        r#type: Some(2),
        i: Some(0),
        ..AttributeProto::default()
    }];
    let mut model = load(&engine, &with_axis).unwrap();
    let x = tensor(DType::String, &[2], text::encode(&["one", ""]));
    let y = &model.run(&[x], None).unwrap()[0];
    let found: Vec<&[u8]> = text::iter(y.view()).unwrap().collect();
    assert_eq!(found, [&b"one"[..], b"", b"one", b""]);
}

#[test]
fn results_outlive_the_model_and_its_weights() {
    let Some(engine) = engine() else { return };
    let mut graph = graph(
        vec![node("Add", "", &["x", "w"], &["y"])],
        vec![value("x", FLOAT, &[2])],
        vec![value("y", FLOAT, &[2]), value("w", FLOAT, &[2])],
    );
    graph.initializer = vec![weight("w")];
    let mut model = load(&engine, &model(graph)).unwrap();
    let first = model.run(&[floats(&[1.0, 2.0])], None).unwrap();
    let second = model.run(&[floats(&[-3.0, -4.0])], None).unwrap();
    drop(model);
    assert_eq!(first[0].bytes(), floats(&[4.0, 6.0]).bytes());
    assert_eq!(first[1].bytes(), floats(&[3.0, 4.0]).bytes());
    assert_eq!(second[0].bytes(), floats(&[0.0, 0.0]).bytes());
}

#[test]
fn what_is_no_tensor_is_refused_or_left_out() {
    let Some(engine) = engine() else { return };
    let takes = graph(
        vec![node("SequenceLength", "", &["s"], &["n"])],
        vec![sequence("s")],
        vec![value("n", INT64, &[])],
    );
    assert_eq!(
        refusal(&engine, &model(takes)),
        "`model in memory` is not a usable ONNX model: input `s` takes a sequence of a tensor of \
         float32; only tensors can be given"
    );
    let gives = graph(
        vec![
            node("SequenceConstruct", "", &["x", "x"], &["s"]),
            node("SequenceLength", "", &["s"], &["n"]),
        ],
        vec![value("x", FLOAT, &[2])],
        vec![sequence("s"), value("n", INT64, &[])],
    );
    let mut model = load(&engine, &model(gives)).unwrap();
    let names: Vec<&str> = model.signature().outputs.iter().map(|v| &*v.name).collect();
    assert_eq!(names, ["n"]);
    let results = model.run(&[floats(&[1.0, 2.0])], None).unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].bytes(), 2_i64.to_le_bytes());
}

#[test]
fn models_that_the_library_cannot_run_are_refused_by_name() {
    let Some(engine) = engine() else { return };
    let version = engine.version().unwrap().to_owned();
    let unary = |op_type: &str, name: &str, code: i32| {
        let (x, y) = (value("x", code, &[2]), value("y", code, &[2]));
        model(graph(
            vec![node(op_type, name, &["x"], &["y"])],
            vec![x],
            vec![y],
        ))
    };
    let check = |model: &ModelProto, parts: &[&str]| {
        let text = refusal(&engine, model);
        for part in parts {
            assert!(text.contains(part), "{text}\nlacks {part}");
        }
        assert!(!text.contains("onnxruntime_src"), "{text}");
    };
    let lacks = format!("ONNX Runtime {version} has no such operator up to version 21 of its set");
    check(
        &unary("Foo", "n1", FLOAT),
        &["operator `n1` of type `Foo`: ", &lacks],
    );
    check(
        &unary("Foo", "", FLOAT),
        &["operator `y` of type `Foo`: ", &lacks],
    );
    check(
        &unary("Sin", "n1", INT64),
        &["operator `n1` of type `Sin`: ", "tensor(int64)"],
    );
    check(
        &unary("Relu", "n1", 16),
        &["operator `n1` of type `Relu`: ", "no implementation of it"],
    );
    let mut new_opset = unary("Relu", "n1", FLOAT);
    new_opset.opset_import[0].version = Some(9999);
    check(
        &new_opset,
        &[
            "it uses version 9999 of the operator set `ai.onnx`",
            &format!("ONNX Runtime {version} has it up to version "),
        ],
    );
    let mut new_format = unary("Relu", "n1", FLOAT);
    new_format.ir_version = Some(9999);
    check(
        &new_format,
        &["its format is IR version 9999", "reads up to "],
    );
    let mut foreign = unary("Foo", "n1", FLOAT);
    foreign.graph.as_mut().unwrap().node[0].domain = "my.domain".into();
    foreign.opset_import.push(OperatorSetIdProto {
        domain: Some("my.domain".into()),
        version: Some(1),
    });
    check(
        &foreign,
        &["operator `n1` of type `Foo`", "`my.domain`", &version],
    );
}

#[test]
fn bodies_are_numbered_after_their_node_and_fail_by_name() {
    let Some(engine) = engine() else { return };
    let constant = NodeProto {
        attribute: vec![AttributeProto {
            name: "value_float".into(),
            r#type: Some(1),
            f: Some(2.0),
            ..AttributeProto::default()
        }],
        ..node("Constant", "", &[], &["two"])
    };
    let inner = |name: &str, z: &str| {
        let body = graph(
            vec![
                constant.clone(),
                node("Gather", name, &["x", "i"], &["picked"]),
                node("Mul", "", &["picked", "two"], &[z]),
            ],
            Vec::new(),
            vec![value(z, FLOAT, &[1])],
        );
        AttributeProto {
            name: if z == "z1" {
                "then_branch"
            } else {
                "else_branch"
            }
            .into(),
            r#type: Some(5),
            g: Some(body),
            ..AttributeProto::default()
        }
    };
    let choice = NodeProto {
        attribute: vec![inner("pick", "z1"), inner("", "z2")],
        ..node("If", "choice", &["c"], &["y"])
    };
    let graph = graph(
        vec![choice, node("Neg", "", &["y"], &["result"])],
        vec![
            value("c", BOOL, &[]),
            value("x", FLOAT, &[2]),
            value("i", INT64, &[1]),
        ],
        vec![value("result", FLOAT, &[1])],
    );
    let mut model = load(&engine, &model(graph)).unwrap();
    let operators: Vec<(u32, &str)> = model
        .operators()
        .iter()
        .map(|operator| (operator.task_id, operator.op_name.as_str()))
        .collect();
    let expected = [
        (0, "choice"),
        (2, "pick"),
        (3, "z1"),
        (5, "picked"),
        (6, "z2"),
        (7, "result"),
    ];
    assert_eq!(operators, expected);
    assert_eq!(model.constants(), ["two", "two"]);
    let mut run = |branch: u8, index: i64| {
        let inputs = [
            tensor(DType::Bool, &[], vec![branch]),
            floats(&[1.5, 2.5]),
            ints(&[index]),
        ];
        model.run(&inputs, None)
    };
    assert_eq!(run(1, 1).unwrap()[0].bytes(), floats(&[-5.0]).bytes());
    for (branch, name) in [(1, "pick"), (0, "picked")] {
        let error = run(branch, 9).unwrap_err();
        let EngineError::Operator {
            op_type,
            op_name,
            reason,
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((op_type.as_str(), op_name.as_str()), ("Gather", name));
        assert!(reason.contains("idx=9"), "{reason}");
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let Some(engine) = engine() else { return };
    let graph = graph(
        vec![node("Relu", "", &["x"], &["y"])],
        vec![value("x", FLOAT, &[2])],
        vec![value("y", FLOAT, &[2])],
    );
    let mut model = load(&engine, &model(graph)).unwrap();
    let mut refusal = |inputs: &[Tensor]| model.run(inputs, None).unwrap_err();
    assert!(matches!(
        refusal(&[ints(&[1, 2])]),
        EngineError::Input(InputError::Dtype { .. })
    ));
    assert!(matches!(
        refusal(&[floats(&[1.0, 2.0, 3.0])]),
        EngineError::Input(InputError::Shape { .. })
    ));
    assert_eq!(
        refusal(&[]).to_string(),
        "ONNX Runtime failed: 0 inputs were given of 1"
    );
    let forgotten = floats(&[1.0, 2.0]).without_elements();
    assert!(matches!(refusal(&[forgotten]), EngineError::Engine { .. }));
}

/// A model whose weight is in another file.
fn with_data_outside(file: &str) -> ModelProto {
    let entry = |key: &str, value: &str| StringStringEntryProto {
        key: key.into(),
        value: value.into(),
    };
    let mut graph = graph(
        vec![node("Add", "", &["x", "w"], &["y"])],
        vec![value("x", FLOAT, &[2])],
        vec![value("y", FLOAT, &[2])],
    );
    graph.initializer = vec![TensorProto {
        float_data: Vec::new(),
        data_location: Some(DataLocation::External.into()),
        external_data: vec![entry("location", file), entry("length", "8")],
        ..weight("w")
    }];
    model(graph)
}

#[test]
fn data_outside_are_found_beside_the_model() {
    let Some(engine) = engine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join("m.onnx");
    let bytes = with_data_outside("weights.bin").encode_to_vec();
    std::fs::write(&path, &bytes).unwrap();
    let options = LoadOptions::with_threads(1);
    let part = ModelSource::Part {
        bytes: &bytes,
        path: &path,
    };
    for source in [ModelSource::File(&path), part] {
        let error = engine.load(source, &options).map(drop).unwrap_err();
        assert!(matches!(error, EngineError::Invalid { .. }), "{error}");
        assert!(error.to_string().contains("weights.bin"), "{error}");
    }
    std::fs::write(dir.path().join("weights.bin"), floats(&[3.0, 4.0]).bytes()).unwrap();
    for source in [ModelSource::File(&path), part] {
        let mut model = engine.load(source, &options).unwrap();
        let y = model.run(&[floats(&[1.0, 2.0])], None).unwrap();
        assert_eq!(y[0].bytes(), floats(&[4.0, 6.0]).bytes());
    }
}
