//! Tensors that are hard: every bit pattern, ends of ranges, borders of blocks and lanes.

use proptest::prelude::*;
use source::BLOCK;

use super::*;
use crate::convert::dtype::numpy_dtype;

/// Numbers of elements around lanes and blocks.
const LENGTHS: [usize; 14] = [
    0,
    1,
    2,
    15,
    16,
    17,
    31,
    33,
    255,
    BLOCK - 1,
    BLOCK,
    BLOCK + 1,
    2 * BLOCK + 17,
    3 * BLOCK,
];

const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

fn with_values() -> impl Iterator<Item = DType> {
    let all = DType::ALL.iter().copied();
    all.filter(|&dtype| numpy_dtype(dtype).is_some())
}

fn random(dtype: DType, n: usize, seed: u64) -> Case {
    let mut next = bits(seed);
    let n_bytes = (n * dtype.bits().unwrap_or(8) as usize).div_ceil(8);
    let bytes = (0..n_bytes).map(|_| (next() >> 33) as u8).collect();
    Case::new(dtype, n, bytes)
}

/// The same with some bytes changed, in a separate block now and then.
fn disturbed(case: &Case, seed: u64) -> Case {
    let mut next = bits(seed);
    let mut other = case.clone();
    for (i, byte) in other.bytes.iter_mut().enumerate() {
        let is_quiet = (i >> 13) % 2 == 1;
        if !is_quiet && next() >> 60 == 0 {
            *byte ^= 1 << (next() >> 61);
        }
    }
    other
}

#[test]
fn every_dtype_at_every_length() {
    for dtype in with_values() {
        for (i, n) in LENGTHS.into_iter().enumerate() {
            let a = random(dtype, n, i as u64);
            check(&a, &a);
            check(&a, &disturbed(&a, 7));
            check(&a, &random(dtype, n, 99));
        }
    }
}

#[test]
fn every_pair_of_dtypes() {
    let n = BLOCK + 21;
    for a in with_values() {
        for b in with_values() {
            // Complex numbers are two elements each.
            let n_parts = |dtype: DType| match dtype {
                DType::C32 | DType::C64 | DType::C128 => 2,
                _ => 1,
            };
            let (n_a, n_b) = (2 * n / n_parts(a), 2 * n / n_parts(b));
            check(&random(a, n_a, 3), &random(b, n_b, 4));
        }
    }
}

/// A name and what makes element `i` of both sides from a number between -1 and 1.
type Maker = fn(usize, f64) -> (f64, f64);

const MAKERS: [(&str, Maker); 21] = [
    ("noise", |_, v| (v * (1.0 + v * 1e-3), v)),
    ("little noise", |_, v| (v * (1.0 + 1e-9 * v), v)),
    ("equal", |_, v| (v, v)),
    ("opposite", |_, v| (-v, v)),
    ("unrelated", |i, v| (if i % 3 == 0 { v * v } else { -v }, v)),
    ("alternating", |i, _| {
        if i % 2 == 0 { (1.0, -1.0) } else { (-1.0, 1.0) }
    }),
    ("large mean", |_, v| (1e6 + v, 1e6 + v * 0.5)),
    ("huge", |i, v| {
        (3e38 * v, if i % 2 == 0 { 3e38 * v } else { -3e38 * v })
    }),
    ("denormal", |_, v| (v * 1e-40, v * 1.1e-40)),
    ("half's denormal", |_, v| (v * 1e-5, v * 1.1e-5)),
    ("constants", |_, _| (0.1, 0.3)),
    ("a constant", |_, v| (0.1, v)),
    ("zeros", |_, _| (0.0, -0.0)),
    ("zero golden", |_, v| (v, 0.0)),
    ("zero target", |_, v| (0.0, v)),
    ("some zero golden", |i, v| {
        (v, if i % 5 == 0 { 0.0 } else { v * 1.01 })
    }),
    ("NaN in the same places", |i, v| {
        if i % 7 == 3 {
            (f64::NAN, f64::NAN)
        } else {
            (v, v * 1.5)
        }
    }),
    ("NaN in the target", |i, v| {
        (if i % 1000 == 900 { f64::NAN } else { v }, v)
    }),
    ("masked", |i, v| {
        let masked = if i % 2 == 0 { f64::NEG_INFINITY } else { v };
        (masked, if i == 4000 { f64::INFINITY } else { masked })
    }),
    ("nothing finite", |i, _| {
        (f64::NAN, if i % 2 == 0 { f64::NAN } else { f64::INFINITY })
    }),
    ("all decades", |i, v| {
        (v * (1.0 + 10f64.powi((i % 19) as i32 - 14)), v)
    }),
];

