//! Outputs, inputs and weights of both models in words.

use std::collections::HashSet;

use opscope_store::dump::PassReason;

use super::changes::weight_difference;
use super::figures::{percent, worst_number};
use super::{in_full, plain, verdict, weight_reads};
use crate::compare::result::{
    Comparison, Conclusion, Contract, ContractValue, Evidence, OperatorName, OutputSource,
    PassedOverFile, SlotResult, UpdatedBy, ValuePairing, ValueState,
};
use crate::compare::verdict::PRESET_INT8;

/// Maximum number of values named in one sentence.
const N_NAMES_MAX: usize = 3;

/// The finding on outputs, inputs or weights behind the conclusion, in words.
pub(super) fn finding(comparison: &Comparison) -> String {
    let contract = &comparison.contract;
    match contract.conclusion {
        Conclusion::Pass => all_agree(comparison) + &inside(contract),
        Conclusion::Warn => warning(comparison),
        Conclusion::Fail => failure(comparison),
        Conclusion::Incomplete => contract.missing.join("; "),
        Conclusion::Quantised | Conclusion::QuantisedWithin => quantised(comparison),
    }
}

/// [`finding`], if the outputs are known.
pub fn finding_of_outputs(comparison: &Comparison) -> Option<String> {
    comparison.contract.is_known().then(|| finding(comparison))
}

fn all_agree(comparison: &Comparison) -> String {
    let contract = &comparison.contract;
    // An output that is judged by its operator's inputs appears several times.
    let agreed: HashSet<_> = contract
        .outputs
        .iter()
        .filter(|value| is_compared(value))
        .map(|value| (value.rank(), value.step(), &value.name))
        .collect();
    let n = agreed.len();
    let places = if contract.known_by == [OutputSource::Unread; 2] {
        if contract
            .outputs
            .iter()
            .any(|value| value.updated_by.is_some())
        {
            "unread values and updated tensors"
        } else {
            "values that no operator reads"
        }
    } else {
        "outputs"
    };
    let mut slots = contract
        .outputs
        .iter()
        .filter_map(|value| contract_slot(value, comparison));
    let reach = if slots.any(|slot| slot.evidence == Evidence::Statistics) {
        ", as far as statistics show"
    } else {
        ""
    };
    let agree = match n {
        1 if contract.known_by != [OutputSource::Unread; 2] => "the output agrees".to_owned(),
        1 => "the value that no operator reads agrees".to_owned(),
        n => format!("all {n} {places} agree"),
    };
    agree + reach
}

fn is_compared(value: &ContractValue) -> bool {
    matches!(value.state, ValueState::Agree | ValueState::Warn)
}

/// How many slots inside differ all the same.
fn inside(contract: &Contract) -> String {
    match contract.n_inside[1] {
        0 => String::new(),
        1 => "; inside, 1 slot differs".to_owned(),
        n => format!("; inside, {n} slots differ"),
    }
}

fn warning(comparison: &Comparison) -> String {
    let contract = &comparison.contract;
    let weights: Vec<&ContractValue> = contract
        .weights
        .iter()
        .filter(|value| value.state.is_bad())
        .collect();
    if contract.is_same_graph && !weights.is_empty() {
        let verb = if weights.len() == 1 {
            "differs"
        } else {
            "differ"
        };
        return format!(
            "{}, but {} {} {verb}, which these inputs do not show",
            all_agree(comparison),
            noun("weight", weights.len()),
            names(&weights)
        );
    }
    let extra = with_state(contract, ValueState::Extra);
    if !extra.is_empty() {
        return format!(
            "{}; the target returns {} more: {}",
            all_agree(comparison),
            extra.len(),
            names(&extra)
        );
    }
    let near = with_state(contract, ValueState::Warn);
    let near = near
        .first()
        .map(|value| phrase(value, contract, comparison));
    near.unwrap_or_else(|| all_agree(comparison))
}

