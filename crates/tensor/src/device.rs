//! Elements in the memory of a device, and what the host gets of them.

use std::sync::{Arc, OnceLock};

use crate::tensor::SharedBytes;
use crate::{
    DType, ElementCounts, HostAccessError, NonFinitePlaces, Shape, Stats, StatsAndWeight, Tensor,
    TensorError,
};

/// Sums of squares within these bounds have lost nothing to an overflow or to an underflow.
const SQUARES: std::ops::Range<f64> = 1e-280..1e300;

/// Elements in a device's memory, of which the host gets a copy, or numbers, later.
///
/// A device works beside the host, which must not wait for it. So a tensor is described as soon as
/// it is there, and whoever hears from the device says what has come of its elements.
#[derive(Default)]
pub struct DeviceElements {
    arrival: OnceLock<DeviceArrival>,
}

/// What has come of elements of a device.
#[derive(Clone)]
pub enum DeviceArrival {
    /// A copy of them: dense, row-major and little-endian.
    Elements(SharedBytes),
    /// Numbers, which the tensor's memo holds.
    Numbers,
    /// Nothing, and nothing will come: the device failed.
    Lost,
}

impl DeviceElements {
    /// Says what has come. The first answer stays.
    pub fn arrive(&self, arrival: DeviceArrival) {
        // A device that is lost after it has answered takes nothing back.
        let _ = self.arrival.set(arrival);
    }

    /// What has come; `None` while the device is at it.
    pub fn arrival(&self) -> Option<&DeviceArrival> {
        self.arrival.get()
    }
}

impl Tensor {
    /// Describes a tensor whose elements are on a device, layout `ND`.
    ///
    /// # Errors
    /// [`TensorError::Shape`] if dtype and shape do not say how many bytes it takes.
    pub fn on_device(
        dtype: DType,
        shape: Shape,
        elements: Arc<DeviceElements>,
    ) -> Result<Tensor, TensorError> {
        let n_bytes = shape.n_bytes(dtype)?;
        Ok(Tensor::with_device_elements(
            (dtype, shape),
            n_bytes,
            elements,
        ))
    }

    /// The tensor as the host has it now: with its elements, or with numbers alone. One that never
    /// was on a device stays as it is.
    ///
    /// # Errors
    /// [`HostAccessError`] while the device is at it, and if nothing has come.
    pub fn arrived(self) -> Result<Tensor, HostAccessError> {
        let Some(elements) = self.device_elements().cloned() else {
            return Ok(self);
        };
        match elements.arrival() {
            Some(DeviceArrival::Elements(bytes)) => {
                let whole = Tensor::new(self.dtype(), self.shape().clone(), bytes.clone());
                let whole = whole.map_err(|_| HostAccessError)?;
                Ok(whole
                    .with_layout(self.layout())
                    .with_memo(self.memo().clone()))
            }
            Some(DeviceArrival::Numbers) => Ok(self.without_elements()),
            Some(DeviceArrival::Lost) | None => Err(HostAccessError),
        }
    }

    /// Whether the device is still at its elements.
    pub fn is_awaited(&self) -> bool {
        let elements = self.device_elements();
        elements.is_some_and(|elements| elements.arrival().is_none())
    }
}

/// The numbers of one tensor, as a device has computed them; `docs/statistics.md` has the bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceRow {
    counts: ElementCounts,
    min: f64,
    max: f64,
    sum: f64,
    l1: f64,
    sum_of_squares: f64,
    mean: f64,
    m2: f64,
    first_nan: Option<usize>,
    first_infinity: Option<usize>,
    /// A hash that does not depend on the order in which elements were looked at.
    pub hash: [u64; 2],
}

impl DeviceRow {
    /// Number of 8-byte words of a row.
    pub const N_WORDS: usize = ElementCounts::NAMES.len() + 11;

