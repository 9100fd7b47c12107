//! Files of `torch.save`, against what torch itself reads of them:
//! `tests/peers/torch_save_cases.py`.

use std::io::Write;
use std::path::{Path, PathBuf};

use opscope_store::file_format::torch_save;
use opscope_store::file_parts::FileParts;
use opscope_store::reader::{
    DumpIndex, FileContent, FileExpectation, FileKind, FileRequest, TensorFile, read_dump,
};
use opscope_store::record::SlotSide;
use serde_json::{Value, json};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/torch_save")
}

fn known(part: &str) -> serde_json::Map<String, Value> {
    let known = std::fs::read_to_string(golden().join("known.json")).unwrap();
    let known: Value = serde_json::from_str(&known).unwrap();
    known[part].as_object().unwrap().clone()
}

fn open(path: &Path) -> DumpIndex {
    read_dump(path, &mut |requests| {
        requests.iter().map(FileRequest::read_head).collect()
    })
    .unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Name, dtype, shape and elements of each tensor.
fn facts(file: &TensorFile) -> Value {
    let tensors = file.tensors().map(|stored| {
        json!({
            "name": stored.name.clone().unwrap_or_default(),
            "dtype": stored.dtype.to_string(),
            "shape": stored.shape,
            "values": hex(file.elements(stored).unwrap().as_ref()),
        })
    });
    tensors.collect()
}

#[test]
fn tensors_are_what_torch_reads() {
    for (name, expected) in known("tensors") {
        let path = golden().join(&name);
        let file = TensorFile::open(&path, &name).unwrap();
        assert_eq!(file.kind(), FileKind::TorchSave, "{name}");
        assert_eq!(facts(&file), expected, "{name}");
        let request = FileRequest {
            path: path.clone(),
            real_name: name.clone(),
            expectation: FileExpectation::Tensors,
        };
        let FileContent::Tensors(head) = request.read_head().unwrap() else {
            panic!("{name} is a table");
        };
        assert_eq!(head.tensors.len(), expected.as_array().unwrap().len());
        let whole = std::fs::read(&path).unwrap();
        for (index, described) in head.tensors.iter().enumerate() {
            let alone = TensorFile::open_for(&path, &name, Some((SlotSide::Output, index)));
            let alone = alone.unwrap();
            assert_eq!(facts(&alone)[0], expected[index], "{name} {index}");
            let one = alone.tensor(SlotSide::Output, index).unwrap();
            assert_eq!(
                (&one.dtype, one.n_bytes, one.offset),
                (&described.dtype, described.n_bytes, described.offset),
                "{name} {index}"
            );
            if let Some(offset) = one.offset {
                let start = offset as usize;
                assert_eq!(
                    whole[start..start + one.n_bytes as usize],
                    *alone.elements(one).unwrap().as_ref(),
                    "{name} {index}"
                );
            }
        }
    }
}

#[test]
fn what_is_no_plain_data_is_an_error() {
    for (name, expected) in known("errors") {
        let path = golden().join("hostile").join(&name);
        let index = open(&path);
        let expected = expected.as_str().unwrap();
        let errors = format!("{:?}", index.errors);
        assert!(errors.contains(expected), "{name}: {errors}");
        assert_eq!(index.errors.len(), 1, "{name}");
        assert!(
            index.tensors.iter().all(|tensor| tensor.dtype.is_none()),
            "{name}"
        );
        assert!(TensorFile::open(&path, &name).is_err(), "{name}");
    }
}

#[test]
fn every_cut_and_flip_is_read_or_refused() {
    for name in ["views.pt", "plain.pth", "quantised.pt", "unread.pt"] {
        let whole = std::fs::read(golden().join(name)).unwrap();
        for n in (0..whole.len()).step_by(61) {
            assert!(
                torch_save::decode(&whole[..n].to_vec().into()).is_err(),
                "{name} {n}"
            );
        }
        let step = if cfg!(debug_assertions) { 13 } else { 1 };
        for at in (0..whole.len()).step_by(step) {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] ^= flip;
                let parts = FileParts::from(damaged.clone());
                for tensor in torch_save::decode(&parts).unwrap_or_default().tensors {
                    let read = tensor.read(&parts);
                    assert!(read.is_err() || read.unwrap().len() == tensor.n_bytes());
                    let place = tensor.place();
                    assert!(place.is_none_or(|range| damaged.get(range).is_some()));
                }
            }
        }
    }
}

