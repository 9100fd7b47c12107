use std::path::Path;

use opscope_store::atomic_file::PermissionModes;
use opscope_store::reader::{TensorFile, read_dump};
use opscope_tensor::{DType, Shape};

use super::*;
use crate::sink::NativeSink;

fn tensor(values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor::from_vec(DType::F32, Shape::new([values.len()]).unwrap(), bytes).unwrap()
}

fn record(step: u64, task_id: u32, time: u64, input: &Tensor, output: &Tensor) -> Record {
    Record {
        model: Arc::new(ModelId::first_load("m", "g")),
        operator: Arc::new(Operator {
            task_id,
            op_type: "Relu".into(),
            op_name: format!("relu{task_id}"),
            ..Operator::default()
        }),
        step,
        timestamp_us: time,
        inputs: vec![(0, input.clone())],
        outputs: vec![(0, output.clone())],
    }
}

/// Two steps of three operators, one of which runs twice, as writers may report them.
fn records() -> Vec<Record> {
    let [a, b, c] = [&[1.0, -2.0][..], &[f32::NAN, -0.0, 3.0], &[]].map(tensor);
    vec![
        record(1, 0, 50, &a, &b),
        record(0, 1, 20, &b, &c),
        record(0, 0, 10, &a, &b),
        record(0, 1, 30, &c, &a),
        record(1, 2, 70, &b, &a),
    ]
}

/// The tensors of an index with their elements, without what tells where those are.
fn read(index: DumpIndex) -> Vec<(IndexedTensor, Vec<u8>)> {
    let tensors = index.tensors.into_iter().map(|mut tensor| {
        let file = TensorFile::open_elements(&tensor).unwrap();
        let bytes = file.elements(file.tensors().next().unwrap()).unwrap();
        let bytes = bytes.as_ref().to_vec();
        tensor.path = Path::new("").into();
        tensor.held = None;
        if let Some(place) = &mut tensor.elements {
            place.offset = None;
            place.real_name = SharedText::default();
        }
        tensor.statistics = Default::default();
        (tensor, bytes)
    });
    tensors.collect()
}

#[test]
fn a_held_dump_reads_as_one_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let times = ["20240102030405".to_owned()];
    let native = NativeSink::create(dir.path(), times, PermissionModes::default()).unwrap();
    for record in records() {
        native.write(&record).unwrap();
    }
    native.finish().unwrap();
    let on_disk = read(read_dump(dir.path(), &mut |_| Vec::new()).unwrap());
    assert_eq!(on_disk.len(), 10);
    // In memory, in a file, and in part in either.
    for (bytes_max, expected) in [(u64::MAX, [20, 0]), (0, [0, 76]), (8, [8, 12])] {
        let room = Arc::new(HeldRoom::new(bytes_max));
        let held = HeldDump::new(room.clone());
        for record in records() {
            held.write(&record).unwrap();
        }
        let index = held.take_index(Vec::new());
        assert_eq!(index.executions.len(), 5);
        assert_eq!(read(index), on_disk, "{bytes_max}");
        // Each of the three contents takes its room once.
        assert_eq!(room.n_bytes(), expected, "{bytes_max}");
        assert!(held.take_index(Vec::new()).tensors.is_empty());
    }
}

#[test]
fn what_has_no_elements_is_refused() {
    let tensor = tensor(&[1.0]).without_elements();
    let held = HeldDump::new(Arc::new(HeldRoom::new(u64::MAX)));
    assert!(held.hold(&tensor).is_err());
    assert!(held.hold(&tensor).is_err());
}

#[test]
fn writers_of_one_tensor_hold_it_once() {
    // In memory, and in a file, where the second writer has time to come too.
    for (bytes_max, expected) in [(u64::MAX, [1 << 20, 0]), (0, [0, 1 << 20])] {
        let room = Arc::new(HeldRoom::new(bytes_max));
        let held = HeldDump::new(room.clone());
        let tensor = tensor(&[1.0; 1 << 18]);
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    held.hold(&tensor).unwrap();
                });
            }
        });
        assert_eq!(room.n_bytes(), expected, "{bytes_max}");
    }
}
