//! The numbers of a comparison by name.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use opscope_tensor::difference::TensorDifference;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::metric::{MetricId, TensorStatistic};
use super::party::Party;

/// Metrics with their values, in the order of `docs/compare/metrics.md`.
///
/// Copies share their memory, and nearly all slots of a comparison share the list of metrics. An
/// output and the inputs that it becomes have equal values, which are shared as well.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(Option<Arc<NamedValues>>);

#[derive(Debug, PartialEq)]
struct NamedValues {
    names: Arc<[MetricId]>,
    values: Box<[f64]>,
}

/// Lists of metrics that a thread remembers: comparisons have one for each kind of dtype and of
/// evidence.
const N_LISTS_MAX: usize = 8;

/// Metrics that a thread remembers, to share those with equal values.
const N_VALUES_MAX: usize = 1 << 16;

thread_local! {
    static LISTS: RefCell<Vec<Arc<[MetricId]>>> = const { RefCell::new(Vec::new()) };
    static VALUES: RefCell<HashSet<SameBits>> = RefCell::default();
}

/// Metrics that are equal if all their values have the same bits.
struct SameBits(Arc<NamedValues>);

impl SameBits {
    fn bits(&self) -> impl Iterator<Item = u64> {
        self.0.values.iter().map(|value| value.to_bits())
    }
}

impl PartialEq for SameBits {
    fn eq(&self, other: &SameBits) -> bool {
        self.0.names == other.0.names && self.bits().eq(other.bits())
    }
}

impl Eq for SameBits {}

impl Hash for SameBits {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().for_each(|bits| bits.hash(state));
    }
}

/// A list of metrics, in memory that it shares with equal ones.
fn shared(names: impl Iterator<Item = MetricId>) -> Arc<[MetricId]> {
    let names: Vec<MetricId> = names.collect();
    LISTS.with_borrow_mut(|lists| {
        if let Some(known) = lists.iter().find(|known| ***known == names[..]) {
            return known.clone();
        }
        let new: Arc<[MetricId]> = names.into();
        lists.truncate(N_LISTS_MAX - 1);
        lists.insert(0, new.clone());
        new
    })
}

impl From<Vec<(MetricId, f64)>> for Metrics {
    fn from(all: Vec<(MetricId, f64)>) -> Metrics {
        if all.is_empty() {
            return Metrics::default();
        }
        let new = NamedValues {
            names: shared(all.iter().map(|(metric, _)| *metric)),
            values: all.iter().map(|(_, value)| *value).collect(),
        };
        Metrics(Some(Arc::new(new))).shared()
    }
}

impl Metrics {
    /// The same, in memory that they share with equal ones of this thread. Those that another
    /// thread made share no memory with them before.
    pub fn shared(self) -> Metrics {
        let Some(new) = self.0 else {
            return self;
        };
        let new = SameBits(new);
        VALUES.with_borrow_mut(|known| {
            if let Some(known) = known.get(&new) {
                return Metrics(Some(known.0.clone()));
            }
            if known.len() >= N_VALUES_MAX {
                known.clear();
            }
            let metrics = Metrics(Some(new.0.clone()));
            known.insert(new);
            metrics
        })
    }

