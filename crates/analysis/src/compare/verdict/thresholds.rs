//! How far is too far.

use std::collections::BTreeMap;

use opscope_tensor::DType;
use serde::Deserialize;
use thiserror::Error;

use super::is_float;

/// A limit that leads to a warning, and one that leads to a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Beyond it is a warning.
    pub warn: Option<f64>,
    /// Beyond it is a failure.
    pub fail: Option<f64>,
}

/// Limits of metrics.
type Limits = BTreeMap<String, Bounds>;

/// All limits: the defaults, and what a file says beside them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// By name of the dtype; `float` and `integer` for those that have none of their own.
    pub dtypes: BTreeMap<String, Limits>,
    /// By type of the operator, before those of the dtype.
    pub op_types: BTreeMap<String, Limits>,
    /// By name of the operator, with `*` and `?`; before everything else, later ones first.
    pub names: Vec<(String, Limits)>,
    /// How many times the reference's own distance is allowed.
    pub yardstick_factor: f64,
}

/// What is wrong with thresholds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ThresholdsError {
    /// A dtype that does not exist.
    #[error("`dtypes`: there is no dtype `{0}`; `float` and `integer` stand for all of their kind")]
    Dtype(String),
    /// A metric that no slot has.
    #[error("{place}: there is no metric `{metric}`")]
    Metric {
        /// Where in the file.
        place: String,
        /// The name.
        metric: String,
    },
}

/// Metrics that can have limits.
pub(super) const METRICS: [&str; 20] = [
    "cosine",
    "rel_l2",
    "max_abs",
    "mean_abs",
    "rmse",
    "max_rel",
    "mean_rel",
    "accumulated_rel",
    "kl",
    "max_ulp",
    "p99_ulp",
    "snr_db",
    "psnr_db",
    "share_1_1000",
    "share_5_1000",
    "n_sign_flips",
    "n_non_finite_mismatches",
    "share_unequal",
    "scaled_max_abs",
    "digest_mismatch",
];

/// Beyond the reference's own distance by this factor is too far.
const YARDSTICK_FACTOR: f64 = 2.0;

