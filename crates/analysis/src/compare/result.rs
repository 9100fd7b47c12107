//! The saved outcome of a comparison: reports are written from it, and it can be rejudged.

mod contract;
mod experiments;
mod slot;

use opscope_store::SharedText;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use thin_vec::ThinVec;

use super::whole::RankRules;

pub use self::contract::{
    CodesParameter, Conclusion, Contract, ContractValue, NarrowOperator, OtherCodes, OutputSource,
    QuantisedLoss, UpdatedBy, ValuePairing, ValuePresence, ValueState,
};
pub use self::experiments::{ExperimentOutcome, Experiments, HealedCause};
pub use self::slot::{RareFindings, RuleHit, SlotAgreement, SlotResult};
pub use super::change::{AxisPart, ElementFunction, RoundedFormat, RoundingMode, TensorChange};
pub use super::differing::DifferingElements;
pub use super::evidence::{Evidence, PairingEvidence, RuleName};
pub use super::listed_parameter::{ListedParameter, WeightReads};
pub use super::lost_tensors::LostTensors;
pub use super::metric::{MetricId, TensorStatistic};
pub use super::metrics::{Metrics, rel_l2};
pub use super::party::Party;
pub use super::run_origin::RunOrigin;
pub use super::skip_reason::{SkipReason, SkipSide};
pub use super::slot_key::SlotKey;
pub use super::slot_ranks::{PartApart, PartElement, RankOperator, ReplicaMismatch, SlotRanks};
pub use super::step_findings::{FirstStep, NextDump, StepFault, StepFindings, StepResult};
pub use super::tensor_summary::{SharedSummary, TensorSummary};
pub use super::verdict_level::VerdictLevel;

/// Version of the schema.
pub const VERSION: u32 = 1;

/// A comparison of two dumps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Version of the schema.
    pub version: u32,
    /// The paths and options that the comparison was run with.
    pub config: ComparisonConfig,
    /// Pairs of operators, in the order in which the target ran them.
    pub operators: Vec<OperatorResult>,
    /// The operators at which the values of both sides diverge, if they were searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partings: Vec<PartingOperator>,
    /// Whether a dump shows only some of the operators, so that type and order are no evidence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    /// Operators, slots and files that were not compared, and why.
    pub skips: Vec<Skip>,
    /// Files of both dumps with nothing to compare.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOverFile>,
    /// Inputs, outputs and weights of both models, and the verdict that follows from them.
    #[serde(default)]
    pub contract: Contract,
    /// Tensors that the captures of the dumps did not write: the target's and golden's.
    #[serde(default, skip_serializing_if = "has_all")]
    pub lost: [Option<LostTensors>; 2],
    /// Weights that one side reads more often than the other, if the outputs differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weight_reads: Vec<WeightReads>,
    /// Parameters and buffers of both sides, if they are to be listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<ListedParameter>,
    /// Runs of the target with replaced parts, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiments: Option<Box<Experiments>>,
    /// The verdict, counts and first divergences.
    pub summary: ComparisonSummary,
}

fn has_all(lost: &[Option<LostTensors>; 2]) -> bool {
    lost.iter().all(Option::is_none)
}

/// A file with nothing to compare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOverFile {
    /// The side that has it.
    pub side: SkipSide,
    /// Where it is.
    pub path: String,
    /// The reason, as in the JSON of `opscope show`.
    pub reason: String,
}

/// The paths and options that a comparison was run with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparisonConfig {
    /// Version of the program.
    pub program: String,
    /// The dump under test.
    pub target: String,
    /// The trusted dump.
    pub golden: String,
    /// The dump whose distance from the golden one is the yardstick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The run that wrote the target's dump, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_run: Option<RunOrigin>,
    /// The run that wrote the golden dump, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub golden_run: Option<RunOrigin>,
    /// The mapping's rules that combined tensors of ranks; empty if notes of the dumps sufficed.
    /// `None` if ranks were compared one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RankRules>,
    /// Further options, as on the command line.
    pub options: Vec<(String, String)>,
}

/// Matched operators of both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperatorResult {
    /// Position in the list, from 0: the order of execution of the target.
    pub index: usize,
    /// The target's operators: one, or several that were fused on the other side.
    pub target: SmallVec<[OperatorName; 1]>,
    /// The golden side's operators.
    pub golden: SmallVec<[OperatorName; 1]>,
    /// The evidence that brought them together.
    pub how: PairingEvidence,
    /// The certainty of a guessed pair, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likeness: Option<f64>,
    /// Whether the name makes the pair certain, so that no difference can come from wrong pairing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_certain: bool,
    /// Inputs, then outputs.
    pub slots: Vec<SlotResult>,
    /// Positions of the inputs that the dumps do not contain.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub hidden_inputs: ThinVec<u32>,
    /// The verdict on the operator: the worst of its outputs, or of its inputs if no output was
    /// judged.
    pub level: VerdictLevel,
    /// Why its outputs are not what they should be, if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// If the cause is unknown, the operators that may be responsible, nearest first.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub suspects: ThinVec<Suspect>,
    /// The path of its module, if it does not pass and a graph next to the dumps has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<SharedText>,
    /// The line of the program that calls it, under the same conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SharedText>,
    /// Attributes with different values in the graphs, if it does not pass and both graphs have
    /// them.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub attributes: ThinVec<AttributeDifference>,
    /// Readers of its outputs, if both sides differ somewhere and a graph next to the target has
    /// them: the output's index in `slots`, and the reader's index.
    #[serde(default, skip_serializing_if = "ThinVec::is_empty")]
    pub readers: ThinVec<[usize; 2]>,
    /// Whether nothing reads its outputs, and the graph does not return them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unread: bool,
    /// Error of the inputs, of the outputs, and what the operator added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<OwnError>,
    /// Its part in the spreading of NaN and infinities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_finite: Option<NonFiniteRole>,
}

