//! Judges an operator by its outputs for known inputs: separates its own error from the inherited
//! one.
//!
//! Nothing runs here. An engine recomputes the outputs and passes them in.

mod choice;

use opscope_tensor::difference::{DifferenceOptions, TensorDifference};
use opscope_tensor::{DType, Layout, Tensor, text};
use serde::Serialize;
use thin_vec::ThinVec;

use super::measure::masked;
use super::result::{
    AttributeDifference, Comparison, Metrics, OperatorName, OperatorResult, RuleHit, SlotResult,
    TensorSummary, VerdictLevel,
};
use super::statistics::has_same_extents;
use super::verdict::{Thresholds, judge};
use crate::compare::result::{Evidence, MetricId, RuleName, SlotKey};
use crate::error_chain::chain;

pub use choice::{ChoiceError, OperatorChoice, choose};

/// The result of running an operator again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReplayResult {
    /// The operator.
    pub operator: OperatorName,
    /// Its position in the model, where the dump says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<u32>,
    /// Its outputs in the dump, against those computed again from its inputs in the dump.
    pub own: Vec<SlotResult>,
    /// Its inputs against those of the golden dump.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<SlotResult>,
    /// Outputs computed from its inputs, against those computed from the golden inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inherited: Vec<SlotResult>,
    /// Its outputs against those of the golden dump.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub total: Vec<SlotResult>,
    /// The golden outputs against those computed again from the golden inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub golden_own: Vec<SlotResult>,
    /// Attributes that the operator has other values of on the golden side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<AttributeDifference>,
    /// The largest relative distances of each of those.
    pub errors: ReplayErrors,
    /// The worst of own, inherited and total.
    pub level: VerdictLevel,
    /// Who is at fault.
    pub blame: ReplayBlame,
    /// Further remarks: inputs that came from elsewhere, steps that could not be done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Relative distances (`rel_l2`), the largest of several slots; infinite if shapes or NaN differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReplayErrors {
    /// The operator's own.
    #[serde(with = "super::number")]
    pub own: f64,
    /// Of its inputs.
    #[serde(with = "super::number")]
    pub inputs: f64,
    /// The error that it makes of that.
    #[serde(with = "super::number")]
    pub inherited: f64,
    /// Of its outputs.
    #[serde(with = "super::number")]
    pub total: f64,
    /// The golden operator's own.
    #[serde(with = "super::number")]
    pub golden_own: f64,
}

/// Who is at fault for the outputs of an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayBlame {
    /// Nothing: the outputs are correct.
    #[default]
    Nobody,
    /// The operator itself.
    Own,
    /// Its inputs.
    Inherited,
    /// Both.
    Both,
    /// The operator is another one: its inputs are those of the golden side, and it makes something
    /// else of them, as its attributes say.
    Attributes,
}

impl ReplayBlame {
    /// In a few words.
    pub fn words(self) -> &'static str {
        match self {
            ReplayBlame::Nobody => "agrees",
            ReplayBlame::Own => "the operator itself",
            ReplayBlame::Inherited => "inherits",
            ReplayBlame::Both => "both",
            ReplayBlame::Attributes => "other attributes",
        }
    }
}

/// Returns the difference of all elements, or the reason why there is none.
fn whole_difference(target: &Tensor, golden: &Tensor) -> Result<TensorDifference, String> {
    let target = target.host_view().map_err(|error| chain(&error))?;
    let golden = golden.host_view().map_err(|error| chain(&error))?;
    let found = masked::difference(target, golden, DifferenceOptions::default());
    found.map_err(|error| chain(&error))
}

/// Whether two tensors of text differ, as there is no distance.
fn text_difference(target: &Tensor, golden: &Tensor) -> Result<bool, String> {
    let texts = [target, golden].map(|tensor| {
        let view = tensor.host_view().map_err(|error| chain(&error))?;
        text::iter(view).map_err(|error| chain(&error))
    });
    let [target, golden] = texts;
    Ok(!target?.eq(golden?))
}

