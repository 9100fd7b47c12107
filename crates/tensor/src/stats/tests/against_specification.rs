//! The code that runs against the specification, bit for bit, on every machine that the CPU has.

use super::specification::{self, PlainElement};
use crate::DType;
use crate::cpu::{self, LaneMachine, LaneTask};
use crate::stats::block::{BLOCK, StatsBlock};
use crate::stats::kind::StatsKind;

#[derive(Clone)]
struct Blocks<'a> {
    kind: StatsKind,
    bytes: &'a [u8],
}

impl LaneTask for Blocks<'_> {
    type Output = Vec<StatsBlock>;

    #[inline(always)]
    fn run<M: LaneMachine>(self, m: M) -> Vec<StatsBlock> {
        let mut blocks = Vec::new();
        let n_elements = self.bytes.len() * 8 / self.kind.bits();
        let Blocks { kind, bytes, .. } = self;
        kind.blocks(m, bytes, n_elements, &mut (), &mut |block| {
            blocks.push(*block);
        });
        blocks
    }
}

/// Elements as the specification wants them, and the smallest normal number.
fn elements(dtype: DType, bytes: &[u8]) -> (Vec<PlainElement>, f64) {
    macro_rules! integers {
        ($int:ty) => {{
            let ends = if dtype == DType::Bool {
                None
            } else {
                Some([<$int>::MIN, <$int>::MAX])
            };
            let element = |&b| {
                let value = <$int>::from_le_bytes(b);
                let is_saturated = ends.is_some_and(|ends| ends.contains(&value));
                PlainElement {
                    value: value as f64,
                    is_saturated,
                }
            };
            (bytes.as_chunks().0.iter().map(element).collect(), 0.0)
        }};
    }
    macro_rules! floats {
        ($float:ty, $to_f64:expr) => {{
            let largest = $to_f64(<$float>::MAX);
            let element = |&b| {
                let value: f64 = $to_f64(<$float>::from_le_bytes(b));
                PlainElement {
                    value,
                    is_saturated: value.abs() == largest,
                }
            };
            let elements = bytes.as_chunks().0.iter().map(element).collect();
            (elements, $to_f64(<$float>::MIN_POSITIVE))
        }};
    }
    match dtype {
        DType::F16 => floats!(half::f16, half::f16::to_f64),
        DType::BF16 => floats!(half::bf16, half::bf16::to_f64),
        DType::F32 => floats!(f32, f64::from),
        DType::F64 => floats!(f64, |value| value),
        DType::Bool | DType::U8 => integers!(u8),
        DType::I8 => integers!(i8),
        DType::I16 => integers!(i16),
        DType::U16 => integers!(u16),
        DType::I32 => integers!(i32),
        DType::U32 => integers!(u32),
        DType::I64 => integers!(i64),
        DType::U64 => integers!(u64),
        other => panic!("{other}"),
    }
}

const DTYPES: [DType; 13] = [
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::Bool,
    DType::U8,
    DType::I8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
];

fn check(dtype: DType, bytes: &[u8], case: &str) {
    let kind = StatsKind::for_dtype(dtype).unwrap();
    let width = dtype.bytes().unwrap();
    let expected: Vec<StatsBlock> = bytes
        .chunks(BLOCK * width)
        .map(|bytes| {
            let (elements, smallest_normal) = elements(dtype, bytes);
            specification::block(&elements, smallest_normal)
        })
        .collect();
    for (i, found) in cpu::run_everywhere(&Blocks { kind, bytes })
        .iter()
        .enumerate()
    {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            // As text, in which -0 differs from 0 and all NaN are equal.
            let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
            assert_eq!(
                found,
                expected,
                "{dtype}, {case}, {} bytes, machine {i}",
                bytes.len()
            );
        }
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let x = self.0 ^ (self.0 >> 33);
        x.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ (x >> 29)
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| (self.next() >> 56) as u8).collect()
    }
}

/// Bits of `float64` that need care, to be narrowed to other dtypes.
const SPECIAL: [f64; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    1e-310,
    65504.0,
    -65504.0,
    6e-8,
    6.2e-5,
    3.402_823_466_385_288_6e38,
    -3.389_531_389_251_535_5e38,
    1e-40,
    1.175_494_350_822_287_5e-38,
    1e200,
    1e-200,
    -1e160,
];

/// The bytes of a value in a float dtype, or of its bits cut down in an integer dtype.
fn encode(dtype: DType, value: f64) -> Vec<u8> {
    match dtype {
        DType::F16 => half::f16::from_f64(value).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(value).to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::F64 => value.to_le_bytes().to_vec(),
        DType::U8 | DType::Bool => (value as u8).to_le_bytes().to_vec(),
        DType::I8 => (value as i8).to_le_bytes().to_vec(),
        DType::U16 => (value as u16).to_le_bytes().to_vec(),
        DType::I16 => (value as i16).to_le_bytes().to_vec(),
        DType::U32 => (value as u32).to_le_bytes().to_vec(),
        DType::I32 => (value as i32).to_le_bytes().to_vec(),
        DType::U64 => (value as u64).to_le_bytes().to_vec(),
        _ => (value as i64).to_le_bytes().to_vec(),
    }
}

