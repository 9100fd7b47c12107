//! Processes forked during a dump: they dump nothing, and the parent's dump continues.

#![cfg(feature = "tract")]

#[path = "support/digits.rs"]
mod digits;
mod support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use digits::N_IMAGE_BYTES;
use opscope_store::dump;
use opscope_store::file_format::dump_data::DumpFile;
use support::Program;

/// Number of executions of each operator in a dump, all of whose files are complete.
fn n_runs(dir: &Path) -> BTreeMap<String, usize> {
    let listing = dump::list(dir);
    assert!(listing.errors.is_empty(), "{:?}", listing.errors);
    let mut n_runs = BTreeMap::new();
    for entry in listing.entries {
        let file = DumpFile::open(&entry.path).expect("a file of the dump");
        *n_runs.entry(file.header().op_name.clone()).or_default() += 1;
    }
    n_runs
}

fn check(program: &Program, engine: &str, library: Option<&OsStr>) {
    let dir = |name: &str| {
        let dir = program.dir().join(format!("{engine}_{name}"));
        std::fs::create_dir(&dir).expect("a directory for a dump");
        dir
    };
    let (parent, child) = (dir("parent"), dir("child"));
    let config = |dir: &Path| {
        let text = format!(
            r#"{{"dump":{{"dump_path":"{}","dump_list":[{{}}],"dump_mode":"all"}}}}"#,
            dir.display()
        );
        let name = dir.file_name().expect("it has a name").to_string_lossy();
        program.file(&format!("{name}.json"), text)
    };
    let model = program.file("digits.onnx", digits::fixed_model(1));
    let image = program.file("image.bin", &digits::images()[..N_IMAGE_BYTES]);
    let mut variables = vec![("OPSCOPE_ENGINE", OsStr::new(engine))];
    variables.extend(library.map(|library| ("OPSCOPE_ENGINE_LIB", library)));
    let said = program.run_in(
        &variables,
        &[&model, &config(&parent), &image, &config(&child)],
    );
    assert_eq!(said.stderr, "", "{engine}");
    let n_expected: usize = said.stdout.trim().parse().expect("a number");
    let of_parent = n_runs(&parent);
    assert!(of_parent.len() > 5, "{of_parent:?}");
    assert!(
        of_parent.values().all(|n| *n == n_expected),
        "{n_expected} executions, {of_parent:?}"
    );
    let of_child = n_runs(&child);
    assert!(of_child.keys().eq(of_parent.keys()), "{of_child:?}");
    assert!(of_child.values().all(|n| *n == 2), "{of_child:?}");
}

#[test]
fn nothing_of_a_dump_runs_in_a_fork() {
    let program = Program::compile("fork.c");
    check(&program, "tract", None);
    if let Some(library) = std::env::var_os("OPSCOPE_ENGINE_LIB") {
        check(&program, "onnxruntime", Some(&library));
    }
}
