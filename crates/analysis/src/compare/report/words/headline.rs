//! The verdict in one line.

use super::{
    attribute, cause_words, changes, figures, in_full, of_operator, only_part, plain, promises,
    proofs, rank_operators, rank_words, weight_reads,
};
use opscope_store::record::SlotSide;

use crate::compare::attribution::kinds::{is_in_place, plain_type};
use crate::compare::result::{
    AttributeDifference, Cause, Certainty, Comparison, Conclusion, DivergencePoint, Evidence,
    NarrowOperator, OperatorName, OperatorResult, PartingOperator, QuantisedLoss, Skip, SkipReason,
    SkipSide, SlotAgreement, SlotResult, Suspect, WiringChange,
};

/// Ends of types that compute the same: in place, and in other versions of Ascend.
const SAME: [&str; 4] = ["_", "d", "v2", "v3"];
/// Maximum number of operators that a value may come from, in a headline.
const N_OTHERS_MAX: usize = 8;
/// Maximum number of operators without a partner that a headline names in addition to the first
/// difference.
const N_SUSPECTS_MAX: usize = 3;

/// The verdict in one line of two sentences: the conclusion and what it is about, then where the
/// sides diverge first and why, as sure as that is. Each has its worst number.
pub fn verdict(comparison: &Comparison) -> String {
    let contract = &comparison.contract;
    let word = contract.conclusion.word();
    let first = first_difference(comparison);
    if contract.is_known() {
        let finding = promises::finding(comparison);
        let names_cause = matches!(
            contract.conclusion,
            Conclusion::Fail | Conclusion::Warn | Conclusion::Quantised
        );
        return match first.filter(|_| names_cause) {
            Some((lead, first)) => {
                let (head, rest) = lead.split_at(1);
                format!(
                    "{word}: {finding}. {}{rest} at {first}",
                    head.to_uppercase()
                )
            }
            None if contract.conclusion == Conclusion::Fail => {
                let is_compared = comparison.summary.slots.iter().any(|n| *n > 0);
                let inside = if is_compared {
                    "No operator inside differs"
                } else {
                    "Nothing inside was compared"
                };
                format!("{word}: {finding}. {inside}")
            }
            None => format!("{word}: {finding}"),
        };
    }
    let [n, ..] = comparison.summary.slots;
    match (contract.conclusion, first) {
        (Conclusion::Incomplete, _) => format!("{word}: {}", contract.missing.join("; ")),
        (_, Some((lead, first))) => format!("{word}: {lead} at {first}"),
        (_, None) => format!("{word}: all {n} compared slots agree{}", alone(comparison)),
    }
}

