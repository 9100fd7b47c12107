//! Directories and files that appear whole or not at all.
//!
//! A file is written under a temporary name in its own directory and then given its final name in
//! one step that fails if the name is taken, or takes the name over where the caller says so. Whoever
//! lists the directory sees whole files only.

mod append;
mod directories;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use self::directories::Directories;
use crate::StoreError;
use crate::temporary::{LeftOvers, TemporaryName};

/// How temporary files begin; readers pass over them.
pub use crate::temporary::PREFIX as TEMPORARY_PREFIX;

/// Permission bits for what is created. Dumps can hold private data, so the default admits nobody
/// but the owner. What is created has these bits whatever the umask takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// For directories.
    pub dir: u32,
    /// For files.
    pub file: u32,
}

impl Default for Modes {
    fn default() -> Self {
        Modes {
            dir: 0o700,
            file: 0o600,
        }
    }
}

impl Modes {
    /// A umask can only take bits of others away from what the owner has; who admits others has asked
    /// for it. A file system without permissions may refuse: then fewer are admitted.
    fn settle_file(self, file: &File) {
        if let (true, Ok(metadata)) = (self.file & 0o077 != 0, file.metadata()) {
            let mode = metadata.permissions().mode();
            if mode & 0o777 != self.file {
                let _ = file.set_permissions(Permissions::from_mode(mode & !0o777 | self.file));
            }
        }
    }

    fn settle_dir(self, dir: &Path) {
        if let (true, Ok(metadata)) = (self.dir & 0o077 != 0, dir.symlink_metadata()) {
            let mode = metadata.permissions().mode();
            if mode & 0o777 != self.dir && metadata.is_dir() {
                let bits = Permissions::from_mode(mode & !0o777 | self.dir);
                let _ = std::fs::set_permissions(dir, bits);
            }
        }
    }
}

/// Creates directories and files with given permissions; remembers the directories.
#[derive(Debug, Default)]
pub struct Creator {
    modes: Modes,
    directories: Directories,
}

impl Creator {
    /// A creator that uses `modes`.
    pub fn new(modes: Modes) -> Creator {
        Creator {
            modes,
            ..Creator::default()
        }
    }

    /// A creator of what lies in the dump below `root`: it creates directories nowhere else, and
    /// follows no symbolic link below `root`, whoever put it there.
    pub fn in_dump(root: &Path, modes: Modes) -> Creator {
        Creator {
            modes,
            directories: Directories::below(root, false),
        }
    }

    /// The same; from each directory that was there before, it removes what killed processes left
    /// unfinished.
    pub fn in_shared_dump(root: &Path, modes: Modes) -> Creator {
        Creator {
            modes,
            directories: Directories::below(root, true),
        }
    }

    /// What was removed so far.
    pub fn left_overs(&self) -> LeftOvers {
        self.directories.left_overs()
    }

    /// Creates `dir` and its missing parents.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses, or if a symbolic link is in the way.
    pub fn create_dir(&self, dir: &Path) -> Result<(), StoreError> {
        self.directories.create(dir, self.modes)
    }

