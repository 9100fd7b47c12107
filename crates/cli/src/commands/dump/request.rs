//! From options and configurations to a request for a dump.

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
use crate::exit::{CommandFailure, USAGE};
use crate::progress;

/// The variable that names a configuration of MindSpore.
const CONFIGURATION_VARIABLE: &str = "MINDSPORE_DUMP_CONFIG";
/// Operators that run other graphs, and constants: MindSpore has no kernels of them.
const NO_KERNELS: [&str; 4] = ["If", "Loop", "Scan", "Constant"];

/// Dump that a configuration asks for.
enum ConfiguredDump {
    Acl(Option<Box<AclDump>>),
    MindSpore(Option<Box<DumpRequest>>),
}

/// The text of a configuration.
pub(super) struct ConfigSource<'a> {
    /// The file that it is in.
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
    /// Pointer to it in the file.
    pub(super) pointer: &'a str,
}

impl<'a> ConfigSource<'a> {
    /// A file that is a configuration as a whole.
    pub(super) fn file(path: &'a Path, text: &'a str) -> ConfigSource<'a> {
        let pointer = "";
        ConfigSource {
            path,
            text,
            pointer,
        }
    }

    /// Issues with pointers from the root of the file.
    fn placed(&self, mut issues: Vec<ConfigIssue>) -> Vec<ConfigIssue> {
        for issue in &mut issues {
            issue.pointer.insert_str(0, self.pointer);
        }
        issues
    }
}

impl RunArguments {
    /// Reads the configuration, or takes the options' word.
    pub(crate) fn request(&self) -> Result<DumpRequest, CommandFailure> {
        let env = crate::commands::environment()?;
        let has_other = self.out.is_some() || self.stats || !self.narrow.is_empty();
        // What the command line asks for counts more than a variable, which may be set for
        // MindSpore's own runs.
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
            // The environment's dump is in AscendCL's form, so it goes beside one in MindSpore's
            // and never into it.
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
    ) -> Result<DumpRequest, CommandFailure> {
        if !has_other {
            let message = "nothing to do: no configuration and no place to dump to";
            let hint = "give `--out DIR`, `--config FILE`, `--stats` or `--as DTYPE`";
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

    /// The request that a text of MindSpore's asks for, before options count.
    pub(super) fn request_of_text(
        &self,
        source: &ConfigSource<'_>,
    ) -> Result<DumpRequest, CommandFailure> {
        match self.interpret(source, true)? {
            ConfiguredDump::MindSpore(Some(request)) => Ok(*request),
            ConfiguredDump::MindSpore(None) | ConfiguredDump::Acl(_) => Ok(DumpRequest::nothing()),
        }
    }

    /// Makes the request of a configuration that was read elsewhere.
    pub(super) fn request_of(
        &self,
        source: &ConfigSource<'_>,
    ) -> Result<DumpRequest, CommandFailure> {
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

    /// The same request with what the options say of quantising and of the volume.
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

    /// Opens the dump that `request` asks for.
    pub(crate) fn open(&self, request: &DumpRequest) -> Result<OpenDump, CommandFailure> {
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

    /// Reads a configuration; tells what there is to tell about it.
    fn read(&self, path: &Path) -> Result<ConfiguredDump, CommandFailure> {
        // The variable is MindSpore's, and so is the target.
        let is_mindspore = self.config.is_none() || self.target.is_some();
        if self.config.is_none() {
            // MindSpore looks at the ending of the name that it finds in the variable. For a file
            // that `--config` names there is no such rule to keep.
            mindspore::check_file_name(path).map_err(|issue| refused(path, &[*issue]))?;
        }
        let text = opscope_config::read_text(path)?;
        self.interpret(&ConfigSource::file(path, &text), is_mindspore)
    }

    fn interpret(
        &self,
        source: &ConfigSource<'_>,
        is_mindspore: bool,
    ) -> Result<ConfiguredDump, CommandFailure> {
        let ConfigSource { path, text, .. } = *source;
        let refused = |issues: Vec<ConfigIssue>| refused(path, &source.placed(issues));
        let env = ConfigEnvironment {
            // `support_device` is about the device that the dump is said to come from.
            device_id: self.device,
            ..crate::commands::environment()?
        };
        if is_mindspore || detect(text) == ConfigDialect::MindSpore {
            let target = match self.target {
                Some(target) => target.into(),
                None => mindspore::default_target(&env),
            };
            let config = mindspore::load(text, target, &env).map_err(refused)?;
            report_issues(path, &source.placed(config.issues));
            let request = config.dump.map(|dump| self.mindspore_request(dump));
            return Ok(ConfiguredDump::MindSpore(
                request.transpose()?.map(Box::new),
            ));
        }
        let loaded = opscope_config::check_nesting(text)
            .map_err(|issue| vec![*issue])
            .and_then(|()| acl::load(text, &env));
        let config = loaded.map_err(refused)?;
        report_issues(path, &source.placed(config.issues));
        Ok(ConfiguredDump::Acl(config.dump.map(Box::new)))
    }

    fn mindspore_request(&self, dump: MindSporeDumpPlan) -> Result<DumpRequest, CommandFailure> {
        let time = dump_times().next().unwrap_or_default();
        let request = DumpRequest::from_mindspore(dump, self.rank, self.modes.modes(), time);
        let mut request = request.map_err(|error| CommandFailure::new(USAGE, anyhow!(error)))?;
        let excluded = NO_KERNELS.map(|op_type| Exclusion {
            model: None,
            operators: OperatorRule::Type(op_type.to_owned()),
            slots: None,
        });
        // Kernels in the graphs that these operators run are dumped by themselves, and constants
        // have a place of their own.
        request.plan.excluded = excluded.into();
        Ok(request)
    }
}

/// The configuration of MindSpore that the environment names, if it names one.
fn configuration_of_environment() -> Option<PathBuf> {
    let path = std::env::var_os(CONFIGURATION_VARIABLE)?;
    (!path.is_empty()).then(|| path.into())
}

/// Follows the environment; tells if there is no place where it would have failing operators.
fn follow(file: Option<AclDump>, env: &ConfigEnvironment) -> FollowedEnvironment {
    let followed = follow_environment(file, env);
    if followed.has_no_place {
        progress::report(
            "warning: no place that the environment names for failing operators can be written",
        );
    }
    followed
}

/// Tells why a configuration is refused.
pub(super) fn refused(path: &Path, issues: &[ConfigIssue]) -> CommandFailure {
    report_issues(path, issues);
    let is_error = |issue: &&ConfigIssue| issue.severity == Severity::Error;
    let n = issues.iter().filter(is_error).count();
    let n = crate::format::count(n as u64, "error");
    let message = format!("the configuration is refused: {n}");
    CommandFailure::message(USAGE, message)
}

fn report_issues(path: &Path, issues: &[ConfigIssue]) {
    for issue in issues {
        report!("{}:{issue}", path.display());
    }
}