/// Compares two tensors; levels are given by [`ReplayResult::judge`].
pub fn compare(slot: SlotKey, target: &Tensor, golden: &Tensor) -> SlotResult {
    let mut result = SlotResult {
        slot,
        target: info(target).into(),
        golden: info(golden).into(),
        ..SlotResult::default()
    };
    if !has_same_extents(target.shape().dims(), golden.shape().dims()) {
        result.evidence = Evidence::Shape;
        result.level = VerdictLevel::Fail;
        result.rules.push(RuleHit {
            metric: RuleName::Shape,
            level: VerdictLevel::Fail,
            ..RuleHit::default()
        });
        return result;
    }
    let is_text = [target.dtype(), golden.dtype()] == [DType::String; 2];
    if let Some(is_other) = is_text
        .then(|| text_difference(target, golden).ok())
        .flatten()
    {
        result.evidence = Evidence::Digest;
        let mismatch = f64::from(u8::from(is_other));
        result.metrics = Metrics::from(vec![(MetricId::DigestMismatch, mismatch)]);
        return result;
    }
    match whole_difference(target, golden) {
        Ok(found) => with_numbers(result, &found),
        Err(reason) => SlotResult {
            evidence: Evidence::Reason(reason.into()),
            level: VerdictLevel::Skip,
            ..result
        },
    }
}

fn with_numbers(result: SlotResult, found: &TensorDifference) -> SlotResult {
    let histogram = if found.n_equal < found.n {
        found.histogram[..].into()
    } else {
        ThinVec::new()
    };
    SlotResult {
        evidence: Evidence::Tensor,
        metrics: Metrics::from_difference(found),
        histogram,
        ..result
    }
}

fn info(tensor: &Tensor) -> TensorSummary {
    let layout = Some(tensor.layout()).filter(|&layout| layout != Layout::Nd);
    TensorSummary {
        dtype: tensor.dtype().name().into(),
        layout: layout.map(|layout| layout.name().into()),
        shape: tensor.shape().dims().iter().map(|&n| n as u64).collect(),
        path: None,
    }
}

impl ReplayResult {
    /// Sets the levels of all slots, then errors, and the culprit.
    pub fn judge(&mut self, thresholds: &Thresholds) {
        let name = self.operator.clone();
        let lists = [
            &mut self.own,
            &mut self.inputs,
            &mut self.inherited,
            &mut self.total,
            &mut self.golden_own,
        ];
        for slots in lists {
            judge_slots(&name, slots, thresholds);
        }
        self.errors = ReplayErrors {
            own: error_of(&self.own),
            inputs: error_of(&self.inputs),
            inherited: error_of(&self.inherited),
            total: error_of(&self.total),
            golden_own: error_of(&self.golden_own),
        };
        let own = worst(&self.own);
        // Without the golden operator's result its inputs have to do.
        let inherited = if self.inherited.is_empty() {
            worst(&self.inputs)
        } else {
            worst(&self.inherited)
        };
        self.blame = blame(own, inherited);
        let is_same = !self.inputs.is_empty()
            && worst(&self.inputs) == VerdictLevel::Pass
            && (self.errors.inputs == 0.0 || !self.attributes.is_empty());
        if self.blame == ReplayBlame::Inherited && !self.inherited.is_empty() && is_same {
            self.blame = ReplayBlame::Attributes;
        }
        // The golden side is taken for right, so that its own error changes no level.
        self.level = own.max(inherited).max(worst(&self.total));
    }
}

/// The worse level gets the blame.
fn blame(own: VerdictLevel, inherited: VerdictLevel) -> ReplayBlame {
    match (own, inherited) {
        (VerdictLevel::Pass, VerdictLevel::Pass) => ReplayBlame::Nobody,
        (own, inherited) if own > inherited => ReplayBlame::Own,
        (own, inherited) if own < inherited => ReplayBlame::Inherited,
        _ => ReplayBlame::Both,
    }
}

fn judge_slots(name: &OperatorName, slots: &mut Vec<SlotResult>, thresholds: &Thresholds) {
    // Each list is judged as a separate operator; otherwise the loss of its inputs would loosen the
    // limits of the lists with outputs.
    let mut comparison = Comparison {
        operators: vec![OperatorResult {
            target: [name.clone()].into(),
            slots: std::mem::take(slots),
            ..OperatorResult::default()
        }],
        ..Comparison::default()
    };
    judge(&mut comparison, thresholds);
    *slots = comparison.operators.swap_remove(0).slots;
}

