//! Dumps that a file configures, under the environment and by the documents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{digits, model, opscope, text};

/// The files of dumps below `dir`, relative to it, without time stamps.
fn files(dir: &Path) -> Vec<String> {
    fn add(dir: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.ends_with(".opscope") {
                // The record of the run is no part of the dump.
            } else if path.is_dir() {
                add(&path, root, found);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.push(name.rsplit_once('.').unwrap().0.to_owned());
            }
        }
    }
    let mut found = Vec::new();
    add(dir, dir, &mut found);
    found.sort();
    found
}

/// A place with a configuration and a home, in which `opscope` knows no variable of a vendor's.
struct Place(tempfile::TempDir);

impl Place {
    fn new(dump: &str) -> Place {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        fs::write(
            dir.path().join("acl.json"),
            format!("{{\"dump\": {{{dump}}}}}"),
        )
        .unwrap();
        // Rows are picked by number, and there is no row 7.
        let gather = r#"{"op": "Gather", "input_desc": [{"type": "float", "shape": [2, 3]},
            {"type": "int64", "const_value": [7]}]}"#;
        fs::write(dir.path().join("gather.json"), gather).unwrap();
        fs::write(dir.path().join("ids.bin"), 1000_i64.to_le_bytes().repeat(4)).unwrap();
        Place(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn opscope(&self) -> Command {
        let mut command = opscope();
        for name in ["DUMP_PATH", "WORK_PATH", "DUMP_SCENE"] {
            command.env_remove(format!("ASCEND_{name}"));
        }
        command
            .env_remove("NPU_COLLECT_PATH")
            .env("HOME", self.0.path());
        command.current_dir(self.0.path());
        command
    }

    /// A dump of the digit classifier for one image.
    fn dump_digits(&self, options: &[&str]) -> (i32, String, String) {
        let mut command = self.opscope();
        command
            .arg("dump")
            .arg(digits("digits_cnn.onnx"))
            .args(options);
        text(command.args(["--seed", "0", "--shape", "image:1,1,8,8"]))
    }

    /// A run of a model whose second operator fails.
    fn failing_run(&self, variables: &[(&str, &str)], options: &str) -> (i32, String, String) {
        let mut command = self.opscope();
        command.arg("dump").arg(model("char_lm.onnx"));
        command.args([
            "--input",
            "ids=ids.bin",
            "--shape",
            "ids:1,4",
            "--no-baseline",
        ]);
        text(
            command
                .args(options.split_whitespace())
                .envs(variables.iter().copied()),
        )
    }
}

const OPERATORS: &str = r#""dump_path": "$HOME/out", "dump_list": [{}]"#;
const BRIEF: &str = r#""dump_path": "~/out", "dump_scene": "aic_err_brief_dump""#;

#[test]
fn failures_go_where_the_environment_says() {
    const NPU: (&str, &str) = ("NPU_COLLECT_PATH", "npu");
    const SCENE: (&str, &str) = ("ASCEND_DUMP_SCENE", "aic_err_brief_dump");
    const WORK: (&str, &str) = ("ASCEND_WORK_PATH", "work");
    const DUMP: (&str, &str) = ("ASCEND_DUMP_PATH", "dump");
    // A path below a file can never be made.
    const NOWHERE: (&str, &str) = ("NPU_COLLECT_PATH", "ids.bin/below");
    let brief = "exception_info.0";
    let normal = "Gather.node_embedding.2";
    for (file, variables, place, name) in [
        (OPERATORS, &[][..], None, ""),
        (OPERATORS, &[WORK, DUMP], None, ""),
        (OPERATORS, &[NPU], Some("npu"), normal),
        (OPERATORS, &[NPU, SCENE, WORK], Some("work"), brief),
        (OPERATORS, &[SCENE, WORK, DUMP], Some("dump"), brief),
        (OPERATORS, &[SCENE], Some("."), brief),
        (OPERATORS, &[NOWHERE], None, ""),
        (BRIEF, &[], Some("out"), brief),
        (BRIEF, &[WORK], Some("work"), brief),
        (BRIEF, &[NPU, WORK], Some("npu"), normal),
        (BRIEF, &[NOWHERE, WORK], Some("work"), brief),
    ] {
        let dir = Place::new(file);
        let (code, told, errors) = dir.failing_run(variables, "--config acl.json");
        let case = format!("{file} {variables:?}: {told}{errors}");
        assert_eq!(code, 4, "{case}");
        let found: Vec<(String, String)> = ["npu", "work", "dump", "out", "."]
            .iter()
            .flat_map(|place| {
                let below = dir.path(place).join("extra-info");
                files(&below)
                    .into_iter()
                    .map(|file| ((*place).to_owned(), file))
            })
            .collect();
        let expected = place.map(|place| (place.to_owned(), format!("data-dump/0/{name}")));
        let starts = |(place, file): &(String, String)| {
            let (wanted, start) = expected.as_ref().unwrap();
            place == wanted && file.starts_with(start)
        };
        assert_eq!(found.len(), usize::from(place.is_some()), "{case}{found:?}");
        assert!(found.iter().all(starts), "{case}{found:?}");
        assert_eq!(
            told.contains("failed operator   "),
            place.is_some() || file == BRIEF,
            "{case}"
        );
    }
}

