//! Who writes, who links, and what happens where links fail.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use opscope_tensor::TensorIdentity as Address;
use tempfile::TempDir;

use super::*;

/// A directory, and a table for what is written there.
struct Place {
    dir: TempDir,
    creator: Creator,
    once: WriteOnce<Address>,
}

impl Place {
    fn new(dedup: FileSharing) -> Place {
        let dir = tempfile::tempdir().unwrap();
        Place {
            once: WriteOnce::new(dedup, dir.path(), PermissionModes::default()),
            dir,
            creator: Creator::default(),
        }
    }

    fn with_links_max(self, n: u64) -> Place {
        let creator = Creator::default().with_links_max(n);
        Place { creator, ..self }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("files").join(name)
    }

    fn put(&self, name: &str, bytes: &[u8], source: Option<FileSource<Address>>) -> WrittenFiles {
        let place = &|attempt: &mut dyn FnMut(&Path) -> Result<CreateAttempt, StoreError>| {
            let path = self.path(name);
            match attempt(&path)? {
                CreateAttempt::Done => Ok(Some(path)),
                CreateAttempt::Taken => panic!("`{name}` is taken"),
                CreateAttempt::Refused => Ok(None),
            }
        };
        let request = WriteRequest {
            creator: &self.creator,
            compression: None,
            parts: &[bytes],
            place,
        };
        let written = self.once.put(source, &request).unwrap();
        assert_eq!(fs::read(self.path(name)).unwrap(), bytes, "{name}");
        assert_eq!(written.n_files, 1);
        let n_bytes = bytes.len() as u64;
        let expected = match written.n_linked {
            0 => (n_bytes, 0),
            _ => (0, n_bytes),
        };
        assert_eq!((written.n_bytes, written.n_bytes_linked), expected);
        written
    }

    /// How many of the files `{prefix}0`, … are links.
    fn put_many(&self, prefix: &str, n: usize, of: &Arc<Vec<u8>>) -> u64 {
        (0..n)
            .map(|i| {
                self.put(&format!("{prefix}{i}"), of, source(of, b"h"))
                    .n_linked
            })
            .sum()
    }

    fn inode(&self, name: &str) -> u64 {
        fs::metadata(self.path(name)).unwrap().ino()
    }

    fn n_entries(&self) -> usize {
        self.once.lock().entries.len()
    }
}

fn source(of: &Arc<Vec<u8>>, header: &[u8]) -> Option<FileSource<Address>> {
    Some(FileSource {
        identity: Address::from_owner(of),
        dtype: DType::U8,
        header: header.into(),
    })
}

#[test]
fn one_tensor_is_one_file_under_many_names() {
    let place = Place::new(FileSharing::Identity);
    let (a, b) = (Arc::new(b"same".to_vec()), Arc::new(b"same".to_vec()));
    assert_eq!(place.put_many("a", 3, &a), 2);
    let metadata = fs::metadata(place.path("a2")).unwrap();
    assert_eq!(metadata.nlink(), 3);
    assert_eq!(metadata.ino(), place.inode("a0"));
    // Equal bytes elsewhere, and the same memory understood otherwise, are other files.
    assert_eq!(place.put("b", &b, source(&b, b"h")).n_linked, 0);
    assert_eq!(place.put("c", &a, source(&a, b"other")).n_linked, 0);
    assert_eq!(place.put("d", &a, None).n_linked, 0);
    let files = fs::read_dir(place.path("")).unwrap().count();
    assert_eq!(files, 6, "nothing temporary is left");
}

#[test]
fn off_writes_every_file() {
    let place = Place::new(FileSharing::Off);
    let a = Arc::new(vec![1; 100]);
    assert_eq!(place.put_many("a", 3, &a), 0);
    assert_eq!(place.n_entries(), 0);
    assert_ne!(place.inode("a0"), place.inode("a1"));
}

#[test]
fn a_file_with_all_its_names_is_followed_by_another() {
    for (n_links_max, n_linked) in [(1, 0), (2, 3), (3, 4), (7, 6), (100, 6)] {
        for dedup in [FileSharing::Identity, FileSharing::Content] {
            let place = Place::new(dedup).with_links_max(n_links_max);
            let a = Arc::new(b"bytes".to_vec());
            let found = place.put_many("a", 7, &a);
            if dedup == FileSharing::Identity {
                assert_eq!(found, n_linked, "{n_links_max} names");
            } else {
                // The index has one of the names.
                let each = (n_links_max - 1).max(1);
                let n_written = 7_u64.div_ceil(each);
                assert_eq!(found, 7 - n_written, "{n_links_max} names");
            }
            for i in 0..7 {
                let n_links = fs::metadata(place.path(&format!("a{i}"))).unwrap().nlink();
                assert!(n_links <= n_links_max);
            }
        }
    }
}

#[test]
fn an_original_that_is_gone_or_changed_is_written_anew() {
    let change: [fn(&Path); 3] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, "longer than before").unwrap(),
        |path| {
            fs::remove_file(path).unwrap();
            fs::write(path, "sane").unwrap();
        },
    ];
    for dedup in [FileSharing::Identity, FileSharing::Content] {
        for (i, change) in change.iter().enumerate() {
            let place = Place::new(dedup);
            let a = Arc::new(b"same".to_vec());
            place.put("first", &a, source(&a, b"h"));
            change(&place.path("first"));
            // The index still has the file that has lost its name.
            let is_kept = dedup == FileSharing::Content && i != 1;
            let written = place.put("second", &a, source(&a, b"h"));
            assert_eq!(written.n_linked, u64::from(is_kept), "{dedup:?} {i}");
            assert_eq!(place.put("third", &a, source(&a, b"h")).n_linked, 1);
        }
    }
}

