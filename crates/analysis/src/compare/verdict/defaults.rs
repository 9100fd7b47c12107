//! Default limits. `docs/compare.md` has the table and the reasons.

use std::collections::BTreeMap;

use super::bounds::{Limits, MetricBounds};

/// Beyond the reference's own distance by this factor is too far.
pub(super) const YARDSTICK_FACTOR: f64 = 2.0;

/// Limits of a float dtype, a warning and a failure each.
struct FloatLimits {
    name: &'static str,
    rel_l2: [f64; 2],
    scaled_max_abs: [f64; 2],
    cosine: [f64; 2],
    /// Of `gain_error` and `offset_error`.
    systematic: [f64; 2],
    /// A warning only: pure rounding noise may have any sign.
    sign_flip_share: f64,
}

/// From the finest to the coarsest; `float` is every one of 8 bits and fewer, and one that is
/// unknown.
const FLOATS: [FloatLimits; 5] = [
    FloatLimits {
        name: "float64",
        rel_l2: [1e-9, 1e-6],
        scaled_max_abs: [1e-8, 1e-5],
        cosine: [0.999_999, 0.9999],
        systematic: [1e-10, 1e-7],
        sign_flip_share: 1e-3,
    },
    FloatLimits {
        name: "float32",
        // A kernel that computes float32 with the mantissa of TF32 is about 5e-4 off, and has to
        // warn.
        rel_l2: [1e-4, 1e-3],
        scaled_max_abs: [1e-3, 1e-2],
        cosine: [0.9999, 0.999],
        systematic: [2e-5, 5e-4],
        sign_flip_share: 2e-3,
    },
    FloatLimits {
        name: "float16",
        // 10 and 40 roundings, which a few dozen layers collect.
        rel_l2: [5e-3, 2e-2],
        scaled_max_abs: [1e-2, 5e-2],
        cosine: [0.999, 0.99],
        systematic: [2e-3, 1e-2],
        sign_flip_share: 2e-2,
    },
    FloatLimits {
        name: "bfloat16",
        // 5 and 13 roundings, which a few dozen layers collect.
        rel_l2: [2e-2, 5e-2],
        scaled_max_abs: [4e-2, 0.1],
        cosine: [0.999, 0.99],
        systematic: [8e-3, 2.5e-2],
        sign_flip_share: 5e-2,
    },
    FloatLimits {
        name: "float",
        rel_l2: [0.1, 0.25],
        scaled_max_abs: [0.15, 0.4],
        cosine: [0.99, 0.96],
        systematic: [5e-2, 0.15],
        sign_flip_share: 0.15,
    },
];

/// float32 that holds values of 8 bits: 2^-8 of the largest value for each rounding, which a dozen
/// layers collect.
const INT8: FloatLimits = FloatLimits {
    name: "float32",
    rel_l2: [0.03, 0.08],
    scaled_max_abs: [0.05, 0.12],
    cosine: [0.999, 0.99],
    systematic: [0.01, 0.04],
    sign_flip_share: 0.05,
};

/// Integers that encode floats; they round by one step up or down.
const QUANTISED: [&str; 7] = ["int8", "uint8", "int4", "qint8", "quint8", "int2", "uint2"];

/// Types of operators whose outputs have no value that two runs must agree on, in lower case and
/// without the namespace and overload of PyTorch.
pub(super) const NOT_JUDGED: [&str; 31] = [
    "dropout*",
    "native_dropout",
    "_fused_dropout",
    "alpha_dropout",
    "feature_dropout",
    "statelessdropout*",
    "random*",
    "statelessrandom*",
    "dsarandom*",
    "truncatednormal*",
    "parameterizedtruncatednormal",
    "standardnormal*",
    "standardlaplace*",
    "uniformreal",
    "uniformint",
    "uniform*candidatesampler",
    "loguniformcandidatesampler",
    "multinomial*",
    "bernoulli*",
    "poisson*",
    "randint*",
    "randn*",
    "randperm*",
    "rand",
    "rand_like",
    "normal",
    "normal_",
    "normal_functional",
    "uniform*",
    "empty*",
    "new_empty*",
];

/// Those of them whose outputs are unwritten memory.
pub(super) const UNWRITTEN: [&str; 2] = ["empty*", "new_empty*"];

/// Limits by dtype name; `float` and `integer` for dtypes without an entry.
pub(super) fn dtypes() -> BTreeMap<String, Limits> {
    let mut dtypes = BTreeMap::new();
    for limits in FLOATS {
        dtypes.insert(limits.name.to_owned(), limits.to_limits());
    }
    let quantised = [
        // A float between two steps is rounded either way, so a few of these may be one step off.
        ("share_unequal", MetricBounds::new([0.0, 0.05])),
        ("max_abs", MetricBounds::new([0.0, 1.0])),
        ("statistic_rel", MetricBounds::new([0.0, 0.01])),
        ("digest_mismatch", MetricBounds::warning(0.0)),
    ];
    for name in QUANTISED {
        dtypes.insert(name.to_owned(), limits_of(&quantised));
    }
    let integer = [
        // These are indices, counts and masks, where nothing is rounded and any other value is
        // wrong.
        ("share_unequal", MetricBounds::NEVER),
        ("statistic_rel", MetricBounds::NEVER),
        ("digest_mismatch", MetricBounds::NEVER),
    ];
    dtypes.insert("integer".to_owned(), limits_of(&integer));
    dtypes
}

/// The limits for models that are quantised to 8 bits, by name of the dtype: their values are
/// float32 again behind each operator, with the error of 8 bits.
pub(super) fn int8() -> BTreeMap<String, Limits> {
    let mut dtypes = dtypes();
    dtypes.insert(INT8.name.to_owned(), INT8.to_limits());
    dtypes
}

/// The limits under which every element has to be the same.
pub(super) fn exact() -> BTreeMap<String, Limits> {
    let never = [
        "share_unequal",
        "max_abs",
        "n_non_finite_mismatches",
        "statistic_rel",
        "digest_mismatch",
        "digest_rel",
    ];
    let limits = limits_of(&never.map(|name| (name, MetricBounds::NEVER)));
    ["float", "integer"]
        .map(|kind| (kind.to_owned(), limits.clone()))
        .into()
}

impl FloatLimits {
    fn to_limits(&self) -> Limits {
        limits_of(&[
            ("rel_l2", MetricBounds::new(self.rel_l2)),
            ("scaled_max_abs", MetricBounds::new(self.scaled_max_abs)),
            ("cosine", MetricBounds::new(self.cosine)),
            ("gain_error", MetricBounds::new(self.systematic)),
            ("offset_error", MetricBounds::new(self.systematic)),
            (
                "sign_flip_share",
                MetricBounds::warning(self.sign_flip_share),
            ),
            ("n_non_finite_mismatches", MetricBounds::NEVER),
            ("statistic_rel", MetricBounds::new(self.scaled_max_abs)),
            ("digest_mismatch", MetricBounds::warning(0.0)),
            // Sums of absolute values differ by no more than the elements do.
            ("digest_rel", MetricBounds::new(self.rel_l2)),
        ])
    }
}

fn limits_of(limits: &[(&str, MetricBounds)]) -> Limits {
    limits
        .iter()
        .map(|(name, bounds)| ((*name).to_owned(), *bounds))
        .collect()
}