/// The worst level of slots that were compared.
fn worst(slots: &[SlotResult]) -> VerdictLevel {
    let levels = slots.iter().map(|slot| slot.level);
    // `Skip` sorts behind `Fail`, and would hide it.
    let compared = levels.filter(|level| *level != VerdictLevel::Skip);
    compared.max().unwrap_or_default()
}

fn error_of(slots: &[SlotResult]) -> f64 {
    slots
        .iter()
        .map(|slot| {
            if slot.evidence == Evidence::Shape {
                return f64::INFINITY;
            }
            slot.metrics.get(MetricId::RelL2).unwrap_or(0.0)
        })
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use opscope_tensor::{DType, Shape};

    use super::*;

    fn tensor(values: &[f32]) -> Tensor {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        let shape = Shape::new([values.len()]).unwrap();
        Tensor::from_vec(DType::F32, shape, bytes.collect()).unwrap()
    }

    fn replayed(own: f32, inherited: f32) -> ReplayResult {
        let right = tensor(&[1.0, -2.0, 4.0]);
        let wrong = |by: f32| tensor(&[1.0 + by, -2.0, 4.0]);
        let mut replayed = ReplayResult {
            own: vec![compare(SlotKey::default(), &wrong(own), &right)],
            inherited: vec![compare(SlotKey::default(), &wrong(inherited), &right)],
            ..ReplayResult::default()
        };
        replayed.judge(&Thresholds::default());
        replayed
    }

    #[test]
    fn whoever_is_worse_is_at_fault() {
        let check = |own: f32, inherited: f32, blame: ReplayBlame, level: VerdictLevel| {
            let found = replayed(own, inherited);
            assert_eq!(
                (found.blame, found.level),
                (blame, level),
                "{own} {inherited}"
            );
        };
        check(0.0, 0.0, ReplayBlame::Nobody, VerdictLevel::Pass);
        check(1e-6, 1e-6, ReplayBlame::Nobody, VerdictLevel::Pass);
        check(1.0, 0.0, ReplayBlame::Own, VerdictLevel::Fail);
        check(1.0, 2e-3, ReplayBlame::Own, VerdictLevel::Fail);
        check(0.0, 1.0, ReplayBlame::Inherited, VerdictLevel::Fail);
        check(1.0, 1.0, ReplayBlame::Both, VerdictLevel::Fail);
        check(f32::NAN, 0.0, ReplayBlame::Own, VerdictLevel::Fail);
    }

    #[test]
    fn equal_inputs_are_not_at_fault() {
        let check = |input: f32, attributes: &[&str], expected: ReplayBlame| {
            let mut found = replayed(0.0, 1.0);
            let (right, wrong) = (tensor(&[1.0, 2.0]), tensor(&[1.0 + input, 2.0]));
            found.inputs = vec![compare(SlotKey::default(), &wrong, &right)];
            let names = attributes.iter().map(|name| AttributeDifference {
                name: (*name).to_owned(),
                ..AttributeDifference::default()
            });
            found.attributes = names.collect();
            found.judge(&Thresholds::default());
            assert_eq!(found.blame, expected, "{input} {attributes:?}");
        };
        check(0.0, &[], ReplayBlame::Attributes);
        check(0.0, &["axis"], ReplayBlame::Attributes);
        check(1e-6, &["axis"], ReplayBlame::Attributes);
        check(1e-6, &[], ReplayBlame::Inherited);
        check(1.0, &["axis"], ReplayBlame::Inherited);
    }

    #[test]
    fn distances() {
        assert_eq!(replayed(0.0, f32::NAN).errors.inherited, f64::INFINITY);
        let error = replayed(1.0, 0.0).errors.own;
        assert!((error - 1.0 / 21_f64.sqrt()).abs() < 1e-12, "{error}");
        let other = compare(SlotKey::default(), &tensor(&[1.0]), &tensor(&[1.0, 2.0]));
        assert_eq!(
            (other.evidence.name(), other.level),
            ("shape", VerdictLevel::Fail)
        );
        assert_eq!(error_of(&[other]), f64::INFINITY);
    }
}
