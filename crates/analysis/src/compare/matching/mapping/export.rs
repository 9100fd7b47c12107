//! A matching as a mapping, to be corrected by hand and used again.

use crate::compare::whole::RankRules;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{MappedNames, Mapping, OperatorMapping, UnmappedOperators};
use crate::compare::matching::names::file_name;
use crate::compare::matching::{MatchEvidence, Matching, RunPair, UnmatchedReason};
use crate::compare::result::Party;
use crate::compare::side::{ComparedDump, RunPlace};

impl Matching {
    /// Every pair that equal names did not make, with what made it and how sure that is, and the
    /// names of the operators without a partner. Steps and ranks with equal matches are one entry;
    /// of contradictory ones the first counts.
    pub fn to_mapping(&self, target: &ComparedDump, golden: &ComparedDump) -> Mapping {
        let sides = [target, golden];
        let repeats = sides.map(repeats);
        let inside = FusedOperators::of_matching(self, sides);
        let mut entries: Vec<OperatorMapping> = Vec::new();
        let mut seen: BTreeSet<(MappedNames, MappedNames, [usize; 2])> = BTreeSet::new();
        let mut claimed: HashMap<(usize, String, usize), usize> = HashMap::new();
        for pair in self
            .pairs
            .iter()
            .filter(|pair| pair.how != MatchEvidence::Name)
        {
            let runs = [&pair.target, &pair.golden];
            let [t, g] = [0, 1].map(|i| names(sides[i], runs[i], &inside.names_inside(i, pair)));
            let numbers = [0, 1].map(|i| runs[i].first().map_or(0, |&run| repeats[i][run].0));
            if !seen.insert((t.clone(), g.clone(), numbers)) {
                continue;
            }
            let keys = [&t, &g].into_iter().enumerate().flat_map(|(i, names)| {
                let names = names.as_slice().iter();
                names.map(move |name| (i, file_name(name), numbers[i]))
            });
            let keys: Vec<_> = keys.collect();
            // `resolve` rejects a mapping with duplicate names, and a proposal must be accepted
            // without changes.
            if keys.iter().any(|key| claimed.contains_key(key)) {
                continue;
            }
            claimed.extend(keys.into_iter().map(|key| (key, entries.len())));
            let is_repeated = [0, 1]
                .into_iter()
                .any(|i| runs[i].iter().any(|&run| repeats[i][run].1 > 1));
            entries.push(OperatorMapping {
                target: t,
                golden: g,
                target_run: is_repeated.then_some(numbers[0]),
                golden_run: is_repeated.then_some(numbers[1]),
                slots: slots(sides, pair),
                how: Some(pair.how.evidence().name().to_owned()),
                likeness: match pair.how {
                    // More digits are of no use to people.
                    MatchEvidence::Fuzzy(likeness) => Some((likeness * 1000.0).round() / 1000.0),
                    _ => None,
                },
            });
        }
        Mapping {
            ranks: RankRules::default(),
            operators: entries,
            ignore: Vec::new(),
            unmatched: self.unmapped(sides),
        }
    }

    fn unmapped(&self, sides: [&ComparedDump; 2]) -> UnmappedOperators {
        let [target, golden] = Party::BOTH.map(|party| {
            let side = sides[party.index()];
            // Only what an entry could bring together: one that lacks its step or repeat on the
            // other side has no partner to name.
            let all = self.unmatched.iter();
            let all = all.filter(|one| {
                one.party == party
                    && matches!(
                        &one.reason,
                        UnmatchedReason::NoSuchName
                            | UnmatchedReason::OtherType(_)
                            | UnmatchedReason::Ambiguous(..)
                    )
            });
            let mut seen = BTreeSet::new();
            all.map(|one| side.runs[one.run].op_name.to_string())
                .filter(|name| seen.insert(name.clone()))
                .collect()
        });
        UnmappedOperators { target, golden }
    }
}

/// Operators that vanished in one of the other side, by side, place and the name of that one.
struct FusedOperators<'a> {
    sides: [&'a ComparedDump; 2],
    runs: HashMap<(usize, &'a RunPlace, &'a str), Vec<usize>>,
}

impl<'a> FusedOperators<'a> {
    fn of_matching(matching: &'a Matching, sides: [&'a ComparedDump; 2]) -> FusedOperators<'a> {
        let mut runs: HashMap<(usize, &RunPlace, &str), Vec<usize>> = HashMap::new();
        for one in &matching.unmatched {
            if let UnmatchedReason::InsideFusion(name) = &one.reason {
                let side = one.party.index();
                let place = &sides[side].runs[one.run].place;
                runs.entry((side, place, name)).or_default().push(one.run);
            }
        }
        FusedOperators { sides, runs }
    }

    /// Returns the runs that vanished in fused operators on this side of a pair.
    fn names_inside(&self, side: usize, pair: &RunPair) -> Vec<usize> {
        let [own, others] = if side == 0 {
            [&pair.target, &pair.golden]
        } else {
            [&pair.golden, &pair.target]
        };
        let ([other], Some(own)) = (&others[..], own.first()) else {
            return Vec::new();
        };
        let name = self.sides[1 - side].runs[*other].op_name.as_str();
        let key = (side, &*self.sides[side].runs[*own].place, name);
        self.runs.get(&key).cloned().unwrap_or_default()
    }
}

fn names(side: &ComparedDump, runs: &[usize], inside: &[usize]) -> MappedNames {
    let mut runs = [runs, inside].concat();
    runs.sort_unstable();
    let mut seen = BTreeSet::new();
    let names = runs.iter().map(|&run| &side.runs[run].op_name);
    let distinct = names.filter(|name| seen.insert(*name));
    MappedNames::from(distinct.map(ToString::to_string).collect::<Vec<_>>())
}

/// Which execution of its name each run is within its place, and how many there are.
fn repeats(side: &ComparedDump) -> Vec<(usize, usize)> {
    let mut n_of: HashMap<(&RunPlace, String), usize> = HashMap::new();
    let mut numbers = Vec::with_capacity(side.runs.len());
    for run in &side.runs {
        let n = n_of
            .entry((&*run.place, file_name(&run.op_name)))
            .or_insert(0);
        numbers.push(*n);
        *n += 1;
    }
    let runs = side.runs.iter().zip(numbers);
    runs.map(|(run, number)| (number, n_of[&(&*run.place, file_name(&run.op_name))]))
        .collect()
}

/// The slots of a pair, where side and position alone would not bring them together.
fn slots(sides: [&ComparedDump; 2], pair: &RunPair) -> BTreeMap<String, String> {
    let is_group = pair.target.len() > 1 || pair.golden.len() > 1;
    let texts = pair.slots.iter().map(|slots| {
        let slots = [(sides[0], slots.target), (sides[1], slots.golden)];
        let [target, golden] = slots.map(|(side, at)| {
            let key = side.slot(at).key();
            if is_group {
                format!("{}:{key}", side.runs[at.run].op_name)
            } else {
                key.to_string()
            }
        });
        (target, golden)
    });
    texts.filter(|(t, g)| is_group || t != g).collect()
}
