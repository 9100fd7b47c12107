//! Checks which paths the reference accepts.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use opscope_store::atomic_file::PermissionModes;
use opscope_store::regular_file;

use crate::failure::{ErrorCode, ToolFailure};
use crate::log;

const PATH_BYTES_MAX: usize = 4096;
const COMPONENT_BYTES_MAX: usize = 255;

/// The expected kind of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    File,
    Directory,
    Any,
}

/// Whether an option's text contains only characters that the reference considers safe.
pub(super) fn is_safe_text(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"_/.,-".contains(&b))
}

/// Makes a path absolute and resolves symbolic links; nonexistent components stay unchanged.
pub(super) fn resolve(text: &str) -> PathBuf {
    let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let mut resolved = PathBuf::from("/");
    for component in current.join(text).components() {
        match component {
            // Links before it are resolved, so this is the parent of a link's target.
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Normal(name) => {
                resolved.push(name);
                if let Ok(real) = fs::canonicalize(&resolved) {
                    resolved = real;
                }
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    resolved
}

/// Checks a path from [`resolve`]: its characters, its length, its existence, permission and kind.
pub(super) fn check_input(path: &Path, kind: PathKind) -> Result<(), ToolFailure> {
    check_text(path)?;
    check_resolved(path, kind)
}

fn check_resolved(path: &Path, kind: PathKind) -> Result<(), ToolFailure> {
    let invalid = |what: &str| {
        let message = format!("The path {} {what}.", log::quoted(path));
        ToolFailure::new(ErrorCode::InvalidPath, message)
    };
    let metadata = fs::metadata(path).map_err(|_| invalid("does not exist"))?;
    match kind {
        PathKind::File if !metadata.is_file() => return Err(invalid("is not a file")),
        PathKind::Directory if !metadata.is_dir() => return Err(invalid("is not a directory")),
        _ => {}
    }
    // Tested by opening, because permission bits alone do not determine access.
    let is_readable = if metadata.is_dir() {
        fs::read_dir(path).is_ok()
    } else {
        regular_file::open(path).is_ok()
    };
    if is_readable {
        Ok(())
    } else {
        Err(invalid("cannot be read"))
    }
}

/// Checks an unresolved path: its characters first, then the file.
pub(super) fn check_given(text: &str, kind: PathKind) -> Result<(), ToolFailure> {
    if text.is_empty() {
        return Err(ToolFailure::new(
            ErrorCode::InvalidParameter,
            "The path is null.",
        ));
    }
    check_text(Path::new(text))?;
    check_resolved(&resolve(text), kind)
}

/// Checks the output directory and creates it.
pub(super) fn create_output(path: &Path) -> Result<(), ToolFailure> {
    let invalid = |error: std::io::Error| {
        let message = format!("The path {} cannot be written: {error}.", log::quoted(path));
        ToolFailure::new(ErrorCode::InvalidPath, message)
    };
    // The reference creates the directory before it checks the name. A name that the disk refuses
    // has no other fault.
    let created = DirBuilder::new()
        .recursive(true)
        .mode(PermissionModes::default().dir)
        .create(path);
    if path.exists() {
        check_text(path)?;
    }
    created.map_err(invalid)?;
    if fs::metadata(path)
        .map_err(invalid)?
        .permissions()
        .readonly()
    {
        return Err(invalid(std::io::ErrorKind::PermissionDenied.into()));
    }
    Ok(())
}

pub(super) fn check_text(path: &Path) -> Result<(), ToolFailure> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if !bytes
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || b"_./:()=\\-".contains(b))
    {
        let message = format!(
            "The name '{}' is invalid. It only supports '\"A-Za-z0-9_\\./:()=-\"'.",
            path.display()
        );
        return Err(ToolFailure::new(ErrorCode::InvalidParameter, message));
    }
    let longest = path
        .components()
        .map(|component| component.as_os_str().len())
        .max();
    if bytes.len() >= PATH_BYTES_MAX || longest >= Some(COMPONENT_BYTES_MAX) {
        let message = format!("The path {} is too long.", log::quoted(path));
        return Err(ToolFailure::new(ErrorCode::InvalidPath, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_dots_are_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(real.join("a")).unwrap();
        std::os::unix::fs::symlink(real.join("a"), real.join("l")).unwrap();
        let text = format!("{}/l/../a/./missing/x/..", real.display());
        assert_eq!(resolve(&text), real.join("a/missing"));
        assert_eq!(resolve(""), std::env::current_dir().unwrap());
    }

    #[test]
    fn codes_follow_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(dir.path()).unwrap();
        fs::write(real.join("f"), "").unwrap();
        let cases = [
            ("f", PathKind::File, None),
            ("f", PathKind::Directory, Some(3)),
            ("", PathKind::File, Some(3)),
            ("", PathKind::Any, None),
            ("missing", PathKind::Any, Some(3)),
            ("a b", PathKind::Any, Some(6)),
        ];
        for (name, kind, status) in cases {
            let result = check_input(&real.join(name), kind);
            assert_eq!(
                result.err().map(|failure| failure.status()),
                status,
                "{name}"
            );
        }
        let long = real.join("x".repeat(255));
        assert_eq!(check_input(&long, PathKind::Any).unwrap_err().status(), 3);
        assert_eq!(create_output(&real.join("f/sub")).unwrap_err().status(), 3);
        assert!(create_output(&real.join("new/sub")).is_ok());
    }
}
