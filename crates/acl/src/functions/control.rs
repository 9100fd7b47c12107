//! Follows the control file.

use std::path::Path;
use std::time::Duration;

use opscope_config::dialect::acl::{self, AclDump, DumpMode};
use opscope_config::{
    ConfigIssue, ControlConfig, ControlRequests, Severity, check_nesting, read_text,
};

use crate::AclProcess;
use crate::control::{ControlFile, ControlFileState};
use crate::dump::DumpRegistration;
use crate::lock::lock;

impl AclProcess {
    /// The same process with a control file, as from `OPSCOPE_CONTROL`. It is checked before a
    /// model or an operator is executed, but not twice within `interval`.
    #[must_use]
    pub fn with_control(self, path: &Path, interval: Duration) -> AclProcess {
        AclProcess {
            control: Some(ControlFile::new(path.to_owned(), interval)),
            ..self
        }
    }

    /// Follows the control file, if any, and returns whether to dump the execution that begins now.
    pub(crate) fn is_dump_enabled(&self) -> bool {
        let Some(control) = &self.control else {
            return true;
        };
        let mut state = lock(&control.state);
        if state.has_changed(&control.path, control.interval)
            && let Err(reason) = self.follow(&control.path, &mut state)
        {
            let path = control.path.display();
            self.log
                .error(format_args!("`{path}` changes nothing: {reason}"));
        }
        state.is_enabled
    }

    fn follow(&self, path: &Path, state: &mut ControlFileState) -> Result<(), String> {
        let text = read_text(path).map_err(|error| text_of(&error))?;
        let env = self.environment().map_err(|error| text_of(&error))?;
        let asked = ControlRequests::parse(&text, &env).map_err(|issues| first_error(&issues))?;
        let config = match asked.config {
            None => None,
            Some(ControlConfig::Inline(text)) => Some(text),
            Some(ControlConfig::File(path)) => {
                Some(read_text(&path).map_err(|error| text_of(&error))?)
            }
        };
        if let Some(text) = config {
            check_nesting(&text).map_err(|issue| first_error(&[*issue]))?;
            let config = acl::load(&text, &env).map_err(|issues| first_error(&issues))?;
            let dump = config.dump.ok_or("the configuration requests no dump")?;
            if state.config.as_ref() != Some(&dump) {
                self.replace_dump(dump.clone())?;
                state.config = Some(dump);
            }
        }
        // This comes last, because a file with any mistake changes nothing.
        state.is_enabled = asked.enabled.unwrap_or(state.is_enabled);
        Ok(())
    }

    /// Puts a configuration in force for all models, including loaded ones.
    fn replace_dump(&self, accepted: AclDump) -> Result<(), String> {
        if let DumpMode::Failures(_) = accepted.mode {
            let reason = "a dump of failing operators is configured once, by the program";
            return Err(reason.to_owned());
        }
        self.put_in_force(accepted, DumpRegistration::replace);
        Ok(())
    }
}

fn first_error(issues: &[ConfigIssue]) -> String {
    let mut errors = issues.iter().filter(|i| i.severity == Severity::Error);
    errors
        .next()
        .map_or_else(String::new, ConfigIssue::to_string)
}

fn text_of(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}
