//! Writes two native dumps of statistics as a run of many ranks leaves them, for the benchmark of
//! indexes.
//!
//! `cargo bench -p opscope-store --bench many_ranks -- DIR N_RANKS N_STEPS N_OPERATORS` makes
//! `DIR/sound` and `DIR/faulty`. Every operator has eight inputs and two outputs. The faulty run is
//! the sound one up to its last step. There, the digests and statistics of rank `r` differ from the
//! operator `r` times 7, modulo the number of operators, on, and one rank has NaN from that
//! operator on. The files of the other steps are links to those of the sound run.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use opscope_store::record::ModelId;
use opscope_store::slot_table::{SlotRow, TableWriter, compression_of};
use opscope_store::tree::native::NativeTree;

const N_THREADS: u64 = 2;
const N_INPUTS: u64 = 8;
const N_OUTPUTS: u64 = 2;
const TIME: &str = "20240101000000";
/// zstd's level of the native form.
const LEVEL: i32 = 1;
const TYPES: [&str; 12] = [
    "MatMul",
    "Add",
    "Mul",
    "LayerNorm",
    "Softmax",
    "Transpose",
    "Reshape",
    "Gelu",
    "Cast",
    "Sub",
    "Div",
    "ReduceMean",
];

/// A run of many ranks.
struct Run {
    root: PathBuf,
    n_ranks: u64,
    n_steps: u64,
    n_operators: u64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&String> = arguments.iter().filter(|a| !a.starts_with("--")).collect();
    let [dir, n_ranks, n_steps, n_operators] = arguments[..] else {
        println!("many_ranks: skipped; it takes DIR N_RANKS N_STEPS N_OPERATORS");
        return;
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let run = Run {
        root: PathBuf::from(dir),
        n_ranks: number(n_ranks),
        n_steps: number(n_steps),
        n_operators: number(n_operators),
    };
    let start = Instant::now();
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..N_THREADS {
            scope.spawn(|| {
                loop {
                    let rank = next.fetch_add(1, Ordering::Relaxed);
                    if rank >= run.n_ranks {
                        break;
                    }
                    run.write_rank(rank);
                }
            });
        }
    });
    let n_rows = run.n_ranks * run.n_steps * run.n_operators * (N_INPUTS + N_OUTPUTS);
    let seconds = start.elapsed().as_secs_f64();
    println!("two runs of {n_rows} rows in {seconds:.1} s");
}

impl Run {
    fn write_rank(&self, rank: u64) {
        let rank_number = u32::try_from(rank).expect("a rank");
        let [sound, faulty] =
            ["sound", "faulty"].map(|run| NativeTree::new(&self.root.join(run), TIME, rank_number));
        let model = ModelId::first_load("transformer", "main");
        let mut rows = self.rows(rank);
        for step in 0..self.n_steps {
            let [first, second] = [&sound, &faulty].map(|tree| tree.table(&model, step));
            self.set_step(&mut rows, rank, step, None);
            write_table(&first, &mut rows);
            if step + 1 < self.n_steps {
                fs::create_dir_all(second.parent().expect("a directory")).expect("a directory");
                fs::hard_link(&first, &second).expect("a link");
            } else {
                self.set_step(&mut rows, rank, step, Some(rank * 7 % self.n_operators));
                write_table(&second, &mut rows);
            }
        }
    }

    /// The cells that are the same in every step.
    fn rows(&self, rank: u64) -> Vec<SlotRow> {
        let text = |text: &str| Some(Arc::<str>::from(text));
        let int = |number: u64| i64::try_from(number).ok();
        let mut rows = Vec::new();
        for position in 0..self.n_operators {
            let op_type = TYPES[(position % TYPES.len() as u64) as usize];
            let layer = position / 60;
            let operator = SlotRow {
                rank: int(rank),
                device: Some(0),
                model: text("transformer"),
                graph: text("main"),
                load: Some(1),
                position: int(position),
                call: Some(0),
                kind: text("operator"),
                op_type: text(op_type),
                op_name: text(&format!("/layers.{layer}/block/{op_type}_{position}")),
                module: text(&format!("model.layers.{layer}.block")),
                source: text("model.py:120 forward"),
                task: int(position),
                stream: Some(0),
                dtype: text("bfloat16"),
                shape: Some([4, 1024, 512].into()),
                n_elements: Some(4 * 1024 * 512),
                n_bytes: Some(2 * 4 * 1024 * 512),
                ..SlotRow::default()
            };
            for (side, n_slots) in [("input", N_INPUTS), ("output", N_OUTPUTS)] {
                rows.extend((0..n_slots).map(|slot| SlotRow {
                    side: text(side),
                    slot: int(slot),
                    value: text(&format!("v{position}_{slot}")),
                    ..operator.clone()
                }));
            }
        }
        rows
    }

    /// Gives the rows the values of a step, which differ from the sound ones from the operator
    /// `fault` on.
    fn set_step(&self, rows: &mut [SlotRow], rank: u64, step: u64, fault: Option<u64>) {
        let int = |number: u64| i64::try_from(number).ok();
        for (index, row) in (0_u64..).zip(rows.iter_mut()) {
            let position = index / (N_INPUTS + N_OUTPUTS);
            let is_faulty = fault.is_some_and(|fault| position >= fault);
            let seed = ((rank * self.n_steps + step) << 32 | index) ^ u64::from(is_faulty) << 63;
            let [a, b] = [mixed(seed), mixed(!seed)];
            let unit = (a >> 11) as f64 / (1_u64 << 53) as f64;
            row.step = int(step);
            row.time_us = int(1_700_000_000_000_000 + step * 1_000_000_000 + position * 50);
            row.digest = Some(format!("{a:016x}{b:016x}").into());
            let n_nan = if is_faulty && rank == self.n_ranks / 2 {
                3
            } else {
                0
            };
            row.statistics.counts =
                [n_nan, 0, 0, int(b % 97).unwrap_or(0), 0, 1 << 20, 0, 0].map(Some);
            let numbers = [
                -unit - 1.0,
                unit + 2.0,
                unit * 1e6,
                unit,
                1.0 + unit,
                1e6 * unit,
                1e3 * unit,
            ];
            row.statistics.numbers = numbers.map(Some);
        }
    }
}

fn write_table(path: &Path, rows: &mut [SlotRow]) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    let mut out = BufWriter::new(File::create(path).expect("a file"));
    let level = compression_of(rows.len(), LEVEL);
    let mut writer = TableWriter::new(&mut out, Vec::new(), level).expect("a table");
    writer.write_group(rows).expect("a group");
    writer.finish().expect("a table");
    out.flush().expect("a file");
}

/// splitmix64.
fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
