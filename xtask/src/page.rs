//! The page of `opscope view`: built from `web/`, committed in `crates/view/page`, and tested in a
//! browser.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{root, run};
use crate::pytest::{self, AtOnce};
use crate::{E2E_REQUIREMENTS, built, python};

/// The sources, and the files that a build produces.
const SOURCES: &str = "web";
const BUILT: &str = "web/dist";
/// The files embedded in the binary.
const COMMITTED: &str = "crates/view/page";
const FILES: [&str; 4] = [
    "index.html",
    "report.html",
    "assets/page.js",
    "assets/page.css",
];
/// Maximum size of all files together, compressed.
const BYTES_MAX: u64 = 150_000;
/// Python packages for the tests in a browser.
const REQUIREMENTS: &str = "tests/page/requirements.txt";
/// Names of the browsers on Linux that the tests can drive.
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// The path of a browser.
const BROWSER: &str = "OPSCOPE_BROWSER";

/// Builds the page and copies it to the place from which the binary embeds it.
pub(crate) fn build() -> Result<()> {
    build_files()?;
    for file in FILES {
        let to = root().join(COMMITTED).join(file);
        fs::create_dir_all(to.parent().unwrap_or(Path::new(".")))?;
        fs::copy(root().join(BUILT).join(file), &to)
            .with_context(|| format!("cannot write `{}`", to.display()))?;
    }
    Ok(())
}

/// Builds the page, if npm is installed, and refuses committed files that differ.
pub(crate) fn check() -> Result<()> {
    if find_program("npm").is_none() {
        eprintln!("== page: not built, as there is no npm; on Debian: apt-get install npm");
        return Ok(());
    }
    build_files()?;
    let read = |dir: &str, file: &str| {
        let path = root().join(dir).join(file);
        fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))
    };
    for file in FILES {
        if read(BUILT, file)? != read(COMMITTED, file)? {
            bail!(
                "`{COMMITTED}/{file}` differs from the build of `{SOURCES}`: run `cargo xtask page`"
            );
        }
    }
    Ok(())
}

/// Installs the packages of the page, unless they are there.
pub(crate) fn provide_packages() -> Result<()> {
    if root().join(SOURCES).join("node_modules").is_dir() {
        return Ok(());
    }
    install_packages()
}

fn install_packages() -> Result<()> {
    let install = npm(&["ci", "--no-audit", "--no-fund", "--silent"]);
    run("page: packages", install)
}

fn npm(arguments: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(["--prefix", SOURCES]).args(arguments);
    npm
}

fn build_files() -> Result<()> {
    install_packages()?;
    run("page: unit tests", npm(&["test", "--silent"]))?;
    run("page: build", npm(&["run", "build", "--silent"]))?;
    let mut n_bytes = 0;
    for file in FILES {
        let compressed = Command::new("gzip")
            .arg("-9c")
            .arg(root().join(BUILT).join(file))
            .output()
            .context("cannot run gzip")?;
        n_bytes += compressed.stdout.len() as u64;
    }
    eprintln!("page: {n_bytes} bytes, compressed");
    if n_bytes > BYTES_MAX {
        bail!("the page has {n_bytes} bytes, compressed, of at most {BYTES_MAX}");
    }
    Ok(())
}

/// Opens the page of the built binary in a browser, clicks and types.
pub(crate) fn test_in_browser() -> Result<()> {
    let Some(browser) = find_browser() else {
        eprintln!(
            "== page in a browser: skipped, as there is no Chromium and none could be installed; \
             on Debian: apt-get install chromium, elsewhere set {BROWSER}"
        );
        return Ok(());
    };
    let mut pytest = pytest::in_folder(REQUIREMENTS, "tests/page", AtOnce::One)?;
    pytest.env("OPSCOPE", built("debug", "opscope")?);
    pytest.env(BROWSER, browser);
    // The tests need only the library, to read ONNX Runtime's graphs.
    let library = python::onnxruntime_library(E2E_REQUIREMENTS)?;
    pytest.env("ONNXRUNTIME_LIBRARY", library);
    run("page in a browser", pytest)
}

/// An installed browser, or Debian's if this user may install packages.
fn find_browser() -> Option<PathBuf> {
    if let Some(named) = env::var_os(BROWSER).filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let found = || BROWSERS.iter().find_map(|name| find_program(name));
    found().or_else(|| {
        let apt = find_program("apt-get")?;
        let install = |arguments: &[&str]| {
            let mut command = Command::new(&apt);
            command
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive");
            command.output().is_ok_and(|output| output.status.success())
        };
        let chromium = ["install", "--yes", "--no-install-recommends", "chromium"];
        eprintln!("== page in a browser: installing Chromium");
        // The package list may be outdated.
        let is_installed = install(&chromium) || (install(&["update"]) && install(&chromium));
        is_installed.then(found).flatten()
    })
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut files = env::split_paths(&path).map(|dir| dir.join(name));
    files.find(|file| file.is_file())
}
