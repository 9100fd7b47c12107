//! Rules of `ARCHITECTURE.md` that can be checked automatically.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::command::{metadata, root};
use crate::prose;
use crate::rings::ModuleTree;
use crate::source_text::SourceText;
use crate::style::StyleCounts;

/// The crates that each crate may depend on, from the lowest floor to the highest. The fronts above
/// them may depend on any.
const ALLOWED: &[(&str, &[&str])] = &[
    ("opscope-tensor", &[]),
    ("opscope-difference", &["tensor"]),
    ("opscope-store", &["tensor"]),
    ("opscope-remote", &["tensor", "store"]),
    ("opscope-overflow", &["tensor", "store"]),
    ("opscope-capture", &["tensor", "store", "overflow"]),
    (
        "opscope-analysis",
        &["tensor", "difference", "store", "overflow"],
    ),
    ("opscope-ranks", &["tensor", "store", "analysis"]),
    ("opscope-tables", &["tensor", "store", "analysis"]),
    ("opscope-msaccucmp", &["tensor", "store", "analysis"]),
    ("opscope-view", &["tensor", "store", "analysis"]),
    ("opscope-config", &["tensor", "store", "capture"]),
    ("opscope-engine", &["tensor", "store", "capture"]),
    ("opscope-sensitivity", &["tensor", "store", "engine"]),
    (
        "opscope-dump",
        &["tensor", "store", "overflow", "capture", "config", "engine"],
    ),
    (
        "opscope-diff",
        &["tensor", "store", "analysis", "capture", "engine", "dump"],
    ),
    (
        "opscope-acl",
        &["tensor", "store", "capture", "config", "engine", "dump"],
    ),
];
/// Maximum number of import cycles between files, and of the files in a cycle.
const RINGS_MAX: usize = 3;
const RING_FILES_MAX: usize = 3;

/// The directory of the Python package.
const PYTHON_SOURCES: &str = "bindings/python/py_src/opscope";
/// Files that may hold `unsafe`.
const UNSAFE_FILES: &[&str] = &[
    "bindings/c/src/log.rs",
    "bindings/c/src/pointer.rs",
    "bindings/python/src/capture/memory.rs",
    "bindings/python/src/reading/arrow.rs",
    "crates/acl/src/memory.rs",
    "crates/engine/src/onnx/ort/device/cuda.rs",
    "crates/engine/src/onnx/ort/device/cuda/api.rs",
    "crates/engine/src/onnx/ort/device/cuda/context.rs",
    "crates/engine/src/onnx/ort/device/cuda/tests/fake.rs",
    "crates/engine/src/onnx/ort/device/cuda/loader.rs",
    "crates/engine/src/onnx/ort/device/cuda/pinned.rs",
    "crates/engine/src/onnx/ort/device/cuda/progress.rs",
    "crates/engine/src/onnx/ort/loan.rs",
    "crates/engine/src/onnx/ort/memory.rs",
    "crates/engine/src/onnx/ort/native.rs",
    "crates/store/src/file_bytes.rs",
    "crates/tensor/src/convert/layout/turn.rs",
    "crates/tensor/src/convert/layout/turn/tests.rs",
    "crates/tensor/src/cpu.rs",
    "crates/tensor/src/cpu/avx2.rs",
    "crates/tensor/src/cpu/avx512.rs",
    "crates/tensor/src/cpu/registers.rs",
];

/// Calls that open a file for reading, which only `store::regular_file` may do.
const OPENING: &[&str] = &[
    "File::open(",
    "fs::read(",
    "fs::read_to_string(",
    "OpenOptions::new()",
];
/// Files that may open others: the one place for reading, code that writes, and code that reads
/// from the kernel.
const OPENING_FILES: &[&str] = &[
    "crates/acl/src/functions/memory.rs",
    "crates/capture/src/failure.rs",
    "crates/msaccucmp/src/convert/batch.rs",
    "crates/remote/src/object.rs",
    "crates/store/src/atomic_file/directories.rs",
    "crates/store/src/memory.rs",
    "crates/store/src/owner.rs",
    "crates/store/src/regular_file.rs",
    "crates/store/src/run_file/host.rs",
    "crates/store/src/run_file/in_place.rs",
];

