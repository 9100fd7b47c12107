//! `convert`, `overflow` and `show` on recorded files; no engine is needed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{opscope, text};

fn golden(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("..").join(path)
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

/// Converts with these options and returns exit code, output, and the names of the results.
fn convert(dump: &Path, options: &[&str]) -> (i32, String, Vec<String>) {
    let out = tempfile::tempdir().unwrap();
    let mut command = opscope();
    command
        .arg("convert")
        .arg("-d")
        .arg(dump)
        .arg("-out")
        .arg(out.path());
    let (code, told, errors) = text(command.args(options));
    (code, told + &errors, names(out.path()))
}

#[test]
fn every_type_has_its_names() {
    let dump =
        golden("msaccucmp/tests/golden/convert_nano/in/d/Conv2D.nano_a.3.7.1700000000000000");
    let stem = "Conv2D.nano_a.3.7.1700000000000000";
    for (options, expected) in [
        ("-t npy", ".input.0.npy .input.1.npy .output.0.npy"),
        ("-t txt -i 1", ".input.1.txt"),
        ("--type pt -o 0", ".output.0.pt"),
        ("-t safetensors", ".safetensors"),
        ("-t bin -o 0", ".output.0.8.int8.ND.bin"),
        ("-t msnpy -o 0", ".output.0.ND.npy"),
        ("-f nd -i 0", ".input.0.2x3.npy"),
        ("-f ND -s 1,2 -i 0 -t bin", ".input.0.1_2.float32.ND.bin"),
        ("-f FRACTAL_Z_G -i 0", ""),
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        let (code, told, found) = convert(&dump, &options);
        let expected: Vec<String> = match expected {
            "" => Vec::new(),
            _ => expected
                .split(' ')
                .map(|tail| format!("{stem}{tail}"))
                .collect(),
        };
        assert_eq!(found, expected, "{options:?}: {told}");
        assert_eq!(code, if expected.is_empty() { 3 } else { 0 }, "{told}");
    }
}

#[test]
fn text_and_records_have_the_documented_content() {
    let out = tempfile::tempdir().unwrap();
    let nano =
        golden("msaccucmp/tests/golden/convert_nano/in/d/Conv2D.nano_a.3.7.1700000000000000");
    let records = golden("analysis/tests/golden/cann/dumps");
    let mut command = opscope();
    command
        .args(["convert", "-t", "txt", "--json", "-d"])
        .arg(&nano);
    command.arg("-d").arg(&records).arg("--out").arg(out.path());
    let (code, told, errors) = text(&mut command);
    assert_eq!(code, 0, "{errors}");
    let report = json(&told);
    assert_eq!(
        (&report["records"], &report["buffers"]),
        (&4.into(), &2.into())
    );
    let name = "Conv2D.nano_a.3.7.1700000000000000.input.1.txt";
    let lines = fs::read_to_string(out.path().join(name)).unwrap();
    let second = lines.lines().nth(1).unwrap();
    assert_eq!(
        (lines.lines().count(), second),
        (4, "1.000000000000000000e+00")
    );
    let name = "Opdebug.Node_OpDebug.57.563.1634155934600000.output.0.json";
    let record = fs::read_to_string(out.path().join(name)).unwrap();
    assert!(record.ends_with("\"block_idx\": 1,\n        \"status\": 32\n    }\n}"));
}

#[test]
fn any_path_works_and_lists_are_taken_apart() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join("ein Verzeichnis: ä,ö");
    fs::create_dir(&odd).unwrap();
    let source = golden("msaccucmp/tests/golden/convert_nano/in/d/Add.nano_b.3.7.1700000000000001");
    for name in ["a,b 1", "ç"] {
        fs::copy(&source, odd.join(name)).unwrap();
    }
    let (code, told, found) = convert(&odd, &[]);
    assert_eq!((code, found.len()), (0, 4), "{told}");
    fs::copy(&source, dir.path().join("x")).unwrap();
    fs::copy(&source, dir.path().join("y")).unwrap();
    let root = dir.path().display();
    let list = PathBuf::from(format!("{root}/x,{root}/y"));
    let (code, told, found) = convert(&list, &[]);
    assert_eq!((code, found.len()), (0, 4), "{told}");
    let (code, told, _) = convert(&PathBuf::from(format!("{root}/x,{root}/z")), &[]);
    assert!(code == 3 && told.contains("/z"), "{told}");
}

