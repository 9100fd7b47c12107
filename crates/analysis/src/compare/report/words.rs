//! Verdicts, causes and numbers in words.

mod changes;
mod figures;
pub mod promises;
pub mod proofs;

use opscope_store::record::parallel::{Collective, CollectiveKind};
use opscope_store::visible::visible;

pub use self::changes::{change, weights};
pub use self::figures::{
    excess, number, rule_words, tolerance_hint, worst_element, worst_numbers, worst_slot,
};
use super::ShownPlaces;
use crate::compare::result::{
    AttributeDifference, Cause, Certainty, Comparison, Conclusion, DivergencePoint, Evidence,
    MetricId, NonFiniteRole, OperatorName, OperatorResult, PartApart, PartingOperator, Party,
    ReplicaMismatch, Skip, SkipReason, SkipSide, SlotAgreement, SlotResult, Suspect, VerdictLevel,
    WiringChange,
};
use crate::compare::verdict::value_of;

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
                format!("{word}: {finding}. No operator inside differs")
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
    let mut partings = comparison.partings.iter();
    let parting = partings.find(|at| at.operator == divergence.operator);
    let why = parting.and_then(parting_words).map(str::to_owned);
    let why = why.unwrap_or_else(|| why_first(comparison, divergence, slot));
    let (why, wiring) = match (proofs::first_cause(comparison), parting) {
        (Some(proven), _) => (proven, String::new()),
        (None, Some(parting)) => (why, others(parting) + &rewired(parting)),
        (None, None) => (why, wiring(operator)),
    };
    let is_from_table = |slot: &SlotResult| slot.evidence == Evidence::Statistics;
    let reach = if operator.slots.iter().any(is_from_table) {
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

/// The cause of the slot that the verdict names, in words.
fn why_first(
    comparison: &Comparison,
    point: &DivergencePoint,
    slot: Option<&SlotResult>,
) -> String {
    let mut islands = comparison.contract.islands.iter();
    if let Some(island) = islands.find(|island| island.operator == point.operator) {
        return format!(
            "it computes in {} here, in {} on the golden side",
            plain(&island.target),
            plain(&island.golden)
        );
    }
    let cause = point.cause;
    match (cause, slot.and_then(|slot| slot.parameter.as_ref())) {
        (Cause::Outside, Some(name)) => format!("the weight `{}` is another", plain(name)),
        (Cause::Own, _) if let Some(overflow) = slot.and_then(changes::overflow) => overflow,
        (Cause::Own, _) if comparison.summary.certainty == Some(Certainty::Measured) => {
            "its inputs are the same bit for bit".to_owned()
        }
        (Cause::Unknown, _) => {
            let operator = comparison.operators.get(point.operator);
            let hidden = operator.map_or(&[][..], |operator| &operator.hidden_inputs);
            match hidden {
                [] => cause_words(cause).to_owned(),
                [one] => format!("its input.{one} is not in the dumps"),
                [one, ..] => format!("its input.{one} and others are not in the dumps"),
            }
        }
        _ => cause_words(cause).to_owned(),
    }
}

/// How many operators were compared with nothing, where a dump shows some of them alone, in words.
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

/// Why the sides part at an operator, where graphs tell, in words.
fn parting_words(parting: &PartingOperator) -> Option<&'static str> {
    match parting.change {
        Some(WiringChange::Inserted) => {
            Some("the golden side has no such operator between values that agree and this one")
        }
        Some(WiringChange::Missing) => {
            Some("the target has no such operator between values that agree and what differs")
        }
        Some(WiringChange::Overwrites) => {
            Some("it writes in place to a value that is read again afterwards")
        }
        None => (!parting.rewired.is_empty()).then_some("it reads another value"),
    }
}

/// The operators of which one may be at fault in place of the one that is named, in words.
fn others(parting: &PartingOperator) -> String {
    let names = parting.others.iter();
    let names: Vec<String> = names
        .map(|name| format!("`{}`", plain(&name.op_name)))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    if parting.change == Some(WiringChange::Overwrites) {
        return format!(", by {}", names.join(", "));
    }
    let n = names.len();
    let which = if n == 1 { "this one" } else { "one of these" };
    let inside = match parting.change {
        None => ", in one operator on the golden side",
        Some(_) => "",
    };
    format!("; or {which}{inside}: {}", names.join(", "))
}

