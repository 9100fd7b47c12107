//! `dump_path`: an existing directory that can be read and written.

use std::env;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::object::{Cursor, Findings};

/// Longest value, in bytes.
const BYTES_MAX: usize = 512;

/// Checks the value and makes it absolute.
pub(super) fn check(
    dump: &Cursor<'_>,
    value: Option<&str>,
    current_dir: &Path,
    findings: &mut Findings,
) -> Option<PathBuf> {
    let pointer = "/dump/dump_path";
    let Some(value) = value else {
        findings.error(
            "EP0001",
            pointer,
            dump.place(),
            "missing; expected an existing directory",
        );
        return None;
    };
    let place = dump.member("dump_path")?.place();
    let mut refuse = |code, message: &str| {
        findings.error(code, pointer, place, message);
        None
    };
    if value.is_empty() {
        return refuse("EP0001", "the value is empty");
    }
    if value.len() > BYTES_MAX {
        let n = value.len();
        return refuse(
            "EP0003",
            &format!("has {n} bytes, at most {BYTES_MAX} are allowed"),
        );
    }
    if is_address(value) {
        return refuse("EP0003", "the form `ip:path` is not supported yet");
    }
    let path = current_dir.join(expand_home(value));
    let Ok(path) = path.canonicalize() else {
        return refuse("EP0003", &format!("`{}` does not exist", path.display()));
    };
    if !path.is_dir() {
        return refuse(
            "EP0003",
            &format!("`{}` is not a directory", path.display()),
        );
    }
    if let Err(error) = is_usable(&path) {
        let path = path.display();
        return refuse(
            "EP0003",
            &format!("`{path}` cannot be read and written ({error})"),
        );
    }
    Some(path)
}

/// Replaces `$HOME` or `~` at the beginning of a path by the home directory. (The vendor's tool takes
/// them literally, though its own examples use them.)
pub fn expand_home(path: &str) -> PathBuf {
    let rest = path
        .strip_prefix("$HOME")
        .or_else(|| path.strip_prefix('~'));
    match (rest, env::var_os("HOME")) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            Path::new(&home).join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(path),
    }
}

/// Whether the text before the first colon is an IPv4 address.
fn is_address(value: &str) -> bool {
    let Some((host, _)) = value.split_once(':') else {
        return false;
    };
    let parts: Vec<&str> = host.split('.').collect();
    parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok())
}

/// Asks the operating system whether the directory can be listed and written, without writing.
fn is_usable(path: &Path) -> std::io::Result<()> {
    access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).map_err(Into::into)
}
