//! Taking the executions of an operator on all ranks for one, whose tensors are whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use opscope_store::SharedText;
use opscope_store::record::SlotSide;
use opscope_store::record::parallel::Placement;
use opscope_tensor::convert::dtype::decode;

use super::grouping::{RankGroup, group_ranks};
use super::note::{FoundPart, assemble};
use super::part_axes::TokenMap;
use super::pipeline::follow_messages;
use super::rules::{
    CheckedRule, CheckedRules, NamedOperator, PaddingSide, TokenNumbers, TokenRule,
};
use crate::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution, SlotRef};
use crate::compare::slot_key::SlotKey;
use crate::compare::slot_ranks::RankOperator;
use crate::element::ElementValue;

/// Maximum number of elements of a slot that describes tokens.
const N_TOKEN_NUMBERS_MAX: u64 = 1 << 24;

/// Combines the tensors of all ranks of a side. The result has no ranks; tensors that cannot be
/// combined have neither elements nor statistics, but a reason. Returns the positions of rules that
/// no tensor fits.
pub(crate) fn put_together(side: &mut ComparedDump, rules: &CheckedRules) -> Vec<usize> {
    for run in &mut side.runs {
        run.op_name = renumbered(run, rules);
    }
    follow_messages(side);
    let groups = group_ranks(side);
    let mut is_kept = vec![false; side.runs.len()];
    let mut tokens = KnownTokens::default();
    let mut is_fit = vec![false; rules.tensors.len()];
    let mut rank_operators = HashMap::new();
    for group in groups {
        let RankGroup {
            mut runs,
            problem,
            operators,
        } = group;
        // The dump lists the ranks in sequence, so the first gives the position.
        let first = runs[0];
        // Sums are taken in the order of the ranks, whatever the order of the dump.
        runs.sort_by_key(|&run| side.runs[run].place.rank);
        let mut slots = whole_slots(side, &runs, rules, (&mut tokens, &mut is_fit));
        if let Some(problem) = problem {
            let outputs = slots
                .iter_mut()
                .filter(|slot| slot.side == SlotSide::Output);
            outputs.for_each(|slot| *slot = ExecutionSlot::in_parts(slot, problem.clone()));
        }
        is_kept[first] = true;
        for (slot, of) in slots.iter().enumerate() {
            let of_slot = operators.iter().filter(|(key, _)| *key == of.key());
            let of_slot: Vec<RankOperator> = of_slot.map(|(_, one)| one.clone()).collect();
            if !of_slot.is_empty() {
                rank_operators.insert(SlotRef { run: first, slot }, of_slot);
            }
        }
        side.runs[first].slots = slots;
    }
    side.rank_operators = rank_operators;
    side.retain_runs(|index, _| is_kept[index]);
    for run in &mut side.runs {
        Arc::make_mut(&mut run.place).rank = None;
    }
    // Then collectives without a partner are not a finding.
    side.is_whole = true;
    (0..is_fit.len()).filter(|&rule| !is_fit[rule]).collect()
}

/// The name of an operator with numbers that count over all ranks.
fn renumbered(run: &OperatorExecution, rules: &CheckedRules) -> SharedText {
    let place = run.place.rank.and_then(|rank| rules.mesh.coordinates(rank));
    let Some(place) = place.filter(|_| !rules.renumber.is_empty()) else {
        return run.op_name.clone();
    };
    let mut name = run.op_name.to_string();
    for rule in &rules.renumber {
        let (Some(axis), Some(at)) = (rules.mesh.position(&rule.axis), name.find(&rule.before))
        else {
            continue;
        };
        let begin = at + rule.before.len();
        // A name without a number there stays what it is.
        let rest = &name[begin..];
        let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[..n_digits].parse().ok();
        let shift = place[axis].checked_mul(rule.by);
        let sum = number
            .zip(shift)
            .and_then(|(n, shift): (u64, u64)| n.checked_add(shift));
        if let Some(sum) = sum {
            name.replace_range(begin..begin + n_digits, &sum.to_string());
        }
    }
    name.into()
}

