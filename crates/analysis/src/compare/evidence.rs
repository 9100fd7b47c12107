//! The evidence of a comparison, with its names in results.

use std::borrow::Cow;
use std::fmt;

use opscope_store::SharedText;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::metric::MetricId;

/// The evidence by which two slots were compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing.
    #[default]
    None,
    /// Elements.
    Tensor,
    /// Statistics, at least of one side.
    Statistics,
    /// Digests alone.
    Digest,
    /// The shapes alone, because they differ.
    Shape,
    /// Nothing, for a reason in words.
    Reason(SharedText),
}

impl Evidence {
    /// Name in results, or the reason.
    pub fn name(&self) -> &str {
        match self {
            Evidence::None => "none",
            Evidence::Tensor => "tensor",
            Evidence::Statistics => "statistics",
            Evidence::Digest => "digest",
            Evidence::Shape => "shape",
            Evidence::Reason(text) => text,
        }
    }

    /// Whether there are numbers to judge.
    pub fn is_measured(&self) -> bool {
        matches!(
            self,
            Evidence::Tensor | Evidence::Statistics | Evidence::Digest
        )
    }
}

impl Serialize for Evidence {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Evidence {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Evidence, D::Error> {
        let name = Cow::<'de, str>::deserialize(from)?;
        Ok(match &*name {
            "none" => Evidence::None,
            "tensor" => Evidence::Tensor,
            "statistics" => Evidence::Statistics,
            "digest" => Evidence::Digest,
            "shape" => Evidence::Shape,
            // A replay states in words why it compared nothing, so every text is valid here.
            _ => Evidence::Reason((&*name).into()),
        })
    }
}

/// The evidence for a pair of operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairingEvidence {
    /// They have the same name.
    #[default]
    Name,
    /// The same position in both graphs.
    Structure,
    /// They produce the same values.
    Value,
    /// The same module or line of the program called them.
    Origin,
    /// The same position between other pairs.
    Order,
    /// One operator corresponds to several on the other side.
    Fusion,
    /// A mapping lists the pair.
    Mapping,
    /// They are similar; the likeness measures how much.
    Fuzzy,
}

impl PairingEvidence {
    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            PairingEvidence::Name => "name",
            PairingEvidence::Value => "value",
            PairingEvidence::Origin => "origin",
            PairingEvidence::Structure => "structure",
            PairingEvidence::Order => "order",
            PairingEvidence::Fusion => "fusion",
            PairingEvidence::Mapping => "mapping",
            PairingEvidence::Fuzzy => "fuzzy",
        }
    }
}

/// The rule that a verdict follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleName {
    /// Shapes must agree.
    #[default]
    Shape,
    /// Outputs without a defined value are not judged.
    NotJudged,
    /// The other side has the value, or everything that was computed from it.
    Agreement,
    /// Replicas on several ranks must be equal.
    Replicas,
    /// A metric must stay within a threshold.
    Metric(MetricId),
}

impl RuleName {
    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            RuleName::Shape => "shape",
            RuleName::NotJudged => "not_judged",
            RuleName::Agreement => "agreement",
            RuleName::Replicas => "replicas",
            RuleName::Metric(metric) => metric.name(),
        }
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for RuleName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for RuleName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RuleName, D::Error> {
        let name = Cow::<'de, str>::deserialize(from)?;
        match &*name {
            "shape" => Ok(RuleName::Shape),
            "not_judged" => Ok(RuleName::NotJudged),
            "agreement" => Ok(RuleName::Agreement),
            "replicas" => Ok(RuleName::Replicas),
            _ => {
                let metric = MetricId::from_name(&name).map(RuleName::Metric);
                metric.ok_or_else(|| serde::de::Error::custom(format!("there is no rule `{name}`")))
            }
        }
    }
}
