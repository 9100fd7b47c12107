//! Skips that the user expects.

use std::fmt;

use regress::Regex;

use super::result::Skip;
use super::verdict::is_match;

/// A pattern for things that may stay uncompared: a regular expression that is searched in the name
/// or type of the operator, in the path of the file and in the reason. A text that is no regular
/// expression, such as `*/Dropout*`, must match one of them as a whole, with `*` and `?`.
#[derive(Clone)]
pub struct SkipPattern {
    text: String,
    regex: Option<Regex>,
}

impl SkipPattern {
    /// A pattern.
    pub fn new(text: &str) -> SkipPattern {
        SkipPattern {
            text: text.to_owned(),
            regex: Regex::new(text).ok(),
        }
    }

    /// Whether it allows a skip.
    pub fn allows(&self, skip: &Skip) -> bool {
        let of_operator = skip
            .operator
            .iter()
            .flat_map(|operator| [operator.op_name.as_str(), operator.op_type.as_str()]);
        let texts = of_operator.chain(skip.path.as_deref());
        let mut texts = texts.chain([skip.reason.name()]);
        texts.any(|text| match &self.regex {
            Some(regex) => regex.find(text).is_some(),
            None => is_match(&self.text, text),
        })
    }
}

impl fmt::Debug for SkipPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::SkipPattern;
    use crate::compare::result::{OperatorName, Skip, SkipReason};

    #[test]
    fn names_types_paths_and_reasons() {
        let skip = Skip {
            operator: Some(OperatorName {
                op_type: "Dropout".into(),
                op_name: "net/drop_1".into(),
                ..OperatorName::default()
            }),
            path: Some("dump/Dropout.net_drop_1.1.2.3".to_owned()),
            reason: SkipReason::Missing,
            ..Skip::default()
        };
        let cases = [
            ("drop_\\d", true),
            ("^drop", false),
            ("^Dropout$", true),
            ("*/drop_?", true),
            ("*/drop", false),
            ("^missing$", true),
            ("\\.3$", true),
            ("damaged", false),
        ];
        for (text, is_allowed) in cases {
            assert_eq!(SkipPattern::new(text).allows(&skip), is_allowed, "{text}");
        }
    }
}
