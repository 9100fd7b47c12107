//! One module for each directory dialect. Only these modules name a directory or file pattern.

pub mod acl;
pub mod arrays;
pub mod debug_mode;
pub mod mindspore;
pub mod msprobe;
pub mod native;
pub mod outputs;
pub mod own;
pub mod run;
pub mod sglang;

use std::path::{Component, Path};

use crate::decimal::number;

/// Names of the directories on a path, outermost first.
fn directory_names(dir: &Path) -> Vec<String> {
    dir.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect()
}
