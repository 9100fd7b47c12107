//! Conversion to other layouts, beside what the reference wrote where it is right.

use std::fs;
use std::path::{Path, PathBuf};

use opscope_analysis::convert::{self, ConvertReport, ConvertedForm};
use opscope_analysis::elements::WantedLayout;
use opscope_store::atomic_file::PermissionModes;
use opscope_store::file_format::npy;

fn golden(case: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../msaccucmp/tests/golden").join(case)
}

/// `layout` may be empty, which leaves tensors as they are.
fn run(dump: &Path, out: &Path, layout: &str, kind: ConvertedForm) -> ConvertReport {
    let convert::FoundSources {
        sources, errors, ..
    } = convert::sources(dump);
    assert!(errors.is_empty());
    let target = (!layout.is_empty()).then(|| layout.parse().unwrap());
    let options = convert::ConversionOptions {
        out: out.to_owned(),
        kind,
        relayout: target.map(|target| WantedLayout {
            target,
            shape: None,
        }),
        compression: None,
        pick: None,
        n_threads: 2,
        modes: PermissionModes::default(),
        is_replacing: true,
    };
    convert::run(&sources, &options, |_| {}).unwrap()
}

/// Converts one recorded dump and compares names and arrays with the recorded ones.
fn check(case: &str, run_name: &str, file: &str, layout: &str) {
    let case = golden(case);
    let out = tempfile::tempdir().unwrap();
    let report = run(
        &case.join("in").join(file),
        out.path(),
        layout,
        ConvertedForm::Npy,
    );
    let stem = Path::new(file).file_name().unwrap().to_str().unwrap();
    let mut n_compared = 0;
    for entry in fs::read_dir(case.join("out").join(run_name)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.starts_with(stem) {
            continue;
        }
        let expected = npy::read_file(&path).unwrap();
        let found = npy::read_file(&out.path().join(name)).unwrap();
        assert_eq!(found.dtype(), expected.dtype(), "{name}");
        assert_eq!(found.shape(), expected.shape(), "{name}");
        assert!(
            found.host_bytes().unwrap() == expected.host_bytes().unwrap(),
            "{name}"
        );
        n_compared += 1;
    }
    assert!(n_compared > 0, "{file}: nothing was recorded");
    assert_eq!(report.n_arrays, n_compared, "{file}: {:?}", report.failures);
    assert!(report.failures.is_empty(), "{file}: {:?}", report.failures);
}

#[test]
fn arrays_are_the_references_where_it_is_right() {
    let stamp = ".3.7.1700000000000000";
    for (case, run_name, names, layout) in [
        ("format_nc1hwc0", "NCHW_osh_2d", "d/N.osh_2d", "NCHW"),
        (
            "format_nc1hwc0",
            "NCHW",
            "d/N.osh_nchw d/N.exact d/N.bf16 d/N.no_osh",
            "NCHW",
        ),
        ("format_fractal_z", "NCHW", "d/Z.nchw d/Z.exact", "NCHW"),
        ("format_fractal_z", "HWCN", "d/Z.hwcn", "HWCN"),
        ("format_fractal_nz", "ND", "d/F.d2 d/F.d3 d/F.d2exact", "ND"),
        ("format_ndc1hwc0", "NCDHW", "d/D.osh5", "NCDHW"),
        ("format_4d_permute", "NCHW_to_NHWC", "d_NCHW/P.NCHW", "NHWC"),
        ("format_4d_permute", "NHWC_to_NCHW", "d_NHWC/P.NHWC", "NCHW"),
        ("format_4d_permute", "NHWC_to_HWCN", "d_NHWC/P.NHWC", "HWCN"),
        ("format_4d_permute", "HWCN_to_NCHW", "d_HWCN/P.HWCN", "NCHW"),
        ("format_4d_permute", "HWCN_to_NHWC", "d_HWCN/P.HWCN", "NHWC"),
        ("format_4d_permute", "CHWN_to_CHWN", "d_CHWN/P.CHWN", "CHWN"),
    ] {
        for name in names.split(' ') {
            check(case, run_name, &format!("{name}{stamp}"), layout);
        }
    }
}