#[test]
fn the_environment_alone_asks_for_a_dump() {
    let dir = Place::new(OPERATORS);
    let (code, _, errors) = dir.failing_run(&[], "");
    assert_eq!(code, 2, "{errors}");
    for (options, n_files) in [
        ("", 1),
        ("--stats", 2),
        ("--out dump", 3),
        ("--dry-run --out x", 3),
    ] {
        let (code, _, errors) = dir.failing_run(&[("NPU_COLLECT_PATH", "npu")], options);
        assert_eq!(code, 4, "{options}: {errors}");
        assert_eq!(
            files(&dir.path("npu")).len(),
            n_files,
            "{options}: {errors}"
        );
    }
    let mut command = dir.opscope();
    command.args(["op", "gather.json", "--seed", "0", "--config", "acl.json"]);
    let (code, _, errors) = text(command.env("NPU_COLLECT_PATH", "single"));
    assert_eq!(code, 4, "{errors}");
    assert_eq!(files(&dir.path("single")).len(), 1, "{errors}");
}

#[test]
fn explanations_say_what_the_environment_asks_for() {
    for (file, variable, part) in [
        (
            OPERATORS,
            "NPU_COLLECT_PATH",
            "dumped too, because of `NPU_COLLECT_PATH`",
        ),
        (
            BRIEF,
            "NPU_COLLECT_PATH",
            "`NPU_COLLECT_PATH`, which precedes the file",
        ),
        (
            OPERATORS,
            "ASCEND_DUMP_SCENE",
            "dumped too, because of `ASCEND_DUMP_SCENE`",
        ),
        (
            OPERATORS,
            "ASCEND_WORK_PATH",
            "operators outside models  not dumped",
        ),
    ] {
        let dir = Place::new(file);
        let mut command = dir.opscope();
        command.args(["config", "explain", "acl.json"]);
        let (code, told, errors) = text(command.env(variable, "aic_err_norm_dump"));
        assert_eq!((code, errors.as_str()), (0, ""), "{told}");
        assert!(told.contains(part), "{variable}: {told}");
    }
}

