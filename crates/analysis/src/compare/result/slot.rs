//! The result of comparing two slots. Large comparisons have millions of them, and few with more than
//! numbers and a level.

use std::ops::Deref;
use std::sync::LazyLock;

use opscope_store::SharedText;
use opscope_store::record::SlotSide;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thin_vec::ThinVec;

use super::{
    DifferingElements, Evidence, MetricId, Metrics, OperatorName, RuleName, SharedSummary, SlotKey,
    SlotRanks, TensorChange, VerdictLevel,
};

/// The result of comparing two slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotResult {
    /// The target's slot.
    pub slot: SlotKey,
    /// The target's dtype, layout and shape.
    pub target: SharedSummary,
    /// The golden side's.
    pub golden: SharedSummary,
    /// The kind of evidence that was compared.
    pub evidence: Evidence,
    /// The metrics that exist. Infinities and NaN are the texts `inf`, `-inf` and `nan`.
    pub metrics: Metrics,
    /// Whether the input's producer is missing in a dump, according to the graph next to it.
    pub is_unseen: bool,
    /// Whether the output is the last value of a parameter, a buffer or a gradient that the target
    /// writes to.
    pub is_updated: bool,
    /// Whether the input differs and no operator of either side produces it, according to the
    /// elements of all tensors.
    pub is_outside: bool,
    /// The verdict.
    pub level: VerdictLevel,
    /// The rules that led to it.
    pub rules: ThinVec<RuleHit>,
    /// Elements by the decimal exponent of their relative difference.
    pub histogram: ThinVec<u64>,
    /// Most have none of these, which takes the memory of a pointer. They are read as if they were
    /// fields of the slot, and set by [`change_rare`](Self::change_rare).
    pub rare: Option<Box<RareFindings>>,
}

/// Findings that only few slots have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RareFindings {
    /// Golden's slot, if it differs.
    pub golden_slot: Option<SlotKey>,
    /// The layout in which they were compared, if it differs from both.
    pub layout: Option<SharedText>,
    /// The name of the parameter or weight in this input, if it does not pass and a graph next to
    /// the dumps has it.
    pub parameter: Option<SharedText>,
    /// Golden's name of it, if it is another one of the target's names.
    pub golden_parameter: Option<SharedText>,
    /// The metrics of the reference against the golden side, if there is a reference.
    pub yardstick: Option<Box<Metrics>>,
    /// The dtype whose limits applied, if the values passed through a coarser one than both sides
    /// have.
    pub judged_as: Option<SharedText>,
    /// Why a difference is no evidence of a fault, if so.
    pub agreement: Option<SlotAgreement>,
    /// The ranks whose parts the tensors were combined from, if any.
    pub ranks: Option<Box<SlotRanks>>,
    /// The positions of differing elements, for slots at which the sides diverge.
    pub differing: Option<Box<DifferingElements>>,
    /// The operation that turns golden's tensor into the target's, for the same slots and for
    /// weights that differ.
    pub change: Option<Box<TensorChange>>,
}

static NOTHING_RARE: LazyLock<RareFindings> = LazyLock::new(RareFindings::default);

/// The form of results in JSON. Reading `rare` takes no getters; that there is one makes serde call
/// `From` for what it reads.
#[derive(Serialize, Deserialize)]
#[serde(remote = "SlotResult")]
struct SavedSlot {
    #[serde(getter = "SlotResult::key")]
    slot: SlotKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    golden_slot: Option<SlotKey>,
    target: SharedSummary,
    golden: SharedSummary,
    evidence: Evidence,
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<SharedText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parameter: Option<SharedText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    golden_parameter: Option<SharedText>,
    metrics: Metrics,
    #[serde(skip_serializing_if = "Option::is_none")]
    yardstick: Option<Box<Metrics>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judged_as: Option<SharedText>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_unseen: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_updated: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_outside: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agreement: Option<SlotAgreement>,
    level: VerdictLevel,
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    rules: ThinVec<RuleHit>,
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    histogram: ThinVec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ranks: Option<Box<SlotRanks>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    differing: Option<Box<DifferingElements>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<Box<TensorChange>>,
}