/// The word for the first divergence, as far as the evidence goes; and where it is, why, and its
/// worst number.
fn first_difference(comparison: &Comparison) -> Option<(&'static str, String)> {
    let (divergence, operator, slot) = headline(comparison)?;
    let name = divergence.name.as_ref();
    let name = name.map_or_else(|| of_operator(operator), in_full);
    let number = slot.and_then(|slot| figures::worst_number(&slot.rules));
    // Of outputs that agree nothing is the cause.
    let is_wrong = comparison.contract.conclusion == Conclusion::Fail;
    let lead = match comparison.summary.certainty.filter(|_| is_wrong) {
        Some(Certainty::Proven | Certainty::Measured) => "cause",
        Some(Certainty::Likely) => "likely cause",
        Some(Certainty::FirstDifference) | None => "first difference",
    };
    if let Some(loss) = loss_of(comparison, divergence) {
        let slot = divergence.slot;
        return Some(match &loss.codes {
            Some(codes) => {
                let [other, parameter] = [in_full(&codes.other), codes.parameter.name().to_owned()];
                let why =
                    format!("its {parameter} differs from that of {other} for the same codes");
                let lead = match divergence.cause {
                    Cause::Own => "likely cause",
                    _ => "first difference",
                };
                (lead, format!("{name} {slot}: {why}"))
            }
            None => {
                let [before, behind] = [loss.before, loss.behind].map(figures::percent);
                let others = or_one_of(&loss.others, "");
                (
                    "most of it",
                    format!("{name} {slot}: {before} apart before it, {behind} behind it{others}"),
                )
            }
        });
    }
    let before_output = comparison.contract.before_output.as_deref();
    let mut partings = before_output.into_iter().chain(&comparison.partings);
    let parting = partings.find(|at| at.operator == divergence.operator);
    let joined = || parting.and_then(|parting| joined_ranks(comparison, parting, operator));
    let why = joined().or_else(|| parting.and_then(parting_words).map(str::to_owned));
    let why = why.unwrap_or_else(|| why_first(comparison, divergence, slot));
    let why = match parting {
        None => why + &suspects(divergence),
        Some(_) => why,
    };
    let (why, wiring) = match (proofs::first_cause(comparison), parting) {
        (Some(proven), _) => (proven, String::new()),
        (None, Some(parting)) if parting.rewired.is_empty() => {
            (why, others(parting) + &wiring(operator))
        }
        (None, Some(parting)) => (why, others(parting) + &rewired(parting)),
        (None, None) => (why, wiring(operator)),
    };
    let mut evidence = operator.slots.iter().map(|slot| &slot.evidence);
    let reach = if evidence.any(|evidence| *evidence == Evidence::Statistics) {
        ", as far as statistics show"
    } else {
        ""
    };
    let on_rank = slot.and_then(only_part).unwrap_or_default();
    let number = number.unwrap_or_default();
    let slot = divergence.slot;
    Some((
        lead,
        format!("{name} {slot}{on_rank}: {why}{reach}{wiring}{number}"),
    ))
}

/// The operators of the target before an output of unknown cause that the golden side does not have,
/// in words.
fn suspects(point: &DivergencePoint) -> String {
    let is_one = |suspect: &&Suspect| {
        suspect.side == SkipSide::Target && suspect.reason == SkipReason::Missing
    };
    let names = point.suspects.iter().filter(is_one);
    let names: Vec<OperatorName> = names.map(|suspect| suspect.operator.clone()).collect();
    match point.cause {
        Cause::Unknown if names.len() <= N_SUSPECTS_MAX => or_one_of(&names, " before it"),
        _ => String::new(),
    }
}

/// Operators that it may be instead, in words.
fn or_one_of(others: &[OperatorName], inside: &str) -> String {
    let shown: Vec<String> = others
        .iter()
        .take(N_OTHERS_MAX)
        .map(|name| format!("`{}`", plain(&name.op_name)))
        .collect();
    let which = match shown.len() {
        0 => return String::new(),
        1 => "this one",
        _ => "one of these",
    };
    let more = match others.len() - shown.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("; or {which}{inside}: {}{more}", shown.join(", "))
}

/// The loss of a quantised model at the slot that the verdict names.
fn loss_of<'a>(comparison: &'a Comparison, point: &DivergencePoint) -> Option<&'a QuantisedLoss> {
    let loss = comparison.contract.loss.as_deref();
    loss.filter(|loss| {
        // A graph says more about an operator than distances do.
        let is_by_distance = loss.codes.is_some() || point.cause == Cause::Unknown;
        is_by_distance && point.name.as_ref() == Some(&loss.name) && point.slot == loss.slot
    })
}

