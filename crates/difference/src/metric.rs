//! The metrics of a comparison: one table with their names and uses.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::party::Party;

/// The properties of a metric.
struct MetricRow {
    metric: MetricId,
    name: &'static str,
    is_better_large: bool,
    /// Whether tables have a column for it even if no slot has it.
    has_column: bool,
    /// Whether thresholds may limit it.
    can_have_limit: bool,
    /// Whether the page shows it for every slot.
    is_on_page: bool,
}

/// Defines [`MetricId`] and its table: name in results, then its uses in any order. `large` marks
/// metrics of which more is better.
macro_rules! metrics {
    ($($metric:ident = $name:literal $([$($use:ident)+])?,)+) => {
        /// A metric of a pair of tensors. `docs/compare/metrics.md` defines each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "`docs/compare/metrics.md` defines them under their names")]
        pub enum MetricId {
            $($metric,)+
        }

        const TABLE: &[MetricRow] = &[$(MetricRow {
            metric: MetricId::$metric,
            name: $name,
            is_better_large: false $($(|| is(stringify!($use), "large"))+)?,
            has_column: false $($(|| is(stringify!($use), "column"))+)?,
            can_have_limit: false $($(|| is(stringify!($use), "limit"))+)?,
            is_on_page: false $($(|| is(stringify!($use), "page"))+)?,
        },)+];

        impl MetricId {
            /// The metric of a name in results, `None` if there is none.
            pub fn from_name(name: &str) -> Option<MetricId> {
                match name {
                    $($name => Some(MetricId::$metric),)+
                    _ => None,
                }
            }
        }
    };
}

