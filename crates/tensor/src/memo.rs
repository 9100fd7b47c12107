//! Caches results computed from a tensor's elements, so that they are computed once.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::digest::xxh3_128;
use crate::stats::sequential::{SequentialStats, sequential_stats};
use crate::{
    DType, DeviceRow, HostAccessError, NonFinite, NonFinitePlaces, Stats, StatsAndWeight,
    StatsError, Tensor, TensorView, digest_and_non_finite, digest_and_stats, non_finite,
    non_finite_places, weighed_stats,
};

/// Numbers that were computed from a tensor, shared by its clones.
#[derive(Default)]
pub struct TensorMemo {
    stats: OnceLock<Result<StatsAndWeight, StatsError>>,
    sequential: OnceLock<Result<SequentialStats, StatsError>>,
    non_finite: OnceLock<NonFinite>,
    places: OnceLock<NonFinitePlaces>,
    digest: OnceLock<[u8; 16]>,
    others: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

/// A tensor's elements, if they are in the host's memory, together with what is remembered of them.
///
/// Each method reads the elements at most once over all clones of the tensor; afterwards the tensor
/// may lose its elements ([`Tensor::without_elements`]).
#[derive(Clone, Copy)]
pub struct TensorObserver<'a> {
    dtype: DType,
    view: Result<TensorView<'a>, HostAccessError>,
    memo: &'a TensorMemo,
}

impl<'a> TensorObserver<'a> {
    /// Observes `view` and keeps results computed from it in `memo`, which belongs to nothing else.
    pub fn new(view: TensorView<'a>, memo: &'a TensorMemo) -> TensorObserver<'a> {
        TensorObserver {
            dtype: view.dtype,
            view: Ok(view),
            memo,
        }
    }

    /// Returns the elements.
    ///
    /// # Errors
    /// [`HostAccessError`] if they are not in the host's memory.
    pub fn view(self) -> Result<TensorView<'a>, HostAccessError> {
        self.view
    }

    /// Type of the elements.
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// [`stats`](crate::stats()) of the tensor.
    ///
    /// # Errors
    /// As for [`TensorObserver::weighed_stats`].
    pub fn stats(self) -> Result<&'a Stats, StatsError> {
        Ok(&self.weighed_stats()?.stats)
    }

    /// [`weighed_stats`] of the tensor.
    ///
    /// # Errors
    /// As for [`stats`](crate::stats()); [`StatsError::Elements`] if the elements were dropped
    /// before.
    pub fn weighed_stats(self) -> Result<&'a StatsAndWeight, StatsError> {
        let computed = self.recall(&self.memo.stats, |view| {
            self.memo.note_counts(weighed_stats(view))
        });
        computed?.as_ref().map_err(Clone::clone)
    }

    /// [`TensorObserver::stats`] for a caller that also needs [`TensorObserver::digest`]: one pass
    /// computes both.
    ///
    /// # Errors
    /// As for [`TensorObserver::stats`].
    pub fn digested_stats(self) -> Result<&'a Stats, StatsError> {
        let computed = self.recall(&self.memo.stats, |view| {
            if self.memo.digest.get().is_some() {
                return self.memo.note_counts(weighed_stats(view));
            }
            let (digest, computed) = digest_and_stats(view);
            // A digest that is there already is the same.
            let _ = self.memo.digest.set(digest);
            self.memo.note_counts(computed)
        });
        Ok(&computed?.as_ref().map_err(Clone::clone)?.stats)
    }

    /// The digest that identifies the contents, [`xxh3_128`]. The same pass counts non-finite
    /// elements.
    ///
    /// # Errors
    /// [`HostAccessError`] if the elements were dropped before.
    pub fn digest(self) -> Result<[u8; 16], HostAccessError> {
        let digest = self.recall(&self.memo.digest, |view| {
            if self.memo.non_finite.get().is_some() {
                return xxh3_128(view.bytes);
            }
            let (digest, counts) = digest_and_non_finite(view);
            let _ = self.memo.non_finite.set(counts);
            digest
        });
        digest.copied()
    }

    /// [`sequential_stats`] of the tensor.
    ///
    /// # Errors
    /// As for [`TensorObserver::weighed_stats`].
    pub fn sequential_stats(self) -> Result<&'a SequentialStats, StatsError> {
        let computed = self.recall(&self.memo.sequential, |view| {
            let computed = sequential_stats(view);
            if let Ok(stats) = &computed {
                self.memo
                    .note(stats.n_nan, stats.n_pos_inf, stats.n_neg_inf);
            }
            computed
        });
        computed?.as_ref().map_err(Clone::clone)
    }

    /// [`non_finite`] of the tensor; none if its elements were dropped before.
    pub fn non_finite(self) -> NonFinite {
        let counts = self.recall(&self.memo.non_finite, non_finite);
        counts.copied().unwrap_or_default()
    }

    /// [`non_finite_places`] of the tensor; none if its elements were dropped before.
    pub fn non_finite_places(self) -> NonFinitePlaces {
        let counts = self.non_finite();
        let places = self.recall(&self.memo.places, |view| {
            if counts.any() {
                non_finite_places(view, counts)
            } else {
                NonFinitePlaces::default()
            }
        });
        places.copied().unwrap_or_default()
    }

    /// Returns what `place` of the memo holds; if it is empty, the elements fill it first.
    ///
    /// A dropped tensor leaves the place empty, because a clone may still have the elements.
    fn recall<T>(
        self,
        place: &'a OnceLock<T>,
        compute: impl FnOnce(TensorView<'a>) -> T,
    ) -> Result<&'a T, HostAccessError> {
        match place.get() {
            Some(known) => Ok(known),
            None => {
                let view = self.view?;
                Ok(place.get_or_init(|| compute(view)))
            }
        }
    }

    /// Anything else, one value for each type `T`. `compute` may ask for the numbers above, but not
    /// for another `keep` of the same tensor.
    pub fn keep<T: Any + Send + Sync>(
        self,
        compute: impl FnOnce(TensorObserver<'_>) -> T,
    ) -> Arc<T> {
        let others = self.memo.others.lock();
        // A computation that panicked has left the list as it was.
        let mut others = others.unwrap_or_else(PoisonError::into_inner);
        let mut kept = others
            .iter()
            .filter_map(|value| value.clone().downcast().ok());
        if let Some(value) = kept.next() {
            return value;
        }
        // It borrows the list, which is about to grow.
        drop(kept);
        // Under the lock, so that a second thread waits for the result instead of computing it
        // again.
        let value = Arc::new(compute(self));
        others.push(value.clone());
        value
    }

    /// Whether [`TensorObserver::keep`] holds a value of type `T`.
    pub fn has_kept<T: Any + Send + Sync>(self) -> bool {
        let others = self.memo.others.lock();
        let others = others.unwrap_or_else(PoisonError::into_inner);
        others.iter().any(|value| (**value).is::<T>())
    }
}

