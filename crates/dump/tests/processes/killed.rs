//! Processes that are killed at random moments.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Seek};
use std::time::{Duration, Instant};

use opscope_store::atomic_file::PermissionModes;
use opscope_store::run_file::{RunEnd, clean_acl, clean_mindspore, find};
use opscope_store::temporary::LeftOvers;
use opscope_tensor::digest::hex;

use crate::work::{FORMS, Form, N_HEAD_BYTES, is_done_here, look, start_reporting};

const NAME: &str = "killed::what_a_killed_process_leaves_is_whole_and_the_rest_is_removed";
/// In the vendors' forms, and in the native one.
const N_KILLS: [u32; 2] = [50, 100];
/// Beginning and a few dozen files take less, on a machine that has nothing else to do.
const LIFE_MAX_AT_LEAST: Duration = Duration::from_millis(40);

/// How long a process takes to report its first file.
fn time_to_first_file(form: Form) -> Duration {
    let dir = tempfile::tempdir().unwrap();
    let reports = tempfile::tempfile().unwrap();
    let stderr = reports.try_clone().unwrap().into();
    let begin = Instant::now();
    let time = format!("{:014}", 1);
    let mut child = start_reporting(NAME, form, dir.path(), &time, 1_000_000, stderr);
    // It reports for as long as it lives, and the test's own limit is the machine's.
    while reports.metadata().unwrap().len() == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    begin.elapsed()
}

#[test]
fn what_a_killed_process_leaves_is_whole_and_the_rest_is_removed() {
    if is_done_here() {
        return;
    }
    for form in FORMS {
        let dir = tempfile::tempdir().unwrap();
        let moments = RandomState::new();
        let life_max = LIFE_MAX_AT_LEAST.max(4 * time_to_first_file(form));
        let mut n_cut_off = 0;
        let mut reports = tempfile::tempfile().unwrap();
        let n_kills = N_KILLS[usize::from(matches!(form, Form::Native))];
        for i in 0..n_kills {
            let dir = match form {
                Form::Acl | Form::Native => dir.path().to_owned(),
                // One directory would grow with every run.
                Form::MindSpore => dir.path().join((i % 10).to_string()),
            };
            let time = format!("{:014}", i + 1);
            let stderr = reports.try_clone().unwrap().into();
            let mut child = start_reporting(NAME, form, &dir, &time, 1_000_000, stderr);
            let part = moments.hash_one(i) as f64 / u64::MAX as f64;
            std::thread::sleep(life_max.mul_f64(part));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let dirs: Vec<_> = match form {
            Form::Acl | Form::Native => vec![dir.path().to_owned()],
            Form::MindSpore => (0..10).map(|i| dir.path().join(i.to_string())).collect(),
        };
        let (mut n_unfinished, mut n_tensors) = (0, 0);
        let mut removed = LeftOvers::default();
        let mut there = HashSet::new();
        for dir in dirs.iter().filter(|dir| dir.exists()) {
            let found = look(form, dir);
            n_unfinished += found.n_unfinished;
            n_tensors += found.tensors.len();
            there.extend(found.tensors.iter().map(|head| hex(head)));
            let runs = find(dir).runs;
            n_cut_off += runs.iter().filter(|run| run.end == RunEnd::CutOff).count();
            let clean = match form {
                Form::Acl | Form::Native => clean_acl,
                Form::MindSpore => clean_mindspore,
            };
            let now = clean(dir, PermissionModes::default(), "now").unwrap();
            removed = removed + now;
            let after = look(form, dir);
            assert_eq!(after.n_unfinished, 0, "{form:?}");
            assert_eq!(after.tensors.len(), found.tensors.len());
        }
        // Everything that was reported written is there.
        let mut text = String::new();
        reports.rewind().unwrap();
        reports.read_to_string(&mut text).unwrap();
        for line in text.lines().filter(|line| line.len() == 2 * N_HEAD_BYTES) {
            assert!(there.contains(line), "{form:?}: {line}");
        }
        // A process that follows in the same directory cleans up what it comes across.
        assert!(removed.n_files <= n_unfinished && removed.n_kept == 0);
        // Where files have no name until they are whole, hardly anything is left unfinished.
        assert!(n_tensors > 0, "{form:?}: no process was killed at work");
        assert!(n_cut_off > 0, "{form:?}");
    }
}
