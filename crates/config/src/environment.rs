//! Everything that affects a configuration besides its text.

use std::path::{Path, PathBuf};
use std::{env, io};

/// The environment in which a configuration is read. Empty variables count as unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigEnvironment {
    /// The base of relative paths.
    pub current_dir: PathBuf,
    /// The expansion of `$HOME` and `~` at the beginning of a path. With `None` they are literal.
    pub home: Option<PathBuf>,
    /// `ASCEND_DUMP_PATH`: first choice for dumps of failing operators.
    pub dump_path: Option<PathBuf>,
    /// `ASCEND_WORK_PATH`: second choice for them.
    pub work_path: Option<PathBuf>,
    /// `ASCEND_DUMP_SCENE`: requests a dump of failing operators.
    pub dump_scene: Option<String>,
    /// `NPU_COLLECT_PATH`: requests one, and names the directory.
    pub collect_path: Option<PathBuf>,
    /// `MS_DIAGNOSTIC_DATA_PATH`: parent of MindSpore's dumps without a path.
    pub diagnostic_data_path: Option<String>,
    /// `ENABLE_MS_GE_DUMP`: whether MindSpore leaves dumps to the graph engine.
    pub has_ge_dump: bool,
    /// The device that runs the model, in MindSpore's numbering.
    pub device_id: u32,
}

impl ConfigEnvironment {
    /// The environment of this process.
    ///
    /// # Errors
    /// If the current directory cannot be determined: it was removed, or a parent is not
    /// accessible.
    pub fn of_process() -> io::Result<ConfigEnvironment> {
        // Shells and job systems often export an empty variable to switch it off.
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        let path = |name| variable(name).map(PathBuf::from);
        Ok(ConfigEnvironment {
            current_dir: env::current_dir()?,
            home: path("HOME"),
            dump_path: path("ASCEND_DUMP_PATH"),
            work_path: path("ASCEND_WORK_PATH"),
            dump_scene: variable("ASCEND_DUMP_SCENE")
                .map(|scene| scene.to_string_lossy().into_owned()),
            collect_path: path("NPU_COLLECT_PATH"),
            diagnostic_data_path: variable("MS_DIAGNOSTIC_DATA_PATH")
                .map(|path| path.to_string_lossy().into_owned()),
            has_ge_dump: variable("ENABLE_MS_GE_DUMP").is_some_and(|value| value == "1"),
            device_id: 0,
        })
    }

    /// Expands `$HOME` or `~` at the beginning of a path; `None` if there is neither, or no home.
    pub(crate) fn expand_home(&self, path: &str) -> Option<PathBuf> {
        let rest = home_prefix(path)?;
        let home = self.home.as_ref()?;
        // `join` would treat a rest that begins with a slash as an absolute path.
        Some(home.join(rest.trim_start_matches('/')))
    }

    /// A path with `$HOME` or `~` at its beginning expanded, if present.
    #[must_use]
    pub fn expanded(&self, path: &Path) -> PathBuf {
        let expanded = path.to_str().and_then(|text| self.expand_home(text));
        expanded.unwrap_or_else(|| path.to_owned())
    }

    /// An absolute path.
    pub(crate) fn absolute(&self, path: impl AsRef<Path>) -> PathBuf {
        self.current_dir.join(path)
    }
}

/// Returns the rest of a path that begins with `$HOME` or `~`: empty, or from the next `/` on.
pub(crate) fn home_prefix(path: &str) -> Option<&str> {
    let rest = path
        .strip_prefix("$HOME")
        .or_else(|| path.strip_prefix('~'))?;
    // `~user` and `$HOMEWORK` are other names, which are not expanded.
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_expanded_at_the_beginning_only() {
        let with_home = ConfigEnvironment {
            home: Some("/home/me".into()),
            ..ConfigEnvironment::default()
        };
        for (path, expected) in [
            ("$HOME/x", Some("/home/me/x")),
            ("$HOME", Some("/home/me")),
            ("~//x", Some("/home/me/x")),
            ("~user/x", None),
            ("$HOMEWORK", None),
            ("a/$HOME", None),
        ] {
            let expected = expected.map(PathBuf::from);
            assert_eq!(with_home.expand_home(path), expected, "{path}");
            assert_eq!(
                ConfigEnvironment::default().expand_home(path),
                None,
                "{path}"
            );
        }
    }
}
