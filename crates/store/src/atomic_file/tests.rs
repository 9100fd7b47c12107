//! Files appear whole, are never replaced unasked, and can be given further names.

use std::os::unix::fs::PermissionsExt;

use std::fs::OpenOptions;

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
fn without_unnamed_files_temporary_names_do() {
    let dir = tempfile::tempdir().unwrap();
    for has_unnamed in [true, false] {
        let creator = Creator::default();
        creator.has_unnamed.store(has_unnamed, Ordering::Relaxed);
        let path = dir.path().join(has_unnamed.to_string());
        let result = creator.create_with(&path, |file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(result.is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(creator.create_file(&path, &[b"one"]).unwrap());
        assert!(!creator.create_file(&path, &[b"two"]).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn nothing_is_seen_of_an_unfinished_file() {
    let dir = tempfile::tempdir().unwrap();
    let creator = Creator::default();
    let n_seen = |creator: &Creator| {
        let mut n = None;
        let path = dir.path().join("file");
        let write = |file: &mut File| {
            file.write_all(b"half")?;
            n = Some(std::fs::read_dir(dir.path())?.count());
            Ok(())
        };
        assert!(creator.create_with(&path, write).unwrap());
        std::fs::remove_file(path).unwrap();
        n.unwrap()
    };
    let n = n_seen(&creator);
    let has_unnamed = creator.has_unnamed.load(Ordering::Relaxed);
    assert_eq!(n, usize::from(!has_unnamed));
    creator.has_unnamed.store(false, Ordering::Relaxed);
    assert_eq!(n_seen(&creator), 1);
}

#[test]
fn a_directory_that_is_removed_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let creator = Creator::default();
    let parent = dir.path().join("a/b");
    for has_unnamed in [true, false] {
        creator.has_unnamed.store(has_unnamed, Ordering::Relaxed);
        for name in ["one", "two"] {
            assert!(creator.create_file(&parent.join(name), &[b"x"]).unwrap());
            std::fs::remove_dir_all(dir.path().join("a")).unwrap();
        }
    }
    let source = dir.path().join("source");
    creator.create_file(&source, &[b"x"]).unwrap();
    creator.create_file(&parent.join("one"), &[b"x"]).unwrap();
    std::fs::remove_dir_all(dir.path().join("a")).unwrap();
    let linked = creator.link_file(&source, &parent.join("link")).unwrap();
    assert_eq!(linked, Some(LinkMethod::Hard));
}

#[test]
fn further_names() {
    use std::os::unix::fs::MetadataExt;

    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let creator = Creator::default().with_links_max(2);
    creator.create_file(&path("a"), &[b"content"]).unwrap();
    let link = |name: &str| creator.link_file(&path("a"), &path(name)).unwrap();
    assert_eq!(link("sub/b"), Some(LinkMethod::Hard));
    assert_eq!(link("sub/b"), None);
    let inode = |name: &str| std::fs::metadata(path(name)).unwrap().ino();
    assert_eq!(inode("a"), inode("sub/b"));
    // It has as many names as it may have: whatever else the file system can do.
    let linked = link("c").unwrap();
    assert!([LinkMethod::Reflink, LinkMethod::Copy].contains(&linked));
    assert_eq!(std::fs::read(path("c")).unwrap(), b"content");
    assert_ne!(inode("a"), inode("c"));
    assert_eq!(link("c"), None);
    let mode = std::fs::metadata(path("c")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let sharing = creator.share_file(&path("a"), &path("d")).unwrap();
    assert_eq!(
        sharing == SharingOutcome::Refused,
        linked == LinkMethod::Copy
    );
    let gone = creator.link_file(&path("gone"), &path("e"));
    assert!(gone.unwrap_err().to_string().contains("gone"));
    assert_eq!(
        creator.share_file(&path("gone"), &path("e")).unwrap(),
        SharingOutcome::Refused
    );
}

#[test]
fn a_name_is_taken_over_in_one_step() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let creator = Creator::default();
    creator.create_file(&path("a"), &[b"new"]).unwrap();
    creator.create_file(&path("b"), &[b"old"]).unwrap();
    // The second time both are the same file.
    for _ in 0..2 {
        assert!(
            creator
                .share_file_replacing(&path("a"), &path("b"))
                .unwrap()
        );
        assert_eq!(std::fs::read(path("b")).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
    let creator = Creator::default().with_links_max(2);
    let refused = creator
        .share_file_replacing(&path("a"), &path("c"))
        .unwrap();
    assert_eq!(path("c").exists(), refused);
}

#[test]
fn stamps_tell_of_changes_and_not_of_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let creator = Creator::default();
    creator.create_file(&path("a"), &[b"abc"]).unwrap();
    let stamp = FileIdentity::read(&path("a")).unwrap();
    assert_eq!(stamp.n_bytes(), 3);
    creator.link_file(&path("a"), &path("b")).unwrap();
    assert_eq!(FileIdentity::read(&path("b")).unwrap(), stamp);
    OpenOptions::new()
        .append(true)
        .open(path("b"))
        .unwrap()
        .write_all(b"d")
        .unwrap();
    assert_ne!(FileIdentity::read(&path("a")).unwrap(), stamp);
    assert!(FileIdentity::read(dir.path()).is_err());
}

#[test]
fn files_are_compared_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let bytes: Vec<u8> = (0..700_000_u32).map(|i| (i / 7) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let (head, tail) = bytes.split_at(128);
    assert!(file_holds(&path, &[head, tail]).unwrap());
    assert!(!file_holds(&path, &[head]).unwrap());
    assert!(!file_holds(&path, &[head, tail, b"x"]).unwrap());
    for at in [0, 127, 128, 699_999] {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert!(!file_holds(&path, &[&other]).unwrap(), "{at}");
    }
}

#[test]
fn inside_a_dump_no_link_is_followed_and_nothing_is_created_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let (root, target) = (dir.path().join("dump"), dir.path().join("target"));
    std::fs::create_dir(&target).unwrap();
    std::fs::create_dir_all(root.join("0")).unwrap();
    std::os::unix::fs::symlink(&target, root.join("0/net")).unwrap();
    std::fs::write(root.join("1"), "").unwrap();
    let creator = Creator::in_dump(&root, PermissionModes::default());
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
    let creator = Creator::in_dump(&link, PermissionModes::default());
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
                    let order = Ordering::Relaxed;
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
        PermissionModes::default(),
        PermissionModes {
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

/// Somebody puts a link in place of a directory of the dump, after it was created and used.
#[test]
fn a_directory_that_becomes_a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (root, elsewhere) = (dir.path().join("dump"), dir.path().join("elsewhere"));
    for swapped in ["a", "a/b"] {
        for is_shared in [false, true] {
            let _ = std::fs::remove_dir_all(&root);
            let _ = std::fs::remove_dir_all(&elsewhere);
            std::fs::create_dir_all(elsewhere.join("b")).unwrap();
            let creator = if is_shared {
                Creator::in_shared_dump(&root, PermissionModes::default())
            } else {
                Creator::in_dump(&root, PermissionModes::default())
            };
            let leaf = root.join("a/b");
            let first = leaf.join("first");
            assert!(creator.create_file(&first, &[b"x"]).unwrap());
            creator
                .append(&leaf.join("table.csv"), "h\n", "1\n")
                .unwrap();
            let place = root.join(swapped);
            std::fs::rename(&place, dir.path().join(format!("moved-{is_shared}"))).unwrap();
            let target = if swapped == "a" {
                elsewhere.clone()
            } else {
                elsewhere.join("b")
            };
            std::os::unix::fs::symlink(target, &place).unwrap();
            let errors = [
                creator.create_file(&leaf.join("second"), &[b"x"]).map(drop),
                creator
                    .create_file(&leaf.join("c/third"), &[b"x"])
                    .map(drop),
                creator.replace_file(&leaf.join("fourth"), &[b"x"]),
                creator.append_line(&leaf.join("lines"), "x\n"),
                creator
                    .append(&leaf.join("table.csv"), "h\n", "2\n")
                    .map(drop),
                creator.link_file(&first, &leaf.join("fifth")).map(drop),
                creator.create_new_dir(&leaf.join("d")).map(drop),
                creator.rename_new(&first, &leaf.join("sixth")).map(drop),
            ];
            for (i, result) in errors.into_iter().enumerate() {
                assert!(result.is_err(), "{swapped} {i}");
            }
            let there = std::fs::read_dir(elsewhere.join("b")).unwrap().count();
            assert_eq!(there, 0, "{swapped}");
            let _ = std::fs::remove_dir_all(dir.path().join(format!("moved-{is_shared}")));
            std::fs::remove_file(&place).unwrap();
        }
    }
}
