//! The limits beyond which a difference counts.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use opscope_tensor::DType;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use thiserror::Error;

use super::bounds::{Limits, MetricBounds};
use super::derived::{is_beyond, of_natural_loss};
use super::{defaults, exactness, glob::is_match};
use crate::compare::attribution::kinds::plain_type;
use crate::compare::document::{DocumentError, read_document};
use crate::compare::metric::MetricId;
use crate::compare::nearest;
use crate::compare::side::without_dots;

/// The name of the limits for models that are quantised to 8 bits.
pub const PRESET_INT8: &str = "int8";
/// The name of the limits under which every element must be equal.
pub const PRESET_EXACT: &str = "exact";

/// All limits: the defaults, and those of a file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// By name of the dtype; `float` and `integer` for all of their kind.
    pub dtypes: BTreeMap<String, Limits>,
    /// By type of the operator; they take precedence over those of the dtype.
    pub op_types: BTreeMap<String, Limits>,
    /// By name of the operator, with `*` and `?`; they take precedence over all others, and later
    /// ones over earlier ones.
    #[serde(deserialize_with = "in_order")]
    pub names: Vec<(String, Limits)>,
    /// Types of operators, with `*` and `?` and in any letter case, whose outputs are not judged.
    pub not_judged: Vec<String>,
    /// Differences up to this are ignored, whatever their relative size.
    pub atol: f64,
    /// The factor by which the reference's distance may be exceeded.
    pub yardstick_factor: f64,
    /// The effect of the reference's distance on limits.
    pub yardstick: YardstickUse,
    /// Whether every element must be equal, so that nothing excuses a difference.
    #[serde(skip)]
    pub is_exact: bool,
}

/// The effect of the reference's distance on limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum YardstickUse {
    /// A limit becomes wider where the reference itself is farther away, and never narrower.
    #[default]
    Widen,
    /// The reference's distance replaces the limit of a failure.
    Replace,
}

/// Why thresholds cannot be used.
#[derive(Debug, Error)]
pub enum ThresholdsError {
    /// The file cannot be read, or is not a file of thresholds.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A dtype that does not exist.
    #[error(
        "`dtypes`: there is no dtype `{name}`{hint}; `float` and `integer` stand for all of their kind"
    )]
    Dtype {
        /// The name.
        name: String,
        /// A hint at the name that may be meant.
        hint: String,
    },
    /// A metric that no slot has.
    #[error("`{place}`: there is no metric `{metric}`{hint}")]
    Metric {
        /// Where in the file.
        place: String,
        /// The name.
        metric: String,
        /// A hint at the name that may be meant.
        hint: String,
    },
    /// An invalid absolute tolerance.
    #[error("`atol`: expected a finite number from 0 on, found {0}")]
    Tolerance(f64),
    /// An invalid factor.
    #[error("`yardstick_factor`: expected a number from 1 on, found {0}")]
    Factor(f64),
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            dtypes: defaults::dtypes(),
            op_types: BTreeMap::new(),
            names: Vec::new(),
            not_judged: defaults::NOT_JUDGED.map(str::to_owned).to_vec(),
            // Only the user knows which values are negligible for a network.
            atol: 0.0,
            yardstick_factor: defaults::YARDSTICK_FACTOR,
            yardstick: YardstickUse::default(),
            is_exact: false,
        }
    }
}

impl Thresholds {
    /// The defaults, overridden by those of a file, metric by metric. A file whose name ends in
    /// `.json` is JSON, any other YAML. [`PRESET_INT8`] and [`PRESET_EXACT`] are presets, unless
    /// files with these names exist.
    ///
    /// # Errors
    /// [`ThresholdsError`].
    pub fn read(path: &Path) -> Result<Thresholds, ThresholdsError> {
        if path == Path::new(PRESET_INT8) && !path.exists() {
            return Ok(Thresholds {
                dtypes: defaults::int8(),
                ..Thresholds::default()
            });
        }
        if path == Path::new(PRESET_EXACT) && !path.exists() {
            return Ok(Thresholds::exact());
        }
        let file: Thresholds = read_document(path)?;
        file.check()?;
        Ok(file.over_defaults())
    }

    /// No element may differ. Only uninitialised memory is not judged: random numbers are equal if
    /// both sides draw the same ones.
    pub fn exact() -> Thresholds {
        Thresholds {
            dtypes: defaults::exact(),
            not_judged: defaults::UNWRITTEN.map(str::to_owned).to_vec(),
            is_exact: true,
            ..Thresholds::default()
        }
    }

    /// Whether all limits are defaults.
    pub fn are_default(&self) -> bool {
        self.dtypes == defaults::dtypes() && self.op_types.is_empty() && self.names.is_empty()
    }

    /// The limits for slots of a dtype of an operator, by metric.
    pub fn bounds(
        &self,
        dtype: Option<DType>,
        op_type: &str,
        op_name: &str,
    ) -> Vec<(MetricId, MetricBounds)> {
        let own = dtype.and_then(|dtype| self.dtypes.get(dtype.name()));
        let of_names = self.names.iter();
        let of_names = of_names.filter(|(pattern, _)| is_match(pattern, op_name));
        let layers = [
            self.dtypes.get(kind_of(dtype)),
            own,
            self.limits_of(op_type),
        ];
        let layers = layers.into_iter().flatten();
        let mut limits = Limits::new();
        for layer in layers.chain(of_names.map(|(_, more)| more)) {
            limits.extend(layer.iter().map(|(name, bounds)| (name.clone(), *bounds)));
        }
        // `check` has refused names of no metric.
        let known = limits.into_iter();
        known
            .filter_map(|(name, bounds)| Some((MetricId::from_name(&name)?, bounds)))
            .collect()
    }

