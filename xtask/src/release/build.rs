//! Builds for release that run on older systems than this one.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::{cargo, root, run};
use crate::{licences, python, target_dir};

/// zig's C compiler and linker, which know the C libraries of older systems.
pub(super) const REQUIREMENTS: &str = "xtask/requirements-release.txt";
/// Where they keep compiled C libraries.
const CACHE: &str = "target/python/zig-cache";

const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// The oldest C library that Rust's standard library supports.
const OLDEST_GLIBC: &str = "2.17";

/// Builds the products and returns their directory. Cargo builds nothing twice.
pub(super) fn build() -> Result<PathBuf> {
    let mut build = cargo(&["zigbuild", "--release", "--locked", "--target"]);
    build.arg(format!("{TRIPLE}.{OLDEST_GLIBC}"));
    for product in licences::PRODUCTS {
        build.args(["--package", product]);
    }
    python::provide(&mut build, REQUIREMENTS)?;
    let cache = root().join(CACHE);
    build.env("CARGO_ZIGBUILD_CACHE_DIR", &cache);
    for variable in ["ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"] {
        build.env(variable, cache.join("zig"));
    }
    // Messages of panics name source files; paths of this machine would make every build differ.
    let cargo_home = cargo_home()?;
    let flags = [(&*cargo_home, "/cargo"), (root(), "/opscope")]
        .map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    run("products", build)?;
    Ok(target_dir().join(TRIPLE).join("release"))
}

fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?;
    Ok(Path::new(&home).join(".cargo"))
}
