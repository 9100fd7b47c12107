//! Operators that match by what reads their outputs.
//!
//! A comparison goes from equal values to what is made of them. Behind a fault nothing is equal, and
//! an operator may have no match although all that reads it has one.

use std::collections::{HashMap, HashSet};

use super::definition::has_same_kind;
use super::side::GraphSide;

/// An output: the number of its operator, and its own.
type Output = (usize, usize);

/// Adds the outputs of operators without a match of one type, where the matches of all operators that
/// read golden's read those of one operator of the target at the same places.
pub(super) fn extend(
    partners: &mut HashMap<String, String>,
    target: &GraphSide,
    golden: &GraphSide,
) {
    let mut taken: HashSet<String> = partners.values().cloned().collect();
    let mut nodes: HashMap<usize, usize> = (partners.iter())
        .filter_map(|(golden_name, name)| {
            Some((golden.maker(golden_name)?.0, target.maker(name)?.0))
        })
        .collect();
    let readers = readers(golden);
    // Readers come before what they read.
    for index in (0..golden.nodes().len()).rev() {
        let node = &golden.nodes()[index];
        if node.output.iter().any(|name| partners.contains_key(name)) {
            continue;
        }
        let found = (node.output.iter().enumerate()).flat_map(|(number, name)| {
            let at = readers.get(name.as_str()).into_iter().flatten();
            let read = at.filter_map(|(reader, input)| {
                let partner = &target.nodes()[*nodes.get(reader)?];
                partner.input.get(*input)
            });
            let returned = golden.returns(name) && target.returns(name);
            let read = read.chain(returned.then_some(name));
            read.filter_map(move |own| Some((number, target.maker(own)?)))
        });
        // One between them, or a reader that reads something else, says nothing.
        let found: HashSet<(usize, Output)> = found
            .filter(|(_, (own, _))| has_same_kind(&target.nodes()[*own], node))
            .collect();
        let mut operators = found.iter().map(|(_, (own, _))| *own);
        let Some(own) = operators
            .next()
            .filter(|own| operators.all(|other| other == *own))
        else {
            continue;
        };
        let outputs = &target.nodes()[own].output;
        if outputs.len() != node.output.len()
            || found.iter().any(|(number, (_, nth))| number != nth)
            || outputs.iter().any(|name| taken.contains(name))
        {
            continue;
        }
        for (own, other) in outputs.iter().zip(&node.output) {
            if !own.is_empty() && !other.is_empty() {
                partners.insert(other.clone(), own.clone());
                taken.insert(own.clone());
            }
        }
        nodes.insert(index, own);
    }
}

/// Who reads each value, and as which input.
pub(super) fn readers(side: &GraphSide) -> HashMap<&str, Vec<(usize, usize)>> {
    let mut readers: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    for (index, node) in side.nodes().iter().enumerate() {
        for (input, name) in node.input.iter().enumerate() {
            readers.entry(name).or_default().push((index, input));
        }
    }
    readers
}