impl Tensor {
    /// The elements together with what is remembered of them.
    pub fn observed(&self) -> TensorObserver<'_> {
        TensorObserver {
            dtype: self.dtype(),
            view: self.host_view(),
            memo: self.memo(),
        }
    }

    /// [`TensorObserver::stats`].
    ///
    /// # Errors
    /// As for [`TensorObserver::stats`].
    pub fn stats(&self) -> Result<&Stats, StatsError> {
        self.observed().stats()
    }

    /// [`TensorObserver::non_finite`].
    pub fn non_finite(&self) -> NonFinite {
        self.observed().non_finite()
    }
}

impl TensorMemo {
    /// Takes over what a device has computed from the elements. It has no digest and no sums in the
    /// order of the elements, so these stay unknown.
    pub fn note_row(&self, row: &DeviceRow) {
        // Numbers that are there already are of the same elements.
        let _ = self.stats.set(self.note_counts(Ok(row.weighed())));
        let _ = self.places.set(row.places);
    }

    /// Stores the counts of a statistics pass, so that they are not computed again.
    fn note_counts(
        &self,
        computed: Result<StatsAndWeight, StatsError>,
    ) -> Result<StatsAndWeight, StatsError> {
        if let Ok(StatsAndWeight { stats, .. }) = &computed {
            let counts = stats.counts;
            self.note(counts.n_nan, counts.n_pos_inf, counts.n_neg_inf);
        }
        computed
    }

    fn note(&self, n_nan: u64, n_pos_inf: u64, n_neg_inf: u64) {
        // A value that is there already is the same.
        let _ = self.non_finite.set(NonFinite {
            n_nan,
            n_pos_inf,
            n_neg_inf,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, stats};

    fn tensor(values: &[f32]) -> Tensor {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::from_vec(DType::F32, Shape::new([values.len()]).unwrap(), bytes).unwrap()
    }

    #[test]
    fn numbers_outlive_the_elements() {
        let whole = tensor(&[1.0, f32::NAN, -3.0, f32::INFINITY]);
        let clone = whole.clone();
        let expected = stats(whole.host_view().unwrap()).unwrap();
        assert_eq!(whole.stats().unwrap().max, expected.max);
        assert_eq!(
            *whole
                .observed()
                .keep(|tensor| tensor.view().unwrap().bytes.len()),
            16
        );
        let reduced = clone.without_elements();
        assert!(!reduced.has_elements());
        assert_eq!(reduced.n_bytes(), 16);
        assert_eq!(reduced.host_bytes(), Err(HostAccessError));
        assert_eq!(reduced.stats().unwrap().counts.n_nan, 1);
        assert_eq!(reduced.non_finite(), non_finite(whole.host_view().unwrap()));
        assert!(reduced.observed().has_kept::<usize>());
        assert!(!reduced.observed().has_kept::<u8>());
        assert_eq!(*reduced.observed().keep(|_| 0_usize), 16);
    }

    #[test]
    fn the_digest_comes_with_the_statistics_or_alone() {
        let values = [1.0, f32::NAN, 0.0];
        let expected = xxh3_128(tensor(&values).host_bytes().unwrap());
        let reduced = |look: fn(&Tensor)| {
            let tensor = tensor(&values);
            look(&tensor);
            tensor.without_elements()
        };
        let both = reduced(|tensor| drop(tensor.observed().digested_stats()));
        let after = reduced(|tensor| {
            _ = tensor.observed().digest();
            drop(tensor.observed().digested_stats());
        });
        for reduced in [both, after] {
            assert_eq!(reduced.observed().digest(), Ok(expected));
            assert_eq!(reduced.stats(), tensor(&values).stats());
        }
        let alone = reduced(|tensor| drop(tensor.stats()));
        assert_eq!(alone.observed().digest(), Err(HostAccessError));
    }

    #[test]
    fn every_pass_counts_what_is_not_finite() {
        let values = [f32::NAN, f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY];
        let expected = non_finite(tensor(&values).host_view().unwrap());
        for look in [
            |tensor: &Tensor| drop(tensor.stats()),
            |tensor: &Tensor| drop(tensor.observed().digested_stats()),
            |tensor: &Tensor| _ = tensor.observed().digest(),
            |tensor: &Tensor| drop(tensor.observed().sequential_stats()),
        ] {
            let tensor = tensor(&values);
            look(&tensor);
            assert_eq!(tensor.without_elements().non_finite(), expected);
        }
    }
}
