//! Compares several models at once: a directory of rules, and a dump of all of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use opscope_store::decimal::is_digits;

use super::inputs::NetworkJob;
use super::network;
use super::rule::{graph_names, load_value};
use super::stop::CompareStop;
use crate::failure::ErrorCode;
use crate::log;
use crate::options::CompareOptions;
use crate::paths::{self, PathKind};

/// The expected layout below the given directory.
const LAYOUT: &str = "dump_path/time/device_id/model_name/model_id/dump_step/dump_file";
/// Numbers in the names of models: time and index.
const NAME_NUMBERS: usize = 2;

/// Directories of steps by model.
type Dumps = Vec<(String, Vec<PathBuf>)>;

/// Compares each model that has rules. The status of the last one is returned.
pub(super) fn run(options: &CompareOptions) -> Result<Option<ErrorCode>, CompareStop> {
    if let Some(op) = options.op_name.as_deref().filter(|op| !op.is_empty()) {
        let message = format!(
            "the {op} single operator comparison is not supported for batch network comparison."
        );
        return Err(CompareStop::coded(ErrorCode::InvalidParameter, message));
    }
    let root = paths::resolve(&options.my_path);
    paths::check_input(&root, PathKind::Directory)?;
    let last = root.file_name().unwrap_or_default().to_string_lossy();
    if !is_digits(&last) {
        let message = format!("The {} path must end with a timestamp.", root.display());
        return Err(CompareStop::coded(ErrorCode::InvalidPath, message));
    }
    let rules = rules(&paths::resolve(&options.fusion_rule))?;
    let mut status = None;
    for (rule, steps) in matched(&rules, &root)? {
        for step in steps {
            let my_path = step.display().to_string();
            let job = NetworkJob {
                options,
                my_path: &my_path,
                fusion_rule: &rule.display().to_string(),
                name_start: name_start(&root, &step),
                is_advised: options.is_advised,
                finds_overflow: options.finds_overflow,
            };
            status = network::run(&job)?;
        }
    }
    Ok(status)
}

/// Files with rules by graph name.
fn rules(dir: &Path) -> Result<Vec<(String, PathBuf)>, CompareStop> {
    let mut rules: Vec<(String, PathBuf)> = Vec::new();
    for path in entries(dir)? {
        if !path.to_string_lossy().ends_with(".json") {
            continue;
        }
        let value = load_value(&path)?;
        for name in graph_names(&value, &path)? {
            // As in a Python `dict`: the place of the first rule, the path of the last.
            match rules.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => known.clone_from(&path),
                None => rules.push((name, path.clone())),
            }
        }
    }
    if rules.is_empty() {
        let message = format!("There is no fusion rule json file in {}.", log::quoted(dir));
        return Err(CompareStop::coded(ErrorCode::InvalidPath, message));
    }
    Ok(rules)
}

/// Dumps by rule file, in the order of the rules.
fn matched(
    rules: &[(String, PathBuf)],
    root: &Path,
) -> Result<Vec<(PathBuf, Vec<PathBuf>)>, CompareStop> {
    let dumps = dumps(root)?;
    let by_name: HashMap<&str, &Vec<PathBuf>> = dumps
        .iter()
        .map(|(name, steps)| (name.as_str(), steps))
        .collect();
    let mut matched: Vec<(PathBuf, Vec<PathBuf>)> = Vec::new();
    let mut set = |path: &PathBuf, steps: &Vec<PathBuf>| match matched
        .iter_mut()
        .find(|(known, _)| known == path)
    {
        Some((_, known)) => known.clone_from(steps),
        None => matched.push((path.clone(), steps.clone())),
    };
    for (graph, path) in rules {
        if let Some(steps) = by_name.get(graph.as_str()) {
            set(path, steps);
            continue;
        }
        let graph_numbers = numbers(graph);
        for (model, steps) in &dumps {
            let model_numbers = numbers(model);
            let lengths = [graph_numbers.len(), model_numbers.len()];
            if lengths != [NAME_NUMBERS; 2] {
                return Err(wrong_layout(root));
            }
            // The same graph, built at another time.
            if graph_numbers[1] == model_numbers[1] {
                log::warning(&format!(
                    "The {graph} and {model} are not generated at the same time. The result may be \
                     incorrect."
                ));
                set(path, steps);
            }
        }
    }
    if matched.is_empty() {
        let message = format!("The {} not match fusion rule file", root.display());
        return Err(CompareStop::coded(ErrorCode::InvalidPath, message));
    }
    Ok(matched)
}

/// The last step of each model on each device.
fn dumps(root: &Path) -> Result<Dumps, CompareStop> {
    let mut dumps: Dumps = Vec::new();
    for device in entries(root)? {
        paths::check_input(&device, PathKind::Directory)?;
        for model in entries(&device)? {
            paths::check_input(&model, PathKind::Directory)?;
            let name = model
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            for id in entries(&model)? {
                paths::check_input(&id, PathKind::Directory)?;
                let Some(step) = entries(&id)?.pop() else {
                    continue;
                };
                match dumps.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, steps)) => steps.push(step),
                    None => dumps.push((name.clone(), vec![step])),
                }
            }
        }
    }
    if dumps.is_empty() {
        return Err(wrong_layout(root));
    }
    Ok(dumps)
}

fn wrong_layout(root: &Path) -> CompareStop {
    let message = format!(
        "The {} does not match the path format,please save dump files in the {LAYOUT} path format",
        root.display()
    );
    CompareStop::coded(ErrorCode::InvalidPath, message)
}

/// `{device}_{model}_{step}_`.
fn name_start(root: &Path, step: &Path) -> String {
    let below = step.strip_prefix(root).unwrap_or(step);
    let mut parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
    // Without the ID of the model.
    if parts.len() > 1 {
        parts.remove(parts.len() - 2);
    }
    parts.join("_") + "_"
}

/// Runs of digits.
fn numbers(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .collect()
}

/// The entries of a directory, sorted by name.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, CompareStop> {
    let entries = std::fs::read_dir(dir).map_err(|error| CompareStop::Fatal(error.to_string()))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_results() {
        let found = name_start(Path::new("/d/2021"), Path::new("/d/2021/0/ge_1_2/10/3"));
        assert_eq!(found, "0_ge_1_2_3_");
        assert_eq!(
            numbers("ge_default_20210420113943_71"),
            ["20210420113943", "71"]
        );
    }
}
