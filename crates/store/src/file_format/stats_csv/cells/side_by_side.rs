//! Averages of several tensors by their rule, at the same time.
//!
//! The rule divides once for each element, and each division waits for the one before it. Those of
//! different tensors wait for nothing, so a processor has several of them under way at once.

use opscope_tensor::{DType, TensorView};

use super::element::CellElement;

/// Tensors at a time.
const LANES: usize = 8;
/// Elements of each tensor that are decoded at once.
const N_DECODED: usize = 256;

/// The average of each tensor by its rule, in order. Elements are `f16`, `f32` or `f64`; of other
/// types, and of no elements, the result is 0.
pub(super) fn running_means(views: &[TensorView<'_>]) -> Vec<f64> {
    let mut means = vec![0.0; views.len()];
    let mut waiting = views
        .iter()
        .enumerate()
        .map(|(i, view)| TensorLane::new(i, *view));
    let mut lanes: [Option<TensorLane<'_>>; LANES] = [const { None }; LANES];
    let mut block = LaneBlock::default();
    loop {
        for lane in &mut lanes {
            while lane.as_ref().is_none_or(TensorLane::is_done) {
                if let Some(done) = lane.take() {
                    means[done.position] = done.mean;
                }
                *lane = waiting.next();
                if lane.is_none() {
                    break;
                }
            }
        }
        // All lanes advance as far as the shortest one goes, so the loop over elements has no
        // branches.
        let n_left = lanes.iter().flatten().map(TensorLane::n_left);
        let Some(n) = n_left.min() else {
            return means;
        };
        block.advance(&mut lanes, n.min(N_DECODED));
    }
}

/// A tensor on its way.
struct TensorLane<'a> {
    position: usize,
    dtype: DType,
    rest: &'a [u8],
    mean: f64,
    /// Number of elements that are in the mean.
    n: f64,
}

impl<'a> TensorLane<'a> {
    fn new(position: usize, view: TensorView<'a>) -> TensorLane<'a> {
        TensorLane {
            position,
            dtype: view.dtype,
            rest: view.bytes,
            mean: 0.0,
            n: 0.0,
        }
    }

    fn width(&self) -> Option<usize> {
        match self.dtype {
            DType::F16 => Some(2),
            DType::F32 => Some(4),
            DType::F64 => Some(8),
            _ => None,
        }
    }

    fn n_left(&self) -> usize {
        self.width().map_or(0, |width| self.rest.len() / width)
    }

    fn is_done(&self) -> bool {
        self.n_left() == 0
    }

    /// Decodes the next elements; at least `out.len()` are left.
    fn decode(&mut self, out: &mut [f64]) {
        let n_bytes = out.len() * self.width().unwrap_or_default();
        let (bytes, rest) = self.rest.split_at(n_bytes.min(self.rest.len()));
        self.rest = rest;
        match self.dtype {
            DType::F16 => decode_as::<half::f16>(bytes, out),
            DType::F32 => decode_as::<f32>(bytes, out),
            // Types without a width count as done at once and never come here.
            _ => decode_as::<f64>(bytes, out),
        }
    }
}

fn decode_as<E: CellElement>(bytes: &[u8], out: &mut [f64]) {
    let mut values = [E::Value::default(); N_DECODED];
    E::decode(bytes, &mut values);
    for (out, &value) in out.iter_mut().zip(&values) {
        *out = E::value(value);
    }
}

/// Elements of all lanes.
struct LaneBlock {
    decoded: [f64; N_DECODED],
    /// By element, then by lane.
    elements: [[f64; LANES]; N_DECODED],
}

impl Default for LaneBlock {
    fn default() -> LaneBlock {
        LaneBlock {
            decoded: [0.0; N_DECODED],
            elements: [[0.0; LANES]; N_DECODED],
        }
    }
}

impl LaneBlock {
    /// Takes the next `n` elements of every lane.
    fn advance(&mut self, lanes: &mut [Option<TensorLane<'_>>; LANES], n: usize) {
        let mut means = [0.0; LANES];
        // A lane without a tensor divides zeros.
        let mut counts = [1.0; LANES];
        for (i, lane) in lanes.iter_mut().enumerate() {
            let decoded = &mut self.decoded[..n];
            match lane {
                Some(lane) => {
                    (means[i], counts[i]) = (lane.mean, lane.n);
                    lane.decode(decoded);
                }
                None => decoded.fill(0.0),
            }
            for (elements, &value) in self.elements.iter_mut().zip(&*decoded) {
                elements[i] = value;
            }
        }
        for elements in &self.elements[..n] {
            for i in 0..LANES {
                counts[i] += 1.0;
                means[i] += (elements[i] - means[i]) / counts[i];
            }
        }
        for (i, lane) in lanes.iter_mut().enumerate() {
            if let Some(lane) = lane {
                (lane.mean, lane.n) = (means[i], counts[i]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use opscope_tensor::{Shape, Tensor};
    use proptest::prelude::*;

    use super::*;
    use crate::file_format::stats_csv::cells::running_mean;

    fn tensor(dtype: DType, values: &[f64]) -> Tensor {
        let bytes: Vec<u8> = match dtype {
            DType::F16 => values
                .iter()
                .flat_map(|&v| half::f16::from_f64(v).to_le_bytes())
                .collect(),
            DType::F32 => values
                .iter()
                .flat_map(|&v| (v as f32).to_le_bytes())
                .collect(),
            _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        let shape = Shape::new([values.len()]).unwrap();
        Tensor::from_vec(dtype, shape, bytes).unwrap()
    }

    fn one_by_one(tensor: &Tensor) -> f64 {
        match tensor.dtype() {
            DType::F16 => running_mean::<half::f16>(tensor.host_bytes().unwrap()),
            DType::F32 => running_mean::<f32>(tensor.host_bytes().unwrap()),
            _ => running_mean::<f64>(tensor.host_bytes().unwrap()),
        }
    }

    #[test]
    fn nothing_and_tensors_without_elements() {
        assert_eq!(running_means(&[]), [0.0; 0]);
        let tensors = [tensor(DType::F32, &[]), tensor(DType::F64, &[3.0, 4.0])];
        assert_eq!(
            running_means(&tensors.each_ref().map(|tensor| tensor.host_view().unwrap())),
            [0.0, 3.5]
        );
    }

    proptest! {
        #[test]
        fn each_average_is_the_one_that_its_tensor_has_alone(
            lengths in prop::collection::vec((0..3_usize, 0..1200_usize), 0..20),
            seed in any::<u32>(),
        ) {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f64::from(state >> 8) / f64::from(1 << 23) - 1.0
            };
            let tensors: Vec<Tensor> = lengths
                .iter()
                .map(|&(dtype, n)| {
                    let dtype = [DType::F16, DType::F32, DType::F64][dtype];
                    tensor(dtype, &(0..n).map(|_| next()).collect::<Vec<_>>())
                })
                .collect();
            let views: Vec<_> = tensors.iter().map(|tensor| tensor.host_view().unwrap()).collect();
            let expected: Vec<f64> = tensors.iter().map(one_by_one).collect();
            prop_assert_eq!(running_means(&views), expected);
        }
    }
}
