//! The commands on values of ONNX models, as other tools save them under the values' names.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{json, opscope, text};
use serde_json::Value;

fn golden(name: &str) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/golden");
    golden.join(name)
}

/// Names of slots that `show` has for a file, behind the format.
fn shown(name: &str) -> Vec<String> {
    let shown = json(opscope().arg("show").arg(golden(name)).arg("--json"));
    let tensors = shown["tensors"].as_array().unwrap();
    let slots = tensors.iter().map(|tensor| &tensor["slot"]);
    let names = [&shown["format"]].into_iter().chain(slots);
    names
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

fn converted(path: &Path, out: &Path) -> Vec<PathBuf> {
    let mut command = opscope();
    command.args(["convert", "--json", "-d"]).arg(path);
    let report = json(command.arg("--out").arg(out));
    let names = fs::read_dir(out).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(report["arrays"], names.len());
    names
}

fn compared(target: &Path, golden: &Path) -> Value {
    let mut command = opscope();
    command
        .arg("compare")
        .args([target, golden])
        .args(["--json", "-"]);
    let (_, told, errors) = text(&mut command);
    serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}{errors}"))
}

#[test]
fn values_are_shown() {
    let names = [
        "/fc/MatMul_output_0",
        "relu:0",
        "input.4",
        "half",
        "shape",
        "left",
        "right",
        "output",
    ];
    let found = shown("polygraphy/out.json");
    assert_eq!(
        (found[0].as_str(), &found[1..]),
        ("Polygraphy JSON", &names.map(str::to_owned)[..])
    );
    let found = shown("polygraphy/two.json");
    let is_last =
        |name: &&String| name.starts_with("onnxrt-runner-N1-") && name.ends_with("/1/output");
    assert!(
        found.len() == 33 && found.last().is_some_and(|name| is_last(&name)),
        "{found:?}"
    );
    assert_eq!(
        shown("polygraphy/in2.json"),
        ["Polygraphy JSON", "0/x", "1/x"]
    );
    assert_eq!(
        shown("onnx_tensor/raw_float32.pb"),
        ["ONNX tensor", "raw/float32"]
    );
    assert_eq!(shown("onnx_tensor/no_name.pb"), ["ONNX tensor", "output.0"]);
    let found = shown("ort_trace/execution-trace-pid1.db");
    assert_eq!(
        (found.len(), found[0].as_str(), found[3].as_str()),
        (47, "ONNX Runtime trace", "0//fc/MatMul_output_0")
    );
    assert_eq!(shown("ort_trace/outputs-pid2.db")[2], "relu:0");
    let (code, _, errors) = text(opscope().arg("show").arg(golden("onnx_tensor/external.pb")));
    assert!(
        code == 3 && errors.contains("elements in another file, `weights.bin`"),
        "{errors}"
    );
}

#[test]
fn values_are_converted() {
    let dir = tempfile::tempdir().unwrap();
    let names = converted(&golden("polygraphy/in.json"), &dir.path().join("in"));
    assert!(names[0].ends_with("in.json.x.npy"), "{names:?}");
    assert_eq!(
        converted(&golden("polygraphy/two.json"), &dir.path().join("two")).len(),
        32
    );
    let out = dir.path().join("trace");
    let names = converted(&golden("ort_trace/execution-trace-pid1.db"), &out);
    assert_eq!(names.len(), 46);
    let names = converted(
        &golden("onnx_tensor/debug/plain/relu_0.tensorproto"),
        &dir.path().join("debug"),
    );
    assert!(
        names[0].ends_with("relu_0.tensorproto.relu:0.npy"),
        "{names:?}"
    );
}

