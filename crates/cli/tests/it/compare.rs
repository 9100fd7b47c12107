//! `opscope compare`: verdicts, exit codes and judging anew; no engine is needed.

mod dumps;
mod reports;
mod terminal;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::support::{opscope, text};
use dumps::{file, npy};
use serde_json::Value;

/// Exit code, standard output and standard error of a comparison.
fn compare<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> (i32, String, String) {
    text(opscope().arg("compare").args(arguments))
}

fn result(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn equal_dumps_pass() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| npy(&dir.path().join(name), &[]));
    let (code, told, errors) = compare([&a, &b]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "PASS: all 8 compared slots agree");
    assert_eq!(lines[1], "operators: 4 pass; slots: 8 pass");
    assert!(lines[2].contains("target 8 of 8 slots (100.0%)"), "{told}");
    assert_eq!(lines.len(), 3, "{told}");
    assert!(!told.contains('\u{1b}'));
}

#[test]
fn the_first_operator_that_differs_is_named_and_judged_anew() {
    let dir = tempfile::tempdir().unwrap();
    let golden = npy(&dir.path().join("golden"), &[]);
    let changes = [("1.output", 30.0), ("2.input", 30.0), ("2.output", 45.0)];
    let target = npy(&dir.path().join("target"), &changes);
    let [saved, lines] = ["result.json", "result.jsonl"].map(|name| dir.path().join(name));
    let given = [
        target.as_os_str(),
        golden.as_os_str(),
        "--json".as_ref(),
        saved.as_os_str(),
        "--jsonl".as_ref(),
        lines.as_os_str(),
    ];
    let (code, told, errors) = compare(given);
    assert_eq!((code, errors.as_str()), (1, ""));
    let first = told.lines().next().unwrap();
    assert!(
        first.starts_with("FAIL: cause at Mul `net_mul_1` output.0: "),
        "{first}"
    );
    assert!(
        first.contains("(rel_l2 ") && first.ends_with(", limit 0.001)"),
        "{first}"
    );
    assert!(told.contains("[1, 2] 30 / 13.5"), "{told}");
    let comparison = result(&saved);
    assert_eq!(comparison["version"], 1);
    assert_eq!(comparison["summary"]["first_failure"]["operator"], 1);
    assert_eq!(comparison["summary"]["first_failure"]["slot"], "output.0");
    assert_eq!(
        comparison["summary"]["target_coverage"],
        serde_json::json!([8, 8])
    );

    // The dumps are not needed any more, and both forms hold the same.
    fs::remove_dir_all(&target).unwrap();
    fs::remove_dir_all(&golden).unwrap();
    let (report, _) = told.split_once("next: ").unwrap();
    for form in [&saved, &lines] {
        let (code, again, errors) = compare(["--from".as_ref(), form.as_os_str()]);
        let next = format!("next: opscope view --from {}\n", form.display());
        let expected = (1, format!("{report}{next}"), String::new());
        assert_eq!((code, again, errors), expected, "{form:?}");
    }
    let thresholds = dir.path().join("wide.json");
    let wide = r#"{"fail": 10}"#;
    let metrics = ["rel_l2", "scaled_max_abs"].map(|name| format!("\"{name}\": {wide}"));
    let cosine = r#""cosine": {"fail": 0}"#;
    let text = format!(
        "{{\"dtypes\": {{\"float32\": {{{}, {cosine}}}}}}}",
        metrics.join(", ")
    );
    fs::write(&thresholds, text).unwrap();
    let given = [
        "--from".as_ref(),
        saved.as_os_str(),
        "--thresholds".as_ref(),
        thresholds.as_os_str(),
    ];
    let (code, told, errors) = compare(given);
    assert_eq!((code, errors.as_str()), (0, ""), "{told}");
    assert!(told.starts_with("PASS"), "{told}");
}