/// Whether two texts are equal; the standard comparison cannot be used in constants.
const fn is(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

// The order is that of columns. Metrics without a column follow, those that are computed from
// others at the end.
metrics! {
    Cosine = "cosine" [large column limit page],
    RelL2 = "rel_l2" [column limit page],
    MaxAbs = "max_abs" [column limit page],
    MeanAbs = "mean_abs" [column limit],
    Rmse = "rmse" [column limit],
    MaxRel = "max_rel" [column limit page],
    MeanRel = "mean_rel" [column limit],
    AccumulatedRel = "accumulated_rel" [column limit],
    Kl = "kl" [column limit],
    MaxUlp = "max_ulp" [column limit page],
    P99Ulp = "p99_ulp" [column limit],
    SnrDb = "snr_db" [large column limit page],
    PsnrDb = "psnr_db" [large column limit],
    Share1In1000 = "share_1_1000" [large column limit page],
    Share5In1000 = "share_5_1000" [large column limit],
    Count = "n" [column page],
    FiniteCount = "n_finite" [column],
    EqualCount = "n_equal" [column],
    IsIdentical = "is_identical" [column],
    NanMismatches = "n_nan_mismatches" [column limit page],
    InfMismatches = "n_inf_mismatches" [column limit page],
    SignFlips = "n_sign_flips" [column limit],
    WorstIndex = "worst_index" [column],
    WorstTarget = "worst_target" [column],
    WorstGolden = "worst_golden" [column],
    FirstBad = "first_bad" [column],
    TargetMin = "target_min" [column page],
    TargetMax = "target_max" [column page],
    TargetMean = "target_mean" [column],
    TargetStd = "target_std" [column],
    TargetL2Norm = "target_l2_norm" [column],
    TargetNanCount = "target_n_nan" [column],
    TargetPositiveInfCount = "target_n_positive_inf" [column],
    TargetNegativeInfCount = "target_n_negative_inf" [column],
    TargetZero = "target_n_zero" [column],
    TargetCount = "target_count",
    TargetNegative = "target_n_negative",
    TargetPositive = "target_n_positive",
    GoldenMin = "golden_min" [column page],
    GoldenMax = "golden_max" [column page],
    GoldenMean = "golden_mean" [column],
    GoldenStd = "golden_std" [column],
    GoldenL2Norm = "golden_l2_norm" [column],
    GoldenNanCount = "golden_n_nan" [column],
    GoldenPositiveInfCount = "golden_n_positive_inf" [column],
    GoldenNegativeInfCount = "golden_n_negative_inf" [column],
    GoldenZero = "golden_n_zero" [column],
    GoldenCount = "golden_count",
    GoldenNegative = "golden_n_negative",
    GoldenPositive = "golden_n_positive",
    DigestMismatch = "digest_mismatch" [column limit],
    DigestRel = "digest_rel" [limit],
    IsBad = "is_bad",
    StatisticMaxRel = "statistic_max_rel" [limit],
    StatisticMinRel = "statistic_min_rel" [limit],
    StatisticMeanRel = "statistic_mean_rel" [limit],
    StatisticL2NormRel = "statistic_l2_norm_rel" [limit],
    StatisticNegativeShare = "statistic_n_negative_share" [limit],
    StatisticPositiveShare = "statistic_n_positive_share" [limit],
    StatisticZeroShare = "statistic_n_zero_share" [limit],
    NonFiniteMismatches = "n_non_finite_mismatches" [limit],
    ShareUnequal = "share_unequal" [limit],
    ScaledMaxAbs = "scaled_max_abs" [limit],
    SignFlipShare = "sign_flip_share" [limit],
    GainError = "gain_error" [limit],
    OffsetError = "offset_error" [limit],
    StatisticRel = "statistic_rel" [limit],
}

impl MetricId {
    /// Name in results.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The metrics that have a column whether or not a slot has them, in their order.
    pub fn with_columns() -> impl Iterator<Item = MetricId> {
        let rows = TABLE.iter().filter(|row| row.has_column);
        rows.map(|row| row.metric)
    }

    /// The metrics that thresholds may limit.
    pub fn with_limits() -> impl Iterator<Item = MetricId> {
        let rows = TABLE.iter().filter(|row| row.can_have_limit);
        rows.map(|row| row.metric)
    }

    /// The metrics that the page shows for every slot, in their order.
    pub fn on_page() -> impl Iterator<Item = MetricId> {
        let rows = TABLE.iter().filter(|row| row.is_on_page);
        rows.map(|row| row.metric)
    }

    /// Whether thresholds may limit it.
    pub fn can_have_limit(self) -> bool {
        self.row().can_have_limit
    }

    /// Whether large values are good.
    pub fn is_better_large(self) -> bool {
        self.row().is_better_large
    }

    /// Whether it counts elements, so that it is meaningful however small the values are.
    pub fn counts_elements(self) -> bool {
        self.name().starts_with("n_") || self == MetricId::DigestMismatch
    }

    /// Whether it counts elements that are NaN or infinite on one side alone.
    pub fn counts_mismatches(self) -> bool {
        matches!(
            self,
            MetricId::NanMismatches | MetricId::InfMismatches | MetricId::NonFiniteMismatches
        )
    }

    /// Whether it is the relative distance of one statistic.
    pub fn is_statistic_distance(self) -> bool {
        matches!(
            self,
            MetricId::StatisticMaxRel
                | MetricId::StatisticMinRel
                | MetricId::StatisticMeanRel
                | MetricId::StatisticL2NormRel
        )
    }

    /// The metric that is a statistic of one side's tensor.
    pub fn of_tensor(party: Party, statistic: TensorStatistic) -> MetricId {
        let first = match party {
            Party::Target => MetricId::TargetMin,
            Party::Golden => MetricId::GoldenMin,
        };
        // The rows of either side are in the order of `TensorStatistic`, which saves a table of
        // pairs.
        TABLE[first as usize + statistic as usize].metric
    }

    /// The side of whose tensor it is a statistic; `None` if it concerns both.
    pub fn party(self) -> Option<Party> {
        let position = self as usize;
        let n_statistics = TensorStatistic::ALL.len();
        [Party::Target, Party::Golden].into_iter().find(|party| {
            let first = MetricId::of_tensor(*party, TensorStatistic::Min) as usize;
            (first..first + n_statistics).contains(&position)
        })
    }

    // The table has a row for each variant in the order of the variants, as one macro makes both.
    fn row(self) -> &'static MetricRow {
        &TABLE[self as usize]
    }
}

