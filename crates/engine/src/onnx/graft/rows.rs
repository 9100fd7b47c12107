//! Two operators of one type in a row on one side, and one on the other.
//!
//! Values lead to the first of the row, whose input they share. The one that reads all else as the
//! other side does may be the second, and the first the one too many.

use std::collections::HashMap;

use super::behind::readers;
use super::definition::has_same_kind;
use super::side::GraphSide;
use crate::onnx::schema::NodeProto;

/// Moves matches to the second operator of a row where all that it reads besides the first is the
/// same.
pub(super) fn shift(
    partners: &mut HashMap<String, String>,
    target: &GraphSide,
    golden: &GraphSide,
) {
    let reading = [readers(target), readers(golden)];
    let backwards: HashMap<String, String> = (partners.iter())
        .map(|(golden, target)| (target.clone(), golden.clone()))
        .collect();
    for other in golden.nodes() {
        let [name] = &other.output[..] else { continue };
        let own = partners.get(name).and_then(|own| target.maker(own));
        let Some(own) = own.map(|(own, _)| &target.nodes()[own]) else {
            continue;
        };
        let same = |own: &str, other: &str| is_same(partners, [target, golden], own, other);
        // Without a value before both, they are in no row.
        let before = (own.input.iter()).find_map(|own| {
            let other = other
                .input
                .iter()
                .find(|other| partners.get(*other) == Some(own))?;
            Some([own.as_str(), other.as_str()])
        });
        let Some([before, golden_before]) = before.filter(|_| has_same_kind(own, other)) else {
            continue;
        };
        let [rest, golden_rest] = [rest(own, before), rest(other, golden_before)];
        if is_alike(&rest, &golden_rest, same) {
            continue;
        }
        let next = second(own, target, &reading[0]);
        let next = next.filter(|next| !backwards.contains_key(&next.output[0]));
        if let Some(next) = next
            && is_alike(&self::rest(next, &own.output[0]), &golden_rest, same)
        {
            partners.insert(name.clone(), next.output[0].clone());
            continue;
        }
        let next = second(other, golden, &reading[1]);
        let next = next.filter(|next| !partners.contains_key(&next.output[0]));
        if let Some(next) = next
            && is_alike(&rest, &self::rest(next, name), same)
        {
            let own = own.output[0].clone();
            partners.remove(name);
            partners.insert(next.output[0].clone(), own);
        }
    }
}

/// The operator of the same type that alone reads what an operator makes.
fn second<'a>(
    first: &NodeProto,
    side: &'a GraphSide,
    readers: &HashMap<&str, Vec<(usize, usize)>>,
) -> Option<&'a NodeProto> {
    let [made] = &first.output[..] else {
        return None;
    };
    let [(reader, _)] = readers.get(made.as_str())?[..] else {
        return None;
    };
    let next = &side.nodes()[reader];
    (has_same_kind(next, first) && next.output.len() == 1 && !side.returns(made)).then_some(next)
}

/// The inputs of an operator besides a value.
fn rest<'a>(node: &'a NodeProto, besides: &str) -> Vec<&'a str> {
    let all = node.input.iter().map(String::as_str);
    all.filter(|name| *name != besides).collect()
}

/// Whether both read the same, in either order.
fn is_alike(target: &[&str], golden: &[&str], same: impl Fn(&str, &str) -> bool) -> bool {
    target.len() == golden.len()
        && !target.is_empty()
        && (target.iter()).all(|own| golden.iter().any(|other| same(own, other)))
}

fn is_same(
    partners: &HashMap<String, String>,
    [target, golden]: [&GraphSide; 2],
    own: &str,
    other: &str,
) -> bool {
    if let Some(partner) = partners.get(other) {
        return partner == own;
    }
    let constants = target.constant(own).zip(golden.constant(other));
    constants.is_some_and(|(own, other)| {
        let elements = target.elements(own);
        elements.is_some() && elements == golden.elements(other)
    })
}
