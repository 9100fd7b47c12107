//! Files that ask for more memory than they are worth, read by processes that may not have it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{digits, opscope, text};
use opscope_store::file_format::npy;
use opscope_store::guard::silence_caught_panics;
use opscope_store::slot_table::SlotTable;
use opscope_tensor::{DType, Shape};
use zip::write::SimpleFileOptions;

/// Kilobytes of address space that a command may have. The files here promise much more.
const LIMIT_KIB: u64 = 4 << 20;

/// The command in a process with a limit.
fn limited(arguments: &[&str]) -> Command {
    let plain = opscope();
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("ulimit -v {LIMIT_KIB} && exec \"$@\""))
        .arg("sh")
        .arg(plain.get_program())
        .args(arguments);
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

fn header(dims: &[usize]) -> Vec<u8> {
    npy::encode_header(DType::F32, &Shape::new(dims).unwrap()).unwrap()
}

/// A frame of `start` and then `n` bytes of zeros: 128 KiB of them take 4 bytes.
fn frame_of_zeros(start: &[u8], n: u64) -> Vec<u8> {
    const BLOCK_BYTES: u32 = 128 << 10;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    let mut block = |kind: u32, size: u32, content: &[u8], is_last: bool| {
        let head = u32::from(is_last) | (kind << 1) | (size << 3);
        frame.extend(&head.to_le_bytes()[..3]);
        frame.extend(content);
    };
    block(0, start.len() as u32, start, false);
    let n_blocks = n / u64::from(BLOCK_BYTES);
    for i in 0..n_blocks {
        block(1, BLOCK_BYTES, &[0], i + 1 == n_blocks);
    }
    frame
}

