//! Where Python packages of the active environment lie. No Python is started to find out.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use opscope_store::regular_file;

use super::library::names_in;
use super::surroundings::SearchSurroundings;

/// The name of the package, and of its directory. `onnxruntime-gpu` and other builds have it too.
const PACKAGE: &str = "onnxruntime";
/// The directory in it that has the libraries.
const LIBRARIES: &str = "capi";
/// Maximum number of bytes read of pyenv's file of versions.
const PYENV_BYTES_MAX: u64 = 4096;

/// An environment of Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PythonEnvironment {
    /// The reason why it counts, such as `VIRTUAL_ENV`.
    pub(super) whose: String,
    /// Its root.
    pub(super) root: PathBuf,
    /// The directories in which the package would lie.
    packages: Vec<PathBuf>,
    /// Further directories that may hold libraries.
    pub(super) more: Vec<PathBuf>,
}

impl PythonEnvironment {
    fn of_prefix(whose: &str, prefix: &Path) -> PythonEnvironment {
        PythonEnvironment {
            whose: whose.to_owned(),
            root: prefix.to_owned(),
            packages: package_dirs(prefix),
            more: Vec::new(),
        }
    }

    /// Directories that hold the package's libraries.
    pub(super) fn library_dirs(&self) -> Vec<PathBuf> {
        let of_packages = self.packages.iter().map(|dir| dir.join(LIBRARIES));
        of_packages.chain(self.more.iter().cloned()).collect()
    }

    /// A package without a separate library.
    pub(super) fn old_package(&self) -> Option<OldPackage> {
        let dir = self.packages.iter().find(|package| {
            let names = names_in(&package.join(LIBRARIES));
            names
                .iter()
                .any(|name| name.starts_with("onnxruntime_pybind11_state"))
        })?;
        Some(OldPackage {
            version: installed_version(dir),
            dir: dir.clone(),
        })
    }
}

/// A package from before packages had the library as a separate file.
#[derive(Debug)]
pub(super) struct OldPackage {
    pub(super) dir: PathBuf,
    pub(super) version: Option<String>,
}

/// The environments, those first that count most. Each root is listed once.
pub(super) fn places(around: &SearchSurroundings) -> Vec<PythonEnvironment> {
    let mut places = Vec::new();
    // An interpreter around this program has already decided which package it imports; any other
    // could be of another version.
    if let Some(package) = &around.host_package {
        places.push(PythonEnvironment {
            whose: "this interpreter".to_owned(),
            root: package.clone(),
            packages: vec![package.clone()],
            more: Vec::new(),
        });
    }
    if let Some(prefix) = around.path("VIRTUAL_ENV") {
        places.push(PythonEnvironment::of_prefix("VIRTUAL_ENV", prefix));
    }
    if let Some(prefix) = around.path("CONDA_PREFIX") {
        // Conda has the library without Python too.
        let more = vec![prefix.join("lib")];
        let place = PythonEnvironment::of_prefix("CONDA_PREFIX", prefix);
        places.push(PythonEnvironment { more, ..place });
    }
    // An environment that was not activated is still the one whose `python3` the shell finds.
    for prefix in prefixes_of_python(around) {
        places.push(PythonEnvironment::of_prefix(
            "the `python3` on PATH",
            &prefix,
        ));
    }
    places.push(PythonEnvironment {
        whose: "the system".to_owned(),
        root: around.system_packages.clone(),
        packages: vec![around.system_packages.join(PACKAGE)],
        more: Vec::new(),
    });
    let user = around.path("PYTHONUSERBASE").map(Path::to_owned);
    let user = user.or_else(|| around.path("HOME").map(|home| home.join(".local")));
    if let Some(base) = user {
        places.push(PythonEnvironment::of_prefix("the user", &base));
    }
    let mut seen = BTreeSet::new();
    // The same root may be named twice, as by VIRTUAL_ENV and by PATH, and a message lists each
    // once.
    places.retain(|place| seen.insert(place.root.clone()));
    places
}

