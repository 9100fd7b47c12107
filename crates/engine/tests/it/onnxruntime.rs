//! ONNX Runtime on real models, in the library that `OPSCOPE_ENGINE_LIB` names.
#![cfg(feature = "onnxruntime")]

use std::io::Write;
use std::path::{Path, PathBuf};

use opscope_engine::input::{RandomNumbers, resolve_shape};
use opscope_engine::onnx::OnnxRuntime;
use opscope_engine::{Engine, EngineError, LoadOptions, LoadedModel, ModelSource};
use opscope_store::file_format::npz;
use opscope_tensor::{DType, Shape, Tensor};

/// The engine, or nothing if no library was named; then that is said.
fn engine() -> Option<OnnxRuntime> {
    let Some(path) = std::env::var_os("OPSCOPE_ENGINE_LIB") else {
        // Not by a macro, whose output a passing test keeps to itself.
        let _ = writeln!(std::io::stderr(), "skipped: OPSCOPE_ENGINE_LIB is not set");
        return None;
    };
    Some(OnnxRuntime::load(Path::new(&path)).unwrap())
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/models")
        .join(name)
}

fn load(engine: &OnnxRuntime, name: &str, n_threads: usize) -> Box<dyn LoadedModel> {
    let path = path(name);
    let options = LoadOptions::with_threads(n_threads);
    engine.load(ModelSource::File(&path), &options).unwrap()
}

fn inputs(model: &dyn LoadedModel) -> Vec<Tensor> {
    let mut random = RandomNumbers::new(1);
    let input = |value| {
        let given = Shape::new([1, 1, 32, 32]).unwrap();
        let shape = resolve_shape(value, Some(&given)).or_else(|_| resolve_shape(value, None));
        random.tensor(value, shape.unwrap()).unwrap()
    };
    model.signature().inputs.iter().map(input).collect()
}

/// The elements as numbers, whatever float they are.
fn numbers(tensor: &Tensor) -> Vec<f32> {
    let bytes = tensor.host_bytes().unwrap();
    match tensor.dtype() {
        DType::F32 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|&b| f32::from_le_bytes(b))
            .collect(),
        DType::F16 => {
            let number = |&b: &[u8; 2]| half::f16::from_le_bytes(b).to_f32();
            bytes.as_chunks().0.iter().map(number).collect()
        }
        other => panic!("{other}"),
    }
}

#[test]
fn results_are_those_of_the_python_package() {
    let Some(engine) = engine() else { return };
    let check = |name: &str, tolerance: f32| {
        let sample = npz::read_file(&path(&format!("{name}.sample.npz"))).unwrap();
        let of = |prefix: &str, name: &str| {
            let wanted = format!("{prefix}.{name}");
            let found = sample.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, tensor)| tensor.clone()).unwrap()
        };
        for n_threads in [1, 2] {
            let mut model = load(&engine, &format!("{name}.onnx"), n_threads);
            let signature = model.signature().clone();
            let inputs = signature.inputs.iter().map(|value| of("in", &value.name));
            let results = model.run(&inputs.collect::<Vec<_>>(), None).unwrap();
            assert_eq!(results.len(), signature.outputs.len());
            for (value, found) in signature.outputs.iter().zip(&results) {
                let expected = of("out", &value.name);
                assert_eq!(found.dtype(), expected.dtype());
                assert_eq!(found.shape(), expected.shape());
                // The sample is of another processor, whose sums may end in another digit.
                for (a, b) in numbers(found).iter().zip(numbers(&expected)) {
                    assert!(
                        (a - b).abs() <= tolerance * b.abs().max(1.0),
                        "{name}: {a} {b}"
                    );
                }
            }
        }
    };
    check("char_lm", 1e-4);
    check("shapes_cnn_f32", 1e-5);
    check("shapes_cnn_f16", 2e-3);
    check("shapes_cnn_qdq_int8", 0.05);
}

#[test]
fn however_a_model_comes_and_how_many_threads_there_are_it_computes_the_same() {
    let Some(engine) = engine() else { return };
    for name in [
        "light_squeezenet.onnx",
        "shapes_cnn_qdq_int8.onnx",
        "overflow_six.onnx",
    ] {
        let mut from_file = load(&engine, name, 1);
        let inputs = inputs(&*from_file);
        let expected = from_file.run(&inputs, None).unwrap();
        let path = path(name);
        let bytes = std::fs::read(&path).unwrap();
        let options = LoadOptions::with_threads(1);
        let part = ModelSource::Part {
            bytes: &bytes,
            path: &path,
        };
        for source in [ModelSource::Memory(&bytes), part] {
            let mut model = engine.load(source, &options).unwrap();
            let found = model.run(&inputs, None).unwrap();
            for (a, b) in expected.iter().zip(&found) {
                assert_eq!(a.host_bytes().unwrap(), b.host_bytes().unwrap(), "{name}");
            }
        }
    }
}