/// See [`FLOATS`].
type FloatLimits = (&'static str, [f64; 2], [f64; 2], [f64; 2]);

/// Kind of dtype, `rel_l2`, `scaled_max_abs` and `cosine`: warning and failure each.
const FLOATS: [FloatLimits; 5] = [
    ("float64", [1e-9, 1e-6], [1e-8, 1e-5], [0.999_999, 0.9999]),
    ("float32", [1e-4, 1e-3], [1e-3, 1e-2], [0.9999, 0.999]),
    ("float16", [5e-3, 2e-2], [1e-2, 5e-2], [0.999, 0.99]),
    ("bfloat16", [2e-2, 5e-2], [4e-2, 0.1], [0.999, 0.99]),
    // Floats of 8 bits and fewer.
    ("float", [0.1, 0.25], [0.15, 0.4], [0.99, 0.96]),
];

impl Default for Thresholds {
    fn default() -> Thresholds {
        let bounds = |[warn, fail]: [f64; 2]| Bounds {
            warn: Some(warn),
            fail: Some(fail),
        };
        let never = Bounds {
            warn: None,
            fail: Some(0.0),
        };
        let statistic = Bounds {
            warn: Some(0.01),
            fail: Some(0.1),
        };
        let mut dtypes = BTreeMap::new();
        for (name, rel_l2, scaled, cosine) in FLOATS {
            let limits = [
                ("rel_l2", bounds(rel_l2)),
                ("scaled_max_abs", bounds(scaled)),
                ("cosine", bounds(cosine)),
                ("n_non_finite_mismatches", never),
                ("statistic_rel", statistic),
            ];
            dtypes.insert(name.to_owned(), limits_of(&limits));
        }
        // One step up or down is how quantised values round.
        let quantised = [
            ("share_unequal", bounds([0.0, 0.05])),
            ("max_abs", bounds([0.0, 1.0])),
        ];
        for name in ["int8", "uint8", "int4", "uint4"] {
            dtypes.insert(name.to_owned(), limits_of(&quantised));
        }
        dtypes.insert("integer".to_owned(), limits_of(&[("share_unequal", never)]));
        Thresholds {
            dtypes,
            op_types: BTreeMap::new(),
            names: Vec::new(),
            yardstick_factor: YARDSTICK_FACTOR,
        }
    }
}

fn limits_of(limits: &[(&str, Bounds)]) -> Limits {
    limits
        .iter()
        .map(|(name, bounds)| ((*name).to_owned(), *bounds))
        .collect()
}

impl Thresholds {
    /// The limits for slots of a dtype of an operator, by metric.
    pub fn bounds(
        &self,
        dtype: Option<DType>,
        op_type: &str,
        op_name: &str,
    ) -> Vec<(String, Bounds)> {
        let of_kind = if is_float(dtype) { "float" } else { "integer" };
        let own = dtype.and_then(|dtype| self.dtypes.get(dtype.name()));
        let mut limits = own
            .or_else(|| self.dtypes.get(of_kind))
            .cloned()
            .unwrap_or_default();
        if let Some(more) = self.op_types.get(op_type) {
            limits.extend(more.iter().map(|(name, bounds)| (name.clone(), *bounds)));
        }
        for (pattern, more) in &self.names {
            if is_match(pattern, op_name) {
                limits.extend(more.iter().map(|(name, bounds)| (name.clone(), *bounds)));
            }
        }
        limits.into_iter().collect()
    }

    /// The defaults with what a file says laid over them, metric by metric.
    #[must_use]
    pub fn over_defaults(self) -> Thresholds {
        let mut all = Thresholds {
            op_types: self.op_types,
            names: self.names,
            yardstick_factor: self.yardstick_factor,
            ..Thresholds::default()
        };
        for (dtype, limits) in self.dtypes {
            all.dtypes.entry(dtype).or_default().extend(limits);
        }
        all
    }

    /// Whether every name is one that exists.
    ///
    /// # Errors
    /// [`ThresholdsError`] for the first that is not.
    pub fn check(&self) -> Result<(), ThresholdsError> {
        for name in self.dtypes.keys() {
            let is_kind = ["float", "integer"].contains(&name.as_str());
            if !is_kind && name.parse::<DType>().is_err() {
                return Err(ThresholdsError::Dtype(name.clone()));
            }
        }
        let dtypes = self
            .dtypes
            .iter()
            .map(|(name, limits)| (format!("dtypes.{name}"), limits));
        let types = self
            .op_types
            .iter()
            .map(|(name, limits)| (format!("op_types.{name}"), limits));
        let names = self
            .names
            .iter()
            .map(|(name, limits)| (format!("names.{name}"), limits));
        for (place, limits) in dtypes.chain(types).chain(names) {
            let is_known = |metric: &str| METRICS.contains(&metric) || metric == "statistic_rel";
            if let Some(metric) = limits.keys().find(|metric| !is_known(metric)) {
                return Err(ThresholdsError::Metric {
                    place,
                    metric: metric.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Whether a pattern with `*` (any text) and `?` (one character) fits all of a text.
pub(crate) fn is_match(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                // The last star takes one character more.
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c*", "abcb", true),
            ("a?c", "ac", false),
            ("*.attn", "blocks.0.attn", true),
            ("*.attn", "blocks.0.attn2", false),
        ] {
            assert_eq!(is_match(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_file_lies_over_the_defaults() {
        let text = r#"{"dtypes": {"float32": {"rel_l2": {"fail": 1}}},
                       "op_types": {"Softmax": {"cosine": {}}}, "names": [["a*", {"rel_l2": {"warn": 0.5}}]]}"#;
        let thresholds: Thresholds = serde_json::from_str(text).unwrap();
        thresholds.check().unwrap();
        let thresholds = thresholds.over_defaults();
        let get = |op_type, op_name, metric: &str| {
            let bounds = thresholds.bounds(Some(DType::F32), op_type, op_name);
            bounds
                .into_iter()
                .find(|(name, _)| name == metric)
                .unwrap()
                .1
        };
        assert_eq!(get("Add", "x", "rel_l2").fail, Some(1.0));
        assert_eq!(get("Add", "abc", "rel_l2").warn, Some(0.5));
        assert_eq!(get("Softmax", "x", "cosine"), Bounds::default());
        assert!(get("Add", "x", "cosine").fail.is_some());
        let bad: Thresholds = serde_json::from_str(r#"{"dtypes": {"float33": {}}}"#).unwrap();
        assert!(bad.check().is_err());
    }
}
