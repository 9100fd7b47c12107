//! The two limits of a metric.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Limits by the names of metrics, as files have them.
pub type Limits = BTreeMap<String, MetricBounds>;

/// A limit that leads to a warning, and one that leads to a failure. With neither the metric is not
/// judged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MetricBounds {
    /// Beyond it is a warning.
    pub warn: Option<f64>,
    /// Beyond it is a failure.
    pub fail: Option<f64>,
}

impl MetricBounds {
    /// A warning, and a failure.
    pub(super) const fn new([warn, fail]: [f64; 2]) -> MetricBounds {
        MetricBounds {
            warn: Some(warn),
            fail: Some(fail),
        }
    }

    /// A warning alone.
    pub(super) const fn warning(warn: f64) -> MetricBounds {
        MetricBounds {
            warn: Some(warn),
            fail: None,
        }
    }

    /// Only zero passes.
    pub(super) const NEVER: MetricBounds = MetricBounds {
        warn: None,
        fail: Some(0.0),
    };
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundsPair {
    warn: Option<f64>,
    fail: Option<f64>,
}

impl<'de> Deserialize<'de> for MetricBounds {
    /// `{warn: …, fail: …}`, a number that is the limit of a failure, or `false` for no limit.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<MetricBounds, D::Error> {
        from.deserialize_any(BoundsVisitor)
    }
}

struct BoundsVisitor;

impl<'de> Visitor<'de> for BoundsVisitor {
    type Value = MetricBounds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`warn` and `fail` with a number each, a number, or `false` for no limit")
    }

    fn visit_f64<E: Error>(self, fail: f64) -> Result<MetricBounds, E> {
        // No value is within a limit of NaN, so that all slots would fail.
        if fail.is_nan() {
            return Err(E::custom("NaN is no limit"));
        }
        Ok(MetricBounds {
            warn: None,
            fail: Some(fail),
        })
    }

    // Parsers of JSON and YAML hand over a number without a point as an integer.
    fn visit_i64<E: Error>(self, fail: i64) -> Result<MetricBounds, E> {
        self.visit_f64(fail as f64)
    }

    fn visit_u64<E: Error>(self, fail: u64) -> Result<MetricBounds, E> {
        self.visit_f64(fail as f64)
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<MetricBounds, E> {
        if is_on {
            return Err(E::custom("`true` names no limit"));
        }
        Ok(MetricBounds::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MetricBounds, A::Error> {
        // A derived type refuses unknown keys, where a misspelt `fail` would lift the limit.
        let BoundsPair { warn, fail } = BoundsPair::deserialize(MapAccessDeserializer::new(map))?;
        if [warn, fail].into_iter().flatten().any(f64::is_nan) {
            return Err(A::Error::custom("NaN is no limit"));
        }
        Ok(MetricBounds { warn, fail })
    }
}
