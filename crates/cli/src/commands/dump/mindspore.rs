//! A dump that a configuration of MindSpore asks for.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use opscope_capture::{Exclusion, OperatorKey, Plan};
use opscope_config::Issue;
use opscope_config::dialect::mindspore::{self, MindSporeConfig};
use opscope_dump::MindSporeOptions;

use crate::arguments::ModeArguments;
use crate::exit::{Failure, USAGE};

/// The variable that names a configuration.
const CONFIGURATION_VARIABLE: &str = "MINDSPORE_DUMP_CONFIG";
/// Operators that run other graphs, and constants: they are no kernels.
const NO_KERNELS: [&str; 4] = ["If", "Loop", "Scan", "Constant"];

/// The configuration that the environment names, if it names one.
pub(super) fn configuration_of_environment() -> Option<PathBuf> {
    let path = std::env::var_os(CONFIGURATION_VARIABLE)?;
    (!path.is_empty()).then(|| path.into())
}

/// Checks the name of such a configuration; an error says what is wrong with it.
pub(super) fn check_file_name(path: &Path) -> Result<(), Vec<Issue>> {
    mindspore::check_file_name(path).map_err(|issue| vec![*issue])
}

/// Plan of what to keep, and where it goes.
pub(super) struct Dump {
    pub(super) plan: Plan,
    pub(super) options: MindSporeOptions,
}

impl Dump {
    /// `None` if the configuration asks for nothing.
    pub(super) fn new(
        config: MindSporeConfig,
        rank: u32,
        modes: ModeArguments,
        time: String,
    ) -> Result<Option<Dump>, Failure> {
        let Some(dump) = config.dump else {
            return Ok(None);
        };
        let plan = dump.plan();
        let plan = plan.map_err(|error| Failure::new(USAGE, anyhow!(error)))?;
        let excluded = NO_KERNELS.map(|op_type| Exclusion {
            model: None,
            operators: OperatorKey::Type(op_type.to_owned()),
            slots: None,
        });
        Ok(Some(Dump {
            plan: Plan {
                excluded: excluded.into(),
                ..plan
            },
            options: MindSporeOptions::new(dump, rank, modes.modes(), time),
        }))
    }
}
