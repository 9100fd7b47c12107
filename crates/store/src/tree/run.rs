//! The path of a run's record: `{root}/.opscope/run.json`. Those of earlier runs into the same
//! directory are `run-{n}.json`, of which `run-1.json` is the oldest.

use std::path::{Path, PathBuf};

use crate::decimal::is_digits;

/// The directory of what a run leaves about itself; readers of dumps pass over it.
pub const RUN_DIR: &str = super::own::OWN_DIR;
/// The record of the latest run.
pub const RUN_FILE: &str = "run.json";

/// `{root}/.opscope`.
pub fn run_dir(root: &Path) -> PathBuf {
    root.join(RUN_DIR)
}

/// The name of the record of the `n`th run but for the latest.
pub fn earlier_run_file(n: u64) -> String {
    format!("run-{n}.json")
}

/// The number in such a name.
pub fn earlier_run_number(name: &str) -> Option<u64> {
    let n = name.strip_prefix("run-")?.strip_suffix(".json")?;
    let n: u64 = n.parse().ok()?;
    // `parse` takes `+7` and `007` as well, which are names of other people's files.
    (earlier_run_file(n) == name).then_some(n)
}

/// Whether a name is that of a run's directory in an AscendCL tree: 14 digits.
pub fn is_time(name: &str) -> bool {
    name.len() == 14 && name.bytes().all(|b| b.is_ascii_digit())
}

/// The number of levels below a directory of this name in a MindSpore tree; `None` for other names.
pub fn levels_below(name: &str) -> Option<usize> {
    match name.strip_prefix("rank_") {
        // Below a rank are the network, the graph and the iteration. Below a step are the time, the
        // device, the model, its number and the iteration; a tree without steps has one level less.
        Some(rank) => is_digits(rank).then_some(3),
        None => is_digits(name).then_some(5),
    }
}
