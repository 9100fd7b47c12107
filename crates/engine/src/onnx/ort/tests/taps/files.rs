//! Models in files, whose weights stay there.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use opscope_store::record::SlotSide;
use prost::bytes::Bytes;

use super::build::*;
use super::*;
use crate::onnx::schema::{DataLocation, StringStringEntryProto, TensorProto};

/// A weight of 64 rows of 64 numbers, each different.
fn weight(name: &str) -> TensorProto {
    let bytes: Vec<u8> = (0..64 * 64)
        .flat_map(|i| (i as f32 - 7.5).to_le_bytes())
        .collect();
    TensorProto {
        name: name.into(),
        dims: vec![64, 64],
        data_type: Some(FLOAT),
        raw_data: Some(Bytes::from(bytes)),
        ..TensorProto::default()
    }
}

/// The same weight, whose elements are in a file.
fn outside(name: &str, location: &str, offset: usize) -> TensorProto {
    let entry = |key: &str, value: String| StringStringEntryProto {
        key: key.into(),
        value,
    };
    TensorProto {
        raw_data: None,
        external_data: vec![
            entry("location", location.into()),
            entry("offset", offset.to_string()),
        ],
        data_location: Some(DataLocation::External as i32),
        ..weight(name)
    }
}

fn product(weight: TensorProto) -> ModelProto {
    let body = graph(
        &[],
        &[self::weight("inner")],
        &[node("MatMul", &["p", "inner"], &["q"])],
        &[value("q", FLOAT, 2)],
    );
    let nodes = [
        node("MatMul", &["x", "w"], &["p"]),
        node("If", &["yes"], &["y"])
            .body("then_branch", body.clone())
            .body("else_branch", body),
    ];
    let yes = TensorProto {
        name: "yes".into(),
        data_type: Some(BOOL),
        int32_data: vec![1],
        ..TensorProto::default()
    };
    model(graph(
        &[value("x", FLOAT, 2)],
        &[weight, yes],
        &nodes,
        &[value("y", FLOAT, 2)],
    ))
}

fn run(engine: &OnnxRuntime, path: &Path) -> (Vec<f32>, TapCapture) {
    let mut loaded = engine
        .load(ModelSource::File(path), &LoadOptions::with_threads(1))
        .unwrap();
    let x = tensor(&[1, 64], &[0.01; 64]);
    let plain = loaded.run(std::slice::from_ref(&x), None).unwrap();
    let captured = capture(&mut *loaded, &[x]);
    let outputs = captured.outputs.as_ref().unwrap();
    assert_eq!(
        outputs[0].host_bytes().unwrap(),
        plain[0].host_bytes().unwrap()
    );
    (f32s(&plain[0]), captured)
}

#[test]
fn weights_inside_and_outside_are_the_same() {
    let Some(engine) = engine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("inside.onnx");
    std::fs::write(&inside, bytes(&product(weight("w")))).unwrap();
    let folder = dir.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let elements = weight("w").raw_data.unwrap();
    std::fs::write(folder.join("data.bin"), [&[0; 5][..], &elements].concat()).unwrap();
    let beside = folder.join("beside.onnx");
    std::fs::write(&beside, bytes(&product(outside("w", "data.bin", 5)))).unwrap();
    // Links, to a model with all its weights and to one with external weights next to the link.
    let link = folder.join("link.onnx");
    std::os::unix::fs::symlink(&inside, &link).unwrap();
    let stray = dir.path().join("stray.onnx");
    std::fs::rename(&beside, &stray).unwrap();
    std::os::unix::fs::symlink(&stray, &beside).unwrap();
    let (expected, captured) = run(&engine, &inside);
    assert_eq!(names(&captured.records), ["MatMul_p", "MatMul_q", "If_y"]);
    for path in [&inside, &beside, &link] {
        let (found, captured) = run(&engine, path);
        assert_eq!(found, expected, "{}", path.display());
        for name in ["MatMul_p", "MatMul_q"] {
            assert_eq!(
                shown(&captured.records, name, SlotSide::Input, 1)
                    .host_bytes()
                    .unwrap(),
                elements
            );
        }
        assert_eq!(captured.counters.n_dropped, 0);
    }
}

#[test]
fn a_file_that_leads_out_of_the_folder_is_not_read() {
    let Some(engine) = engine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(dir.path().join("data.bin"), weight("w").raw_data.unwrap()).unwrap();
    let path = folder.join("m.onnx");
    std::fs::write(&path, bytes(&product(outside("w", "../data.bin", 0)))).unwrap();
    assert!(
        engine
            .load(ModelSource::File(&path), &LoadOptions::with_threads(1))
            .is_err()
    );
}

/// Two weights of 1.25 GiB each, of which all but the last rows are holes in a file.
#[test]
fn more_than_two_gibibytes() {
    let Some(engine) = engine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let n_bytes: u64 = 5 << 28;
    let mut file = std::fs::File::create(dir.path().join("data.bin")).unwrap();
    for end in [n_bytes, 2 * n_bytes] {
        file.seek(SeekFrom::Start(end - 4)).unwrap();
        file.write_all(&(end as f32).to_le_bytes()).unwrap();
    }
    let n_rows = (n_bytes / 4096) as i64;
    let large = |name: &str, offset: u64| TensorProto {
        dims: vec![n_rows, 1024],
        ..outside(name, "data.bin", offset as usize)
    };
    let nodes = [
        node("Gather", &["a", "i"], &["x"]),
        node("Gather", &["b", "i"], &["y"]),
    ];
    let results = [value("x", FLOAT, 2), value("y", FLOAT, 2)];
    let weights = [large("a", 0), large("b", n_bytes)];
    let model = model(graph(&[value("i", INT64, 1)], &weights, &nodes, &results));
    let path = dir.path().join("m.onnx");
    std::fs::write(&path, bytes(&model)).unwrap();
    let mut loaded = engine
        .load(ModelSource::File(&path), &LoadOptions::with_threads(1))
        .unwrap();
    let plan = Plan {
        sides: opscope_capture::SlotSides::Outputs,
        ..Plan::everything()
    };
    let inputs = [numbers(&[1], &[n_rows - 1])];
    let plain = loaded.run(&inputs, None).unwrap();
    let captured = capture_by(plan, &mut *loaded, &inputs);
    let outputs = match captured.outputs {
        Ok(outputs) => outputs,
        // Libraries before 1.21 have to be handed the weights.
        Err(error) => {
            assert!(engine.version().unwrap().starts_with("1.20."), "{error}");
            assert!(
                error.to_string().contains("from ONNX Runtime 1.21 on"),
                "{error}"
            );
            return;
        }
    };
    assert_eq!(
        outputs[1].host_bytes().unwrap(),
        plain[1].host_bytes().unwrap()
    );
    for (name, end) in [("Gather_x", n_bytes), ("Gather_y", 2 * n_bytes)] {
        let row = f32s(shown(&captured.records, name, SlotSide::Output, 0));
        assert_eq!((row[0], row[1023]), (0.0, end as f32));
    }
}
