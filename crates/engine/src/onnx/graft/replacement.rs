//! Golden's operator in the place of one of the target.

use std::collections::HashSet;

use super::ModelPair;
use super::assembly::{Assembly, SUFFIX};
use super::definition::has_same_kind;
use super::forms::cast_to;
use super::places::{DifferentPart, Place};
use crate::onnx::attribute;
use crate::onnx::schema::NodeProto;

impl ModelPair {
    /// An operator of the golden model with the attributes that it has there by default, as the
    /// target's operator sets may have other ones.
    pub(super) fn golden_node(&self, index: usize) -> NodeProto {
        let mut node = self.golden.nodes()[index].clone();
        let own = self.target.defaults(&node);
        for default in self.golden.default_attributes(&node) {
            let mut given = node.attribute.iter();
            let is_given = given.any(|attribute| attribute.name == default.name);
            let is_same = own.get(&default.name) == Some(&attribute::text(&default));
            if !is_given && !is_same {
                node.attribute.push(default);
            }
        }
        node
    }

    /// Whether a weight goes with its operator, as it has another shape or is on one side alone.
    fn is_part_of(&self, target: usize, input: usize) -> bool {
        let mut parts = (self.differences.iter())
            .filter(|difference| matches!(difference.place, Place::Node { target: node, .. } if node == target))
            .flat_map(|difference| &difference.parts);
        parts.any(
            |part| matches!(part, DifferentPart::Weight { input: other, .. } if *other == input),
        )
    }
}

impl Assembly<'_> {
    /// Puts golden's definition in the place of an operator of the target.
    pub(super) fn replace(&mut self, target: usize, golden: usize) -> Result<(), String> {
        let pair = self.pair;
        let (own, other) = (&pair.target.nodes()[target], &pair.golden.nodes()[golden]);
        let mut node = NodeProto {
            name: own.name.clone(),
            ..pair.golden_node(golden)
        };
        for (input, name) in node.input.iter_mut().enumerate() {
            *name = if self.keeps([target, golden], input) {
                // As it may have been replaced already.
                self.nodes[target].input[input].clone()
            } else {
                self.input([own, other], input)?
            };
        }
        self.take_captured(&mut node)?;
        let given = self.give_outputs(&mut node, [own, other]);
        // Outputs that golden's operator lacks have to come from somewhere.
        let mut outputs = own.output.iter().filter(|name| !name.is_empty());
        if outputs.any(|name| !given.contains(name)) {
            let mut rest = self.nodes[target].clone();
            // Not left out: a loop has to give each value that it carries.
            for name in rest.output.iter_mut().filter(|name| given.contains(name)) {
                *name = self.fresh(name);
            }
            rest.name = format!("{}{SUFFIX}/rest", rest.name);
            self.nodes.push(rest);
        }
        self.nodes[target] = node;
        Ok(())
    }

    /// Whether an input stays as it is: reading another value or weight is a separate difference.
    fn keeps(&self, [target, golden]: [usize; 2], input: usize) -> bool {
        let pair = self.pair;
        let (own, other) = (&pair.target.nodes()[target], &pair.golden.nodes()[golden]);
        let names = [own, other].map(|node| node.input.get(input).filter(|name| !name.is_empty()));
        let [Some(present), Some(name)] = names else {
            return false;
        };
        let is_weight = [
            pair.target.constant(present).is_some(),
            pair.golden.constant(name).is_some(),
        ];
        has_same_kind(own, other)
            && is_weight[0] == is_weight[1]
            && !(is_weight[0] && pair.is_part_of(target, input))
    }

    /// Golden's value for an input. A weight of another dtype is read in the target's, as the
    /// neighbours stay.
    fn input(&mut self, [own, other]: [&NodeProto; 2], input: usize) -> Result<String, String> {
        let pair = self.pair;
        let weights = [
            own.input
                .get(input)
                .and_then(|name| pair.target.constant(name)),
            pair.golden.constant(&other.input[input]),
        ];
        let name = self.value(&other.input[input])?;
        match weights {
            [Some(weight), Some(golden)]
                if has_same_kind(own, other) && weight.data_type != golden.data_type =>
            {
                let cast = self.fresh(&name);
                let dtype = weight.data_type().max(0).unsigned_abs().into();
                self.nodes.push(cast_to(dtype, &name, &cast));
                Ok(cast)
            }
            _ => Ok(name),
        }
    }

    /// Renames the outputs of a node of golden to the target's names, and returns the names of all
    /// values that depend on it.
    fn give_outputs(&mut self, node: &mut NodeProto, [own, other]: [&NodeProto; 2]) -> Vec<String> {
        let pair = self.pair;
        let is_same_kind = has_same_kind(own, other);
        let known: HashSet<&String> = (node.output.iter())
            .filter_map(|name| pair.partners.get(name))
            .collect();
        let mut given = Vec::new();
        for (nth, name) in node.output.iter_mut().enumerate() {
            if name.is_empty() {
                continue;
            }
            let partner = pair.partners.get(name);
            let partner = partner.filter(|partner| own.output.contains(partner));
            // An output that has another number of elements here is in no pair of values.
            let in_place = own.output.get(nth).filter(|own| {
                is_same_kind
                    && !own.is_empty()
                    && !pair.partners.contains_key(name)
                    && !known.contains(own)
            });
            let partner = partner.or(in_place);
            let forms = pair.forms.get(name).filter(|_| !is_same_kind);
            *name = match (partner, forms) {
                (Some(partner), None) => partner.clone(),
                (Some(partner), Some([own, other])) => {
                    let fresh = self.fresh(name);
                    self.convert([&fresh, partner], [other, own]);
                    given.push(partner.clone());
                    fresh
                }
                (None, _) => self.fresh(name),
            };
            given.push(name.clone());
        }
        given
    }
}