/// The inputs that an operator reads in place of others, in words.
fn rewired(parting: &PartingOperator) -> String {
    let inputs = parting.rewired.iter().map(|input| {
        let of = plain(&input.golden.op_name);
        let instead = input.instead.as_ref().map(|name| plain(&name.op_name));
        let instead = instead.map(|name| format!(", which reads `{name}` there"));
        let instead = instead.unwrap_or_default();
        format!("; {} is the golden side's `{of}`{instead}", input.slot)
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

/// All operators, that of the verdict first and the others in the order of execution.
pub fn fault_first(comparison: &Comparison) -> impl Iterator<Item = &OperatorResult> {
    let first = comparison.summary.headline().map(|first| first.operator);
    let fault = first.and_then(|index| comparison.operators.get(index));
    let others = comparison.operators.iter();
    let others = others.filter(move |operator| Some(operator.index) != first);
    fault.into_iter().chain(others)
}

/// An attribute that differs, in words: `axis is 2 here, -1 on the golden side`.
pub fn attribute(attribute: &AttributeDifference) -> String {
    let AttributeDifference {
        name,
        target,
        golden,
    } = attribute;
    let [target, golden] = [target, golden].map(|text| text.as_deref().unwrap_or("not given"));
    format!("{name} is {target} here, {golden} on the golden side")
}

/// The inputs that the golden side has elsewhere, in words.
fn wiring(operator: &OperatorResult) -> String {
    let inputs = operator
        .slots
        .iter()
        .filter_map(|slot| match &slot.agreement {
            Some(SlotAgreement::Elsewhere(name)) => {
                let of = plain(&name.op_name);
                Some(format!("; {} is the golden side's `{of}`", slot.slot))
            }
            _ => None,
        });
    inputs.collect()
}

/// A level as results have it.
pub fn level(level: VerdictLevel) -> &'static str {
    match level {
        VerdictLevel::Pass => "pass",
        VerdictLevel::Warn => "warn",
        VerdictLevel::Fail => "fail",
        VerdictLevel::Skip => "skip",
    }
}

/// A cause as results have it.
pub fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Own => "own",
        Cause::Outside => "outside",
        Cause::Inherited => "inherited",
        Cause::Gradual => "gradual",
        Cause::Unknown => "unknown",
    }
}

/// A cause in words.
pub fn cause_words(cause: Cause) -> &'static str {
    match cause {
        Cause::Own => "its inputs agree far better than this",
        Cause::Outside => "a weight, or an input of the model, is another",
        Cause::Inherited => "its inputs differ already",
        Cause::Gradual => {
            "small differences of its inputs, no larger than the operator may make of them"
        }
        Cause::Unknown => "not all of its inputs, or not all before it, were compared",
    }
}

/// Type and name of the target's operator; of several that were fused, the last.
pub fn of_operator(operator: &OperatorResult) -> String {
    in_full(&name_of(operator))
}

pub(super) fn in_full(name: &OperatorName) -> String {
    match (name.op_type.is_empty(), name.op_name.is_empty()) {
        (true, _) => format!("`{}`", name.op_name),
        (false, true) => name.op_type.to_string(),
        (false, false) => format!("{} `{}`", name.op_type, name.op_name),
    }
}

/// The name by which an operator is shown: that of the target's last.
pub fn name_of(operator: &OperatorResult) -> OperatorName {
    let names = operator.target.last().or(operator.golden.last());
    names.cloned().unwrap_or_default()
}

/// Rank, model, step and repetition, as far as they say anything.
pub fn place(name: &OperatorName) -> String {
    let rank = name.rank.map(|rank| format!("rank {rank}"));
    let model = name.model.as_ref().map(ToString::to_string);
    let step = name.step.map(|step| format!("step {step}"));
    let repeat = (name.repeat > 0).then(|| format!("repeat {}", name.repeat));
    let parts = [rank, model, step, repeat].into_iter().flatten();
    parts.collect::<Vec<_>>().join(", ")
}

/// The part of an operator in the spreading of NaN, in a word.
pub fn role(role: &NonFiniteRole) -> &'static str {
    match role {
        NonFiniteRole::Producer => "producer",
        NonFiniteRole::Propagator { .. } => "propagator",
        NonFiniteRole::Absorber => "absorber",
    }
}

