use std::path::PathBuf;

use opscope_tensor::TensorView;
use opscope_tensor::text;

use super::*;

const FILES: [&str; 5] = [
    "execution-trace-pid1.db",
    "outputs-pid2.db",
    "inputs-pid2.db",
    "unplaced-pid2.db",
    "unfinished-pid3.db",
];

fn golden(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ort_trace");
    dir.join(name)
}

fn content(value: &TraceValue<'_>) -> serde_json::Value {
    let view = TensorView::new(value.dtype, &value.shape, value.elements);
    if value.dtype == DType::String {
        let texts = text::iter(view).unwrap();
        return texts.map(|one| str::from_utf8(one).unwrap()).collect();
    }
    let hex: String = value
        .elements
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    hex.into()
}

/// Values that `sqlite3` and onnx's package read from databases with the statements of ONNX
/// Runtime's source: `tests/peers/ort_sqlite_cases.py`.
#[test]
fn values_are_what_sqlite_and_onnx_read() {
    let known = std::fs::read(golden("known.json")).unwrap();
    let known: serde_json::Value = serde_json::from_slice(&known).unwrap();
    for file in FILES {
        let trace = OrtTrace::open(&golden(file)).unwrap();
        let expected = known[file]["tensors"].as_array().unwrap();
        let mut n_values = 0;
        let mut check = |value: TraceValue<'_>| {
            let row = &expected[value.position];
            let found = serde_json::json!({
                "row": value.position + 1,
                "step": value.run + 1,
                "name": value.name,
                "dtype": value.dtype.name(),
                "shape": value.shape.iter().collect::<Vec<_>>(),
                "values": content(&value),
                "producer": row["producer"],
                "consumers": row["consumers"],
            });
            assert_eq!(&found, row, "{file}");
            if let Some(offset) = value.offset {
                let bytes = std::fs::read(golden(file)).unwrap();
                assert!(
                    bytes[offset as usize..].starts_with(value.elements),
                    "{file}"
                );
            }
            n_values += 1;
            Ok(())
        };
        trace.visit(&mut check).unwrap();
        for position in 0..expected.len() {
            trace.visit_one(position, &mut check).unwrap();
        }
        assert_eq!(n_values, 2 * expected.len());
        assert!(trace.visit_one(expected.len(), |_| Ok(())).is_err());
    }
}

#[test]
fn slots_are_those_of_nodes_as_far_as_they_are_known() {
    let uses = |file: &str, name: &str| {
        let trace = OrtTrace::open(&golden(file)).unwrap();
        let mut found = Vec::new();
        let visited = trace.visit(|value| {
            if value.name == name && value.run == 0 {
                found.extend(value.uses.iter().map(|one| {
                    let (side, position) = one.slot;
                    format!(
                        "{}({}) {}.{position}",
                        one.op_name,
                        one.op_type,
                        side.name()
                    )
                }));
            }
            Ok(())
        });
        visited.unwrap();
        found.join(", ")
    };
    let check =
        |file: &str, name: &str, expected: &str| assert_eq!(uses(file, name), expected, "{file}");
    let [whole, outputs, inputs, unplaced, _] = FILES;
    check(
        whole,
        "w",
        "/fc/MatMul(MatMul) input.1, fc2(MatMul) input.1",
    );
    check(
        whole,
        "relu:0",
        "relu:0(Relu) output.0, 1(Mul) input.0, 1(Mul) input.1",
    );
    check(
        whole,
        "sum",
        "größe(Cast) input.0, n7(Split) input.0, sum() output.0",
    );
    check(whole, "right", "n7(Split) output.1");
    check(outputs, "relu:0", "relu:0(Relu) output.0");
    check(outputs, "sum", "sum() output.0");
    check(inputs, "relu:0", "1(Mul) input.0, 1(Mul) input.1");
    check(unplaced, "relu:0", "relu:0() output.0");
}

#[test]
fn damage_gets_an_error_and_nothing_else() {
    let file = std::fs::read(golden("outputs-pid2.db")).unwrap();
    let visit = |file: Vec<u8>| {
        let mut n_values = 0;
        OrtTrace::from_bytes(file.into(), None)?.visit(|value| {
            let n_bytes = value.shape.n_bytes(value.dtype);
            assert!(
                value.dtype == DType::String || n_bytes.is_ok_and(|n| n == value.elements.len())
            );
            n_values += 1;
            Ok(())
        })?;
        Ok::<usize, FormatError>(n_values)
    };
    assert_eq!(visit(file.clone()), Ok(14));
    // Every place of a header, and some elsewhere.
    let places = (0..file.len()).filter(|at| at % 4096 < 120 || at.is_multiple_of(53));
    for at in places {
        let mut damaged = file.clone();
        damaged[at] ^= 0xa5;
        let _ = visit(damaged);
    }
    for n_bytes in (0..file.len()).step_by(1531) {
        assert!(visit(file[..n_bytes].to_vec()).is_err(), "{n_bytes}");
    }
    let check = |from: &str, to: &str, expected: &str| {
        let mut bytes = file.clone();
        let at = bytes
            .windows(from.len())
            .position(|part| part == from.as_bytes())
            .unwrap();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        let error = visit(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(
        "Value TensorProto",
        "Walue",
        "expected a column `Value` of the table `Tensors`",
    );
    check("TABLE Nodes", "TABLE N(des", "columns that are not plain");
}