    /// The metrics with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (MetricId, f64)> + Clone {
        let all = self.0.iter();
        all.flat_map(|all| all.names.iter().copied().zip(all.values.iter().copied()))
    }

    /// Which metrics there are.
    pub fn names(&self) -> &[MetricId] {
        self.0.as_ref().map_or(&[], |all| &all.names)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names().is_empty()
    }

    /// The value of a metric, if there is one.
    pub fn get(&self, metric: MetricId) -> Option<f64> {
        let position = self.names().iter().position(|known| *known == metric)?;
        self.0.as_ref()?.values.get(position).copied()
    }

    /// The value of the metric with a name in results, if there is one.
    pub fn named(&self, name: &str) -> Option<f64> {
        self.get(MetricId::from_name(name)?)
    }

    /// The numbers of a difference, under the names and in the order of `docs/compare/metrics.md`.
    pub fn from_difference(found: &TensorDifference) -> Metrics {
        let mut all: Vec<(MetricId, f64)> = Vec::with_capacity(48);
        // There is none where one side alone is all zero, which has no direction.
        if let Some(cosine) = found.cosine {
            all.push((MetricId::Cosine, cosine));
        }
        all.extend([
            (MetricId::RelL2, rel_l2(found)),
            (MetricId::MaxAbs, found.max_abs),
            (MetricId::MeanAbs, found.mean_abs),
            (MetricId::Rmse, found.rmse),
            (MetricId::MaxRel, found.max_rel),
            (MetricId::MeanRel, found.mean_rel),
            (MetricId::AccumulatedRel, found.accumulated_rel),
        ]);
        let optional = [
            (MetricId::Kl, found.kl),
            (MetricId::MaxUlp, found.max_ulp.map(|ulp| ulp as f64)),
            (MetricId::P99Ulp, found.p99_ulp.map(|ulp| ulp as f64)),
        ];
        all.extend(
            optional
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        all.extend([
            (MetricId::SnrDb, found.snr_db),
            (MetricId::PsnrDb, found.psnr_db),
            (MetricId::Share1In1000, found.share_1_1000),
            (MetricId::Share5In1000, found.share_5_1000),
            (MetricId::Count, found.n as f64),
            (MetricId::FiniteCount, found.n_finite as f64),
            (MetricId::EqualCount, found.n_equal as f64),
            (
                MetricId::IsIdentical,
                f64::from(u8::from(found.is_identical)),
            ),
            (MetricId::NanMismatches, found.n_nan_mismatches as f64),
            (MetricId::InfMismatches, found.n_inf_mismatches as f64),
            (MetricId::SignFlips, found.n_sign_flips as f64),
        ]);
        if let Some(worst) = found.worst {
            all.extend([
                (MetricId::WorstIndex, worst.index as f64),
                (MetricId::WorstTarget, worst.target),
                (MetricId::WorstGolden, worst.golden),
            ]);
        }
        // Its presence marks a slot as bad, so slots without NaN and infinities have to lack it.
        if let Some(index) = found.first_bad {
            all.push((MetricId::FirstBad, index as f64));
        }
        all.extend(of_tensors(found));
        Metrics::from(all)
    }
}

/// The relative distance that results show: infinite if an element is NaN or infinite on one side
/// alone.
pub fn rel_l2(found: &TensorDifference) -> f64 {
    if found.n_nan_mismatches + found.n_inf_mismatches > 0 {
        f64::INFINITY
    } else {
        found.rel_l2
    }
}

/// The statistics of both tensors.
fn of_tensors(found: &TensorDifference) -> impl Iterator<Item = (MetricId, f64)> {
    let sides = [
        (Party::Target, &found.target),
        (Party::Golden, &found.golden),
    ];
    sides.into_iter().flat_map(|(party, summary)| {
        let numbers = [
            (TensorStatistic::Min, summary.min),
            (TensorStatistic::Max, summary.max),
            (TensorStatistic::Mean, summary.mean),
            (TensorStatistic::Std, summary.std),
            (TensorStatistic::L2Norm, summary.l2_norm),
            (TensorStatistic::NanCount, summary.n_nan as f64),
            (
                TensorStatistic::PositiveInfCount,
                summary.n_positive_inf as f64,
            ),
            (
                TensorStatistic::NegativeInfCount,
                summary.n_negative_inf as f64,
            ),
            (TensorStatistic::Zero, summary.n_zero as f64),
        ];
        numbers.map(|(statistic, value)| (MetricId::of_tensor(party, statistic), value))
    })
}

#[derive(Serialize, Deserialize)]
struct StoredNumber(#[serde(with = "super::number")] f64);

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.names().len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(&name, &StoredNumber(value))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Metrics, D::Error> {
        struct MetricEntries;
        impl<'de> Visitor<'de> for MetricEntries {
            type Value = Metrics;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("names of metrics with numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
                let mut all = Vec::new();
                while let Some((name, StoredNumber(value))) = map.next_entry()? {
                    // Keep the file's order: tables append further columns.
                    all.push((name, value));
                }
                Ok(Metrics::from(all))
            }
        }
        from.deserialize_map(MetricEntries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Metrics {
        fn is_shared_with(&self, other: &Metrics) -> bool {
            self.0.as_ref().map(Arc::as_ptr) == other.0.as_ref().map(Arc::as_ptr)
        }
    }

    #[test]
    fn equal_values_share_memory_and_others_do_not() {
        let metrics =
            |value: f64| Metrics::from(vec![(MetricId::MaxAbs, value), (MetricId::Kl, 1.0)]);
        for (a, b, is_shared) in [
            (0.5, 0.5, true),
            (f64::NAN, f64::NAN, true),
            (0.0, -0.0, false),
            (0.5, 0.25, false),
        ] {
            let [a, b] = [a, b].map(metrics);
            assert_eq!(a.is_shared_with(&b), is_shared, "{a:?} {b:?}");
        }
        // Forgetting changes no value.
        for i in 0..=N_VALUES_MAX {
            assert_eq!(metrics(i as f64).get(MetricId::MaxAbs), Some(i as f64));
        }
        assert_eq!(metrics(0.5).get(MetricId::Kl), Some(1.0));
    }
}