/// How many elements differ, then where they are unless that is everywhere; nothing if it was not
/// measured.
pub fn differing(slot: &SlotResult) -> Vec<String> {
    let Some(differing) = &slot.differing else {
        return Vec::new();
    };
    let (n, n_elements) = (differing.n, differing.n_elements());
    let verb = if n == 1 { "differs" } else { "differ" };
    let noun = if n_elements == 1 {
        "element"
    } else {
        "elements"
    };
    let mut count = format!("{n} of {n_elements} {noun} {verb}");
    let n_broken = value_of(slot, MetricId::NonFiniteMismatches).unwrap_or_default();
    if n_broken >= n as f64 {
        let verb = if n == 1 { "is" } else { "are" };
        count = format!("{n} of {n_elements} {noun} {verb} NaN or infinite on one side alone");
        // Beyond 0 is what differing means.
    } else if differing.tolerance > 0.0 {
        count += &format!(" by more than {}", number(differing.tolerance));
    }
    let layout = slot.layout.as_ref();
    let of_layout = layout.map_or_else(String::new, |layout| format!(" of {layout}"));
    let region = differing.region();
    let region = region.map(|region| format!("all differing elements in {region}{of_layout}"));
    std::iter::once(count).chain(region).collect()
}

/// ` in the part of rank 3 (tp=1) alone`, where all elements that differ are in one of several parts.
fn only_part(slot: &SlotResult) -> Option<String> {
    let ranks = slot.ranks.as_deref()?;
    let [part] = &ranks.apart[..] else {
        return None;
    };
    (!ranks.is_everywhere).then(|| format!(" in the part of {} alone", part_words(part)))
}

/// `rank 3 (tp=1)`, or `ranks 0,1` of several that hold or make the same elements.
fn part_words(part: &PartApart) -> String {
    let ranks = rank_words(&part.ranks);
    let side = match part.side {
        Party::Target => "",
        Party::Golden => " of the golden side",
    };
    if part.coordinates.is_empty() {
        format!("{ranks}{side}")
    } else {
        format!("{ranks} ({}){side}", part.coordinates)
    }
}

/// `rank 3`, or `ranks 0-3`.
fn rank_words(ranks: &[u32]) -> String {
    let kind = CollectiveKind::AllGather;
    let ranks = ranks.to_vec();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", Collective { kind, ranks }.ranks_text())
}

/// Most parts that are named.
const N_PARTS: usize = 4;

/// Findings about the ranks of a slot whose tensors were put together: which parts differ, where the
/// largest difference is, and which replicas do not agree.
pub fn ranks(slot: &SlotResult) -> Vec<String> {
    let Some(ranks) = slot.ranks.as_deref() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    let named = ranks.apart.iter().take(N_PARTS);
    lines.extend(named.map(|part| {
        let n = part.n;
        let noun = if n == 1 {
            "element differs"
        } else {
            "elements differ"
        };
        format!("{n} {noun} in {} of {}", part.region, part_words(part))
    }));
    if ranks.apart.len() > N_PARTS {
        lines.push(format!("… in {} parts in all", ranks.apart.len()));
    }
    lines.extend(ranks.worst_parts.iter().take(N_PARTS).map(|part| {
        let rank = part
            .rank
            .map_or("the only rank".to_owned(), |rank| format!("rank {rank}"));
        let index: Vec<String> = part.index.iter().map(u64::to_string).collect();
        let side = part.side.name();
        format!(
            "largest difference, {side}: [{}] of {rank}",
            index.join(", ")
        )
    }));
    lines.extend(ranks.replicas.iter().map(replica_words));
    lines
}

/// Which replicas stand apart.
fn replica_words(replicas: &ReplicaMismatch) -> String {
    let distance = replicas.metrics.get(MetricId::RelL2).unwrap_or(f64::NAN);
    let [apart, others] = [&replicas.apart, &replicas.others].map(|ranks| rank_words(ranks));
    let verb = if replicas.apart.len() == 1 {
        "has"
    } else {
        "have"
    };
    let reason = if replicas.is_tied {
        "; as many have the one as the other, and what is nearer to the other side was compared"
    } else {
        ""
    };
    format!(
        "replicas of the {} side differ: {apart} {verb} other elements than {others} \
         (rel_l2 {}){reason}",
        replicas.side.name(),
        number(distance)
    )
}

/// A suspect with the reason why it is one.
pub fn suspect(suspect: &Suspect, places: ShownPlaces) -> String {
    let name = with_place(&suspect.operator, places);
    let side = match suspect.side {
        SkipSide::Both => String::new(),
        side => format!(" of the {side} side"),
    };
    format!("{name}{side}: {}", reason(suspect.reason))
}

