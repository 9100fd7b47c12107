//! Inputs from a seed.

use opscope_tensor::convert::dtype::decode;
use opscope_tensor::{DType, Shape, ShapeError, Tensor};

use super::room::room;
use crate::{InputError, ValueInfo};

/// Numbers from a seed, the same on every machine: splitmix64.
pub struct RandomNumbers(u64);

/// How random bits become elements.
enum ElementMaker {
    /// Whole bytes.
    Whole(fn(&mut RandomNumbers, &mut Vec<u8>)),
    /// One of these codes, of so many bits.
    Codes { codes: Vec<u8>, n_bits: usize },
}

impl RandomNumbers {
    /// Starts a sequence.
    pub fn new(seed: u64) -> RandomNumbers {
        RandomNumbers(seed)
    }

    fn next(&mut self) -> u64 {
        // splitmix64 is written out, since no library promises the same sequence for ever.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A tensor for `value`: floats, and both parts of complex numbers, uniform in [0, 1), as
    /// finely as every number there has all its digits; integers and booleans 0 or 1, which are
    /// valid as indices into any axis of two or more. Of `float8_e8m0`, which has no 0, the powers
    /// of two from 1/8 to 1.
    ///
    /// # Errors
    /// [`InputError::NoRandom`] for text and other types without numbers, [`InputError::TooLarge`]
    /// and [`InputError::Memory`] if the bytes do not fit memory.
    pub fn tensor(&mut self, value: &ValueInfo, shape: Shape) -> Result<Tensor, InputError> {
        let (name, dtype) = (|| value.name.clone(), value.dtype);
        let no_random = || InputError::NoRandom {
            name: name(),
            dtype,
        };
        let n_bytes = match shape.n_bytes(dtype) {
            Err(ShapeError::Unsized(_)) => return Err(no_random()),
            Err(source) => {
                return Err(InputError::TooLarge {
                    name: name(),
                    source,
                });
            }
            Ok(n_bytes) => n_bytes,
        };
        let mut bytes = room(&value.name, n_bytes)?;
        match ElementMaker::for_dtype(dtype).ok_or_else(no_random)? {
            ElementMaker::Whole(add) => (0..shape.n_elements()).for_each(|_| add(self, &mut bytes)),
            ElementMaker::Codes { codes, n_bits } => {
                bytes.resize(n_bytes, 0);
                for i in 0..shape.n_elements() {
                    put(&mut bytes, i * n_bits, self.one_of(&codes));
                }
            }
        }
        Tensor::from_vec(dtype, shape, bytes).map_err(|source| InputError::Size {
            name: name(),
            source,
        })
    }

    fn one_of(&mut self, codes: &[u8]) -> u8 {
        // The high bits scaled to the number of codes: no remainder, whose bias would depend on
        // that number.
        let at = ((self.next() >> 32) * codes.len() as u64) >> 32;
        codes[at as usize]
    }
}

impl ElementMaker {
    fn for_dtype(dtype: DType) -> Option<ElementMaker> {
        macro_rules! integer {
            ($type:ty) => {
                // The highest bit: integers are 0 or 1, which are valid as indices into any axis of
                // two or more.
                |random, out| out.extend(<$type>::from(random.next() >> 63 == 1).to_le_bytes())
            };
        }
        Some(ElementMaker::Whole(match dtype {
            DType::F32 => |random, out| out.extend(unit_f32(random.next()).to_le_bytes()),
            DType::F64 => |random, out| out.extend(unit_f64(random.next()).to_le_bytes()),
            DType::F16 => |random, out| out.extend(half_bits(random.next()).to_le_bytes()),
            DType::BF16 => |random, out| out.extend(brain_bits(random.next()).to_le_bytes()),
            DType::C32 => |random, out| {
                (0..2).for_each(|_| out.extend(half_bits(random.next()).to_le_bytes()));
            },
            DType::C64 => |random, out| {
                (0..2).for_each(|_| out.extend(unit_f32(random.next()).to_le_bytes()));
            },
            DType::C128 => |random, out| {
                (0..2).for_each(|_| out.extend(unit_f64(random.next()).to_le_bytes()));
            },
            DType::Bool | DType::U8 | DType::I8 => integer!(u8),
            DType::U16 | DType::I16 => integer!(u16),
            DType::U32 | DType::I32 => integer!(u32),
            DType::U64 | DType::I64 => integer!(u64),
            other => return ElementMaker::of_codes(other),
        }))
    }

