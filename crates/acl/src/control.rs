//! Switching the dumps of a program by a file that it knows nothing of: `OPSCOPE_CONTROL` names it.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use opscope_config::dialect::acl::{self, AclDump, Mode};
use opscope_config::{
    Control, ControlConfig, FileStamp, Issue, Severity, check_nesting, read_text,
};

use crate::Process;
use crate::dump::Registration;
use crate::lock::lock;

/// The variable that names the file.
const VARIABLE: &str = "OPSCOPE_CONTROL";
/// The file is looked at no more often than that.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// A control file, and what it asked for last.
pub(crate) struct ControlFile {
    path: PathBuf,
    interval: Duration,
    state: Mutex<State>,
}

struct State {
    is_enabled: bool,
    looked: Option<(Instant, Option<FileStamp>)>,
    /// The configuration that was taken over. The same again is none: it would begin a new directory.
    config: Option<AclDump>,
}

impl ControlFile {
    /// The one that the environment names, if it names one.
    pub(crate) fn of_environment() -> Option<ControlFile> {
        let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
        Some(ControlFile::new(path.into(), LOOK_INTERVAL))
    }

    fn new(path: PathBuf, interval: Duration) -> ControlFile {
        ControlFile {
            path,
            interval,
            state: Mutex::new(State {
                is_enabled: true,
                looked: None,
                config: None,
            }),
        }
    }
}

impl State {
    /// Whether the file is another one than at the last look.
    fn has_changed(&mut self, path: &Path, interval: Duration) -> bool {
        if let Some((last, _)) = self.looked
            && last.elapsed() < interval
        {
            return false;
        }
        let stamp = FileStamp::of(path);
        let before = self.looked.replace((Instant::now(), stamp));
        stamp.is_some() && before.is_none_or(|(_, known)| known != stamp)
    }
}

impl Process {
    /// The same process with a control file, as `OPSCOPE_CONTROL` gives one. It is looked at before a
    /// model or an operator is executed, but not twice within `interval`.
    #[must_use]
    pub fn with_control(self, path: &Path, interval: Duration) -> Process {
        Process {
            control: Some(ControlFile::new(path.to_owned(), interval)),
            ..self
        }
    }

    /// Follows the control file, if there is one. Whether anything is dumped of the execution that
    /// begins now.
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

    fn follow(&self, path: &Path, state: &mut State) -> Result<(), String> {
        let text = read_text(path).map_err(|error| text_of(&error))?;
        let env = self.environment().map_err(|error| text_of(&error))?;
        let asked = Control::parse(&text, &env).map_err(|issues| first_error(&issues))?;
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
            let dump = config.dump.ok_or("the configuration asks for no dump")?;
            if state.config.as_ref() != Some(&dump) {
                self.replace_dump(dump.clone())?;
                state.config = Some(dump);
            }
        }
        state.is_enabled = asked.enabled.unwrap_or(state.is_enabled);
        Ok(())
    }

    /// Puts a configuration in force for all models, also for those that are loaded already.
    fn replace_dump(&self, accepted: AclDump) -> Result<(), String> {
        if let Mode::Failures(_) = accepted.mode {
            let reason = "a dump of failing operators is configured once, by the program";
            return Err(reason.to_owned());
        }
        self.put_in_force(accepted, Registration::replace);
        Ok(())
    }
}

fn first_error(issues: &[Issue]) -> String {
    let mut errors = issues.iter().filter(|i| i.severity == Severity::Error);
    errors.next().map_or_else(String::new, Issue::to_string)
}

fn text_of(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}
