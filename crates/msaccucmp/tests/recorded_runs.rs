//! Replays the recorded runs of the vendor's tool in `golden`, and compares.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Arguments for the processes that run the drop-in, one per line.
const ARGUMENTS: &str = "OPSCOPE_TEST_MSACCUCMP_ARGUMENTS";
/// Files whose lines may come in any order.
const LINE_SETS: [&str; 2] = ["mapping.csv", "convert_failed_file_list.txt"];
/// The same, by suffix.
const LINE_SET_END: &str = "_topn.csv";
/// The case with converters in Python.
const PYTHON_CASE: &str = "format_custom_plugin";
/// The case with metrics in Python, which needs numpy for all but one of its runs.
const PYTHON_METRICS_CASE: &str = "compare_custom_algorithm";
const N_RUNS: usize = 383;
/// Text before or after the time in names of results.
const TIMED_NAMES: [&str; 4] = ["overflow_summary_", "file_result_", "result_", "mapping_"];
const TIME_DIGITS: usize = 14;
const TIME: &str = "TIMESTAMP";

/// Not a test: the process that runs the drop-in, so that each run has a separate current directory
/// and stderr.
#[test]
fn drop_in_process() {
    if let Ok(arguments) = std::env::var(ARGUMENTS) {
        let arguments: Vec<OsString> = arguments.lines().map(OsString::from).collect();
        std::process::exit(opscope_msaccucmp::run(&arguments));
    }
}

#[test]
fn every_recorded_run_comes_out_the_same() {
    let has_numpy = Command::new("python3")
        .args(["-c", "import numpy"])
        .output()
        .is_ok_and(|output| output.status.success());
    let mut n_runs = 0;
    let mut differences = Vec::new();
    for case in sorted_entries(&golden()) {
        let Ok(runs) = fs::read(case.join("runs.json")) else {
            continue;
        };
        let runs: BTreeMap<String, Value> = serde_json::from_slice(&runs).unwrap();
        let temporary = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(temporary.path()).unwrap();
        copy_tree(&case.join("in"), &place.join("in"));
        for (name, run) in runs {
            n_runs += 1;
            let id = format!("{}/{name}", case.file_name().unwrap().display());
            let mut found = replay(&place, &case.join("out").join(&name), &name, &run);
            if case.ends_with(PYTHON_CASE) && !has_numpy {
                // Nothing to compare, but the command must fail like the reference.
                found.retain(|difference| difference.starts_with("exit 0"));
            }
            if case.ends_with(PYTHON_METRICS_CASE) && !has_numpy {
                // Results are missing, because the scripts cannot be inspected.
                found.clear();
            }
            differences.extend(
                found
                    .into_iter()
                    .map(|difference| format!("{id}: {difference}")),
            );
        }
    }
    assert_eq!(differences, Vec::<String>::new());
    assert_eq!(n_runs, N_RUNS);
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Runs one command in `place` and returns the differences from the record.
fn replay(place: &Path, recorded: &Path, name: &str, run: &Value) -> Vec<String> {
    let out = place.join("out").join(name);
    fs::create_dir_all(&out).unwrap();
    let words = words(run["cmd"].as_str().unwrap());
    let arguments: Vec<String> = words[1..]
        .iter()
        .map(|word| match word.strip_prefix("OUT") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                format!("{}{rest}", out.display())
            }
            _ => word.clone(),
        })
        .collect();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["drop_in_process", "--exact", "--nocapture"])
        .env(ARGUMENTS, arguments.join("\n"))
        .current_dir(place)
        .output()
        .unwrap();
    let status = output.status.code();
    let mut differences = missing_lines(&output.stderr, &run["shown"]);
    if status != run["rc"].as_i64().map(|rc| rc as i32) {
        let log = String::from_utf8_lossy(&output.stderr);
        differences.push(format!(
            "exit {}, recorded {}: {log}",
            status.unwrap_or(-1),
            run["rc"]
        ));
    }
    let (expected, found) = (files(recorded), files(&out));
    for name in expected.keys().filter(|name| !found.contains_key(*name)) {
        differences.push(format!("`{name}` is missing"));
    }
    for (name, path) in &found {
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        if mode != 0o600 {
            differences.push(format!("`{name}` has mode {mode:o}"));
        }
        match expected.get(name) {
            None => differences.push(format!("`{name}` is new")),
            Some(other) if !is_same(name, path, other, place) => {
                differences.push(format!("`{name}` differs"));
            }
            Some(_) => {}
        }
    }
    differences
}

/// The recorded lines that were not printed.
fn missing_lines(log: &[u8], expected: &Value) -> Vec<String> {
    let log = String::from_utf8_lossy(log);
    let shown: Vec<&str> = log
        .lines()
        .filter_map(|line| Some(line.split_once("[INFO] ")?.1))
        .collect();
    let expected = expected.as_array().into_iter().flatten();
    expected
        .filter_map(Value::as_str)
        .filter(|line| !shown.contains(line))
        .map(|line| format!("not shown: `{line}`"))
        .collect()
}

/// The words of a command line with quoting.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split(['\'', '"']).enumerate() {
        if i % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn is_same(name: &str, found: &Path, expected: &Path, place: &Path) -> bool {
    let (found, expected) = (fs::read(found).unwrap(), fs::read(expected).unwrap());
    if found == expected || name.ends_with(".npy") || name.ends_with(".bin") {
        return found == expected;
    }
    let found = String::from_utf8(found)
        .unwrap()
        .replace(place.to_str().unwrap(), "@CASE@");
    let expected = without_times(&String::from_utf8(expected).unwrap());
    let found = without_times(&found);
    if LINE_SETS.contains(&name) || name.ends_with(LINE_SET_END) {
        return sorted_lines(&found) == sorted_lines(&expected);
    }
    found == expected
}

fn sorted_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The files below `dir` by relative name, with times in names of summaries replaced.
fn files(dir: &Path) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    if !dir.is_dir() {
        return files;
    }
    for path in sorted_entries(dir) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let below = self::files(&path).into_iter();
            files.extend(below.map(|(below, path)| (format!("{name}/{below}"), path)));
        } else {
            files.insert(without_time(&name), path);
        }
    }
    files
}

fn without_time(name: &str) -> String {
    if TIMED_NAMES.iter().any(|part| name.contains(part)) {
        return without_times(name);
    }
    name.to_owned()
}

/// Replaces numbers with as many digits as a time.
fn without_times(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let n_digits = rest[start..].bytes().take_while(u8::is_ascii_digit).count();
        let (before, digits) = rest[..start + n_digits].split_at(start);
        out.push_str(before);
        out.push_str(if n_digits == TIME_DIGITS {
            TIME
        } else {
            digits
        });
        rest = &rest[start + n_digits..];
    }
    out + rest
}

fn sorted_entries(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in sorted_entries(from) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_tree(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
