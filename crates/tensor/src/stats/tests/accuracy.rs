//! How far the sums may be from the true ones, and that parts make up the whole.

use crate::{
    CHUNK_ELEMENTS, DType, PartialStats, Shape, Stats, StatsOptions, TensorView, chunks, stats,
};

fn stats_of_bytes(dtype: DType, bytes: &[u8]) -> Stats {
    let shape = Shape::new([bytes.len() / dtype.bytes().unwrap()]).unwrap();
    stats(TensorView::new(dtype, &shape, bytes)).unwrap()
}

/// Sums as if in 106 bits.
struct Exact {
    high: f64,
    low: f64,
}

fn exact_sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut sum = Exact {
        high: 0.0,
        low: 0.0,
    };
    for term in terms {
        let total = sum.high + term;
        let part = total - sum.high;
        let error = (sum.high - (total - part)) + (term - part);
        let low = sum.low + error;
        sum.high = total + low;
        sum.low = low - (sum.high - total);
    }
    sum.high + sum.low
}

/// The bounds in `docs/statistics.md`.
#[test]
fn sums_are_within_their_bounds() {
    let mut x = 9_u64;
    let mut unit = || {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (x >> 11) as f64 / (1_u64 << 53) as f64
    };
    let n = CHUNK_ELEMENTS + 12_345;
    let uniform: Vec<f64> = (0..n).map(|_| unit() - 0.5).collect();
    let wide: Vec<f64> = (0..n)
        .map(|_| (unit() - 0.5) * (unit() * 80.0 - 40.0).exp())
        .collect();
    let far: Vec<f64> = (0..n).map(|_| 1e6 + unit()).collect();
    for (name, values) in [("uniform", uniform), ("wide", wide), ("far", far)] {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let found = stats_of_bytes(DType::F64, &bytes);
        let l1 = exact_sum(values.iter().map(|v| v.abs()));
        let sum = exact_sum(values.iter().copied());
        let bound = 3e-14;
        assert!(
            (found.sum - sum).abs() <= bound * l1,
            "{name}: {} {sum}",
            found.sum
        );
        assert!((found.l1 - l1).abs() <= bound * l1, "{name}");
        let l2 = exact_sum(values.iter().map(|v| v * v)).sqrt();
        assert!((found.l2 - l2).abs() <= bound * l2, "{name}");
        let mean = sum / n as f64;
        let deviation = exact_sum(values.iter().map(|v| (v - mean) * (v - mean)));
        let std = (deviation / n as f64).sqrt();
        assert!(
            (found.std - std).abs() <= 1e-9 * std,
            "{name}: {} {std}",
            found.std
        );
    }
}

#[test]
fn norms_neither_overflow_nor_vanish() {
    let bytes = |values: &[f64]| {
        values
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    for (values, l2) in [
        (&[3e200, 4e200][..], 5e200),
        (&[3e-200, -4e-200], 5e-200),
        (&[3e-310, 4e-310], 5e-310),
        (&[f64::MAX], f64::MAX),
        (&[0.0, 0.0], 0.0),
    ] {
        let found = stats_of_bytes(DType::F64, &bytes(values)).l2;
        assert!((found - l2).abs() <= 1e-15 * l2, "{values:?}: {found}");
    }
    // Blocks of different scales.
    let mut values = vec![1e-300; 4096];
    values.extend(vec![3e-170; 4096]);
    values.extend(vec![1.0; 4096]);
    values.extend(vec![1e170; 4096]);
    let expect = [
        (4096, 1e-300),
        (8192, 3e-170),
        (12_288, 1.0),
        (16_384, 1e170),
    ];
    for (n, value) in expect {
        let found = stats_of_bytes(DType::F64, &bytes(&values[..n])).l2;
        assert!(
            (found - 64.0 * value).abs() <= 1e-14 * 64.0 * value,
            "{found}"
        );
    }
    let f32s: Vec<u8> = [f32::MAX; 100]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    assert_eq!(
        stats_of_bytes(DType::F32, &f32s).l2,
        f64::from(f32::MAX) * 10.0
    );
}

#[test]
fn standard_deviation_survives_a_large_mean() {
    let values: Vec<u8> = (0..100_000)
        .flat_map(|i| (1e9 + f64::from(i % 2)).to_le_bytes())
        .collect();
    assert!((stats_of_bytes(DType::F64, &values).std - 0.5).abs() < 1e-12);
    let constant: Vec<u8> = (0..50_000).flat_map(|_| 0.1_f32.to_le_bytes()).collect();
    assert!(stats_of_bytes(DType::F32, &constant).std < 1e-15);
    let ends: Vec<u8> = [1.0_f64, 2.0, 3.0, 4.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    assert_eq!(stats_of_bytes(DType::F64, &ends).std, 1.25_f64.sqrt());
}

/// Chunks inspected apart and appended in order give the bits of the whole, and a histogram counts
/// every number that is neither zero nor infinite.
#[test]
fn parts_make_up_the_whole() {
    let n = 2 * CHUNK_ELEMENTS + 4567;
    for dtype in [
        DType::F32,
        DType::I16,
        DType::F8E4M3FN,
        DType::I4,
        DType::F6E2M3,
        DType::U1,
    ] {
        let n_bytes = (n * dtype.bits().unwrap() as usize).div_ceil(8);
        let bytes: Vec<u8> = (0..n_bytes as u64)
            .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51) as u8 & 0xbf)
            .collect();
        let shape = Shape::new([n]).unwrap();
        let view = TensorView::new(dtype, &shape, &bytes);
        let whole = stats(view).unwrap();
        assert_eq!(whole.counts.n_elements, n as u64, "{dtype}");
        let options = StatsOptions {
            has_histogram: true,
        };
        let chunks: Vec<_> = chunks(dtype, n, &bytes).unwrap().collect();
        assert_eq!(chunks.len(), 3);
        // Processed in another order than appended.
        let mut parts: Vec<_> = chunks
            .iter()
            .rev()
            .map(|chunk| chunk.look(options))
            .collect();
        let mut total = PartialStats::default();
        while let Some(part) = parts.pop() {
            total.append(&part);
        }
        assert_eq!(
            format!("{whole:?}"),
            format!("{:?}", total.finish()),
            "{dtype}"
        );
        let histogram = total.histogram().unwrap();
        let positive: u64 = histogram.positive.iter().sum();
        let negative: u64 = histogram.negative.iter().sum();
        assert_eq!(
            positive,
            whole.counts.n_positive() - whole.counts.n_pos_inf,
            "{dtype}"
        );
        assert_eq!(
            negative,
            whole.counts.n_negative - whole.counts.n_neg_inf,
            "{dtype}"
        );
    }
}

