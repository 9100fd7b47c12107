//! Rounding a tensor's floats to the values that a narrower format has, in their own dtype.
//!
//! The result is that of a cast to the format and back: each element is rounded once, to the
//! nearest value, ties to the one whose last bit is 0, and then stored as it was. Where the
//! tensor's own dtype lacks that value, as float16 lacks most of bfloat16's range, storing rounds
//! again.
//!
//! | format | beyond the largest value | NaN |
//! | --- | --- | --- |
//! | `float16`, `bfloat16` | infinite, as IEEE 754 has it | NaN |
//! | `float8_e4m3` | ±448, infinities too, as ONNX's `Cast` does unless told otherwise | NaN |
//! | `int8` | ±127 steps, infinities too | NaN, so that it is noticed |
//!
//! An `int8` is a number of steps. The step is the largest finite magnitude of the tensor, or of a
//! channel of it, divided by 127: symmetric, so that zero stays zero. That is the `QuantizeLinear` of
//! ONNX with a zero point of 0, whose -128 nothing reaches. Steps are computed in the tensor's own
//! dtype if it is float64, else in float32. Without a step, as all finite elements are zero or so
//! small that the quotient vanishes, elements stay as they are.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use half::{bf16, f16};

use crate::DType;

/// Steps of `int8` on either side of zero.
const N_STEPS: f64 = 127.0;
/// The numbers from which on float16 and bfloat16 are infinite: half a step beyond the largest.
const HALF_END: f64 = 65520.0;
const BFLOAT_END: f64 = (2.0 - 1.0 / 256.0) * (1_u128 << 127) as f64;
/// The largest value of float8 E4M3FN.
const E4M3_MAX: f64 = 448.0;
/// The exponent of its smallest normal value.
const E4M3_MIN_EXPONENT: i32 = -6;
/// Bits of its mantissa that are stored.
const E4M3_MANTISSA_BITS: i32 = 3;

/// The parts of a tensor that have an `int8` step each: `n_channels` in turn, of `n_inner` elements
/// at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    n_channels: usize,
    n_inner: usize,
}

impl Channels {
    /// The whole tensor has one step.
    pub const WHOLE: Channels = Channels {
        n_channels: 1,
        n_inner: usize::MAX,
    };

    /// A channel for each index of these axes of a shape, from `axes.start` to before `axes.end`.
    /// The whole tensor is one channel if the range is empty or beyond the shape.
    pub fn along(shape: &[usize], axes: Range<usize>) -> Channels {
        let channels = shape.get(axes.clone()).filter(|dims| !dims.is_empty());
        let [n_channels, n_inner] = [channels, shape.get(axes.end..)].map(|dims| {
            let mut dims = dims?.iter();
            dims.try_fold(1_usize, |n, dim| n.checked_mul(*dim))
        });
        match (n_channels, n_inner) {
            // A tensor without elements has nothing to round.
            (Some(0), _) | (_, Some(0) | None) | (None, _) => Channels::WHOLE,
            (Some(n_channels), Some(n_inner)) => Channels {
                n_channels,
                n_inner,
            },
        }
    }

    fn n_inner_of(self, n_elements: usize) -> usize {
        self.n_inner.min(n_elements.max(1))
    }
}

/// A format that floats are rounded to.
///
/// ```
/// use opscope_tensor::{DType, RoundingFormat};
///
/// let mut bytes = 0.1_f32.to_le_bytes();
/// assert!(RoundingFormat::Bfloat16.round(DType::F32, &mut bytes));
/// assert_eq!(f32::from_le_bytes(bytes), 0.100_097_656);
/// assert_eq!("int8".parse(), Ok(RoundingFormat::Int8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoundingFormat {
    /// IEEE 754 binary16.
    Float16,
    /// The range of float32 with 8 bits of precision.
    Bfloat16,
    /// ONNX's `FLOAT8E4M3FN`, which has no infinities.
    Float8E4M3,
    /// Integers of eight bits, with one step for the tensor or for each channel.
    Int8,
}

