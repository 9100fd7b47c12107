//! Builds the request for a dump from options and configurations.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use opscope_capture::{Exclusion, OperatorRule, Plan, Purpose};
use opscope_config::dialect::acl::{self, AclDump};
use opscope_config::dialect::mindspore::{self, MindSporeDumpPlan};
use opscope_config::dialect::{ConfigDialect, detect};
use opscope_config::{ConfigEnvironment, ConfigIssue, Severity};
use opscope_dump::{
    DumpForm, DumpOptions, DumpRequest, FollowedEnvironment, OpenDump, dump_times,
    follow_environment,
};

use super::RunArguments;
use super::range::NarrowFloat;
use crate::console::report;
use crate::exit::{CommandFailure, CommandResult, USAGE};
use crate::progress;

/// Environment variable with a MindSpore configuration.
const CONFIGURATION_VARIABLE: &str = "MINDSPORE_DUMP_CONFIG";
/// Control-flow operators and constants, for which MindSpore has no kernels.
const NO_KERNELS: [&str; 4] = ["If", "Loop", "Scan", "Constant"];

/// A dump requested by a configuration.
enum ConfiguredDump {
    Acl(Option<Box<AclDump>>),
    MindSpore(Option<Box<DumpRequest>>),
}

/// The text of a configuration.
pub(super) struct ConfigSource<'a> {
    /// The configuration's file.
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
    /// JSON pointer to the configuration in the file.
    pub(super) pointer: &'a str,
}

impl<'a> ConfigSource<'a> {
    /// A file that consists of a configuration.
    pub(super) fn file(path: &'a Path, text: &'a str) -> ConfigSource<'a> {
        let pointer = "";
        ConfigSource {
            path,
            text,
            pointer,
        }
    }

    /// Issues with pointers relative to the file's root.
    fn placed(&self, mut issues: Vec<ConfigIssue>) -> Vec<ConfigIssue> {
        for issue in &mut issues {
            issue.pointer.insert_str(0, self.pointer);
        }
        issues
    }
}

impl RunArguments {
    /// Reads the configuration, or uses the options.
    pub(crate) fn request(&self) -> CommandResult<DumpRequest> {
        let env = crate::commands::environment()?;
        let has_other = self.out.is_some() || self.stats || !self.narrow.is_empty();
        // Command-line options take precedence over a variable that may be set for MindSpore's own
        // runs.
        let of_environment = configuration_of_environment().filter(|_| !has_other);
        let Some(path) = self.config.as_ref().or(of_environment.as_ref()) else {
            if !has_other && acl::from_environment(&env).is_some() {
                let followed = follow(None, &env);
                self.ring.prepare(true)?;
                self.compress.apply(None)?;
                return Ok(self.lower(ConfiguredDump::Acl(followed.dump.map(Box::new))));
            }
            return self.request_without_configuration(has_other, &env);
        };
        self.volume.check(true)?;
        self.ring.prepare(true)?;
        let (mut configured, failures) = match self.read(path)? {
            ConfiguredDump::Acl(dump) => {
                let followed = follow(dump.map(|dump| *dump), &env);
                let dump = followed.dump.map(Box::new);
                (ConfiguredDump::Acl(dump), followed.beside)
            }
            // The environment's dump is in AscendCL's form, so it is separate from one in
            // MindSpore's.
            other => (other, follow(None, &env).dump),
        };
        match &mut configured {
            ConfiguredDump::Acl(_) => self.compress.apply(None)?,
            ConfiguredDump::MindSpore(Some(request)) => {
                if let DumpForm::MindSpore(options) = &mut request.form {
                    self.compress.apply(Some(options))?;
                }
            }
            // Nothing is dumped.
            ConfiguredDump::MindSpore(None) => {}
        }
        let is_nothing = matches!(
            configured,
            ConfiguredDump::Acl(None) | ConfiguredDump::MindSpore(None)
        );
        Ok(DumpRequest {
            configuration: (!is_nothing).then(|| path.clone()),
            failures,
            ..self.lower(configured)
        })
    }

    fn request_without_configuration(
        &self,
        has_other: bool,
        env: &ConfigEnvironment,
    ) -> CommandResult<DumpRequest> {
        if !has_other {
            let message = "nothing to do: neither a configuration nor an output directory";
            let hint = "pass `--out DIR`, `--config FILE`, `--stats` or `--as DTYPE`";
            return Err(CommandFailure::message(USAGE, message).with_hint(hint));
        }
        self.volume.check(self.out.is_some())?;
        self.ring.prepare(self.out.is_some())?;
        self.compress.apply(None)?;
        let request = self.request_of_form(Plan::everything(), env)?;
        Ok(DumpRequest {
            failures: follow(None, env).dump,
            ..self.with_options(request)
        })
    }

    /// The request of a MindSpore configuration, before options apply.
    pub(super) fn request_of_text(&self, source: &ConfigSource<'_>) -> CommandResult<DumpRequest> {
        match self.interpret(source, true)? {
            ConfiguredDump::MindSpore(Some(request)) => Ok(*request),
            ConfiguredDump::MindSpore(None) | ConfiguredDump::Acl(_) => Ok(DumpRequest::nothing()),
        }
    }

    /// The request of a configuration that was read elsewhere.
    pub(super) fn request_of(&self, source: &ConfigSource<'_>) -> CommandResult<DumpRequest> {
        let is_mindspore = self.target.is_some();
        Ok(self.lower(self.interpret(source, is_mindspore)?))
    }

