//! `cargo xtask bench mindspore`: the cost of MindSpore's dump and of Opscope's.
//!
//! Both run the same network with the same weights, image and dump configuration, in turn. Every
//! tree is checked: its steps, files, bytes, and the network's result in each step.

mod figures;
mod opscope;
mod tree;
mod vendor;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::json;

use self::figures::TimingRound;
use self::opscope::OpscopeProgram;
use self::tree::ExpectedTree;
use self::vendor::MindSpore;
use crate::command::{root, run as run_stage};
use crate::{E2E_REQUIREMENTS, python};

/// Names a Python that has MindSpore.
const PYTHON: &str = "MINDSPORE_PYTHON";
const SCRIPTS: &str = "tests/bench/mindspore";
/// Width and height of the images in pixels. Tensors of the first are a sixteenth as large.
const SIZES: [&str; 2] = ["16", "64"];
const N_ROUNDS: usize = 7;
const N_STEPS: usize = 8;
/// The first step compiles the graph in MindSpore, the next ones warm up.
const STEPS_DUMPED: Range<usize> = 3..N_STEPS;
const NET_NAME: &str = "residual";
/// Maximum difference of both results, relative to the largest number in them.
const TOLERANCE: f32 = 1e-4;

/// The report of `as_onnx.py` about the network.
#[derive(Deserialize)]
struct NetworkReport {
    operators: usize,
    /// Files per step.
    files: u64,
    /// Bytes of elements in them.
    bytes: u64,
    /// Further one-byte inputs in MindSpore, which are attributes in ONNX or missing.
    mindspore_flags: u64,
}

pub(super) fn run() -> Result<()> {
    let Some(python) = env::var_os(PYTHON) else {
        eprintln!(
            "== benchmark: mindspore: skipped, because `{PYTHON}` names no Python that has MindSpore. With one:\n   \
             python3.11 -m venv VENV && VENV/bin/pip install mindspore==2.10.0\n   \
             {PYTHON}=VENV/bin/python cargo xtask bench mindspore"
        );
        return Ok(());
    };
    let binary = opscope::binary()?;
    let all = root().join("target/bench-mindspore");
    // A new directory each time: creating files is slow on ext4 during and seconds after deletions.
    // So nothing is deleted before the end.
    let dir = all.join(std::process::id().to_string());
    eprintln!("== benchmark: mindspore");
    let result = SIZES
        .iter()
        .try_for_each(|size| measure(&dir.join(size), size, python.as_ref(), &binary));
    let removed =
        fs::remove_dir_all(&all).with_context(|| format!("cannot remove `{}`", all.display()));
    result.and(removed)
}

fn measure(dir: &Path, size: &str, python: &Path, binary: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create `{}`", dir.display()))?;
    let network = make_network(dir, size)?;
    let mindspore = MindSpore::new(python, dir, size)?;
    let opscope = OpscopeProgram::new(binary, dir);
    let expected = |result, n_flags| ExpectedTree {
        iterations: STEPS_DUMPED,
        n_files: network.files + n_flags,
        n_bytes: network.bytes + n_flags,
        result,
    };
    let own_result = opscope.result()?;
    let mut rounds = Vec::new();
    let mut version = String::new();
    for round in 0..N_ROUNDS {
        let plain = mindspore.run(&format!("plain{round}"), None)?;
        check_results(&plain.result, &own_result)?;
        let expected_of_mindspore = expected(plain.result.clone(), network.mindspore_flags);
        let expected_of_opscope = expected(own_result.clone(), 0);
        let plain_seconds = opscope.run_plain(round)?;
        rounds.push(TimingRound {
            mindspore: mindspore.dump(round, &plain, &expected_of_mindspore)?,
            opscope: opscope.dump(round, "identity", plain_seconds, &expected_of_opscope)?,
            without_links: opscope.dump(round, "off", plain_seconds, &expected_of_opscope)?,
        });
        version = plain.version;
    }
    let title = format!(
        "MindSpore {version} and Opscope on a CPU: {} operators, {} files and {:.1} MB a step; medians of {N_ROUNDS} rounds, \
         {} dumped steps each",
        network.operators,
        network.files,
        figures::mega(network.bytes),
        STEPS_DUMPED.len()
    );
    figures::print(&title, &rounds, &network)
}