    /// Reads a row. Floats are stored by their bits, and -1 stands for no place.
    pub fn from_words(words: &[u64; DeviceRow::N_WORDS]) -> DeviceRow {
        let (counts, rest) = words.split_at(ElementCounts::NAMES.len());
        let counts = ElementCounts::from_array(std::array::from_fn(|i| counts[i]));
        let float = |i: usize| f64::from_bits(rest[i]);
        let place = |i: usize| {
            let found = rest[i].cast_signed();
            usize::try_from(found).ok()
        };
        DeviceRow {
            counts,
            min: float(0),
            max: float(1),
            sum: float(2),
            l1: float(3),
            sum_of_squares: float(4),
            mean: float(5),
            m2: float(6),
            first_nan: place(7),
            first_infinity: place(8),
            hash: [rest[9], rest[10]],
        }
    }

    /// The statistics. Standard deviation and Euclidean norm are NaN, as no numbers of finite
    /// elements are otherwise, where a sum of squares has left the range of `f64`.
    pub fn stats(&self) -> Stats {
        let c = &self.counts;
        let n_numbers = (c.n_elements - c.n_nan) as f64;
        let has_infinity = c.n_pos_inf + c.n_neg_inf > 0;
        let is_finite = c.n_finite() > 0;
        let or_infinity = |value: f64| {
            if has_infinity { f64::INFINITY } else { value }
        };
        // What infinities make of sums follows from their counts, whatever a device left out.
        let sum = match (c.n_pos_inf > 0, c.n_neg_inf > 0) {
            (true, true) => f64::NAN,
            (true, false) => f64::INFINITY,
            (false, true) => f64::NEG_INFINITY,
            (false, false) => self.sum,
        };
        let l2 = known_root(self.sum_of_squares, self.l1 == 0.0);
        let deviation = if self.m2.is_finite() {
            self.m2.max(0.0)
        } else {
            f64::NAN
        };
        Stats {
            counts: *c,
            min: match (c.n_neg_inf > 0, is_finite) {
                (true, _) => f64::NEG_INFINITY,
                (false, true) => self.min,
                (false, false) => f64::INFINITY,
            },
            max: match (c.n_pos_inf > 0, is_finite) {
                (true, _) => f64::INFINITY,
                (false, true) => self.max,
                (false, false) => f64::NEG_INFINITY,
            },
            sum,
            mean: match (has_infinity, n_numbers > 0.0) {
                (true, _) => sum,
                (false, true) => self.mean,
                (false, false) => f64::NAN,
            },
            std: if has_infinity {
                f64::NAN
            } else {
                (deviation / n_numbers).sqrt()
            },
            l1: or_infinity(self.l1),
            l2: or_infinity(l2),
        }
    }

    /// The statistics with a weight that no order of summation exceeds.
    pub(crate) fn weighed(&self) -> StatsAndWeight {
        let stats = self.stats();
        StatsAndWeight {
            prefix_weight: stats.counts.n_elements as f64 * stats.l1,
            stats,
        }
    }

    /// Where the first NaN and the first infinity are. Of an infinity the sign is known where all
    /// have the same; otherwise its place is left out.
    pub fn places(&self) -> NonFinitePlaces {
        let value = match (self.counts.n_pos_inf > 0, self.counts.n_neg_inf > 0) {
            (true, false) => Some(f64::INFINITY),
            (false, true) => Some(f64::NEG_INFINITY),
            _ => None,
        };
        NonFinitePlaces {
            nan: self.first_nan,
            infinity: self.first_infinity.zip(value),
        }
    }

    /// Whether this can be a row of a tensor of so many elements. What a device left in memory that
    /// no kernel has written to hardly ever is.
    pub fn is_of(&self, n_elements: usize) -> bool {
        let c = &self.counts;
        let n_special = c.n_nan.checked_add(c.n_pos_inf);
        let n_special = n_special.and_then(|n| n.checked_add(c.n_neg_inf));
        let n_special = n_special.and_then(|n| n.checked_add(c.n_zero));
        c.n_elements == n_elements as u64 && n_special.is_some_and(|n| n <= c.n_elements)
    }
}

