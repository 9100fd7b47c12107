//! Whether two values are defined alike.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use super::{ModelPair, captured};
use crate::onnx::attribute;
use crate::onnx::proto::is_same_domain;
use crate::onnx::schema::{AttributeProto, NodeProto};

/// Most operators on a way that is followed back where nothing says what is the same.
pub(super) const DEPTH_MAX: usize = 64;

/// Answers that were given already, by both values.
pub(super) type KnownAnswers = RefCell<HashMap<(String, String), bool>>;

impl ModelPair {
    /// Whether a value of the target equals one of the golden model, as far as their definitions
    /// show.
    pub(super) fn is_same(&self, known: &KnownAnswers, target: &str, golden: &str) -> bool {
        self.is_same_within(known, target, golden, DEPTH_MAX)
    }

    fn is_same_within(
        &self,
        known: &KnownAnswers,
        target: &str,
        golden: &str,
        depth: usize,
    ) -> bool {
        if target.is_empty() || golden.is_empty() {
            return target.is_empty() && golden.is_empty();
        }
        if let Some(partner) = self.partners.get(golden) {
            return partner == target;
        }
        let key = (target.to_owned(), golden.to_owned());
        if let Some(&answer) = known.borrow().get(&key) {
            return answer;
        }
        let answer = self.is_made_alike(known, target, golden, depth);
        known.borrow_mut().insert(key, answer);
        answer
    }

    fn is_made_alike(
        &self,
        known: &KnownAnswers,
        target: &str,
        golden: &str,
        depth: usize,
    ) -> bool {
        let constants = (self.target.constant(target), self.golden.constant(golden));
        match constants {
            (Some(target), Some(golden)) => {
                let elements = (self.target.elements(target), self.golden.elements(golden));
                return match elements {
                    (Some(target), Some(golden)) => target == golden,
                    // Nothing is known of weights that are not where the model says.
                    _ => {
                        !target.string_data.is_empty()
                            && target.string_data == golden.string_data
                            && target.dims == golden.dims
                    }
                };
            }
            (None, None) => {}
            _ => return false,
        }
        let makers = (self.target.maker(target), self.golden.maker(golden));
        let (Some((target, nth)), Some((golden, golden_nth))) = makers else {
            return false;
        };
        // Far back where nothing is known to be the same, too much would be taken over anyway.
        if nth != golden_nth || depth == 0 {
            return false;
        }
        let (target, golden) = (&self.target.nodes()[target], &self.golden.nodes()[golden]);
        has_same_kind(target, golden)
            && self.attributes_apart(target, golden).is_empty()
            && self
                .captured_apart(known, [target, golden], depth - 1)
                .is_empty()
            && slots(target, golden)
                .all(|(_, target, golden)| self.is_same_within(known, target, golden, depth - 1))
    }

    /// Attributes that differ: the name and both values as text, none where a side does not have
    /// it. Giving the default is as good as leaving it out, and operator sets have other defaults.
    pub(super) fn attributes_apart(
        &self,
        target: &NodeProto,
        golden: &NodeProto,
    ) -> Vec<(String, [Option<String>; 2])> {
        let [own, others] = [target, golden].map(by_name);
        let defaults = [self.target.defaults(target), self.golden.defaults(golden)];
        let mut names: Vec<&str> = own.keys().chain(others.keys()).copied().collect();
        names.extend(
            defaults
                .iter()
                .flat_map(|all| all.keys().map(String::as_str)),
        );
        names.sort_unstable();
        names.dedup();
        let differing = names.into_iter().filter_map(|name| {
            let given = [own.get(name), others.get(name)];
            if let [Some(own), Some(other)] = given
                && is_same_value(own, other)
            {
                return None;
            }
            let texts = [0, 1].map(|side| {
                let given = given[side].map(|value| attribute::text(value));
                given.or_else(|| defaults[side].get(name).cloned())
            });
            // Long texts are cut off, so that two that are given may differ in what is not shown.
            let is_given = given.iter().all(Option::is_some);
            if texts[0] == texts[1] && !is_given {
                return None;
            }
            let sides = [&self.target, &self.golden];
            let described = [0, 1].map(|side| {
                let text = texts[side].clone()?;
                let is_own = given[side].is_some();
                Some(if is_own {
                    text
                } else {
                    text + &sides[side].by_default(target)
                })
            });
            Some((name.to_owned(), described))
        });
        differing.collect()
    }

    /// Values that bodies read from around them by one name, and that are others. Bodies that
    /// differ themselves are another attribute.
    pub(super) fn captured_apart(
        &self,
        known: &KnownAnswers,
        [target, golden]: [&NodeProto; 2],
        depth: usize,
    ) -> Vec<String> {
        // Bodies that are the same read by the same names.
        let own = captured::read_by_bodies(target);
        let mut names = captured::read_by_bodies(golden);
        names.sort_unstable();
        names.dedup();
        names.retain(|name| own.contains(name) && !self.is_same_within(known, name, name, depth));
        names
    }

    /// Attributes that operators of both sides have, whatever their types, and that differ.
    pub fn shared_attributes_apart(
        &self,
        target: &str,
        golden: &str,
    ) -> Vec<(String, [Option<String>; 2])> {
        let nodes = [self.target.node(target), self.golden.node(golden)];
        let [Some(target), Some(golden)] = nodes else {
            return Vec::new();
        };
        let mut found = self.attributes_apart(target, golden);
        found.retain(|(_, texts)| texts.iter().all(Option::is_some));
        found
    }
}

/// Whether two operators have the same type.
pub(super) fn has_same_kind(target: &NodeProto, golden: &NodeProto) -> bool {
    target.op_type == golden.op_type
        && is_same_domain(&target.domain, &golden.domain)
        && target.overload == golden.overload
}

/// The inputs of two operators by number; those that one of them leaves out are empty.
pub(super) fn slots<'a>(
    target: &'a NodeProto,
    golden: &'a NodeProto,
) -> impl Iterator<Item = (usize, &'a str, &'a str)> {
    let n = target.input.len().max(golden.input.len());
    let input =
        |node: &'a NodeProto, number: usize| node.input.get(number).map_or("", String::as_str);
    (0..n).map(move |number| (number, input(target, number), input(golden, number)))
}

fn by_name(node: &NodeProto) -> BTreeMap<&str, &AttributeProto> {
    let all = node.attribute.iter();
    all.map(|attribute| (attribute.name.as_str(), attribute))
        .collect()
}

/// Whether two attributes have one value. What describes them alone does not count.
fn is_same_value(target: &AttributeProto, golden: &AttributeProto) -> bool {
    let [plain_target, plain_golden] = [target, golden].map(|attribute| AttributeProto {
        doc_string: None,
        r#type: None,
        ..attribute.clone()
    });
    plain_target == plain_golden || target.f().is_nan() && golden.f().is_nan()
}
