//! Files that another program truncates while they are open.

use std::fs::{self, File};
use std::io::Cursor;
use std::ops::Range;

use opscope_store::file_format::dump_data::{DumpHeader, TensorEntry, with_length};
use opscope_store::file_format::{npy, safetensors, torch_save};
use opscope_store::reader::TensorFile;
use opscope_tensor::{DType, Shape};

const N_BYTES: usize = 1 << 20;

/// Names and contents of files with the same tensor, larger than the part that opening reads.
fn files(elements: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let shape = Shape::new([N_BYTES / 4]).unwrap();
    let array = npy::encode_header(DType::F32, &shape).unwrap();
    let header = DumpHeader {
        version: "2.0".to_owned(),
        outputs: vec![TensorEntry {
            data_type: 1,
            shape: Some(vec![N_BYTES as u64 / 4]),
            size: N_BYTES as u64,
            ..TensorEntry::default()
        }],
        ..DumpHeader::default()
    };
    let tensor = safetensors::NamedTensor {
        name: "a".to_owned(),
        dtype: DType::F32,
        shape,
        bytes: elements,
    };
    let (archive, data) = safetensors::encode(&[], &[tensor]).unwrap();
    let mut torch = Cursor::new(Vec::new());
    torch_save::write(&mut torch, DType::F32, &[N_BYTES / 4], elements).unwrap();
    vec![
        ("a.npy", [&array[..], elements].concat()),
        (
            "Relu.a.1.0.1",
            [&with_length(&header)[..], elements].concat(),
        ),
        ("a.safetensors", [&archive[..], &data.concat()].concat()),
        ("a.pt", torch.into_inner()),
    ]
}

#[test]
fn a_truncated_file_is_an_error() {
    let elements: Vec<u8> = (0..N_BYTES).map(|i| (i % 251) as u8).collect();
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files(&elements) {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        let file = TensorFile::open(&path, name).unwrap();
        let stored = file.tensors().next().unwrap();
        let end: Range<usize> = N_BYTES - 100..N_BYTES;
        let read = file.elements(stored).unwrap();
        let part = file.elements_part(stored, end.clone()).unwrap();
        let truncated = File::options().write(true).open(&path).unwrap();
        truncated.set_len(1000).unwrap();
        // The elements that were read stay as they were; a mapping would raise SIGBUS here.
        assert!(read.as_ref() == elements, "{name}");
        assert!(part.as_ref() == &elements[end.clone()], "{name}");
        for result in [file.elements(stored), file.elements_part(stored, end)] {
            let error = result.err().map(|error| format!("{error:?}")).unwrap();
            assert!(error.contains("truncated or replaced"), "{name}: {error}");
        }
    }
}