/// FFTS+ threads, shapes and dtypes, without a change of layout.
#[test]
fn files_are_the_references_where_it_is_right() {
    for (case, run_name, dir) in [
        ("ffts_plus", "convert", "in/l"),
        (
            "convert_nano",
            "a",
            "in/d/Conv2D.nano_a.3.7.1700000000000000",
        ),
        ("convert_nano", "g", "in/d/Add.nano_g.3.7.1700000000000006"),
        ("convert_attr", "zero", "in/d/A.zero.3.7.1700000000000000"),
    ] {
        let case = golden(case);
        let out = tempfile::tempdir().unwrap();
        let report = run(&case.join(dir), out.path(), "", ConvertedForm::Npy);
        assert!(report.failures.is_empty(), "{:?}", report.failures);
        let recorded = fs::read_dir(case.join("out").join(run_name)).unwrap();
        let recorded: Vec<PathBuf> = recorded.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(report.n_arrays, recorded.len() as u64);
        for path in recorded {
            let found = fs::read(out.path().join(path.file_name().unwrap())).unwrap();
            assert!(found == fs::read(&path).unwrap(), "{}", path.display());
        }
    }
}

/// The reference stumbles over attributes that are no FFTS+ JSON.
#[test]
fn other_attributes_mean_nothing() {
    let out = tempfile::tempdir().unwrap();
    let report = run(
        &golden("convert_attr").join("in/d"),
        out.path(),
        "",
        ConvertedForm::Npy,
    );
    assert_eq!((report.n_converted, report.failures.len()), (4, 0));
}

/// Conversions that `-f` of the reference refuses or gets wrong, although their results are
/// defined.
#[test]
fn more_is_converted_than_the_reference_can() {
    let stamp = ".3.7.1700000000000000";
    for (case, file, layout, names) in [
        (
            "format_4d_permute",
            "d_CHWN/P.CHWN",
            "NCHW",
            "input.0.5x2x3x4 output.0.7x5x1x1",
        ),
        ("format_nc1hwc0", "d/N.osh_nhwc", "NHWC", "input.0.2x3x5x20"),
        (
            "format_nc1hwc0",
            "d/N.osh_nchw",
            "ND",
            "input.0.2x20x3x5 output.0.2x20x3x5",
        ),
        (
            "format_nc1hwc0",
            "d/N.osh_nchw",
            "FRACTAL_NZ",
            "input.0.2x20x1x1x16x16",
        ),
        ("format_fractal_nz", "d/F.d4", "ND", "input.0.2x3x16x18"),
        ("format_not_4d", "d/Q.vec", "NCHW", "input.0.7 input.1.2x3"),
    ] {
        let out = tempfile::tempdir().unwrap();
        let dump = golden(case).join("in").join(format!("{file}{stamp}"));
        let report = run(&dump, out.path(), layout, ConvertedForm::Npy);
        for name in names.split(' ') {
            let stem = dump.file_name().unwrap().to_str().unwrap();
            let path = out.path().join(format!("{stem}.{name}.npy"));
            assert!(path.is_file(), "{}: {:?}", path.display(), report.failures);
        }
    }
}

#[test]
fn a_tensor_that_fails_leaves_the_others_alone() {
    let dir = golden("format_nc1hwc0").join("in/d");
    let out = tempfile::tempdir().unwrap();
    let report = run(&dir, out.path(), "NCHW", ConvertedForm::Bin);
    assert!(report.n_arrays > 5 && report.failures.len() > 2);
    let texts: Vec<String> = report
        .failures
        .iter()
        .map(|failure| format!("{} {:?}", failure.error, failure.error))
        .collect();
    let too_big = report
        .failures
        .iter()
        .position(|f| f.path.ends_with("N.osh_too_big.3.7.1700000000000000"));
    assert!(texts[too_big.unwrap()].contains("put.0"), "{texts:?}");
    let name = "N.bf16.3.7.1700000000000000.input.0.2_20_3_5.float32.NCHW.bin";
    assert_eq!(fs::metadata(out.path().join(name)).unwrap().len(), 2400);
}
