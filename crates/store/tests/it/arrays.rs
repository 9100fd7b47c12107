//! Directories of named arrays, read as dumps.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use opscope_store::file_format::npy::{descr, encode_header};
use opscope_store::file_format::safetensors::{NamedTensor, encode};
use opscope_store::reader::{
    DumpIndex, FileKind, FileRequest, StoredTensor, TensorFile, read_dump,
};
use opscope_store::record::SlotSide;
use opscope_tensor::{DType, Shape, TensorView, convert, text};

fn array(value: u8) -> Vec<u8> {
    let mut bytes = encode_header(DType::U8, &Shape::new([2]).unwrap()).unwrap();
    bytes.extend([value; 2]);
    bytes
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn npz(path: &Path, names: &[&str]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
    for (value, name) in (0..).zip(names) {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(&array(value)).unwrap();
    }
    zip.finish().unwrap();
}

fn safetensors(path: &Path, names: &[&str]) {
    let shape = Shape::new([2]).unwrap();
    let tensors: Vec<_> = names
        .iter()
        .map(|name| NamedTensor {
            name: (*name).to_owned(),
            dtype: DType::U8,
            shape: shape.clone(),
            bytes: &[1, 2],
        })
        .collect();
    let (header, data) = encode(&[], &tensors).unwrap();
    write(path, &[&header[..], &data.concat()].concat());
}

fn open(path: &Path) -> DumpIndex {
    read_dump(path, &mut |requests| {
        requests.iter().map(FileRequest::read_head).collect()
    })
    .unwrap()
}

/// Rank, step, operator, run and slot of each tensor.
fn found(index: &DumpIndex) -> Vec<String> {
    let tensors = index.tensors.iter().map(|tensor| {
        let execution = &tensor.execution;
        let slot = tensor.slot.map(|(side, n)| format!("{}.{n}", side.name()));
        format!(
            "{:?} {:?} {}{}#{} {}",
            execution.rank,
            execution.step,
            execution.op_type,
            execution.op_name,
            execution.run,
            slot.unwrap_or_default()
        )
    });
    tensors.collect()
}

#[test]
fn archives_and_arrays_become_executions() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    npz(
        &path("step_10/acts.npz"),
        &["conv1.output.0", "conv1.input.0", "relu"],
    );
    npz(&path("step_2/a.npz"), &["conv1/output.0"]);
    safetensors(
        &path("step_2/b.safetensors"),
        &["conv1/output.0", "conv1/output.1"],
    );
    write(&path("rank_1/iter_0/fc_output.npy"), &array(0));
    write(&path("notes.txt"), b"nothing");
    write(&path(".hidden"), b"");
    let index = open(dir.path());
    assert_eq!(
        found(&index),
        [
            "None Some(2) conv1#0 output.0",
            "None Some(2) conv1#0 output.1",
            "None Some(2) conv1#1 output.0",
            "None Some(10) conv1#0 input.0",
            "None Some(10) conv1#0 output.0",
            "None Some(10) relu#0 output.0",
            "Some(1) Some(0) fc#0 output.0",
        ]
    );
    assert_eq!((index.form, index.executions.len()), ("arrays", 5));
    assert_eq!((index.errors.len(), index.passed_over.len()), (1, 1));
    assert_eq!(index.files.len(), 5);
    let place = index.tensors[1].elements.as_ref().unwrap();
    assert_eq!(place.kind, Some(FileKind::Safetensors));
    assert!(place.offset.is_some());
}

#[test]
fn a_file_of_one_operator_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir
        .path()
        .join("Conv.conv1.3.0.1700000000000000.safetensors");
    safetensors(&file, &["input.0", "output.0"]);
    let expected = [
        "None None Convconv1#0 input.0",
        "None None Convconv1#0 output.0",
    ];
    assert_eq!(found(&open(&file)), expected);
    assert_eq!(found(&open(dir.path())), expected);
    assert_eq!(open(&file).tensors[0].task_id, Some(3));
}

