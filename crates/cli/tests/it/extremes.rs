//! Sizes, limits and signals that end a careless process: each is a message and a code.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{digits, dump_of_digits, opscope, text, wait_for};

#[test]
fn inputs_larger_than_memory() {
    let dir = tempfile::tempdir().unwrap();
    let n_bytes = 4_u64 << 40;
    let npy_text = "{'descr': '<f4', 'fortran_order': False, 'shape': (17179869184, 1, 8, 8), }";
    let header = [
        b"\x93NUMPY\x01\0\x76\0",
        format!("{npy_text:117}\n").as_bytes(),
    ]
    .concat();
    for (name, start) in [("huge.bin", &[][..]), ("huge.npy", &header)] {
        let mut file = File::create(dir.path().join(name)).unwrap();
        file.write_all(start).unwrap();
        file.set_len(start.len() as u64 + n_bytes).unwrap();
    }
    for (args, code, part) in [
        // 4 TiB of floats; the extents that a file may be said to have are as many.
        (
            "--seed 0 --shape image:17179869184,1,8,8",
            2,
            "4398046511104 bytes",
        ),
        (
            "--seed 0 --shape image:4611686018427387904,1,8,8",
            2,
            "more elements than memory can hold",
        ),
        (
            "--input image=huge.bin --shape image:17179869184,1,8,8",
            3,
            "4398046511104 bytes",
        ),
        ("--input image=huge.npy", 3, "4398046511232 bytes"),
    ] {
        for more in ["--stats", "--out d", "--out d --dry-run"] {
            let mut command = opscope();
            command
                .current_dir(dir.path())
                .arg("dump")
                .arg(digits("digits_cnn.onnx"));
            let (found, told, errors) = text(command.args(args.split(' ')).args(more.split(' ')));
            assert_eq!(
                (found, told.as_str()),
                (code, ""),
                "{args} {more}: {errors}"
            );
            assert!(errors.contains(part), "{args} {more}: {errors}");
        }
    }
    assert!(!dir.path().join("d").exists());
}

#[test]
fn operators_of_any_size_are_refused_alike() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("op.json");
    for shape in [
        "[1099511627776]",
        "[1073741824, 1073741824]",
        "[4294967296, 4294967296, 2]",
    ] {
        let text_of =
            format!(r#"{{"op": "Relu", "inputs": [{{"type": "float32", "shape": {shape}}}]}}"#);
        std::fs::write(&path, text_of).unwrap();
        let mut command = opscope();
        command
            .arg("op")
            .arg(&path)
            .args(["--seed", "0", "--stats"]);
        let (code, told, errors) = text(&mut command);
        assert!([2, 3].contains(&code), "{shape}: {code} {told}{errors}");
        assert!(errors.contains("memory"), "{shape}: {errors}");
    }
}

/// Numbers of steps are checked, not counted through.
#[test]
fn steps_without_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = opscope();
    command
        .arg("dump")
        .arg(digits("digits_cnn.onnx"))
        .current_dir(dir.path());
    command.args([
        "--seed",
        "0",
        "--shape",
        "image:1,1,8,8",
        "--no-baseline",
        "--stats",
    ]);
    command.args([
        "--steps",
        "18446744073709551615",
        "--iterations",
        "18446744073709551614",
    ]);
    command.args(["--save-outputs", "saved"]);
    let mut child = command
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_second_step(&mut child, dir.path());
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

fn wait_for_second_step(child: &mut Child, dir: &Path) {
    let saved = dir.join("saved/1");
    wait_for(child, "the second step", || saved.exists());
}

fn signal(child: &Child, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", name, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Beyond the size limit a write is an error, in each command that writes.
#[test]
fn a_limit_on_the_size_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = dump_of_digits();
    command.args(["--form", "acl", "--out"]);
    assert_eq!(text(command.arg(dir.path().join("whole"))).0, 0);
    let model = digits("digits_cnn.onnx").display().to_string();
    for (args, code) in [
        (
            format!("dump {model} --seed 0 --shape image:1,1,8,8 --out cut"),
            4,
        ),
        (
            format!("dump {model} --seed 0 --shape image:1,1,8,8 --stats --save-outputs saved"),
            4,
        ),
        ("convert -d whole -out npy".to_owned(), 3),
        ("compare whole whole --json report.json".to_owned(), 2),
    ] {
        let mut command = Command::new("sh");
        command
            .current_dir(dir.path())
            .args([
                "-c",
                "ulimit -f 0; exec \"$0\" \"$@\"",
                env!("CARGO_BIN_EXE_opscope"),
            ])
            .args(args.split(' '))
            .env("OPSCOPE_ENGINE", "tract");
        let (found, _, errors) = text(&mut command);
        assert!(
            errors.contains("File too large"),
            "{args}: {found} {errors}"
        );
        assert_eq!(found, code, "{args}: {errors}");
    }
}

/// SIGUSR2 keeps steps where a run keeps any, and is reported elsewhere.
#[test]
fn a_signal_without_steps_to_keep() {
    for more in [&[][..], &["--keep-last", "2", "--trigger", "nan"]] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = dump_of_digits();
        command.args(["--steps", "100000000"]);
        command.args([
            "--max-records",
            "1",
            "--save-outputs",
            "saved",
            "--form",
            "acl",
            "--out",
            "dump",
        ]);
        command.args(more).current_dir(dir.path());
        let mut child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_for_second_step(&mut child, dir.path());
        signal(&child, "USR2");
        signal(&child, "INT");
        let mut errors = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut errors)
            .unwrap();
        assert_eq!(
            child.wait().unwrap().code(),
            Some(130),
            "{more:?}: {errors}"
        );
        assert!(
            errors.contains("SIGUSR2 kept nothing"),
            "{more:?}: {errors}"
        );
    }
}

/// A full disk behind standard output is reported.
#[test]
fn output_that_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("acl.json"), "{}").unwrap();
    for verb in ["check", "explain"] {
        let mut command = opscope();
        command
            .args(["config", verb])
            .arg(dir.path().join("acl.json"));
        let full = File::options().write(true).open("/dev/full").unwrap();
        command.stdout(full).stderr(Stdio::piped());
        let output = command.output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{errors}");
        assert!(errors.contains("No space left"), "{errors}");
    }
}