/// The cause of the slot that the verdict names, in words.
fn why_first(
    comparison: &Comparison,
    point: &DivergencePoint,
    slot: Option<&SlotResult>,
) -> String {
    let mut islands = comparison.contract.islands.iter();
    let is_judged = comparison.contract.conclusion == Conclusion::Warn;
    let is_it =
        |island: &&NarrowOperator| (island.operator, &island.name) == (point.operator, &point.name);
    if let Some(island) = islands.find(is_it).filter(|_| is_judged) {
        let [target, golden] = [&island.target, &island.golden].map(|name| plain(name));
        return match &island.name {
            None => format!("it computes in {target} here, in {golden} on the golden side"),
            Some(_) => format!(
                "it computes in {target} here, and the golden side shows nothing shorter than \
                 {golden}"
            ),
        };
    }
    if slot.is_some_and(|slot| slot.ranks.as_ref().is_some_and(|of| of.is_unreduced)) {
        return "the ranks read contributions that no collective reduces".to_owned();
    }
    if let Some(operators) = slot.and_then(rank_operators) {
        return operators;
    }
    let cause = point.cause;
    match (cause, slot.and_then(|slot| slot.parameter.as_ref())) {
        (Cause::Outside | Cause::Unknown, Some(name))
            if cause == Cause::Outside || slot.is_some_and(|slot| slot.is_outside) =>
        {
            let golden = slot.and_then(|slot| slot.golden_parameter.as_deref());
            let difference = changes::weight_difference(slot, golden);
            format!("the weight `{}` {difference}", plain(name))
        }
        (Cause::Own, _) if let Some(overflow) = slot.and_then(changes::overflow) => overflow,
        (Cause::Own, _) if is_rewired(comparison, point) => "it reads another value".to_owned(),
        (Cause::Own, _) if let Some(reads) = extra_reads(comparison, point) => reads,
        (Cause::Own, _) if let Some(golden) = other_type(comparison, point) => {
            format!("the golden side computes it by {}", in_full(golden))
        }
        (Cause::Own, _) if let Some(attributes) = other_attributes(comparison, point) => attributes,
        (Cause::Own, _) if let Some(ranks) = slot.and_then(other_replicas) => {
            format!("{ranks} computes another value from the same inputs")
        }
        (Cause::Own, _) if is_new_value(comparison, point) => {
            "it reads what the golden side has, and no operator there gives its result".to_owned()
        }
        (Cause::Own, _) if comparison.summary.certainty == Some(Certainty::Measured) => {
            let is_same = || "its inputs are the same bit for bit".to_owned();
            lacking_input(comparison, point).unwrap_or_else(is_same)
        }
        (Cause::Unknown, _) => {
            let operator = comparison.operators.get(point.operator);
            let hidden = operator.map_or(&[][..], |operator| &operator.hidden_inputs);
            let has_output =
                operator.is_none_or(|operator| operator.slots.iter().any(SlotResult::is_output));
            match hidden {
                [] if !has_output && point.slot.side == SlotSide::Output => {
                    "its output was not compared".to_owned()
                }
                [] => random_source(point).unwrap_or_else(|| cause_words(cause).to_owned()),
                [one] => format!("its input.{one} is not in the dumps"),
                [one, ..] => format!("its input.{one} and others are not in the dumps"),
            }
        }
        _ => cause_words(cause).to_owned(),
    }
}

/// The input that one side's operator reads and the other's does not, in words: a mask, say.
fn lacking_input(comparison: &Comparison, point: &DivergencePoint) -> Option<String> {
    let operator = comparison.operators.get(point.operator)?;
    let skips = comparison.skips.iter();
    let mut lacking = skips.filter(|skip| {
        let mut names = operator.target.iter().chain(&operator.golden);
        skip.reason == SkipReason::MissingSlot
            && names.any(|name| skip.operator.as_ref() == Some(name))
    });
    let slot = |skip: &Skip| skip.slot.filter(|slot| slot.side == SlotSide::Input);
    let (skip, slot) = lacking.find_map(|skip| Some((skip, slot(skip)?)))?;
    point.name.is_none().then(|| match skip.side {
        SkipSide::Golden => format!("golden's also reads an {slot}, which this one does not"),
        _ => format!("it also reads an {slot}, which golden's does not"),
    })
}

/// That ranks combine their values to another one than that of one process, which has no operator
/// for it, in words.
fn joined_ranks(
    comparison: &Comparison,
    parting: &PartingOperator,
    operator: &OperatorResult,
) -> Option<String> {
    let mut skips = comparison.skips.iter();
    let is_collective = skips.any(|skip| {
        let name = skip.operator.as_ref();
        skip.reason == SkipReason::Collective
            && name.is_some_and(|name| {
                name.op_name == parting.name.op_name && name.step == parting.name.step
            })
    });
    let change = operator.inputs().find_map(changes::change);
    let change = change.as_deref().and_then(|change| change.split_once(": "));
    let change = change.map_or(String::new(), |(_, change)| format!(": {change}"));
    (is_collective && parting.change == Some(WiringChange::Inserted))
        .then(|| format!("what the ranks make of their values together differs{change}"))
}