    fn lower(&self, configured: ConfiguredDump) -> DumpRequest {
        match configured {
            ConfiguredDump::Acl(Some(dump)) => {
                let mut request = DumpRequest::from_acl(*dump);
                request.plan.has_graph_inputs = self.graph_inputs;
                self.with_options(request)
            }
            ConfiguredDump::MindSpore(Some(request)) => self.with_options(*request),
            ConfiguredDump::Acl(None) | ConfiguredDump::MindSpore(None) => {
                let nothing = DumpRequest::nothing();
                DumpRequest {
                    tensors: self.volume.rules(),
                    form: self.volume.apply(nothing.form),
                    ..nothing
                }
            }
        }
    }

    /// Applies the options about quantisation and volume.
    fn with_options(&self, request: DumpRequest) -> DumpRequest {
        if self.quant_dumpable && request.plan.purpose != Purpose::Values {
            report!(
                "opscope: warning: `--quant-dumpable` has no effect on a dump that keeps only operators that \
                 overflow, fail or are watched"
            );
        }
        DumpRequest {
            plan: Plan {
                shows_quantising: self.quant_dumpable,
                ..request.plan
            },
            tensors: self.volume.rules(),
            form: self.once.apply(self.volume.apply(request.form)),
            ..request
        }
    }

    /// Opens the dump of `request`.
    pub(crate) fn open(&self, request: &DumpRequest) -> CommandResult<OpenDump> {
        self.once.warn_without_effect(&request.form);
        let options = DumpOptions {
            modes: self.modes.modes(),
            times: None,
            is_dry_run: self.volume.dry_run,
            has_rows: self.stats,
            narrow: NarrowFloat::dtypes(&self.narrow),
        };
        let opened = request.open(&options);
        opened.map_err(|error| CommandFailure::new(USAGE, error))
    }

    /// Reads a configuration and prints its warnings.
    fn read(&self, path: &Path) -> CommandResult<ConfiguredDump> {
        // The variable belongs to MindSpore, and so does the target.
        let is_mindspore = self.config.is_none() || self.target.is_some();
        if self.config.is_none() {
            // MindSpore checks the suffix of the name in the variable, but not of a file passed
            // otherwise.
            mindspore::check_file_name(path).map_err(|issue| refused(path, &[*issue]))?;
        }
        let text = opscope_config::read_text(path)?;
        self.interpret(&ConfigSource::file(path, &text), is_mindspore)
    }

    fn interpret(
        &self,
        source: &ConfigSource<'_>,
        is_mindspore: bool,
    ) -> CommandResult<ConfiguredDump> {
        let ConfigSource { path, text, .. } = *source;
        let env = ConfigEnvironment {
            // `support_device` refers to the device that the dump records.
            device_id: self.device,
            ..crate::commands::environment()?
        };
        if is_mindspore || detect(text) == ConfigDialect::MindSpore {
            let target = match self.target {
                Some(target) => target.into(),
                None => mindspore::default_target(&env),
            };
            let config = mindspore::load(text, target, &env)
                .map_err(|issues| refused(path, &source.placed(issues)))?;
            report_issues(path, &source.placed(config.issues));
            let request = config.dump.map(|dump| self.mindspore_request(dump));
            return Ok(ConfiguredDump::MindSpore(
                request.transpose()?.map(Box::new),
            ));
        }
        let loaded = opscope_config::check_nesting(text)
            .map_err(|issue| vec![*issue])
            .and_then(|()| acl::load(text, &env));
        let config = loaded.map_err(|issues| refused(path, &source.placed(issues)))?;
        report_issues(path, &source.placed(config.issues));
        Ok(ConfiguredDump::Acl(config.dump.map(Box::new)))
    }

    fn mindspore_request(&self, dump: MindSporeDumpPlan) -> CommandResult<DumpRequest> {
        let time = dump_times().next().unwrap_or_default();
        let request = DumpRequest::from_mindspore(dump, self.rank, self.modes.modes(), time);
        let mut request = request.map_err(|error| CommandFailure::new(USAGE, anyhow!(error)))?;
        let excluded = NO_KERNELS.map(|op_type| Exclusion {
            model: None,
            operators: OperatorRule::Type(op_type.to_owned()),
            slots: None,
        });
        // Kernels in these operators' graphs are dumped separately, and constants have their own
        // place.
        request.plan.excluded = excluded.into();
        Ok(request)
    }
}

/// The MindSpore configuration in the environment, if any.
fn configuration_of_environment() -> Option<PathBuf> {
    let path = std::env::var_os(CONFIGURATION_VARIABLE)?;
    (!path.is_empty()).then(|| path.into())
}

/// Applies the environment; warns if failing operators cannot be written anywhere.
fn follow(file: Option<AclDump>, env: &ConfigEnvironment) -> FollowedEnvironment {
    let followed = follow_environment(file, env);
    if followed.has_no_place {
        progress::report(
            "warning: no directory in the environment for failing operators is writable",
        );
    }
    followed
}

/// The error for a refused configuration, with its issues.
pub(super) fn refused(path: &Path, issues: &[ConfigIssue]) -> CommandFailure {
    report_issues(path, issues);
    let n = issues
        .iter()
        .filter(|issue| issue.severity == Severity::Error)
        .count();
    let n = crate::format::count(n as u64, "error");
    let message = format!("the configuration is refused: {n}");
    CommandFailure::message(USAGE, message)
}

fn report_issues(path: &Path, issues: &[ConfigIssue]) {
    for issue in issues {
        report!("{}:{issue}", path.display());
    }
}
