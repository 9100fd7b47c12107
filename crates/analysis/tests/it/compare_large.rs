//! Tensors that are compared in pieces, against the same tensors compared at once.

use std::fs;
use std::path::Path;

use opscope_analysis::compare::matching::{MatchedDumps, Matching, MatchingOptions};
use opscope_analysis::compare::measure::{MeasureOptions, measure};
use opscope_analysis::compare::result::{ComparisonConfig, MetricId, SlotResult};
use opscope_analysis::compare::side::ComparedDump;
use opscope_store::file_format::npy;
use opscope_tensor::difference::DifferenceOptions;
use opscope_tensor::{DType, Shape};

/// More than three pieces, and no whole number of them.
const N: usize = 500_003;

/// The value of each element.
type Values = fn(usize) -> f32;

fn value(i: usize) -> f32 {
    (i as f32 * 0.37).sin() * 3.0
}

fn is_masked(i: usize) -> bool {
    i.is_multiple_of(3)
}

fn compare(paths: [&Path; 2], has_kl: bool) -> SlotResult {
    let [target, golden] = paths.map(|path| ComparedDump::open(path, 1).unwrap());
    let matching = Matching::align(&target, &golden, &MatchingOptions::default()).unwrap();
    let sides = MatchedDumps {
        target: &target,
        golden: &golden,
        matching: &matching,
        reference: None,
    };
    let options = MeasureOptions {
        n_threads: 1,
        difference: DifferenceOptions { has_kl },
        measured: None,
        progress: None,
    };
    let comparison = measure(sides, ComparisonConfig::default(), options);
    comparison.operators[0].slots[0].clone()
}

#[test]
fn pieces_have_the_numbers_of_the_whole() {
    let cases: [(&str, [Values; 2]); 3] = [
        ("noise", [|i| value(i) * 1.01, value]),
        (
            "not a number",
            [|i| [value(i), f32::NAN][i / (N - 1)], value],
        ),
        (
            "a mask hides all others",
            [
                |i| if is_masked(i) { -1e9 } else { -value(i) },
                |i| if is_masked(i) { -1e9 } else { value(i) },
            ],
        ),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (name, values) in cases {
        let paths = [0, 1].map(|side| {
            let folder = dir.path().join(format!("{side}"));
            fs::create_dir_all(&folder).unwrap();
            let path = folder.join("a.npy");
            let header = npy::encode_header(DType::F32, &Shape::new([N]).unwrap()).unwrap();
            let elements = (0..N).flat_map(|i| values[side](i).to_le_bytes());
            fs::write(
                &path,
                header.into_iter().chain(elements).collect::<Vec<_>>(),
            )
            .unwrap();
            path
        });
        let paths = [paths[0].as_path(), paths[1].as_path()];
        let [pieces, whole] = [false, true].map(|has_kl| compare(paths, has_kl));
        let numbers = |slot: &SlotResult| {
            let metrics = slot.metrics.iter().filter(|(id, _)| *id != MetricId::Kl);
            format!("{:?} {:?}", metrics.collect::<Vec<_>>(), slot.histogram)
        };
        assert_eq!(numbers(&pieces), numbers(&whole), "{name}");
        let distance = pieces.metrics.get(MetricId::RelL2).unwrap();
        assert!(
            distance > 0.0 || name == "not a number",
            "{name}: {distance}"
        );
    }
}