/// The directories in an environment, or among other packages, that have the package's libraries.
pub(super) fn library_dirs_in(dir: &Path) -> Vec<PathBuf> {
    let mut dirs = vec![dir.join(LIBRARIES), dir.join(PACKAGE).join(LIBRARIES)];
    let packages = package_dirs(dir);
    dirs.extend(packages.iter().map(|package| package.join(LIBRARIES)));
    dirs
}

/// Where the package would lie in an installation of Python.
fn package_dirs(prefix: &Path) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    // Debian's pip installs into `local`. The version of Python is part of the path, so every
    // existing one is searched.
    for lib in ["lib", "lib64", "local/lib"] {
        let lib = prefix.join(lib);
        let pythons = names_in(&lib);
        for python in pythons.iter().filter(|name| name.starts_with("python3")) {
            for packages in ["site-packages", "dist-packages"] {
                dirs.push(lib.join(python).join(packages).join(PACKAGE));
            }
        }
    }
    if cfg!(target_os = "windows") {
        dirs.push(prefix.join("Lib/site-packages").join(PACKAGE));
    }
    dirs
}

/// The prefixes of the `python3` that a shell would start: that of its path, which may be a virtual
/// environment, and that of its link target.
fn prefixes_of_python(around: &SearchSurroundings) -> Vec<PathBuf> {
    let name = if cfg!(target_os = "windows") {
        "python.exe"
    } else {
        "python3"
    };
    let dirs = around.path("PATH").map(std::env::split_paths);
    let Some(python) = dirs
        .into_iter()
        .flatten()
        .filter(|dir| !dir.as_os_str().is_empty())
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
    else {
        return Vec::new();
    };
    // The starter is a script whose own place says nothing about the version that it starts.
    if let Some(prefix) = prefix_of_pyenv(&python, around) {
        return vec![prefix];
    }
    let mut prefixes = Vec::new();
    // A virtual environment links to the interpreter of another prefix, and either may have the
    // package.
    prefixes.extend(prefix_of(&python));
    prefixes.extend(
        fs::canonicalize(&python)
            .ok()
            .as_deref()
            .and_then(prefix_of),
    );
    prefixes
}

/// `/a` of `/a/bin/python3`.
fn prefix_of(python: &Path) -> Option<PathBuf> {
    let dir = python.parent()?;
    let is_root = cfg!(target_os = "windows") && !dir.ends_with("Scripts");
    if is_root {
        Some(dir.to_owned())
    } else {
        dir.parent().map(Path::to_owned)
    }
}

/// The version that a pyenv shim runs, from the variable or pyenv's global file. Per-directory
/// version files are not supported.
fn prefix_of_pyenv(python: &Path, around: &SearchSurroundings) -> Option<PathBuf> {
    let dir = python.parent()?;
    let root = dir.parent().filter(|_| dir.ends_with("shims"))?;
    let versions = root.join("versions");
    if !versions.is_dir() {
        return None;
    }
    let chosen = match around.variables.get("PYENV_VERSION") {
        Some(chosen) => chosen.to_str()?.to_owned(),
        None => {
            let (file, _) = regular_file::open(&root.join("version")).ok()?;
            let mut text = String::new();
            file.take(PYENV_BYTES_MAX).read_to_string(&mut text).ok()?;
            text
        }
    };
    // Several versions are separated by colons or spaces; the first one has `python3`.
    let first = chosen
        .split([':', ' ', '\n', '\r'])
        .find(|part| !part.is_empty())?;
    // The text comes from a file and must not lead out of the directory of versions.
    let is_name = Path::new(first).components().count() == 1 && first != "..";
    let prefix = versions.join(first);
    (is_name && prefix.is_dir()).then_some(prefix)
}

/// The version of an installed package, from the directory in which pip describes it.
fn installed_version(package: &Path) -> Option<String> {
    let names = names_in(package.parent()?);
    names.iter().find_map(|name| {
        let name = name.strip_suffix(".dist-info")?;
        let (package, version) = name.rsplit_once('-')?;
        let is_of_package = ["onnxruntime", "onnxruntime_gpu"].contains(&package);
        is_of_package.then(|| version.to_owned())
    })
}