    /// Creates `dir` in an existing directory; returns `false` if it is there already.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn create_new_dir(&self, dir: &Path) -> Result<bool, StoreError> {
        match directories::make(dir, self.modes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(StoreError::io("create the directory", dir)(error)),
        }
    }

    /// Writes `parts`, one after the other, as the new file `path`.
    ///
    /// Returns `false`, and leaves the other file alone, if `path` exists.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses; nothing is left behind then.
    pub fn create_file(&self, path: &Path, parts: &[&[u8]]) -> Result<bool, StoreError> {
        self.create_with(path, |file| write_all_vectored(file, parts))
    }

    /// [`Creator::create_file`] with content that `write` produces.
    ///
    /// # Errors
    /// As for [`Creator::create_file`].
    pub fn create_with(
        &self,
        path: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<bool, StoreError> {
        let dir = path.parent().unwrap_or(Path::new("."));
        self.create_dir(dir)?;
        let temporary = self.temporary_in(dir);
        let result = self
            .new_file(&temporary)
            .and_then(|mut file| write(&mut file))
            .and_then(|()| publish(&temporary, path));
        if !matches!(result, Ok(true)) {
            // The error that matters is the first one.
            let _ = std::fs::remove_file(&temporary);
        }
        result.map_err(StoreError::io("write", path))
    }

    /// Writes `parts`, one after the other, as the file `path`, in place of the file or symbolic
    /// link that has the name.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses; the old file is untouched then.
    pub fn replace_file(&self, path: &Path, parts: &[&[u8]]) -> Result<(), StoreError> {
        self.replace_with(path, |file| write_all_vectored(file, parts))
    }

    /// [`Creator::replace_file`] with content that `write` produces.
    ///
    /// # Errors
    /// As for [`Creator::replace_file`].
    pub fn replace_with(
        &self,
        path: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let dir = path.parent().unwrap_or(Path::new("."));
        self.create_dir(dir)?;
        let temporary = self.temporary_in(dir);
        let result = self
            .new_file(&temporary)
            .and_then(|mut file| write(&mut file))
            .and_then(|()| std::fs::rename(&temporary, path));
        if result.is_err() {
            // The error that matters is the first one.
            let _ = std::fs::remove_file(&temporary);
        }
        result.map_err(StoreError::io("write", path))
    }

    /// Gives the file `from` the name `to`; `false`, and nothing changes, if that is taken.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn rename_new(&self, from: &Path, to: &Path) -> Result<bool, StoreError> {
        publish(from, to).map_err(StoreError::io("rename", from))
    }

    fn temporary_in(&self, dir: &Path) -> PathBuf {
        dir.join(TemporaryName::next().to_string())
    }

    fn new_file(&self, path: &Path) -> io::Result<File> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(self.modes.file)
            .open(path)?;
        self.modes.settle_file(&file);
        Ok(file)
    }
}

