//! `opscope config`: checks or explains a configuration file without running anything.

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
use crate::exit::{CommandResult, UNREADABLE, USAGE, chain};
use crate::format;

/// Check a dump configuration, or explain it
#[derive(clap::Args)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(clap::Subcommand)]
enum ConfigCommand {
    Check(check::CheckArguments),
    Explain(explain::ExplainArguments),
}

pub(crate) fn run(arguments: &ConfigArguments) -> CommandResult {
    match &arguments.command {
        ConfigCommand::Check(arguments) => check::run(arguments),
        ConfigCommand::Explain(arguments) => explain::run(arguments),
    }
}

/// Outcome of reading one file.
enum ConfigVerdict {
    Accepted(AcceptedConfig),
    Refused(ConfigDialect, Vec<ConfigIssue>),
    Unreadable(ConfigError),
}

/// An accepted configuration.
enum AcceptedConfig {
    Acl(Box<AclConfig>),
    MindSpore(Box<MindSporeConfig>),
}

/// How a file is read.
struct ReadingMode {
    /// The environment.
    env: ConfigEnvironment,
    /// The device, if the command line names one; the file is then MindSpore's.
    target: Option<MindSporeTarget>,
    /// Whether Opscope's interpretation counts instead of the vendor's verdict.
    is_for_run: bool,
}

impl ReadingMode {
    fn dialect(&self, text: &str) -> ConfigDialect {
        match self.target {
            Some(_) => ConfigDialect::MindSpore,
            None => detect(text),
        }
    }

    /// Checks a text.
    fn load(&self, dialect: ConfigDialect, text: &str) -> Result<AcceptedConfig, Vec<ConfigIssue>> {
        match dialect {
            // AscendCL counts brackets before it parses, so its verdict on them comes first. The
            // other mistakes are listed as well.
            ConfigDialect::Acl => match (check_nesting(text), self.load_acl(text)) {
                (Ok(()), loaded) => loaded.map(|config| AcceptedConfig::Acl(Box::new(config))),
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
                // The verdicts differ: MindSpore refuses `dump_mode` 2 on some targets, but a dump
                // by Opscope accepts it on all.
                let loaded = if self.is_for_run {
                    mindspore::load(text, target, &self.env)
                } else {
                    mindspore::check(text, target, &self.env)
                };
                loaded.map(|config| AcceptedConfig::MindSpore(Box::new(config)))
            }
        }
    }
}

impl ReadingMode {
    fn load_acl(&self, text: &str) -> Result<AclConfig, Vec<ConfigIssue>> {
        if self.is_for_run {
            acl::load(text, &self.env)
        } else {
            acl::check(text, &self.env)
        }
    }
}

impl AcceptedConfig {
    fn dialect(&self) -> ConfigDialect {
        match self {
            AcceptedConfig::Acl(_) => ConfigDialect::Acl,
            AcceptedConfig::MindSpore(_) => ConfigDialect::MindSpore,
        }
    }

    fn issues(&self) -> &[ConfigIssue] {
        match self {
            AcceptedConfig::Acl(config) => &config.issues,
            AcceptedConfig::MindSpore(config) => &config.issues,
        }
    }

    fn mode(&self) -> Option<&'static str> {
        match self {
            AcceptedConfig::Acl(config) => config.dump.as_ref().map(|dump| dump.mode.name()),
            AcceptedConfig::MindSpore(config) => {
                config.dump.as_ref().map(MindSporeDumpPlan::mode_name)
            }
        }
    }

    fn explain(&self, env: &ConfigEnvironment) -> Explanation {
        match self {
            AcceptedConfig::Acl(config) => acl::explain(config, env),
            AcceptedConfig::MindSpore(config) => mindspore::explain(config),
        }
    }
}

impl ConfigVerdict {
    /// Reads and checks a file.
    fn read(path: &Path, reading: &ReadingMode) -> ConfigVerdict {
        let text = match read_text(path) {
            Ok(text) => text,
            Err(error) => {
                return match error.issue() {
                    // Non-text bytes have no keys from which to infer the dialect.
                    Some(issue) => ConfigVerdict::Refused(reading.dialect(""), vec![issue]),
                    None => ConfigVerdict::Unreadable(error),
                };
            }
        };
        let dialect = reading.dialect(&text);
        match reading.load(dialect, &text) {
            Ok(config) => ConfigVerdict::Accepted(config),
            Err(issues) => ConfigVerdict::Refused(dialect, issues),
        }
    }

    fn issues(&self) -> &[ConfigIssue] {
        match self {
            ConfigVerdict::Accepted(config) => config.issues(),
            ConfigVerdict::Refused(_, issues) => issues,
            ConfigVerdict::Unreadable(_) => &[],
        }
    }

    fn mode(&self) -> Option<&'static str> {
        match self {
            ConfigVerdict::Accepted(config) => config.mode(),
            ConfigVerdict::Refused(..) | ConfigVerdict::Unreadable(_) => None,
        }
    }

    /// The exit code for this file alone.
    fn exit_code(&self) -> Option<u8> {
        match self {
            ConfigVerdict::Accepted(..) => None,
            ConfigVerdict::Refused(..) => Some(USAGE),
            ConfigVerdict::Unreadable(_) => Some(UNREADABLE),
        }
    }

    fn json(&self, path: &Path) -> Value {
        let dialect = match self {
            ConfigVerdict::Accepted(config) => Some(config.dialect()),
            ConfigVerdict::Refused(dialect, _) => Some(*dialect),
            ConfigVerdict::Unreadable(_) => None,
        };
        let mut issues: Vec<Value> = self.issues().iter().map(issue_json).collect();
        if let ConfigVerdict::Unreadable(error) = self {
            issues.push(json!({"severity": Severity::Error.name(), "message": chain(error)}));
        }
        let mut value = json!({
            "file": path,
            "accepted": matches!(self, ConfigVerdict::Accepted(..)),
            "dialect": dialect.map(ConfigDialect::name),
            "mode": self.mode(),
            "issues": issues,
        });
        if let ConfigVerdict::Accepted(AcceptedConfig::MindSpore(config)) = self {
            value["settings"] = config.settings.json();
        }
        value
    }

    /// Prints one issue per line, then a summary.
    fn print(&self, path: &Path) -> CommandResult {
        let mut out = console::out();
        let file = path.display();
        for issue in self.issues() {
            // Line and column come first, as in compiler output, so that editors find the place.
            line!(out, "{file}:{issue}")?;
        }
        match self {
            ConfigVerdict::Unreadable(error) => line!(out, "{file}: error: {}", chain(error))?,
            ConfigVerdict::Refused(..) => line!(out, "{file}: refused, {}", self.counts())?,
            ConfigVerdict::Accepted(config) => {
                let mode = self.mode().unwrap_or("nothing to dump");
                let counts = self.counts();
                let dialect = config.dialect().name();
                line!(out, "{file}: accepted ({dialect}: {mode}), {counts}")?;
            }
        }
        Ok(())
    }

    fn counts(&self) -> String {
        let mut counts = Vec::new();
        for severity in [Severity::Error, Severity::Warning, Severity::Note] {
            let issues = self.issues().iter();
            let n = issues.filter(|issue| issue.severity == severity).count() as u64;
            if n > 0 || severity == Severity::Warning {
                counts.push(format::count(n, severity.name()));
            }
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
