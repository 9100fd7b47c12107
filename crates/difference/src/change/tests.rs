use half::f16;
use opscope_tensor::DType;

use super::arrangement::strides;
use super::{AxisPart, ComparedElements, ElementFunction, RoundedFormat, RoundingMode};
use super::{TensorChange, explain};

mod kinds;
mod noise;

/// Numbers without a pattern, the same for a seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normal, with a variance of 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// A number as a dtype stores it.
fn stored(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(x).to_f64(),
        DType::F32 => f64::from(x as f32),
        _ => x,
    }
}

/// Elements like weights: normal, with a mean that is not zero.
fn weights(seed: u64, shape: &[usize], dtype: DType) -> Vec<f64> {
    let mut random = Random::new(seed);
    let n = shape.iter().product();
    (0..n)
        .map(|_| stored(dtype, 0.3 * random.normal() + 0.05))
        .collect()
}

fn elements<'a>(elements: &[f64], shape: &[usize], dtype: DType) -> ComparedElements<'a> {
    ComparedElements::copied(elements.to_vec(), shape, dtype).unwrap()
}

fn found(target: &[f64], golden: &[f64], shape: &[usize], dtype: DType) -> Option<TensorChange> {
    let sides = [target, golden].map(|side| elements(side, shape, dtype));
    explain(&sides[0], &sides[1], 1e-3)
}

/// Golden's elements with those of each place taken from another one, by its index.
fn moved(golden: &[f64], shape: &[usize], source: impl Fn(&mut Vec<usize>)) -> Vec<f64> {
    let strides = strides(shape);
    let places = (0..golden.len()).map(|place| {
        let axes = strides.iter().zip(shape);
        let mut index: Vec<usize> = axes.map(|(stride, dim)| place / stride % dim).collect();
        source(&mut index);
        index
            .iter()
            .zip(&strides)
            .map(|(i, stride)| i * stride)
            .sum::<usize>()
    });
    places.map(|place| golden[place]).collect()
}
