//! Whether two MindSpore trees have the same directories and the same grammar of file names.
//!
//! Tests of other crates take this file by `#[path]`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use opscope_store::dump::read_mapping;
use opscope_store::tree::mindspore::TensorFileName;

/// Patterns of paths that only one of two trees has, whatever model and steps they are of: names of
/// operators and all numbers are left out, and the digits of a time are counted. None if both have
/// the same grammar.
pub(crate) fn grammar_differences(first: &Path, second: &Path) -> Vec<String> {
    let (a, b) = (grammar(first), grammar(second));
    let only = |names: &BTreeSet<String>, others: &BTreeSet<String>, which: &str| {
        let missing = names.difference(others);
        let lines: Vec<_> = missing
            .map(|name| format!("only {which}: {name}"))
            .collect();
        lines
    };
    [only(&a, &b, "first"), only(&b, &a, "second")].concat()
}

fn grammar(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeMap::new();
    walk(root, "", &abstract_name, &mut found);
    found.into_keys().map(|path| pattern(&path)).collect()
}

/// A path without numbers and without the name of the network.
fn pattern(path: &str) -> String {
    let mut names: Vec<String> = path.split('/').map(without_numbers).collect();
    let is_fixed = |name: &str| ["graphs", "execution_order", ".dump_metadata", ""].contains(&name);
    if let [rank, below, ..] = &mut names[..]
        && rank == "rank_<n>"
        && !is_fixed(below)
    {
        *below = "<net>".to_owned();
    }
    names.join("/")
}

/// Which parts a tensor's file name has, in which spelling.
fn abstract_name(name: &TensorFileName) -> String {
    let n_digits = name.timestamp.to_string().len();
    let op_type = if name.is_parameter() {
        "Parameter"
    } else {
        "<type>"
    };
    let dtype = name.dtype.as_deref().map(|dtype| match dtype {
        camel if camel.starts_with(|c: char| c.is_ascii_uppercase()) => "<Dtype>",
        _ => "<dtype>",
    });
    let (layout, dtype) = (&name.layout, dtype.unwrap_or("no dtype"));
    let has_bad = name.op_name.contains(['.', '/', ' ', '\\']);
    let op_name = if has_bad { "<bad name>" } else { "<name>" };
    format!("{op_type}.{op_name}.0.0.<{n_digits} digits>.<side>.0.{layout}.{dtype}.npy")
}

/// The name with `<n>` in place of digits, unless it is a pattern already.
fn without_numbers(name: &str) -> String {
    if name.contains('<') {
        return name.to_owned();
    }
    let mut out = String::new();
    for c in name.chars() {
        match c {
            '0'..='9' if out.ends_with("<n>") => {}
            '0'..='9' => out.push_str("<n>"),
            other => out.push(other),
        }
    }
    out
}

/// Compares the file names of two trees. Parts that differ from run to run are left out: times, and
/// the digits of short names. Each line says how often a name occurs in the first tree and how
/// often in the second; there are none if the trees are alike.
pub(crate) fn differences(first: &Path, second: &Path) -> Vec<String> {
    let (a, b) = (names(first), names(second));
    let all: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    let count = |names: &BTreeMap<String, usize>, name: &str| names.get(name).copied().unwrap_or(0);
    all.into_iter()
        .filter(|name| count(&a, name) != count(&b, name))
        .map(|name| format!("{name}: {} and {}", count(&a, name), count(&b, name)))
        .collect()
}

/// How often each abstracted path occurs.
fn names(root: &Path) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    walk(root, "", &without_timestamp, &mut found);
    found
}

fn walk(
    dir: &Path,
    prefix: &str,
    rename: &dyn Fn(&TensorFileName) -> String,
    found: &mut BTreeMap<String, usize>,
) {
    let mapping = read_mapping(dir);
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        // The record of a run is no part of the tree.
        if name == ".opscope" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            let path = format!("{prefix}{}/", without_time(&name));
            walk(&entry.path(), &path, rename, found);
            *found.entry(path).or_default() += 1;
        } else {
            let path = format!("{prefix}{}", file_name(&name, &mapping, rename));
            *found.entry(path).or_default() += 1;
        }
    }
}

fn file_name(
    name: &str,
    mapping: &HashMap<String, String>,
    rename: &dyn Fn(&TensorFileName) -> String,
) -> String {
    let (mark, real) = match mapping.get(name) {
        Some(real) => ("<digits> = ", real.as_str()),
        None => ("", name),
    };
    let renamed = TensorFileName::parse(real).map(|name| rename(&name));
    format!("{mark}{}", renamed.unwrap_or_else(|| real.to_owned()))
}

fn without_timestamp(name: &TensorFileName) -> String {
    let mut name = name.clone();
    let n_digits = name.timestamp.to_string().len();
    assert_eq!(n_digits, 16, "microseconds: {name}");
    name.timestamp = 0;
    name.to_string()
}

/// A directory that is named by the time of the run.
fn without_time(name: &str) -> &str {
    let is_time = name.len() == 14 && name.bytes().all(|b| b.is_ascii_digit());
    if is_time { "<time>" } else { name }
}
