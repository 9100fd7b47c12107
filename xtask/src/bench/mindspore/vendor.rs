//! MindSpore, run by a script.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::figures::StepTimes;
use super::tree::{self, ExpectedTree};
use super::{N_STEPS, SCRIPTS, STEPS_DUMPED, output_of, settle, write_config};
use crate::command::root;

/// Limits the instructions that MindSpore's oneDNN uses.
const ISA: &str = "ONEDNN_MAX_CPU_ISA";

pub(super) struct MindSpore<'a> {
    python: PathBuf,
    dir: &'a Path,
    size: &'a str,
}

/// One run.
pub(super) struct VendorRun {
    pub(super) version: String,
    /// Seconds of each step.
    seconds: Vec<f64>,
    /// Bytes of the network's result.
    pub(super) result: Vec<u8>,
}

/// The report that the script writes.
#[derive(Deserialize)]
struct VendorReport {
    version: String,
    seconds: Vec<f64>,
}

impl<'a> MindSpore<'a> {
    pub(super) fn new(python: &Path, dir: &'a Path, size: &'a str) -> Result<Self> {
        // Runs have separate directories, where a relative path would not be found. Symbolic links
        // are not resolved: Python finds its packages next to the link.
        let python = if python.components().count() > 1 {
            std::path::absolute(python)
                .with_context(|| format!("cannot find `{}`", python.display()))?
        } else {
            python.to_owned()
        };
        Ok(Self { python, dir, size })
    }

    /// Runs every step, dumped if there is a configuration.
    pub(super) fn run(&self, name: &str, config: Option<&Path>) -> Result<VendorRun> {
        let out = self.dir.join(format!("mindspore_{name}_run"));
        fs::create_dir(&out).with_context(|| format!("cannot create `{}`", out.display()))?;
        let mut command = Command::new(&self.python);
        command.arg(root().join(SCRIPTS).join("run_mindspore.py"));
        command.arg(&out).args(["--steps", &N_STEPS.to_string()]);
        command.args(["--size", self.size]);
        // MindSpore writes files to its working directory.
        command
            .current_dir(&out)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("GLOG_v", "3")
            .env_remove("MINDSPORE_DUMP_CONFIG");
        if env::var_os(ISA).is_none() {
            // With AVX-512 its convolutions fall back to plain loops, 50 times as slow: the cost of
            // a dump would vanish in the noise.
            command.env(ISA, "AVX2");
        }
        if let Some(config) = config {
            command.env("MINDSPORE_DUMP_CONFIG", config);
        }
        settle()?;
        output_of(&mut command)?;
        let text = fs::read(out.join("steps.json"))?;
        let report: VendorReport = serde_json::from_slice(&text).context("in `steps.json`")?;
        ensure!(
            report.seconds.len() == N_STEPS,
            "MindSpore ran {} steps instead of {N_STEPS}",
            report.seconds.len()
        );
        Ok(VendorRun {
            version: report.version,
            seconds: report.seconds,
            result: tree::elements(&out.join("output.npy"))?,
        })
    }

    /// Dumps the last steps and returns their times next to those of a plain run.
    pub(super) fn dump(
        &self,
        round: usize,
        plain: &VendorRun,
        expected: &ExpectedTree,
    ) -> Result<StepTimes> {
        let (config, tree) = write_config(self.dir, &format!("mindspore{round}"), STEPS_DUMPED)?;
        let run = self.run(&format!("dumped{round}"), Some(&config))?;
        ensure!(
            run.result == plain.result,
            "MindSpore's network returns a different result with the dump"
        );
        tree::check(&tree, "Add.Default_Add-op0.", expected).context("MindSpore's dump")?;
        Ok(StepTimes {
            plain: plain.seconds[STEPS_DUMPED].iter().sum(),
            dumped: run.seconds[STEPS_DUMPED].iter().sum(),
            n_steps: STEPS_DUMPED.len(),
        })
    }
}