/// The documents' own path is a directory below the user's.
#[test]
fn home_is_the_users() {
    for path in ["$HOME/out", "~/out", "~//out/"] {
        let dir = Place::new(&format!(r#""dump_path": "{path}", "dump_list": [{{}}]"#));
        let mut command = dir.opscope();
        let (code, told, _) = text(command.args(["config", "check", "acl.json"]));
        assert_eq!(code, 0, "{path}: {told}");
        assert!(told.contains("note at `/dump/dump_path`"), "{path}: {told}");
        assert!(told.ends_with("0 warnings, 1 note\n"), "{path}: {told}");
        let (code, _, errors) = dir.dump_digits(&["--config", "acl.json"]);
        assert_eq!(code, 0, "{path}: {errors}");
        assert!(!files(&dir.path("out")).is_empty(), "{path}");
    }
    // The same on the command line, where a shell that sees a quote leaves it alone.
    let dir = Place::new("");
    assert_eq!(dir.dump_digits(&["--form", "acl", "--out", "~/there"]).0, 0);
    assert!(dir.path("there").is_dir() && !dir.path("~").exists());
}

/// `Concat` and its like are places in memory on a device; who names one gets it.
#[test]
fn data_flow_leaves_no_file_unless_it_is_named() {
    for (entry, is_concat) in [("{}", false), (r#"{"layer": ["n9"]}"#, true)] {
        let dir = Place::new(&format!(r#""dump_path": "~/out", "dump_list": [{entry}]"#));
        let mut command = dir.opscope();
        command.arg("dump").arg(model("light_squeezenet.onnx"));
        command.args(["--config", "acl.json", "--seed", "0", "--no-baseline"]);
        let (code, _, errors) = text(&mut command);
        assert_eq!(code, 0, "{errors}");
        let found = files(&dir.path("out"));
        assert!(!found.is_empty(), "{entry}");
        let names = || found.iter().map(|file| file.rsplit_once('/').unwrap().1);
        assert_eq!(
            names().any(|name| name.starts_with("Concat.")),
            is_concat,
            "{entry}"
        );
    }
}

/// The third example of the document about offline models is about single operators.
#[test]
fn an_empty_list_dumps_single_operators() {
    let third = r#""dump_path": "~/out", "dump_list": [], "dump_data": "tensor""#;
    let dir = Place::new(third);
    let concat = r#"{"op": "Concat", "inputs": [{"type": "float32", "shape": [2]}],
        "attributes": {"axis": 0}}"#;
    fs::write(dir.path("concat.json"), concat).unwrap();
    let mut command = dir.opscope();
    command.args(["op", "concat.json", "--seed", "0", "--config", "acl.json"]);
    let (code, _, errors) = text(&mut command);
    assert_eq!((code, errors.contains("warning")), (0, false), "{errors}");
    let found = files(&dir.path("out"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].ends_with("/0/Concat.Concat_0.65535.65535"),
        "{found:?}"
    );
    let (code, _, errors) = dir.dump_digits(&["--config", "acl.json"]);
    assert_eq!((code, errors.contains("warning")), (0, false), "{errors}");
    assert_eq!(files(&dir.path("out")), found);
}

#[test]
fn overflow_and_models_exclude_each_other() {
    let dir = Place::new(r#""dump_path": "~/out", "dump_debug": "on", "dump_list": [{}]"#);
    for (args, code) in [
        ("config check acl.json", 0),
        ("config explain acl.json", 2),
        ("op gather.json --seed 0 --config acl.json", 2),
    ] {
        let mut command = dir.opscope();
        let (found, told, errors) = text(command.args(args.split(' ')));
        assert_eq!(found, code, "{args}: {told}{errors}");
        let has_code = format!("{told}{errors}").contains("EP0005");
        assert_eq!(has_code, code == 2, "{args}: {told}{errors}");
    }
}

/// One code for a configuration that cannot be read, whichever command reads it and whose it is.
#[test]
fn unreadable_configurations_have_one_code() {
    let dir = Place::new("");
    fs::write(dir.path("bytes.json"), b"{\"\xff\": 1}").unwrap();
    let large = fs::File::create(dir.path("large.json")).unwrap();
    large.set_len((10 << 20) + 1).unwrap();
    let digits = digits("digits_cnn.onnx").display().to_string();
    for (file, code) in [
        ("absent.json", 3),
        (".", 3),
        ("large.json", 3),
        ("bytes.json", 2),
    ] {
        for args in [
            "config check @".to_owned(),
            "config check --target cpu @".to_owned(),
            "config explain @".to_owned(),
            "config explain --target ge @".to_owned(),
            format!("dump {digits} --config @"),
            format!("dump {digits} --config @ --target cpu"),
            format!("dump {digits} --out d --control @"),
            "op gather.json --config @".to_owned(),
            "op @ --out d".to_owned(),
        ] {
            // A control file may come later, and no dump is needed to describe an operator.
            if args.contains("--control") && file == "absent.json" {
                continue;
            }
            let mut command = dir.opscope();
            let (found, told, errors) = text(command.args(args.replace('@', file).split(' ')));
            assert_eq!(found, code, "{args} {file}: {told}{errors}");
        }
    }
}

/// Other models are named, and only where there are any.
#[test]
fn selections_are_told_as_they_are() {
    for (dump, part, other) in [
        (
            r#""dump_list": [{"model_name": "a"}, {"model_name": "b"}]"#,
            "only; this one is `digits_cnn` (graph `digits_cnn`), selected are `a`, `b`",
            "no operators of models",
        ),
        (
            r#""dump_list": [{}], "dump_level": "kernel""#,
            "selects no operators of models",
            "other models",
        ),
        (
            r#""dump_list": [{"layer": ["absent"]}]"#,
            "the model has no operator `absent`",
            "bodies",
        ),
    ] {
        let dir = Place::new(&format!(r#""dump_path": "~/out", {dump}"#));
        let (code, _, errors) = dir.dump_digits(&["--config", "acl.json"]);
        assert_eq!(code, 0, "{errors}");
        assert!(errors.contains(part) && !errors.contains(other), "{errors}");
    }
}
