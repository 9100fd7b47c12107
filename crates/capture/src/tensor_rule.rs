//! Choosing tensors: by their operator, by their place, by what they hold.

use std::fmt;
use std::slice::from_ref;
use std::str::FromStr;
use std::sync::Arc;

use opscope_store::record::{Operator, Record, SlotSide};
use opscope_tensor::{Tensor, TensorObserver};

use crate::{CompiledKernelRule, PatternError, SelectedOperators, rule_for_operator};

/// The forms of a rule, as error messages list them.
const FORMS: &str = "`name:NAME`, `type:TYPE`, `regex:PATTERN`, `slot:NAME/output.0`, `non-finite` \
                     or `above:NUMBER`";

/// One rule. Written as text it is `name:NAME`, `type:TYPE`, `regex:PATTERN`, `slot:NAME/output.0`,
/// `non-finite` or `above:NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRule {
    text: String,
    test: TensorTest,
}

/// Cheap ones first: rules are tried in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TensorTest {
    Name(String),
    Type(String),
    Slot(String, SlotSide, usize),
    Pattern(CompiledKernelRule),
    NonFinite,
    /// The bits of the number.
    Above(u64),
}

/// A text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorRuleError {
    /// It has none of the forms.
    #[error("`{0}` is no rule: expected {FORMS}")]
    Form(String),
    /// The text after `slot:` is not a slot.
    #[error("`{0}` is no slot: expected an operator's name, `/`, and `input.N` or `output.N`")]
    Slot(String),
    /// The text after `above:` is not a threshold.
    #[error("`{0}` is no threshold: expected a finite number of 0 or more")]
    Threshold(String),
    /// The text after `regex:` is not a regular expression.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

impl TensorRule {
    /// Tensors of the operator of exactly this name.
    pub fn name(name: &str) -> TensorRule {
        TensorRule::new(format!("name:{name}"), TensorTest::Name(name.to_owned()))
    }

    /// Tensors of operators of this type, letter case apart.
    pub fn op_type(op_type: &str) -> TensorRule {
        TensorRule::new(
            format!("type:{op_type}"),
            TensorTest::Type(op_type.to_owned()),
        )
    }

    /// Tensors of operators whose whole name matches `pattern`, an ECMAScript regular expression.
    ///
    /// # Errors
    /// [`PatternError`] if it is not one.
    pub fn regex(pattern: &str) -> Result<TensorRule, PatternError> {
        let text = format!("regex:{pattern}");
        let rule = CompiledKernelRule::regex(text.clone(), pattern)?;
        Ok(TensorRule::new(text, TensorTest::Pattern(rule)))
    }

    /// One tensor of the operator of exactly this name.
    pub fn slot(name: &str, side: SlotSide, index: usize) -> TensorRule {
        let text = format!("slot:{name}/{}.{index}", side.name());
        TensorRule::new(text, TensorTest::Slot(name.to_owned(), side, index))
    }

    /// Tensors that hold NaN or an infinity.
    pub fn non_finite() -> TensorRule {
        TensorRule::new("non-finite".to_owned(), TensorTest::NonFinite)
    }

    /// Tensors with an element whose magnitude is more than `threshold`, or that is NaN. Types that
    /// have no order, such as complex ones and text, never match.
    pub fn above(threshold: f64) -> TensorRule {
        TensorRule::new(
            format!("above:{threshold}"),
            TensorTest::Above(threshold.to_bits()),
        )
    }

    fn new(text: String, test: TensorTest) -> TensorRule {
        TensorRule { text, test }
    }

    /// Whether the rule asks what tensors hold.
    fn is_about_values(&self) -> bool {
        matches!(self.test, TensorTest::NonFinite | TensorTest::Above(_))
    }

    fn cost(&self) -> u8 {
        match &self.test {
            TensorTest::Name(_) | TensorTest::Type(_) | TensorTest::Slot(..) => 0,
            TensorTest::Pattern(_) => 1,
            TensorTest::NonFinite => 2,
            // The maximum takes statistics of the whole tensor, more than the search for a first
            // NaN.
            TensorTest::Above(_) => 3,
        }
    }

    /// Whether the rule may choose a tensor of `operator`.
    fn may_choose(&self, operator: &Operator) -> bool {
        match &self.test {
            TensorTest::Name(name) | TensorTest::Slot(name, ..) => *name == operator.op_name,
            TensorTest::Type(op_type) => op_type.eq_ignore_ascii_case(&operator.op_type),
            TensorTest::Pattern(rule) => rule_for_operator(from_ref(rule), operator).is_some(),
            TensorTest::NonFinite | TensorTest::Above(_) => true,
        }
    }

    fn chooses(
        &self,
        operator: &Operator,
        slot: (SlotSide, usize),
        tensor: TensorObserver<'_>,
    ) -> bool {
        match &self.test {
            TensorTest::Name(_) | TensorTest::Type(_) | TensorTest::Pattern(_) => {
                self.may_choose(operator)
            }
            TensorTest::Slot(_, side, index) => {
                (*side, *index) == slot && self.may_choose(operator)
            }
            TensorTest::NonFinite => tensor.non_finite().any(),
            TensorTest::Above(bits) => is_above(tensor, f64::from_bits(*bits)),
        }
    }
}

