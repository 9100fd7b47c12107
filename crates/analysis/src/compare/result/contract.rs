//! The saved form of the contract.

use serde::{Deserialize, Serialize};

use super::{DivergencePoint, OperatorName, PartingOperator, RuleHit, SlotKey, SlotResult};

/// The promises of both models to their callers, and whether they are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Contract {
    /// The verdict on the whole.
    pub conclusion: Conclusion,
    /// How the outputs are known: the target's and the golden side's.
    pub known_by: [OutputSource; 2],
    /// The outputs: golden's in its order, then those that only the target has; by rank and step.
    pub outputs: Vec<ContractValue>,
    /// Whether the target lists outputs of the same names in another order.
    pub is_reordered: bool,
    /// The inputs that are recorded on both sides.
    pub inputs: Vec<ContractValue>,
    /// Weights that differ.
    pub weights: Vec<ContractValue>,
    /// Number of weights that were compared.
    pub n_weights: usize,
    /// Whether a graph lists the inputs of golden's operators.
    pub has_golden_graph: bool,
    /// Whether both graphs have the same operators with the same names and wiring.
    pub is_same_graph: bool,
    /// Whether the target computes with quantised values and the golden side does not.
    pub is_quantised: bool,
    /// Whether the target computes with quantised values.
    pub has_quantised: bool,
    /// Bytes of the outputs of golden's operators, each value counted once, and those that were
    /// compared.
    pub n_output_bytes: [u64; 2],
    /// Operators without a partner that ran last on their side, if the outputs are unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_alone: Vec<OperatorName>,
    /// The first slot inside the model that differs although the outputs agree, or that is
    /// quantised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<DivergencePoint>,
    /// Numbers of slots inside the model with a warning and with a failure, although the outputs
    /// agree.
    pub n_inside: [usize; 2],
    /// Operators of the target that compute in a shorter dtype than golden's, where nearly all
    /// others have golden's dtype.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub islands: Vec<NarrowOperator>,
    /// The place where a quantized model loses most, if an operator stands out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Box<QuantisedLoss>>,
    /// The operators that only one side has before an output that differs, if no slot inside
    /// differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_output: Option<Box<PartingOperator>>,
    /// Why the comparison is incomplete, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The relative distance up to which a quantised model is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

/// An operator in a shorter dtype than those around it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NarrowOperator {
    /// Its index in the comparison's operators, or that of the next one if it has no partner.
    pub operator: usize,
    /// Its name if it has no partner, or if that is the partner of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<OperatorName>,
    /// The dtype of the target's output.
    pub target: String,
    /// The dtype of golden's output.
    pub golden: String,
}

/// Where a quantised model loses most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantisedLoss {
    /// The index of the operator, or of the first one that reads its result.
    pub operator: usize,
    /// The target's operator.
    pub name: OperatorName,
    /// The slot that shows it.
    pub slot: SlotKey,
    /// Operators between the compared values and this one that may be the culprit instead, nearest
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OperatorName>,
    /// The relative distance of the values before it.
    #[serde(with = "crate::compare::number")]
    pub before: f64,
    /// The relative distance of the values after it.
    #[serde(with = "crate::compare::number")]
    pub behind: f64,
    /// The operator with a different parameter for the same codes, if that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codes: Option<OtherCodes>,
}

/// A parameter that does not fit the operator that reads or writes the same codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherCodes {
    /// That operator.
    pub other: OperatorName,
    /// The parameter.
    pub parameter: CodesParameter,
}

/// A parameter of quantised codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodesParameter {
    /// The size of a step.
    Scale,
    /// The code of zero.
    ZeroPoint,
}

impl CodesParameter {
    /// Its position among the inputs of `QuantizeLinear` and `DequantizeLinear`.
    pub fn index(self) -> u32 {
        match self {
            CodesParameter::Scale => 1,
            CodesParameter::ZeroPoint => 2,
        }
    }

    /// Its name in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            CodesParameter::Scale => "scale",
            CodesParameter::ZeroPoint => "zero point",
        }
    }
}

/// The verdict on the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The outputs agree.
    Pass,
    /// They agree, but something else should be checked.
    Warn,
    /// An output differs, is missing, is exchanged with another one, or has another shape.
    Fail,
    /// Too little was compared to decide.
    #[default]
    Incomplete,
    /// The outputs of a quantised model are farther from those of a float model than the limit.
    Quantised,
    /// They are within the user's limit.
    QuantisedWithin,
}

