//! Tests of the values that go in and come out.

use super::*;
use crate::onnx::ort::value::PAIRS;

/// From this 1.x on, a library has to know every dtype.
const MINOR_WITH_ALL: u32 = 31;

fn minor(engine: &OnnxRuntime) -> u32 {
    let version = engine.version().unwrap();
    version.split('.').nth(1).unwrap().parse().unwrap()
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
    odd.0[start..].copy_from_slice(tensor.host_bytes().unwrap());
    odd.1 = start;
    let odd = Tensor::new(tensor.dtype(), tensor.shape().clone(), Arc::new(odd)).unwrap();
    assert_eq!(odd.host_bytes().unwrap().as_ptr().addr() % 2, 1);
    odd
}

#[test]
fn elements_of_every_dtype_arrive_and_come_back() {
    let Some(engine) = engine() else { return };
    for &(dtype, _) in PAIRS {
        let Some(code) = (1..40).find(|&code| proto::dtype(code) == Some(dtype)) else {
            panic!("{dtype} has no number");
        };
        let is_young = matches!(dtype, DType::F8E8M0 | DType::F4E2M1 | DType::U2 | DType::I2);
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
            // What is a result as it is takes no kernel, which older libraries lack for young
            // dtypes.
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
            if is_young && loaded.is_err() {
                assert!(minor(&engine) < MINOR_WITH_ALL, "{dtype}");
                continue;
            }
            let mut model = loaded.unwrap();
            for given in [given.clone(), misaligned(&given)] {
                let results = model.run(&[given.clone(), floats(&[1.0])], None).unwrap();
                let (expected, place) = (
                    given.host_bytes().unwrap().to_vec(),
                    given.host_bytes().unwrap().as_ptr(),
                );
                drop(given);
                assert!(
                    n == 0 || results[0].host_bytes().unwrap().as_ptr() != place,
                    "{dtype}"
                );
                assert_eq!(results[0].dtype(), dtype);
                assert_eq!(results[0].shape().dims(), [n], "{dtype}");
                assert_eq!(results[0].host_bytes().unwrap(), expected, "{dtype}");
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
    let found: Vec<&[u8]> = text::iter(y.host_view().unwrap()).unwrap().collect();
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
    assert_eq!(
        first[0].host_bytes().unwrap(),
        floats(&[4.0, 6.0]).host_bytes().unwrap()
    );
    assert_eq!(
        first[1].host_bytes().unwrap(),
        floats(&[3.0, 4.0]).host_bytes().unwrap()
    );
    assert_eq!(
        second[0].host_bytes().unwrap(),
        floats(&[0.0, 0.0]).host_bytes().unwrap()
    );
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
        let is_named = error.to_string().contains("weights.bin");
        assert!(is_named || minor(&engine) < 21, "{error}");
    }
    std::fs::write(
        dir.path().join("weights.bin"),
        floats(&[3.0, 4.0]).host_bytes().unwrap(),
    )
    .unwrap();
    for source in [ModelSource::File(&path), part] {
        let loaded = engine.load(source, &options);
        if let Err(error) = &loaded
            && minor(&engine) < 21
        {
            let text = error.to_string();
            assert!(text.ends_with("; 1.21 or newer can"), "{text}");
            continue;
        }
        let mut model = loaded.unwrap();
        let y = model.run(&[floats(&[1.0, 2.0])], None).unwrap();
        assert_eq!(
            y[0].host_bytes().unwrap(),
            floats(&[4.0, 6.0]).host_bytes().unwrap()
        );
    }
}
