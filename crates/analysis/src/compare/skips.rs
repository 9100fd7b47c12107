//! Lists operators, slots and files that were not compared because nothing belongs to them.

use std::collections::HashMap;

use super::matching::{
    MatchedDumps, MissingSlot, RunPair, UnmatchedExecution, UnmatchedReason, joined,
};
use super::result::{
    OperatorName, OperatorPlace, Party, PassedOverFile, Skip, SkipReason, SkipSide, SlotKey,
};
use super::side::{ComparedDump, RunPlace};

/// The skips that a matching leads to: operators and slots without a partner, and files that could
/// not be read at all.
pub(super) fn of_matching(sides: MatchedDumps<'_>) -> Vec<Skip> {
    let is_needed = Party::BOTH.map(|party| {
        let mut unmatched = sides.matching.unmatched.iter();
        unmatched.any(|one| one.party == party)
    });
    let pairs = sides.matching.pairs.as_slice();
    // Of large dumps that match completely, indexes would need more memory than the result.
    let pairs = is_needed.map(|is_needed| if is_needed { pairs } else { &[] });
    let orders = Party::BOTH.map(|party| PairOrder::by_place(sides, party, pairs[party.index()]));
    let groups = Party::BOTH.map(|party| PairNames::by_place(sides, party, pairs[party.index()]));
    let unmatched = sides.matching.unmatched.iter().map(|one| Skip {
        inside: groups[one.party.index()].around(sides, one),
        ..of_unmatched(sides, one, &orders[one.party.index()])
    });
    let missing = sides.matching.pairs.iter().flat_map(|pair| {
        let slots = pair.missing.iter();
        slots.map(move |slot| of_slot(sides, pair, *slot))
    });
    // Damage of the reference is reported as well: slots without its numbers fall back to the plain
    // limits.
    let problems = named_sides(sides).flat_map(|(name, side)| {
        side.problems.iter().map(move |message| Skip {
            side: name,
            reason: SkipReason::Damaged,
            message: message.clone(),
            ..Skip::default()
        })
    });
    unmatched.chain(missing).chain(problems).collect()
}

/// The files of all sides that hold nothing to compare.
pub(super) fn passed_over(sides: MatchedDumps<'_>) -> Vec<PassedOverFile> {
    let all = named_sides(sides).flat_map(|(name, side)| {
        side.passed_over.iter().map(move |one| PassedOverFile {
            side: name,
            path: one.path.display().to_string(),
            reason: one.reason.name().to_owned(),
        })
    });
    all.collect()
}

fn named_sides(sides: MatchedDumps<'_>) -> impl Iterator<Item = (SkipSide, &ComparedDump)> {
    let reference = sides.reference.map(|(side, _)| (SkipSide::Reference, side));
    [
        (SkipSide::Target, sides.target),
        (SkipSide::Golden, sides.golden),
    ]
    .into_iter()
    .chain(reference)
}

/// The pairs of a matching by rank and step, each with the first of its executions on a side, in
/// order.
struct PairOrder(HashMap<OperatorPlace, Vec<(usize, usize)>>);

impl PairOrder {
    fn by_place(sides: MatchedDumps<'_>, party: Party, pairs: &[RunPair]) -> PairOrder {
        let side = party.pick(sides.target, sides.golden);
        let mut of_place: HashMap<OperatorPlace, Vec<(usize, usize)>> = HashMap::new();
        for (i, pair) in pairs.iter().enumerate() {
            let runs = party.pick(&pair.target, &pair.golden);
            if let Some(&first) = runs.iter().min() {
                let place = &side.runs[first].place;
                let pairs = of_place.entry((place.rank, place.step)).or_default();
                pairs.push((first, i));
            }
        }
        for pairs in of_place.values_mut() {
            // Pairs are in the order of the target, and the golden side may have run them in
            // another.
            pairs.sort_unstable();
        }
        PairOrder(of_place)
    }

    /// The first pair of a place that ran after a run.
    fn next_after(&self, run: usize, place: OperatorPlace) -> Option<usize> {
        let pairs = self.0.get(&place)?;
        let after = pairs.partition_point(|&(other, _)| other <= run);
        pairs.get(after).map(|&(_, pair)| pair)
    }
}

/// The pairs of a matching by a side's place and the names of the other side's operators, as
/// reasons have them; none where several pairs have the same.
struct PairNames<'a>(HashMap<(&'a RunPlace, String), Option<usize>>);