/// A file with one storage of four bytes and these tensors of it: extents as opcodes.
fn expanded(path: &Path, extents: &[&[u8]]) {
    let mut pickle = b"\x80\x02]q\0(".to_vec();
    for extents in extents {
        pickle.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage");
        pickle.extend(b"ctorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x01tQK\0");
        pickle.extend(*extents);
        pickle.extend(b"K\0K\0\x86\x89ccollections\nOrderedDict\n)RtR");
    }
    pickle.extend(b"e.");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    let members = [
        ("a/data.pkl", &pickle[..]),
        ("a/data/0", &[0, 0, 0x80, 0x3f]),
    ];
    for (name, content) in members {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        zip.start_file(name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap();
}

#[test]
fn few_bytes_do_not_stand_for_many() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("expanded.pt");
    let small: &[u8] = b"K\x02K\x03\x86";
    let large: &[u8] = b"M\0\x10M\0\x10\x86";
    let huge: &[u8] = b"J\0\0\0\x40J\0\0\0\x40\x86";
    expanded(&path, &[small, small]);
    let file = TensorFile::open(&path, "expanded.pt").unwrap();
    assert_eq!(
        hex(file
            .elements(file.tensors().nth(1).unwrap())
            .unwrap()
            .as_ref()),
        "0000803f".repeat(6)
    );
    // The last ones are too large each, or only together.
    for extents in [&[huge][..], &[small, huge], &[large, large]] {
        expanded(&path, extents);
        let error = format!("{:?}", TensorFile::open(&path, "expanded.pt").err());
        let is_refused = ["tensors of at most", "the shape"];
        assert!(
            is_refused.iter().any(|text| error.contains(text)),
            "{error}"
        );
    }
    let one = TensorFile::open_for(&path, "expanded.pt", Some((SlotSide::Output, 1)));
    assert_eq!(one.unwrap().tensors().next().unwrap().n_bytes, 1 << 26);
}

#[test]
fn files_and_directories_are_dumps_of_named_arrays() {
    let found = |path: &Path| {
        let index = open(path);
        assert_eq!(index.form, "arrays", "{}", path.display());
        let tensors = index.tensors.iter().map(|tensor| {
            let (side, position) = tensor.slot.unwrap();
            let op_name = &tensor.execution.op_name;
            format!("{op_name} {}.{position}", side.name())
        });
        tensors.collect::<Vec<_>>()
    };
    let cases: [(&str, &[&str]); 4] = [
        ("one.pt", &["one output.0"]),
        ("conv1.output.1.pt", &["conv1 output.1"]),
        ("pytorch_model.bin", &["weight output.0", "bias output.0"]),
        (
            "same_names.pt",
            &[
                "[\"a\"][\"b\"] output.0",
                "[\"a\"][\"c\"][0] output.0",
                "[\"a.b\"] output.0",
                "[\"a.c.0\"] output.0",
                "d output.0",
            ],
        ),
    ];
    for (name, expected) in cases {
        assert_eq!(found(&golden().join(name)), expected, "{name}");
    }
    let plain = found(&golden().join("plain.pth"));
    assert_eq!(
        plain.get(..3).unwrap(),
        ["0.conv1 input.0", "0.conv1 input.1", "0.conv1 output.0"]
    );
    let dir = tempfile::tempdir().unwrap();
    let step = dir.path().join("step_3");
    std::fs::create_dir(&step).unwrap();
    for name in ["one.pt", "pytorch_model.bin"] {
        std::fs::copy(golden().join(name), step.join(name)).unwrap();
    }
    std::fs::write(step.join("raw.bin"), [7; 12]).unwrap();
    let index = open(dir.path());
    assert_eq!((index.form, index.errors.len()), ("arrays", 1));
    assert_eq!(index.tensors.len(), 3);
    assert!(
        index
            .tensors
            .iter()
            .all(|tensor| tensor.execution.step == Some(3))
    );
}

#[test]
fn what_is_written_here_is_read() {
    use opscope_tensor::DType;
    for (dtype, bytes) in [(DType::F32, vec![1; 24]), (DType::U16, vec![2; 12])] {
        let mut file = std::io::Cursor::new(Vec::new());
        torch_save::write(&mut file, dtype, &[2, 3], &bytes).unwrap();
        let file = FileParts::from(file.into_inner());
        let found = torch_save::decode(&file).unwrap().tensors;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].read(&file).unwrap(), bytes);
        assert_eq!(
            (found[0].name.as_str(), found[0].shape.dims()),
            ("", &[2, 3][..])
        );
    }
}
