//! Finding out whether a file is a library of ONNX Runtime that serves.
#![cfg(feature = "onnxruntime")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use opscope_engine::Engine;
use opscope_engine::onnx::OnnxRuntime;

fn refusal(path: &Path) -> String {
    OnnxRuntime::load(path).map(drop).unwrap_err().to_string()
}

/// A shared library of this C code.
fn compiled(dir: &Path, name: &str, code: &str) -> PathBuf {
    let source = dir.join(format!("{name}.c"));
    std::fs::write(&source, code).unwrap();
    let library = dir.join(format!("lib{name}.so"));
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source]);
    assert!(command.status().unwrap().success());
    library
}

/// C code that answers with this version, and with no interface.
fn answering(version: &str) -> String {
    format!(
        "struct base {{ const void *(*api)(unsigned); const char *(*version)(void); }};
         static const void *api(unsigned n) {{ return 0; }}
         static const char *version(void) {{ return \"{version}\"; }}
         static const struct base base = {{ api, version }};
         const struct base *OrtGetApiBase(void) {{ return &base; }}"
    )
}

#[test]
fn what_is_no_such_library_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let check = |path: &Path, expected: &str| {
        let text = refusal(path);
        let start = format!("cannot use `{}` as the engine's library: ", path.display());
        let reason = text
            .strip_prefix(&start)
            .unwrap_or_else(|| panic!("{text}"));
        assert!(reason.contains(expected), "{reason}\nlacks {expected}");
    };
    check(&dir.join("missing.so"), "No such file or directory");
    check(
        dir,
        "it is not a file; expected one such as `libonnxruntime.so`",
    );
    let text = dir.join("text.so");
    std::fs::write(&text, "no library").unwrap();
    check(&text, "expected the shared library of ONNX Runtime");
    check(
        &compiled(dir, "other", "int answer(void) { return 42; }"),
        "it has no function `OrtGetApiBase`; expected the shared library of ONNX Runtime",
    );
    check(
        &compiled(dir, "nothing", "void *OrtGetApiBase(void) { return 0; }"),
        "its function `OrtGetApiBase` returns nothing",
    );
    check(
        &compiled(dir, "old", &answering("1.16.3")),
        "it needs API 17, i.e. 1.17 or newer, found 1.16.3",
    );
    check(
        &compiled(dir, "hollow", &answering("1.31.1")),
        "it says that it is 1.31.1, and does not have API 17",
    );
    check(
        &compiled(dir, "strange", &answering("2.0.0")),
        "its version is `2.0.0`; expected 1.17 or a newer 1.x",
    );
    one_library_serves_a_process(dir);
}

/// The refusals before leave nothing behind that would be in the way, so this comes after them.
fn one_library_serves_a_process(dir: &Path) {
    let Some(path) = std::env::var_os("OPSCOPE_ENGINE_LIB").map(PathBuf::from) else {
        // Not by a macro, whose output a passing test keeps to itself.
        let _ = writeln!(std::io::stderr(), "skipped: OPSCOPE_ENGINE_LIB is not set");
        return;
    };
    let engine = OnnxRuntime::load(&path).unwrap();
    assert_eq!(engine.name(), "ONNX Runtime");
    let version = engine.version().unwrap().to_owned();
    assert!(version.starts_with("1."), "{version}");
    let link = dir.join("link.so");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let again = OnnxRuntime::load(&link).unwrap();
    assert_eq!(again.version(), Some(&*version));
    let other = refusal(&dir.join("libold.so"));
    assert!(
        other.contains(&format!("this process uses ONNX Runtime {version} from `")),
        "{other}"
    );
    assert!(refusal(&dir.join("missing.so")).contains("No such file"));
}