/// An attribute whose values differ, as text; `None` for a side without it, which means its
/// default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeDifference {
    /// Its name.
    pub name: String,
    /// The argument that a name such as `argument.4` numbers, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// The target's value.
    pub target: Option<String>,
    /// The golden side's value.
    pub golden: Option<String>,
}

impl AttributeDifference {
    /// Its name for people: an argument by the name in the schema, `eps (argument.4)`, or by keyword.
    pub fn label(&self) -> String {
        if let Some(argument) = &self.argument {
            return format!("{argument} ({})", self.name);
        }
        let keyword = self.name.strip_prefix("argument.");
        let keyword = keyword.filter(|word| word.parse::<usize>().is_err());
        keyword.unwrap_or(&self.name).to_owned()
    }
}

/// An operator of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OperatorName {
    /// Its type.
    pub op_type: SharedText,
    /// Its name.
    pub op_name: SharedText,
    /// The process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The model or graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<SharedText>,
    /// The execution of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Which execution of the operator within the step.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeat: usize,
}

/// An operator's error in parts; each the largest relative distance ([`Metrics`] `rel_l2`) of its
/// slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnError {
    /// Of its inputs; 0 if none was compared.
    #[serde(with = "super::number")]
    pub inputs: f64,
    /// Of its outputs.
    #[serde(with = "super::number")]
    pub outputs: f64,
    /// The error that it added, by the rule of `docs/compare.md`.
    #[serde(with = "super::number")]
    pub added: f64,
    /// Whether its inputs were compared, so that the part it inherited is known.
    pub has_inputs: bool,
}

/// An operator's part in the spreading of NaN and infinities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NonFiniteRole {
    /// Its inputs are finite, its outputs are not, and the golden side's are.
    Producer,
    /// It received them from an operator, whose index in [`Comparison::operators`] is set if known.
    Propagator {
        /// The operator before it in the chain.
        from: Option<usize>,
    },
    /// Its inputs have them and its outputs have none.
    Absorber,
}

/// Something that was not compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Skip {
    /// The side or sides that have it.
    pub side: SkipSide,
    /// The operator; `None` for a file without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorName>,
    /// The slot, if a single slot is concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotKey>,
    /// The file, if a file is concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The reason.
    pub reason: SkipReason,
    /// The reason in words, with place and cause.
    pub message: String,
    /// Whether the user allowed it.
    #[serde(default)]
    pub is_allowed: bool,
    /// For an operator without a partner, the first of [`Comparison::operators`] that ran after it
    /// on its side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<usize>,
    /// For an operator that became part of a fused one, the index of the latter in
    /// [`Comparison::operators`], if certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<usize>,
}

/// The summary of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparisonSummary {
    /// The verdict as a level: `fail` also for a quantised model beyond its limit, `skip` for an
    /// incomplete comparison.
    pub level: VerdictLevel,
    /// Operators by level: pass, warn, fail, skip.
    pub operators: [usize; 4],
    /// Slots by level: pass, warn, fail, skip.
    pub slots: [usize; 4],
    /// Numbers of the target's slots, and of those that were compared.
    pub target_coverage: [usize; 2],
    /// Numbers of golden's slots, and of those that were compared.
    pub golden_coverage: [usize; 2],
    /// The first slot beyond the limits of a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_divergence: Option<DivergencePoint>,
    /// The first slot beyond the limits of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<DivergencePoint>,
    /// How certain it is that the named slot is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// The first divergence of each rank, if there are several ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_by_rank: Vec<DivergencePoint>,
    /// The findings on each step, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepFindings>,
    /// The first operator that produced a NaN or an infinity, or the first with one if no producer
    /// is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_non_finite: Option<usize>,
    /// The operators that passed these values on, from that operator to the last known one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_finite_chain: Vec<usize>,
    /// Operators by the error that they added, largest first; at most as many as requested.
    pub ranking: Vec<usize>,
    /// Compared bytes of both sides together.
    pub n_bytes: u64,
}

