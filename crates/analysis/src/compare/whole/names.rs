//! Names that are numbers: of operators of PyTorch's eager mode, which are called by their type and
//! how many there were before.
//!
//! A run of several ranks has operators beside those of one process, so that the numbers of all
//! others are different. The module and the line that call an operator stay.

use std::collections::{BTreeMap, HashMap, HashSet};

use opscope_store::record::SlotSide;

use crate::compare::side::{ComparedDump, OperatorExecution};

/// Step, module, line of the program and type of operators.
type CallKey = (Option<u64>, String, String, String);

/// Calls operators of both sides by their modules, if both have as many at each line, which give as
/// many elements. The others keep their names, which are no evidence then.
pub(in crate::compare) fn name_by_call(sides: [&mut ComparedDump; 2]) {
    let calls = [0, 1].map(|i| calls_of(sides[i]));
    // In the order of execution, so that numbers behind names rise with it.
    let mut order: Vec<(usize, &CallKey)> = calls[0]
        .iter()
        .map(|(key, runs)| (runs.first().copied().unwrap_or(0), key))
        .collect();
    order.sort_unstable();
    let mut names: [HashMap<usize, String>; 2] = Default::default();
    let mut n_named: HashMap<(Option<u64>, String), usize> = HashMap::new();
    for (_, key) in order {
        let runs = [0, 1].map(|i| calls[i].get(key).map(Vec::as_slice).unwrap_or_default());
        let pairs = runs[0].iter().zip(runs[1]);
        let is_alike = runs[0].len() == runs[1].len()
            && pairs.clone().all(|(&t, &g)| {
                let n = [n_elements(&sides[0].runs[t]), n_elements(&sides[1].runs[g])];
                // Of parts that cannot be put together nothing is known.
                n[0].is_none() || n[1].is_none() || n[0] == n[1]
            });
        let (step, module, line, op_type) = key;
        // Without a place anything of the type may be meant.
        if !is_alike || (module.is_empty() && line.is_empty()) {
            continue;
        }
        let place = if module.is_empty() { line } else { module };
        for (&t, &g) in pairs {
            let word = counted_word(&sides[0].runs[t])
                .unwrap_or(op_type)
                .to_owned();
            let name = format!("{place}/{word}");
            let n = n_named.entry((*step, name.clone())).or_insert(0);
            let name = if *n == 0 { name } else { format!("{name}_{n}") };
            *n += 1;
            names[0].insert(t, name.clone());
            names[1].insert(g, name);
        }
    }
    for (i, side) in sides.into_iter().enumerate() {
        let counted = calls[i].values().flatten().copied();
        let uncertain = counted.filter(|run| !names[i].contains_key(run));
        side.uncertain_names = uncertain.collect::<HashSet<usize>>();
        for (&run, name) in &names[i] {
            side.runs[run].op_name = name.as_str().into();
        }
    }
}

/// Operators whose names are numbers, by where they are called.
fn calls_of(side: &ComparedDump) -> BTreeMap<CallKey, Vec<usize>> {
    let mut calls: BTreeMap<CallKey, Vec<usize>> = BTreeMap::new();
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

/// The word of a name that is a word of the operator's type, with or without a number behind it:
/// `addmm` of `addmm_3` and `aten_addmm_default`.
fn counted_word(run: &OperatorExecution) -> Option<&str> {
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

/// Elements of the first output, if they are known.
fn n_elements(run: &OperatorExecution) -> Option<u64> {
    let mut slots = run.slots.iter();
    slots
        .find(|slot| slot.side == SlotSide::Output)?
        .n_elements()
}
