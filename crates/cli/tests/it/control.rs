//! Switching `opscope dump` while it runs.
//!
//! Nothing here waits for a time: every step follows a line of standard error, and the run goes on
//! until it is interrupted.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::support::{digits, dump_of_digits, json as run_json, opscope, text};
use serde_json::{Value, json};

/// More steps than any test lets run.
const N_STEPS: &str = "100000000";
/// The warning by which a test sees that the model is about to run; a configuration names it.
const NO_OPERATOR: &str = "no such operator";

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("dump")).unwrap();
        Place { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn config(&self, layers: &[&str]) -> Value {
        json!({"dump": {
            "dump_path": self.path("dump"),
            "dump_mode": "output",
            "dump_list": [{"model_name": "digits_cnn", "layer": layers}],
        }})
    }

    /// Puts a whole control file in place at once.
    fn control(&self, content: &str) {
        fs::write(self.path("new"), content).unwrap();
        fs::rename(self.path("new"), self.path("control.json")).unwrap();
    }

    fn run(&self, layers: &[&str], has_control: bool) -> Running {
        fs::write(self.path("acl.json"), self.config(layers).to_string()).unwrap();
        let mut command = dump_of_digits();
        command.args(["--no-baseline", "--json"]);
        command
            .args(["--steps", N_STEPS, "--config"])
            .arg(self.path("acl.json"));
        if has_control {
            command.arg("--control").arg(self.path("control.json"));
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let told = BufReader::new(child.stderr.take().unwrap());
        Running { child, told }
    }

    /// The operators in each step's directory.
    fn steps(&self) -> Vec<(u64, Vec<String>)> {
        let mut steps = Vec::new();
        find_steps(&self.path("dump"), &mut steps);
        steps.sort();
        steps
    }
}

fn find_steps(dir: &Path, steps: &mut Vec<(u64, Vec<String>)>) {
    let entries: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let (dirs, files): (Vec<_>, Vec<_>) = entries.iter().partition(|e| e.path().is_dir());
    dirs.iter()
        .filter(|entry| entry.file_name() != ".opscope")
        .for_each(|entry| find_steps(&entry.path(), steps));
    if !files.is_empty() {
        let step = name(dir.to_owned()).parse().unwrap();
        let op_name =
            |file: &&fs::DirEntry| name(file.path()).split('.').nth(1).unwrap().to_owned();
        let mut op_names: Vec<String> = files.iter().map(op_name).collect();
        op_names.sort();
        steps.push((step, op_names));
    }
}

struct Running {
    child: Child,
    told: BufReader<ChildStderr>,
}

impl Running {
    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// The next line with `text` in it; all lines before it are expected too.
    fn wait_for(&mut self, text: &str) -> String {
        let mut line = String::new();
        assert!(
            self.told.read_line(&mut line).unwrap() > 0,
            "no line with `{text}`"
        );
        assert!(line.contains(text), "`{line}` instead of `{text}`");
        line
    }

    /// The step in which `text` takes effect.
    fn step_of(&mut self, text: &str) -> u64 {
        let line = self.wait_for(text);
        line.trim().rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Interrupts the run; its report, and other output.
    fn end(mut self) -> (Value, String) {
        self.signal("INT");
        let mut report = String::new();
        let mut rest = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut report)
            .unwrap();
        self.told.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130), "{rest}");
        (serde_json::from_str(&report).unwrap(), rest)
    }
}

fn expect_steps(place: &Place, expected: &[(Range<u64>, &str)]) {
    let of_range = |(range, name): &(Range<u64>, &str)| {
        let step = |step| (step, vec![(*name).to_owned()]);
        range.clone().map(step).collect::<Vec<_>>()
    };
    let expected: Vec<_> = expected.iter().flat_map(of_range).collect();
    assert_eq!(place.steps(), expected);
}

#[test]
fn a_signal_switches_off_and_on() {
    let place = Place::new();
    let mut running = place.run(&["/conv1/Conv", NO_OPERATOR], false);
    running.wait_for(NO_OPERATOR);
    running.signal("USR1");
    let off = running.step_of("dump off from step");
    running.signal("USR1");
    let on = running.step_of("dump on from step");
    running.signal("USR1");
    let end = running.step_of("dump off from step");
    assert!(off < on && on < end);
    // Interrupted while nothing is dumped.
    let (report, rest) = running.end();
    expect_steps(&place, &[(0..off, "_conv1_Conv"), (on..end, "_conv1_Conv")]);
    let n_dumped = off + end - on;
    assert_eq!(report["steps_dumped"], n_dumped);
    assert_eq!(report["files"], n_dumped);
    assert!(report["steps"].as_u64().unwrap() > end);
    assert!(
        rest.contains("stopped") && !rest.contains("dump o"),
        "{rest}"
    );
}

