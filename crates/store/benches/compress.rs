//! Measures the cost of compressing arrays and the space that it saves.
//!
//! `cargo bench -p opscope-store --bench compress -- DIR…` takes the `.npy` files below each
//! directory, such as a dump in MindSpore's form, and compresses and decompresses each of them in
//! memory, on one core. Every round compares what comes back.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use opscope_store::dump;
use opscope_store::file_format::{npy_zst, zstd};

const LEVELS: [u8; 5] = [1, 2, 3, 6, 9];
/// Rounds of which the shortest counts.
const N_ROUNDS: usize = 5;

fn main() {
    let dirs: Vec<PathBuf> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .map(PathBuf::from)
        .collect();
    if dirs.is_empty() {
        println!("name directories with .npy files");
    }
    for dir in dirs {
        measure(&dir);
    }
}

fn measure(dir: &Path) {
    let files: Vec<Vec<u8>> = dump::list(dir)
        .entries
        .iter()
        .filter(|entry| entry.real_name.ends_with(npy_zst::PLAIN_SUFFIX))
        .map(|entry| std::fs::read(&entry.path).unwrap())
        .collect();
    let n_bytes: usize = files.iter().map(Vec::len).sum();
    println!(
        "{}: {} files, {} bytes",
        dir.display(),
        files.len(),
        n_bytes
    );
    for level in LEVELS {
        let (n_packed, times) = measure_level(&files, zstd::CompressionLevel::new(level).unwrap());
        let rate = |time: Duration| n_bytes as f64 / time.as_secs_f64() / 1e6;
        println!(
            "  level {level}: {:5.1} % of the bytes, {:5.0} MB/s in, {:5.0} MB/s out",
            n_packed as f64 / n_bytes as f64 * 100.0,
            rate(times[0]),
            rate(times[1]),
        );
    }
}

/// Bytes of all files together after compression, and the times of both ways.
fn measure_level(files: &[Vec<u8>], level: zstd::CompressionLevel) -> (usize, [Duration; 2]) {
    let mut packed: Vec<Vec<u8>> = files.iter().map(|f| Vec::with_capacity(f.len())).collect();
    let mut times = [Duration::MAX; 2];
    for _ in 0..N_ROUNDS {
        packed.iter_mut().for_each(Vec::clear);
        let start = Instant::now();
        for (file, packed) in files.iter().zip(&mut packed) {
            zstd::write(packed, &[black_box(file)], level).unwrap();
        }
        times[0] = times[0].min(start.elapsed());
        let mut time = Duration::ZERO;
        for (file, packed) in files.iter().zip(&packed) {
            let start = Instant::now();
            let content = npy_zst::decode(black_box(packed)).unwrap();
            time += start.elapsed();
            assert!(content == *file);
        }
        times[1] = times[1].min(time);
    }
    (packed.iter().map(Vec::len).sum(), times)
}
