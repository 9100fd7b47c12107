//! Files that are counted instead of created.

mod known;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{Access, MemfdFlags, access, memfd_create};

use self::known::KnownTree;
use super::{FileIdentity, LinkMethod, SharingOutcome};

/// Files and directories that a pretending [`Creator`](super::Creator) would have put on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DryRunTotals {
    /// Directories that would be new.
    pub n_dirs: u64,
    /// Files that would be new or take the place of others, links included.
    pub n_files: u64,
    /// Those of them that would be further names of files that are there or would be.
    pub n_linked: u64,
    /// Bytes in the files, of linked ones once, and bytes appended to files that are there already.
    pub n_bytes: u64,
    /// Bytes of the links, which are not in `n_bytes`.
    pub n_bytes_linked: u64,
    /// `n_bytes` rounded up to whole blocks, as file systems allocate space; the size of a block is
    /// a power of two.
    pub n_bytes_in_blocks: u64,
}

/// Names that would be taken. Existing files count as well: names must collide as they would in a
/// real run.
#[derive(Debug, Default)]
pub(super) struct DryRunNames(Mutex<DryRunState>);

#[derive(Debug, Default)]
struct DryRunState {
    known: KnownTree,
    n_serials: u64,
}

#[derive(Clone, Debug)]
pub(super) struct PretendedFile {
    stamp: FileIdentity,
    n_bytes: u64,
    is_new: bool,
    is_link: bool,
}

impl DryRunNames {
    pub(super) fn exists(&self, path: &Path) -> bool {
        let mut state = self.lock();
        state.known.file(path).is_some() || state.known.is_new_dir(path) || path.exists()
    }

    pub(super) fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.lock();
        if dir.as_os_str().is_empty() || state.known.has_dir(dir) {
            return Ok(());
        }
        if dir.exists() {
            is_dir(dir)?;
            state.known.add_dir(dir, false);
            return Ok(());
        }
        let missing: Vec<&Path> = dir.ancestors().take_while(|path| !known(path)).collect();
        let known = &mut state.known;
        if missing.iter().any(|path| known.file(path).is_some()) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        can_grow(dir)?;
        for path in missing {
            known.add_dir(path, true);
        }
        Ok(())
    }

    pub(super) fn create_new_dir(&self, dir: &Path) -> io::Result<bool> {
        if self.exists(dir) {
            return Ok(false);
        }
        self.create_dir(dir).map(|()| true)
    }

    /// `false` if the name is taken.
    pub(super) fn create(&self, path: &Path, n_bytes: u64) -> io::Result<bool> {
        // A link that leads nowhere takes the name too.
        if self.exists(path) || path.is_symlink() {
            return Ok(false);
        }
        self.replace(path, n_bytes).map(|()| true)
    }

    pub(super) fn replace(&self, path: &Path, n_bytes: u64) -> io::Result<()> {
        self.check_place(path)?;
        let mut state = self.lock();
        state.n_serials += 1;
        let file = PretendedFile {
            stamp: FileIdentity::pretended(state.n_serials, n_bytes),
            n_bytes,
            is_new: true,
            is_link: false,
        };
        state.known.add_file(path, file);
        Ok(())
    }

    pub(super) fn append(&self, path: &Path, n_bytes: u64) -> io::Result<()> {
        if let Some(file) = self.lock().known.file(path) {
            file.n_bytes += n_bytes;
            return Ok(());
        }
        let is_new = !path.exists();
        self.replace(path, n_bytes)?;
        if let Some(file) = self.lock().known.file(path) {
            // A file on disk that grows does not count as new, only its further bytes do.
            file.is_new = is_new;
        }
        Ok(())
    }

    /// A disk does not report the number of possible names, so none is refused.
    pub(super) fn link(&self, existing: &Path, new: &Path) -> io::Result<SharingOutcome> {
        if self.stamp(existing).is_err() {
            return Ok(SharingOutcome::Refused);
        }
        if self.exists(new) || new.is_symlink() {
            return Ok(SharingOutcome::Taken);
        }
        self.link_replacing(existing, new)?;
        Ok(SharingOutcome::Shared(LinkMethod::Hard))
    }

    pub(super) fn link_replacing(&self, existing: &Path, new: &Path) -> io::Result<bool> {
        let Ok(stamp) = self.stamp(existing) else {
            return Ok(false);
        };
        self.check_place(new)?;
        let file = PretendedFile {
            stamp,
            n_bytes: stamp.n_bytes(),
            is_new: true,
            is_link: true,
        };
        self.lock().known.add_file(new, file);
        Ok(true)
    }

    /// Returns the stamp of a file; one that is on disk has the stamp that it has there.
    pub(super) fn stamp(&self, path: &Path) -> io::Result<FileIdentity> {
        match self.lock().known.file(path) {
            Some(file) if file.is_new => Ok(file.stamp),
            _ => FileIdentity::read(path),
        }
    }

    pub(super) fn total(&self, block_bytes: u64) -> DryRunTotals {
        self.lock().known.total(block_bytes)
    }

    /// Whether a file could be created there, by the operating system's rules.
    fn check_place(&self, path: &Path) -> io::Result<()> {
        let dir = path.parent().unwrap_or(Path::new("."));
        self.create_dir(dir)?;
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        can_grow(dir)
    }

    fn lock(&self) -> MutexGuard<'_, DryRunState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes in all of `parts`.
pub(super) fn n_bytes(parts: &[&[u8]]) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
}

