//! Arrays that are compressed on request.

use std::path::{Path, PathBuf};

use opscope_capture::{Plan, SessionSummary};
use opscope_dump::MindSporeOptions;
use opscope_store::dump::mindspore::{FileName, MindSporeListing};
use opscope_store::file_format::statistic_csv::StatisticCategory;
use opscope_store::file_format::{npy_zst, zstd};
use opscope_store::record::SlotSide;
use opscope_store::tree::mindspore::{FILE_NAME_BYTES_MAX, TreeTarget};

use super::run::{floats, options, run};

fn dump(dir: &Path, target: TreeTarget, level: Option<u8>) -> SessionSummary {
    let options = MindSporeOptions {
        compression: level.and_then(zstd::CompressionLevel::new),
        statistics: Some(vec![StatisticCategory::Max]),
        ..options(dir, target)
    };
    run(options, Plan::everything(), 2, &floats(&[2.0; 5000]))
}

/// Operator, step, slot and content.
type Array = (String, Option<u64>, SlotSide, u32, Vec<u8>);

/// All arrays, in order.
fn arrays(dir: &Path) -> Vec<Array> {
    let dump = MindSporeListing::open(dir).unwrap();
    assert!(dump.errors.is_empty());
    let array = |file: &opscope_store::dump::mindspore::MindSporeFile| {
        let FileName::Array(name) = &file.name else {
            panic!("{} is no array", file.real_name);
        };
        let tensor = npy_zst::read_file(&file.path).unwrap();
        let (op_name, iteration) = (name.op_name.clone(), file.place.iteration);
        let content = tensor.host_bytes().unwrap().to_vec();
        (op_name, iteration, name.side, name.slot, content)
    };
    let mut arrays: Vec<_> = dump.files.iter().map(array).collect();
    arrays.sort();
    arrays
}

fn compressed_files(dir: &Path) -> Vec<PathBuf> {
    let files = MindSporeListing::open(dir).unwrap().files;
    let paths = files.into_iter().map(|file| file.path);
    let is_compressed = |path: &PathBuf| path.to_str().unwrap().ends_with(npy_zst::SUFFIX);
    paths.filter(is_compressed).collect()
}

#[test]
fn only_names_and_sizes_change() {
    for target in [
        TreeTarget::Cpu,
        TreeTarget::AscendKernels,
        TreeTarget::AscendGraph,
    ] {
        let (plain, packed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let of_plain = dump(plain.path(), target, None).counters;
        let of_packed = dump(packed.path(), target, Some(1)).counters;
        assert_eq!(of_plain.n_written, of_packed.n_written);
        assert_eq!(of_plain.n_files, of_packed.n_files);
        assert!(of_packed.n_bytes_written < of_plain.n_bytes_written * 3 / 4);
        let paths = compressed_files(packed.path());
        assert_eq!(paths.len() as u64, of_packed.n_written, "{target:?}");
        assert_eq!(compressed_files(plain.path()), Vec::<PathBuf>::new());
        assert_eq!(arrays(plain.path()), arrays(packed.path()));
        // Files are whole frames that say how large their content is.
        for path in paths {
            let bytes = std::fs::read(path).unwrap();
            let content = npy_zst::decode(&bytes).unwrap();
            assert!(
                zstd::Decoder::new(&bytes)
                    .unwrap()
                    .finish(content.len())
                    .is_ok()
            );
        }
    }
}

#[test]
fn long_names_become_digits_with_both_suffixes() {
    let dir = tempfile::tempdir().unwrap();
    let mut long = opscope_store::tree::mindspore::TensorFileName::of_operator(
        "Add",
        &"x".repeat(FILE_NAME_BYTES_MAX - "Add..0.0.0.output.0.DefaultFormat.npy".len() - 3),
    );
    assert!(long.to_string().len() <= FILE_NAME_BYTES_MAX);
    long.is_compressed = true;
    let name = long.to_string();
    assert!(name.len() > FILE_NAME_BYTES_MAX);
    let digits = opscope_store::tree::mindspore::NameDigits::default();
    let short = digits.short_name(&name).unwrap();
    assert!(short.ends_with(npy_zst::SUFFIX), "{short}");
    // Listed under digits, the file keeps its real name.
    let leaf = dir.path().join("rank_0/Net/0/0");
    std::fs::create_dir_all(&leaf).unwrap();
    std::fs::write(leaf.join(&short), b"x").unwrap();
    std::fs::write(leaf.join("mapping.csv"), format!("{short},{name}\n")).unwrap();
    let files = MindSporeListing::open(dir.path()).unwrap().files;
    assert_eq!(files[0].name, FileName::Array(long));
}
