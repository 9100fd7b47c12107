//! `opscope doctor`.

mod engines;
mod machine;
mod python;

use std::io::Write;

use serde_json::{Value, json};

use crate::console::{self, Out, line};
use crate::exit::{CommandFailure, CommandResult, FOUND};
use crate::format;

/// Check this machine: engines, Python packages, devices, disk and limits
///
/// Each line says what was found, and for a missing part which commands need it and how to install
/// it. tract and ONNX Runtime each run one operator. Nothing is installed or changed, and no network
/// is used. Exit codes: 0 if the built-in engine and the one in use work, 1 otherwise.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope doctor
  opscope doctor --json | jq '.checks[] | select(.state != \"ok\")'")]
pub(crate) struct DoctorArguments {
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Whether a part of the machine can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckState {
    Ok,
    /// Absent. Commands that do not need it work.
    Missing,
    /// Present, and not usable as it is.
    Problem,
}

impl CheckState {
    fn name(self) -> &'static str {
        match self {
            CheckState::Ok => "ok",
            CheckState::Missing => "missing",
            CheckState::Problem => "problem",
        }
    }
}

/// A part of the machine.
#[derive(Debug)]
struct Check {
    /// Stable, for scripts.
    name: &'static str,
    state: CheckState,
    /// The finding, in one line.
    detail: String,
    /// Advice to the user.
    advice: Option<String>,
    /// The same as numbers and paths, for scripts.
    values: Value,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>, values: Value) -> Check {
        Check {
            name,
            state: CheckState::Ok,
            detail: detail.into(),
            advice: None,
            values,
        }
    }

    fn missing(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Check {
        Check {
            state: CheckState::Missing,
            advice: Some(advice.into()),
            ..Check::ok(name, detail, json!({}))
        }
    }

    /// Marks it as present, but not usable as it is.
    fn problem(self, advice: impl Into<String>) -> Check {
        Check {
            state: CheckState::Problem,
            advice: Some(advice.into()),
            ..self
        }
    }

    fn to_json(&self) -> Value {
        let mut value = json!({
            "name": self.name,
            "state": self.state.name(),
            "detail": self.detail,
            "advice": self.advice,
        });
        if let (Some(all), Some(own)) = (value.as_object_mut(), self.values.as_object()) {
            all.extend(own.clone());
        }
        value
    }
}

pub(crate) fn run(arguments: &DoctorArguments) -> CommandResult {
    let (engines, used) = engines::check();
    let works = engines[0].state == CheckState::Ok && used.is_ok();
    let mut checks = engines;
    checks.extend(python::check());
    checks.extend(machine::check());
    let program = std::env::current_exe().map(|path| path.display().to_string());
    let program = program.unwrap_or_else(|error| error.to_string());
    let version = env!("CARGO_PKG_VERSION");
    if arguments.json {
        console::print_json(&json!({
            "opscope_version": version,
            "program": program,
            "works": works,
            "engine_in_use": used.as_ref().ok(),
            "checks": checks.iter().map(Check::to_json).collect::<Vec<_>>(),
        }))?;
    } else {
        let mut out = console::out();
        line!(out, "{:<17}{version}, {program}", "opscope")?;
        for check in &checks {
            print(&mut out, check)?;
        }
        let engine = used.unwrap_or_else(|error| error);
        line!(out, "{:<17}{engine}", "engine in use")?;
        line!(out, "{}", summary(&checks, works))?;
    }
    if works {
        return Ok(());
    }
    Err(CommandFailure::silent(FOUND))
}

fn print(out: &mut Out, check: &Check) -> CommandResult {
    let Check { name, detail, .. } = check;
    let mark = match check.state {
        CheckState::Ok => String::new(),
        state => format!("{}: ", state.name()),
    };
    line!(out, "{name:<17}{mark}{detail}")?;
    if let Some(advice) = &check.advice {
        line!(out, "{:<17}→ {advice}", "")?;
    }
    Ok(())
}

fn summary(checks: &[Check], works: bool) -> String {
    let [n_problems, n_missing] = [CheckState::Problem, CheckState::Missing]
        .map(|state| checks.iter().filter(|check| check.state == state).count() as u64);
    let problems = format::count(n_problems, "problem");
    let end = if works {
        "opscope works; next: opscope dump MODEL.onnx --seed 0 --out dump"
    } else {
        "models cannot be run"
    };
    format!("{problems}, {n_missing} missing: {end}")
}
