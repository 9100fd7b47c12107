//! Running the built binary.
#![allow(dead_code, reason = "not every test binary uses everything")]

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A run that has not come to something by then hangs.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// The binary under test. Its engine is the embedded one, whatever the machine has.
pub(crate) fn opscope() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opscope"));
    command
        .env("OPSCOPE_ENGINE", "tract")
        .env_remove("OPSCOPE_ENGINE_LIB");
    command
}

/// Line that running a model prints before all else, unless it is asked for JSON.
pub(crate) const ENGINE_LINE: &str = "opscope: engine: tract 0.23.9, as asked for\n";

/// A file of the digits example.
pub(crate) fn digits(name: &str) -> PathBuf {
    root().join("examples/digits").join(name)
}

/// `dump` of the digits example with one random image.
pub(crate) fn dump_of_digits() -> Command {
    let mut command = opscope();
    command.arg("dump").arg(digits("digits_cnn.onnx"));
    command.args(["--seed", "0", "--shape", "image:1,1,8,8"]);
    command
}

/// A stored model.
pub(crate) fn model(name: &str) -> PathBuf {
    root().join("tests/models").join(name)
}

/// Exit code, standard output and standard error.
pub(crate) fn text(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Waits until a running process has brought something about.
pub(crate) fn wait_for(child: &mut Child, expected: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(child.try_wait().unwrap().is_none(), "it ended: {expected}");
        assert!(start.elapsed() < WAIT_MAX, "it hangs: {expected}");
        std::thread::yield_now();
    }
}

/// The JSON that a successful command prints.
pub(crate) fn json(command: &mut Command) -> serde_json::Value {
    let (code, told, errors) = text(command);
    assert_eq!(code, 0, "{errors}");
    serde_json::from_str(&told).unwrap()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