/// The rank that has another value than the others, if it is one.
fn other_replicas(slot: &SlotResult) -> Option<String> {
    let replicas = slot.ranks.as_deref()?.replicas.first()?;
    let is_one = replicas.apart.len() == 1;
    is_one.then(|| rank_words(&replicas.apart))
}

/// That the input that the verdict names is made by an operator such as `randn`, in words.
fn random_source(point: &DivergencePoint) -> Option<String> {
    let mut suspects = point.suspects.iter();
    let random = suspects.find(|suspect| suspect.reason == SkipReason::NotJudged)?;
    (point.slot.side == SlotSide::Input).then(|| {
        let name = plain(&random.operator.op_name);
        format!("`{name}` makes it, and two runs need not agree on that")
    })
}

/// That the target reads the weights of the operator that the verdict names more often, if that
/// operator has no partner.
fn extra_reads(comparison: &Comparison, point: &DivergencePoint) -> Option<String> {
    let name = point.name.as_ref()?;
    let place = point.module.as_deref().unwrap_or(&name.op_name);
    let mut reads = comparison.weight_reads.iter();
    let reads = reads.find(|reads| reads.target > reads.golden && has_part(place, &reads.name));
    reads.map(weight_reads)
}

/// Whether a module, or the name of an operator in it, is `part` or inside of it.
fn has_part(place: &str, part: &str) -> bool {
    let is_end = |text: Option<char>| text.is_none_or(|end| "/._".contains(end));
    place.match_indices(part).any(|(at, _)| {
        let behind = place[at + part.len()..].chars().next();
        is_end(place[..at].chars().next_back()) && is_end(behind)
    })
}

/// Whether the operator that the verdict names has no partner, and its values were looked for.
fn is_new_value(comparison: &Comparison, point: &DivergencePoint) -> bool {
    let mut partings = comparison.partings.iter();
    point
        .name
        .as_ref()
        .is_some_and(|name| partings.any(|parting| parting.name == *name))
}

/// The attributes of the operator that the verdict names, as far as they differ.
fn other_attributes(comparison: &Comparison, point: &DivergencePoint) -> Option<String> {
    let operator = comparison.operators.get(point.operator)?;
    let is_listed = point.name.is_none() && !operator.attributes.is_empty();
    // What one side leaves at its default may be the same.
    let is_given = |at: &&AttributeDifference| at.target.is_some() && at.golden.is_some();
    let is_any_given = operator.attributes.iter().any(|at| is_given(&at));
    let words = operator.attributes.iter();
    let words = words
        .filter(|at| !is_any_given || is_given(at))
        .map(attribute);
    is_listed.then(|| plain(&words.collect::<Vec<_>>().join(", ")))
}

/// The partner of the operator that the verdict names, if it is of another type
/// of the same framework.
fn other_type<'a>(comparison: &'a Comparison, point: &DivergencePoint) -> Option<&'a OperatorName> {
    let operator = comparison.operators.get(point.operator)?;
    let ([target], [golden]) = (&operator.target[..], &operator.golden[..]) else {
        return None;
    };
    let is_torch = [target, golden].map(|name| name.op_type.starts_with("aten"));
    let plain = [target, golden].map(|name| plain_type(&name.op_type));
    let plain = plain.each_ref().map(|op_type| {
        SAME.iter().fold(&**op_type, |op_type, end| {
            op_type.strip_suffix(end).unwrap_or(op_type)
        })
    });
    let is_known = point.name.is_none() && !plain.contains(&"") && is_torch[0] == is_torch[1];
    (is_known && plain[0] != plain[1]).then_some(golden)
}

/// The number of operators without a partner, if a dump contains only some of the operators, in
/// words.
fn alone(comparison: &Comparison) -> String {
    let skips = comparison.skips.iter();
    let n = skips
        .filter(|skip| skip.slot.is_none() && skip.reason == SkipReason::Missing)
        .count();
    if !comparison.is_partial || n == 0 {
        return String::new();
    }
    let operators = if n == 1 {
        "operator was"
    } else {
        "operators were"
    };
    format!("; {n} {operators} compared with nothing, as a dump shows only some")
}

