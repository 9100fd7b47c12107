//! The place of a file: a name in an open directory, so that the directory cannot be replaced
//! meanwhile.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, linkat, openat, openat2, renameat,
    renameat_with, unlinkat,
};
use rustix::io::Errno;

/// The complaint about a link inside a dump.
pub(super) const LINK_REASON: &str =
    "there is a symbolic link, which is not followed inside a dump";

/// A directory, open or by its path.
#[derive(Debug)]
pub(super) enum TargetDirectory {
    /// Inside a dump: reached without following a link.
    Open(OwnedFd),
    /// Elsewhere links are the caller's choice.
    At(PathBuf),
}

impl TargetDirectory {
    /// Opens `dir`, which is `root` or below it; `root` has no links in it.
    pub(super) fn open(root: &Path, below: &Path) -> io::Result<TargetDirectory> {
        let dir = root.join(below);
        // The descriptor only refers to a place, and `PATH` needs no permission to list the
        // directory.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = match openat2(CWD, &dir, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            // Older kernels, and some sandboxes, do not have this call.
            Err(Errno::NOSYS | Errno::PERM) => walk(root, below, flags),
            opened => opened,
        };
        match opened {
            Ok(dir) => Ok(TargetDirectory::Open(dir)),
            Err(Errno::LOOP) => Err(io::Error::other(LINK_REASON)),
            Err(error) => Err(error.into()),
        }
    }

    /// A file or directory in it.
    pub(super) fn target<'d>(&'d self, name: &'d Path) -> TargetName<'d> {
        TargetName { dir: self, name }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            TargetDirectory::Open(fd) => fd.as_fd(),
            TargetDirectory::At(_) => CWD,
        }
    }

    /// The path of a name in it, for a call with [`TargetDirectory::fd`].
    fn path_of(&self, name: &Path) -> PathBuf {
        match self {
            TargetDirectory::Open(_) => name.to_owned(),
            TargetDirectory::At(dir) => dir.join(name),
        }
    }

    /// Opens a file in it that has no name.
    pub(super) fn open_unnamed(&self, mode: u32) -> Result<File, Errno> {
        // It can be read too: where it cannot be given a name, it is copied.
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let dir = self.path_of(Path::new("."));
        openat(self.fd(), dir, flags, Mode::from_raw_mode(mode)).map(File::from)
    }
}

/// One component after the other.
fn walk(root: &Path, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut dir = openat(CWD, root, flags, Mode::empty())?;
    for component in below.components() {
        let name = component.as_os_str();
        dir = match openat(&dir, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            // For a link the kernel reports that it is not a directory.
            Err(Errno::NOTDIR) if is_link(&dir, name) => return Err(Errno::LOOP),
            opened => opened?,
        };
    }
    Ok(dir)
}

fn is_link(dir: &OwnedFd, name: &std::ffi::OsStr) -> bool {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink())
}

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct TargetName<'d> {
    dir: &'d TargetDirectory,
    name: &'d Path,
}

impl TargetName<'_> {
    fn path(&self) -> PathBuf {
        self.dir.path_of(self.name)
    }

    /// Creates a file; it must not exist.
    pub(super) fn create(&self, mode: u32) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        Ok(openat(self.dir.fd(), self.path(), flags, mode)?.into())
    }

    /// Opens a file to append to it. Follows no link, which another user could have planted.
    pub(super) fn open_to_append(&self) -> io::Result<File> {
        // Read access is for the last byte: it shows whether the last line is complete.
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            // Nothing waits for the other end of a pipe.
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let file: File = openat(self.dir.fd(), self.path(), flags, Mode::empty())?.into();
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other("it is no file"))
        }
    }

    /// Creates a directory that is not there yet.
    pub(super) fn create_dir(&self, mode: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode);
        Ok(rustix::fs::mkdirat(self.dir.fd(), self.path(), mode)?)
    }

    /// Opens a directory to change its permissions.
    pub(super) fn open_dir(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(self.dir.fd(), self.path(), flags, Mode::empty())?.into())
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        Ok(unlinkat(self.dir.fd(), self.path(), AtFlags::empty())?)
    }

    /// Links an open file to this name.
    pub(super) fn name_file(&self, file: &File) -> Result<(), Errno> {
        linkat(file, "", self.dir.fd(), self.path(), AtFlags::EMPTY_PATH)
    }

    /// The same by way of the file's path below `/proc`.
    pub(super) fn name_by_detour(&self, detour: &str) -> Result<(), Errno> {
        linkat(
            CWD,
            detour,
            self.dir.fd(),
            self.path(),
            // The path below `/proc` is a link, and the file that it leads to gets the name.
            AtFlags::SYMLINK_FOLLOW,
        )
    }

    /// Links the file of this name to another one, which must be free.
    pub(super) fn link_to(&self, new: TargetName<'_>) -> io::Result<()> {
        let flags = AtFlags::empty();
        Ok(linkat(
            self.dir.fd(),
            self.path(),
            new.dir.fd(),
            new.path(),
            flags,
        )?)
    }

    /// Renames the file to another name, which may be taken.
    pub(super) fn rename_to(&self, new: TargetName<'_>) -> io::Result<()> {
        Ok(renameat(
            self.dir.fd(),
            self.path(),
            new.dir.fd(),
            new.path(),
        )?)
    }

    /// The same, unless it is taken: then `false`.
    pub(super) fn rename_to_free(&self, new: TargetName<'_>) -> io::Result<bool> {
        let (from, to) = (self.path(), new.path());
        let flags = RenameFlags::NOREPLACE;
        match renameat_with(self.dir.fd(), from, new.dir.fd(), to, flags) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            // Some file systems cannot rename without replacing; a hard link has the same effect.
            Err(Errno::INVAL | Errno::NOSYS) => match self.link_to(new) {
                Ok(()) => self.remove().map(|()| true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            },
            Err(error) => Err(error.into()),
        }
    }
}