fn archive(path: &Path, members: &[(&str, &[u8])]) {
    let mut archive = zip::ZipWriter::new(File::create(path).unwrap());
    for (name, content) in members {
        archive
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap();
}

/// A file of `n` bytes that take up no room, after `start`.
fn sparse(path: &Path, start: &[u8], n: u64) {
    let mut file = File::create(path).unwrap();
    file.write_all(start).unwrap();
    file.set_len(n).unwrap();
}

struct Place(tempfile::TempDir);

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

fn place() -> Place {
    Place(tempfile::tempdir().unwrap())
}

fn check(arguments: &[&str], expected_code: i32, part: &str) {
    let (code, told, errors) = text(&mut limited(arguments));
    assert_eq!(code, expected_code, "{arguments:?}: {told}{errors}");
    let errors = told + &errors;
    assert!(errors.contains(part), "{arguments:?}: {errors}");
    assert!(
        !errors.contains("panicked") && !errors.contains("memory allocation"),
        "{errors}"
    );
}

/// A model's input is compared with the promise of a file's header, before any element is read.
#[test]
fn inputs_promise_no_more_than_the_model_takes() {
    let place = place();
    let model = digits("digits_cnn.onnx");
    let model = model.to_str().unwrap();
    let n = 1_usize << 36;
    let zeros = frame_of_zeros(&header(&[n]), 4 * n as u64);
    fs::write(place.path("x.npy.zst"), zeros).unwrap();
    sparse(&place.path("x.npy"), &header(&[n]), 128 + 4 * n as u64);
    sparse(&place.path("x.bin"), b"", 1 << 42);
    sparse(&place.path("sparse.npz"), b"PK\x03\x04", 1 << 42);
    let good = fs::read(digits("images.npy")).unwrap();
    archive(
        &place.path("long.npz"),
        &[("image.npy", &[&good[..], &vec![0; 1 << 20]].concat())],
    );
    archive(
        &place.path("huge.npz"),
        &[("image.npy", &header(&[n, 1, 8, 8]))],
    );
    archive(&place.path("other.npz"), &[("image.npy", &header(&[n]))]);
    for input in ["x.npy.zst", "x.npy", "x.bin"] {
        let input = format!("image={}", place.text(input));
        check(&["dump", model, "--stats", "--input", &input], 2, "image");
    }
    for (inputs, code, part) in [
        ("sparse.npz", 3, "expected a zip archive of arrays"),
        ("long.npz", 3, "bytes of float32 [16,1,8,8]"),
        ("huge.npz", 3, "bytes of float32 [68719476736,1,8,8]"),
        ("other.npz", 2, "image"),
    ] {
        check(
            &["dump", model, "--stats", "--inputs", &place.text(inputs)],
            code,
            part,
        );
    }
}

/// An archive may hold what no memory can, as long as it is not requested.
#[test]
fn only_the_inputs_of_an_archive_are_read() {
    let place = place();
    let good = fs::read(digits("images.npy")).unwrap();
    let (path, n) = (place.path("x.npz"), 1_usize << 36);
    archive(
        &path,
        &[
            ("in.image.npy", &good),
            ("out.probs.npy", &header(&[n])),
            ("x", b"junk"),
        ],
    );
    let model = digits("digits_cnn.onnx");
    let arguments = [
        "dump",
        model.to_str().unwrap(),
        "--stats",
        "--inputs",
        path.to_str().unwrap(),
    ];
    let (code, told, errors) = text(&mut limited(&arguments));
    assert_eq!(code, 0, "{told}{errors}");
}

/// Arrays that really are as large as they say, and files that only look so.
#[test]
fn what_memory_cannot_hold_is_refused() {
    let place = place();
    let dump = place.path("dump");
    fs::create_dir(&dump).unwrap();
    let n = 3_usize << 30;
    let zeros = frame_of_zeros(&header(&[n]), 4 * n as u64);
    assert!(zeros.len() < 1 << 20);
    fs::write(place.path("x.npy.zst"), zeros).unwrap();
    check(
        &["show", &place.text("x.npy.zst")],
        3,
        "a size that fits memory",
    );
    let small = frame_of_zeros(&header(&[4]), 1 << 33);
    fs::write(place.path("y.npy.zst"), small).unwrap();
    check(
        &["show", &place.text("y.npy.zst")],
        3,
        "frames with 144 bytes",
    );
    let far = 1_u64 << 42;
    for (name, start, part) in [
        ("Opdebug.Node_OpDebug.1.1.17.output.0.json", &b"{}"[..], ""),
        (
            "Conv2D.a.1.1.17.csv",
            b"Input/Output,Index,Data Size,Data Type,Format,Shape",
            "at most",
        ),
        ("statistics.csv", b"Op Type", "at most"),
        ("statistic.csv", b"Op Type", ""),
        ("ms_output_trace_code_graph_0.ir", b" ", ""),
        ("ms_output_trace_code_graph_0.pb", b"\x22", ""),
        ("mapping.csv", b"1,2\n", "at most"),
    ] {
        let path = dump.join(name);
        sparse(&path, start, far);
        let shown = dump.to_str().unwrap();
        check(&["show", shown], 3, part);
        fs::remove_file(&path).unwrap();
    }
    // Only its header is read, which lists no tensors.
    sparse(&dump.join("Conv2D.a.1.1.17"), &[0; 8], far);
    check(&["show", dump.to_str().unwrap()], 0, "4.40 TB");
    let (sparse_json, good) = (place.path("t.json"), digits("images.npy"));
    sparse(&sparse_json, b"{}", far);
    let (good, json) = (good.to_str().unwrap(), sparse_json.to_str().unwrap());
    check(&["compare", good, good, "--thresholds", json], 2, "");
    check(&["compare", good, good, "--fusion", json], 2, "");
    check(&["compare", "--from", json], 3, "");
    check(&["config", "check", json], 3, "at most");
}

/// The library that reads Parquet checks much and panics at the rest.
#[test]
fn a_panic_at_a_damaged_table_is_an_error_alone() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("d");
    let mut dump = opscope();
    dump.args(["dump", "--shape", "image:1,1,8,8", "--seed", "1", "--out"])
        .args([&out, &digits("digits_cnn.onnx")]);
    assert_eq!(text(&mut dump).0, 0);
    let table = walk(&out).find(|path| path.ends_with("step-0.parquet"));
    let table = table.unwrap();
    let whole = fs::read(&table).unwrap();
    // Which damage it takes depends on the bytes of times and digests, so some is looked for.
    let contradicts = |bytes: &[u8]| {
        let error = SlotTable::from_bytes(bytes.to_vec().into())
            .and_then(|table| table.read_group(0))
            .err();
        error.is_some_and(|error| error.to_string().contains("contradict each other"))
    };
    silence_caught_panics();
    let damaged = (4..whole.len()).step_by(3).find_map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        contradicts(&bytes).then_some(bytes)
    });
    fs::write(&table, damaged.expect("some damage makes it panic")).unwrap();
    let (code, _, errors) = text(opscope().arg("show").arg(&out));
    assert_eq!(code, 4, "{errors}");
    assert!(errors.contains("contradict each other"), "{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
}

/// The files in a directory and below it.
fn walk(dir: &Path) -> Box<dyn Iterator<Item = PathBuf>> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    Box::new(entries.flat_map(|path| {
        if path.is_dir() {
            walk(&path)
        } else {
            Box::new(std::iter::once(path))
        }
    }))
}