impl RoundingFormat {
    /// All of them, those with more precision first.
    pub const ALL: [RoundingFormat; 4] = [
        RoundingFormat::Float16,
        RoundingFormat::Bfloat16,
        RoundingFormat::Float8E4M3,
        RoundingFormat::Int8,
    ];

    /// The word for it in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            RoundingFormat::Float16 => "float16",
            RoundingFormat::Bfloat16 => "bfloat16",
            RoundingFormat::Float8E4M3 => "float8_e4m3",
            RoundingFormat::Int8 => "int8",
        }
    }

    /// Whether elements of this dtype are rounded: float32, float64, float16 and bfloat16 are.
    pub fn applies_to(dtype: DType) -> bool {
        matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16)
    }

    /// Rounds little-endian elements of a whole tensor in place; returns whether they are of a
    /// dtype [that is rounded](Self::applies_to). Others stay as they are, and so do bytes after
    /// the last complete element.
    pub fn round(self, dtype: DType, bytes: &mut [u8]) -> bool {
        self.round_channels(dtype, Channels::WHOLE, bytes)
    }

    /// Whether rounding would turn a finite element into an infinity. Formats that end at their
    /// largest number have no infinity, and the largest numbers of the dtype itself count as
    /// infinities, as in masks.
    pub fn is_beyond(self, dtype: DType, bytes: &[u8]) -> bool {
        let end = match self {
            RoundingFormat::Float16 => HALF_END,
            RoundingFormat::Bfloat16 => BFLOAT_END,
            RoundingFormat::Float8E4M3 | RoundingFormat::Int8 => return false,
        };
        let is_it = |x: f64, largest: f64| (end..largest).contains(&x.abs());
        match dtype {
            DType::F32 => {
                let mut elements = bytes.as_chunks().0.iter();
                elements.any(|element| is_it(f32::from_le_bytes(*element).into(), f32::MAX.into()))
            }
            DType::F64 => {
                let mut elements = bytes.as_chunks().0.iter();
                elements.any(|element| is_it(f64::from_le_bytes(*element), f64::MAX))
            }
            DType::BF16 => {
                let mut elements = bytes.as_chunks().0.iter();
                elements.any(|element| {
                    is_it(bf16::from_le_bytes(*element).to_f64(), bf16::MAX.to_f64())
                })
            }
            _ => false,
        }
    }

    /// Like [`round`](Self::round), but an `int8` has a step for each channel. Other formats round
    /// each element separately.
    pub fn round_channels(self, dtype: DType, channels: Channels, bytes: &mut [u8]) -> bool {
        match dtype {
            DType::F32 => self.round_all(channels, bytes, f32::from_le_bytes, f32::to_le_bytes),
            DType::F16 => self.round_all(
                channels,
                bytes,
                |element| f16::from_le_bytes(element).to_f32(),
                |value| f16::from_f32(value).to_le_bytes(),
            ),
            DType::BF16 => self.round_all(
                channels,
                bytes,
                |element| bf16::from_le_bytes(element).to_f32(),
                |value| bf16::from_f32(value).to_le_bytes(),
            ),
            DType::F64 => self.round_doubles(channels, bytes),
            _ => return false,
        }
        true
    }

    /// Rounds elements that `read` converts to float32 without loss.
    fn round_all<const N: usize>(
        self,
        channels: Channels,
        bytes: &mut [u8],
        read: fn([u8; N]) -> f32,
        store: fn(f32) -> [u8; N],
    ) {
        let elements = bytes.as_chunks_mut::<N>().0;
        let n_inner = channels.n_inner_of(elements.len());
        let mut largest = vec![0.0_f32; channels.n_channels.max(1)];
        let mut steps = Vec::new();
        // Only int8 looks at the whole tensor before it rounds; the others skip this pass.
        if self == RoundingFormat::Int8 {
            for (i, run) in elements.chunks(n_inner).enumerate() {
                let finite = run.iter().map(|element| read(*element).abs());
                let channel = i % largest.len();
                largest[channel] = finite
                    .filter(|x| x.is_finite())
                    .fold(largest[channel], f32::max);
            }
            steps.extend(largest.iter().map(|largest| largest / N_STEPS as f32));
        }
        // Channels repeat in turn for each index of the axes before them.
        for (i, run) in elements.chunks_mut(n_inner).enumerate() {
            let step = steps.get(i % largest.len()).copied().unwrap_or(0.0);
            for element in run {
                let x = read(*element);
                *element = store(match self {
                    RoundingFormat::Float16 => f16::from_f32(x).to_f32(),
                    RoundingFormat::Bfloat16 => bf16::from_f32(x).to_f32(),
                    RoundingFormat::Float8E4M3 => e4m3(x.into()) as f32,
                    // Without a step there is nothing to count in.
                    RoundingFormat::Int8 if step == 0.0 => x,
                    RoundingFormat::Int8 => {
                        let n_steps = (x / step).round_ties_even();
                        n_steps.clamp(-N_STEPS as f32, N_STEPS as f32) * step
                    }
                });
            }
        }
    }

    fn round_doubles(self, channels: Channels, bytes: &mut [u8]) {
        let elements = bytes.as_chunks_mut::<8>().0;
        let n_inner = channels.n_inner_of(elements.len());
        let mut steps = vec![0.0_f64; channels.n_channels.max(1)];
        let n_channels = steps.len();
        for (i, run) in elements.chunks(n_inner).enumerate() {
            let finite = run.iter().map(|b| f64::from_le_bytes(*b).abs());
            let largest = &mut steps[i % n_channels];
            *largest = finite.filter(|x| x.is_finite()).fold(*largest, f64::max);
        }
        for step in &mut steps {
            *step /= N_STEPS;
        }
        for (i, run) in elements.chunks_mut(n_inner).enumerate() {
            let step = steps[i % n_channels];
            for element in run {
                let x = f64::from_le_bytes(*element);
                let rounded = match self {
                    RoundingFormat::Float16 => f16::from_f32(to_odd(x)).to_f64(),
                    RoundingFormat::Bfloat16 => bf16::from_f32(to_odd(x)).to_f64(),
                    RoundingFormat::Float8E4M3 => e4m3(x),
                    RoundingFormat::Int8 if step == 0.0 => x,
                    RoundingFormat::Int8 => {
                        let n_steps = (x / step).round_ties_even();
                        n_steps.clamp(-N_STEPS, N_STEPS) * step
                    }
                };
                *element = rounded.to_le_bytes();
            }
        }
    }
}