fn make_network(dir: &Path, size: &str) -> Result<NetworkReport> {
    let mut generate = python::with_packages(E2E_REQUIREMENTS)?;
    generate.env("PYTHONDONTWRITEBYTECODE", "1");
    generate.arg(root().join(SCRIPTS).join("as_onnx.py"));
    generate.arg(dir).args(["--size", size]);
    run_stage("network", generate)?;
    let path = dir.join("network.json");
    let text = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("in `{}`", path.display()))
}

/// Writes the configuration for both programs (every operator, both sides, tensors), and returns
/// its path and that of the dump.
fn write_config(dir: &Path, name: &str, steps: Range<usize>) -> Result<(PathBuf, PathBuf)> {
    let tree = dir.join(name);
    let config = json!({
        "common_dump_settings": {
            "op_debug_mode": 0,
            "dump_mode": 0,
            "path": tree,
            "net_name": NET_NAME,
            "iteration": format!("{}-{}", steps.start, steps.end - 1),
            "saved_data": "tensor",
            "input_output": 0,
            "kernels": [],
            "support_device": [0],
        },
        // Without this section MindSpore waits for three seconds.
        "e2e_dump_settings": {"enable": true, "trans_flag": true},
    });
    let path = dir.join(format!("{name}.json"));
    fs::write(&path, config.to_string())
        .with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok((path, tree))
}

/// Flushes all written data to the disk, so that no run pays for the previous one.
fn settle() -> Result<()> {
    output_of(&mut Command::new("sync")).map(drop)
}

/// Runs a program and returns its standard output. If it fails, the error includes its standard
/// error.
fn output_of(command: &mut Command) -> Result<Vec<u8>> {
    let program = command.get_program().display().to_string();
    let output = command
        .output()
        .with_context(|| format!("cannot start `{program}`"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{program}` failed ({}):\n{said}", output.status);
    }
    Ok(output.stdout)
}

/// Checks that both programs run the same network.
fn check_results(vendor: &[u8], own: &[u8]) -> Result<()> {
    let [vendor, own] = [vendor, own].map(|bytes| {
        let numbers = bytes.as_chunks().0.iter();
        numbers
            .map(|number| f32::from_le_bytes(*number))
            .collect::<Vec<f32>>()
    });
    ensure!(
        vendor.len() == own.len() && !own.is_empty(),
        "MindSpore's network returns {} numbers and Opscope's {}",
        vendor.len(),
        own.len()
    );
    let largest = vendor
        .iter()
        .fold(0.0_f32, |largest, number| largest.max(number.abs()));
    for (vendor, own) in vendor.iter().zip(&own) {
        // Phrased so that NaN fails.
        let is_near = (vendor - own).abs() <= TOLERANCE * largest;
        ensure!(
            is_near,
            "MindSpore's network returns {vendor} where Opscope's returns {own}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_to_be_near_each_other() {
        let bytes =
            |numbers: &[f32]| -> Vec<u8> { numbers.iter().flat_map(|n| n.to_le_bytes()).collect() };
        let check = |vendor: &[f32], own: &[f32], expected: bool| {
            let is_near = check_results(&bytes(vendor), &bytes(own)).is_ok();
            assert_eq!(is_near, expected, "{vendor:?} {own:?}");
        };
        check(&[1.0, -2.0], &[1.0, -2.0], true);
        check(&[1.0, -2.0], &[1.0001, -2.0], true);
        check(&[1.0, -2.0], &[1.001, -2.0], false);
        check(&[1.0, -2.0], &[1.0], false);
        check(&[], &[], false);
        check(&[f32::NAN, 1.0], &[f32::NAN, 1.0], false);
        check(&[1.0], &[f32::NAN], false);
    }
}
