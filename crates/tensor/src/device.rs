//! Elements in the memory of a device, and what the host gets of them.

use std::sync::{Arc, OnceLock};

use crate::tensor::SharedBytes;
use crate::{
    DType, ElementCounts, HostAccessError, NonFinitePlaces, Shape, Stats, StatsAndWeight, Tensor,
    TensorError,
};

/// Elements in a device's memory, of which the host gets a copy, or numbers, later.
///
/// A device works in parallel with the host, which must not wait for it. So a tensor is described
/// as soon as it exists, and the device's results are filled in later.
#[derive(Default)]
pub struct DeviceElements {
    arrival: OnceLock<DeviceArrival>,
}

/// The host's part of elements of a device, once it is there.
#[derive(Clone)]
pub enum DeviceArrival {
    /// A copy of them: dense, row-major and little-endian.
    Elements(SharedBytes),
    /// Numbers, which the tensor's memo holds.
    Numbers,
    /// No result, and none will arrive: the device failed.
    Lost,
}

impl DeviceElements {
    /// Reports the arrival. Later reports are ignored.
    pub fn arrive(&self, arrival: DeviceArrival) {
        // A device that is lost after it has answered takes nothing back.
        let _ = self.arrival.set(arrival);
    }

    /// Returns the host's part; `None` while the device is at it.
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
    /// [`HostAccessError`] while the device is busy with it, and if no result arrived.
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
    /// Counts are exact; sums, means, deviations and norms are within the bounds.
    pub stats: Stats,
    /// Where the first NaN and the first infinity are.
    pub places: NonFinitePlaces,
    /// A hash that does not depend on the order of the elements.
    pub hash: [u64; 2],
}

impl DeviceRow {
    /// Number of 8-byte words of a row.
    pub const N_WORDS: usize = ElementCounts::NAMES.len() + 12;

    /// Reads a row. Floats are stored by their bits, and -1 means no place.
    pub fn from_words(words: &[u64; DeviceRow::N_WORDS]) -> DeviceRow {
        let (counts, rest) = words.split_at(ElementCounts::NAMES.len());
        let float = |i: usize| f64::from_bits(rest[i]);
        let place = |i: usize| usize::try_from(rest[i].cast_signed()).ok();
        let infinities = [(place(8), f64::INFINITY), (place(9), f64::NEG_INFINITY)];
        let infinities = infinities
            .into_iter()
            .filter_map(|(at, sign)| Some((at?, sign)));
        DeviceRow {
            stats: Stats {
                counts: ElementCounts::from_array(std::array::from_fn(|i| counts[i])),
                min: float(0),
                max: float(1),
                sum: float(2),
                l1: float(3),
                l2: float(4),
                mean: float(5),
                std: float(6),
            },
            places: NonFinitePlaces {
                nan: place(7),
                infinity: infinities.min_by_key(|(at, _)| *at),
            },
            hash: [rest[10], rest[11]],
        }
    }

    /// The statistics with a weight that no order of summation exceeds.
    pub(crate) fn weighed(&self) -> StatsAndWeight {
        StatsAndWeight {
            prefix_weight: self.stats.counts.n_elements as f64 * self.stats.l1,
            stats: self.stats,
        }
    }

    /// Whether this can be a row of a tensor with this number of elements. Memory that no kernel
    /// has written hardly ever passes.
    pub fn is_of(&self, n_elements: usize) -> bool {
        let c = &self.stats.counts;
        let n_special = c.n_nan.checked_add(c.n_pos_inf);
        let n_special = n_special.and_then(|n| n.checked_add(c.n_neg_inf));
        let n_special = n_special.and_then(|n| n.checked_add(c.n_zero));
        c.n_elements == n_elements as u64 && n_special.is_some_and(|n| n <= c.n_elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TensorView, stats};

    fn row(values: &[f32]) -> DeviceRow {
        let tensor = tensor(values);
        let found = tensor.stats().unwrap();
        let place = |is_it: fn(&f32) -> bool| {
            let found = values.iter().position(is_it);
            found.map_or(u64::MAX, |i| i as u64)
        };
        let numbers = [
            found.min, found.max, found.sum, found.l1, found.l2, found.mean, found.std,
        ];
        let mut words = found.counts.to_array().to_vec();
        words.extend(numbers.map(f64::to_bits));
        words.push(place(|v| v.is_nan()));
        words.push(place(|v| *v == f32::INFINITY));
        words.push(place(|v| *v == f32::NEG_INFINITY));
        words.extend([7, 8]);
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
            &[],
        ] {
            let (found, whole) = (row(values), tensor(values));
            let expected = whole.stats().unwrap();
            assert_eq!(format!("{:?}", found.stats), format!("{expected:?}"));
            assert_eq!(found.places, whole.observed().non_finite_places());
            assert_eq!(found.hash, [7, 8]);
        }
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
        let view = TensorView::new(DType::F32, &shape, &[1; 8]);
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
