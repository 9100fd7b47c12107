//! Measures the cost of conversion: a directory of dumps to arrays against `cp -r` of the same
//! directory, and changes of layout in memory against a copy, in turn within the same run.
//!
//! `cargo bench -p opscope-analysis --bench convert -- [files] [layouts]`. Every measurement checks
//! its answer. If the environment variable `MSACCUCMP` holds the vendor's command (such as
//! `python3 /path/to/msaccucmp.py`), that takes part too.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use opscope_analysis::convert::{self, ConversionOptions, ConvertedForm};
use opscope_analysis::default_jobs;
use opscope_store::atomic_file::PermissionModes;
use opscope_store::file_format::dump_data::{DumpHeader, TensorEntry, dtype_code};
use opscope_store::file_format::npy;
use opscope_tensor::convert::layout::{LayoutConversion, LayoutPlan};
use opscope_tensor::{DType, Layout, Shape};

/// Files in the directory, and extents of the `float32` tensor in each: 4 MB.
const N_FILES: usize = 200;
const DIMS: [usize; 2] = [1024, 1024];
/// Rounds of which the median is taken.
const N_ROUNDS: usize = 5;
const N_LAYOUT_ROUNDS: usize = 7;
/// Tensors of 3 to 6 MB that a layout is measured on in turn.
const N_LAYOUT_TENSORS: usize = 24;

fn main() {
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let is_wanted = |name: &str| filters.is_empty() || filters.iter().any(|f| f == name);
    if is_wanted("files") {
        files();
    }
    if is_wanted("layouts") {
        layouts();
    }
}

/// A directory, from page cache to page cache.
fn files() {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let dir = tempfile::tempdir_in(target).unwrap();
    let dump = dir.path().join("dump");
    fs::create_dir(&dump).unwrap();
    let n_bytes: usize = (0..N_FILES).map(|i| write_dump(&dump, i)).sum();
    let (copied, converted) = (dir.path().join("cp"), dir.path().join("npy"));
    let reference = std::env::var("MSACCUCMP").ok();
    let mut times: [Vec<Duration>; 3] = Default::default();
    for round in 0..N_ROUNDS {
        times[0].push(timed(|| {
            let status = Command::new("cp")
                .arg("-r")
                .arg(&dump)
                .arg(&copied)
                .status();
            assert!(status.unwrap().success());
        }));
        fs::remove_dir_all(&copied).unwrap();
        times[1].push(timed(|| convert(&dump, &converted)));
        if round == 0 {
            (0..N_FILES).for_each(|i| check(&converted, i));
        }
        fs::remove_dir_all(&converted).unwrap();
        if let Some(reference) = &reference {
            times[2].push(timed(|| run_reference(reference, &dump, &converted)));
            fs::remove_dir_all(&converted).unwrap();
        }
    }
    println!(
        "{N_FILES} files, {:.0} MB, ND to npy, {} threads",
        n_bytes as f64 / 1e6,
        default_jobs()
    );
    let [cp, ours, theirs] = times;
    let cp = median(cp);
    row("cp -r", n_bytes, cp, cp);
    row("opscope convert", n_bytes, median(ours), cp);
    match reference {
        Some(_) => row("msaccucmp convert", n_bytes, median(theirs), cp),
        None => println!("  msaccucmp convert  skipped: `MSACCUCMP` holds no command"),
    }
}

fn convert(dump: &Path, out: &Path) {
    let sources = convert::sources(dump).sources;
    let options = ConversionOptions {
        out: out.to_owned(),
        kind: ConvertedForm::Npy,
        relayout: None,
        compression: None,
        pick: None,
        n_threads: default_jobs(),
        modes: PermissionModes::default(),
        is_replacing: true,
    };
    let report = convert::run(&sources, &options, |_| {}).unwrap();
    assert_eq!(
        (report.n_arrays, report.failures.len()),
        (N_FILES as u64, 0)
    );
}

fn run_reference(command: &str, dump: &Path, out: &Path) {
    let mut words = command.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command
        .args(words)
        .arg("convert")
        .arg("-d")
        .arg(dump)
        .arg("-out")
        .arg(out);
    let status = command.stderr(Stdio::null()).stdout(Stdio::null()).status();
    assert!(status.unwrap().success(), "`MSACCUCMP` failed");
    assert_eq!(fs::read_dir(out).unwrap().count(), N_FILES);
}

