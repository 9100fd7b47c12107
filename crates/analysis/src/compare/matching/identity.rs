//! Pairs that are certain by name: no later finding separates them.
//!
//! A name that both sides have once says which operator is which, whatever became of its values. A
//! name that ends in a counter says so only as long as the graphs around it agree: one operator more
//! moves all later numbers. A name that stays where a tool made one operator of several is that of
//! something else.

use std::collections::{HashMap, HashSet};

use opscope_store::record::SlotSide;

use super::{MatchEvidence, MatchedDumps, RunPair, SlotRef};
use crate::compare::attribution::kinds::plain_type;
use crate::compare::result::{Comparison, Evidence, OperatorResult, SlotResult};
use crate::compare::side::{ComparedDump, OperatorExecution};

/// Earlier pairs, and everything that determines whether their names are certain.
struct NamedPairs<'a> {
    dumps: [&'a ComparedDump; 2],
    /// Partners, of both sides; of several operators that are one on the other side, the last.
    partners: [HashMap<usize, usize>; 2],
    /// Executions next to one that has no partner, of both sides.
    next_to_alone: [HashSet<usize>; 2],
    /// Names by what they are without their counter.
    families: HashMap<&'a str, NameFamily>,
    /// Whether both sides have the same names, in the same order.
    is_one_listing: bool,
    /// Names in several graphs of one program, which the other side has as one.
    of_several_graphs: HashSet<&'a str>,
}

/// The pairs of `sides` whose names are certain, the target's execution first. `comparison` has the
/// numbers and levels of these pairs.
pub(crate) fn certain(comparison: &Comparison, sides: MatchedDumps<'_>) -> Vec<[usize; 2]> {
    let names = NamedPairs::new(sides);
    let pairs = sides.matching.pairs.iter().zip(&comparison.operators);
    let found = pairs.filter_map(|(pair, operator)| {
        let (&[t], &[g]) = (&pair.target[..], &pair.golden[..]) else {
            return None;
        };
        let is_named = pair.how == MatchEvidence::Name && names.is_one_operator(t, g);
        let is_certain = is_named
            && !names.may_stand_for_several(pair, operator)
            && names.is_confirmed(pair, operator);
        is_certain.then_some([t, g])
    });
    found.collect()
}

/// Names that several graphs of a side have, if the other side has one graph.
fn of_several_graphs(dumps: [&ComparedDump; 2]) -> HashSet<&str> {
    let graphs = dumps.map(|dump| {
        let mut graphs: HashMap<&str, HashSet<_>> = HashMap::new();
        for run in &dump.runs {
            let graph = (run.place.model.as_ref(), run.place.model_id);
            graphs.entry(&run.op_name).or_default().insert(graph);
        }
        graphs
    });
    let n_graphs = graphs.each_ref().map(|graphs| {
        let all: HashSet<_> = graphs.values().flatten().collect();
        all.len()
    });
    let several = graphs.into_iter().zip(n_graphs.into_iter().rev());
    let several = several.filter(|(_, n_others)| *n_others == 1);
    let names = several.flat_map(|(graphs, _)| graphs);
    names
        .filter(|(_, graphs)| graphs.len() > 1)
        .map(|(name, _)| name)
        .collect()
}

/// Names that differ in their counters alone.
#[derive(Clone, Copy)]
struct NameFamily {
    /// Whether a side has several.
    is_several: bool,
    /// Whether both sides have the same.
    is_same: bool,
    /// Whether a side has no others than the other one.
    is_part: bool,
}