/// The slots of an operator, each assembled from those of all ranks.
fn whole_slots(
    side: &ComparedDump,
    runs: &[usize],
    rules: &CheckedRules,
    (tokens, is_fit): (&mut KnownTokens, &mut [bool]),
) -> Vec<ExecutionSlot> {
    // In the order of the first rank, which the facts about graphs follow.
    let keys = side.runs[runs.iter().copied().min().unwrap_or(0)]
        .slots
        .iter();
    let mut order: Vec<SlotKey> = keys.map(ExecutionSlot::key).collect();
    let mut of_key: BTreeMap<SlotKey, Vec<(usize, &ExecutionSlot)>> = BTreeMap::new();
    for &run in runs {
        for slot in &side.runs[run].slots {
            of_key.entry(slot.key()).or_default().push((run, slot));
        }
    }
    let others: BTreeSet<SlotKey> = of_key.keys().copied().collect();
    order.extend(
        others
            .into_iter()
            .filter(|key| !order.contains(key))
            .collect::<Vec<_>>(),
    );
    let mut is_told = BTreeSet::new();
    let mut all = Vec::with_capacity(order.len());
    for key in order {
        // A dump may have two slots with one position, which are indistinguishable on other ranks.
        if !is_told.insert(key) {
            continue;
        }
        let of_ranks = &of_key[&key];
        let operator = NamedOperator {
            op_name: &side.runs[runs[0]].op_name,
            phase: side.phase_of(runs[0]),
        };
        let (_, first) = of_ranks[0];
        let n_axes = first.shape.as_ref().map_or(0, Vec::len);
        for (is_fit, rule) in is_fit.iter_mut().zip(&rules.tensors) {
            *is_fit |= rule.fits(operator, key, n_axes);
        }
        let mut rules_in_order = rules.tensors.iter();
        let rule = rules_in_order.find(|rule| rule.fits(operator, key, n_axes));
        let mut slots = of_ranks.iter();
        let is_noted = slots.any(|(_, slot)| slot.record().placement.is_some());
        // A stage of a pipeline is the only one with its operators, so nothing has to be assembled.
        if of_ranks.len() == 1 && rule.is_none() && !is_noted {
            all.push(first.clone());
            continue;
        }
        let step = side.runs[runs[0]].place.step;
        let found = rule.and_then(|rule| Some((rule.tokens.as_ref()?, rule)));
        let map = found.map(|(given, rule)| tokens.map(side, step, given, rule, first));
        let parts: Vec<FoundPart<'_>> = of_ranks
            .iter()
            .map(|&(run, slot)| FoundPart {
                rank: side.runs[run].place.rank,
                slot,
            })
            .collect();
        let whole = map
            .transpose()
            .and_then(|map| assemble(&parts, rule, &rules.mesh, map.as_ref()));
        all.push(match whole {
            Ok(whole) => ExecutionSlot::of_whole(first, Arc::new(whole)),
            Err(reason) => ExecutionSlot::in_parts(first, reason),
        });
    }
    all
}

/// Tokens that were read from a dump, by step and slot.
#[derive(Default)]
struct KnownTokens {
    numbers: HashMap<(Option<u64>, String), Result<Vec<u64>, String>>,
}

impl KnownTokens {
    /// The tokens that a rule describes, for a slot of these axes.
    fn map(
        &mut self,
        side: &ComparedDump,
        step: Option<u64>,
        given: &TokenRule,
        rule: &CheckedRule,
        slot: &ExecutionSlot,
    ) -> Result<TokenMap, String> {
        let is_padded = rule.dims.position("b").is_some() && rule.dims.position("s").is_some();
        // A mask contains the positions of tokens; the others contain their number.
        if let Some(mask) = &given.mask {
            let (numbers, shape) = self.read(side, step, mask)?;
            let [b, s] = shape[..] else {
                return Err(format!("the mask `{mask}` has {} axes, not 2", shape.len()));
            };
            let rows = numbers.chunks(usize::try_from(s.max(1)).unwrap_or(usize::MAX));
            let kept: Vec<Vec<Range<u64>>> = rows.map(kept_ranges).collect();
            if kept.len() as u64 != b && s > 0 {
                return Err(format!("the mask `{mask}` is not of {b} sequences"));
            }
            return Ok(TokenMap::Padded(kept));
        }
        let lengths = match (&given.lengths, &given.cu_seqlens) {
            (Some(lengths), _) => self.numbers(side, step, lengths)?,
            (None, Some(bounds)) => {
                let bounds = self.numbers(side, step, bounds)?;
                let steps = bounds.windows(2).map(|pair| pair[1].checked_sub(pair[0]));
                // Bounds that fall would make lengths below zero.
                let steps: Option<Vec<u64>> = steps.collect();
                let steps = steps.filter(|_| bounds.first() == Some(&0));
                steps.ok_or("`cu_seqlens` does not begin with 0 and rise")?
            }
            (None, None) => return Err("no rule says which tokens there are".to_owned()),
        };
        if !is_padded {
            return Ok(TokenMap::Packed(lengths));
        }
        let s = rule
            .dims
            .position("s")
            .and_then(|s| slot.shape.as_ref()?.get(s).copied());
        // Where the tokens begin depends on the whole axis, which a part does not show.
        let is_cut = rule
            .dims
            .axes
            .iter()
            .any(|axis| axis.name == "s" && !axis.marks.is_empty());
        let kept = lengths.into_iter().map(|n| match given.padding {
            PaddingSide::Right => Ok(0..n),
            PaddingSide::Left if is_cut => {
                Err("padding before the tokens is not known of an axis that ranks share")
            }
            PaddingSide::Left => {
                let first = s.and_then(|s| s.checked_sub(n));
                let first = first.ok_or("a sequence is longer than its axis")?;
                Ok(first..first + n)
            }
        });
        let kept = kept.map(|range| range.map(|range| std::iter::once(range).collect()));
        Ok(TokenMap::Padded(kept.collect::<Result<_, &str>>()?))
    }

