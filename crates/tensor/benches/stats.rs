//! Measures the cost of the statistics and digests of a tensor, compared with reading and copying
//! the same bytes.
//!
//! `cargo bench -p opscope-tensor --bench stats -- [stats] [digests] [passes]`. One thread, tensors
//! that no cache holds. Every slice of 8 MiB counts with the best of several rounds, in which
//! reading, copying and what is measured take turns; every answer is checked.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use half::{bf16, f16};
use opscope_tensor::{
    DType, Shape, TensorView, digest, digest_and_non_finite, digest_and_stats, first_non_finite,
    non_finite, sequential, stats, weighed_stats,
};

/// Bytes of each tensor.
const N_BYTES: usize = 128 << 20;
/// Bytes that are timed at once.
const N_SLICE_BYTES: usize = 8 << 20;
const N_ROUNDS: usize = 7;

fn main() {
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let is_wanted = |name: &str| filters.is_empty() || filters.iter().any(|f| f == name);
    if is_wanted("stats") {
        statistics();
    }
    if is_wanted("digests") {
        digests();
    }
    if is_wanted("passes") {
        passes();
    }
}

/// Numbers between -1 and 1.
fn uniform() -> impl Iterator<Item = f32> {
    let mut x = 1_u64;
    std::iter::repeat_with(move || {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (x >> 40) as f32 / 8_388_608.0 - 1.0
    })
}

fn bytes<const WIDTH: usize>(element: impl Fn(f32) -> [u8; WIDTH]) -> Vec<u8> {
    uniform().take(N_BYTES / WIDTH).flat_map(element).collect()
}