/// Gives a finished file its final name, unless that is taken.
fn publish(temporary: &Path, path: &Path) -> io::Result<bool> {
    match renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::EXIST) => Ok(false),
        // Some file systems cannot rename without replacing; a hard link has the same effect.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            match std::fs::hard_link(temporary, path) {
                Ok(()) => std::fs::remove_file(temporary).map(|()| true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// `write_all` for several buffers, with as few system calls as the kernel allows.
pub fn write_all_vectored(file: &mut File, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| IoSlice::new(part))
        .collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut rest, n),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_are_private_whole_and_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let creator = Creator::default();
        let path = dir.path().join("a/b/file");
        assert!(creator.create_file(&path, &[b"one", b"", b"two"]).unwrap());
        assert!(!creator.create_file(&path, &[b"other"]).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwo");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1
        );
    }

    #[test]
    fn replacing_takes_the_name_and_leaves_link_targets_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let creator = Creator::default();
        for content in [b"one", b"two"] {
            creator.replace_file(&link, &[content]).unwrap();
            assert_eq!(std::fs::read(&link).unwrap(), content);
        }
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        assert!(!link.is_symlink());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn more_parts_than_one_call_takes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("many");
        let parts: Vec<Vec<u8>> = (0..5000_u32).map(|i| i.to_le_bytes().to_vec()).collect();
        let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        assert!(Creator::default().create_file(&path, &slices).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), parts.concat());
    }

    #[test]
    fn an_unwritable_place_names_itself() {
        let dir = tempfile::tempdir().unwrap();
        let blocker = dir.path().join("file");
        std::fs::write(&blocker, "x").unwrap();
        let error = Creator::default()
            .create_file(&blocker.join("sub/f"), &[b"x"])
            .unwrap_err();
        assert!(
            error.to_string().contains("create the directory"),
            "{error}"
        );
    }

    #[test]
    fn inside_a_dump_no_link_is_followed_and_nothing_is_created_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let (root, target) = (dir.path().join("dump"), dir.path().join("target"));
        std::fs::create_dir(&target).unwrap();
        std::fs::create_dir_all(root.join("0")).unwrap();
        std::os::unix::fs::symlink(&target, root.join("0/net")).unwrap();
        std::fs::write(root.join("1"), "").unwrap();
        let creator = Creator::in_dump(&root, Modes::default());
        for below in ["0/net", "0/net/1/0", "1/net", "../target", "0/../../target"] {
            let refused = creator.create_file(&root.join(below).join("f"), &[b"x"]);
            assert!(refused.is_err(), "{below}");
        }
        assert!(creator.create_file(&target.join("f"), &[b"x"]).is_err());
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
        assert!(creator.create_file(&root.join("0/a/f"), &[b"x"]).unwrap());
        // A link to the dump itself is the user's choice.
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&root, &link).unwrap();
        let creator = Creator::in_dump(&link, Modes::default());
        assert!(creator.create_file(&link.join("0/b/f"), &[b"x"]).unwrap());
    }

    #[test]
    fn lines_go_to_regular_files_only_and_begin_on_lines_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("statistic.csv");
        let append = |creator: &Creator, lines: &str| creator.append(&path, "h\n", lines).unwrap();
        let creator = Creator::default();
        assert!(append(&creator, "1\n"));
        assert!(!append(&creator, "2\n"));
        assert!(!append(&Creator::default(), "3\n"));
        let mut text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "h\n1\n2\n3\n");
        // As a process leaves it that is killed in the middle of a call.
        text.push_str("tor");
        std::fs::write(&path, text).unwrap();
        append(&Creator::default(), "4\n");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "h\n1\n2\n3\ntor\n4\n");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(creator.append_line(&link, "x\n").is_err());
        assert!(creator.append_line(dir.path(), "x\n").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn two_writers_of_one_table_mix_no_lines_and_make_one_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/statistic.csv");
        let n_headers = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for who in 0..4_u8 {
                let (path, n_headers) = (&path, &n_headers);
                scope.spawn(move || {
                    let creator = Creator::default();
                    creator.create_dir(path.parent().unwrap()).unwrap();
                    let row = char::from(b'a' + who).to_string().repeat(301) + "\n";
                    for _ in 0..50 {
                        let is_new = creator.append(path, "header\n", &row).unwrap();
                        let order = std::sync::atomic::Ordering::Relaxed;
                        n_headers.fetch_add(is_new.into(), order);
                    }
                });
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("header"));
        let is_whole = |line: &str| line.len() == 301 && line == line[..1].repeat(301);
        assert_eq!(lines.clone().count(), 200);
        assert!(lines.all(is_whole), "{text}");
        assert_eq!(n_headers.into_inner(), 1);
    }

    /// Runs this test again in a process with the given umask, where it creates and looks.
    #[test]
    fn bits_are_those_that_were_asked_for() {
        const DIR: &str = "OPSCOPE_TEST_DIR";
        let modes = [
            Modes::default(),
            Modes {
                dir: 0o750,
                file: 0o644,
            },
        ];
        if let Some(dir) = std::env::var_os(DIR) {
            for (i, modes) in modes.into_iter().enumerate() {
                let dir = Path::new(&dir).join(i.to_string());
                let creator = Creator::in_dump(&dir, modes);
                creator.create_file(&dir.join("a/f"), &[b"x"]).unwrap();
                creator.append_line(&dir.join("a/g"), "x\n").unwrap();
            }
            return;
        }
        for umask in ["000", "022", "077"] {
            let dir = tempfile::tempdir().unwrap();
            let again = "exec \"$0\" bits_are_those_that_were_asked_for --exact";
            let name = "atomic_file::tests::bits_are_those_that_were_asked_for";
            let again = again.replace("bits_are_those_that_were_asked_for", name);
            let status = std::process::Command::new("sh")
                .args(["-c", &format!("umask {umask}; {again}")])
                .arg(std::env::current_exe().unwrap())
                .env(DIR, dir.path())
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert!(status.success());
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            for (i, modes) in modes.into_iter().enumerate() {
                let dir = dir.path().join(i.to_string());
                for (below, bits) in [
                    ("", modes.dir),
                    ("a", modes.dir),
                    ("a/f", modes.file),
                    ("a/g", modes.file),
                ] {
                    assert_eq!(mode(&dir.join(below)), bits, "{below} under {umask}");
                }
            }
        }
    }
}
