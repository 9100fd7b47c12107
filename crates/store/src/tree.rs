//! One module for each directory dialect. Only these modules name a directory or file pattern.

pub mod acl;
pub mod mindspore;
pub mod outputs;
pub mod own;
pub mod run;

use std::path::{Component, Path};

/// Names of the directories on a path, outermost first.
fn directory_names(dir: &Path) -> Vec<String> {
    dir.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect()
}
