//! The file that holds ONNX Runtime: its name, its version, and which one of a directory to take.

use std::fs;
use std::path::{Path, PathBuf};

/// How a system names libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LibraryNaming {
    /// `libonnxruntime.so`, `libonnxruntime.so.1.31.1`.
    Elf,
    /// `libonnxruntime.dylib`, `libonnxruntime.1.31.1.dylib`.
    MacOs,
    /// `onnxruntime.dll`.
    Windows,
}

const NAMING: LibraryNaming = if cfg!(target_os = "windows") {
    LibraryNaming::Windows
} else if cfg!(target_os = "macos") {
    LibraryNaming::MacOs
} else {
    LibraryNaming::Elf
};

/// How messages call the file.
pub(super) const FILE_NAME: &str = match NAMING {
    LibraryNaming::Elf => "libonnxruntime.so*",
    LibraryNaming::MacOs => "libonnxruntime*.dylib",
    LibraryNaming::Windows => "onnxruntime.dll",
};

/// The numbers of a version, the most important first; a name without any has none.
pub(super) type Version = Vec<u64>;

/// The version in a file's name; `None` if this is not the name of the library.
fn version_of(name: &str, naming: LibraryNaming) -> Option<Version> {
    let numbers = match naming {
        LibraryNaming::Elf => name.strip_prefix("libonnxruntime.so")?,
        LibraryNaming::MacOs => name
            .strip_prefix("libonnxruntime")?
            .strip_suffix(".dylib")?,
        LibraryNaming::Windows => return (name == "onnxruntime.dll").then(Version::new),
    };
    match numbers {
        "" => Some(Version::new()),
        _ => parse_version(numbers.strip_prefix('.')?),
    }
}

/// `1.31.1`.
fn parse_version(text: &str) -> Option<Version> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

/// The newest library in these directories, the first of several that are alike. Names that lead
/// nowhere do not count.
pub(super) fn newest(dirs: &[PathBuf]) -> Option<PathBuf> {
    let mut newest: Option<(Version, PathBuf)> = None;
    for dir in dirs {
        for name in names_in(dir) {
            let path = dir.join(&name);
            // An uninstalled package may leave links that lead nowhere.
            let Some(version) = version_of(&name, NAMING).filter(|_| path.is_file()) else {
                continue;
            };
            // Only a greater version replaces the one before, so that of equal ones the first
            // directory counts.
            if newest.as_ref().is_none_or(|(known, _)| version > *known) {
                newest = Some((version, path));
            }
        }
    }
    newest.map(|(_, path)| path)
}

/// The names in a directory, sorted; none if it cannot be read.
pub(super) fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    // Directories list their entries in any order, and the choice must not depend on it.
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_libraries() {
        let cases: &[(LibraryNaming, &str, Option<&[u64]>)] = &[
            (LibraryNaming::Elf, "libonnxruntime.so", Some(&[])),
            (LibraryNaming::Elf, "libonnxruntime.so.1", Some(&[1])),
            (
                LibraryNaming::Elf,
                "libonnxruntime.so.1.31.1",
                Some(&[1, 31, 1]),
            ),
            (LibraryNaming::Elf, "libonnxruntime.so.1.31.1.bak", None),
            (LibraryNaming::Elf, "libonnxruntime.so.", None),
            (LibraryNaming::Elf, "libonnxruntime.so1", None),
            (
                LibraryNaming::Elf,
                "libonnxruntime_providers_shared.so",
                None,
            ),
            (LibraryNaming::Elf, "libonnxruntime.1.31.1.dylib", None),
            (LibraryNaming::MacOs, "libonnxruntime.dylib", Some(&[])),
            (
                LibraryNaming::MacOs,
                "libonnxruntime.1.31.1.dylib",
                Some(&[1, 31, 1]),
            ),
            (LibraryNaming::MacOs, "libonnxruntime.so", None),
            (LibraryNaming::Windows, "onnxruntime.dll", Some(&[])),
            (
                LibraryNaming::Windows,
                "onnxruntime_providers_shared.dll",
                None,
            ),
        ];
        for (naming, name, expected) in cases {
            let found = version_of(name, *naming);
            assert_eq!(found.as_deref(), *expected, "{naming:?} {name}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_newest_counts_and_broken_links_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| dir.path().join(name));
        let dirs = [first.clone(), dir.path().join("absent"), second.clone()];
        for dir in [&first, &second] {
            fs::create_dir(dir).unwrap();
        }
        assert_eq!(newest(&dirs), None);
        std::os::unix::fs::symlink("nowhere", first.join("libonnxruntime.so.9.0.0")).unwrap();
        fs::create_dir(first.join("libonnxruntime.so.8.0.0")).unwrap();
        assert_eq!(newest(&dirs), None);
        // Numbers are compared as numbers, and one without a version is the last to be taken.
        for (dir, name) in [
            (&first, "libonnxruntime.so"),
            (&first, "libonnxruntime.so.1.9.1"),
            (&second, "libonnxruntime.so.1.20.0"),
            (&second, "libonnxruntime.so.1.20"),
            (&first, "libonnxruntime.so.1.20.0"),
        ] {
            fs::write(dir.join(name), "").unwrap();
            let version = |path: &Path| {
                version_of(path.file_name().unwrap().to_str().unwrap(), NAMING).unwrap()
            };
            let found = newest(&dirs).unwrap();
            assert!(version(&found) >= version(Path::new(name)), "{name}");
        }
        assert_eq!(newest(&dirs), Some(first.join("libonnxruntime.so.1.20.0")));
    }
}
