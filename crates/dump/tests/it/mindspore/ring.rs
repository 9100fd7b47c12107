//! The last steps, in MindSpore's trees.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use opscope_capture::{Plan, RingOptions, SessionSummary, Triggers};
use opscope_dump::MindSporeOptions;
use opscope_store::file_format::statistic_csv::StatisticCategory;
use opscope_store::tree::mindspore::TreeTarget;

use crate::mindspore::run::{execute, files, floats, options, run_in_ring, text};

/// Runs ten steps with a ring of two; the first operator makes NaN in step 4.
fn run(options: MindSporeOptions, keeps_only_triggered: bool) -> SessionSummary {
    let ring = RingOptions {
        n_steps: NonZeroUsize::new(2).unwrap(),
        triggers: Triggers::all(),
        keeps_only_triggered,
    };
    let plan = Plan {
        has_parameters: true,
        has_constants: true,
        ..Plan::everything()
    };
    let summary = run_in_ring(options, plan, Some(ring), |tap, operators| {
        for step in 0..10 {
            tap.begin_step(step);
            let h = floats(&[if step == 4 { f32::NAN } else { 1.0 }]);
            let (x, w) = (floats(&[1.0, 2.0]), floats(&[3.0]));
            execute(tap, &operators[0], &[x, w], &h);
            execute(tap, &operators[1], &[h, floats(&[0.5])], &floats(&[9.0]));
            tap.end_step();
        }
    });
    let report = summary.ring.as_ref().unwrap();
    assert!(report.first_error.is_none());
    // NaN from finite values is an overflow too.
    assert_eq!((report.n_triggers, report.n_files_left), (2, 0));
    summary
}

/// The directories and files right below `dir`.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let names: BTreeSet<String> = entries.map(|entry| name(entry.unwrap())).collect();
    names.into_iter().collect()
}

#[test]
fn what_is_beside_the_steps_stays() {
    let dir = tempfile::tempdir().unwrap();
    let options = MindSporeOptions {
        statistics: Some(vec![StatisticCategory::Max]),
        ..options(dir.path(), TreeTarget::Cpu)
    };
    let summary = run(options, false);
    let net = dir.path().join("rank_0/Net/0");
    assert_eq!(names(&net), ["3", "4", "8", "9", "constants"]);
    // Six slots, two parameters and the table.
    assert!(
        ["3", "4", "8", "9"]
            .iter()
            .all(|step| names(&net.join(step)).len() == 9)
    );
    let order = "rank_0/execution_order/ms_global_execution_order_graph_0.csv";
    assert_eq!(text(dir.path(), order).lines().count(), 10);
    let c = summary.counters;
    let all = files(dir.path());
    // The configuration and its producer are there before anything is counted.
    let n_counted = all.len() as u64 - 2;
    assert_eq!(c.n_files - c.n_files_removed, n_counted);
    assert_eq!(c.n_files_removed, 6 * 9);
}

#[test]
fn nothing_but_the_trigger_s_steps() {
    let dir = tempfile::tempdir().unwrap();
    run(options(dir.path(), TreeTarget::AscendKernels), true);
    assert_eq!(
        names(&dir.path().join("rank_0/Net/0")),
        ["3", "4", "constants"]
    );
}

#[test]
fn whole_graphs_have_steps_at_the_top() {
    for is_bin in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let of_graph = MindSporeOptions {
            is_bin,
            ..options(dir.path(), TreeTarget::AscendGraph)
        };
        run(of_graph, false);
        // Constants are next to the first step, and stay.
        let steps = ["0", "3", "4", "8", "9", "acl_dump_0.json"];
        assert_eq!(names(dir.path()), steps);
        let first = dir.path().join("0/20240102030405/0/net/1");
        assert_eq!(names(&first), ["constants"]);
        let dir = tempfile::tempdir().unwrap();
        let of_engine = MindSporeOptions {
            is_bin,
            ..options(dir.path(), TreeTarget::GraphEngine)
        };
        run(of_engine, false);
        let runs = dir.path().join("20240102030405/0/net/1");
        assert_eq!(names(&runs), ["3", "4", "8", "9", "constants"]);
    }
}

#[test]
fn an_earlier_dump_in_the_same_directories_stays() {
    let dir = tempfile::tempdir().unwrap();
    let net = dir.path().join("rank_0/Net/0");
    for step in ["0", "3"] {
        fs::create_dir_all(net.join(step)).unwrap();
        fs::write(net.join(step).join("statistic.csv"), "Op Type\n").unwrap();
        fs::write(net.join(step).join("Relu.a.0.0.1.output.0.npy"), "earlier").unwrap();
    }
    let options = MindSporeOptions {
        statistics: Some(vec![StatisticCategory::Max]),
        ..options(dir.path(), TreeTarget::Cpu)
    };
    run(options, true);
    assert_eq!(names(&net), ["0", "3", "4", "constants"]);
    assert_eq!(
        names(&net.join("0")),
        ["Relu.a.0.0.1.output.0.npy", "statistic.csv"]
    );
    // Eight arrays next to the earlier files; rows go into the table that is there.
    assert_eq!(names(&net.join("3")).len(), 10);
}