#[test]
fn other_directories_are_not_taken() {
    let forms = |names: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            write(&dir.path().join(name), &array(0));
        }
        open(dir.path()).form
    };
    assert_eq!(forms(&["a.npy", "b.npy"]), "ascendcl");
    assert_eq!(forms(&["conv1.output.0.npy"]), "arrays");
    assert_eq!(forms(&["step_1/a.npy"]), "arrays");
    assert_eq!(
        forms(&["conv1.0.1700000000000000.npy", "b.output.npy"]),
        "ascendcl"
    );
    assert_eq!(forms(&["Add.a.1.0.5.output.0.npy", "x.npz"]), "ascendcl");
    assert_eq!(forms(&["Add.a.1.0.5", "b.output.npy"]), "ascendcl");
    let array = "Add.a.1.0.5.output.0.ND.float32.npy";
    assert_eq!(forms(&[array, "x.npz"]), "mindspore");
}

#[test]
fn damaged_archives_are_tensors_and_errors() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("a.npz"), b"PK");
    write(&dir.path().join("b.safetensors"), b"\x02\0\0\0\0\0\0\0[]");
    let index = open(dir.path());
    assert_eq!(index.errors.len(), 2);
    assert_eq!(found(&index).len(), 2);
    assert!(index.tensors.iter().all(|tensor| tensor.dtype.is_none()));
}

/// h5py and numpy wrote the same arrays: `tests/golden/hdf5/make.py`.
#[test]
fn datasets_are_what_numpy_reads() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hdf5");
    let read = |name: &str| TensorFile::open(&dir.join(name), name).unwrap();
    let (datasets, arrays) = (read("h5py.h5"), read("h5py.npz"));
    let known: HashMap<String, &StoredTensor> = arrays
        .tensors()
        .map(|stored| (stored.label(), stored))
        .collect();
    let mut unknown = Vec::new();
    for tensor in datasets.tensors() {
        let name = tensor.label();
        let Some(array) = known.get(&name) else {
            unknown.push(name);
            continue;
        };
        assert_eq!(tensor.dtype, array.dtype, "{name}");
        assert_eq!(tensor.shape, array.shape, "{name}");
        let bytes = datasets.elements(tensor).unwrap();
        let expected = arrays.elements(array).unwrap();
        assert_eq!(bytes.as_ref(), expected.as_ref(), "{name}");
    }
    assert_eq!(unknown, ["null", "text"]);
    assert_eq!(datasets.tensors().count(), known.len() + unknown.len());
    let slots = found(&open(&dir.join("h5py.h5")));
    for slot in ["input.0", "output.0", "output.1"] {
        assert!(
            slots.contains(&format!("None None relu/1#0 {slot}")),
            "{slots:?}"
        );
    }
    assert!(
        slots.contains(&"None None packed#0 output.0".to_owned()),
        "{slots:?}"
    );
}

/// The arrays that numpy read from the files that Polygraphy wrote:
/// `tests/peers/polygraphy_cases.py`.
#[test]
fn results_of_polygraphy_are_what_numpy_reads() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/polygraphy");
    let known = fs::read_to_string(dir.join("known.json")).unwrap();
    let known: serde_json::Value = serde_json::from_str(&known).unwrap();
    for (name, arrays) in known.as_object().unwrap() {
        let path = dir.join(name);
        let file_name = path.file_name().unwrap().to_str().unwrap();
        let file = TensorFile::open(&path, file_name).unwrap();
        assert_eq!(file.kind(), FileKind::PolygraphyJson);
        let index = open(&path);
        let arrays = arrays.as_array().unwrap();
        assert_eq!(
            [file.tensors().count(), index.tensors.len()],
            [arrays.len(); 2],
            "{name}"
        );
        for (stored, array) in file.tensors().zip(arrays) {
            let bytes = file.elements(stored).unwrap();
            let run = stored.run.as_ref().unwrap();
            let hex: String = bytes
                .as_ref()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let found = serde_json::json!({
                "runner": run.runner,
                "iteration": run.iteration,
                "name": stored.name,
                "dtype": descr(stored.dtype.value().unwrap()),
                "shape": stored.shape,
                "bytes": hex,
            });
            assert_eq!(&found, array, "{name}");
            let at = (stored.side, stored.index);
            let one = TensorFile::open_for(&path, file_name, Some(at)).unwrap();
            let alone = one.elements(one.tensor(at.0, at.1).unwrap()).unwrap();
            assert_eq!(alone.as_ref(), bytes.as_ref());
        }
    }
}