impl fmt::Display for RoundingFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RoundingFormat {
    type Err = String;

    /// # Errors
    /// Text that names the words that are allowed.
    fn from_str(text: &str) -> Result<RoundingFormat, String> {
        let found = RoundingFormat::ALL
            .into_iter()
            .find(|format| format.name() == text);
        found.ok_or_else(|| {
            let names = RoundingFormat::ALL.map(RoundingFormat::name);
            format!("expected one of {}", names.join(", "))
        })
    }
}

/// The nearest value of float8 E4M3FN; larger values become the largest one.
fn e4m3(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() {
        return x;
    }
    // A double that is subnormal has an exponent field of 0, which is below every limit here.
    let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let last_place = exponent.clamp(E4M3_MIN_EXPONENT, 9) - E4M3_MANTISSA_BITS;
    // A power of two changes no digit, so that rounding to an integer is the only rounding.
    let unit = 2_f64.powi(last_place);
    ((x / unit).round_ties_even() * unit).clamp(-E4M3_MAX, E4M3_MAX)
}

/// The float32 towards zero, with its last bit set if that is inexact. Rounding it again, to at
/// most 22 bits, equals rounding the double directly.
fn to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    if f64::from(nearest) == x || x.is_nan() {
        return nearest;
    }
    // Bits of one sign are in the order of their magnitudes, and one less than infinity is the
    // largest number.
    let is_beyond = f64::from(nearest).abs() > x.abs();
    f32::from_bits((nearest.to_bits() - u32::from(is_beyond)) | 1)
}

#[cfg(test)]
mod tests;
