//! The numbers of a comparison by name.

use opscope_tensor::difference::TensorDifference;

use super::metric::{MetricId, TensorStatistic};
use super::party::Party;
use super::result::Metrics;

impl Metrics {
    /// The numbers of a difference, under the names and in the order of `docs/compare.md`.
    pub fn from_difference(found: &TensorDifference) -> Metrics {
        let mut all: Vec<(MetricId, f64)> = Vec::with_capacity(48);
        // There is none where one side alone is all zero, which has no direction.
        if let Some(cosine) = found.cosine {
            all.push((MetricId::Cosine, cosine));
        }
        all.extend([
            (MetricId::RelL2, found.rel_l2),
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
        Metrics(all)
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
