//! Converting a directory: arrays, structure, long names, damaged files.

use std::fs;
use std::path::Path;

use opscope_analysis::overview::Overview;
use opscope_analysis::{convert, describe, read_whole};
use opscope_store::atomic_file::PermissionModes;
use opscope_store::dump;
use opscope_store::file_format::dump_data::{DumpHeader, TensorEntry};
use opscope_store::file_format::npy;
use opscope_tensor::DType;

/// Dtype number, shape and bytes of an output.
type Output = (u32, Option<Vec<u64>>, Vec<u8>);

fn dump_file(entries: &[Output]) -> Vec<u8> {
    let outputs = entries
        .iter()
        .map(|(data_type, shape, bytes)| TensorEntry {
            data_type: *data_type,
            format: 2,
            shape: shape.clone(),
            size: bytes.len() as u64,
            ..TensorEntry::default()
        })
        .collect();
    let header = DumpHeader {
        version: "2.0".into(),
        outputs,
        ..DumpHeader::default()
    }
    .encode();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    entries.iter().for_each(|(_, _, bytes)| file.extend(bytes));
    file
}

fn run(dump: &Path, out: &Path, is_replacing: bool) -> convert::ConvertReport {
    run_as(convert::ConvertedForm::Npy, dump, out, is_replacing)
}

fn run_as(
    kind: convert::ConvertedForm,
    dump: &Path,
    out: &Path,
    is_replacing: bool,
) -> convert::ConvertReport {
    let convert::FoundSources {
        sources, errors, ..
    } = convert::sources(dump);
    assert!(errors.is_empty());
    let options = convert::ConversionOptions {
        out: out.to_owned(),
        kind,
        relayout: None,
        compression: None,
        pick: None,
        n_threads: 3,
        modes: PermissionModes::default(),
        is_replacing,
    };
    convert::run(&sources, &options, |_| {}).unwrap()
}

#[test]
fn a_tree_keeps_its_structure_and_loses_nothing_to_a_bad_file() {
    let dir = tempfile::tempdir().unwrap();
    let (dump, out) = (dir.path().join("dump"), dir.path().join("out"));
    fs::create_dir_all(dump.join("0/1")).unwrap();
    let scalar = (1, Some(vec![]), 1.5_f32.to_le_bytes().to_vec());
    let unshaped = (4, None, vec![7]);
    let brain = (27, Some(vec![2]), vec![0x80, 0x3f, 0, 0xc0]);
    let padded = (4, Some(vec![2]), vec![1, 2, 9, 9]);
    let file = dump_file(&[scalar, unshaped, brain, padded]);
    fs::write(dump.join("0/1/Add.a.1.0.100"), &file).unwrap();
    fs::write(dump.join("0/1/Add.b.2.0.100"), &file[..file.len() - 1]).unwrap();
    fs::write(
        dump.join("0/1/Add.c.3.0.100"),
        dump_file(&[(99, None, vec![1])]),
    )
    .unwrap();
    fs::write(
        dump.join("0/1/Add.d.4.0.100"),
        dump_file(&[(1, Some(vec![3]), vec![0; 8])]),
    )
    .unwrap();
    let long = format!("Add.{}.5.0.100", "x".repeat(300));
    fs::write(dump.join("0/77"), dump_file(&[(4, Some(vec![1]), vec![5])])).unwrap();
    fs::write(dump.join("0/mapping.csv"), format!("77,{long}\n")).unwrap();

    let report = run(&dump, &out, false);
    assert_eq!((report.n_converted, report.n_arrays), (2, 5));
    let failures: Vec<String> = report
        .failures
        .iter()
        .map(|f| format!("{:?} {}", f.path.file_name().unwrap(), f.error))
        .collect();
    assert_eq!(failures.len(), 3, "{failures:?}");

    let read = |name: &str| npy::read_file(&out.join("0/1").join(name)).unwrap();
    assert_eq!(
        read("Add.a.1.0.100.output.0.npy").shape().dims(),
        [] as [usize; 0]
    );
    assert_eq!(read("Add.a.1.0.100.output.1.npy").shape().dims(), [1]);
    let brain = read("Add.a.1.0.100.output.2.npy");
    assert_eq!(
        (brain.dtype(), brain.host_bytes().unwrap().len()),
        (DType::F32, 8)
    );
    assert_eq!(
        read("Add.a.1.0.100.output.3.npy").host_bytes().unwrap(),
        [1, 2]
    );

    let mapping = fs::read_to_string(out.join("0/mapping.csv")).unwrap();
    let (short, full) = mapping.trim_end().split_once(',').unwrap();
    assert_eq!(full, format!("{long}.output.0.npy"));
    assert!(out.join("0").join(short).is_file());
}

