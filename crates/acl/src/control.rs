//! Controls a program's dumps by a file, named by `OPSCOPE_CONTROL`, without the program's
//! knowledge.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use opscope_config::FileStamp;
use opscope_config::dialect::acl::AclDump;

/// The variable that names the file.
const VARIABLE: &str = "OPSCOPE_CONTROL";
/// Minimum time between two checks of the file.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// A control file, and its latest requests.
pub(crate) struct ControlFile {
    pub(crate) path: PathBuf,
    pub(crate) interval: Duration,
    pub(crate) state: Mutex<ControlFileState>,
}

pub(crate) struct ControlFileState {
    pub(crate) is_enabled: bool,
    pub(crate) looked: Option<(Instant, Option<FileStamp>)>,
    /// The configuration in force. The same configuration is ignored: it would begin a new
    /// directory.
    pub(crate) config: Option<AclDump>,
}

impl ControlFile {
    /// The control file named by the environment, if any.
    pub(crate) fn of_environment() -> Option<ControlFile> {
        let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
        Some(ControlFile::new(path.into(), LOOK_INTERVAL))
    }

    pub(crate) fn new(path: PathBuf, interval: Duration) -> ControlFile {
        ControlFile {
            path,
            interval,
            state: Mutex::new(ControlFileState {
                is_enabled: true,
                looked: None,
                config: None,
            }),
        }
    }
}

impl ControlFileState {
    /// Whether the file has changed since the last check.
    pub(crate) fn has_changed(&mut self, path: &Path, interval: Duration) -> bool {
        if let Some((last, _)) = self.looked
            && last.elapsed() < interval
        {
            return false;
        }
        let stamp = FileStamp::read(path);
        let before = self.looked.replace((Instant::now(), stamp));
        // A deleted file requests nothing new: its last content stays in force.
        stamp.is_some() && before.is_none_or(|(_, known)| known != stamp)
    }
}