impl<'a> NamedPairs<'a> {
    fn new(sides: MatchedDumps<'a>) -> NamedPairs<'a> {
        let dumps = [sides.target, sides.golden];
        let mut partners = [HashMap::new(), HashMap::new()];
        for pair in &sides.matching.pairs {
            // What several make together is what the last of them makes.
            if let ([.., t], [g]) | ([t], [.., g]) = (&pair.target[..], &pair.golden[..]) {
                partners[0].insert(*t, *g);
                partners[1].insert(*g, *t);
            }
        }
        let mut next_to_alone = [HashSet::new(), HashSet::new()];
        let mut alone = [HashSet::new(), HashSet::new()];
        for one in &sides.matching.unmatched {
            alone[one.party.index()].insert(one.run);
        }
        // In both directions: an absorbed operator may have been before or after it.
        for (i, dump) in dumps.into_iter().enumerate() {
            for run in 0..dump.runs.len() {
                for made in makers(dump, run) {
                    if alone[i].contains(&run) {
                        next_to_alone[i].insert(made.run);
                    }
                    if alone[i].contains(&made.run) {
                        next_to_alone[i].insert(run);
                    }
                }
            }
            // Without a graph, only the execution order is known.
            for &run in alone[i]
                .iter()
                .filter(|&&run| makers(dump, run).next().is_none())
            {
                next_to_alone[i].extend([run.wrapping_sub(1), run + 1]);
            }
        }
        let mut families: HashMap<&str, [HashSet<&str>; 2]> = HashMap::new();
        for (i, dump) in dumps.into_iter().enumerate() {
            for run in &dump.runs {
                let family = families.entry(without_counter(&run.op_name)).or_default();
                family[i].insert(&run.op_name);
            }
        }
        let families = families.into_iter().map(|(base, [own, others])| {
            let family = NameFamily {
                is_several: own.len() > 1 || others.len() > 1,
                is_same: own == others,
                is_part: own.is_subset(&others) || others.is_subset(&own),
            };
            (base, family)
        });
        let families = families.collect();
        NamedPairs {
            dumps,
            partners,
            next_to_alone,
            is_one_listing: is_one_listing(dumps),
            of_several_graphs: of_several_graphs(dumps),
            families,
        }
    }

    /// Whether two have one name and one type, in the very same words.
    fn is_one_operator(&self, t: usize, g: usize) -> bool {
        let [a, b] = [(0, t), (1, g)].map(|(i, run)| &self.dumps[i].runs[run]);
        let is_told = !a.op_type.is_empty() && !a.is_value();
        // What an engine quantises keeps its name, and makes codes in place of numbers.
        let is_code = [a, b].map(|run| {
            let mut slots = run.slots.iter();
            let output = slots.find(|slot| slot.side == SlotSide::Output);
            let dtype = output.and_then(|output| output.dtype);
            dtype.is_some_and(|dtype| !dtype.is_float() && dtype.bits() <= Some(8))
        });
        is_told
            && is_code[0] == is_code[1]
            && a.op_type.eq_ignore_ascii_case(&b.op_type)
            && a.other_originals().eq(b.other_originals())
            && !self.dumps[0].uncertain_names.contains(&t)
            && !self.dumps[1].uncertain_names.contains(&g)
            && !self.of_several_graphs.contains(a.op_name.as_str())
    }

    /// Whether one of a pair may have taken an operator next to it in, and kept its name.
    fn may_stand_for_several(&self, pair: &RunPair, operator: &OperatorResult) -> bool {
        let is_executed = [(0, &pair.target), (1, &pair.golden)]
            .map(|(i, runs)| runs.iter().any(|&run| self.dumps[i].is_executed(run)));
        // Engines keep tensors in blocks of channels, and names as they were.
        let mut slots = operator.slots.iter();
        let has_other_form = slots.any(|slot| slot.evidence == Evidence::Shape);
        if is_executed[0] != is_executed[1] && has_other_form {
            return true;
        }
        // A normalisation that was multiplied into a weight is gone, and the weight is another.
        let is_changed = !pair.missing.is_empty()
            || has_other_form
            || self.weights(pair, operator).any(SlotResult::is_apart);
        let runs = [&pair.target, &pair.golden];
        let mut sides = runs.into_iter().zip(&self.next_to_alone);
        is_changed && sides.any(|(runs, next)| runs.iter().any(|run| next.contains(run)))
    }

    /// Inputs that no operator makes, on either side.
    fn weights<'p>(
        &self,
        pair: &'p RunPair,
        operator: &'p OperatorResult,
    ) -> impl Iterator<Item = &'p SlotResult> {
        let dumps = self.dumps;
        let slots = pair.slots.iter().zip(&operator.slots);
        let weights = slots.filter(move |(slot, result)| {
            let is_made = [(0, slot.target), (1, slot.golden)]
                .map(|(i, at)| dumps[i].producer_of(at).is_some() || dumps[i].is_unseen(at));
            !result.is_output() && is_made == [false, false]
        });
        weights.map(|(_, result)| result)
    }

    /// Whether nothing speaks against names that are numbers.
    fn is_confirmed(&self, pair: &RunPair, operator: &OperatorResult) -> bool {
        if self.is_one_listing {
            return true;
        }
        let of_target = pair.target.iter().map(|&run| &self.dumps[0].runs[run]);
        let mut numbered = of_target.filter(|run| self.is_numbered(run));
        let Some(run) = numbered.next() else {
            return true;
        };
        // Numbers that moved bring operators of other shapes together.
        let mut evidence = operator.slots.iter().map(|slot| &slot.evidence);
        let has_other_form = evidence.any(|evidence| *evidence == Evidence::Shape);
        if has_other_form && !self.reads_one_parameter(pair) {
            return false;
        }
        let (mut n_alike, mut n_made) = (0, 0);
        for (slot, result) in pair.slots.iter().zip(&operator.slots) {
            if result.is_output() {
                continue;
            }
            let makers = [
                self.dumps[0].producer_of(slot.target),
                self.dumps[1].producer_of(slot.golden),
            ];
            n_made += usize::from(makers != [None, None]);
            match makers {
                [Some(a), Some(b)] if self.partners[0].get(&a.run) == Some(&b.run) => n_alike += 1,
                [Some(a), Some(b)] if self.is_one_more(a.run, b.run) => n_alike += 1,
                [Some(a), Some(b)] => {
                    let is_paired = self.partners[0].contains_key(&a.run)
                        || self.partners[1].contains_key(&b.run);
                    if is_paired {
                        return false;
                    }
                }
                // An agreeing weight only shows that the pair may be right.
                [None, None] if result.is_apart() => return false,
                _ => {}
            }
        }
        // With the same numbers on both sides, none was counted in between.
        let family = self.families.get(without_counter(&run.op_name));
        // Engines remove operators, and renumber none.
        let is_executed = [(0, &pair.target), (1, &pair.golden)]
            .map(|(i, runs)| runs.iter().any(|&run| self.dumps[i].is_executed(run)));
        let is_left = is_executed[0] != is_executed[1] && n_alike == n_made;
        let is_same = family.is_some_and(|family| family.is_same || is_left && family.is_part);
        // Of another operator with this number, both inputs would come from elsewhere.
        let is_between = n_alike > 1 && n_alike == n_made;
        n_alike > 0 && is_same || is_between || self.reads_one_parameter(pair)
    }

    /// Whether one of two makers has no partner, and reads what the other one's partner makes: an
    /// operator that one side lacks.
    fn is_one_more(&self, t: usize, g: usize) -> bool {
        [(1, g, t), (0, t, g)].into_iter().any(|(i, run, partner)| {
            let is_alone = !self.partners[i].contains_key(&run);
            let partner = self.partners[1 - i].get(&partner);
            is_alone && makers(self.dumps[i], run).any(|made| partner == Some(&made.run))
        })
    }

    /// Whether both read a parameter of one name.
    fn reads_one_parameter(&self, pair: &RunPair) -> bool {
        let mut slots = pair.slots.iter();
        slots.any(|slot| {
            let name = self.dumps[0].parameter_of(slot.target);
            name.is_some() && name == self.dumps[1].parameter_of(slot.golden)
        })
    }

    /// Whether a name ends in a counter, is what others count on from, or is the type alone.
    fn is_numbered(&self, run: &OperatorExecution) -> bool {
        let base = without_counter(&run.op_name);
        let family = self.families.get(base);
        base.len() < run.op_name.len()
            || family.is_some_and(|family| family.is_several)
            || plain_type(&run.op_type) == run.op_name.to_lowercase()
    }
}

