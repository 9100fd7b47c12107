use std::fs;

use super::*;
use crate::temporary::{LeftOvers, TemporaryName};

const NOW: &str = "2024-01-02T03:04:05.000006Z";

fn run(root: &Path, started: &str) -> RunFile {
    let record = RunRecord {
        started: started.to_owned(),
        ..RunRecord::default()
    };
    RunFile::new(root, root, PermissionModes::default(), record)
}

fn states(dir: &Path) -> Vec<(String, RunState)> {
    let runs = find(dir).runs;
    runs.iter()
        .map(|run| {
            let name = run.path.file_name().unwrap().to_string_lossy().into_owned();
            (name, run.record.state)
        })
        .collect()
}

#[test]
fn runs_that_share_a_directory_keep_their_records() {
    let dir = tempfile::tempdir().unwrap();
    let runs: Vec<RunFile> = ["a", "b", "c"].map(|at| run(dir.path(), at)).into();
    for run in &runs {
        run.begin().unwrap();
    }
    runs[0].finish(RunState::Interrupted, NOW.into()).unwrap();
    runs[2].finish(RunState::Finished, NOW.into()).unwrap();
    let expected = [
        ("run-1.json", RunState::Interrupted),
        ("run-2.json", RunState::Running),
        ("run.json", RunState::Finished),
    ];
    assert_eq!(states(dir.path()), expected.map(|(n, s)| (n.to_owned(), s)));
    assert_eq!(fs::read_dir(run_dir(dir.path())).unwrap().count(), 3);
    let below = dir.path().join("rank_0/net/0/1");
    fs::create_dir_all(&below).unwrap();
    assert_eq!(states(&below).len(), 3);
    assert_eq!(find(&below).runs[1].end, RunEnd::AtWork);
}

#[test]
fn runs_that_begin_at_once_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for i in 0..8 {
            let dir = dir.path();
            scope.spawn(move || {
                let run = run(dir, &i.to_string());
                run.begin().unwrap();
                run.update(|record| record.n_steps = i);
                run.finish(RunState::Finished, NOW.into()).unwrap();
            });
        }
    });
    let found = find(dir.path());
    let steps: Vec<u64> = found.runs.iter().map(|run| run.record.n_steps).collect();
    assert_eq!(steps, (0..8).collect::<Vec<_>>());
    assert!(found.runs.iter().all(|run| run.end == RunEnd::Ended));
}

#[test]
fn a_dump_without_files_has_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("20240102030405");
    let lazy = || {
        RunFile::new(
            dir.path(),
            &root,
            PermissionModes::default(),
            RunRecord::default(),
        )
    };
    lazy().finish(RunState::Finished, NOW.into()).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let run = lazy();
    run.note_file(&dir.path().join("extra-info/data-dump/0"));
    assert!(!root.exists());
    run.note_file(&root.join("0/net/1/0"));
    assert_eq!(states(dir.path()), [("run.json".into(), RunState::Running)]);
    run.finish(RunState::Failed, NOW.into()).unwrap();
    assert_eq!(states(&root), [("run.json".into(), RunState::Failed)]);
}

#[test]
fn a_planted_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (root, target) = (dir.path().join("dump"), dir.path().join("target"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&target).unwrap();
    std::os::unix::fs::symlink(&target, run_dir(&root)).unwrap();
    let error = run(&root, "a").begin().unwrap_err();
    assert!(error.to_string().contains(".opscope"), "{error}");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

/// A record as a killed run leaves it, and files that it was writing.
fn killed_run(root: &Path, dirs: &[&str]) {
    let here = OwnerProcess::current();
    let owner = OwnerProcess {
        start_ticks: here.start_ticks + 1,
        ..here
    };
    let record = RunRecord {
        version: 1,
        state: RunState::Running,
        process: owner,
        ..RunRecord::default()
    };
    fs::create_dir_all(run_dir(root)).unwrap();
    fs::write(run_dir(root).join(RUN_FILE), run_json::encode(&record)).unwrap();
    for (serial, dir) in (0..).zip(dirs) {
        let dir = root.join(dir);
        fs::create_dir_all(&dir).unwrap();
        let name = TemporaryName { owner, serial }.to_string();
        fs::write(dir.join(name), "12345").unwrap();
        fs::write(dir.join("Conv.a.1.0.5"), "x").unwrap();
    }
}

fn n_unfinished(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap().flatten();
    let n = |entry: fs::DirEntry| {
        if entry.file_type().unwrap().is_dir() {
            n_unfinished(&entry.path())
        } else {
            TemporaryName::parse(&entry.file_name().to_string_lossy()).map_or(0, |_| 1)
        }
    };
    entries.map(n).sum()
}

/// Cleans twice: the second time there is nothing left to do, and no search.
fn check_clean(
    dir: &Path,
    root: &Path,
    clean: fn(&Path, PermissionModes, &str) -> Result<LeftOvers, StoreError>,
    n_files: u64,
    n_elsewhere: usize,
) {
    assert_eq!(find(root).runs[0].end, RunEnd::CutOff);
    let found = clean(dir, PermissionModes::default(), NOW).unwrap();
    assert_eq!((found.n_files, found.n_bytes), (n_files, 5 * n_files));
    assert_eq!(n_unfinished(dir), n_elsewhere);
    let cleaned = find(root).runs[0].record.cleaned.clone().unwrap();
    assert_eq!((cleaned.at.as_str(), cleaned.left_overs), (NOW, found));
    let again = clean(dir, PermissionModes::default(), NOW).unwrap();
    assert_eq!(again, LeftOvers::default());
    assert_eq!(find(root).runs[0].end, RunEnd::CutOff);
}

#[test]
fn what_a_killed_run_left_is_removed_once() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("20240102030405");
    let unrecorded = dir.path().join("20240102030404");
    killed_run(&unrecorded, &[".opscope"]);
    fs::remove_file(run_dir(&unrecorded).join(RUN_FILE)).unwrap();
    assert_eq!(
        clean_acl(dir.path(), PermissionModes::default(), NOW)
            .unwrap()
            .n_files,
        1
    );
    let steps = [".", "0/net/1/0", "0/net/1/10", ".opscope"];
    killed_run(&root, &[&steps[..], &["0/net/1/0/deeper"]].concat());
    check_clean(dir.path(), &root, clean_acl, 4, 1);

    let dir = tempfile::tempdir().unwrap();
    let dirs = [
        ".",
        "rank_0/Net/0/1",
        "rank_1/graphs",
        "3/20240102030405/0/net/1/0",
    ];
    killed_run(dir.path(), &[&dirs[..], &["other", "rank_x/Net"]].concat());
    check_clean(dir.path(), dir.path(), clean_mindspore, 4, 2);
}

#[test]
fn trees_of_others_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    killed_run(&dir.path().join("notes"), &["0/net/1/0"]);
    let live = dir.path().join("20240102030406");
    run(&live, "a").begin().unwrap();
    assert_eq!(
        clean_acl(dir.path(), PermissionModes::default(), NOW).unwrap(),
        LeftOvers::default()
    );
    assert_eq!(n_unfinished(dir.path()), 1);
}