    /// The limits of a type, which may be written with the dots that PyTorch's types have.
    fn limits_of(&self, op_type: &str) -> Option<&Limits> {
        let mut known = self.op_types.iter();
        let same = known.find(|(name, _)| without_dots(name) == op_type);
        self.op_types
            .get(op_type)
            .or(same.map(|(_, limits)| limits))
    }

    /// Whether outputs of an operator type have meaningful values, or specific limits exist for
    /// them.
    pub fn is_judged(&self, op_type: &str, op_name: &str) -> bool {
        let has_own = self.limits_of(op_type).is_some()
            || self.names.iter().any(|(name, _)| is_match(name, op_name));
        let plain = plain_type(op_type);
        let mut patterns = self.not_judged.iter().map(|pattern| pattern.to_lowercase());
        has_own || !patterns.any(|pattern| is_match(&pattern, &plain))
    }

    /// The limit that holds where the reference's own distance is known.
    pub(super) fn with_yardstick(&self, metric: MetricId, bound: f64, natural: Option<f64>) -> f64 {
        let natural = natural.and_then(|n| of_natural_loss(metric, n, self.yardstick_factor));
        match (natural, self.yardstick) {
            (Some(natural), YardstickUse::Replace) => natural,
            (Some(natural), YardstickUse::Widen) if is_beyond(metric, natural, bound) => natural,
            _ => bound,
        }
    }

    /// The defaults with these laid over them, metric by metric.
    #[must_use]
    pub fn over_defaults(self) -> Thresholds {
        let mut dtypes = defaults::dtypes();
        for kind in ["float", "integer"] {
            let Some(limits) = self.dtypes.get(kind) else {
                continue;
            };
            // A limit of a kind applies to all its dtypes, whatever their defaults.
            for (name, known) in &mut dtypes {
                // `integer` is not a dtype, and a name that does not parse counts as a float.
                if name == kind || kind_of(name.parse().ok()) == kind && name != "integer" {
                    known.extend(limits.clone());
                }
            }
        }
        for (dtype, limits) in self.dtypes {
            let is_kind = ["float", "integer"].contains(&dtype.as_str());
            if !is_kind {
                dtypes.entry(dtype).or_default().extend(limits);
            }
        }
        Thresholds { dtypes, ..self }
    }

    /// Whether every name is one that exists.
    ///
    /// # Errors
    /// [`ThresholdsError`] for the first that is not.
    pub fn check(&self) -> Result<(), ThresholdsError> {
        for name in self.dtypes.keys() {
            let is_kind = ["float", "integer"].contains(&name.as_str());
            if !is_kind && name.parse::<DType>().is_err() {
                let known = DType::ALL.iter().map(|dtype| dtype.name());
                return Err(ThresholdsError::Dtype {
                    name: name.clone(),
                    hint: nearest::hint(name, known),
                });
            }
        }
        if !(self.atol.is_finite() && self.atol >= 0.0) {
            return Err(ThresholdsError::Tolerance(self.atol));
        }
        // With less than 1 the reference would be beyond its own distance.
        if self.yardstick_factor.is_nan() || self.yardstick_factor < 1.0 {
            return Err(ThresholdsError::Factor(self.yardstick_factor));
        }
        let dtypes = self
            .dtypes
            .iter()
            .map(|(name, limits)| ("dtypes", name, limits));
        let types = self
            .op_types
            .iter()
            .map(|(name, limits)| ("op_types", name, limits));
        let names = self
            .names
            .iter()
            .map(|(name, limits)| ("names", name, limits));
        for (part, name, limits) in dtypes.chain(types).chain(names) {
            let is_known =
                |name: &str| MetricId::from_name(name).is_some_and(MetricId::can_have_limit);
            if let Some(metric) = limits.keys().find(|name| !is_known(name)) {
                return Err(ThresholdsError::Metric {
                    place: format!("{part}.{name}"),
                    metric: metric.clone(),
                    hint: nearest::hint(metric, MetricId::with_limits().map(MetricId::name)),
                });
            }
        }
        Ok(())
    }
}

/// Returns the kind that a dtype falls back on: `float`, also where it is unknown, or `integer`.
fn kind_of(dtype: Option<DType>) -> &'static str {
    if dtype.is_none_or(exactness::is_float) {
        "float"
    } else {
        "integer"
    }
}

/// The entries of a map in the order of the file.
fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, Limits)>, D::Error> {
    struct ThresholdEntries;
    impl<'de> Visitor<'de> for ThresholdEntries {
        type Value = Vec<(String, Limits)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("patterns of names with limits of metrics")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(entry) = map.next_entry()? {
                all.push(entry);
            }
            Ok(all)
        }
    }
    from.deserialize_map(ThresholdEntries)
}

#[cfg(test)]
mod tests;
