//! The Python package and its tests.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result};

use crate::command::{cargo, root, run};
use crate::pytest::{self, AtOnce};
use crate::{E2E_REQUIREMENTS, built};

/// The directory from which Python imports the package before it is installed.
const SOURCE: &str = "bindings/python/py_src";

/// Requirements of the tests with PyTorch, which takes gigabytes.
pub(crate) const TORCH_REQUIREMENTS: &str = "tests/torch/requirements.txt";

/// Requirements of the tests with a Ray cluster.
pub(crate) const RAY_REQUIREMENTS: &str = "tests/ray/requirements.txt";

/// Runs the tests of the package that need no framework.
pub(crate) fn test() -> Result<()> {
    place_module("debug")?;
    test_folder(
        "Python package",
        E2E_REQUIREMENTS,
        "tests/python",
        AtOnce::AllProcessors,
    )
}

/// Runs the tests of the package with PyTorch.
pub(crate) fn test_torch() -> Result<()> {
    place_module("debug")?;
    test_folder(
        "Python package with PyTorch",
        TORCH_REQUIREMENTS,
        "tests/torch",
        AtOnce::AllProcessors,
    )
}

/// Runs the tests of work shared by processes and by the nodes of a Ray cluster.
pub(crate) fn test_ray() -> Result<()> {
    place_module("debug")?;
    test_folder(
        "shared work, and Ray",
        RAY_REQUIREMENTS,
        "tests/ray",
        AtOnce::One,
    )
}

/// Runs the Python tests of a folder with the package's source and the packages of a requirements
/// file.
fn test_folder(name: &str, requirements: &str, folder: &str, at_once: AtOnce) -> Result<()> {
    let mut pytest = pytest::in_folder(requirements, folder, at_once)?;
    put_first_on_path(&mut pytest, root().join(SOURCE))?;
    // The tests also run the command line on the dumps.
    pytest.env("OPSCOPE", built("debug", "opscope")?);
    run(name, pytest)
}

/// Builds the binary and the extension module, copies the module into the package's source, and
/// returns that folder.
pub(crate) fn place_module(profile: &str) -> Result<PathBuf> {
    // The whole workspace, as everywhere: another set of packages would give dependencies other
    // features, and rebuild the engine.
    let mut build = vec![
        "build",
        "--workspace",
        "--lib",
        "--bin",
        "opscope",
        "--locked",
    ];
    if profile == "release" {
        build.push("--release");
    }
    run("extension module", cargo(&build))?;
    let source = root().join(SOURCE);
    let module = source.join("opscope/_native.abi3.so");
    let library = format!(
        "{}_native{}",
        env::consts::DLL_PREFIX,
        env::consts::DLL_SUFFIX
    );
    // An interpreter may have the old module mapped, so it is replaced rather than overwritten.
    let fresh = module.with_extension("new");
    fs::copy(built(profile, &library)?, &fresh).context("cannot copy the extension module")?;
    fs::rename(&fresh, &module)?;
    Ok(source)
}

/// Makes Python search `folder` first for modules.
pub(crate) fn put_first_on_path(python: &mut Command, folder: PathBuf) -> Result<()> {
    let set = python.get_envs().find(|(name, _)| *name == "PYTHONPATH");
    let old = set.and_then(|(_, value)| value.map(ToOwned::to_owned));
    let old = old.unwrap_or_default();
    // An empty entry would mean the working directory of a test.
    let old_folders = env::split_paths(&old).filter(|folder| !folder.as_os_str().is_empty());
    let folders = std::iter::once(folder).chain(old_folders);
    python.env("PYTHONPATH", env::join_paths(folders)?);
    Ok(())
}
