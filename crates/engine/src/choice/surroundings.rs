//! The parts of the program's surroundings that decide where libraries are looked for.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The directories in which Debian's own Python packages lie.
const SYSTEM_PACKAGES: &str = "/usr/lib/python3/dist-packages";
/// Variables that are read.
const VARIABLES: [&str; 7] = [
    "ORT_DYLIB_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PATH",
    "PYENV_VERSION",
    "PYTHONUSERBASE",
    "HOME",
];

/// Returns the location of the Python package `onnxruntime`, if known.
type PackageOf = fn() -> Option<PathBuf>;

static HOST_PACKAGE: OnceLock<PackageOf> = OnceLock::new();

/// Lets a program that has a Python interpreter in it say where that one finds the package
/// `onnxruntime`: the directory of that name.
///
/// `package` is asked when an engine is chosen, not before. It ranks after what a user has named
/// and before all other environments. The first caller counts.
pub fn look_in_package(package: fn() -> Option<PathBuf>) {
    // Modules may be initialised twice, each time with the same function.
    let _ = HOST_PACKAGE.set(package);
}

/// The surroundings at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct SearchSurroundings {
    /// Variables that are set and not empty.
    pub(super) variables: BTreeMap<&'static str, OsString>,
    /// The directory `onnxruntime` that the interpreter around this program imports.
    pub(super) host_package: Option<PathBuf>,
    /// Where the system's own Python packages lie.
    pub(super) system_packages: PathBuf,
}

impl SearchSurroundings {
    /// Those of this program.
    pub(super) fn of_process() -> SearchSurroundings {
        // The values are read once, so that the answer and the message about it agree.
        let variables = VARIABLES.into_iter().filter_map(|name| {
            let value = std::env::var_os(name)?;
            Some((name, value)).filter(|(_, value)| !value.is_empty())
        });
        SearchSurroundings {
            variables: variables.collect(),
            host_package: HOST_PACKAGE.get().and_then(|package| package()),
            system_packages: SYSTEM_PACKAGES.into(),
        }
    }

    /// The path in a variable.
    pub(super) fn path(&self, name: &str) -> Option<&Path> {
        self.variables.get(name).map(Path::new)
    }
}