#[test]
fn a_reference_shows_what_is_natural() {
    let dir = tempfile::tempdir().unwrap();
    let golden = npy(&dir.path().join("golden"), &[]);
    let [target, reference] = [("target", 13.6), ("reference", 13.61)]
        .map(|(name, value)| npy(&dir.path().join(name), &[("1.output", value)]));
    let saved = dir.path().join("result.json");
    assert_eq!(compare([&target, &golden]).0, 1);
    let given = [
        target.as_os_str(),
        golden.as_os_str(),
        "--reference".as_ref(),
        reference.as_os_str(),
    ];
    let more = ["--json".as_ref(), saved.as_os_str()];
    let (code, told, errors) = compare(given.into_iter().chain(more));
    assert_eq!((code, errors.as_str()), (0, ""), "{told}");
    let comparison = result(&saved);
    assert_eq!(
        comparison["config"]["reference"],
        reference.to_str().unwrap()
    );
    let slot = &comparison["operators"][1]["slots"][1];
    assert!(
        slot["yardstick"]["max_abs"].as_f64().unwrap() > 0.1,
        "{slot}"
    );
}

#[test]
fn a_damaged_file_costs_itself_and_ends_with_4() {
    // What could not be read may be what differs, so the rest is no `PASS`.
    for (changes, level) in [(&[][..], "INCOMPLETE"), (&[("3.output", 99.0)], "FAIL")] {
        for is_target in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let target = npy(&dir.path().join("target"), changes);
            let golden = npy(&dir.path().join("golden"), &[]);
            let side = if is_target { &target } else { &golden };
            let path = side.join(file(1, "input"));
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len() - 2]).unwrap();
            let (code, told, _) = compare([&target, &golden]);
            assert_eq!(code, 4, "{told}");
            assert!(told.starts_with(level), "{told}");
            let name = if is_target { "target" } else { "golden" };
            assert!(told.contains("not compared: 1 damaged"), "{told}");
            assert!(
                told.contains(&format!("  {name}: Mul `net_mul_1` input.0, damaged:")),
                "{told}"
            );
            assert!(told.contains("7 of 8 slots (87.5%)"), "{told}");
            let allowed = compare([
                target.as_os_str(),
                golden.as_os_str(),
                "--allow-skip".as_ref(),
                "net_mul_1".as_ref(),
            ]);
            assert_eq!(allowed.0, i32::from(level == "FAIL"), "{told}");
        }
    }
}

#[test]
fn what_is_missing_counts_if_it_is_asked_for_or_much() {
    for is_target in [true, false] {
        for (changes, expected) in [(&[][..], 0), (&[("0.output", 50.0)], 1)] {
            let dir = tempfile::tempdir().unwrap();
            let target = npy(&dir.path().join("target"), changes);
            let golden = npy(&dir.path().join("golden"), &[]);
            let side = if is_target { &target } else { &golden };
            for slot in ["input", "output"] {
                fs::remove_file(side.join(file(2, slot))).unwrap();
            }
            let with = |more: &[&str]| {
                let paths = [target.as_os_str(), golden.as_os_str()];
                compare(paths.into_iter().chain(more.iter().map(AsRef::as_ref)))
            };
            // Three of four outputs are compared.
            let (code, told, _) = with(&[]);
            assert_eq!(code, expected, "{told}");
            assert!(told.contains("Mul `net_mul_2`"), "{told}");
            assert_eq!(with(&["--fail-on", "skip"]).0, 1);
            let strictly = if expected == 1 { 1 } else { 4 };
            let (code, told, _) = with(&["--strict"]);
            assert_eq!(code, strictly, "{told}");
            assert!(!told.starts_with("PASS"), "{told}");
            assert_eq!(with(&["--strict", "--allow-skip", "mul_2$"]).0, expected);
            assert_eq!(with(&["--strict", "--allow-skip", "*_2"]).0, expected);
            assert_eq!(with(&["--strict", "--allow-skip", "mul_1"]).0, strictly);
            assert_eq!(with(&["--filter", "*_1"]).0, 0);
            // And now one of four, so that too little is left to say anything.
            for number in [1, 3] {
                for slot in ["input", "output"] {
                    fs::remove_file(side.join(file(number, slot))).unwrap();
                }
            }
            let (code, told, _) = with(&[]);
            assert_eq!(code, strictly, "{told}");
            let is_found = expected == 1 || told.starts_with("INCOMPLETE: ");
            assert!(is_found, "{told}");
            assert_eq!(with(&["--allow-skip", "mul_[123]$"]).0, expected);
        }
    }
}

