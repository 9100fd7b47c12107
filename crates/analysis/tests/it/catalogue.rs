//! DumpIndexs of dumps: files of every format next to each other, in order.

use std::fs;
use std::path::{Path, PathBuf};

use opscope_analysis::elements::{ElementsAccess, ElementsError, NumpyArray, stats_of};
use opscope_analysis::{describe, read_dump};
use opscope_store::StoreError;
use opscope_store::file_format::nano::{NanoHeader, NanoOriginal, NanoTensor};
use opscope_store::file_format::npy::encode_header;
use opscope_store::reader::{DumpIndex, ExecutionKind, IndexedTensor};
use opscope_store::record::SlotSide;
use opscope_tensor::{DType, Shape};

fn golden(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/cann")
        .join(part)
}

fn open(path: &Path) -> DumpIndex {
    read_dump(path, 2).unwrap()
}

fn bytes(item: &IndexedTensor) -> Vec<u8> {
    NumpyArray::decoded(item, None, ElementsAccess::Read)
        .unwrap()
        .bytes()
        .to_vec()
}

#[test]
fn every_dump_file_is_listed_as_it_is_described() {
    let dir = golden("dumps");
    let catalogue = open(&dir);
    assert!(catalogue.errors.is_empty());
    let mut n_items = 0;
    for path in fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()) {
        let described = describe::file(&path).unwrap();
        let items: Vec<&IndexedTensor> = catalogue
            .tensors
            .iter()
            .filter(|i| *i.path == *path)
            .collect();
        n_items += items.len();
        let is_record = items
            .iter()
            .any(|i| i.execution.kind == ExecutionKind::OverflowRecord);
        assert_eq!(is_record, !described.records.is_empty(), "{path:?}");
        if is_record {
            continue;
        }
        assert_eq!(items.len(), described.tensors.len(), "{path:?}");
        for (item, tensor) in items.iter().zip(&described.tensors) {
            let (side, index) = item.slot.unwrap();
            assert_eq!(format!("{}.{index}", side.name()), tensor.slot);
            assert_eq!(item.dtype.as_ref(), Some(&tensor.stored.dtype));
            assert_eq!(item.layout.as_ref(), Some(&tensor.stored.layout));
            assert_eq!(item.shape.as_ref(), Some(tensor.dims().to_vec()).as_ref());
            assert_eq!(item.n_bytes, Some(tensor.stored.n_bytes));
            let name = Some(&described.facts.op_name).filter(|name| !name.is_empty());
            assert!(name.is_none_or(|name| *name == item.execution.op_name));
        }
    }
    assert_eq!(n_items, catalogue.tensors.len());
}

#[test]
fn damaged_files_are_items_and_errors() {
    let catalogue = open(&golden("invalid"));
    assert!(!catalogue.errors.is_empty());
    for error in &catalogue.errors {
        let StoreError::Corrupt { path, source, .. } = error else {
            panic!("{error}");
        };
        let item = catalogue
            .tensors
            .iter()
            .find(|i| *i.path == **path)
            .unwrap();
        assert_eq!((&item.dtype, &item.shape, item.slot), (&None, &None, None));
        let Err(read) = NumpyArray::decoded(item, None, ElementsAccess::Read) else {
            panic!("{path:?} was read");
        };
        assert_eq!(read.format_error(), Some(source));
    }
}

#[test]
fn formats_stand_beside_each_other_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let step = dir.path().join("20240102030405/3/net/1/10");
    let alone = dir.path().join("20240102030405/3");
    fs::create_dir_all(&step).unwrap();
    let shape = Shape::new([2]).unwrap();
    let array = [&encode_header(DType::U8, &shape).unwrap()[..], &[7, 8]].concat();
    for name in [
        "Add.a.2.0.5.output.10.npy",
        "Add.a.2.0.5.output.9.npy",
        "weights.npy",
    ] {
        fs::write(step.join(name), &array).unwrap();
    }
    let nano = NanoHeader {
        version: 1,
        inputs: Vec::new(),
        outputs: vec![NanoTensor {
            data_type: 4,
            format: 2,
            original: Some(NanoOriginal::default()),
            size: 2,
            shape: vec![2],
            ..NanoTensor::default()
        }],
    };
    let nano = [nano.encode(), vec![5, 6]].concat();
    fs::write(step.join("Mul.m.1.0.9"), nano).unwrap();
    let text = "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value\nOutput,0,4,DT_FLOAT,ND,1,NA\n";
    fs::write(alone.join("Sub.s.65535.65535.4.csv"), text).unwrap();
    fs::write(step.join("notes.txt"), "nothing").unwrap();

    let catalogue = open(dir.path());
    assert_eq!(catalogue.errors.len(), 1, "{:?}", catalogue.errors);
    let found: Vec<_> = catalogue
        .tensors
        .iter()
        .map(|i| {
            (
                i.execution.op_type.as_str(),
                i.execution.op_name.as_str(),
                i.slot,
                i.execution.model_step(),
                i.execution.rank,
            )
        })
        .collect();
    let output = |index| Some((SlotSide::Output, index));
    assert_eq!(
        found,
        [
            ("Sub", "s", output(0), None, Some(3)),
            ("Mul", "m", output(0), Some(10), Some(3)),
            ("Add", "a", output(9), Some(10), Some(3)),
            ("Add", "a", output(10), Some(10), Some(3)),
            ("", "weights", None, Some(10), Some(3)),
        ]
    );
    let items = &catalogue.tensors;
    assert_eq!(
        (bytes(&items[1]), bytes(&items[2])),
        (vec![5, 6], vec![7, 8])
    );
    assert!(matches!(
        NumpyArray::decoded(&items[0], None, ElementsAccess::Mapped),
        Err(ElementsError::NoElements)
    ));
    let cells: Vec<_> = items[0].statistics.iter().collect();
    assert_eq!(cells, [("Max Value", None)]);
    assert_eq!(stats_of(&items[1]).unwrap().sum, 11.0);
}

#[test]
fn what_is_not_there_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let error = read_dump(&dir.path().join("absent"), 1).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }));
    assert!(open(dir.path()).tensors.is_empty());
}
