//! Names of files that are being written, and what is left of them when their process is killed.
//!
//! ```text
//! .opscope-tmp-{pid}-{start_ticks}-{boot}-{pid_namespace}-{serial}
//! ```

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, fs};

use serde::{Deserialize, Serialize};

use crate::owner::{self, Liveness, OwnerProcess};

/// How such names begin; readers pass over them.
pub const PREFIX: &str = ".opscope-tmp-";
/// Maximum number of entries of a directory that are checked for left-overs.
const N_ENTRIES_MAX: usize = 1 << 20;
/// File systems of one machine: ext, XFS, Btrfs, tmpfs, overlay, F2FS, ZFS. Their files from before
/// the boot belong to no running process.
const LOCAL_FILE_SYSTEMS: [u32; 7] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x794c_7630,
    0xf2f5_2010,
    0x2fc1_2fc1,
];

/// The name of a file that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemporaryName {
    /// The process that writes.
    pub owner: OwnerProcess,
    /// Which of its files.
    pub serial: u64,
}

impl TemporaryName {
    /// A name that no other file of this process has had.
    pub fn next() -> TemporaryName {
        static N_NAMES: AtomicU64 = AtomicU64::new(0);
        TemporaryName {
            owner: OwnerProcess::current(),
            serial: N_NAMES.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Takes a name apart; `None` unless it is such a name to the letter.
    pub fn parse(name: &str) -> Option<TemporaryName> {
        let (owner, serial) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
        let parsed = TemporaryName {
            owner: OwnerProcess::parse(owner)?,
            serial: serial.parse().ok()?,
        };
        (parsed.to_string() == name).then_some(parsed)
    }
}

impl fmt::Display for TemporaryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}-{}", self.owner, self.serial)
    }
}

/// Counts of the unfinished files that were found of killed processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOvers {
    /// Files that were removed.
    pub n_files: u64,
    /// Bytes in them.
    pub n_bytes: u64,
    /// Files of processes that may still be running; they stay.
    pub n_kept: u64,
}

opscope_tensor::add_fields!(LeftOvers: n_files, n_bytes, n_kept);

/// Removes from `dir`, not from what is below it, the unfinished files of processes that have
/// ended.
///
/// Only regular files of our own user whose names match the pattern exactly are touched. Unreadable
/// directories and files that cannot be removed stay as they are: left-overs are harmless.
pub fn clean(dir: &Path) -> LeftOvers {
    let mut found = LeftOvers::default();
    let Ok(entries) = fs::read_dir(dir) else {
        return found;
    };
    for entry in entries.take(N_ENTRIES_MAX).flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(TemporaryName::parse) else {
            continue;
        };
        // Of an entry, so that symbolic links are not followed.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        // The process of another user can be hidden from us, and would look as if it had ended.
        if !metadata.is_file() || Some(metadata.uid()) != owner::user() {
            continue;
        }
        match liveness_in(dir, &name.owner) {
            Liveness::Alive => {}
            Liveness::Dead => {
                if fs::remove_file(entry.path()).is_ok() {
                    found.n_files += 1;
                    found.n_bytes += metadata.len();
                }
            }
            // Where machines share a file system, another boot may be a machine that still writes.
            Liveness::OtherBoot | Liveness::Unknown => found.n_kept += 1,
        }
    }
    found
}