fn is_above(tensor: TensorObserver<'_>, threshold: f64) -> bool {
    let Ok(stats) = tensor.stats() else {
        return false;
    };
    // Comparisons with NaN are false, so NaN is tested separately: a search for large values must
    // not miss it.
    stats.counts.n_nan > 0 || stats.max > threshold || stats.min < -threshold
}

impl FromStr for TensorRule {
    type Err = TensorRuleError;

    fn from_str(text: &str) -> Result<TensorRule, TensorRuleError> {
        if text == "non-finite" {
            return Ok(TensorRule::non_finite());
        }
        let form = || TensorRuleError::Form(text.to_owned());
        let (kind, rest) = text.split_once(':').ok_or_else(form)?;
        match kind {
            _ if rest.is_empty() => Err(form()),
            "name" => Ok(TensorRule::name(rest)),
            "type" => Ok(TensorRule::op_type(rest)),
            "regex" => Ok(TensorRule::regex(rest)?),
            "slot" => slot(rest).ok_or_else(|| TensorRuleError::Slot(rest.to_owned())),
            "above" => match rest.parse::<f64>() {
                // The text stays as it was given.
                Ok(threshold) if threshold.is_finite() && threshold >= 0.0 => Ok(TensorRule {
                    text: text.to_owned(),
                    ..TensorRule::above(threshold)
                }),
                _ => Err(TensorRuleError::Threshold(rest.to_owned())),
            },
            _ => Err(form()),
        }
    }
}

/// `NAME/input.0`; names may hold slashes themselves.
fn slot(text: &str) -> Option<TensorRule> {
    let (name, slot) = text.rsplit_once('/')?;
    let (side, index) = slot.split_once('.')?;
    let side = [SlotSide::Input, SlotSide::Output]
        .into_iter()
        .find(|known| known.name() == side)?;
    // `parse` would take `+1` too, which no name of a slot has.
    let is_number = !name.is_empty() && index.bytes().all(|b| b.is_ascii_digit());
    Some(TensorRule::slot(
        name,
        side,
        index.parse().ok().filter(|_| is_number)?,
    ))
}

impl fmt::Display for TensorRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Alternative rules: one match suffices. Without rules every tensor matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorRules(Vec<TensorRule>);

impl TensorRules {
    /// These rules, in any order.
    pub fn new(mut rules: Vec<TensorRule>) -> TensorRules {
        // One rule is enough, so the cheap ones are asked first.
        rules.sort_by_key(TensorRule::cost);
        TensorRules(rules)
    }

    /// Whether there are no rules, so that every tensor is chosen.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the tensor is chosen that is at this place of `operator`.
    pub fn choose_tensor(
        &self,
        operator: &Operator,
        side: SlotSide,
        index: usize,
        tensor: &Tensor,
    ) -> bool {
        let (mut rules, tensor) = (self.0.iter(), tensor.observed());
        self.is_empty() || rules.any(|rule| rule.chooses(operator, (side, index), tensor))
    }

    /// Whether any tensor of `record` is chosen.
    pub fn choose_any(&self, record: &Record) -> bool {
        let operator = &record.operator;
        self.is_empty()
            || self.0.iter().any(|rule| {
                let mut slots = record.slots();
                slots.any(|(side, index, tensor)| {
                    rule.chooses(operator, (side, index), tensor.observed())
                })
            })
    }

    /// Whether no operator could make a rule choose this tensor. Afterwards the memo holds what the
    /// rules need to know about its elements.
    pub fn rule_out(&self, tensor: TensorObserver<'_>) -> bool {
        let mut rules = self.0.iter();
        // Rules about values do not depend on the operator, so any matches.
        let operator = Operator::default();
        !self.is_empty()
            && !rules.any(|rule| {
                !rule.is_about_values() || rule.chooses(&operator, (SlotSide::Input, 0), tensor)
            })
    }

    /// The rules that match nothing in a plan's selection, whatever the tensors hold.
    pub fn unused(
        &self,
        selected: &SelectedOperators,
        operators: &[Arc<Operator>],
    ) -> Vec<&TensorRule> {
        let kept = || {
            // Of some operators only additional records are kept.
            let has_record = move |operator: &&Arc<Operator>| {
                let kept = selected.kept.get(&operator.task_id);
                kept.is_some_and(|kept| kept.views.is_empty() || kept.n_slots() > 0)
            };
            let beside = selected.kept.values();
            let beside = beside.flat_map(|kept| {
                let inputs = kept.graph_inputs.iter().chain(&kept.parameters);
                let inputs = inputs.map(|input| &input.operator);
                inputs.chain(kept.views.iter().map(|view| &view.operator))
            });
            operators.iter().filter(has_record).chain(beside)
        };
        self.0
            .iter()
            .filter(|rule| {
                !rule.is_about_values() && !kept().any(|operator| rule.may_choose(operator))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