#[test]
fn files_of_values_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let content = fs::read_to_string(golden("polygraphy/out.json")).unwrap();
    // The last elements of the first array are others, and the runner has another name.
    let other = content
        .replace("onnxrt-runner", "another")
        .replacen("PeMk9\"", "PeMk+\"", 1);
    let changed = dir.path().join("changed.json");
    fs::write(&changed, other).unwrap();
    let cases = [
        (
            golden("polygraphy/out.json"),
            golden("polygraphy/out.json"),
            0,
        ),
        (changed, golden("polygraphy/out.json"), 1),
        (
            golden("polygraphy/two.json"),
            golden("polygraphy/two.json"),
            0,
        ),
        (golden("polygraphy/each"), golden("polygraphy/each"), 0),
        (golden("onnx_tensor/model"), golden("onnx_tensor/model"), 0),
        (golden("onnx_tensor/debug"), golden("onnx_tensor/debug"), 0),
    ];
    for (target, golden, expected) in cases {
        let (code, told, errors) = text(opscope().arg("compare").args([&target, &golden]));
        assert_eq!(code, expected, "{target:?}: {told}{errors}");
    }
}

/// The elements of one value of a database are others: nothing but the node that made it is named.
#[test]
fn databases_of_nodes_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let sound = golden("ort_trace/execution-trace-pid1.db");
    let known = fs::read_to_string(golden("ort_trace/known.json")).unwrap();
    let known: Value = serde_json::from_str(&known).unwrap();
    let row = &known["execution-trace-pid1.db"]["tensors"][4];
    assert_eq!(row["name"], "square");
    // The third and fourth element, which no other value has.
    let hex = &row["values"].as_str().unwrap()[16..32];
    let elements: Vec<u8> = (0..8)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let mut file = fs::read(&sound).unwrap();
    let at = file.windows(8).position(|part| part == elements).unwrap();
    file[at + 3] ^= 0x40;
    let changed = dir.path().join("changed.db");
    fs::write(&changed, file).unwrap();
    let result = compared(&sound, &sound);
    assert_eq!(result["summary"]["level"], "pass", "{result}");
    let result = compared(&changed, &sound);
    let first = &result["summary"]["first_divergence"];
    let operator = &result["operators"][first["operator"].as_u64().unwrap() as usize];
    assert_eq!(operator["target"][0]["op_name"], "1", "{result}");
    assert_eq!(operator["target"][0]["op_type"], "Mul", "{result}");
}

/// Nodes of the model have names unlike those of their values, one that of another node's value.
#[test]
fn values_are_outputs_of_a_dump() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = converted(&golden("polygraphy/in.json"), &dir.path().join("in"));
    let dump = dir.path().join("dump");
    let mut command = opscope();
    command
        .arg("dump")
        .arg(golden("polygraphy/model.onnx"))
        .arg("--out")
        .arg(&dump);
    let (code, told, errors) = text(
        command
            .arg("--input")
            .arg(format!("x={}", inputs[0].display())),
    );
    assert_eq!(code, 0, "{told}{errors}");
    let values = golden("polygraphy/out.json");
    for (target, golden) in [(&values, &dump), (&dump, &values)] {
        let (side, other) = if target == &values {
            ("target", "golden")
        } else {
            ("golden", "target")
        };
        let result = compared(target, golden);
        let operators = result["operators"].as_array().unwrap();
        let pairs = operators.iter().map(|pair| {
            let names = [side, other].map(|side| {
                let runs = pair[side].as_array().unwrap().iter();
                runs.map(|run| run["op_name"].as_str().unwrap())
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            let slots = pair["slots"].as_array().unwrap();
            assert!(
                slots
                    .iter()
                    .all(|slot| slot["metrics"]["is_identical"] == 1.0),
                "{result}"
            );
            format!("{} = {} {}", names[0], names[1], slots.len())
        });
        let mut pairs: Vec<String> = pairs.collect();
        pairs.sort();
        let expected = [
            "/fc/MatMul_output_0 = /fc/MatMul 1",
            "half = input.4 1",
            "input.4 = n2 1",
            "left right = n5 2",
            "output = n6 1",
            "relu:0 = relu 1",
            "shape = n4 1",
        ];
        assert_eq!(pairs, expected);
    }
}
