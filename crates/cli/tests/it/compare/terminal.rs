//! The terminal's report: the fault first, in lines that fit.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr;

use crate::compare::dumps::{Changes, N_OPERATORS, dump_data, file, npy};
use crate::compare::{compare, result};

/// Two dumps of one network, and where results go.
struct Dumps {
    dir: TempDir,
    target: PathBuf,
    golden: PathBuf,
}

impl Dumps {
    fn new(changes: Changes<'_>) -> Dumps {
        let dir = tempfile::tempdir().unwrap();
        let target = npy(&dir.path().join("target"), changes);
        let golden = npy(&dir.path().join("golden"), &[]);
        Dumps {
            dir,
            target,
            golden,
        }
    }

    /// Compares, and gives the printed report and the result as JSON.
    fn compare(&self) -> (String, Value) {
        let saved = self.dir.path().join("result.json");
        let paths = [&self.target, &self.golden];
        let paths = paths.map(|path| path.to_str().unwrap());
        let saved_as = saved.to_str().unwrap();
        let (_, told, errors) = compare([paths[0], paths[1], "--json", saved_as]);
        assert_eq!(errors, "");
        (told, result(&saved))
    }
}

/// The rows of the table of operators that differ, with their marks.
fn rows(told: &str) -> Vec<&str> {
    let lines = told.lines();
    let table = lines.skip_while(|line| !line.starts_with("operators that differ"));
    table.skip(2).take_while(|line| !line.is_empty()).collect()
}

fn assert_fits(told: &str) {
    // Programs read the verdict from the first line, so it stays one.
    for line in told.lines().skip(1) {
        assert!(
            line.width() <= 80,
            "{} columns: {line}\n{told}",
            line.width()
        );
    }
}

#[test]
fn the_verdict_is_followed_by_where_its_slot_differs() {
    let (told, result) = Dumps::new(&[("1.output", 30.0)]).compare();
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("FAIL: cause at Mul `net_mul_1` output.0: "));
    assert!(lines[1].starts_with("  1 of 6 elements differs by more than 0.0"));
    let expected = [
        "  all differing elements in [1, 2]",
        "  largest difference, target / golden: [1, 2] 30 / 13.5",
    ];
    assert_eq!(lines[2..4], expected, "{told}");
    assert!(
        rows(&told)[0].starts_with("> fail   1  Mul net_mul_1"),
        "{told}"
    );
    let differing = &result["operators"][1]["slots"][1]["differing"];
    assert_eq!(
        (&differing["n"], &differing["shape"]),
        (&json!(1), &json!([2, 3]))
    );
    assert_eq!(differing["ranges"], json!([[1, 2], [2, 3]]));
    let others = result["operators"].as_array().unwrap().iter();
    let others = others.flat_map(|operator| operator["slots"].as_array().unwrap());
    assert_eq!(
        others
            .filter(|slot| slot.get("differing").is_some())
            .count(),
        1
    );
}

#[test]
fn a_nan_differs_whatever_the_limits() {
    let (told, _) = Dumps::new(&[("1.output", f32::NAN)]).compare();
    let lines: Vec<&str> = told.lines().collect();
    let count = "  1 of 6 elements is NaN or infinite on one side alone";
    assert_eq!(lines[1], count, "{told}");
    assert_eq!(lines[2], "  all differing elements in [1, 2]", "{told}");
}

/// An input that differs is not named if the outputs of its operator pass: it comes to nothing.
#[test]
fn the_operator_of_the_verdict_is_the_first_row() {
    let (told, _) =
        Dumps::new(&[("1.input", 30.0), ("2.output", 99.0), ("3.output", 99.0)]).compare();
    assert!(
        told.starts_with("FAIL: cause at Mul `net_mul_2` output.0: "),
        "{told}"
    );
    let starts: Vec<&str> = rows(&told).iter().map(|row| &row[..10]).collect();
    assert_eq!(starts, ["> fail   2", "  fail   3"], "{told}");
}

#[test]
fn suspects_are_named_with_their_reason() {
    let dumps = Dumps::new(&[("2.output", 99.0)]);
    for operator in 0..N_OPERATORS {
        for side in [&dumps.target, &dumps.golden] {
            fs::remove_file(side.join(file(operator, "input"))).unwrap();
        }
    }
    fs::remove_file(dumps.golden.join(file(1, "output"))).unwrap();
    let (told, result) = dumps.compare();
    let suspect =
        "  suspect: Mul `net_mul_1` of the target side: the other side has no such operator";
    assert!(told.replace("\n     ", "").contains(suspect), "{told}");
    let operator = &result["operators"][1];
    assert_eq!(operator["cause"], "unknown");
    assert_eq!(operator["suspects"][0]["operator"]["op_name"], "net_mul_1");
    assert_eq!(operator["suspects"][0]["reason"], "missing");
    assert_eq!(
        operator["suspects"],
        result["summary"]["first_failure"]["suspects"]
    );
}

fn write_side(side: &Path, names: &[String], n_steps: usize, last: f32) {
    for step in 0..n_steps {
        for (i, name) in names.iter().enumerate() {
            let dir = side.join(format!("20240102030405/0/net/1/{step}"));
            let file = format!("Add.x{i}.{i}.0.170000000000000{i}");
            dump_data(&dir, &file, name, &[1.0, last]);
        }
    }
}

#[test]
fn lines_fit_80_columns_and_places_are_told_where_there_are_several() {
    let long = "block/".repeat(40) + "end";
    let names = [
        "a".to_owned(),
        long.clone(),
        "界".repeat(90),
        "b c ".repeat(40),
    ];
    for n_steps in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let [target, golden] = ["target", "golden"].map(|name| dir.path().join(name));
        write_side(&target, &names[1..], n_steps, 1.0);
        write_side(&golden, &names, n_steps, 2.0);
        let (code, told, errors) = compare([&target, &golden]);
        assert_eq!((code, errors.as_str()), (1, ""), "{told}");
        assert_fits(&told);
        assert!(told.lines().next().unwrap().contains(&long), "{told}");
        assert!(
            rows(&told)[0].contains('…') && rows(&told)[0].contains("end"),
            "{told}"
        );
        assert_eq!(told.contains("step 1"), n_steps == 2, "{told}");
        assert!(!told.contains("rank 0") && !told.contains("(net"), "{told}");
    }
}