/// The root of a sum of squares; NaN if the sum is of no use.
fn known_root(sum: f64, is_zero: bool) -> f64 {
    if SQUARES.contains(&sum) || (sum == 0.0 && is_zero) {
        sum.sqrt()
    } else {
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TensorView, stats};

    fn row(values: &[f32]) -> DeviceRow {
        let tensor = tensor(values);
        let found = tensor.stats().unwrap();
        let finite = values
            .iter()
            .filter(|v| v.is_finite())
            .map(|&v| f64::from(v));
        let (n, sum) = (finite.clone().count() as f64, finite.clone().sum::<f64>());
        let mean = sum / n;
        let places = crate::non_finite_places(
            tensor.host_view().unwrap(),
            crate::non_finite(tensor.host_view().unwrap()),
        );
        let place = |found: Option<usize>| found.map_or(u64::MAX, |i| i as u64);
        let numbers = [
            found.min,
            found.max,
            sum,
            finite.clone().map(f64::abs).sum(),
            finite.clone().map(|v| v * v).sum(),
            mean,
            finite.map(|v| (v - mean) * (v - mean)).sum(),
        ];
        let mut words = found.counts.to_array().to_vec();
        words.extend(numbers.map(f64::to_bits));
        words.extend([
            place(places.nan),
            place(places.infinity.map(|(i, _)| i)),
            7,
            8,
        ]);
        DeviceRow::from_words(words.as_slice().try_into().unwrap())
    }

    fn tensor(values: &[f32]) -> Tensor {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::from_vec(DType::F32, Shape::new([values.len()]).unwrap(), bytes).unwrap()
    }

    #[test]
    fn a_row_says_what_statistics_say() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for values in [
            [1.0, -2.0, 0.5, -0.0].as_slice(),
            &[nan, 1.0, nan],
            &[inf, 1.0, nan],
            &[-inf, 2.0, inf],
            &[nan, nan],
            &[inf],
            &[],
            &[0.0, -0.0],
        ] {
            let expected = stats(tensor(values).host_view().unwrap()).unwrap();
            let found = row(values).stats();
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{values:?}");
        }
    }

    #[test]
    fn squares_beyond_the_range_are_not_told() {
        let mut found = row(&[3.0, 4.0]);
        assert_eq!(found.stats().l2, 5.0);
        found.sum_of_squares = f64::INFINITY;
        found.m2 = f64::INFINITY;
        assert!(found.stats().l2.is_nan() && found.stats().std.is_nan());
        found.sum_of_squares = 0.0;
        assert!(found.stats().l2.is_nan());
    }

    #[test]
    fn numbers_take_the_place_of_elements() {
        let elements = Arc::<DeviceElements>::default();
        let shape = Shape::new([2]).unwrap();
        let there = Tensor::on_device(DType::F32, shape.clone(), elements.clone()).unwrap();
        assert!(there.has_elements() && there.is_awaited());
        assert_eq!(there.n_bytes(), 8);
        assert_eq!(there.host_bytes(), Err(HostAccessError));
        assert!(there.clone().arrived().is_err());
        there.memo().note_row(&row(&[3.0, f32::INFINITY]));
        elements.arrive(DeviceArrival::Numbers);
        let here = there.arrived().unwrap();
        assert!(!here.has_elements() && !here.is_awaited());
        assert_eq!(here.non_finite().n_pos_inf, 1);
        assert_eq!(
            here.observed().non_finite_places().infinity,
            Some((1, f64::INFINITY))
        );
        assert!(here.observed().digest().is_err());

        let elements = Arc::<DeviceElements>::default();
        let there = Tensor::on_device(DType::F32, shape.clone(), elements.clone()).unwrap();
        elements.arrive(DeviceArrival::Elements(Arc::new(vec![1; 8])));
        elements.arrive(DeviceArrival::Lost);
        let view = TensorView {
            dtype: DType::F32,
            shape: &shape,
            layout: crate::Layout::Nd,
            bytes: &[1; 8],
        };
        assert_eq!(
            there.arrived().unwrap().stats().unwrap(),
            &stats(view).unwrap()
        );
    }

    #[test]
    fn rows_that_nobody_wrote_are_recognised() {
        let found = row(&[1.0, 0.0, f32::NAN]);
        assert!(found.is_of(3) && !found.is_of(2));
        let blank = DeviceRow::from_words(&[u64::MAX; DeviceRow::N_WORDS]);
        assert!(!blank.is_of(3));
    }
}