#[test]
fn the_operators_are_those_of_the_file() {
    let Some(engine) = engine() else { return };
    let model = load(&engine, "char_lm.onnx", 1);
    let task_ids: Vec<u32> = model.operators().iter().map(|o| o.task_id).collect();
    assert!(task_ids.is_sorted_by(|a, b| a < b));
    let is_constant = |name: &str| {
        model
            .description()
            .constants
            .iter()
            .any(|constant| constant == name)
    };
    for operator in model.operators() {
        assert!(!operator.op_name.is_empty());
        assert!(!operator.outputs.iter().any(|name| is_constant(name)));
    }
    assert_eq!(model.description().opsets, [(String::new(), 20)]);
    assert_eq!(model.signature().inputs[0].dtype, DType::I64);
}

#[test]
fn a_failing_operator_is_named() {
    let Some(engine) = engine() else { return };
    let mut model = load(&engine, "char_lm.onnx", 1);
    let ids: Vec<u8> = [3_i64, 99].iter().flat_map(|id| id.to_le_bytes()).collect();
    let ids = Tensor::from_vec(DType::I64, Shape::new([1, 2]).unwrap(), ids).unwrap();
    let error = model.run(&[ids], None).unwrap_err();
    let EngineError::Operator {
        op_type,
        op_name,
        reason,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(op_type, "Gather");
    let is_known = |name: &str| model.operators().iter().any(|o| o.op_name == name);
    assert!(is_known(op_name), "{op_name}");
    assert!(
        reason.starts_with("indices element out of data bounds, idx=99"),
        "{reason}"
    );
}

#[test]
fn providers_are_asked_for_by_name() {
    let Some(engine) = engine() else { return };
    let load = |providers: &[&str]| {
        let options = LoadOptions {
            providers: providers.iter().map(|&name| name.to_owned()).collect(),
            ..LoadOptions::with_threads(1)
        };
        let path = path("shapes_cnn_f32.onnx");
        engine.load(ModelSource::File(&path), &options)
    };
    assert!(load(&["cpu"]).is_ok());
    assert!(load(&["CPUExecutionProvider"]).is_ok());
    let refusal = |providers| load(providers).map(drop).unwrap_err().to_string();
    let unknown = refusal(&["abacus", "cpu"]);
    assert!(
        unknown.starts_with("ONNX Runtime failed: the library has no provider `abacus`; it has "),
        "{unknown}"
    );
    assert!(unknown.contains("`cpu`"), "{unknown}");
    assert_eq!(
        refusal(&["cpu", "abacus"]),
        "ONNX Runtime failed: `cpu` runs every operator, so that `abacus` after it would get none; \
         name it last"
    );
}

/// A model that was prepared for taps alone runs without them all the same, and is refused alike.
#[test]
fn models_that_are_watched_compute_the_same() {
    let Some(engine) = engine() else { return };
    let options = LoadOptions {
        is_watched: true,
        ..LoadOptions::with_threads(1)
    };
    for name in ["shapes_cnn_f32.onnx", "light_squeezenet.onnx"] {
        let mut plain = load(&engine, name, 1);
        let path = path(name);
        let mut watched = engine.load(ModelSource::File(&path), &options).unwrap();
        let [outputs, own] = [&plain, &watched].map(|model| model.signature().outputs.clone());
        assert_eq!(outputs.len(), own.len());
        let given = inputs(&*plain);
        for _ in 0..2 {
            let results = [&mut plain, &mut watched].map(|model| model.run(&given, None).unwrap());
            let [expected, found] = results.map(|all| {
                let bytes = all.iter().map(|one| one.host_bytes().unwrap().to_vec());
                bytes.collect::<Vec<_>>()
            });
            assert!(expected == found, "{name}");
        }
    }
    let refused = engine.load(ModelSource::Memory(b"no model"), &options);
    assert!(matches!(refused, Err(EngineError::Invalid { .. })));
}

#[test]
fn files_that_are_no_models_are_refused() {
    let Some(engine) = engine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let whole = std::fs::read(path("shapes_cnn_f32.onnx")).unwrap();
    let refusal = |bytes: &[u8]| {
        let path = dir.path().join("m.onnx");
        std::fs::write(&path, bytes).unwrap();
        let loaded = engine.load(ModelSource::File(&path), &LoadOptions::with_threads(1));
        loaded.map(drop).unwrap_err()
    };
    for bytes in [&b""[..], b"no model at all", &whole[..whole.len() / 2]] {
        assert!(matches!(refusal(bytes), EngineError::Invalid { .. }));
    }
    let missing = dir.path().join("missing.onnx");
    let loaded = engine.load(ModelSource::File(&missing), &LoadOptions::with_threads(1));
    assert!(matches!(loaded, Err(EngineError::Read { .. })));
}