    fn numbers(
        &mut self,
        side: &ComparedDump,
        step: Option<u64>,
        given: &TokenNumbers,
    ) -> Result<Vec<u64>, String> {
        match given {
            TokenNumbers::Numbers(numbers) => Ok(numbers.clone()),
            TokenNumbers::Slot(text) => Ok(self.read(side, step, text)?.0),
        }
    }

    /// The numbers of a slot, and its shape.
    fn read(
        &mut self,
        side: &ComparedDump,
        step: Option<u64>,
        text: &str,
    ) -> Result<(Vec<u64>, Vec<u64>), String> {
        let (name, slot) = text
            .rsplit_once(':')
            .and_then(|(name, slot)| Some((name, SlotKey::parse(slot)?)))
            .ok_or_else(|| format!("`{text}` names no slot; `lengths:output.0` would"))?;
        let mut runs = side.runs.iter();
        let run = runs.find(|run| run.place.step == step && run.op_name.as_str() == name);
        let found = run.and_then(|run| run.slot(slot.side, slot.index));
        let found = found.ok_or_else(|| format!("the step has no slot `{text}`"))?;
        let shape = found.shape.clone().unwrap_or_default();
        let key = (step, text.to_owned());
        let known = self
            .numbers
            .entry(key)
            .or_insert_with(|| numbers_of(found, text));
        Ok((known.clone()?, shape))
    }
}

/// Positions other than zero, in ranges.
fn kept_ranges(row: &[u64]) -> Vec<Range<u64>> {
    let mut kept: Vec<Range<u64>> = Vec::new();
    for (at, _) in row.iter().enumerate().filter(|(_, value)| **value != 0) {
        let at = at as u64;
        match kept.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => kept.push(at..at + 1),
        }
    }
    kept
}

fn numbers_of(slot: &ExecutionSlot, text: &str) -> Result<Vec<u64>, String> {
    // Before the elements are read: a mapping may name any tensor.
    if slot.n_elements().is_none_or(|n| n > N_TOKEN_NUMBERS_MAX) {
        return Err(format!(
            "`{text}` has more than {N_TOKEN_NUMBERS_MAX} numbers"
        ));
    }
    let loaded = slot
        .load(None)
        .map_err(|error| format!("`{text}`: {error}"))?;
    let view = loaded.view();
    let decoded = decode(view.dtype, view.shape, view.bytes);
    let decoded = decoded.map_err(|error| format!("`{text}`: {error}"))?;
    let values = ElementValue::all(decoded.dtype, &decoded.bytes);
    let numbers: Option<Vec<u64>> = values
        .map(|value| match value {
            ElementValue::Signed(value) => u64::try_from(value).ok(),
            ElementValue::Unsigned(value) => Some(value),
            ElementValue::Bool(value) => Some(value.into()),
            // Masks are floats in some programs.
            ElementValue::Float(value) if value >= 0.0 && value.fract() == 0.0 => {
                Some(value as u64)
            }
            _ => None,
        })
        .collect();
    numbers.ok_or_else(|| format!("`{text}` holds other numbers than lengths or a mask"))
}

/// Whether the dump itself describes tensors in parts.
pub(crate) fn has_placements(side: &ComparedDump) -> bool {
    let mut slots = side.runs.iter().flat_map(|run| &run.slots);
    slots.any(|slot| slot.record().placement.is_some())
}

/// Whether two sides have other ranks, or their notes contradict each other. What only one side has,
/// such as an operator under another name, contradicts nothing.
pub(crate) fn share_otherwise([a, b]: [&ComparedDump; 2]) -> bool {
    let [ranks_a, ranks_b] = [a, b].map(|side| {
        let ranks = side.runs.iter().map(|run| run.place.rank);
        ranks.collect::<BTreeSet<_>>()
    });
    let known: HashMap<NotedSlot<'_>, &Placement> = notes(a).collect();
    let mut others = notes(b);
    ranks_a != ranks_b
        || others.any(|(slot, placement)| known.get(&slot).is_some_and(|known| *known != placement))
}

/// Rank, operator, side and position.
type NotedSlot<'a> = (Option<u32>, &'a str, SlotSide, u32);

fn notes(side: &ComparedDump) -> impl Iterator<Item = (NotedSlot<'_>, &Placement)> {
    side.runs.iter().flat_map(|run| {
        run.slots.iter().filter_map(|slot| {
            let placement = slot.record().placement.as_deref()?;
            let place = (run.place.rank, run.op_name.as_str(), slot.side, slot.index);
            Some((place, placement))
        })
    })
}