impl Conclusion {
    /// The first word of a verdict.
    pub fn word(self) -> &'static str {
        match self {
            Conclusion::Pass => "PASS",
            Conclusion::Warn => "WARN",
            Conclusion::Fail => "FAIL",
            Conclusion::Incomplete => "INCOMPLETE",
            Conclusion::Quantised | Conclusion::QuantisedWithin => "QUANTISED",
        }
    }

    /// Whether nothing speaks against the target.
    pub fn is_good(self) -> bool {
        matches!(
            self,
            Conclusion::Pass | Conclusion::Warn | Conclusion::QuantisedWithin
        )
    }
}

/// How the outputs of a model are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputSource {
    /// The graph next to the dump lists them.
    Graph,
    /// No graph lists them: they are the values that no operator reads.
    Unread,
    /// They are unknown, or the dump contains none of them.
    #[default]
    Unknown,
}

/// An input, output or weight of both models.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContractValue {
    /// Its name; golden's unless only the target has it.
    pub name: String,
    /// The target's name, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_name: Option<String>,
    /// The evidence that brought both together.
    pub by: ValuePairing,
    /// Which sides have it.
    pub presence: ValuePresence,
    /// The verdict on it.
    pub state: ValueState,
    /// The operators that produce it, of the target and the golden side. For an input or a weight,
    /// those that read it first.
    pub operators: [Option<OperatorName>; 2],
    /// The operator and slot of [`Comparison`](crate::compare::result::Comparison) with its
    /// metrics, if the same two tensors are compared there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<[usize; 2]>,
    /// Its metrics, if there is no `pair`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<SlotResult>>,
    /// For an output that differs, the output of the target with golden's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanged_with: Option<String>,
    /// The limits that it exceeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleHit>,
    /// Whether it is judged by the inputs of its operator, because the dump does not contain the
    /// operator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_operands: bool,
    /// Of a parameter, a buffer or a gradient, which side writes to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<UpdatedBy>,
}

/// The side that writes to a tensor of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdatedBy {
    /// Both.
    Both,
    /// Only the target; golden's value is the one that it reads.
    Target,
    /// Only golden; the target's value is the one that it reads.
    Golden,
}

/// The evidence that brought the values of both models together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValuePairing {
    /// They have the same name.
    #[default]
    Name,
    /// They have the same position.
    Position,
    /// Their producers are matched.
    Operator,
    /// They have the same elements.
    Value,
}

/// Which sides have a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValuePresence {
    /// Both.
    #[default]
    Both,
    /// Only golden returns it.
    Lost,
    /// Only the target.
    Extra,
    /// Both, but the target's dump does not contain it.
    NotInTarget,
    /// Both, but golden's dump does not contain it.
    NotInGolden,
    /// Both return an unchanged input of this name.
    PassedThrough,
}

/// The verdict on a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueState {
    /// Within the limits.
    Agree,
    /// Beyond the limits of a warning.
    Warn,
    /// Beyond the limits of a failure.
    Differ,
    /// The shapes differ.
    OtherShape,
    /// The kinds of dtype differ: floats, integers, booleans or text.
    OtherDtype,
    /// Another output of the target has its value.
    Exchanged,
    /// The target does not return it.
    Lost,
    /// Only the target returns it.
    Extra,
    /// Its value may differ between two correct runs.
    NotJudged,
    /// The user allows it to stay uncompared.
    Allowed,
    /// It was not compared.
    #[default]
    NotCompared,
}

impl ValueState {
    /// Whether it is evidence against the target.
    pub fn is_bad(self) -> bool {
        matches!(
            self,
            ValueState::Differ
                | ValueState::OtherShape
                | ValueState::OtherDtype
                | ValueState::Exchanged
                | ValueState::Lost
        )
    }
}

impl Contract {
    /// Whether the model's outputs are known, so that they determine the verdict.
    pub fn is_known(&self) -> bool {
        let mut outputs = self.outputs.iter();
        outputs.any(|value| value.presence != ValuePresence::Extra)
    }
}

impl ContractValue {
    /// The execution of the model that it belongs to, for sorting and display.
    pub fn step(&self) -> Option<u64> {
        self.operators.iter().flatten().find_map(|name| name.step)
    }

    /// The process that it belongs to.
    pub fn rank(&self) -> Option<u32> {
        self.operators.iter().flatten().find_map(|name| name.rank)
    }
}