#[test]
fn threads_that_ask_at_once_write_once() {
    for dedup in [FileSharing::Identity, FileSharing::Content] {
        let place = Place::new(dedup);
        let a = Arc::new(vec![7; 1 << 20]);
        let start = Barrier::new(8);
        let linked: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|i| {
                    let (place, a, start) = (&place, &a, &start);
                    scope.spawn(move || {
                        start.wait();
                        place.put(&format!("a{i}"), a, source(a, b"h")).n_linked
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(linked, 7, "{dedup:?}");
    }
}

#[test]
fn whoever_waits_for_a_writer_that_fails_writes_itself() {
    let place = Place::new(FileSharing::Identity);
    let a = Arc::new(vec![7; 100]);
    let (is_writing, may_fail) = (Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let failing = scope.spawn(|| {
            let request = WriteRequest {
                creator: &place.creator,
                compression: None,
                parts: &[],
                place: &|_| {
                    is_writing.wait();
                    while !may_fail.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                    Err(SinkError::Other("no".into()))
                },
            };
            place.once.put(source(&a, b"h"), &request).is_err()
        });
        is_writing.wait();
        assert_eq!(place.n_entries(), 1);
        let waiting = scope.spawn(|| place.put("second", &a, source(&a, b"h")).n_linked);
        may_fail.store(true, Ordering::Release);
        assert!(failing.join().unwrap());
        assert_eq!(waiting.join().unwrap(), 0);
    });
    assert_eq!(place.put("third", &a, source(&a, b"h")).n_linked, 1);
}

#[test]
fn a_panic_frees_those_who_wait() {
    let place = Place::new(FileSharing::Identity);
    let a = Arc::new(vec![7; 100]);
    let request = WriteRequest {
        creator: &place.creator,
        compression: None,
        parts: &[],
        place: &|_| panic!("the disk is on fire"),
    };
    let put = || place.once.put(source(&a, b"h"), &request);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(put));
    assert!(result.is_err());
    assert_eq!(place.n_entries(), 0);
    assert_eq!(place.put("first", &a, source(&a, b"h")).n_linked, 0);
}

#[test]
fn the_table_forgets_tensors_that_are_gone() {
    let place = Place::new(FileSharing::Identity);
    let weight = Arc::new(b"weight".to_vec());
    place.put("weight", &weight, source(&weight, b"h"));
    let mut n_most = 0;
    for i in 0..5 * N_ENTRIES_MIN {
        let a = Arc::new(vec![1]);
        place.put(&format!("a{i}"), &a, source(&a, b"h"));
        n_most = n_most.max(place.n_entries());
    }
    assert!(n_most <= N_ENTRIES_MIN, "{n_most}");
    place.once.forget_dead();
    assert_eq!(place.n_entries(), 1);
    let again = place.put("again", &weight, source(&weight, b"h"));
    assert_eq!(again.n_linked, 1);
}

#[test]
fn equal_bytes_are_linked_across_tables_and_runs() {
    let place = Place::new(FileSharing::Content);
    let put = |name: &str, bytes: &[u8]| {
        // A separate table, as another process has.
        let once = WriteOnce::new(
            FileSharing::Content,
            place.dir.path(),
            PermissionModes::default(),
        );
        let other = Place {
            dir: tempfile::tempdir().unwrap(),
            creator: Creator::default(),
            once,
        };
        let written = other.put(name, bytes, None);
        fs::create_dir_all(place.path("")).unwrap();
        fs::rename(other.path(name), place.path(name)).unwrap();
        written.n_linked
    };
    assert_eq!(put("a", b"one"), 0);
    assert_eq!(put("b", b"one"), 1);
    assert_eq!(put("c", b"two"), 0);
    assert_eq!(place.inode("a"), place.inode("b"));
    // Changing a file changes all of its names, but none that come later.
    fs::write(place.path("a"), "ONE").unwrap();
    assert_eq!(put("d", b"one"), 0);
    assert_eq!(put("e", b"one"), 1);
    assert_ne!(place.inode("a"), place.inode("d"));
    let index = opscope_store::tree::own::content_dir(place.dir.path());
    fs::remove_dir_all(&index).unwrap();
    assert_eq!(put("f", b"one"), 0);
    assert_eq!(put("g", b"one"), 1);
    // Private files stay private: other permissions, another index.
    let modes = PermissionModes {
        file: 0o644,
        ..PermissionModes::default()
    };
    let public = Place {
        once: WriteOnce::new(FileSharing::Content, place.dir.path(), modes),
        creator: Creator::new(modes),
        dir: tempfile::tempdir().unwrap(),
    };
    assert_eq!(public.put("a", b"one", None).n_linked, 0);
}

#[test]
fn an_index_that_is_removed_under_a_running_process_comes_back() {
    let place = Place::new(FileSharing::Content);
    let index = opscope_store::tree::own::content_dir(place.dir.path());
    assert_eq!(place.put("a", b"one", None).n_linked, 0);
    fs::remove_dir_all(&index).unwrap();
    assert_eq!(place.put("b", b"one", None).n_linked, 0);
    assert_eq!(place.put("c", b"one", None).n_linked, 1);
    let fresh = WriteOnce::new(
        FileSharing::Content,
        place.dir.path(),
        PermissionModes::default(),
    );
    let place = Place {
        once: fresh,
        ..place
    };
    assert_eq!(place.put("d", b"one", None).n_linked, 1);
}
