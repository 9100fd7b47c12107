//! Files that somebody else has put into a dump stay.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use opscope_capture::{Plan, RingReport};
use opscope_store::dump;

use crate::ring::run::{MODEL_DIR, acl_sink, only_triggered, ring, run, step, steps_on_disk};

/// Runs six steps with a ring of one; before step 3, `meddle` gets the directory of step 2, all of
/// whose files are there.
fn check(dir: &tempfile::TempDir, meddle: impl FnOnce(PathBuf)) -> RingReport {
    let sink = Arc::new(acl_sink(dir.path()));
    let options = only_triggered(ring(1, &[]));
    let step_dir = dir.path().join(MODEL_DIR).join("2");
    let (_, report) = run(
        Plan::everything(),
        sink,
        options,
        1,
        |session, tap, operators| {
            (0..3).for_each(|number| step(tap, operators, number, 1.0));
            let watch = session.watch();
            while watch.counters().n_operators_written < 6 {
                std::thread::yield_now();
            }
            meddle(step_dir);
            (3..6).for_each(|number| step(tap, operators, number, 1.0));
        },
    );
    assert_eq!(report.n_steps_removed, 6);
    report
}

#[test]
fn other_files_and_their_directory_stay() {
    let dir = tempfile::tempdir().unwrap();
    check(&dir, |step_dir| {
        fs::write(step_dir.join("notes.txt"), "mine").unwrap();
    });
    assert_eq!(steps_on_disk(dir.path()), [2]);
    let left = dir.path().join(MODEL_DIR).join("2");
    let names: Vec<_> = fs::read_dir(&left)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["notes.txt"]);
}

#[test]
fn a_file_in_place_of_ours_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut replaced = PathBuf::new();
    let report = check(&dir, |step_dir| {
        replaced = dump::list(&step_dir).entries[0].path.clone();
        fs::remove_file(&replaced).unwrap();
        fs::write(&replaced, "theirs").unwrap();
    });
    assert_eq!(fs::read(&replaced).unwrap(), b"theirs");
    assert_eq!(report.n_files_left, 1);
}

#[test]
fn a_link_in_place_of_the_directory_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("moved");
    let report = check(&dir, |step_dir| {
        fs::rename(&step_dir, &moved).unwrap();
        symlink(&moved, &step_dir).unwrap();
    });
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 2);
    assert_eq!(report.n_files_left, 2);
}

#[test]
fn a_directory_that_was_there_before_stays() {
    let dir = tempfile::tempdir().unwrap();
    let sink = Arc::new(acl_sink(dir.path()));
    let before = dir.path().join(MODEL_DIR).join("1");
    fs::create_dir_all(&before).unwrap();
    let options = only_triggered(ring(1, &[]));
    run(Plan::everything(), sink, options, 2, |_, tap, operators| {
        (0..4).for_each(|number| step(tap, operators, number, 1.0));
    });
    assert_eq!(steps_on_disk(dir.path()), [1]);
    assert_eq!(fs::read_dir(&before).unwrap().count(), 0);
}
