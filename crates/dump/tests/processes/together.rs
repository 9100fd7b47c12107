//! Processes that write to the same directory at the same time.

use std::collections::HashSet;
use std::sync::{Arc, Barrier};

use opscope_capture::Sink;
use opscope_dump::NativeSink;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::reader::read_dump;
use opscope_store::run_file::{RunEnd, find};

use crate::work::{FORMS, Form, is_done_here, look, n_written, record, start};

const NAME: &str = "together::nothing_is_overwritten_and_nothing_lost";
const N_RECORDS: u64 = 60;
const N_PROCESSES: usize = 3;

#[test]
fn nothing_is_overwritten_and_nothing_lost() {
    if is_done_here() {
        return;
    }
    for form in FORMS {
        let dir = tempfile::tempdir().unwrap();
        let start = || start(NAME, form, dir.path(), "20240102030405", N_RECORDS);
        let children: Vec<_> = (0..N_PROCESSES).map(|_| start()).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success(), "{form:?}");
        }
        let found = look(form, dir.path());
        let n_expected = N_PROCESSES * n_written(N_RECORDS);
        assert_eq!(found.tensors.len(), n_expected, "{form:?}");
        let different: HashSet<_> = found.tensors.iter().collect();
        assert_eq!(different.len(), n_expected, "{form:?}");
        assert_eq!(found.n_unfinished, 0, "{form:?}");
        if let Form::MindSpore = form {
            assert_eq!(found.n_rows, n_expected);
        }
        let runs = find(dir.path()).runs;
        assert_eq!(runs.len(), N_PROCESSES, "{form:?}");
        assert!(runs.iter().all(|run| run.end == RunEnd::Ended));
    }
}

/// Sinks share nothing but the directory, as those of two processes do.
#[test]
fn steps_that_others_end_meanwhile_keep_their_tables() {
    const N_SINKS: u64 = 4;
    const N_STEPS: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let all_begin = Barrier::new(N_SINKS as usize);
    std::thread::scope(|scope| {
        for thread in 0..N_SINKS {
            let (dir, all_begin) = (dir.path(), &all_begin);
            scope.spawn(move || {
                let creator = Arc::new(Creator::in_dump(dir, PermissionModes::default()));
                let sink = NativeSink::lazy_by(creator, dir, "20240102030405", 0);
                for step in 0..N_STEPS {
                    let mut record = record(thread, 0);
                    record.step = step;
                    all_begin.wait();
                    sink.write(&record).unwrap();
                    sink.end_step(&record.model, step).unwrap();
                }
                sink.finish().unwrap();
            });
        }
    });
    let index = read_dump(dir.path(), &mut |_| Vec::new()).unwrap();
    assert!(index.errors.is_empty(), "{:?}", index.errors);
    assert_eq!(index.tensors.len() as u64, N_SINKS * N_STEPS);
}
