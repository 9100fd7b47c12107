//! Verdicts, causes and numbers in words.

mod changes;
mod figures;
mod headline;
pub mod promises;
pub mod proofs;

use opscope_store::record::parallel::{Collective, CollectiveKind};
use opscope_store::visible::visible;

pub use self::changes::{change, overflow, parameter_change, weights};
pub use self::figures::{
    excess, largest_difference, number, rule_words, tolerance_hint, worst_element, worst_numbers,
    worst_slot,
};
pub use self::headline::{headline, verdict};
use super::ShownPlaces;
use crate::compare::result::{
    AttributeDifference, Cause, Comparison, MetricId, NonFiniteRole, OperatorName, OperatorResult,
    PartApart, Party, RankOperator, ReplicaMismatch, Skip, SkipReason, SkipSide, SlotResult,
    Suspect, VerdictLevel, WeightReads,
};
use crate::compare::verdict::value_of;

/// All operators, that of the verdict first and the others in the order of execution.
pub fn fault_first(comparison: &Comparison) -> impl Iterator<Item = &OperatorResult> {
    let first = comparison.summary.headline().map(|first| first.operator);
    let fault = first.and_then(|index| comparison.operators.get(index));
    let others = comparison.operators.iter();
    let others = others.filter(move |operator| Some(operator.index) != first);
    fault.into_iter().chain(others)
}

/// An attribute that differs, in words: `axis is 2 here, -1 on the golden side`; an argument by name
/// and number, `eps (argument.4) is …`.
pub fn attribute(attribute: &AttributeDifference) -> String {
    let texts = [&attribute.target, &attribute.golden];
    let [target, golden] = texts.map(|text| text.as_deref().unwrap_or("not given"));
    let name = attribute.label();
    format!("{name} is {target} here, {golden} on the golden side")
}

/// Weights that the sides read another number of times, in words.
pub fn weight_reads(reads: &WeightReads) -> String {
    let name = plain(&reads.name);
    let what = match reads.n_weights {
        1 => format!("the weight `{name}`"),
        n => format!("the {n} weights of `{name}`"),
    };
    let times = |n: usize| match n {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let verb = if reads.n_weights == 1 { "is" } else { "are" };
    let golden = times(reads.golden);
    match reads.target {
        0 => format!("{what} {verb} never read here, {golden} on the golden side"),
        n => format!(
            "{what} {verb} read {} here, {golden} on the golden side",
            times(n)
        ),
    }
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
        Cause::Outside => "a weight or an input of the model differs",
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

/// Rank, model, step and repetition, as far as known.
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

/// `rank 3 computes it by relu `relu_1`, model.py:7`, where ranks have several operators for a value
/// that differs: those of the ranks whose part does, if these are some.
fn rank_operators(slot: &SlotResult) -> Option<String> {
    let ranks = slot.ranks.as_deref()?;
    let parts = ranks.apart.iter().filter(|_| !ranks.is_everywhere);
    let replicas = ranks.replicas.iter().flat_map(|replicas| &replicas.apart);
    let apart: Vec<u32> = (parts.flat_map(|part| &part.ranks))
        .chain(replicas)
        .copied()
        .collect();
    let operators = ranks.operators.iter().filter(|operator| {
        let mut ranks = operator.ranks.iter();
        apart.is_empty() || ranks.any(|rank| apart.contains(rank))
    });
    let words: Vec<String> = operators
        .take(N_PARTS)
        .map(|operator| {
            let verb = if operator.ranks.len() == 1 {
                "computes"
            } else {
                "compute"
            };
            let RankOperator {
                op_type, op_name, ..
            } = operator;
            let source = operator.source.as_deref().map(plain);
            let source = source.map(|source| format!(", {source}"));
            format!(
                "{} {verb} it by {op_type} `{}`{}",
                rank_words(&operator.ranks),
                plain(op_name),
                source.unwrap_or_default()
            )
        })
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
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

/// Maximum number of named parts.
const N_PARTS: usize = 4;

/// Findings about a slot whose tensors were combined from ranks: the parts that differ, the place
/// of the largest difference, and the replicas that disagree.
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

/// The replicas that disagree with the others.
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
        SkipReason::Shape => "the shapes differ",
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
        slot.change_rare(|rare| rare.layout = Some("NCHW".into()));
        assert_eq!(worst_element(&slot).unwrap(), "[5] 1 / 2.5");
        slot.change_rare(|rare| rare.layout = None);
        slot.target = tensor(&[0, 3]);
        assert_eq!(worst_element(&slot).unwrap(), "[5] 1 / 2.5");
        slot.metrics = Metrics::default();
        assert_eq!(worst_element(&slot), None);
    }

    #[test]
    fn differing_elements_have_a_number_and_a_region() {
        let check =
            |shape: &[u64], ranges: &[[u64; 2]], [n, tolerance]: [u64; 2], expected: &[&str]| {
                let elements = DifferingElements {
                    tolerance: tolerance as f64,
                    n,
                    shape: shape.to_vec(),
                    ranges: ranges.to_vec(),
                };
                let mut slot = SlotResult::default();
                slot.change_rare(|rare| rare.differing = Some(elements.into()));
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
