//! Measures the cost of creating a dump's files, compared with one plain file of the same
//! bytes.
//!
//! `cargo bench -p opscope-store --bench write -- [DIR]`; without `DIR`, below the build directory.
//! Four ways take turns: a plain sequential writer, [`Creator::create_file`] with one and two
//! threads, and [`Creator::link_file`] to a file that is there. The median of several rounds
//! counts; the files of each are compared with what was written. Nothing is deleted before the end:
//! for some seconds after a deletion ext4 passes over each freed inode one by one when it looks for
//! a new one.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use opscope_store::atomic_file::{Creator, LinkMethod, file_holds};

/// Bytes of a file, and how many files a round writes.
const CASES: [(usize, usize); 4] = [
    (4 << 10, 400),
    (64 << 10, 200),
    (1 << 20, 32),
    (16 << 20, 8),
];
const N_ROUNDS: usize = 5;
const HEADER: [u8; 128] = [b'h'; 128];

fn main() {
    let dir = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let base = dir.map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned(),
        PathBuf::from,
    );
    let root = base.join(format!("write-{}", std::process::id()));
    println!("below {}: µs for each file (GB/s)", base.display());
    println!(
        "{:>10} {:>18} {:>18} {:>18} {:>18}",
        "bytes", "one plain file", "Creator", "2 threads", "links"
    );
    for (n_bytes, n_files) in CASES {
        let payload: Vec<u8> = (0..n_bytes).map(|i| ((i * 31) >> 3) as u8).collect();
        let mut times: [Vec<f64>; 4] = Default::default();
        // As in a dump, the creators learn from file to file which way is the faster one.
        let creators = [Creator::default(), Creator::default()];
        for round in 0..N_ROUNDS {
            let dir = root.join(format!("{n_bytes}-{round}"));
            let job = Job {
                dir: &dir,
                payload: &payload,
                n_files,
            };
            let found = [
                job.plain(),
                job.create(&creators[0], 1),
                job.create(&creators[1], 2),
                job.link(),
            ];
            for (times, found) in times.iter_mut().zip(found) {
                times.push(found / n_files as f64);
            }
        }
        let cell = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            let median = times[times.len() / 2];
            format!(
                "{:.1} ({:.2})",
                median * 1e6,
                (n_bytes + HEADER.len()) as f64 / median / 1e9
            )
        };
        let [plain, one, two, link] = times.each_mut().map(cell);
        println!("{n_bytes:>10} {plain:>18} {one:>18} {two:>18} {link:>18}");
    }
    std::fs::remove_dir_all(&root).unwrap();
}

struct Job<'a> {
    dir: &'a Path,
    payload: &'a [u8],
    n_files: usize,
}

impl Job<'_> {
    fn parts(&self) -> [&[u8]; 2] {
        [&HEADER, self.payload]
    }

    /// Everything into one file, by one call for each header and payload.
    fn plain(&self) -> f64 {
        std::fs::create_dir_all(self.dir).unwrap();
        let path = self.dir.join("plain");
        let time = timed(|| {
            let mut file = File::create_new(&path).unwrap();
            for part in (0..self.n_files).flat_map(|_| self.parts()) {
                file.write_all(part).unwrap();
            }
        });
        let expected: Vec<&[u8]> = (0..self.n_files).flat_map(|_| self.parts()).collect();
        assert!(file_holds(&path, &expected).unwrap());
        time
    }

    fn create(&self, creator: &Creator, n_threads: usize) -> f64 {
        let path = |i: usize| self.dir.join(format!("rank_0/{n_threads}/f{i}"));
        let time = timed(|| {
            std::thread::scope(|scope| {
                for thread in 0..n_threads {
                    let path = &path;
                    scope.spawn(move || {
                        for i in (thread..self.n_files).step_by(n_threads) {
                            assert!(creator.create_file(&path(i), &self.parts()).unwrap());
                        }
                    });
                }
            });
        });
        for i in 0..self.n_files {
            assert!(file_holds(&path(i), &self.parts()).unwrap());
        }
        time
    }

    fn link(&self) -> f64 {
        let creator = Creator::default();
        let original = self.dir.join("original");
        assert!(creator.create_file(&original, &self.parts()).unwrap());
        let path = |i: usize| self.dir.join(format!("links/f{i}"));
        creator.create_dir(&self.dir.join("links")).unwrap();
        let time = timed(|| {
            for i in 0..self.n_files {
                let linked = creator.link_file(&original, &path(i)).unwrap();
                assert!(matches!(
                    linked,
                    Some(LinkMethod::Hard | LinkMethod::Reflink)
                ));
            }
        });
        for i in 0..self.n_files {
            assert!(file_holds(&path(i), &self.parts()).unwrap());
        }
        time
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}