    fn of_codes(dtype: DType) -> Option<ElementMaker> {
        // Numbers in [0, 1) are multiples of one over this.
        use DType::*;
        let n_steps = match dtype {
            F8E4M3FN | F8E4M3FNUZ => 16,
            F8E5M2 | F8E5M2FNUZ | HiF8 | F6E3M2 | F6E2M3 => 8,
            F4E1M2 => 4,
            F4E2M1 => 2,
            F8E8M0 => {
                return Some(ElementMaker::Codes {
                    // The exponents of 1/8 to 1; the type has no zero.
                    codes: (124..=127).collect(),
                    n_bits: 8,
                });
            }
            I4 | U4 | I2 | U2 => {
                return Some(ElementMaker::Codes {
                    codes: vec![0, 1],
                    n_bits: dtype.bits()? as usize,
                });
            }
            Undefined | F32 | F16 | I8 | U8 | I16 | U16 | I32 | I64 | U32 | U64 | Bool | F64
            | String | DualSubI8 | DualSubU8 | C64 | C128 | QI8 | QI16 | QI32 | QU8 | QU16
            | Resource | StringRef | Dual | Variant | BF16 | U1 | C32 | HiF4 | HiF4Scale => {
                return None;
            }
        };
        let n_bits = dtype.bits()? as usize;
        let codes = (0..=u8::MAX >> (8 - n_bits))
            .filter(|code| {
                value(dtype, *code).is_some_and(|value| {
                    (0.0..1.0).contains(&value)
                        && value.is_sign_positive()
                        && (value * f64::from(n_steps)).fract() == 0.0
                })
            })
            .collect();
        Some(ElementMaker::Codes { codes, n_bits })
    }
}

/// The value of a code of a float of at most eight bits.
fn value(dtype: DType, code: u8) -> Option<f64> {
    let bytes = [code];
    let decoded = decode(dtype, &Shape::scalar(), &bytes).ok()?;
    let half = <[u8; 2]>::try_from(&*decoded.bytes).ok()?;
    Some(half::f16::from_le_bytes(half).to_f64())
}

/// Sets the bits from `at` on, which are zero.
fn put(bytes: &mut [u8], at: usize, code: u8) {
    let [low, high] = (u16::from(code) << (at % 8)).to_le_bytes();
    bytes[at / 8] |= low;
    if high != 0 {
        bytes[at / 8 + 1] |= high;
    }
}

fn unit_f32(bits: u64) -> f32 {
    // As many bits as the significand has: every number is exact, and 1 is never reached.
    (bits >> 40) as f32 / (1_u32 << 24) as f32
}

fn unit_f64(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// A float16 in [0, 1): eleven random bits over 2048, as bits of the format.
fn half_bits(bits: u64) -> u16 {
    let n = (bits >> 53) as u16;
    if n == 0 {
        return 0;
    }
    // n / 2048 = 1.m · 2^(exponent): normalise by hand, all such values are exact in float16.
    let lead = 15 - n.leading_zeros() as u16;
    let mantissa = (n << (10 - lead.min(10))) & 0x3ff;
    (lead + 15 - 11) << 10 | mantissa
}

/// A bfloat16 in [0, 1): eight random bits over 256, which it holds exactly.
fn brain_bits(bits: u64) -> u16 {
    half::bf16::from_f32((bits >> 56) as f32 / 256.0).to_bits()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use opscope_tensor::stats;

    use super::*;

    fn value_of(dtype: DType) -> ValueInfo {
        ValueInfo {
            name: "x".into(),
            dtype,
            dims: None,
        }
    }

    fn random(dtype: DType, n: usize) -> Result<Tensor, InputError> {
        RandomNumbers::new(7).tensor(&value_of(dtype), Shape::new([n]).unwrap())
    }

    #[test]
    fn random_values_are_in_range_and_repeatable() {
        use DType::*;
        let numbers = [
            F32, F64, F16, BF16, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F6E3M2, F6E2M3, F4E1M2,
            F4E2M1, HiF8, I64, U8, Bool, I4, U4, I2, U2,
        ];
        for dtype in numbers {
            let tensor = random(dtype, 5001).unwrap();
            let s = stats(tensor.host_view().unwrap()).unwrap();
            let mean = match dtype {
                // Steps of a half and a quarter do not come near 1.
                F4E2M1 => 0.25,
                F4E1M2 => 0.375,
                F8E5M2 | F8E5M2FNUZ | F6E3M2 | F6E2M3 | HiF8 => 0.4375,
                F8E4M3FN | F8E4M3FNUZ => 0.46875,
                _ => 0.5,
            };
            assert!(
                s.min >= 0.0 && s.max <= 1.0 && (s.mean - mean).abs() < 0.03,
                "{dtype}: {s:?}"
            );
            assert_eq!(
                tensor.host_bytes().unwrap(),
                random(dtype, 5001).unwrap().host_bytes().unwrap()
            );
            assert!(!s.has_non_finite());
            assert_eq!(s.counts.n_neg_zero, 0);
        }
        let s = stats(random(F8E8M0, 100).unwrap().host_view().unwrap()).unwrap();
        assert_eq!((s.min, s.max), (0.125, 1.0));
        for dtype in [C32, C64, C128] {
            assert!(random(dtype, 9).is_ok());
        }
        for dtype in [String, Undefined, Variant, U1] {
            assert!(random(dtype, 1).is_err(), "{dtype}");
        }
    }

    #[test]
    fn the_sequence_stays_what_it_was() {
        let tensor = random(DType::F32, 2).unwrap();
        let first = unit_f32(RandomNumbers::new(7).next()).to_le_bytes();
        assert_eq!(tensor.host_bytes().unwrap()[..4], first);
        assert_eq!(
            random(DType::I64, 1).unwrap().host_bytes().unwrap()[1..],
            [0; 7]
        );
    }

    #[test]
    fn every_step_is_taken() {
        for (dtype, n) in [
            (DType::F8E4M3FN, 16),
            (DType::F8E5M2FNUZ, 8),
            (DType::F4E2M1, 2),
        ] {
            let Some(ElementMaker::Codes { codes, .. }) = ElementMaker::for_dtype(dtype) else {
                panic!("{dtype}")
            };
            assert_eq!(codes.len(), n, "{dtype}");
            let values = codes.iter().map(|c| value(dtype, *c).map(f64::to_bits));
            let values: BTreeSet<_> = values.collect();
            let expected = (0..n).map(|k| Some((k as f64 / n as f64).to_bits()));
            assert_eq!(values, expected.collect(), "{dtype}");
        }
    }
}