fn failure(comparison: &Comparison) -> String {
    let contract = &comparison.contract;
    let bad: Vec<&ContractValue> = contract
        .outputs
        .iter()
        .filter(|value| value.state.is_bad())
        .collect();
    let near = with_state(contract, ValueState::Warn);
    let Some(first) = bad.first().or(near.first()) else {
        let broken = contract.weights.iter();
        let broken = broken.filter(|value| contract.is_broken_weight(value, comparison));
        let broken: Vec<&ContractValue> = broken.collect();
        return match broken.first() {
            Some(value) => format!(
                "weight {} of {} is NaN or infinite on one side alone, which these inputs do not \
                 show",
                names(&broken),
                maker(value)
            ),
            None if !contract.missing.is_empty() => contract.missing.join("; "),
            None => inside_alone(comparison),
        };
    };
    let mut text = phrase(first, contract, comparison);
    if comparison.summary.headline().is_none() && first.state == ValueState::Differ {
        text += &makers(first);
    }
    // An output of several steps or ranks is named once.
    let mut known = HashSet::from([&first.name]);
    let rest = bad.iter().filter(|value| !is_told_with(first, value));
    let rest: Vec<&ContractValue> = rest
        .filter(|value| known.insert(&value.name))
        .copied()
        .collect();
    match &rest[..] {
        [] => {}
        [one] => text += &format!("; `{}` differs too", plain(&one.name)),
        _ => text += &format!("; {} differ too", names(&rest)),
    }
    text
}

/// A failure that no output shows.
fn inside_alone(comparison: &Comparison) -> String {
    let mut outputs = comparison.contract.outputs.iter();
    if outputs.any(is_compared) {
        format!("values inside differ, although {}", all_agree(comparison))
    } else {
        "values inside differ".to_owned()
    }
}

/// The operators that make an output, where they are not the same on both sides.
fn makers(value: &ContractValue) -> String {
    match &value.operators {
        [Some(target), Some(golden)]
            if (&target.op_type, &target.op_name) != (&golden.op_type, &golden.op_name) =>
        {
            let [target, golden] = [target, golden].map(in_full);
            format!("; {target} makes it, golden's is made by {golden}")
        }
        _ => String::new(),
    }
}

/// Whether the sentence of one output says all of another.
fn is_told_with(first: &ContractValue, other: &ContractValue) -> bool {
    first.state == ValueState::Exchanged
        && other.state == ValueState::Exchanged
        && first.exchanged_with.as_deref() == Some(returned_as(other))
        && other.exchanged_with.as_deref() == Some(returned_as(first))
}

/// The name of an output on the target's side.
fn returned_as(value: &ContractValue) -> &str {
    value.target_name.as_deref().unwrap_or(&value.name)
}

/// The state of an output, in words.
fn phrase(value: &ContractValue, contract: &Contract, comparison: &Comparison) -> String {
    let name = format!("`{}`{}", plain(&value.name), place(value, contract));
    let noun = match value.updated_by {
        Some(UpdatedBy::Golden) if value.state.is_bad() => {
            return format!("no operator of the target updates {name}");
        }
        Some(UpdatedBy::Target) if value.state.is_bad() => {
            return format!("only the target has an operator that updates {name}");
        }
        Some(_) => "updated tensor",
        None => "output",
    };
    let slot = contract_slot(value, comparison);
    match value.state {
        ValueState::Lost => format!("{noun} {name} is lost: the target does not return it"),
        ValueState::Exchanged => exchanged(value, contract, &name),
        ValueState::OtherShape => {
            let shapes = slot.map(|slot| (&slot.target.shape, &slot.golden.shape));
            let shapes =
                shapes.map(|(target, golden)| format!(" {target:?}, golden's is {golden:?}"));
            format!(
                "{noun} {name} of {} has the shape{}",
                maker(value),
                shapes.unwrap_or_else(|| " of another tensor".to_owned())
            )
        }
        ValueState::OtherDtype => {
            let dtypes = slot.map(|slot| (&slot.target.dtype, &slot.golden.dtype));
            let dtypes = dtypes.map(|(target, golden)| format!(" {target}, golden's is {golden}"));
            format!("{noun} {name} is{}", dtypes.unwrap_or_default())
        }
        state => {
            let verb = if state == ValueState::Warn {
                "is off"
            } else {
                "differs"
            };
            // The headline has it.
            let number = worst_number(&value.rules).filter(|_| !is_headline(value, comparison));
            format!("{noun} {name} {verb}{}", number.unwrap_or_default())
        }
    }
}