/// An operator at which the sides diverge: golden has all values that it reads, or they come from
/// outside, and lacks one that it produces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartingOperator {
    /// The index of the operator, or of the group that it belongs to.
    pub operator: usize,
    /// The target's operator.
    pub name: OperatorName,
    /// The slot that differs: its output, or an input from outside that the golden side has
    /// nowhere.
    pub slot: SlotKey,
    /// The cause.
    pub cause: Cause,
    /// The name of the parameter or weight in the slot, if a graph next to the dump has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// Other operators of the target that may be the culprit: together with the first they
    /// correspond to one golden operator, and are indistinguishable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OperatorName>,
    /// Whether one side alone has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<WiringChange>,
    /// Inputs that the golden side's operator does not read, with the operator that shows them
    /// there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewired: Vec<RewiredInput>,
}

/// An operator that only one side has, between values that agree and one that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WiringChange {
    /// The target has it, and the golden side does not.
    Inserted,
    /// The golden side has it, and the target does not.
    Missing,
    /// It overwrites a value that a later operator reads, and golden's operator does not.
    Overwrites,
    /// It reads a value that on the golden side only exists inside an operator, whose output is
    /// read there.
    ReadsInner,
    /// One of the dumps lacks it, between values that agree and one that differs.
    NotShown,
}

/// An input whose value is elsewhere in golden's graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewiredInput {
    /// The target's slot.
    pub slot: SlotKey,
    /// The operator that shows the value on the golden side.
    pub golden: OperatorName,
    /// The operator whose value is read there instead, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<OperatorName>,
}

/// The point at which two runs diverge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DivergencePoint {
    /// The operator, as an index into [`Comparison::operators`].
    pub operator: usize,
    /// The target's slot.
    pub slot: SlotKey,
    /// The cause, as far as it is known.
    pub cause: Cause,
    /// The operator, if it is one of several in a group, or differs from that in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<OperatorName>,
    /// The module of the operator that `name` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The line of the program that called it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Uncompared operators between agreeing operators and this slot, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspects: Vec<Suspect>,
}

/// How certain it is that the named operator is the cause, most certain first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// With golden's definition in its place all outputs agree.
    Proven,
    /// All its inputs are bitwise identical, except for the weight that is the cause.
    Measured,
    /// Its inputs agree within rounding, or as far as statistics show.
    Likely,
    /// It is the first operator that differs, and not all of its inputs are known.
    FirstDifference,
}

/// An operator that was not compared, or only partly, and may be the reason for a divergence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspect {
    /// The side or sides that have it.
    pub side: SkipSide,
    /// Which one.
    pub operator: OperatorName,
    /// Why it was not compared.
    pub reason: SkipReason,
}

/// Why an output is not what it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The inputs agree and the output does not: the operator itself.
    Own,
    /// It is an input that no compared operator made: a weight or an input of the model.
    Outside,
    /// The inputs differ already.
    Inherited,
    /// The inputs agree, though not exactly, and the difference of the output can follow from
    /// theirs.
    Gradual,
    /// Not all inputs were compared, or something before it was not.
    #[default]
    Unknown,
}

impl Cause {
    /// Whether the operator itself, or a weight of it, is what is wrong.
    pub(super) fn accuses(self) -> bool {
        matches!(self, Cause::Own | Cause::Outside)
    }
}

/// The process and the execution of the model. No value passes from one to another.
pub type OperatorPlace = (Option<u32>, Option<u64>);

impl OperatorResult {
    /// Whether an output has more or fewer elements than golden's.
    pub(super) fn has_other_size(&self) -> bool {
        self.outputs()
            .any(|slot| slot.target.n_elements() != slot.golden.n_elements())
    }

    /// Its inputs, in the order of its slots.
    pub fn inputs(&self) -> impl Iterator<Item = &SlotResult> + Clone {
        self.slots.iter().filter(|slot| !slot.is_output())
    }

    /// Its outputs, in the order of its slots.
    pub fn outputs(&self) -> impl Iterator<Item = &SlotResult> + Clone {
        self.slots.iter().filter(|slot| slot.is_output())
    }

    /// Its place; the target's, if both sides have one.
    pub fn place(&self) -> OperatorPlace {
        let name = self.target.last().or(self.golden.last());
        name.map_or((None, None), |name| (name.rank, name.step))
    }
}

impl Comparison {
    /// Whether the verdict names a slot up to a step: what differs later is not why an output of
    /// that step does.
    pub(super) fn has_place_by(&self, step: Option<u64>) -> bool {
        self.summary.headline().is_some_and(|point| {
            let named = self.operators[point.operator].target.last();
            let named = named.and_then(|name| name.step);
            named.zip(step).is_none_or(|(named, step)| named <= step)
        })
    }
}

impl ComparisonSummary {
    /// The slot that the verdict names: the first failure, or the first warning if nothing fails.
    pub fn headline(&self) -> Option<&DivergencePoint> {
        // An earlier warning is not the reason for a failure.
        self.first_failure
            .as_ref()
            .or(self.first_divergence.as_ref())
    }
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}