/// A name, a dtype and what makes the bytes.
type Case = (&'static str, DType, fn() -> Vec<u8>);

fn cases() -> Vec<Case> {
    let integers = || bytes(|v| [((v * 32_768.0) as i32 >> 3) as u8]);
    vec![
        ("", DType::F32, || bytes(f32::to_le_bytes)),
        ("half zeros", DType::F32, || {
            bytes(|v| v.max(0.0).to_le_bytes())
        }),
        ("mean 1000", DType::F32, || {
            bytes(|v| (v + 1000.0).to_le_bytes())
        }),
        ("NaN 1 in 1000", DType::F32, || {
            bytes(|v| if v > 0.998 { f32::NAN } else { v }.to_le_bytes())
        }),
        ("", DType::F16, || bytes(|v| f16::from_f32(v).to_le_bytes())),
        ("half zeros", DType::F16, || {
            bytes(|v| f16::from_f32(v.max(0.0)).to_le_bytes())
        }),
        ("", DType::BF16, || {
            bytes(|v| bf16::from_f32(v).to_le_bytes())
        }),
        ("", DType::F64, || bytes(|v| f64::from(v).to_le_bytes())),
        ("", DType::I8, integers),
        ("", DType::U8, integers),
        ("", DType::Bool, || bytes(|v| [u8::from(v > 0.0)])),
        ("", DType::I16, integers),
        ("", DType::U16, integers),
        ("", DType::I32, integers),
        ("", DType::U32, integers),
        ("", DType::I64, integers),
        ("", DType::U64, integers),
        ("", DType::F8E4M3FN, || bytes(|v| [(v * 120.0) as i8 as u8])),
        ("", DType::I4, integers),
    ]
}

fn statistics() {
    println!(
        "statistics, one thread, {} MiB: GB/s and share of reading",
        N_BYTES >> 20
    );
    println!(
        "{:24} {:>7} {:>7} {:>14} {:>14} {:>14}",
        "dtype", "read", "copy", "stats", "sequential", "non-finite"
    );
    for (name, dtype, make) in cases() {
        let bytes = make();
        let shape = Shape::new([N_SLICE_BYTES * 8 / dtype.bits().unwrap_or(8) as usize]).unwrap();
        bytes
            .chunks(N_SLICE_BYTES)
            .for_each(|slice| check(view(dtype, &shape, slice)));
        let mut copy = vec![0; N_SLICE_BYTES];
        let mut best = [const { Best::new() }; 5];
        for _ in 0..N_ROUNDS {
            best[0].round(&bytes, read);
            best[1].round(&bytes, |slice| black_box(&mut copy).copy_from_slice(slice));
            best[2].round(&bytes, |slice| stats(view(dtype, &shape, slice)));
            best[3].round(&bytes, |slice| {
                sequential::sequential_stats(view(dtype, &shape, slice))
            });
            best[4].round(&bytes, |slice| non_finite(view(dtype, &shape, slice)));
        }
        let [read, copy, stats, sequential, non_finite] = best.map(|best| best.rate());
        let share = |rate: f64| {
            if rate > 1e3 {
                return "-".into();
            }
            format!("{rate:.1} ({:.0} %)", 100.0 * rate / read)
        };
        let (stats, sequential, non_finite) = (share(stats), share(sequential), share(non_finite));
        println!(
            "{:24} {read:>7.1} {copy:>7.1} {stats:>14} {sequential:>14} {non_finite:>14}",
            format!("{dtype} {name}")
        );
    }
}

fn view<'a>(dtype: DType, shape: &'a Shape, bytes: &'a [u8]) -> TensorView<'a> {
    TensorView::new(dtype, shape, bytes)
}

/// The shortest time that each slice has taken, which other programs on the machine disturb least.
struct Best(Vec<f64>);

impl Best {
    const fn new() -> Best {
        Best(Vec::new())
    }

    /// Goes through all slices, of which no cache holds the first one when the last one is done.
    fn round<T>(&mut self, bytes: &[u8], mut work: impl FnMut(&[u8]) -> T) {
        self.0
            .resize(bytes.len().div_ceil(N_SLICE_BYTES), f64::INFINITY);
        for (best, slice) in self.0.iter_mut().zip(bytes.chunks(N_SLICE_BYTES)) {
            *best = best.min(timed(|| work(black_box(slice))).1);
        }
    }

    /// GB/s.
    fn rate(&self) -> f64 {
        (self.0.len() * N_SLICE_BYTES) as f64 / self.0.iter().sum::<f64>() / 1e9
    }
}

/// Three ways to the same numbers.
fn check(view: TensorView<'_>) {
    let s = stats(view).unwrap();
    check_sums(view, &s);
    let t = sequential::sequential_stats(view).unwrap();
    assert_eq!(
        (t.n_elements, t.n_nan),
        (s.counts.n_elements, s.counts.n_nan)
    );
    assert_eq!(
        (t.n_zero, t.n_negative),
        (s.counts.n_zero, s.counts.n_negative)
    );
    assert!(t.l2.is_nan() || (t.l2 - s.l2).abs() <= 1e-9 * s.l2);
    assert_eq!(non_finite(view).n_nan, s.counts.n_nan);
    assert_eq!(first_non_finite(view).is_some(), s.has_non_finite());
}

/// The sum of the values, one after the other.
fn check_sums(view: TensorView<'_>, found: &opscope_tensor::Stats) {
    let bytes = view.bytes;
    let values: Box<dyn Iterator<Item = f64>> = match view.dtype {
        DType::F32 => Box::new(
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|&b| f32::from_le_bytes(b).into()),
        ),
        DType::F16 => Box::new(
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|&b| f16::from_le_bytes(b).into()),
        ),
        DType::I8 => Box::new(bytes.iter().map(|&b| f64::from(b as i8))),
        DType::I32 => Box::new(
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|&b| i32::from_le_bytes(b).into()),
        ),
        _ => return,
    };
    let (mut sum, mut l1, mut n_nan) = (0.0, 0.0, 0);
    for value in values {
        n_nan += u64::from(value.is_nan());
        if !value.is_nan() {
            sum += value;
            l1 += value.abs();
        }
    }
    assert_eq!(found.counts.n_nan, n_nan);
    assert!((found.sum - sum).abs() <= 1e-9 * l1, "{} {sum}", found.sum);
    assert!((found.l1 - l1).abs() <= 1e-9 * l1);
}