/// Reads a tensor of a safetensors file: dtype, shape and bytes.
fn safetensor(file: &[u8], name: &str) -> (String, Vec<u64>, Vec<u8>) {
    let (length, rest) = file.split_first_chunk::<8>().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    assert_eq!(header.len() % 8, 0);
    let header: serde_json::Value = serde_json::from_slice(header).unwrap();
    let entry = &header[name];
    let numbers = |key: &str| -> Vec<u64> {
        let list = entry[key].as_array().unwrap();
        list.iter().map(|n| n.as_u64().unwrap()).collect()
    };
    let ends = numbers("data_offsets");
    let dtype = entry["dtype"].as_str().unwrap().to_owned();
    let bytes = data[ends[0] as usize..ends[1] as usize].to_vec();
    (dtype, numbers("shape"), bytes)
}

#[test]
fn safetensors_keep_dtypes_and_leave_out_what_has_no_value() {
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("Add.a.1.0.100");
    let out = dir.path().join("out");
    let file = dump_file(&[
        (27, Some(vec![1, 2]), vec![0x80, 0x3f, 0, 0xc0]),
        (35, Some(vec![3]), vec![1, 0x7f, 0x80]),
        (28, Some(vec![3]), vec![0xf1, 0x08]),
        (17, Some(vec![1]), vec![0; 16]),
        (13, Some(vec![1]), vec![1]),
        (1, Some(vec![]), 1.5_f32.to_le_bytes().to_vec()),
    ]);
    fs::write(&dump, file).unwrap();
    let report = run_as(convert::ConvertedForm::Safetensors, &dump, &out, true);
    assert_eq!((report.n_arrays, report.failures.len()), (5, 1));
    let file = fs::read(out.join("Add.a.1.0.100.safetensors")).unwrap();
    for (name, dtype, dims, bytes) in [
        ("output.0", "BF16", &[1, 2][..], vec![0x80, 0x3f, 0, 0xc0]),
        ("output.1", "F8_E4M3", &[3], vec![1, 0x7f, 0x80]),
        ("output.2", "I8", &[3], vec![1, 0xff, 0xf8]),
        ("output.3", "F64", &[1, 2], vec![0; 16]),
        ("output.5", "F32", &[], 1.5_f32.to_le_bytes().to_vec()),
    ] {
        let expected = (dtype.to_owned(), dims.to_vec(), bytes);
        assert_eq!(safetensor(&file, name), expected, "{name}");
    }
}

#[test]
fn existing_arrays_are_replaced_only_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("Add.a.1.0.100");
    let out = dir.path().join("out");
    fs::write(&dump, dump_file(&[(4, Some(vec![1]), vec![5])])).unwrap();
    assert_eq!(run(&dump, &out, false).n_arrays, 1);
    let again = run(&dump, &out, false);
    assert_eq!((again.n_arrays, again.failures.len()), (0, 1));
    assert_eq!(run(&dump, &out, true).n_arrays, 1);
}

#[test]
fn descriptions_and_overviews() {
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = [f32::NAN, 2.0, f32::INFINITY]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    for step in ["0", "1"] {
        fs::create_dir(dir.path().join(step)).unwrap();
        let file = dump_file(&[
            (1, Some(vec![3]), bytes.clone()),
            (13, Some(vec![1]), vec![1]),
        ]);
        fs::write(dir.path().join(step).join("Log.a.1.0.100"), file).unwrap();
        fs::write(dir.path().join(step).join("note.txt"), "no dump file").unwrap();
    }
    let description = describe::file(&dir.path().join("0/Log.a.1.0.100")).unwrap();
    let tensor = &description.tensors[0];
    assert_eq!(
        (
            tensor.slot.as_str(),
            tensor.stored.dtype.to_string().as_str()
        ),
        ("output.0", "float32")
    );
    assert_eq!(
        (tensor.non_finite.n_nan, tensor.non_finite.n_pos_inf),
        (1, 1)
    );
    let first: Vec<String> = tensor.first.iter().map(ToString::to_string).collect();
    assert_eq!(first, ["nan", "2", "inf"]);
    assert!(
        description.tensors[1]
            .problem
            .as_ref()
            .unwrap()
            .contains("takes 16 bytes or more, found 1")
    );

    let index = read_whole(dump::list(dir.path()), 2);
    let overview = Overview::new(dir.path(), &index);
    assert_eq!(
        (
            overview.n_files,
            overview.operators.len(),
            index.errors.len()
        ),
        (2, 1, 2)
    );
    assert_eq!(
        (
            overview.operators[0].n_files,
            overview.operators[0].n_outputs
        ),
        (2, 4)
    );
    assert_eq!(overview.dirs, ["0", "1"]);
}
