//! `opscope config`: what a configuration file is worth, without running anything.

mod check;
mod explain;

use std::io::{Write, stdout};
use std::path::Path;

use opscope_config::dialect::acl::{self, AclConfig};
use opscope_config::dialect::{Dialect, detect};
use opscope_config::{ConfigError, Environment, Issue, Severity, check_nesting, read_text};
use serde_json::{Value, json};

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

/// What became of one file.
enum Verdict {
    Accepted(Dialect, Box<AclConfig>),
    /// The dialect is unknown if it is one that is not supported.
    Refused(Option<Dialect>, Vec<Issue>),
    Unreadable(ConfigError),
}

impl Verdict {
    /// Reads and checks a file.
    fn of(path: &Path, env: &Environment) -> Verdict {
        let text = match read_text(path) {
            Ok(text) => text,
            Err(error) => {
                return match error.issue() {
                    Some(issue) => Verdict::Refused(Some(Dialect::Acl), vec![issue]),
                    None => Verdict::Unreadable(error),
                };
            }
        };
        let dialect = match detect(&text) {
            Ok(dialect) => dialect,
            Err(issue) => return Verdict::Refused(None, vec![*issue]),
        };
        match (check_nesting(&text), acl::load(&text, env)) {
            (Ok(()), Ok(config)) => Verdict::Accepted(dialect, Box::new(config)),
            (Ok(()), Err(issues)) => Verdict::Refused(Some(dialect), issues),
            (Err(issue), loaded) => {
                let more = loaded.map_or_else(|issues| issues, |config| config.issues);
                let issues = std::iter::once(*issue).chain(more).collect();
                Verdict::Refused(Some(dialect), issues)
            }
        }
    }

    fn issues(&self) -> &[Issue] {
        match self {
            Verdict::Accepted(_, config) => &config.issues,
            Verdict::Refused(_, issues) => issues,
            Verdict::Unreadable(_) => &[],
        }
    }

    fn mode(&self) -> Option<&'static str> {
        match self {
            Verdict::Accepted(_, config) => config.dump.as_ref().map(|dump| dump.mode.name()),
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
            Verdict::Accepted(dialect, _) => Some(*dialect),
            Verdict::Refused(dialect, _) => *dialect,
            Verdict::Unreadable(_) => None,
        };
        let mut issues: Vec<Value> = self.issues().iter().map(issue_json).collect();
        if let Verdict::Unreadable(error) = self {
            issues.push(json!({"severity": Severity::Error.name(), "message": chain(error)}));
        }
        json!({
            "file": path,
            "accepted": matches!(self, Verdict::Accepted(..)),
            "dialect": dialect.map(Dialect::name),
            "mode": self.mode(),
            "issues": issues,
        })
    }

    /// The issues, one on a line, and a closing line.
    fn print(&self, path: &Path) -> Result<(), Failure> {
        let mut out = stdout().lock();
        let file = path.display();
        for issue in self.issues() {
            writeln!(out, "{file}:{issue}")?;
        }
        match self {
            Verdict::Unreadable(error) => writeln!(out, "{file}: error: {}", chain(error))?,
            Verdict::Refused(..) => writeln!(out, "{file}: refused, {}", self.counts())?,
            Verdict::Accepted(dialect, _) => {
                let mode = self.mode().unwrap_or("nothing to dump");
                let counts = self.counts();
                writeln!(
                    out,
                    "{file}: accepted ({}: {mode}), {counts}",
                    dialect.name()
                )?;
            }
        }
        Ok(())
    }

    fn counts(&self) -> String {
        let n = |severity| {
            let issues = self.issues().iter();
            issues.filter(|issue| issue.severity == severity).count() as u64
        };
        let warnings = format::count(n(Severity::Warning), Severity::Warning.name());
        match n(Severity::Error) {
            0 => warnings,
            n => format!("{}, {warnings}", format::count(n, Severity::Error.name())),
        }
    }
}

fn issue_json(issue: &Issue) -> Value {
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
    })
}
