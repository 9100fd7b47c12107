//! Tensors that are written once: which files are links, and what is counted.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use opscope_capture::{Counters, Plan};
use opscope_dump::{FileSharing, MindSporeOptions};
use opscope_store::tree::mindspore::TreeTarget;
use opscope_tensor::{DType, Shape, Tensor, TensorIdentity};

use crate::mindspore::run::{execute, options, run_with};

/// As an engine shows what it counts references to.
fn shared(values: &Arc<Vec<u8>>) -> Tensor {
    let shape = Shape::new([values.len() / 4]).unwrap();
    let tensor = Tensor::new(DType::F32, shape, values.clone()).unwrap();
    tensor.with_identity(TensorIdentity::from_owner(values))
}

fn bytes(of: f32) -> Arc<Vec<u8>> {
    Arc::new(of.to_le_bytes().repeat(100))
}

/// Three steps of the same values; the weights stay where they are in memory.
fn dump(dir: &Path, dedup: FileSharing, rank: u32) -> Counters {
    let options = MindSporeOptions {
        dedup,
        rank,
        ..options(dir, TreeTarget::Cpu)
    };
    let plan = Plan {
        has_parameters: false,
        ..Plan::everything()
    };
    let summary = run_with(options, plan, |tap, operators| {
        let (w, c) = (bytes(3.0), bytes(0.5));
        for step in 0..3 {
            tap.begin_step(step);
            let (x, h, y) = (bytes(1.0), bytes(2.0), bytes(9.0));
            execute(tap, &operators[0], &[shared(&x), shared(&w)], &shared(&h));
            execute(tap, &operators[1], &[shared(&h), shared(&c)], &shared(&y));
            tap.end_step();
        }
    });
    summary.counters
}

/// Array files below `dir`, and how many files these names are.
fn arrays(dir: &Path) -> (usize, usize) {
    fn walk(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(dir, &mut found);
    found.retain(|path| path.extension().is_some_and(|extension| extension == "npy"));
    let mut by_inode: HashMap<u64, Vec<u8>> = HashMap::new();
    for path in &found {
        let content = std::fs::read(path).unwrap();
        let inode = std::fs::metadata(path).unwrap().ino();
        assert_eq!(*by_inode.entry(inode).or_insert(content.clone()), content);
    }
    (found.len(), by_inode.len())
}

#[test]
fn an_output_and_its_readers_are_one_file_and_weights_are_one_for_all_steps() {
    let off = tempfile::tempdir().unwrap();
    let of_off = dump(off.path(), FileSharing::Off, 0);
    assert_eq!(arrays(off.path()), (18, 18));
    assert_eq!((of_off.n_linked, of_off.n_bytes_linked), (0, 0));

    let dir = tempfile::tempdir().unwrap();
    let found = dump(dir.path(), FileSharing::Identity, 0);
    // Of each step x, h and y, and w and c of all.
    assert_eq!(arrays(dir.path()), (18, 3 * 3 + 2));
    assert_eq!(found.n_linked, 18 - 11);
    assert_eq!(found.n_written, 18);
    assert_eq!(found.n_files, of_off.n_files);
    assert_eq!(found.n_bytes_linked, 7 * (128 + 400));
    assert_eq!(found.n_bytes_asked(), of_off.n_bytes_written);
}

#[test]
fn equal_bytes_are_one_file_for_all_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let first = dump(dir.path(), FileSharing::Content, 0);
    assert_eq!(first.n_linked, 18 - 5);
    let second = dump(dir.path(), FileSharing::Content, 1);
    assert_eq!(second.n_linked, 18);
    for rank in ["rank_0", "rank_1"] {
        assert_eq!(arrays(&dir.path().join(rank)), (18, 5), "{rank}");
    }
}