/// Files that write to standard output and standard error; each escapes what comes from files.
const TERMINAL_FILES: &[&str] = &[
    "bindings/c/src/log.rs",
    "crates/acl/src/log.rs",
    "crates/cli/src/console.rs",
    "crates/msaccucmp/src/log.rs",
];
/// The same for the Python package, where users' programs log, warn and print through it.
const TERMINAL_MODULES: &[&str] = &[
    "_diff_command.py",
    // Its standard error is a file, which the command line reads and escapes.
    "_duckdb.py",
    "_visible.py",
    "_warning.py",
    "acl/_log.py",
    "acl/util.py",
    "cluster/_progress.py",
    "cluster/_tasks.py",
    "torch/_dump.py",
    "torch/_printing.py",
    "torchair/core/utils.py",
];
/// Words that write to a terminal.
const TERMINAL_WORDS: &[&str] = &[
    "print!(",
    "println!(",
    "eprint!(",
    "eprintln!(",
    "dbg!(",
    "io::stdout",
    "io::stderr",
    " stdout()",
    " stderr()",
    "(stdout()",
    "(stderr()",
    "!stderr()",
];
const PYTHON_TERMINAL_WORDS: &[&str] = &[
    "sys.stdout",
    "sys.stderr",
    "warnings.warn(",
    "logging.getLogger(",
];

pub(crate) fn check() -> Result<()> {
    eprintln!("== invariants");
    let mut problems = Vec::new();
    dependencies(&mut problems)?;
    let mut counts = StyleCounts::default();
    let mut trees: BTreeMap<String, ModuleTree> = BTreeMap::new();
    for dir in ["crates", "bindings", "xtask"] {
        for file in files(&root().join(dir), "rs")? {
            let text = fs::read_to_string(&file)?;
            let name = file.strip_prefix(root())?.display().to_string();
            if dir != "xtask" {
                source(&name, &text, &mut problems);
            }
            if let Some((crate_dir, path_in_src)) = program_file(&name) {
                let parsed = SourceText::parse(&text);
                counts.add(&text, &parsed);
                let tree = trees.entry(crate_dir.to_owned()).or_default();
                tree.add(path_in_src, &parsed);
            }
        }
    }
    problems.extend(counts.problems());
    rings(&trees, &mut problems);
    for file in files(&root().join(PYTHON_SOURCES), "py")? {
        let text = fs::read_to_string(&file)?;
        let name = file.strip_prefix(root().join(PYTHON_SOURCES))?;
        terminal_of_python(&name.display().to_string(), &text, &mut problems);
    }
    for file in prose()? {
        let text = fs::read_to_string(&file)?;
        let name = file.strip_prefix(root())?.display().to_string();
        let lines = prose::too_wide(&text).into_iter();
        problems.extend(lines.map(|line| format!("{name}:{line}: prose wider than 100 columns")));
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// The Markdown files.
fn prose() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for dir in ["docs", "tests", "examples"] {
        found.extend(files(&root().join(dir), "md")?);
    }
    let names = [
        "README.md",
        "README.zh-CN.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
    ];
    found.extend(names.map(|name| root().join(name)));
    Ok(found)
}

/// The crate's directory and the path below `src/` of a file that is part of the product.
fn program_file(name: &str) -> Option<(&str, &str)> {
    let (crate_dir, path) = name.split_once("/src/")?;
    let is_test = path == "tests.rs" || path.ends_with("/tests.rs") || path.contains("/tests/");
    (!is_test).then_some((crate_dir, path))
}

fn rings(trees: &BTreeMap<String, ModuleTree>, problems: &mut Vec<String>) {
    let mut n_rings = 0;
    for (crate_dir, tree) in trees {
        for ring in tree.rings() {
            n_rings += 1;
            if ring.len() > RING_FILES_MAX || n_rings > RINGS_MAX {
                problems.push(format!(
                    "{crate_dir}: {} files import each other in a cycle: {}",
                    ring.len(),
                    ring.join(", ")
                ));
            }
        }
    }
}

fn source(name: &str, text: &str, problems: &mut Vec<String>) {
    if !text.starts_with("//!") && !name.ends_with("/tests.rs") {
        problems.push(format!("{name}: expected a doc comment of the file"));
    }
    if name.starts_with("crates/tensor/src/") {
        for word in ["std::fs", "std::thread"] {
            if text.contains(word) {
                problems.push(format!(
                    "{name}: `tensor` may not open files or start threads"
                ));
            }
        }
    }
    if opens_files(name, text) {
        problems.push(format!(
            "{name}: only `store::regular_file` may open files for reading"
        ));
    }
    terminal(name, text, problems);
    let has_unsafe = text.contains("unsafe {") || text.contains("unsafe fn");
    if has_unsafe && !UNSAFE_FILES.contains(&name) {
        problems.push(format!(
            "{name}: `unsafe` outside the places that may hold it"
        ));
    }
}

/// Whether a file of the program opens files outside of its tests.
fn opens_files(name: &str, text: &str) -> bool {
    let is_program =
        name.contains("/src/") && !name.contains("/tests") && !name.contains("_tests/");
    if !is_program || OPENING_FILES.contains(&name) {
        return false;
    }
    let program = text.split("#[cfg(test)]\nmod tests").next();
    let mut lines = program.unwrap_or_default().lines();
    lines.any(|line| {
        let is_comment = line.trim_start().starts_with("//");
        !is_comment && OPENING.iter().any(|call| calls(line, call))
    })
}

/// Whether a line has this call; `TensorFile::open` and the like are not `File::open`.
fn calls(line: &str, call: &str) -> bool {
    let mut places = line.match_indices(call);
    places.any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric()))
}

