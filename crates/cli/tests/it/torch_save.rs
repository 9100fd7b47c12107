//! The commands on files of PyTorch; no engine is needed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{json, opscope, text};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../store/tests/golden/torch_save")
        .join(name)
}

/// A checkpoint, and the same with another value in the first storage.
fn pair(dir: &Path) -> [PathBuf; 2] {
    let file = fs::read(golden("training.ckpt")).unwrap();
    let name = b"archive/data/0";
    let at = file
        .windows(name.len())
        .position(|part| part == name)
        .unwrap();
    // Behind the name a part fills up to where the elements begin, at a multiple of 64.
    let start = (at + name.len()).next_multiple_of(64);
    let mut other = file.clone();
    other[start + 3] ^= 0x80;
    [("mine.ckpt", other), ("theirs.ckpt", file)].map(|(name, file)| {
        let path = dir.join(name);
        fs::write(&path, file).unwrap();
        path
    })
}

#[test]
fn tensors_are_shown() {
    let shown = json(
        opscope()
            .arg("show")
            .arg(golden("training.ckpt"))
            .arg("--json"),
    );
    assert_eq!(shown["format"], "PyTorch");
    // Numbers and texts of the optimizer and the scheduler, the epoch, the loss and so on.
    let n_others: usize = shown["attrs"]["other_values"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(n_others > 8, "{n_others}");
    let tensors = shown["tensors"].as_array().unwrap();
    let slots: Vec<_> = tensors
        .iter()
        .map(|one| one["slot"].as_str().unwrap())
        .collect();
    assert_eq!(slots[..2], ["state_dict.0.weight", "state_dict.0.bias"]);
    let shown = json(opscope().arg("show").arg(golden("unread.pt")).arg("--json"));
    let sparse = &shown["tensors"][1];
    assert_eq!(sparse["dtype"], "sparse tensor");
    assert_eq!(
        sparse["problem"],
        "coo: elements of `sparse tensor` are not read"
    );
    let (code, told, errors) = text(opscope().arg("show").arg(golden("hostile/command.pt")));
    assert_eq!((code, told.as_str()), (3, ""), "{errors}");
    assert!(errors.contains("`posix.system`"), "{errors}");
}

#[test]
fn a_changed_value_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let [mine, theirs] = pair(dir.path());
    let compare = |a: &Path, b: &Path| text(opscope().arg("compare").arg(a).arg(b));
    let (code, told, errors) = compare(&theirs, &theirs);
    assert_eq!(code, 0, "{told}{errors}");
    let (code, told, errors) = compare(&mine, &theirs);
    assert_eq!(code, 1, "{told}{errors}");
    assert!(told.contains("state_dict.0.weight"), "{told}");
    assert!(!told.contains("state_dict.0.bias"), "{told}");
}

#[test]
fn tensors_are_converted_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let convert = |file: &Path, to: &str, out: &Path| {
        let mut command = opscope();
        command
            .args(["convert", "-t", to, "--json", "-d"])
            .arg(file);
        text(command.arg("--out").arg(out))
    };
    let out = dir.path().join("arrays");
    let (code, told, errors) = convert(&golden("views.pt"), "npy", &out);
    assert_eq!(code, 0, "{told}{errors}");
    let array = fs::read(out.join("views.pt.transposed.npy")).unwrap();
    let values: Vec<f32> = array[array.len() - 96..]
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect();
    assert_eq!(values[..7], [0.0, 12.0, 4.0, 16.0, 8.0, 20.0, 1.0]);
    // Unread values are reported, and become no empty array.
    let out = dir.path().join("unread");
    let (code, told, errors) = convert(&golden("unread.pt"), "npy", &out);
    assert_eq!(
        (code, fs::read_dir(&out).unwrap().count()),
        (4, 1),
        "{errors}"
    );
    assert!(told.contains("`float4_e2m1fn_x2`"), "{told}");
    let out = dir.path().join("again");
    assert_eq!(convert(&golden("one.pt"), "pt", &out).0, 0);
    let file = fs::read_dir(&out).unwrap().next().unwrap().unwrap();
    let shown = json(opscope().arg("show").arg(file.path()).arg("--json"));
    assert_eq!(shown["tensors"][0]["stats"]["max"], 5.0);
}