impl fmt::Display for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for MetricId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for MetricId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<MetricId, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(from)?;
        MetricId::from_name(&name)
            .ok_or_else(|| serde::de::Error::custom(format!("there is no metric `{name}`")))
    }
}

/// A statistic of one tensor, whatever its name in a table. The order is that of a side's metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TensorStatistic {
    /// The smallest element.
    Min,
    /// The largest element.
    Max,
    /// The mean.
    Mean,
    /// The standard deviation.
    Std,
    /// The square root of the sum of squares.
    L2Norm,
    /// Number of NaN elements.
    NanCount,
    /// Number of +∞ elements.
    PositiveInfCount,
    /// Number of −∞ elements.
    NegativeInfCount,
    /// Number of zeros.
    Zero,
    /// Number of elements.
    Count,
    /// Number of elements below zero, which MindSpore calls negative zeros.
    Negative,
    /// Number of elements above zero.
    Positive,
}

impl TensorStatistic {
    /// All of them, in order.
    pub const ALL: [TensorStatistic; 12] = [
        TensorStatistic::Min,
        TensorStatistic::Max,
        TensorStatistic::Mean,
        TensorStatistic::Std,
        TensorStatistic::L2Norm,
        TensorStatistic::NanCount,
        TensorStatistic::PositiveInfCount,
        TensorStatistic::NegativeInfCount,
        TensorStatistic::Zero,
        TensorStatistic::Count,
        TensorStatistic::Negative,
        TensorStatistic::Positive,
    ];

    /// The metric for the distance between both sides' statistics, if there is one.
    pub fn distance(self) -> Option<MetricId> {
        Some(match self {
            TensorStatistic::Max => MetricId::StatisticMaxRel,
            TensorStatistic::Min => MetricId::StatisticMinRel,
            TensorStatistic::Mean => MetricId::StatisticMeanRel,
            TensorStatistic::L2Norm => MetricId::StatisticL2NormRel,
            TensorStatistic::Negative => MetricId::StatisticNegativeShare,
            TensorStatistic::Positive => MetricId::StatisticPositiveShare,
            TensorStatistic::Zero => MetricId::StatisticZeroShare,
            TensorStatistic::Std
            | TensorStatistic::Count
            | TensorStatistic::NanCount
            | TensorStatistic::PositiveInfCount
            | TensorStatistic::NegativeInfCount => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_metrics() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.metric as usize, i, "{}", row.name);
            assert_eq!(MetricId::from_name(row.name), Some(row.metric));
        }
        assert_eq!(MetricId::from_name("cosines"), None);
    }

    #[test]
    fn statistics_of_a_side_are_named_after_it() {
        for (party, prefix) in [(Party::Target, "target_"), (Party::Golden, "golden_")] {
            for (i, statistic) in TensorStatistic::ALL.into_iter().enumerate() {
                assert_eq!(statistic as usize, i);
                let metric = MetricId::of_tensor(party, statistic);
                assert!(metric.name().starts_with(prefix), "{metric}");
                assert_eq!(metric.party(), Some(party));
            }
        }
        assert_eq!(MetricId::DigestMismatch.party(), None);
        assert_eq!(MetricId::FirstBad.party(), None);
    }

    #[test]
    fn marks_are_read() {
        assert!(MetricId::Cosine.is_better_large() && !MetricId::RelL2.is_better_large());
        assert_eq!(MetricId::with_columns().count(), 45);
        assert_eq!(MetricId::on_page().count(), 14);
    }
}
