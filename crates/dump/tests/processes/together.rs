//! Processes that write to the same directory at the same time.

use std::collections::HashSet;

use opscope_store::run_file::{RunEnd, find};

use crate::work::{FORMS, Form, is_done_here, look, n_written, start};

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