/// How many bytes `write` writes: into a file that is nowhere but in memory.
pub(super) fn n_bytes_of(write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<u64> {
    let mut file = File::from(memfd_create("opscope-pretence", MemfdFlags::CLOEXEC)?);
    write(&mut file)?;
    Ok(file.metadata()?.len())
}

/// Whether the path exists on disk; the empty path means the current directory.
fn known(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.exists()
}

fn is_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        Ok(())
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

/// Whether things can be created in `dir`, or in the nearest directory above it that is there.
fn can_grow(dir: &Path) -> io::Result<()> {
    let there = nearest(dir);
    is_dir(there)?;
    Ok(access(there, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// The path itself, or its nearest existing ancestor.
pub(crate) fn nearest(path: &Path) -> &Path {
    let found = path.ancestors().find(|path| known(path));
    let found = found.filter(|path| !path.as_os_str().is_empty());
    found.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fmt::{Debug, Write as _};
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::atomic_file::{Creator, PermissionModes};

    fn pretending() -> Creator {
        Creator::pretending(PermissionModes::default())
    }

    /// Returns the answers of a creator to many calls.
    fn answers(creator: &Creator, dir: &Path) -> Vec<String> {
        let path = |name: &str| dir.join(name);
        let (link, stamp) = (
            |existing, new| creator.share_file(&path(existing), &path(new)),
            |name| creator.stamp(&path(name)).ok(),
        );
        let create = |name, parts: &[&[u8]]| creator.create_file(&path(name), parts);
        let write = |file: &mut File| file.write_all(b"by a function");
        let mut told = String::new();
        let mut tell = |answer: &dyn Debug| writeln!(told, "{answer:?}").unwrap();
        tell(&creator.create_dir(&path("a/b")).is_ok());
        tell(&creator.create_new_dir(&path("a/b")).unwrap());
        tell(&creator.create_new_dir(&path("a/c")).unwrap());
        tell(&creator.create_new_dir(&path("a/c")).unwrap());
        tell(&create("a/f", &[b"12", b"3"]).unwrap());
        tell(&create("a/f", &[b"other"]).unwrap());
        tell(&create("old", &[b"taken"]).unwrap());
        tell(&creator.create_with(&path("x/y/g"), write).unwrap());
        tell(&creator.replace_with(&path("x/h"), write).is_ok());
        tell(&creator.replace_file(&path("x/h"), &[b"shorter"]).is_ok());
        tell(&creator.append_line(&path("x/list"), "one\n").is_ok());
        tell(&creator.append_line(&path("x/list"), "two\n").is_ok());
        tell(&create("a/f/below", &[b""]).is_ok());
        tell(&create("old/below", &[b""]).is_ok());
        tell(&["x/y", "old", "x/z"].map(|name| creator.exists(&path(name))));
        tell(&matches!(
            link("x/h", "links/one").unwrap(),
            SharingOutcome::Shared(_)
        ));
        tell(&matches!(
            link("links/one", "links/two").unwrap(),
            SharingOutcome::Shared(_)
        ));
        tell(&link("x/h", "old").unwrap());
        tell(&link("gone", "links/three").unwrap());
        tell(&(stamp("x/h") == stamp("links/two")));
        tell(&(stamp("x/h") == stamp("a/f")));
        told.lines().map(str::to_owned).collect()
    }

    /// Adds up everything below a directory except what was there before.
    fn on_disk(dir: &Path) -> DryRunTotals {
        let mut sum = DryRunTotals::default();
        let mut seen = HashSet::new();
        let mut dirs = vec![dir.to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                let metadata = entry.metadata().unwrap();
                let len = metadata.len();
                if metadata.is_dir() {
                    sum.n_dirs += 1;
                    dirs.push(entry.path());
                } else if entry.file_name() != "old" {
                    sum.n_files += 1;
                    if !seen.insert(metadata.ino()) {
                        sum.n_linked += 1;
                        sum.n_bytes_linked += len;
                        continue;
                    }
                    sum.n_bytes += len;
                    sum.n_bytes_in_blocks += len.next_multiple_of(8);
                }
            }
        }
        sum
    }

    /// The same calls to a creator that writes and to one that pretends: the same answers, and what
    /// the second counts is on the first one's disk.
    #[test]
    fn answers_and_counts_are_those_of_a_creator_that_writes() {
        let (real, made_up) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for dir in [&real, &made_up] {
            std::fs::write(dir.path().join("old"), "old").unwrap();
        }
        let creator = pretending();
        assert_eq!(
            answers(&creator, made_up.path()),
            answers(&Creator::default(), real.path())
        );
        assert_eq!(std::fs::read_dir(made_up.path()).unwrap().count(), 1);

        assert_eq!(creator.pretended(8), Some(on_disk(real.path())));
        assert_eq!(Creator::default().pretended(8), None);
    }

    #[test]
    fn lines_for_a_file_that_is_there_add_bytes_and_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        std::fs::write(&path, "old\n").unwrap();
        let creator = pretending();
        creator.append_line(&path, "new\n").unwrap();
        let total = creator.pretended(1).unwrap();
        assert_eq!((total.n_files, total.n_bytes), (0, 4));
        assert_eq!(std::fs::read(&path).unwrap(), b"old\n");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused() {
        let creator = pretending();
        assert!(creator.create_dir(Path::new("/dev/null/opscope")).is_err());
        let file = Path::new("/dev/null/opscope/file");
        assert!(creator.create_file(file, &[b"x"]).is_err());
        assert_eq!(creator.pretended(1), Some(DryRunTotals::default()));
    }
}
