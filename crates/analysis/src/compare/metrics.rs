//! The numbers of a comparison by name.

use opscope_tensor::difference::Difference;

use super::result::Metrics;

impl Metrics {
    /// The numbers of a difference, under the names and in the order of `docs/compare.md`.
    pub fn of(found: &Difference) -> Metrics {
        let mut all: Vec<(&str, f64)> = Vec::with_capacity(48);
        if let Some(cosine) = found.cosine {
            all.push(("cosine", cosine));
        }
        all.extend([
            ("rel_l2", found.rel_l2),
            ("max_abs", found.max_abs),
            ("mean_abs", found.mean_abs),
            ("rmse", found.rmse),
            ("max_rel", found.max_rel),
            ("mean_rel", found.mean_rel),
            ("accumulated_rel", found.accumulated_rel),
        ]);
        let optional = [
            ("kl", found.kl),
            ("max_ulp", found.max_ulp.map(|ulp| ulp as f64)),
            ("p99_ulp", found.p99_ulp.map(|ulp| ulp as f64)),
        ];
        all.extend(
            optional
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        all.extend([
            ("snr_db", found.snr_db),
            ("psnr_db", found.psnr_db),
            ("share_1_1000", found.share_1_1000),
            ("share_5_1000", found.share_5_1000),
            ("n", found.n as f64),
            ("n_finite", found.n_finite as f64),
            ("n_equal", found.n_equal as f64),
            ("is_identical", f64::from(u8::from(found.is_identical))),
            ("n_nan_mismatches", found.n_nan_mismatches as f64),
            ("n_inf_mismatches", found.n_inf_mismatches as f64),
            ("n_sign_flips", found.n_sign_flips as f64),
        ]);
        if let Some(worst) = found.worst {
            all.extend([
                ("worst_index", worst.index as f64),
                ("worst_target", worst.target),
                ("worst_golden", worst.golden),
            ]);
        }
        if let Some(index) = found.first_bad {
            all.push(("first_bad", index as f64));
        }
        let mut metrics: Vec<_> = all
            .into_iter()
            .map(|(name, v)| (name.to_owned(), v))
            .collect();
        for (side, summary) in [("target", &found.target), ("golden", &found.golden)] {
            let numbers = [
                ("min", summary.min),
                ("max", summary.max),
                ("mean", summary.mean),
                ("std", summary.std),
                ("l2_norm", summary.l2_norm),
                ("n_nan", summary.n_nan as f64),
                ("n_positive_inf", summary.n_positive_inf as f64),
                ("n_negative_inf", summary.n_negative_inf as f64),
                ("n_zero", summary.n_zero as f64),
            ];
            metrics.extend(numbers.map(|(name, value)| (format!("{side}_{name}"), value)));
        }
        Metrics(metrics)
    }
}
