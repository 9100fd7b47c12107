//! Which tensors have files in addition to the rows of statistics, and how much a dump would take.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use opscope_capture::{Plan, SessionSummary, TensorRules};
use opscope_dump::{MindSporeOptions, MindSporeSink, Volume, VolumeSink};
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::file_format::statistic_csv::StatisticCategory;
use opscope_store::tree::mindspore::TreeTarget;
use opscope_tensor::Tensor;

use super::run::{files, floats, options, run_sink, run_steps, text};

/// A plan of a dump of everything on these targets.
fn plan(target: TreeTarget) -> Plan {
    Plan {
        has_parameters: target.has_parameters(),
        has_constants: target.has_ranks(),
        ..Plan::everything()
    }
}

fn run_by(
    creator: &Arc<Creator>,
    options: &MindSporeOptions,
    texts: &[&str],
    h: &Tensor,
) -> (SessionSummary, Volume) {
    let rules = TensorRules::new(texts.iter().map(|text| text.parse().unwrap()).collect());
    let sink = MindSporeSink::create_by(creator.clone(), options.clone()).unwrap();
    let sink = Arc::new(VolumeSink::new(Arc::new(sink.with_tensors_where(rules))));
    let summary = run_sink(
        sink.clone(),
        plan(options.target),
        None,
        |tap, operators| {
            run_steps(tap, operators, 2, h);
        },
    );
    (summary, sink.take())
}

/// Array files of the first iteration next to its statistics.
fn check(texts: &[&str], h: &[f32], expected: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let options = MindSporeOptions {
        statistics: Some(vec![StatisticCategory::Max, StatisticCategory::NanCount]),
        ..options(dir.path(), TreeTarget::Cpu)
    };
    let creator = Arc::new(Creator::default());
    let (summary, _) = run_by(&creator, &options, texts, &floats(h));
    let start = "rank_0/Net/0/0/";
    let all = files(dir.path());
    let arrays: Vec<&str> = all
        .iter()
        .filter_map(|name| name.strip_prefix(start)?.split_once(".DefaultFormat."))
        .map(|(array, _)| array)
        .collect();
    assert_eq!(arrays, expected, "{texts:?}");
    let n_arrays = all.iter().filter(|name| name.ends_with(".npy")).count();
    assert_eq!(summary.counters.n_whole, n_arrays as u64);
    let rows = text(dir.path(), "rank_0/Net/0/0/statistic.csv")
        .lines()
        .count();
    assert_eq!(rows, 1 + 6 + 2, "a header, six tensors, two parameters");
}

#[test]
fn rows_of_all_and_arrays_of_some() {
    let conv = "Conv._conv_Conv.0.0.T";
    let add = "Add._add_Add.0.0.T";
    let h: &[f32] = &[2.0];
    check(
        &["slot:/conv/Conv/output.0"],
        h,
        &[&format!("{conv}.output.0")],
    );
    let of_add = ["input.0", "input.1", "output.0"].map(|slot| format!("{add}.{slot}"));
    let of_add = of_add.each_ref().map(String::as_str);
    check(&["type:add"], h, &of_add);
    check(&["above:5"], h, &[of_add[2]]);
    check(&["non-finite"], h, &[]);
    let parameter = "Parameter.conv_weight.0.0.T.output.0";
    check(&["name:conv.weight"], h, &[parameter]);
    // Between its operators a tensor is both an output and an input.
    let both = [of_add[0], &*format!("{conv}.output.0")];
    check(&["non-finite"], &[f32::NAN], &both);
}

/// Number of files below a directory, and bytes in them: of those with several names, once.
fn on_disk(dir: &Path) -> (u64, u64) {
    let (mut n_files, mut n_bytes) = (0, 0);
    let mut seen = HashSet::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                dirs.push(entry.path());
            } else {
                n_files += 1;
                let is_first = seen.insert(metadata.ino());
                n_bytes += if is_first { metadata.len() } else { 0 };
            }
        }
    }
    (n_files, n_bytes)
}

#[test]
fn what_is_pretended_is_what_is_written_for_every_target() {
    let targets = [
        TreeTarget::Cpu,
        TreeTarget::Gpu,
        TreeTarget::AscendKernels,
        TreeTarget::AscendGraph,
        TreeTarget::GraphEngine,
    ];
    for target in targets {
        for (is_bin, statistics, texts) in [
            (false, None, &[][..]),
            (true, None, &[]),
            (
                false,
                Some(StatisticCategory::DEFAULT.to_vec()),
                &["above:1", "type:conv"],
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let options = MindSporeOptions {
                is_bin,
                statistics,
                has_kernel_args: true,
                ..options(&dir.path().join("dump"), target)
            };
            let creator = Arc::new(Creator::pretending(PermissionModes::default()));
            let h = floats(&[2.0, f32::NAN]);
            let pretended = run_by(&creator, &options, texts, &h);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
            let real = run_by(&Arc::new(Creator::default()), &options, texts, &h);
            assert_eq!(pretended.0.counters, real.0.counters);
            assert_eq!(pretended.1, real.1);
            let total = creator.pretended(1).unwrap();
            let expected = on_disk(dir.path());
            assert_eq!((total.n_files, total.n_bytes), expected, "{target:?}");
            let of_steps = pretended.1.steps.values().map(|amount| amount.n_files);
            assert!(of_steps.sum::<u64>() <= total.n_files);

            // What an earlier dump has left is taken into account.
            let creator = Arc::new(Creator::pretending(PermissionModes::default()));
            let before = on_disk(dir.path());
            let again = run_by(&creator, &options, texts, &h);
            let real = run_by(&Arc::new(Creator::default()), &options, texts, &h);
            assert_eq!(again.0.counters, real.0.counters, "{target:?}");
            assert!(creator.pretended(1).unwrap().n_files >= on_disk(dir.path()).0 - before.0);
        }
    }
}