fn made(maker: Maker, n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut next = bits(5);
    let pair = |i| maker(i, (next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0);
    (0..n).map(pair).unzip()
}

#[test]
fn kinds_of_differences() {
    for (name, maker) in MAKERS {
        for n in [1, 5, 16, 3 * BLOCK + 5] {
            let (a, b) = made(maker, n);
            for target in FLOATS {
                for golden in FLOATS {
                    check_named(
                        name,
                        &Case::from_values(target, &a),
                        &Case::from_values(golden, &b),
                    );
                }
            }
        }
    }
}

#[test]
fn doubles_out_of_the_range_of_their_squares() {
    let ends = [
        f64::MAX,
        f64::MIN,
        1.7e308,
        1e300,
        -1e200,
        1e150,
        1.0,
        -1e-150,
        1e-200,
        -1e-300,
        f64::MIN_POSITIVE,
        5e-324,
        0.0,
    ];
    for scale in [1.0, 1e-160, 1e-250, 1e-300] {
        for (i, &x) in ends.iter().enumerate() {
            for &y in &ends[i..] {
                let mix = |seed: u64, n: usize| -> Vec<f64> {
                    let mut next = bits(seed);
                    let pick = |bit: u64| if bit >> 63 == 0 { x } else { y };
                    (0..n).map(|_| pick(next()) * scale).collect()
                };
                for n in [1, 3, 40] {
                    let (a, b) = (mix(1, n), mix(2, n));
                    check(
                        &Case::from_values(DType::F64, &a),
                        &Case::from_values(DType::F64, &b),
                    );
                }
                // Blocks of different ranges.
                let long = [vec![x * scale; BLOCK], vec![y * scale; BLOCK], mix(3, 9)].concat();
                let short: Vec<f64> = long.iter().map(|v| v * 0.5).collect();
                check(
                    &Case::from_values(DType::F64, &long),
                    &Case::from_values(DType::F64, &short),
                );
            }
        }
    }
}

#[test]
fn integers_with_more_digits_than_doubles() {
    let near = |i: usize| (1i64 << 53) + (i % 5) as i64;
    let bytes = |of: &dyn Fn(usize) -> [u8; 8]| (0..BLOCK + 3).flat_map(of).collect::<Vec<u8>>();
    let case = |dtype, bytes| Case::new(dtype, BLOCK + 3, bytes);
    let a = case(DType::I64, bytes(&|i| near(i).to_le_bytes()));
    let b = case(
        DType::I64,
        bytes(&|i| (near(i) + i64::from(i == 7)).to_le_bytes()),
    );
    let found = check(&a, &b);
    assert_eq!((found.n_equal, found.max_abs), (BLOCK as u64 + 2, 1.0));
    assert_eq!(found.worst.unwrap().index, 7);
    let far = case(DType::U64, bytes(&|i| (u64::MAX - i as u64).to_le_bytes()));
    let minus = case(DType::I64, bytes(&|i| (-1 - i as i64).to_le_bytes()));
    let found = check(&far, &minus);
    assert_eq!((found.n_equal, found.n_sign_flips), (0, BLOCK as u64 + 3));
    assert_eq!(found.max_abs, 2f64.powi(64));
    check(
        &far,
        &case(
            DType::U64,
            bytes(&|i| (u64::MAX - 2 * i as u64).to_le_bytes()),
        ),
    );
    check(
        &minus,
        &case(DType::Resource, bytes(&|i| (-(i as i64)).to_le_bytes())),
    );
    check(&minus, &random(DType::I8, BLOCK + 3, 1));
    check(&random(DType::F32, BLOCK + 3, 1), &far);
}

/// Blocks that are recognised by their bytes count as any others.
#[test]
fn equal_blocks_count_like_others() {
    for (name, maker) in MAKERS {
        let (a, _) = made(maker, 2 * BLOCK + 100);
        let narrow = Case::from_values(DType::F32, &a);
        let values: Vec<f64> = a.iter().map(|&v| f64::from(v as f32)).collect();
        let (same, wide) = (
            check(&narrow, &narrow),
            Case::from_values(DType::F64, &values),
        );
        let decoded = difference(narrow.view(), wide.view(), OPTIONS).unwrap();
        let decoded = TensorDifference {
            is_identical: true,
            ..decoded
        };
        assert_eq!(format!("{same:?}"), format!("{decoded:?}"), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_bytes_as_any_dtypes(
        a in 0..DType::ALL.len(),
        b in 0..DType::ALL.len(),
        n in 0usize..5000,
        seed in any::<u64>(),
        is_close in any::<bool>(),
    ) {
        let dtypes = [DType::ALL[a], DType::ALL[if is_close { a } else { b }]];
        prop_assume!(dtypes.iter().all(|&dtype| numpy_dtype(dtype).is_some()));
        let target = random(dtypes[0], n, seed);
        let golden = if is_close { disturbed(&target, seed) } else { random(dtypes[1], n, !seed) };
        match difference(target.view(), golden.view(), OPTIONS) {
            Ok(_) => { check(&target, &golden); }
            // Complex numbers have twice as many elements.
            Err(error) => prop_assert_eq!(
                Err(error),
                specification::difference(target.view(), golden.view(), OPTIONS)
            ),
        }
    }
}