/// Why the sides diverge at an operator, according to graphs, in words.
fn parting_words(parting: &PartingOperator) -> Option<&'static str> {
    match parting.change {
        Some(WiringChange::Inserted) => {
            Some("the golden side has no such operator between values that agree and what differs")
        }
        Some(WiringChange::Missing) => {
            Some("the target has no such operator between values that agree and what differs")
        }
        // The part of a tensor that is written to.
        Some(WiringChange::Overwrites) if !is_in_place(&parting.name.op_type) => None,
        Some(WiringChange::Overwrites) => {
            Some("it writes in place to a value that is read again afterwards")
        }
        Some(WiringChange::ReadsInner) => Some(
            "it reads a value from inside of operators that are one on the golden side, and not \
             their output",
        ),
        Some(WiringChange::NotShown) if parting.slot.side == SlotSide::Input => {
            Some("what makes it was not compared")
        }
        Some(WiringChange::NotShown) => {
            Some("one dump lacks it, between values that agree and what differs")
        }
        None if parting.cause == Cause::Unknown => {
            Some("from here to the output no value has a partner")
        }
        None => (!parting.rewired.is_empty()).then_some("it reads another value"),
    }
}

/// The operators of which one may be at fault in place of the one that is named, in words.
fn others(parting: &PartingOperator) -> String {
    let by = match parting.change {
        Some(WiringChange::Overwrites) => Some("by"),
        Some(WiringChange::NotShown) if parting.slot.side == SlotSide::Input => Some("next to"),
        _ => None,
    };
    if let Some(by) = by.filter(|_| !parting.others.is_empty()) {
        let names = parting.others.iter();
        let names = names.map(|name| format!("`{}`", plain(&name.op_name)));
        let names: Vec<String> = names.collect();
        return format!(", {by} {}", names.join(", "));
    }
    let inside = match parting.change {
        None if parting.cause == Cause::Own => ", in one operator on the golden side",
        _ => "",
    };
    or_one_of(&parting.others, inside)
}

/// The inputs that an operator reads in place of others, in words.
fn rewired(parting: &PartingOperator) -> String {
    let inputs = parting.rewired.iter().map(|input| {
        let (slot, read) = (input.slot, plain(&input.golden.op_name));
        match input.instead.as_ref().map(|name| plain(&name.op_name)) {
            Some(instead) if instead == read => {
                format!("; {slot} reads another output of `{read}` than golden's does")
            }
            Some(instead) => format!("; {slot} reads `{read}`, golden's reads `{instead}`"),
            None => format!("; {slot} reads `{read}`, which golden's does not"),
        }
    });
    inputs.collect()
}

/// The divergence that the verdict names, with its operator, and its slot if that was compared: an
/// operator that is a part of another one on the golden side may show none.
pub fn headline(
    comparison: &Comparison,
) -> Option<(&DivergencePoint, &OperatorResult, Option<&SlotResult>)> {
    let divergence = comparison.summary.headline()?;
    let operator = comparison.operators.get(divergence.operator)?;
    // The slot is that of the operator with the name, and another one's has other numbers.
    let is_listed = divergence.name.is_none();
    let mut slots = operator.slots.iter();
    let slot = slots.find(|s| is_listed && s.slot == divergence.slot);
    Some((divergence, operator, slot))
}

/// Whether an operator reads values that golden's does not, but others do.
fn is_rewired(comparison: &Comparison, point: &DivergencePoint) -> bool {
    let operator = comparison.operators.get(point.operator);
    operator.is_some_and(|operator| point.name.is_none() && !wiring(operator).is_empty())
}

/// The inputs that the golden side has elsewhere, in words.
fn wiring(operator: &OperatorResult) -> String {
    let inputs = operator
        .slots
        .iter()
        .filter_map(|slot| match &slot.agreement {
            Some(SlotAgreement::Elsewhere(name)) => {
                let of = plain(&name.op_name);
                Some(format!(
                    "; {} reads `{of}`, which golden's does not",
                    slot.slot
                ))
            }
            _ => None,
        });
    inputs.collect()
}