#[test]
fn wrong_usage_ends_with_2() {
    let dir = golden("analysis/tests/golden/cann/dumps");
    let file = golden("msaccucmp/tests/golden/convert_nano/in/d/Add.nano_b.3.7.1700000000000001");
    let cases: [(&Path, &[&str]); 6] = [
        (&dir, &["-o", "0"]),
        (&dir, &["-f", "NCHW", "-s", "1,2"]),
        (&file, &["-s", "1,2"]),
        (&file, &["-f", "NOPE"]),
        (&file, &["-t", "h5"]),
        (&file, &["-o", "0", "-i", "0"]),
    ];
    for (dump, options) in cases {
        let (code, told, found) = convert(dump, options);
        assert!(code == 2 && found.is_empty(), "{options:?}: {code} {told}");
    }
    let (code, told, _) = convert(&file, &["-o", "9"]);
    assert!(code == 3 && told.contains("no output.9"), "{told}");
    // The same names from two directories.
    let mut command = opscope();
    command
        .args(["convert", "-d"])
        .arg(&file)
        .arg("-d")
        .arg(&file);
    assert_eq!(text(&mut command).0, 2);
}

#[test]
fn the_first_overflow_is_named_with_its_cause() {
    let out = tempfile::tempdir().unwrap();
    let mut command = opscope();
    let dump = golden("msaccucmp/tests/golden/overflow_old/in/d");
    command.args(["overflow", "-n", "3", "-d"]).arg(&dump);
    let (code, told, errors) = text(command.arg("-out").arg(out.path()));
    assert_eq!(code, 1, "{errors}");
    let first = told.lines().nth(1).unwrap();
    assert!(first.contains("net/layer/op2"), "{told}");
    assert!(
        first.ends_with("0x20 = floating-point arithmetic"),
        "{told}"
    );
    let summary = names(out.path())
        .into_iter()
        .find(|name| name.starts_with("overflow_summary_"));
    let summary = fs::read(out.path().join(summary.unwrap())).unwrap();
    let recorded =
        golden("msaccucmp/tests/golden/overflow_old/out/top3/overflow_summary_TIMESTAMP.txt");
    assert!(summary == fs::read(recorded).unwrap());
    let mut command = opscope();
    let (code, told, _) = text(
        command
            .args(["overflow", "--json", "-n", "1", "-d"])
            .arg(&dump),
    );
    let report = json(&told);
    let shown = report["shown"].as_array().unwrap();
    assert_eq!((code, &report["overflows"], shown.len()), (1, &3.into(), 1));
    assert_eq!(shown[0]["units"][0]["status"], "0x20");
    assert_eq!(shown[0]["operator"]["tensors"][2]["stats"]["pos_inf"], 1);
}

#[test]
fn steps_come_before_times_and_letter_case_does_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let record =
        golden("analysis/tests/golden/cann/dumps/Opdebug.Node_OpDebug.57.563.1634155934600000");
    for name in [
        "10/OPDEBUG.Node_Opdebug.1.1.100",
        "9/OpDebug.Node_OpDebug.1.1.300",
    ] {
        let path = dir.path().join(name);
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::copy(&record, path).unwrap();
    }
    let mut command = opscope();
    let (code, told, _) = text(command.args(["overflow", "--json", "-d"]).arg(dir.path()));
    let steps: Vec<_> = json(&told)["shown"]
        .as_array()
        .unwrap()
        .iter()
        .map(|shown| shown["step"].clone())
        .collect();
    assert_eq!((code, steps), (1, vec![9.into(), 10.into()]));
}

