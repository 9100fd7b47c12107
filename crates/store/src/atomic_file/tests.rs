//! Files appear whole, are never replaced unasked, and can be given further names.

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
    assert_eq!(linked, Some(Linked::Hard));
}

#[test]
fn further_names() {
    use std::os::unix::fs::MetadataExt;

    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let creator = Creator::default().with_links_max(2);
    creator.create_file(&path("a"), &[b"content"]).unwrap();
    let link = |name: &str| creator.link_file(&path("a"), &path(name)).unwrap();
    assert_eq!(link("sub/b"), Some(Linked::Hard));
    assert_eq!(link("sub/b"), None);
    let inode = |name: &str| std::fs::metadata(path(name)).unwrap().ino();
    assert_eq!(inode("a"), inode("sub/b"));
    // It has as many names as it may have: whatever else the file system can do.
    let linked = link("c").unwrap();
    assert!([Linked::Reflink, Linked::Copy].contains(&linked));
    assert_eq!(std::fs::read(path("c")).unwrap(), b"content");
    assert_ne!(inode("a"), inode("c"));
    assert_eq!(link("c"), None);
    let mode = std::fs::metadata(path("c")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let sharing = creator.share_file(&path("a"), &path("d")).unwrap();
    assert_eq!(sharing == Sharing::Refused, linked == Linked::Copy);
    let gone = creator.link_file(&path("gone"), &path("e"));
    assert!(gone.unwrap_err().to_string().contains("gone"));
    assert_eq!(
        creator.share_file(&path("gone"), &path("e")).unwrap(),
        Sharing::Refused
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
    let stamp = Stamp::of(&path("a")).unwrap();
    assert_eq!(stamp.n_bytes(), 3);
    creator.link_file(&path("a"), &path("b")).unwrap();
    assert_eq!(Stamp::of(&path("b")).unwrap(), stamp);
    OpenOptions::new()
        .append(true)
        .open(path("b"))
        .unwrap()
        .write_all(b"d")
        .unwrap();
    assert_ne!(Stamp::of(&path("a")).unwrap(), stamp);
    assert!(Stamp::of(dir.path()).is_err());
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