impl<'a> PairNames<'a> {
    fn by_place(sides: MatchedDumps<'a>, party: Party, pairs: &[RunPair]) -> PairNames<'a> {
        let (side, others) = (
            party.pick(sides.target, sides.golden),
            party.pick(sides.golden, sides.target),
        );
        let mut of_names: HashMap<(&RunPlace, String), Option<usize>> = HashMap::new();
        for (i, pair) in pairs.iter().enumerate() {
            let (runs, partners) = (
                party.pick(&pair.target, &pair.golden),
                party.pick(&pair.golden, &pair.target),
            );
            let Some(&first) = runs.first() else { continue };
            let partners = partners.iter();
            let names = partners.map(|&run| others.runs[run].op_name.as_str());
            let key = (&*side.runs[first].place, joined(names));
            // Which execution of a name is meant, the reason does not say.
            of_names
                .entry(key)
                .and_modify(|known| *known = None)
                .or_insert(Some(i));
        }
        PairNames(of_names)
    }

    /// The pair that an operator vanished in.
    fn around(&self, sides: MatchedDumps<'a>, unmatched: &UnmatchedExecution) -> Option<usize> {
        let UnmatchedReason::InsideFusion(names) = &unmatched.reason else {
            return None;
        };
        let side = unmatched.party.pick(sides.target, sides.golden);
        let place = &side.runs.get(unmatched.run)?.place;
        self.0.get(&(place, names.clone())).copied().flatten()
    }
}

fn of_unmatched(
    sides: MatchedDumps<'_>,
    unmatched: &UnmatchedExecution,
    order: &PairOrder,
) -> Skip {
    let side = unmatched.party.pick(sides.target, sides.golden);
    let run = &side.runs[unmatched.run];
    let damage = run.slots.iter().find_map(|slot| slot.problem.as_ref());
    // A damaged file lacks what partners are found by, so the damage goes before the reason that
    // follows from it, and the exit code goes by it.
    let (reason, message) = match (damage, &unmatched.reason) {
        (Some(problem), _) => (SkipReason::Damaged, problem.clone()),
        (None, reason) => (reason.kind(), reason.message(unmatched.party)),
    };
    let next = order.next_after(unmatched.run, run.place.rank_step());
    Skip {
        side: unmatched.party.into(),
        before: next,
        operator: Some(OperatorName::for_execution(run)),
        slot: None,
        path: run
            .slots
            .first()
            .map(|slot| slot.path.display().to_string()),
        reason,
        message,
        is_allowed: false,
        inside: None,
    }
}

fn of_slot(sides: MatchedDumps<'_>, pair: &RunPair, slot: MissingSlot) -> Skip {
    let (party, other) = (slot.party, slot.party.other());
    let side = party.pick(sides.target, sides.golden);
    let others = other.pick(sides.target, sides.golden);
    let partners = other.pick(&pair.target, &pair.golden);
    let run = side.runs.get(slot.run);
    let key = SlotKey {
        side: slot.side,
        index: slot.index,
    };
    let (reason, message) = if slot.is_inner {
        let names = partners.iter();
        let names = names.map(|&run| others.runs[run].op_name.as_str());
        let reason = UnmatchedReason::InsideFusion(joined(names));
        (reason.kind(), reason.message(party))
    } else {
        (
            SkipReason::MissingSlot,
            format!("the {} side has no {key} of it", other.name()),
        )
    };
    Skip {
        side: party.into(),
        operator: run.map(OperatorName::for_execution),
        message,
        slot: Some(key),
        path: None,
        reason,
        ..Skip::default()
    }
}

impl UnmatchedReason {
    /// The same without the names of others.
    pub fn kind(&self) -> SkipReason {
        match self {
            UnmatchedReason::NoSuchName => SkipReason::Missing,
            UnmatchedReason::NoSuchPlace => SkipReason::MissingPlace,
            UnmatchedReason::NoSuchRepeat => SkipReason::MissingRepeat,
            UnmatchedReason::OtherType(_) => SkipReason::OtherType,
            UnmatchedReason::Ambiguous(..) => SkipReason::Ambiguous,
            UnmatchedReason::InsideFusion(_) => SkipReason::InsideFusion,
            UnmatchedReason::Collective => SkipReason::Collective,
            UnmatchedReason::LeftOut => SkipReason::LeftOut,
        }
    }

    fn message(&self, party: Party) -> String {
        let other = party.other().name();
        match self {
            UnmatchedReason::NoSuchName => format!("the {other} side has no such operator"),
            UnmatchedReason::NoSuchPlace => {
                format!("the {other} side has no such rank, model or step")
            }
            UnmatchedReason::NoSuchRepeat => {
                format!("the {other} side has it less often in this step")
            }
            UnmatchedReason::InsideFusion(name) => {
                format!("it is inside `{name}` on the {other} side, which shows no value of it")
            }
            UnmatchedReason::OtherType(op_type) => {
                format!("what has its name on the {other} side is of type `{op_type}`")
            }
            UnmatchedReason::Ambiguous(first, second) => {
                format!("`{first}` and `{second}` of the {other} side are about equally like it")
            }
            UnmatchedReason::Collective => {
                format!("a collective, which the {other} side does without")
            }
            UnmatchedReason::LeftOut => "a mapping or choice leaves it out".to_owned(),
        }
    }
}