/// Removes from `dir` the directories of processes that have ended, with all that is in them.
///
/// As with [`clean`], only those of our own user whose names follow the pattern to the letter, and
/// none that a symbolic link leads to. Files that cannot be removed stay.
pub fn clean_directories(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.take(N_ENTRIES_MAX).flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(TemporaryName::parse) else {
            continue;
        };
        // Of an entry, so that symbolic links are not followed.
        let is_ours =
            |metadata: fs::Metadata| metadata.is_dir() && Some(metadata.uid()) == owner::user();
        if entry.metadata().is_ok_and(is_ours) && liveness_in(dir, &name.owner) == Liveness::Dead {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// [`OwnerProcess::liveness`] of a process that wrote into `dir`.
pub(crate) fn liveness_in(dir: &Path, owner: &OwnerProcess) -> Liveness {
    match owner.liveness() {
        Liveness::OtherBoot if is_local(dir) => Liveness::Dead,
        liveness => liveness,
    }
}

fn is_local(dir: &Path) -> bool {
    rustix::fs::statfs(dir).is_ok_and(|statistics| {
        // The numbers are 32 bits wide, whatever the field is.
        LOCAL_FILE_SYSTEMS.contains(&(statistics.f_type as u32))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead() -> OwnerProcess {
        let here = OwnerProcess::current();
        OwnerProcess {
            start_ticks: here.start_ticks + 1,
            ..here
        }
    }

    fn name(owner: OwnerProcess) -> String {
        TemporaryName { owner, serial: 7 }.to_string()
    }

    #[test]
    fn names_come_back_and_others_do_not() {
        let next = TemporaryName::next();
        assert_eq!(TemporaryName::parse(&next.to_string()), Some(next));
        assert_ne!(TemporaryName::next(), next);
        let good = name(dead());
        for bad in [
            format!("{good} "),
            format!("{good}.npy"),
            good.replace(PREFIX, "x"),
            good.replace("-7", "-07"),
            good.replace("-7", "-+7"),
            good.replace("-7", ""),
            ".opscope-tmp-1-2".to_owned(),
            ".opscope-tmp-".to_owned(),
        ] {
            assert_eq!(TemporaryName::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn only_unfinished_files_of_dead_processes_go() {
        let dir = tempfile::tempdir().unwrap();
        let here = OwnerProcess::current();
        let elsewhere = OwnerProcess {
            pid_namespace: here.pid_namespace + 1,
            ..here
        };
        let put = |name: &str| fs::write(dir.path().join(name), "12345").unwrap();
        let kept = [
            name(here),
            name(elsewhere),
            format!("{}x", name(dead())),
            ".opscope-tmp-1-2".to_owned(),
            "Conv.a.1.0.5".to_owned(),
        ];
        kept.iter().for_each(|name| put(name));
        put(&name(dead()));
        let serial = |serial| {
            TemporaryName {
                owner: dead(),
                serial,
            }
            .to_string()
        };
        let target = dir.path().join("target");
        fs::write(&target, "t").unwrap();
        std::os::unix::fs::symlink(&target, dir.path().join(serial(8))).unwrap();
        fs::create_dir(dir.path().join(serial(9))).unwrap();
        let found = clean(dir.path());
        let expected = LeftOvers {
            n_files: 1,
            n_bytes: 5,
            n_kept: 1,
        };
        assert_eq!(found, expected);
        assert!(!dir.path().join(name(dead())).exists());
        assert!(kept.iter().all(|name| dir.path().join(name).exists()));
        assert!(dir.path().join(serial(8)).is_symlink() && target.exists());
        assert!(dir.path().join(serial(9)).is_dir());
        assert_eq!(clean(&dir.path().join("absent")), LeftOvers::default());
    }

    #[test]
    fn only_directories_of_dead_processes_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let (alive, other) = (name(OwnerProcess::current()), format!("{}x", name(dead())));
        for name in [&alive, &other, &name(dead()), "target"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("weights.bin"), "12345").unwrap();
        }
        let next = |serial| TemporaryName {
            owner: dead(),
            serial,
        };
        let (link, file) = (next(8).to_string(), next(9).to_string());
        std::os::unix::fs::symlink(path("target"), path(&link)).unwrap();
        fs::write(path(&file), "x").unwrap();
        clean_directories(dir.path());
        assert!(!path(&name(dead())).exists());
        for name in [&alive, &other, "target"] {
            assert!(path(name).join("weights.bin").is_file(), "{name}");
        }
        assert!(path(&link).is_symlink() && path(&file).is_file());
        clean_directories(&path("absent"));
    }

    #[test]
    fn what_is_older_than_the_machine_s_start_goes_from_local_disks() {
        let dir = tempfile::tempdir().unwrap();
        let here = OwnerProcess::current();
        let before = OwnerProcess {
            boot: here.boot ^ 1,
            ..here
        };
        let path = dir.path().join(name(before));
        fs::write(&path, "x").unwrap();
        let found = clean(dir.path());
        assert_eq!(found.n_files, u64::from(is_local(dir.path())));
        assert_eq!(path.exists(), !is_local(dir.path()));
    }
}
