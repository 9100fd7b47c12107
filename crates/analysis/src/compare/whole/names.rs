//! Numeric names: operators of PyTorch's eager mode are named by type and call count.
//!
//! A run of several ranks has more operators than a single process, so the numbers of all others
//! change. The module and the line that call an operator stay the same.

use std::collections::{BTreeMap, HashMap, HashSet};

use opscope_store::record::SlotSide;

use crate::compare::side::{ComparedDump, OperatorExecution};

/// Step, module, line of the program and type of operators.
type CallKey = (Option<u64>, String, String, String);

/// Operators by where they are called.
type Calls = BTreeMap<CallKey, Vec<usize>>;

/// Calls operators of both sides by their modules, if both have as many at each line, which give as
/// many elements, or else as many in the module. The others keep their names, which are no evidence
/// then.
pub(crate) fn name_by_call(sides: [&mut ComparedDump; 2]) {
    let calls = [0, 1].map(|i| calls_of(sides[i]));
    let mut names = CallNames::default();
    names.pair([&calls[0], &calls[1]], [sides[0], sides[1]]);
    // A rank may take another way through a module, and call the same operator at another line.
    let rest = [0, 1].map(|i| names.rest_by_module(i, &calls[i]));
    names.pair([&rest[0], &rest[1]], [sides[0], sides[1]]);
    for (i, side) in sides.into_iter().enumerate() {
        let counted = calls[i].values().flatten().copied();
        let uncertain = counted.filter(|run| !names.of_run[i].contains_key(run));
        side.uncertain_names = uncertain.collect::<HashSet<usize>>();
        for (&run, name) in &names.of_run[i] {
            side.runs[run].op_name = name.as_str().into();
        }
    }
}

/// Names that operators of both sides are given.
#[derive(Default)]
struct CallNames {
    of_run: [HashMap<usize, String>; 2],
    n_named: HashMap<(Option<u64>, String), usize>,
}

impl CallNames {
    /// Assigns common names to the operators of calls that both sides share.
    fn pair(&mut self, calls: [&Calls; 2], sides: [&ComparedDump; 2]) {
        // In execution order, so that numbers after names increase with it.
        let mut order: Vec<(usize, &CallKey)> = (calls[0].iter())
            .map(|(key, runs)| (runs.first().copied().unwrap_or(0), key))
            .collect();
        order.sort_unstable();
        for (_, key) in order {
            let runs = calls.map(|calls| calls.get(key).map(Vec::as_slice).unwrap_or_default());
            let pairs = runs[0].iter().zip(runs[1]);
            let is_alike = runs[0].len() == runs[1].len()
                && pairs.clone().all(|(&t, &g)| {
                    let runs = [&sides[0].runs[t], &sides[1].runs[g]];
                    let n = runs.map(n_elements);
                    let n_ranks = runs.map(n_parts).into_iter().max().unwrap_or(1);
                    // Nothing is known about parts that cannot be assembled.
                    n[0].is_none() || n[1].is_none() || n[0] == n[1] || is_part_of(n, n_ranks)
                });
            let (step, module, line, op_type) = key;
            // Without a place anything of the type may be meant.
            if !is_alike || (module.is_empty() && line.is_empty()) {
                continue;
            }
            let place = if module.is_empty() { line } else { module };
            for (&t, &g) in pairs {
                let word = counted_word(&sides[0].runs[t]).unwrap_or(op_type);
                let name = format!("{place}/{word}");
                let n = self.n_named.entry((*step, name.clone())).or_insert(0);
                let name = if *n == 0 { name } else { format!("{name}_{n}") };
                *n += 1;
                self.of_run[0].insert(t, name.clone());
                self.of_run[1].insert(g, name);
            }
        }
    }

    /// Calls of a side without a name, by their modules alone.
    fn rest_by_module(&self, side: usize, calls: &Calls) -> Calls {
        let mut rest = Calls::new();
        for ((step, module, _, op_type), runs) in calls {
            if module.is_empty() {
                continue;
            }
            let unnamed = runs
                .iter()
                .filter(|run| !self.of_run[side].contains_key(run));
            let key = (*step, module.clone(), String::new(), op_type.clone());
            let of_module = rest.entry(key).or_default();
            of_module.extend(unnamed);
            of_module.sort_unstable();
        }
        rest.retain(|_, runs| !runs.is_empty());
        rest
    }
}

/// Operators whose names are numbers, by where they are called.
fn calls_of(side: &ComparedDump) -> Calls {
    let mut calls = Calls::new();
    for (index, run) in side.runs.iter().enumerate() {
        // Other sides have other collectives, so that equal names of them mean nothing.
        if counted_word(run).is_none() || run.collective.is_some() {
            continue;
        }
        let [module, source] = side.module_and_source(index);
        // Folders differ between machines.
        let line = source
            .as_deref()
            .and_then(|source| source.rsplit(['/', '\\']).next());
        let line = line.unwrap_or_default().to_owned();
        let key = (
            run.place.step,
            module.unwrap_or_default(),
            line,
            run.op_type.to_string(),
        );
        calls.entry(key).or_default().push(index);
    }
    calls
}

/// The word of a name that is a word of the operator's type, with or without a number after it:
/// `addmm` of `addmm_3` and `aten_addmm_default`.
pub(super) fn counted_word(run: &OperatorExecution) -> Option<&str> {
    let name = run.op_name.as_str();
    let word = match name.rsplit_once('_') {
        Some((word, number)) if number.bytes().all(|b| b.is_ascii_digit()) => {
            // `relu_` is relu in place, whose name ends with the underscore.
            if number.is_empty() { name } else { word }
        }
        _ => name,
    };
    let rest = run.op_type.as_str().split_once('_')?.1;
    let is_word = !word.is_empty()
        && rest.starts_with(word)
        && matches!(rest.as_bytes().get(word.len()), None | Some(b'_'));
    is_word.then_some(word)
}

/// Number of ranks that hold the first output.
fn n_parts(run: &OperatorExecution) -> u64 {
    let mut slots = run.slots.iter();
    let output = slots.find(|slot| slot.side == SlotSide::Output);
    let whole = output.and_then(|output| output.whole());
    whole.map_or(1, |whole| whole.parts.len() as u64)
}

/// Whether one number of elements is that of a part of the other, which `n_ranks` share.
fn is_part_of(n: [Option<u64>; 2], n_ranks: u64) -> bool {
    let [Some(a), Some(b)] = n else {
        return false;
    };
    let (small, large) = (a.min(b), a.max(b));
    let times = large.checked_div(small).unwrap_or(0);
    times > 1 && times * small == large && n_ranks.is_multiple_of(times)
}

/// Elements of the first output, if they are known.
fn n_elements(run: &OperatorExecution) -> Option<u64> {
    let mut slots = run.slots.iter();
    slots
        .find(|slot| slot.side == SlotSide::Output)?
        .n_elements()
}