#[test]
fn histogram_bins() {
    let values = [
        1.0,
        1.99,
        2.0,
        -0.5,
        0.0,
        f32::NAN,
        f32::INFINITY,
        1e-30,
        1e30,
        16_777_216.0,
    ];
    let bytes: Vec<u8> = values.iter().flat_map(|v: &f32| v.to_le_bytes()).collect();
    let chunk = chunks(DType::F32, 10, &bytes).unwrap().next().unwrap();
    assert!(chunk.look(StatsOptions::default()).histogram().is_none());
    let part = chunk.look(StatsOptions {
        has_histogram: true,
    });
    let histogram = part.histogram().unwrap();
    let bins = |bins: &[u64]| -> Vec<(usize, u64)> {
        bins.iter()
            .copied()
            .enumerate()
            .filter(|(_, n)| *n > 0)
            .collect()
    };
    assert_eq!(
        bins(&histogram.positive),
        [(0, 1), (40, 2), (41, 1), (63, 2)]
    );
    assert_eq!(bins(&histogram.negative), [(39, 1)]);
}

#[test]
fn packed_elements_and_narrow_floats() {
    let view = |dtype, shape| move |bytes| TensorView::new(dtype, shape, bytes);
    let shape = Shape::new([3]).unwrap();
    let s = stats(view(DType::I4, &shape)(&[0x87, 0xf1])).unwrap();
    assert_eq!(
        (s.counts.n_elements, s.min, s.max, s.sum),
        (3, -8.0, 7.0, 0.0)
    );
    assert_eq!(
        (
            s.counts.n_saturated,
            s.counts.n_negative,
            s.counts.n_positive()
        ),
        (2, 1, 2)
    );
    let s = stats(view(DType::U4, &shape)(&[0x8f, 0xf0])).unwrap();
    assert_eq!((s.min, s.max, s.sum), (0.0, 15.0, 23.0));
    assert_eq!(
        (s.counts.n_saturated, s.counts.n_zero, s.counts.n_negative),
        (2, 1, 0)
    );
    let s = stats(view(DType::F8E4M3FNUZ, &shape)(&[0x7f, 0xff, 0x80])).unwrap();
    assert_eq!((s.min, s.max, s.counts.n_nan), (-240.0, 240.0, 1));
    assert_eq!(
        (s.counts.n_saturated, s.counts.n_zero, s.counts.n_subnormal),
        (2, 0, 0)
    );
    let s = stats(view(DType::F8E5M2FNUZ, &shape)(&[0x7f, 0x00, 0x83])).unwrap();
    assert_eq!(
        (s.max, s.counts.n_saturated, s.counts.n_subnormal),
        (57_344.0, 1, 1)
    );
    assert_eq!(
        (s.counts.n_zero, s.counts.n_neg_zero, s.counts.n_nan),
        (1, 0, 0)
    );
    let s = stats(view(DType::U1, &shape)(&[0b1011_1111])).unwrap();
    assert_eq!((s.sum, s.counts.n_zero, s.counts.n_saturated), (2.0, 1, 0));
    let s = stats(view(DType::F8E5M2, &shape)(&[0x7b, 0x01, 0xfc])).unwrap();
    assert_eq!(
        (
            s.counts.n_saturated,
            s.counts.n_subnormal,
            s.counts.n_neg_inf
        ),
        (1, 1, 1)
    );
    assert_eq!((s.min, s.max), (f64::NEG_INFINITY, 57_344.0));
    assert!(s.std.is_nan());
}