fn dump_name(i: usize) -> String {
    format!("Add.op{i}.{i}.0.{}", 1_700_000_000_000_000 + i)
}

/// Elements that differ from file to file.
fn payload(i: usize) -> Vec<u8> {
    let n = DIMS.iter().product::<usize>();
    (0..n)
        .flat_map(|j| ((i * 31 + j) as f32).to_le_bytes())
        .collect()
}

fn write_dump(dir: &Path, i: usize) -> usize {
    let payload = payload(i);
    let header = DumpHeader {
        version: "2.0".into(),
        op_name: format!("op{i}"),
        outputs: vec![TensorEntry {
            data_type: dtype_code(DType::F32).unwrap(),
            format: 2,
            shape: Some(DIMS.map(|dim| dim as u64).to_vec()),
            size: payload.len() as u64,
            ..TensorEntry::default()
        }],
        ..DumpHeader::default()
    };
    let header = header.encode();
    let length = (header.len() as u64).to_le_bytes();
    let file = [&length[..], &header, &payload].concat();
    fs::write(dir.join(dump_name(i)), &file).unwrap();
    file.len()
}

fn check(out: &Path, i: usize) {
    let array = npy::read_file(&out.join(format!("{}.output.0.npy", dump_name(i)))).unwrap();
    assert_eq!(
        (array.dtype(), array.shape().dims()),
        (DType::F32, &DIMS[..])
    );
    assert!(array.host_bytes().unwrap() == payload(i));
}

/// Changes of layout in memory, on one core.
fn layouts() {
    println!("layouts in memory, one core; bytes of the source");
    let image = (Layout::Nchw, [8, 60, 56, 56]);
    let weight = (Layout::Nchw, [512, 256, 3, 3]);
    let odd_weight = (Layout::Nchw, [500, 250, 3, 3]);
    for (dtype, width) in [(DType::F16, 2), (DType::F32, 4)] {
        for (device, (plain, dims)) in [
            (Layout::Nc1hwc0, image),
            (Layout::FractalZ, weight),
            (Layout::FractalZ, odd_weight),
            (Layout::FractalNz, (Layout::Nd, [2, 2, 700, 500])),
        ] {
            let original = Shape::new(dims).unwrap();
            let there =
                LayoutPlan::new(&LayoutConversion::new(plain, &original, device, width)).unwrap();
            let n_plain = original.n_bytes(dtype).unwrap();
            let source: Vec<u8> = (0..n_plain).map(|i| (i % 251) as u8).collect();
            let stored = there.run_to_vec(&source).unwrap();
            let back = LayoutPlan::new(&LayoutConversion {
                original: Some((plain, &original)),
                ..LayoutConversion::new(device, there.out_shape(), plain, width)
            });
            measure(
                &format!("{device} to {plain} {dtype} {original}"),
                &back.unwrap(),
                &stored,
                &source,
            );
        }
    }
}

/// Takes as many tensors in turn as no cache holds, so that each comes from memory.
fn measure(name: &str, plan: &LayoutPlan, stored: &[u8], expected: &[u8]) {
    let sources = vec![stored.to_vec(); N_LAYOUT_TENSORS];
    let mut copies = vec![vec![0; stored.len()]; N_LAYOUT_TENSORS];
    let mut outs = vec![vec![0; plan.out_bytes()]; N_LAYOUT_TENSORS];
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..N_LAYOUT_ROUNDS {
        times[0].push(timed(|| {
            for (source, copy) in sources.iter().zip(&mut copies) {
                black_box(&mut copy[..]).copy_from_slice(black_box(source));
            }
        }));
        times[1].push(timed(|| {
            for (source, out) in sources.iter().zip(&mut outs) {
                plan.run(black_box(source), black_box(out)).unwrap();
            }
        }));
        assert!(outs.iter().all(|out| out == expected));
    }
    let [copied, converted] = times.map(median);
    let n_bytes = stored.len() * N_LAYOUT_TENSORS;
    row("memcpy", n_bytes, copied, copied);
    row(name, n_bytes, converted, copied);
}

fn row(name: &str, n_bytes: usize, time: Duration, limit: Duration) {
    println!(
        "  {name:<46} {:>8.2} ms {:>7.2} GB/s {:>5.0} %",
        time.as_secs_f64() * 1e3,
        n_bytes as f64 / time.as_secs_f64() / 1e9,
        limit.as_secs_f64() / time.as_secs_f64() * 100.0
    );
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