fn is_one_listing([target, golden]: [&ComparedDump; 2]) -> bool {
    // Engines may run branches in another order; then the neighbours of each name are checked.
    let [own, others] = [target, golden].map(|dump| dump.runs.iter().map(|run| &run.op_name));
    own.eq(others) || is_part_of(target, golden) || is_part_of(golden, target)
}

/// Whether a dump without a graph lists operators of the other one, in its order, and leaves out
/// numbers that these have: it shows some of them, under their old numbers.
fn is_part_of(part: &ComparedDump, whole: &ComparedDump) -> bool {
    if !part.is_without_wires() || part.runs.len() >= whole.runs.len() {
        return false;
    }
    let mut left_out: HashSet<&str> = HashSet::new();
    let mut has_gaps = false;
    let mut all = whole.runs.iter();
    for run in &part.runs {
        let is_listed = all.by_ref().any(|other| {
            let is_here =
                other.op_name == run.op_name && other.op_type.eq_ignore_ascii_case(&run.op_type);
            if !is_here {
                left_out.insert(without_counter(&other.op_name));
            }
            is_here
        });
        if !is_listed {
            return false;
        }
        let family = without_counter(&run.op_name);
        has_gaps |= family.len() < run.op_name.len() && left_out.contains(family);
    }
    has_gaps
}

/// The outputs that an execution reads.
fn makers(dump: &ComparedDump, run: usize) -> impl Iterator<Item = SlotRef> {
    let slots = dump.runs[run].slots.iter().enumerate();
    let inputs = slots.filter(|(_, slot)| slot.side == SlotSide::Input);
    inputs.filter_map(move |(slot, _)| dump.producer_of(SlotRef { run, slot }))
}

/// A name without the number at its end, as in `Conv_12`, `MatMul-op3` and `node_add_7`.
pub(crate) fn without_counter(op_name: &str) -> &str {
    let bare = op_name.trim_end_matches(|c: char| c.is_ascii_digit());
    if bare.len() == op_name.len() {
        return op_name;
    }
    // MindSpore counts in `-op3`.
    let bare = bare
        .strip_suffix("op")
        .filter(|rest| rest.ends_with('-'))
        .unwrap_or(bare);
    bare.strip_suffix(['_', '-']).unwrap_or(op_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_told_from_names() {
        for (name, bare) in [
            ("Conv_12", "Conv"),
            ("/layers.0/Add_1", "/layers.0/Add"),
            ("Default/MatMul-op3", "Default/MatMul"),
            ("conv1", "conv1"),
            ("layers.0", "layers.0"),
            ("add", "add"),
            ("7", "7"),
            ("", ""),
        ] {
            assert_eq!(without_counter(name), bare, "{name}");
        }
    }
}
