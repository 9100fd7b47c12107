//! The Python package: its tests, and a wheel of it.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result};

use crate::command::{cargo, forget_us, root, run};
use crate::pytest::{self, AtOnce};
use crate::{E2E_REQUIREMENTS, built, python};

/// The directory from which Python imports the package before it is installed.
const SOURCE: &str = "bindings/python/py_src";
/// Requirements for building wheels.
const WHEEL_REQUIREMENTS: &str = "bindings/python/requirements-wheel.txt";
const WHEELS: &str = "target/wheels";
/// A program that checks that an installed wheel works.
const SMOKE_TEST: &str = "import opscope.acl as acl; \
    assert (acl.init(), acl.rt.set_device(0), acl.finalize()) == (0, 0, 0), 'a call failed'; \
    print('opscope', __import__('opscope').__version__, 'from', acl.__file__)";

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

/// Builds a wheel with the options given, or an optimised one, and tests it in a separate
/// environment.
pub(crate) fn wheel(options: &[String]) -> Result<()> {
    let wheels = root().join(WHEELS);
    if wheels.exists() {
        fs::remove_dir_all(&wheels).context("cannot clear the old wheels")?;
    }
    let mut maturin = python::with_packages(WHEEL_REQUIREMENTS)?;
    maturin.args(["-m", "maturin", "build", "--out", WHEELS]);
    maturin.args(["--manifest-path", "bindings/python/Cargo.toml"]);
    if options.is_empty() {
        maturin.arg("--release");
    }
    maturin.args(options);
    forget_us(&mut maturin);
    run("wheel", maturin)?;

    let installed = root().join("target/python/wheel-check");
    if installed.exists() {
        fs::remove_dir_all(&installed).context("cannot clear the old installation")?;
    }
    let mut pip = python::with_packages(WHEEL_REQUIREMENTS)?;
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    pip.args([
        "--no-index",
        "--no-deps",
        "--find-links",
        WHEELS,
        "--target",
    ]);
    pip.arg(&installed).arg("opscope");
    run("installation of the wheel", pip)?;
    let mut smoke_test = python::with_packages(WHEEL_REQUIREMENTS)?;
    put_first_on_path(&mut smoke_test, installed)?;
    smoke_test.args(["-c", SMOKE_TEST]);
    run("installed wheel", smoke_test)
}
