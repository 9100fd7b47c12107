//! The groups around nodes, shared by both sides.

use std::collections::{HashMap, HashSet};

use super::members::{SIDES, ShownMember, ShownNode};
use crate::graph::groups;
use crate::viewed::ViewedRuns;

/// Sets each node's groups from the target's names, or else from the golden side's.
///
/// Two tools may name a module differently. Nodes that only golden has then join the group of their
/// neighbours' matches.
pub(super) fn set(runs: &ViewedRuns, nodes: &mut [ShownNode<'_>]) {
    let of_sides: Vec<[Vec<String>; 2]> = nodes
        .iter()
        .map(|node| [0, 1].map(|side| of_side(runs, &node.members[side], side)))
        .collect();
    let mut known: HashSet<Vec<String>> = HashSet::new();
    let mut translated: HashMap<Vec<String>, Vec<String>> = HashMap::new();
    for (node, [target, golden]) in nodes.iter_mut().zip(&of_sides) {
        if node.members[0].is_empty() {
            continue;
        }
        let n_common = target
            .iter()
            .zip(golden)
            .take_while(|(a, b)| a == b)
            .count();
        let own = match n_common {
            0 if target.is_empty() => golden,
            0 => target,
            // An optimiser appends its own name to the operator's, which then is not a group.
            n => &target[..n].to_vec(),
        };
        node.scopes.clone_from(own);
        known.extend((1..=own.len()).map(|n| own[..n].to_vec()));
        // The common part if several differ.
        for n in (1..=golden.len()).filter(|_| !target.is_empty()) {
            let common = translated.entry(golden[..n].to_vec());
            let common = common.or_insert_with(|| own.clone());
            let n = common.iter().zip(own).take_while(|(a, b)| a == b).count();
            common.truncate(n);
        }
    }
    for (node, [_, golden]) in nodes.iter_mut().zip(of_sides) {
        if !node.members[0].is_empty() {
            continue;
        }
        // A name shared by both sides needs no translation.
        if golden.is_empty() || known.contains(&golden[..1]) {
            node.scopes = golden;
            continue;
        }
        let mut inner = (1..=golden.len()).rev();
        let found = inner.find_map(|n| translated.get(&golden[..n]));
        node.scopes = found
            .filter(|found| !found.is_empty())
            .cloned()
            .unwrap_or(golden);
    }
}

/// The groups that enclose all operators of a side; operators without a name are ignored.
fn of_side(runs: &ViewedRuns, members: &[ShownMember<'_>], side: usize) -> Vec<String> {
    let mut common: Option<Vec<String>> = None;
    for member in members {
        let dump = runs.side(SIDES[side]);
        let origin = member
            .run
            .and_then(|run| Some(dump?.dump.module_and_source(run)));
        let [module, _] = origin.unwrap_or_default();
        let scopes = groups::scopes(member.op_name, module.as_deref());
        if scopes.is_empty() {
            continue;
        }
        common = Some(match common {
            Some(common) => {
                let both = common.into_iter().zip(scopes);
                let both = both.take_while(|(a, b)| a == b);
                both.map(|(scope, _)| scope).collect()
            }
            None => scopes,
        });
    }
    common.unwrap_or_default()
}
