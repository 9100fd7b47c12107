//! Running other programs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The root of the project.
pub(crate) fn root() -> &'static Path {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().unwrap_or(manifest_dir)
}

/// The cargo that runs this program.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    forget_us(&mut command);
    command
}

/// Cargo's metadata of the packages, with further arguments.
pub(crate) fn metadata(args: &[&str]) -> Result<Value> {
    let mut metadata = cargo(&["metadata", "--format-version", "1", "--locked"]);
    let output = metadata.args(args).current_dir(root()).output();
    let output = output.context("cargo metadata")?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("cargo metadata: {errors}");
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Removes the variables of this crate from the environment of a program that calls cargo.
/// Otherwise build scripts that read them, and half of all crates with them, are rebuilt whenever
/// cargo is called without and with this program.
pub(crate) fn forget_us(command: &mut Command) {
    let of_us = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_")
    });
    for name in of_us {
        command.env_remove(name);
    }
}

/// Runs a stage in the project's root and fails with its name.
pub(crate) fn run(stage: &str, mut command: Command) -> Result<()> {
    eprintln!("== {stage}");
    let status = command
        .current_dir(root())
        .status()
        .with_context(|| format!("{stage}: cannot start {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{stage} failed ({status})");
    }
    Ok(())
}