#[test]
fn a_file_switches_and_replaces_the_configuration() {
    let place = Place::new();
    place.control(r#"{"enabled": false}"#);
    let mut running = place.run(&["/conv1/Conv", NO_OPERATOR], true);
    running.wait_for(NO_OPERATOR);
    assert_eq!(running.step_of("dump off from step"), 0);
    // Both at once, in one step.
    let config = place.config(&["/fc/Gemm", "none"]);
    place.control(&json!({"enabled": true, "config": config}).to_string());
    let on = running.step_of("dump on from step");
    assert_eq!(running.step_of("another configuration from step"), on);
    running.wait_for("the model has no operator `none`");
    // An error is reported once and changes nothing.
    place.control("{\n\"enabled\": 0}");
    running.wait_for("control.json:2:12: error at `/enabled`: found a number, expected `true`");
    running.wait_for("changes nothing");
    let mut elsewhere = place.config(&["/fc/Gemm"]);
    elsewhere["dump"]["dump_path"] = json!(place.dir.path());
    place.control(&json!({"enabled": false, "config": elsewhere}).to_string());
    running.wait_for("as at the start");
    let mut other = place.config(&["/fc/Gemm"]);
    other["dump"] = json!({"dump_path": place.path("dump"), "dump_debug": "on"});
    place.control(&json!({"config": other}).to_string());
    running.wait_for("the plan is for operators that overflow, expected one for values");
    // A signal has the file read although it did not change.
    running.signal("USR1");
    running.wait_for("the plan is for operators that overflow");
    // Another file, by its path.
    fs::write(
        place.path("conv.json"),
        place.config(&["/conv1/Conv"]).to_string(),
    )
    .unwrap();
    place.control(&json!({"config": place.path("conv.json")}).to_string());
    let conv = running.step_of("another configuration from step");
    // A file that goes away changes nothing; one that comes back counts.
    fs::remove_file(place.path("control.json")).unwrap();
    running.signal("USR1");
    running.wait_for("cannot read the configuration");
    place.control(r#"{"enabled": false}"#);
    let end = running.step_of("dump off from step");
    let (report, _) = running.end();
    expect_steps(
        &place,
        &[(on..conv, "_fc_Gemm"), (conv..end, "_conv1_Conv")],
    );
    assert_eq!(report["steps_dumped"], end - on);
    assert_eq!(report["records"]["dropped"], 0);
}

#[test]
fn a_file_may_come_later() {
    let place = Place::new();
    let mut running = place.run(&["/conv1/Conv", NO_OPERATOR], true);
    running.wait_for(NO_OPERATOR);
    place.control(r#"{"enabled": false}"#);
    let off = running.step_of("dump off from step");
    running.end();
    expect_steps(&place, &[(0..off, "_conv1_Conv")]);
}

#[test]
fn a_file_that_is_wrong_at_the_start_is_refused() {
    let place = Place::new();
    for (content, code, expected) in [
        ("{", 2, "not valid JSON"),
        (
            r#"{"enable": false}"#,
            2,
            "1:2: error: unknown key `enable`",
        ),
        (
            r#"{"config": {"dump": {"dump_list": 3}}}"#,
            2,
            "at `/config/dump/dump_list`",
        ),
        (r#"{"config": "nowhere.json"}"#, 3, "nowhere.json"),
    ] {
        place.control(content);
        let mut command = opscope();
        command
            .arg("dump")
            .arg(digits("digits_cnn.onnx"))
            .arg("--control");
        command.arg(place.path("control.json"));
        command
            .args([
                "--seed",
                "0",
                "--shape",
                "image:1,1,8,8",
                "--form",
                "acl",
                "--out",
            ])
            .arg(place.path("out"));
        let (found, _, errors) = text(&mut command);
        assert_eq!(found, code, "{errors}");
        assert!(errors.contains(expected), "{errors}");
        assert!(!place.path("out").exists());
    }
}

#[test]
fn operators_on_their_own_are_switched_too() {
    let place = Place::new();
    let description = r#"[{"op": "Abs",
        "input_desc": [{"format": "ND", "shape": [4], "type": "float32"}],
        "output_desc": [{"format": "ND", "shape": [4], "type": "float32"}]}]"#;
    fs::write(place.path("op.json"), description).unwrap();
    for (is_enabled, n_files) in [(true, 1), (false, 0)] {
        place.control(&json!({"enabled": is_enabled}).to_string());
        let mut command = opscope();
        command
            .arg("op")
            .arg(place.path("op.json"))
            .args(["--seed", "0", "--json", "--form", "acl", "--out"]);
        command
            .arg(place.path("out"))
            .arg("--control")
            .arg(place.path("control.json"));
        let report = run_json(&mut command);
        assert_eq!(report["files"], n_files, "{report}");
    }
}
