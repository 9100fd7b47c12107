//! Choosing operators by rules: by exact name, by part of a type, by regular expression.
//!
//! The rules are those of MindSpore's `kernels` list. There an operator's full name ends in its
//! type and a number, as in `Default/conv1-Conv2d/Conv2D-op0`, and the type is read off the name.
//! Names of ONNX nodes are free, so the type is taken from the node; a name that ends in `-op` and
//! a number is read as MindSpore reads it, too.

use std::fmt;

use opscope_store::record::Operator;
use opscope_store::tree::mindspore::short_name;
use regress::Regex;

/// Text that separates the type in a full name from the number after it.
const NUMBER_MARK: &str = "-op";

/// How operators are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelSelection {
    /// Those that match a rule.
    Rules(Vec<CompiledKernelRule>),
    /// Those that [`Session::set_dump`](crate::CaptureSession::set_dump) marks; where no mark is
    /// about an operator, those with the attribute `dump` of the value `true`.
    Marked,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledKernelRule {
    text: String,
    test: KernelTest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum KernelTest {
    Name(String),
    /// In lower case.
    Type(String),
    Pattern(Pattern),
}

/// A regular expression, with what it takes to match a whole name around it if it has to.
#[derive(Clone)]
struct Pattern {
    source: String,
    regex: Regex,
}

/// A regular expression is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no regular expression: {reason}")]
pub struct PatternError {
    /// The expression.
    pub pattern: String,
    /// Why it is not one.
    pub reason: String,
}

impl CompiledKernelRule {
    /// The operator of this name.
    pub fn name(name: impl Into<String>) -> CompiledKernelRule {
        let text = name.into();
        let test = KernelTest::Name(text.clone());
        CompiledKernelRule { text, test }
    }

    /// Operators whose type contains this text, letter case apart; and the operator that is called
    /// so.
    pub fn op_type(part: impl Into<String>) -> CompiledKernelRule {
        let text = part.into();
        let test = KernelTest::Type(text.to_lowercase());
        CompiledKernelRule { text, test }
    }

    /// Operators whose whole name matches `pattern`, an ECMAScript regular expression; reports call
    /// the rule `text`.
    ///
    /// # Errors
    /// [`PatternError`] if it is not one.
    pub fn regex(
        text: impl Into<String>,
        pattern: &str,
    ) -> Result<CompiledKernelRule, PatternError> {
        // On its own first: parentheses around it could make sense of what makes none.
        compiled(pattern, pattern)?;
        // Without the group an alternative would bind weaker than the anchors.
        let source = format!("^(?:{pattern})$");
        let regex = compiled(pattern, &source)?;
        Ok(CompiledKernelRule {
            text: text.into(),
            test: KernelTest::Pattern(Pattern { source, regex }),
        })
    }

    /// The same for operators of which any part of the name matches.
    ///
    /// # Errors
    /// [`PatternError`] if `pattern` is not a regular expression.
    pub fn regex_anywhere(
        text: impl Into<String>,
        pattern: &str,
    ) -> Result<CompiledKernelRule, PatternError> {
        let regex = compiled(pattern, pattern)?;
        let source = pattern.to_owned();
        Ok(CompiledKernelRule {
            text: text.into(),
            test: KernelTest::Pattern(Pattern { source, regex }),
        })
    }

    /// Returns the text by which the rule is reported.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Regular expressions are tried first, then names, then types.
    fn rank(&self) -> u8 {
        match self.test {
            KernelTest::Pattern(_) => 0,
            KernelTest::Name(_) => 1,
            KernelTest::Type(_) => 2,
        }
    }

    fn matches(&self, name: &str, op_type: Option<&str>) -> bool {
        match &self.test {
            KernelTest::Name(wanted) => wanted == name,
            KernelTest::Pattern(pattern) => pattern.regex.find(name).is_some(),
            KernelTest::Type(part) => {
                let has = |text: &str| text.to_lowercase().contains(part);
                let in_name = || has(short_name(name));
                match op_type {
                    None => in_name(),
                    Some(op_type) => {
                        // In MindSpore the type is a part of the full name, which ends in `-op` and
                        // a number.
                        has(op_type) || self.text == name || (is_numbered(name) && in_name())
                    }
                }
            }
        }
    }
}

/// The rule that chooses an operator, by its position in `rules`: the first that matches, where
/// regular expressions go before names and names before types.
pub fn rule_for_operator(rules: &[CompiledKernelRule], operator: &Operator) -> Option<usize> {
    first(rules, &operator.op_name, Some(&operator.op_type))
}

/// The rule that chooses a parameter or anything else that has only a name. Its type is the part
/// after the last `/`, cut at the last `-`.
pub fn rule_for_name(rules: &[CompiledKernelRule], name: &str) -> Option<usize> {
    first(rules, name, None)
}

fn first(rules: &[CompiledKernelRule], name: &str, op_type: Option<&str>) -> Option<usize> {
    let hits = rules.iter().enumerate();
    hits.filter(|(_, rule)| rule.matches(name, op_type))
        // The order in which MindSpore tries its rules: it decides which of them count as used.
        .min_by_key(|(i, rule)| (rule.rank(), *i))
        .map(|(i, _)| i)
}

/// Compiles `source` as a regular expression; errors name `pattern`, from which `source` was
/// derived.
fn compiled(pattern: &str, source: &str) -> Result<Regex, PatternError> {
    Regex::new(source).map_err(|error| PatternError {
        pattern: pattern.to_owned(),
        reason: error.text,
    })
}

/// Whether the name ends as full names of MindSpore do.
fn is_numbered(name: &str) -> bool {
    let number = name
        .rsplit_once(NUMBER_MARK)
        .map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

#[cfg(test)]
mod tests;