/// Whether the first slot that differs is this output.
fn is_headline(value: &ContractValue, comparison: &Comparison) -> bool {
    let headline = comparison.summary.headline();
    let (Some(first), Some([operator, slot])) = (headline, value.pair) else {
        return false;
    };
    let slots = comparison
        .operators
        .get(operator)
        .map(|operator| &operator.slots);
    let slot = slots.and_then(|slots| slots.get(slot));
    first.operator == operator && slot.is_some_and(|slot| slot.slot == first.slot)
}

fn exchanged(value: &ContractValue, contract: &Contract, name: &str) -> String {
    let mut outputs = contract.outputs.iter();
    let partner = outputs.find(|other| other.step() == value.step() && is_told_with(value, other));
    match partner {
        Some(partner) => format!(
            "outputs {name} and `{}` are exchanged",
            plain(&partner.name)
        ),
        None => {
            let other = value.exchanged_with.as_deref().unwrap_or_default();
            format!("output {name} is returned as `{}`", plain(other))
        }
    }
}

/// ` in step 3 of rank 1`, where there are several.
fn place(value: &ContractValue, contract: &Contract) -> String {
    let mut steps = contract.outputs.iter().map(ContractValue::step);
    let step = value
        .step()
        .filter(|own| steps.any(|step| step != Some(*own)));
    let mut ranks = contract.outputs.iter().map(ContractValue::rank);
    let rank = value
        .rank()
        .filter(|own| ranks.any(|rank| rank != Some(*own)));
    let step = step
        .map(|step| format!(" in step {step}"))
        .unwrap_or_default();
    step + &rank
        .map(|rank| format!(" of rank {rank}"))
        .unwrap_or_default()
}

fn quantised(comparison: &Comparison) -> String {
    let contract = &comparison.contract;
    let distance = contract.distance(comparison).map(percent);
    let limit = contract
        .limit
        .map(|limit| format!(" (limit {})", percent(limit)));
    format!(
        "outputs {} apart{}",
        distance.unwrap_or_else(|| "not known how far".to_owned()),
        limit.unwrap_or_default()
    )
}

/// A line for each run that was left out for another one in the same place.
fn other_runs(comparison: &Comparison) -> Vec<String> {
    let reason = PassReason::OtherRun.name();
    let files = comparison.passed_over.iter();
    let mut others: Vec<&PassedOverFile> = files.filter(|file| file.reason == reason).collect();
    let n_more = others.len().saturating_sub(N_NAMES_MAX);
    others.truncate(N_NAMES_MAX);
    let mut notes: Vec<String> = others
        .iter()
        .map(|file| {
            let path = &file.path;
            format!(
                "note: `{path}`: another run in the same place; the newest complete one is read"
            )
        })
        .collect();
    if n_more > 0 {
        notes.push(format!("note: the same in {n_more} further places"));
    }
    notes
}

/// Notes on outputs, inputs and what is inside, a line each.
pub fn notes(comparison: &Comparison) -> Vec<String> {
    let contract = &comparison.contract;
    let mut notes = other_runs(comparison);
    let sides = ["the target's", "golden's"]
        .into_iter()
        .zip(&comparison.lost);
    notes.extend(sides.filter_map(|(side, lost)| {
        let words = lost.as_ref()?.words();
        Some(format!("note: {side} capture did not write {words}"))
    }));
    if !comparison.weight_reads.is_empty() {
        let verdict = verdict(comparison);
        let reads = comparison.weight_reads.iter().map(weight_reads);
        let reads = reads.filter(|words| !verdict.contains(words));
        notes.extend(
            reads
                .take(N_NAMES_MAX)
                .map(|words| format!("note: {words}")),
        );
    }
    if contract.has_quantised && !contract.conclusion.is_good() && !has_own_limits(comparison) {
        notes.push(format!(
            "note: these are limits of floats; `--thresholds {PRESET_INT8}` has those of 8 bits"
        ));
    }
    if !contract.is_known() {
        return notes;
    }
    if contract.is_reordered {
        notes.push("note: the target returns the same outputs in another order".to_owned());
    }
    for (what, values) in [("outputs", &contract.outputs), ("inputs", &contract.inputs)] {
        let pairs = renamed(values);
        if !pairs.is_empty() {
            let shown = pairs.iter().take(N_NAMES_MAX).cloned().collect::<Vec<_>>();
            let more = rest(pairs.len());
            let shown = shown.join(", ");
            notes.push(format!("note: {what} paired by position: {shown}{more}"));
        }
    }
    let extra = with_state(contract, ValueState::Extra);
    if !extra.is_empty() && contract.conclusion != Conclusion::Warn {
        notes.push(format!(
            "note: the target returns {} more: {}",
            extra.len(),
            names(&extra)
        ));
    }
    if contract.outputs.iter().any(|value| value.is_by_operands) {
        notes.push(
            "note: a dump does not show every output; what its operator reads was compared"
                .to_owned(),
        );
    }
    notes.extend(inside_note(comparison));
    notes
}

