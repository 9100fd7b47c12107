//! `opscope dump`, as a user would run it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::json;

use super::figures::StepTimes;
use super::tree::{self, ExpectedTree};
use super::{N_STEPS, NET_NAME, STEPS_DUMPED, output_of, settle, write_config};
use crate::bench::build_binary;
use crate::built;

/// Names a binary to measure instead of the one that would be built.
const BINARY: &str = "OPSCOPE";
/// Prefix of the names of the last operator's files.
const LAST_OPERATOR: &str = "Add.add.";

pub(super) struct OpscopeProgram<'a> {
    binary: &'a Path,
    dir: &'a Path,
}

/// The fields of `opscope dump --json` that are needed.
#[derive(Deserialize)]
struct DumpFigures {
    steps: usize,
    steps_dumped: usize,
    seconds: f64,
}

/// The binary to measure.
pub(super) fn binary() -> Result<PathBuf> {
    if let Some(path) = env::var_os(BINARY) {
        return fs::canonicalize(&path)
            .with_context(|| format!("cannot find `{}`", path.display()));
    }
    build_binary()?;
    built("release", "opscope")
}

impl<'a> OpscopeProgram<'a> {
    pub(super) fn new(binary: &'a Path, dir: &'a Path) -> Self {
        Self { binary, dir }
    }

    /// Bytes of the network's result, dumped alone.
    pub(super) fn result(&self) -> Result<Vec<u8>> {
        let tree = self.dir.join("result");
        let config = json!({
            "common_dump_settings": {
                "dump_mode": 1,
                "path": tree,
                "net_name": NET_NAME,
                "iteration": "0",
                "input_output": 2,
                "kernels": ["name-regex(add)"],
                "support_device": [0],
            },
        });
        let path = self.dir.join("result.json");
        fs::write(&path, config.to_string())?;
        output_of(self.command(&path).args(["--steps", "1"]))?;
        let step = tree::steps_dir(&tree).join("0");
        tree::elements(&tree::result_file(&step, LAST_OPERATOR)?)
    }

    /// Seconds of all steps with a dump configured for steps that never run.
    pub(super) fn run_plain(&self, round: usize) -> Result<f64> {
        let name = format!("opscope_plain{round}");
        let (config, tree) = write_config(self.dir, &name, N_STEPS..N_STEPS + 1)?;
        let seconds = self.run(&config, "identity", 0)?;
        ensure!(
            !tree::steps_dir(&tree).exists(),
            "steps were dumped that were not asked for"
        );
        Ok(seconds)
    }

    /// Dumps the last steps and returns their times next to a plain run of `plain` seconds; `links`
    /// chooses which files become links.
    ///
    /// Files outside of the steps, such as the graph, are written by both runs and so do not count,
    /// as in MindSpore, which writes them when it compiles.
    pub(super) fn dump(
        &self,
        round: usize,
        links: &str,
        plain: f64,
        expected: &ExpectedTree,
    ) -> Result<StepTimes> {
        let name = format!("opscope_{links}{round}");
        let (config, tree) = write_config(self.dir, &name, STEPS_DUMPED)?;
        let dumped = self.run(&config, links, STEPS_DUMPED.len())?;
        tree::check(&tree, LAST_OPERATOR, expected).context("Opscope's dump")?;
        Ok(StepTimes {
            plain,
            dumped,
            n_steps: N_STEPS,
        })
    }

    /// Seconds of all steps, until the last byte is written.
    fn run(&self, config: &Path, links: &str, n_steps_dumped: usize) -> Result<f64> {
        settle()?;
        let mut command = self.command(config);
        command.args(["--steps", &N_STEPS.to_string(), "--dedup", links]);
        let text = output_of(&mut command)?;
        let report: DumpFigures =
            serde_json::from_slice(&text).context("in the report of a dump")?;
        ensure!(
            (report.steps, report.steps_dumped) == (N_STEPS, n_steps_dumped),
            "of {} steps {} were dumped",
            report.steps,
            report.steps_dumped
        );
        Ok(report.seconds)
    }

    fn command(&self, config: &Path) -> Command {
        let mut command = Command::new(self.binary);
        command.arg("dump").arg(self.dir.join("network.onnx"));
        command.arg("--config").arg(config);
        command.arg("--inputs").arg(self.dir.join("images.npz"));
        command.args(["--target", "cpu", "--json"]);
        command
    }
}