fn digests() {
    let data = bytes(f32::to_le_bytes);
    let shape = Shape::new([N_SLICE_BYTES / 4]).unwrap();
    for slice in data.chunks(N_SLICE_BYTES) {
        let parts: Vec<&[u8]> = slice.chunks(N_SLICE_BYTES / 32).collect();
        let one: Vec<_> = parts.iter().map(|part| digest::md5(part)).collect();
        assert_eq!(one, digest::md5_many(&parts));
    }
    let mixed = mixed(&data);
    let one: Vec<_> = mixed.iter().map(|part| digest::md5(part)).collect();
    assert_eq!(one, digest::md5_many(&mixed));
    let n_mixed: usize = mixed.iter().map(|part| part.len()).sum();
    let mut mixed_seconds = f64::INFINITY;
    let mut best = [const { Best::new() }; 6];
    for _ in 0..3 {
        mixed_seconds = mixed_seconds.min(timed(|| digest::md5_many(&mixed)).1);
        best[0].round(&data, read);
        best[1].round(&data, digest::md5);
        best[2].round(&data, |slice| {
            digest::md5_many(&slice.chunks(N_SLICE_BYTES / 32).collect::<Vec<_>>())
        });
        best[3].round(&data, digest::sha1);
        best[4].round(&data, |slice| {
            sequential::sequential_sha1(view(DType::F32, &shape, slice))
        });
        best[5].round(&data, digest::xxh3_128);
    }
    println!("digests, one thread, side by side 32 tensors: GB/s");
    let names = [
        "read",
        "md5",
        "md5, side by side",
        "sha1",
        "sha1 of chunks",
        "xxh3-128",
    ];
    for (name, best) in names.into_iter().zip(best) {
        println!("{name:24} {:>7.2}", best.rate());
    }
    let rate = n_mixed as f64 / mixed_seconds / 1e9;
    println!("{:24} {rate:>7.2}", "md5, 70 of mixed sizes");
}

/// A digest together with numbers, in two passes and in one.
fn passes() {
    let data = bytes(f32::to_le_bytes);
    let shape = Shape::new([N_SLICE_BYTES / 4]).unwrap();
    for slice in data.chunks(N_SLICE_BYTES) {
        let (one, other) = (
            digest_and_stats(view(DType::F32, &shape, slice)),
            digest_and_non_finite(view(DType::F32, &shape, slice)),
        );
        assert_eq!(
            one,
            (
                digest::xxh3_128(slice),
                weighed_stats(view(DType::F32, &shape, slice))
            )
        );
        assert_eq!(other, (one.0, non_finite(view(DType::F32, &shape, slice))));
    }
    let mut best = [const { Best::new() }; 5];
    for _ in 0..N_ROUNDS {
        best[0].round(&data, read);
        best[1].round(&data, |slice| {
            (
                digest::xxh3_128(slice),
                stats(view(DType::F32, &shape, slice)),
            )
        });
        best[2].round(&data, |slice| {
            digest_and_stats(view(DType::F32, &shape, slice))
        });
        best[3].round(&data, |slice| {
            (
                digest::xxh3_128(slice),
                non_finite(view(DType::F32, &shape, slice)),
            )
        });
        best[4].round(&data, |slice| {
            digest_and_non_finite(view(DType::F32, &shape, slice))
        });
    }
    println!("xxh3-128 of float32 and more, one thread: GB/s");
    let names = [
        "read",
        "stats, two passes",
        "stats, one pass",
        "non-finite, two passes",
        "non-finite, one pass",
    ];
    for (name, best) in names.into_iter().zip(best) {
        println!("{name:24} {:>7.2}", best.rate());
    }
}

/// Two tensors of 16 MiB, eight of 4 MiB, thirty of 256 KiB to 1 MiB and thirty of a few bytes, as
/// a model may have them.
fn mixed(bytes: &[u8]) -> Vec<&[u8]> {
    let large = [16 << 20; 2].into_iter().chain([4 << 20; 8]);
    let middle = (0..30).map(|i| (256 << 10) + i * 27_000);
    let tiny = (0..30).map(|i| 100 + i * 33);
    let mut rest = bytes;
    large
        .chain(middle)
        .chain(tiny)
        .map(|n_bytes| rest.split_off(..n_bytes).unwrap())
        .collect()
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = black_box(work());
    (result, start.elapsed().as_secs_f64())
}

/// Looks at every word once.
fn read(bytes: &[u8]) -> u64 {
    let mut seen = [0_u64; 32];
    for group in black_box(bytes).as_chunks::<256>().0 {
        for (seen, word) in seen.iter_mut().zip(group.as_chunks().0) {
            *seen |= u64::from_le_bytes(*word);
        }
    }
    seen.iter().fold(0, |all, word| all | word)
}
