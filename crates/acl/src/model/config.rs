//! Options for loading a model.

use std::path::{Path, PathBuf};

/// A value of `aclmdlSetConfigOpt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigValue<'a> {
    /// A number or size.
    Number(u64),
    /// A file.
    Path(&'a Path),
    /// A pointer.
    Address(usize),
}

/// Options for loading a model.
#[derive(Debug, Default)]
pub(crate) struct ModelConfig {
    pub(crate) load_type: u64,
    pub(crate) path: Option<PathBuf>,
    pub(crate) address: usize,
    pub(crate) size: usize,
}