#[test]
fn runners_and_iterations_are_kept_apart() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/polygraphy");
    let places = |name: &str| -> Vec<String> {
        let index = open(&dir.join(name));
        assert_eq!((index.form, index.errors.len()), ("arrays", 0), "{name}");
        let executions = index.executions.iter().filter(|one| one.op_name != "half");
        let executions = executions.map(|one| {
            let runner = one.model.as_deref().map(|name| &name[..16]);
            format!("{runner:?} {:?} {}#{}", one.step, one.op_name, one.run)
        });
        executions.collect()
    };
    let runner = "Some(\"onnxrt-runner-N0\")";
    let expected = [
        "/fc/MatMul_output_0",
        "relu:0",
        "input.4",
        "shape",
        "left",
        "right",
        "output",
    ];
    assert_eq!(
        places("out.json"),
        expected.map(|name| format!("{runner} Some(0) {name}#0"))
    );
    assert_eq!(places("in2.json"), ["None Some(0) x#0", "None Some(1) x#0"]);
    assert_eq!(places("each_in"), ["None Some(0) x#0", "None Some(1) x#0"]);
    let each = places("each");
    assert_eq!(
        (each.len(), each[7].as_str()),
        (
            14,
            "Some(\"onnxrt-runner-N0\") Some(1) /fc/MatMul_output_0#0"
        )
    );
    let two = places("two.json");
    let is_of = |n: usize| {
        two.iter()
            .filter(|one| one.contains(&format!("N{n}")))
            .count()
    };
    assert_eq!([two.len(), is_of(0), is_of(1)], [28, 14, 14]);
    let file = TensorFile::open(&dir.join("two.json"), "two.json").unwrap();
    let label = file.tensors().last().unwrap().label();
    assert!(
        label.starts_with("onnxrt-runner-N1") && label.ends_with("/1/output"),
        "{label}"
    );
}

/// The tensors that onnx's package read from the files that it wrote:
/// `tests/peers/onnx_tensor_cases.py`.
#[test]
fn tensors_of_onnx_are_what_it_reads_itself() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/onnx_tensor");
    let known = fs::read_to_string(dir.join("known.json")).unwrap();
    let known: serde_json::Value = serde_json::from_str(&known).unwrap();
    for (name, expected) in known.as_object().unwrap() {
        let path = dir.join(name);
        let file = TensorFile::open(&path, path.file_name().unwrap().to_str().unwrap()).unwrap();
        assert_eq!(file.kind(), FileKind::TensorProto);
        let stored = file.tensor(SlotSide::Output, 0).unwrap();
        let bytes = file.elements(stored).unwrap();
        let (dtype, shape) = (
            stored.dtype.value().unwrap(),
            stored.element_shape().unwrap(),
        );
        let view = TensorView::new(dtype, &shape, bytes.as_ref());
        let values: serde_json::Value = if dtype == DType::String {
            let texts = text::iter(view).unwrap();
            texts.map(|one| str::from_utf8(one).unwrap()).collect()
        } else if dtype.bytes().is_none() {
            let decoded = convert::dtype::decode(dtype, &shape, bytes.as_ref()).unwrap();
            hex(decoded.bytes.iter().copied()).into()
        } else {
            hex(bytes.as_ref().iter().copied()).into()
        };
        let found = serde_json::json!({
            "name": stored.name.as_deref().unwrap_or_default(),
            "dtype": dtype.name(),
            "shape": stored.shape,
            "values": values,
        });
        assert_eq!(&found, expected, "{name}");
    }
}

fn hex(bytes: impl Iterator<Item = u8>) -> String {
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn values_of_onnx_are_operators() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/onnx_tensor");
    let cases: [(&str, &[&str]); 5] = [
        (
            "model",
            &[
                "None Some(0) x#0 output.0",
                "None Some(0) y#0 output.0",
                "None Some(1) x#0 output.0",
                "None Some(1) y#0 output.0",
            ],
        ),
        (
            "debug/plain",
            &[
                "None None /fc/MatMul_output_0#0 output.0",
                "None None größe#0 output.0",
                "None None input.4#0 output.0",
                "None None relu:0#0 output.0",
            ],
        ),
        (
            "debug/ranks",
            &[
                "Some(0) None /fc/MatMul_output_0#0 output.0",
                "Some(1) None /fc/MatMul_output_0#0 output.0",
            ],
        ),
        (
            "debug/default",
            &["None None /fc/MatMul_output_0#0 output.0"],
        ),
        ("no_name.pb", &["None None no_name#0 output.0"]),
    ];
    for (name, expected) in cases {
        let index = open(&dir.join(name));
        assert_eq!((index.form, index.errors.len()), ("arrays", 0), "{name}");
        assert_eq!(found(&index), expected, "{name}");
    }
    let index = open(&dir.join("external.pb"));
    assert!(
        format!("{:?}", index.errors).contains("weights.bin"),
        "{:?}",
        index.errors
    );
}