impl From<SavedSlot> for SlotResult {
    fn from(saved: SavedSlot) -> SlotResult {
        let found = RareFindings {
            golden_slot: saved.golden_slot,
            layout: saved.layout,
            parameter: saved.parameter,
            golden_parameter: saved.golden_parameter,
            yardstick: saved.yardstick,
            judged_as: saved.judged_as,
            agreement: saved.agreement,
            ranks: saved.ranks,
            differing: saved.differing,
            change: saved.change,
        };
        SlotResult {
            slot: saved.slot,
            target: saved.target,
            golden: saved.golden,
            evidence: saved.evidence,
            metrics: saved.metrics,
            is_unseen: saved.is_unseen,
            is_updated: saved.is_updated,
            is_outside: saved.is_outside,
            level: saved.level,
            rules: saved.rules,
            histogram: saved.histogram,
            rare: found.boxed(),
        }
    }
}

impl Serialize for SlotResult {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        SavedSlot::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for SlotResult {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SlotResult, D::Error> {
        SavedSlot::deserialize(from)
    }
}

impl SlotResult {
    /// Whether it is an output.
    pub fn is_output(&self) -> bool {
        self.slot.side == SlotSide::Output
    }

    /// Whether it was compared and did not pass.
    pub fn is_apart(&self) -> bool {
        self.level.is_apart()
    }

    /// The norm of the difference, if known.
    pub fn absolute_distance(&self) -> Option<f64> {
        // `rmse` is a mean over finite pairs, and their number brings it back to the norm.
        let rmse = self.metrics.get(MetricId::Rmse)?;
        let distance = rmse * self.metrics.get(MetricId::FiniteCount)?.sqrt();
        distance.is_finite().then_some(distance)
    }

    fn key(&self) -> SlotKey {
        self.slot
    }

    /// Changes what few slots have.
    pub fn change_rare(&mut self, change: impl FnOnce(&mut RareFindings)) {
        let mut rare = self
            .rare
            .take()
            .map_or_else(RareFindings::default, |rare| *rare);
        change(&mut rare);
        self.rare = rare.boxed();
    }
}

impl RareFindings {
    /// The pointer for a slot with these: none without any.
    fn boxed(self) -> Option<Box<RareFindings>> {
        (self != *NOTHING_RARE).then(|| Box::new(self))
    }
}

impl Deref for SlotResult {
    type Target = RareFindings;

    fn deref(&self) -> &RareFindings {
        self.rare.as_deref().unwrap_or(&NOTHING_RARE)
    }
}

/// Where the other side has the value of a slot whose partner has another value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotAgreement {
    /// For outputs: whatever was computed from it, on either side, is on the other side as well.
    /// The pair computes different values in equivalent graphs.
    Downstream,
    /// For inputs: the partner has no such value. The operators that produced it read values that
    /// the other side has, and produce sound values elsewhere in the graph.
    Inner,
    /// For inputs: the partner reads the value as another input.
    OtherInput,
    /// For inputs: a shape, or a weight with its elements in another order, with equal results of
    /// the operators; or a weight with a folded batch normalization.
    Stored,
    /// For inputs: the golden dump has the value, first at this operator, but the partner does not
    /// read it.
    Elsewhere(Box<OperatorName>),
    /// Both sides are apart by the rounding of sums whose terms cancel, and by what an optimizer
    /// makes of it.
    Rounding,
}

/// A threshold that was exceeded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleHit {
    /// The metric, or another rule.
    pub metric: RuleName,
    /// Its value; NaN and infinities as text.
    #[serde(with = "crate::compare::number")]
    pub value: f64,
    /// The threshold.
    #[serde(with = "crate::compare::number")]
    pub threshold: f64,
    /// The resulting level.
    pub level: VerdictLevel,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_findings_are_saved_like_other_fields() {
        let json = [
            r#"{"slot":"input.1","golden_slot":"input.0","target":{"dtype":"","shape":[]},"#,
            r#""golden":{"dtype":"","shape":[]},"evidence":"tensor","layout":"NCHW","#,
            r#""parameter":"a","golden_parameter":"b","metrics":{"rmse":1.0},"#,
            r#""yardstick":{"rmse":2.0},"judged_as":"float16","is_unseen":true,"#,
            r#""agreement":"stored","level":"fail","histogram":[1]}"#,
        ]
        .concat();
        let mut slot: SlotResult = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&slot).unwrap(), json);
        assert_eq!(slot.judged_as.as_deref(), Some("float16"));
        slot.change_rare(|rare| *rare = RareFindings::default());
        // Nothing rare takes no memory.
        assert_eq!(slot.rare, None);
    }
}
