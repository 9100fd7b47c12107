//! The attributes of an operator, as the graph next to a dump has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use opscope_store::record::DefaultAttribute;

use super::result::AttributeDifference;

/// Attributes that ONNX describes a default of in words alone, and each number of it.
const DEFAULTS_IN_WORDS: [(&str, &str); 4] = [
    ("dilations", "1"),
    ("output_padding", "0"),
    ("pads", "0"),
    ("strides", "1"),
];
/// An attribute that convolutions read off their weight where it is left out.
const SHAPE_OF_WEIGHT: &str = "kernel_shape";

/// An attribute that decides about empty tensors alone, and that exporters set without need.
const OF_EMPTY_TENSORS: &str = "allowzero";

/// The attributes of an operator that affect its computation, as texts by name.
#[derive(Clone, Debug, Default)]
pub struct OperatorAttributes<'a> {
    /// Those that it has.
    pub given: BTreeMap<&'a str, &'a str>,
    /// Those that its type has unless it gives them.
    pub defaults: Arc<[DefaultAttribute]>,
    /// The version of its set of operators; none for operators of PyTorch.
    pub opset: Option<i64>,
}

impl OperatorAttributes<'_> {
    /// Attributes that differ from golden's, by name. One that is left out has its default. One
    /// that the other operator set lacks counts if it is given, and not as its default.
    pub fn differences(&self, golden: &OperatorAttributes<'_>) -> Vec<AttributeDifference> {
        let sides = [self, golden];
        let names = sides.iter().flat_map(|side| {
            let defaults = side.defaults.iter().map(|all| all.name.as_str());
            side.given.keys().copied().chain(defaults)
        });
        let names: BTreeSet<&str> = names.collect();
        let differing = names.into_iter().filter(|name| {
            let texts = sides.map(|side| side.text(name));
            match texts {
                _ if *name == OF_EMPTY_TENSORS => false,
                [Some(target), Some(golden)] => target != golden,
                [None, None] => false,
                [Some(text), None] | [None, Some(text)] => {
                    let having = sides[usize::from(texts[0].is_none())];
                    !having.is_default(name, text, self.opset == golden.opset)
                }
            }
        });
        let differences = differing.map(|name| AttributeDifference {
            name: name.to_owned(),
            argument: None,
            target: self.described(name),
            golden: golden.described(name),
        });
        differences.collect()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.given
            .get(name)
            .copied()
            .or_else(|| self.default_of(name))
    }

    fn default_of(&self, name: &str) -> Option<&str> {
        let mut defaults = self.defaults.iter();
        let default = defaults.find(|default| default.name == name)?;
        Some(&default.text)
    }

    /// Whether an attribute that the other side lacks is the same as none there.
    fn is_default(&self, name: &str, text: &str, is_one_opset: bool) -> bool {
        let mut in_words = DEFAULTS_IN_WORDS.iter();
        if let Some((_, number)) = in_words.find(|(known, _)| *known == name) {
            let numbers = text.trim_start_matches('[').trim_end_matches(']');
            return numbers.split(", ").all(|each| each == *number);
        }
        // An attribute without a default may be an input in another operator set.
        name == SHAPE_OF_WEIGHT
            || !is_one_opset && self.default_of(name).is_none_or(|default| default == text)
    }

    fn described(&self, name: &str) -> Option<String> {
        let text = self.text(name)?.to_owned();
        Some(match self.opset {
            Some(version) if !self.given.contains_key(name) => {
                format!("{text} (default of opset {version})")
            }
            _ => text,
        })
    }
}

#[cfg(test)]
mod tests {
    use opscope_store::record::operator_sets::default_attributes;

    use super::*;

    type Side<'a> = (i64, &'a [(&'a str, &'a str)]);

    fn check(op_type: &str, sides: [Side<'_>; 2], expected: &[(&str, [Option<&str>; 2])]) {
        let [target, golden] = sides.map(|(version, given)| OperatorAttributes {
            given: given.iter().copied().collect(),
            defaults: default_attributes("", op_type, version).unwrap_or_default(),
            opset: Some(version),
        });
        let found = target.differences(&golden);
        let found = found.iter().map(|at| {
            let texts = [&at.target, &at.golden].map(|text| text.as_deref());
            (at.name.as_str(), texts)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{op_type}");
    }

    #[test]
    fn an_attribute_that_is_left_out_has_its_default() {
        let given = [
            ("auto_pad", "\"NOTSET\""),
            ("group", "1"),
            ("pads", "[0, 0]"),
        ];
        check("Conv", [(18, &given), (18, &[])], &[]);
        let wide = [
            ("group", "2"),
            ("kernel_shape", "[3, 3]"),
            ("pads", "[0, 1]"),
        ];
        let expected = [
            ("group", [Some("2"), Some("1 (default of opset 18)")]),
            ("pads", [Some("[0, 1]"), None]),
        ];
        check("Conv", [(18, &wide), (18, &[])], &expected);
        let alpha = [("alpha", "0.1")];
        let expected = [("alpha", [Some("0.01 (default of opset 16)"), Some("0.1")])];
        check("LeakyRelu", [(16, &[]), (16, &alpha)], &expected);
        check("LeakyRelu", [(16, &[("alpha", "0.01")]), (16, &[])], &[]);
    }

    #[test]
    fn operator_sets_differ() {
        let axes = [("axes", "[2]"), ("keepdims", "1")];
        check(
            "ReduceMean",
            [(18, &[("noop_with_empty_axes", "0")]), (17, &axes)],
            &[],
        );
        let noop = [("noop_with_empty_axes", "1")];
        let expected = [("noop_with_empty_axes", [Some("1"), None])];
        check("ReduceMean", [(18, &noop), (17, &axes)], &expected);
        check("Reshape", [(18, &[("allowzero", "1")]), (17, &[])], &[]);
        let expected = [("axes", [None, Some("[2]")])];
        check("ReduceMean", [(17, &[]), (17, &axes)], &expected);
        let expected = [(
            "axis",
            [
                Some("-1 (default of opset 13)"),
                Some("1 (default of opset 12)"),
            ],
        )];
        check("Softmax", [(13, &[]), (12, &[])], &expected);
    }
}