/// A reason in words.
pub fn reason(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::Missing => "the other side has no such operator",
        SkipReason::MissingPlace => "the other side has no such rank, model or step",
        SkipReason::MissingRepeat => "the other side ran it less often",
        SkipReason::OtherType => "what has its name on the other side is of another type",
        SkipReason::Ambiguous => "several operators of the other side are about equally like it",
        SkipReason::InsideFusion => "it vanished in a fused operator",
        SkipReason::LeftOut => "a mapping or choice leaves it out",
        SkipReason::MissingSlot => "the other side lacks an input or output of it",
        SkipReason::Damaged => "its file is damaged",
        SkipReason::NoEvidence => "the dumps have nothing in common that could be compared",
        SkipReason::NotComparable => "its elements have no values",
        SkipReason::Shape => "the extents differ",
        SkipReason::InParts => "the parts on its ranks cannot be put together",
        SkipReason::Collective => "a collective, which the other side does without",
        SkipReason::NotJudged => "two runs need not agree on it",
    }
}

/// Type, name and place of an operator.
pub fn with_place(name: &OperatorName, places: ShownPlaces) -> String {
    let place = places.words(name);
    let name = format!("{} `{}`", name.op_type, name.op_name);
    let name = name.trim_start();
    if place.is_empty() {
        name.to_owned()
    } else {
        format!("{name} ({place})")
    }
}

/// Describes something that was not compared, in one line.
pub fn skip(skip: &Skip, places: ShownPlaces) -> String {
    let operator = skip.operator.as_ref();
    let operator = operator.map(|operator| with_place(operator, places));
    let what: Vec<String> = operator
        .into_iter()
        .chain(skip.slot.map(|slot| slot.to_string()))
        .collect();
    let what = if what.is_empty() {
        String::new()
    } else {
        format!(" {},", what.join(" "))
    };
    format!("{}:{what} {}: {}", skip.side, skip.reason, skip.message)
}

/// A text from a dump for a line of a terminal.
pub fn plain(text: &str) -> String {
    visible(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::figures::element;
    use super::*;
    use crate::compare::result::{DifferingElements, Metrics, TensorSummary};

    #[test]
    fn numbers_have_four_digits() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (3.0, "3"),
            (0.25, "0.25"),
            (0.999_912_34, "0.999912"),
            (1.809_224, "1.809"),
            (1.5e-5, "1.500e-5"),
            (-12.3456, "-12.346"),
            (1e9, "1.000e9"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn elements_keep_what_floats_of_32_bits_have() {
        let cases = [
            (1.0, "1"),
            (f64::from(0.1_f32), "0.100000001"),
            (1.25e-9, "1.25e-9"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(element(value), text);
        }
    }

    #[test]
    fn the_worst_element_has_its_place() {
        let numbers = [
            (MetricId::Count, 6.0),
            (MetricId::WorstIndex, 5.0),
            (MetricId::WorstTarget, 1.0),
            (MetricId::WorstGolden, 2.5),
        ];
        let tensor = |shape: &[u64]| {
            let summary = TensorSummary {
                shape: shape.to_vec(),
                ..TensorSummary::default()
            };
            summary.into()
        };
        let mut slot = SlotResult {
            target: tensor(&[2, 3]),
            metrics: numbers.to_vec().into(),
            ..SlotResult::default()
        };
        assert_eq!(worst_element(&slot).unwrap(), "[1, 2] 1 / 2.5");
        slot.layout = Some("NCHW".into());
        assert_eq!(worst_element(&slot).unwrap(), "[5] 1 / 2.5");
        slot.layout = None;
        slot.target = tensor(&[0, 3]);
        assert_eq!(worst_element(&slot).unwrap(), "[5] 1 / 2.5");
        slot.metrics = Metrics::default();
        assert_eq!(worst_element(&slot), None);
    }

    #[test]
    fn differing_elements_have_a_number_and_a_region() {
        let check =
            |shape: &[u64], ranges: &[[u64; 2]], [n, tolerance]: [u64; 2], expected: &[&str]| {
                let slot = SlotResult {
                    differing: Some(Box::new(DifferingElements {
                        tolerance: tolerance as f64,
                        n,
                        shape: shape.to_vec(),
                        ranges: ranges.to_vec(),
                    })),
                    ..SlotResult::default()
                };
                assert_eq!(differing(&slot), expected);
            };
        check(&[], &[], [1, 0], &["1 of 1 element differs"]);
        check(
            &[4],
            &[[0, 4]],
            [3, 2],
            &["3 of 4 elements differ by more than 2"],
        );
        let region = "all differing elements in [1, :]";
        check(
            &[2, 3],
            &[[1, 2], [0, 3]],
            [2, 0],
            &["2 of 6 elements differ", region],
        );
        assert!(differing(&SlotResult::default()).is_empty());
    }

    #[test]
    fn terminals_get_no_orders() {
        assert_eq!(
            plain("a\u{1b}[31m\nb\u{202e}é"),
            "a\\u{1b}[31m\\u{a}b\\u{202e}é"
        );
    }
}
