//! Each mistake gets one clear error and its documented exit code, and leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{digits, model, opscope, text};

/// A directory with damaged files of every kind.
struct Damage(tempfile::TempDir);

impl Damage {
    fn new() -> Damage {
        let dir = tempfile::tempdir().unwrap();
        let whole = fs::read(digits("digits_cnn.onnx")).unwrap();
        let files: [(&str, &[u8]); 7] = [
            ("truncated.onnx", &whole[..whole.len() / 2]),
            ("text.onnx", b"this is no model"),
            ("empty.onnx", b""),
            ("short.bin", &[0; 10]),
            ("broken.npy", b"\x93NUMPY\x01\x00\x05\x00{}"),
            ("broken.npz", b"PK"),
            ("broken.json", b"{\n \"dump\": {,}\n}"),
        ];
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        Damage(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Runs `dump MODEL ARGS…`, in which `@` is this directory and `%` that of the
    /// digits example.
    fn check(&self, model: &Path, args: &str, code: i32, part: &str) {
        let dir = self.0.path().display().to_string();
        let digits = digits("").display().to_string();
        let args = args
            .split_whitespace()
            .map(|arg| arg.replace('@', &dir).replace('%', &digits));
        let mut command = opscope();
        command.arg("dump").arg(model).args(args);
        let (found, told, errors) = text(&mut command);
        assert!(errors.contains(part), "{command:?}: {errors}");
        assert_eq!(found, code, "{command:?}: {errors}");
        assert!(told.is_empty(), "{command:?}: {told}");
        assert!(
            !Path::new(&self.path("out")).exists(),
            "{command:?} left something behind"
        );
    }
}

fn digits_model() -> PathBuf {
    digits("digits_cnn.onnx")
}

#[test]
fn models() {
    let damage = Damage::new();
    let cases = [
        ("absent.onnx", "cannot read the model"),
        ("truncated.onnx", "it ends too early"),
        ("text.onnx", "not a usable ONNX model"),
        ("empty.onnx", "it is empty"),
        ("", "it is a directory"),
    ];
    for (name, part) in cases {
        damage.check(Path::new(&damage.path(name)), "--out @/out", 3, part);
    }
    let part = "cannot run operator `/Loop` of type `Loop`";
    damage.check(&model("loop.onnx"), "--out @/out --seed 0", 3, part);
}

#[test]
fn inputs() {
    let damage = Damage::new();
    let cases = [
        ("", 2, "input `image` (float32 [batch,1,8,8]) was not given"),
        (
            "--input image=%/labels.npy",
            2,
            "takes float32, found int64",
        ),
        (
            "--seed 1 --shape image:3",
            2,
            "takes shape [batch,1,8,8], found [3]",
        ),
        ("--seed 1 --shape x:3", 2, "no input `x`"),
        (
            "--seed 1 --shape batch:3",
            2,
            "`batch` is a dimension: set the shape of an input that has it, such as `--shape \
             image:1,1,8,8`",
        ),
        (
            "--input x=%/images.npy",
            2,
            "no input `x`; its inputs are `image`",
        ),
        (
            "--input image=%/images.npy --input image=%/images.npy",
            2,
            "given twice",
        ),
        ("--input image=@/absent.npy", 3, "cannot open"),
        ("--input image=@/broken.npy", 3, "byte 10"),
        ("--inputs @/broken.npz", 3, "not a valid npz file"),
        (
            "--input image=@/text.onnx",
            2,
            "neither a `.npy` nor a `.bin` file",
        ),
        (
            "--input image=@/short.bin --shape image:1,1,8,8",
            2,
            "takes 256 bytes, found 10",
        ),
    ];
    for (args, code, part) in cases {
        damage.check(&digits_model(), &format!("--out @/out {args}"), code, part);
    }
}

#[test]
fn directories_of_inputs() {
    let damage = Damage::new();
    let sets = damage.0.path().join("sets");
    fs::create_dir_all(sets.join("0")).unwrap();
    fs::create_dir(sets.join(".cache")).unwrap();
    fs::copy(digits("images.npy"), sets.join("image.npy")).unwrap();
    let args = "--out @/out --inputs @/sets";
    damage.check(&digits_model(), args, 2, "/sets/0` holds no `.npy` files");
    let arrays = "its arrays `image` are not read";
    damage.check(&digits_model(), args, 2, arrays);
    fs::copy(digits("labels.npy"), sets.join("0/label.npy")).unwrap();
    damage.check(&digits_model(), args, 2, "no input `label`");
    fs::remove_dir_all(sets.join("0")).unwrap();
    let mut command = opscope();
    command.arg("dump").arg(digits_model()).arg("--stats");
    let (code, _, errors) = text(command.arg("--inputs").arg(&sets));
    assert_eq!(code, 0, "{errors}");
}

#[test]
fn places() {
    let damage = Damage::new();
    let cases = [
        ("", "nothing to do"),
        (
            "--out /proc/opscope",
            "cannot create the directory `/proc/opscope`",
        ),
        ("--out @/text.onnx", "cannot create the directory"),
        ("--out @/text.onnx/below", "cannot create the directory"),
        ("--out @/out --stats", "cannot be used with"),
    ];
    for (args, part) in cases {
        damage.check(
            &digits_model(),
            &format!("{args} --input image=%/images.npy"),
            2,
            part,
        );
    }
}

#[test]
fn configurations() {
    let damage = Damage::new();
    let cases = [
        ("absent.json", 3, "cannot read the configuration"),
        (
            "broken.json",
            2,
            "broken.json:2:11: error EP0004: not valid JSON",
        ),
        ("short.bin", 2, "not valid JSON"),
    ];
    for (name, code, part) in cases {
        let args = format!("--config @/{name} --input image=%/images.npy");
        damage.check(&digits_model(), &args, code, part);
    }
}

/// A model where a dump is expected, and an array where a model is, name the right command.
#[test]
fn files_of_another_kind() {
    let (model, array) = (digits("digits_cnn.onnx"), digits("images.npy"));
    let of_dumps = "is an ONNX model, but this command reads dumps";
    let of_models = "is an array, but this command runs ONNX models";
    let cases = [
        ("show", &model, "", of_dumps),
        ("verify", &model, "", of_dumps),
        ("replay", &model, "/conv1/Conv", of_dumps),
        ("dump", &array, "--stats", of_models),
        ("sensitivity", &array, "", of_models),
    ];
    for (command, path, more, part) in cases {
        let mut program = opscope();
        program.arg(command).arg(path).args(more.split_whitespace());
        let (code, told, errors) = text(&mut program);
        assert_eq!((code, told.as_str()), (3, ""), "{command}: {errors}");
        assert!(
            errors.contains(part) && errors.contains("hint: "),
            "{command}: {errors}"
        );
    }
}

/// Another command does what this one cannot.
#[test]
fn the_other_command_is_named() {
    let (code, _, errors) = text(opscope().args(["diff", "net:make", "net:other"]));
    assert_eq!(code, 3, "{errors}");
    assert!(
        errors.contains("hint: `python -m opscope diff`"),
        "{errors}"
    );
    let dir = tempfile::tempdir().unwrap();
    let dump = |name: &str, out: &str| {
        let out = dir.path().join(out);
        let mut command = opscope();
        let model = digits(&format!("{name}.onnx"));
        command
            .arg("dump")
            .arg(model)
            .args(["--seed", "0", "--out"]);
        let (code, _, errors) = text(command.arg(&out));
        assert_eq!(code, 0, "{errors}");
        out
    };
    let dumps = ["digits_cnn", "digits_cnn_transposed"].map(|name| dump(name, name));
    let mut command = opscope();
    command.arg("ranks").arg(&dumps[0]).arg("--against");
    let (code, told, errors) = text(command.arg(&dumps[1]));
    assert_eq!(code, 4, "{told} {errors}");
    assert!(told.contains("`opscope compare` matches others"), "{told}");
    let (code, told, errors) = text(opscope().arg("diff").args(&dumps));
    assert_eq!(code, 1, "{told} {errors}");
    assert!(told.contains("\nnext: opscope view "), "{told}");
    // Of a directory with several runs each is named.
    let out = dump("digits_cnn", "digits_cnn");
    let (code, told, errors) = text(opscope().arg("show").arg(&out));
    assert_eq!(code, 0, "{told} {errors}");
    let place = format!("\n          in `{}/", out.display());
    assert_eq!(told.matches(&place).count(), 2, "{told}");
}
