//! The plain version: what the statistics mean, and in which order they are summed.
//!
//! Elements are taken in blocks of [`BLOCK`]. Within a block, element `i` is added to lane
//! `i % LANES`; at the end of the block the lanes are added in ascending order to the running total.
//! The order depends on nothing but the position of an element.

use super::Stats;

/// Elements summed before the lanes are folded into the total.
pub(super) const BLOCK: usize = 512;
/// Independent partial sums, so that a vector unit can carry them side by side.
const LANES: usize = 8;

/// Statistics of elements that may be NaN or infinite.
pub(super) fn floats<const WIDTH: usize>(bytes: &[u8], decode: fn([u8; WIDTH]) -> f64) -> Stats {
    let mut total = Total::default();
    for block in bytes.chunks(BLOCK * WIDTH) {
        let mut lanes = [Lane::default(); LANES];
        for (i, element) in block.as_chunks::<WIDTH>().0.iter().enumerate() {
            lanes[i % LANES].add_float(decode(*element));
        }
        total.fold(&lanes);
    }
    total.finish(bytes.len() / WIDTH)
}

/// Statistics of elements that are always finite.
pub(super) fn integers<const WIDTH: usize>(bytes: &[u8], decode: fn([u8; WIDTH]) -> f64) -> Stats {
    let mut total = Total::default();
    for block in bytes.chunks(BLOCK * WIDTH) {
        let mut lanes = [Lane::default(); LANES];
        for (i, element) in block.as_chunks::<WIDTH>().0.iter().enumerate() {
            lanes[i % LANES].add_finite(decode(*element));
        }
        total.fold(&lanes);
    }
    total.finish(bytes.len() / WIDTH)
}

#[derive(Clone, Copy)]
struct Lane {
    sum: f64,
    sum_of_squares: f64,
    min: f64,
    max: f64,
    n_nan: u64,
    n_pos_inf: u64,
    n_neg_inf: u64,
}

impl Default for Lane {
    fn default() -> Self {
        Lane {
            sum: 0.0,
            sum_of_squares: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            n_nan: 0,
            n_pos_inf: 0,
            n_neg_inf: 0,
        }
    }
}

impl Lane {
    fn add_finite(&mut self, value: f64) {
        self.sum += value;
        self.sum_of_squares += value * value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn add_float(&mut self, value: f64) {
        let is_nan = value.is_nan();
        self.n_nan += u64::from(is_nan);
        self.n_pos_inf += u64::from(value == f64::INFINITY);
        self.n_neg_inf += u64::from(value == f64::NEG_INFINITY);
        let value_or_zero = if is_nan { 0.0 } else { value };
        self.sum += value_or_zero;
        self.sum_of_squares += value_or_zero * value_or_zero;
        // `f64::min` and `f64::max` return the other operand when one is NaN.
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }
}

#[derive(Default)]
struct Total(Lane);

impl Total {
    fn fold(&mut self, lanes: &[Lane; LANES]) {
        for lane in lanes {
            self.0.sum += lane.sum;
            self.0.sum_of_squares += lane.sum_of_squares;
            self.0.min = self.0.min.min(lane.min);
            self.0.max = self.0.max.max(lane.max);
            self.0.n_nan += lane.n_nan;
            self.0.n_pos_inf += lane.n_pos_inf;
            self.0.n_neg_inf += lane.n_neg_inf;
        }
    }

    fn finish(&self, n_elements: usize) -> Stats {
        let n_elements = n_elements as u64;
        Stats {
            n_elements,
            n_nan: self.0.n_nan,
            n_pos_inf: self.0.n_pos_inf,
            n_neg_inf: self.0.n_neg_inf,
            min: self.0.min,
            max: self.0.max,
            // 0/0 is NaN, which is what an empty tensor's mean is documented to be.
            mean: self.0.sum / (n_elements - self.0.n_nan) as f64,
            l2: self.0.sum_of_squares.sqrt(),
        }
    }
}