#[test]
fn without_an_overflow_the_code_tells_why() {
    for (dump, code, told) in [
        ("zero", 0, "no overflow (1 file"),
        ("newzero", 0, "no overflow"),
        ("none", 0, "no overflow records in "),
        ("type9", 3, "byte 61"),
        ("missing", 3, "cannot read"),
        (
            "zero/Opdebug.Node_OpDebug.0.3.1700000000000100",
            0,
            "no overflow",
        ),
        ("buf/Add.a.57.9.1700000000000000", 3, "overflow record"),
    ] {
        let mut command = opscope();
        let dump = golden("msaccucmp/tests/golden/overflow_errors/in").join(dump);
        let (found, out, errors) = text(command.args(["overflow", "-d"]).arg(&dump));
        assert_eq!(found, code, "{}: {errors}", dump.display());
        assert!((out + &errors).contains(told), "{}", dump.display());
    }
}

#[test]
fn every_kind_of_file_is_shown() {
    let stamp = "1700000000000001";
    for (file, told) in [
        (
            format!("analysis/tests/golden/cann/dumps/Opdebug.Node_OpDebug.12.3.{stamp}"),
            "0x110 = integer addition",
        ),
        (
            format!("msaccucmp/tests/golden/convert_nano/in/d/Add.nano_b.3.7.{stamp}"),
            "nano dump",
        ),
    ] {
        let mut command = opscope();
        let (code, out, errors) = text(command.arg("show").arg(golden(&file)));
        assert!(code == 0 && out.contains(told), "{out}{errors}");
    }
    let mut command = opscope();
    let (code, told, _) = text(
        command
            .arg("show")
            .arg(crate::support::digits("images.npy")),
    );
    assert!(code == 0 && told.contains("16x1x8x8"), "{told}");
    let (code, told, _) = text(
        opscope()
            .arg("show")
            .arg(golden("analysis/tests/golden/cann/dumps")),
    );
    assert!(code == 0 && told.contains("overflow record"), "{told}");
}

#[test]
fn damaged_files_are_refused_with_their_place() {
    for entry in fs::read_dir(golden("analysis/tests/golden/cann/invalid")).unwrap() {
        let path = entry.unwrap().path();
        let (code, _, errors) = text(opscope().arg("show").arg(&path));
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(code, 3, "{name}");
        assert!(
            errors.contains(name) && errors.contains("byte "),
            "{errors}"
        );
        assert!(errors.contains("expected"), "{errors}");
        let (code, errors, _) = convert(&path, &[]);
        assert!(code == 3 && errors.contains("expected"), "{errors}");
    }
}

#[test]
fn statistics_files_are_shown_as_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let step = dir.path().join("20240102030405/0/net/1/3");
    fs::create_dir_all(&step).unwrap();
    let header = "Input/Output,Index,Data Size,Data Type,Format,Shape,Count,Max Value,l2norm";
    let file = step.join("Conv.conv1.7.0.1700000000000000.csv");
    fs::write(
        &file,
        format!("{header}\nOutput,0,8,DT_FLOAT,ND,2,2,1.5,1.8\n"),
    )
    .unwrap();
    let (code, told, errors) = text(opscope().arg("show").arg(&file));
    assert_eq!(code, 0, "{errors}");
    assert!(told.contains("Max Value") && told.contains("1.5"), "{told}");
    let (code, told, _) = text(opscope().arg("show").arg(dir.path()).arg("--json"));
    let found = &json(&told)["statistics"][0];
    assert_eq!(code, 0);
    assert_eq!((&found["step"], &found["task_id"]), (&3.into(), &7.into()));
    assert_eq!(found["rows"][0]["l2norm"], "1.8");

    fs::write(&file, format!("{header}\nOutput,0\n")).unwrap();
    let (code, _, errors) = text(opscope().arg("show").arg(&file));
    assert_eq!(code, 3);
    assert!(errors.contains("expected 9 cells"), "{errors}");
}