/// Text from files reaches a terminal only through the files that escape it.
fn terminal(name: &str, text: &str, problems: &mut Vec<String>) {
    let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
    if !name.contains("/src/") || is_test || TERMINAL_FILES.contains(&name) {
        return;
    }
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    for line in lines {
        if TERMINAL_WORDS.iter().any(|word| line.contains(word)) {
            problems.push(format!(
                "{name}: only {} may write to standard output and standard error: `{}`",
                TERMINAL_FILES.join(", "),
                line.trim()
            ));
        }
    }
}

fn terminal_of_python(name: &str, text: &str, problems: &mut Vec<String>) {
    if TERMINAL_MODULES.contains(&name) {
        return;
    }
    for word in PYTHON_TERMINAL_WORDS {
        if text
            .lines()
            .any(|line| line.starts_with("    ") && line.contains(word) && !line.contains(">>>"))
        {
            problems.push(format!(
                "{PYTHON_SOURCES}/{name}: `{}` outside of the modules that escape text",
                word.trim()
            ));
        }
    }
}

fn dependencies(problems: &mut Vec<String>) -> Result<()> {
    let metadata = metadata(&["--no-deps"])?;
    let direct = |package: &str| -> Vec<String> {
        let packages = metadata["packages"].as_array();
        let found = packages
            .into_iter()
            .flatten()
            .find(|entry| entry["name"] == package);
        let dependencies = found.and_then(|entry| entry["dependencies"].as_array());
        dependencies
            .into_iter()
            .flatten()
            .filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
            .collect()
    };
    for (package, allowed) in ALLOWED {
        let crates = direct(package);
        for name in crates
            .iter()
            .filter_map(|name| name.strip_prefix("opscope-"))
        {
            if !allowed.contains(&name) {
                problems.push(format!(
                    "{package} depends on opscope-{name}, which it may not"
                ));
            }
        }
    }
    Ok(())
}

fn files(dir: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == ending)
            {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