/// Databases that have the statements of ONNX Runtime's debug builds:
/// `tests/peers/ort_sqlite_cases.py`.
#[test]
fn databases_of_onnx_runtime_have_slots_of_nodes() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ort_trace");
    let path = dir.join("execution-trace-pid1.db");
    let index = open(&path);
    assert_eq!((index.form, index.errors.len()), ("arrays", 0));
    let slots = found(&index);
    // Nodes in the order in which they ran, and the value of one without a name behind them.
    let expected = [
        "None Some(0) MatMul/fc/MatMul#0 input.0",
        "None Some(0) MatMul/fc/MatMul#0 input.1",
        "None Some(0) MatMul/fc/MatMul#0 output.0",
        "None Some(0) Relurelu:0#0 input.0",
        "None Some(0) Relurelu:0#0 output.0",
        "None Some(0) Mul1#0 input.0",
        "None Some(0) Mul1#0 input.1",
        "None Some(0) Mul1#0 output.0",
    ];
    assert_eq!(slots[..8], expected);
    assert_eq!(slots.len(), 2 * 35);
    assert_eq!(slots[34], "None Some(0) sum#0 output.0");
    assert_eq!(slots[35], "None Some(1) MatMul/fc/MatMul#0 input.0");
    let file = TensorFile::open(&path, "execution-trace-pid1.db").unwrap();
    assert_eq!(file.kind(), FileKind::OrtTrace);
    for record in &index.tensors {
        let (side, position) = record.elements.as_ref().unwrap().tensor.unwrap();
        let alone = TensorFile::open_for(&path, "x", Some((side, position))).unwrap();
        let bytes_of = |file: &TensorFile| {
            let stored = file.tensor(side, position).unwrap();
            file.elements(stored).unwrap().as_ref().to_vec()
        };
        let bytes = bytes_of(&file);
        assert_eq!(bytes_of(&alone), bytes);
        let alone = alone.tensor(side, position).unwrap();
        assert_eq!(alone.shape.as_ref(), record.shape.as_ref(), "{record:?}");
        // Elements in one piece are read where they are.
        if record.elements.as_ref().unwrap().offset.is_some() {
            let in_place = TensorFile::open_elements(record).unwrap();
            let stored = in_place.tensors().next().unwrap();
            assert_eq!(in_place.elements(stored).unwrap().as_ref(), bytes);
        }
    }
}

#[test]
fn databases_are_known_by_their_tables() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ort_trace");
    let dir = tempfile::tempdir().unwrap();
    let put = |from: &str, name: &str| {
        fs::copy(golden.join(from), dir.path().join(name)).unwrap();
    };
    put("unfinished-pid3.db", "run-pid3.db");
    put("unfinished-pid3.db-journal", "run-pid3.db-journal");
    let index = open(dir.path());
    assert_eq!(
        (index.form, index.errors.len(), index.tensors.len()),
        ("arrays", 0, 14)
    );
    let reasons: Vec<&str> = index
        .passed_over
        .iter()
        .map(|one| one.reason.name())
        .collect();
    assert_eq!(reasons, ["journal"]);
    // Another database is no dump, and is reported.
    put("pages/small.db", "other.db");
    let index = open(dir.path());
    assert_eq!((index.errors.len(), index.tensors.len()), (1, 14));
    let error = std::error::Error::source(&index.errors[0]).unwrap();
    assert!(
        error.to_string().contains("expected the table `Tensors`"),
        "{error}"
    );
    // A file named by the user is read, whatever its name.
    put("outputs-pid2.db", "trace");
    let index = open(&dir.path().join("trace"));
    assert_eq!((index.errors.len(), index.tensors.len()), (0, 14));
    assert!(!found(&index).is_empty());
}