#[test]
fn sides_that_cannot_be_read_end_with_3() {
    let dir = tempfile::tempdir().unwrap();
    let golden = npy(&dir.path().join("golden"), &[]);
    let damaged = npy(&dir.path().join("damaged"), &[]);
    for entry in fs::read_dir(&damaged).unwrap() {
        fs::write(entry.unwrap().path(), "nothing").unwrap();
    }
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let nothing = dir.path().join("nothing");
    for bad in [&damaged, &empty, &nothing] {
        for pair in [[bad, &golden], [&golden, bad]] {
            let (code, told, errors) = compare(pair);
            assert_eq!(code, 3, "{pair:?} {told} {errors}");
            let what = format!("{told}{errors}");
            assert!(what.contains(bad.to_str().unwrap()), "{what}");
        }
    }
    for (name, content) in [
        ("a.json", "{}"),
        ("b.json", "{\"version\": 99}"),
        ("c.json", "["),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        let (code, _, errors) = compare(["--from".as_ref(), path.as_os_str()]);
        assert_eq!(code, 3, "{errors}");
        assert!(errors.contains(name), "{errors}");
    }
}

#[test]
fn mistakes_end_with_2() {
    let dir = tempfile::tempdir().unwrap();
    let side = npy(&dir.path().join("side"), &[]);
    let side = side.to_str().unwrap();
    let typo = dir.path().join("typo.json");
    fs::write(&typo, r#"{"dtypes": {"float32": {"cosin": {"fail": 1}}}}"#).unwrap();
    let typo = typo.to_str().unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&[], "required"),
        (&[side], "GOLDEN"),
        (&[side, side, "--from", "x.json"], "cannot be used with"),
        (&[side, side, "--steps", "3-1"], "ends before it begins"),
        (
            &[side, side, "--filter", "nobody"],
            "excludes every operator",
        ),
        (&[side, side, "--csv", "-"], "standard output"),
        (&[side, side, "--json", "-", "--jsonl", "-"], "two reports"),
        (&[side, side, "--thresholds", typo], "cosin"),
        (&[side, side, "--json", typo], "exists already"),
    ];
    for (arguments, expected) in cases {
        let (code, told, errors) = compare(arguments);
        assert_eq!((code, told.as_str()), (2, ""), "{arguments:?} {errors}");
        assert!(errors.contains(expected), "{arguments:?} {errors}");
    }
}

#[test]
fn a_part_is_compared() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
    for (root, last) in [(&a, 7.0), (&b, 8.0)] {
        for step in 0..3_u8 {
            let path = root.join(format!("20240102030405/0/net/1/{step}"));
            let value = if step == 2 { last } else { 1.0 };
            dumps::dump_data(&path, "Add.x.1.0.1700000000000000", "net/x", &[1.0, value]);
            dumps::dump_data(&path, "Mul.y.2.0.1700000000000001", "net/y", &[1.0, 2.0]);
        }
    }
    let code = |more: &[&str]| {
        let paths = [a.as_os_str(), b.as_os_str()];
        compare(paths.into_iter().chain(more.iter().map(AsRef::as_ref))).0
    };
    let cases: [(&[&str], i32); 9] = [
        (&[], 1),
        (&["--steps", "0-1"], 0),
        (&["--steps", "1-"], 1),
        (&["--steps", "9"], 2),
        (&["--ranks", "0"], 1),
        (&["--op-type", "M?l"], 0),
        (&["--op-type", "Add", "--steps", "0"], 0),
        (&["--filter", "*/x"], 1),
        (&["--outputs-only", "--kl", "--jobs", "2"], 1),
    ];
    for (more, expected) in cases {
        assert_eq!(code(more), expected, "{more:?}");
    }
}

#[test]
fn colours_obey_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let side = npy(&dir.path().join("side"), &[]);
    let told = |variables: &[(&str, &str)]| {
        let mut command = opscope();
        command.arg("compare").args([&side, &side]);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        text(command.envs(variables.iter().copied())).1
    };
    assert!(!told(&[]).contains('\u{1b}'));
    assert!(told(&[("CLICOLOR_FORCE", "1")]).starts_with("\u{1b}[32mPASS"));
    assert!(!told(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'));
    let quiet = compare([side.as_os_str(), side.as_os_str(), "--quiet".as_ref()]);
    assert_eq!(quiet, (0, String::new(), String::new()));
}