fn encoded(dtype: DType, values: impl Iterator<Item = f64>) -> Vec<u8> {
    values.flat_map(|value| encode(dtype, value)).collect()
}

#[test]
fn every_short_length_at_every_address() {
    let mut random = Random(1);
    for dtype in DTYPES {
        let width = dtype.bytes().unwrap();
        for n in 0..=130 {
            for offset in [0, 1, 3] {
                let bytes = random.bytes(offset + n * width);
                check(dtype, &bytes[offset..], "random bits");
                let normal = (0..n).map(|_| (random.next() >> 40) as f64 / 65536.0 - 100.0);
                let bytes = encoded(dtype, normal);
                check(dtype, &bytes, "ordinary values");
            }
        }
    }
}

#[test]
fn special_values_at_every_place() {
    let mut random = Random(2);
    for dtype in DTYPES {
        for special in SPECIAL {
            check(
                dtype,
                &encoded(dtype, std::iter::repeat_n(special, 33)),
                "all the same",
            );
            for at in [0, 7, 15, 16, 31, 40] {
                let values = (0..41).map(|i| {
                    if i == at {
                        special
                    } else {
                        2.5 * f64::from(i) - 50.0
                    }
                });
                check(dtype, &encoded(dtype, values), "one among others");
                let values = (0..41).map(|i| {
                    if i == at {
                        special
                    } else {
                        -3.0 - f64::from(i)
                    }
                });
                check(dtype, &encoded(dtype, values), "one among negative ones");
            }
        }
        for _ in 0..200 {
            let n = random.next() % 90;
            let values: Vec<f64> = (0..n)
                .map(|_| SPECIAL[(random.next() % SPECIAL.len() as u64) as usize])
                .collect();
            check(
                dtype,
                &encoded(dtype, values.into_iter()),
                "special ones only",
            );
        }
    }
}

#[test]
fn whole_blocks_of_every_character() {
    let mut random = Random(3);
    for dtype in DTYPES {
        let width = dtype.bytes().unwrap();
        for n in [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 77] {
            check(dtype, &random.bytes(n * width), "random bits");
            let mut unit = || (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
            let uniform: Vec<f64> = (0..n).map(|_| unit() * 200.0 - 100.0).collect();
            let of = |f: fn(f64) -> f64| encoded(dtype, uniform.iter().map(|&v| f(v)));
            check(dtype, &of(|v| v), "uniform");
            check(dtype, &of(|v| v.max(0.0)), "half zeros");
            check(dtype, &of(|v| v / 1e4 + 1000.0), "far from zero");
            check(dtype, &of(|_| 77.0), "constant");
            check(dtype, &of(|v| v * 1e-39), "subnormal float32");
            check(dtype, &of(|v| v * 1e-6), "subnormal float16");
            check(dtype, &of(|v| v * 1e180), "large float64");
            check(dtype, &of(|v| v * 1e-180), "small float64");
            check(dtype, &of(|v| v * 1.7e306), "overflowing sums");
            check(
                dtype,
                &of(|v| if v > 99.0 { f64::NAN } else { v + 1000.0 }),
                "some NaN",
            );
            check(
                dtype,
                &of(|v| {
                    if v > 99.0 {
                        f64::NEG_INFINITY
                    } else {
                        v * 1e-200
                    }
                }),
                "some inf",
            );
            check(dtype, &of(|_| f64::NAN), "all NaN");
            check(dtype, &vec![0xff; n * width], "all bits set");
        }
    }
}

#[test]
fn codes_agree_with_the_specification_up_to_rounding() {
    let mut random = Random(4);
    for &dtype in DType::ALL {
        let Some(kind @ StatsKind::Codes(values)) = StatsKind::for_dtype(dtype) else {
            continue;
        };
        for n_bytes in [0, 1, 2, 3, 5, 8, 100, 3003] {
            let bytes = random.bytes(n_bytes);
            let n_elements = n_bytes * 8 / values.n_bits;
            let mut elements = Vec::new();
            kind.each(n_elements, &bytes, |value| {
                let is_saturated = values.is_saturated(value);
                elements.push(PlainElement {
                    value,
                    is_saturated,
                });
            });
            assert_eq!(elements.len(), n_elements);
            let expected = specification::block(&elements, values.smallest_normal);
            for found in cpu::run_everywhere(&Blocks {
                kind,
                bytes: &bytes,
            }) {
                let [found] = found[..] else {
                    panic!("{found:?}")
                };
                let close = |a: f64, b: f64, scale: f64| (a - b).abs() <= 1e-13 * scale;
                let magnitudes = expected.sum_of_magnitudes;
                assert!(close(found.sum, expected.sum, magnitudes), "{dtype}");
                assert!(
                    close(found.sum_of_magnitudes, magnitudes, magnitudes),
                    "{dtype}"
                );
                let squares = expected.sum_of_squares;
                assert!(close(found.sum_of_squares, squares, squares), "{dtype}");
                assert!(
                    close(found.deviation, expected.deviation, squares),
                    "{dtype}"
                );
                let same = StatsBlock {
                    sum: expected.sum,
                    sum_of_magnitudes: magnitudes,
                    sum_of_squares: squares,
                    deviation: expected.deviation,
                    ..found
                };
                assert_eq!(format!("{same:?}"), format!("{expected:?}"), "{dtype}");
            }
        }
    }
}