/// Differences inside that the outputs do not show, and how a weight differs.
fn inside_note(comparison: &Comparison) -> Option<String> {
    let contract = &comparison.contract;
    let point = contract.inside.as_ref()?;
    let operator = comparison.operators.get(point.operator)?;
    let name = operator.target.last().or(operator.golden.last());
    let name = point.name.as_ref().or(name).map(in_full);
    let [n_warn, n_fail] = contract.n_inside;
    let beyond = match n_fail {
        1 => "1 slot is".to_owned(),
        n => format!("{n} slots are"),
    };
    let mut slots = operator.slots.iter();
    let slot = slots.find(|slot| slot.slot == point.slot && slot.is_outside);
    let weight = slot.and_then(|slot| {
        let difference = weight_difference(Some(slot), slot.golden_parameter.as_deref());
        let name = plain(slot.parameter.as_deref()?);
        Some(format!(", where the weight `{name}` {difference}"))
    });
    Some(format!(
        "note: inside, {beyond} beyond the limits and {n_warn} near them, first at {} {}{}; \
         the outputs do not show it (`--strict` counts it)",
        name.unwrap_or_default(),
        point.slot,
        weight.unwrap_or_default()
    ))
}

/// Whether the user gave limits.
fn has_own_limits(comparison: &Comparison) -> bool {
    let mut options = comparison.config.options.iter();
    options.any(|(name, _)| name == "thresholds")
}

/// Names that belong together by position, each pair once.
fn renamed(values: &[ContractValue]) -> Vec<String> {
    let mut pairs: Vec<String> = Vec::new();
    for value in values {
        if let (ValuePairing::Position, Some(target)) = (value.by, &value.target_name) {
            let pair = format!("`{}` with golden's `{}`", plain(target), plain(&value.name));
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    pairs
}

fn with_state(contract: &Contract, state: ValueState) -> Vec<&ContractValue> {
    let values = contract.outputs.iter();
    values.filter(|value| value.state == state).collect()
}

/// The numbers of a value.
fn contract_slot<'a>(
    value: &'a ContractValue,
    comparison: &'a Comparison,
) -> Option<&'a SlotResult> {
    value.result.as_deref().or_else(|| {
        let [operator, slot] = value.pair?;
        comparison.operators.get(operator)?.slots.get(slot)
    })
}

fn maker(value: &ContractValue) -> String {
    let operator: Option<&OperatorName> = value.operators.iter().flatten().next();
    operator.map(in_full).unwrap_or_default()
}

fn names(values: &[&ContractValue]) -> String {
    let shown = values.iter().take(N_NAMES_MAX);
    let shown = shown.map(|value| format!("`{}`", plain(&value.name)));
    shown.collect::<Vec<_>>().join(", ") + &rest(values.len())
}

fn rest(n: usize) -> String {
    match n.saturating_sub(N_NAMES_MAX) {
        0 => String::new(),
        n => format!(" and {n} more"),
    }
}

fn noun(word: &str, n: usize) -> String {
    if n == 1 {
        word.to_owned()
    } else {
        format!("{word}s")
    }
}
