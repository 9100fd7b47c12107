//! `opscope config`: what a configuration file is worth, without running anything.

mod check;
mod explain;

use std::io::Write;
use std::path::Path;

use opscope_config::dialect::acl::{self, AclConfig};
use opscope_config::dialect::mindspore::{self, MindSporeConfig, MindSporeDumpPlan};
use opscope_config::dialect::{ConfigDialect, Explanation, detect};
use opscope_config::{
    ConfigEnvironment, ConfigError, ConfigIssue, Severity, check_nesting, read_text,
};
use serde_json::{Value, json};

use super::mindspore_target::MindSporeTarget;
use crate::console::{self, line};
use crate::exit::{Failure, UNREADABLE, USAGE, chain};
use crate::format;

/// Check a dump configuration, or say what it does
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Check(check::Arguments),
    Explain(explain::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Check(arguments) => check::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
    }
}

/// Outcome of reading one file.
enum Verdict {
    Accepted(Config),
    Refused(ConfigDialect, Vec<ConfigIssue>),
    Unreadable(ConfigError),
}

/// An accepted configuration.
enum Config {
    Acl(Box<AclConfig>),
    MindSpore(Box<MindSporeConfig>),
}

/// How a file is read.
struct Reading {
    /// The surroundings.
    env: ConfigEnvironment,
    /// The device, if the command line names one: the file is MindSpore's then.
    target: Option<MindSporeTarget>,
    /// Whether what Opscope makes of the file counts, and not the vendor's verdict.
    is_for_run: bool,
}

impl Reading {
    fn dialect(&self, text: &str) -> ConfigDialect {
        match self.target {
            Some(_) => ConfigDialect::MindSpore,
            None => detect(text),
        }
    }

    /// Checks a text.
    fn load(&self, dialect: ConfigDialect, text: &str) -> Result<Config, Vec<ConfigIssue>> {
        match dialect {
            ConfigDialect::Acl => match (check_nesting(text), self.load_acl(text)) {
                (Ok(()), loaded) => loaded.map(|config| Config::Acl(Box::new(config))),
                (Err(issue), loaded) => {
                    let more = loaded.map_or_else(|issues| issues, |config| config.issues);
                    Err(std::iter::once(*issue).chain(more).collect())
                }
            },
            ConfigDialect::MindSpore => {
                let target = match self.target {
                    Some(target) => target.into(),
                    None => mindspore::default_target(&self.env),
                };
                let loaded = match self.is_for_run {
                    true => mindspore::load(text, target, &self.env),
                    false => mindspore::check(text, target, &self.env),
                };
                loaded.map(|config| Config::MindSpore(Box::new(config)))
            }
        }
    }
}

impl Reading {
    fn load_acl(&self, text: &str) -> Result<AclConfig, Vec<ConfigIssue>> {
        match self.is_for_run {
            true => acl::load(text, &self.env),
            false => acl::check(text, &self.env),
        }
    }
}

impl Config {
    fn dialect(&self) -> ConfigDialect {
        match self {
            Config::Acl(_) => ConfigDialect::Acl,
            Config::MindSpore(_) => ConfigDialect::MindSpore,
        }
    }

    fn issues(&self) -> &[ConfigIssue] {
        match self {
            Config::Acl(config) => &config.issues,
            Config::MindSpore(config) => &config.issues,
        }
    }

    fn mode(&self) -> Option<&'static str> {
        match self {
            Config::Acl(config) => config.dump.as_ref().map(|dump| dump.mode.name()),
            Config::MindSpore(config) => config.dump.as_ref().map(MindSporeDumpPlan::mode_name),
        }
    }

    fn explain(&self, env: &ConfigEnvironment) -> Explanation {
        match self {
            Config::Acl(config) => acl::explain(config, env),
            Config::MindSpore(config) => mindspore::explain(config),
        }
    }
}

impl Verdict {
    /// Reads and checks a file.
    fn of(path: &Path, reading: &Reading) -> Verdict {
        let text = match read_text(path) {
            Ok(text) => text,
            Err(error) => {
                return match error.issue() {
                    Some(issue) => Verdict::Refused(reading.dialect(""), vec![issue]),
                    None => Verdict::Unreadable(error),
                };
            }
        };
        let dialect = reading.dialect(&text);
        match reading.load(dialect, &text) {
            Ok(config) => Verdict::Accepted(config),
            Err(issues) => Verdict::Refused(dialect, issues),
        }
    }

    fn issues(&self) -> &[ConfigIssue] {
        match self {
            Verdict::Accepted(config) => config.issues(),
            Verdict::Refused(_, issues) => issues,
            Verdict::Unreadable(_) => &[],
        }
    }

    fn mode(&self) -> Option<&'static str> {
        match self {
            Verdict::Accepted(config) => config.mode(),
            Verdict::Refused(..) | Verdict::Unreadable(_) => None,
        }
    }

    /// How the command ends after this file alone.
    fn exit_code(&self) -> Option<u8> {
        match self {
            Verdict::Accepted(..) => None,
            Verdict::Refused(..) => Some(USAGE),
            Verdict::Unreadable(_) => Some(UNREADABLE),
        }
    }

    fn json(&self, path: &Path) -> Value {
        let dialect = match self {
            Verdict::Accepted(config) => Some(config.dialect()),
            Verdict::Refused(dialect, _) => Some(*dialect),
            Verdict::Unreadable(_) => None,
        };
        let mut issues: Vec<Value> = self.issues().iter().map(issue_json).collect();
        if let Verdict::Unreadable(error) = self {
            issues.push(json!({"severity": Severity::Error.name(), "message": chain(error)}));
        }
        let mut value = json!({
            "file": path,
            "accepted": matches!(self, Verdict::Accepted(..)),
            "dialect": dialect.map(ConfigDialect::name),
            "mode": self.mode(),
            "issues": issues,
        });
        if let Verdict::Accepted(Config::MindSpore(config)) = self {
            value["settings"] = config.settings.json();
        }
        value
    }

    /// The issues, one on a line, and a closing line.
    fn print(&self, path: &Path) -> Result<(), Failure> {
        let mut out = console::out();
        let file = path.display();
        for issue in self.issues() {
            line!(out, "{file}:{issue}")?;
        }
        match self {
            Verdict::Unreadable(error) => line!(out, "{file}: error: {}", chain(error))?,
            Verdict::Refused(..) => line!(out, "{file}: refused, {}", self.counts())?,
            Verdict::Accepted(config) => {
                let mode = self.mode().unwrap_or("nothing to dump");
                let counts = self.counts();
                let dialect = config.dialect().name();
                line!(out, "{file}: accepted ({dialect}: {mode}), {counts}")?;
            }
        }
        Ok(())
    }

    fn counts(&self) -> String {
        let n = |severity| {
            let issues = self.issues().iter();
            issues.filter(|issue| issue.severity == severity).count() as u64
        };
        let count = |severity: Severity| format::count(n(severity), severity.name());
        let mut counts = vec![count(Severity::Warning)];
        if n(Severity::Error) > 0 {
            counts.insert(0, count(Severity::Error));
        }
        if n(Severity::Note) > 0 {
            counts.push(count(Severity::Note));
        }
        counts.join(", ")
    }
}

fn issue_json(issue: &ConfigIssue) -> Value {
    json!({
        "severity": issue.severity.name(),
        "code": issue.code(),
        "pointer": issue.pointer,
        "item": issue.item,
        "line": issue.place.line,
        "column": issue.place.column,
        "found": issue.found,
        "expected": issue.expected,
        "message": issue.message,
        "hint": issue.hint,
        "vendor_text": issue.vendor_text,
    })
}
