//! The operators selected by `-r` and `-s`.

use opscope_store::decimal::is_digits;

use super::rule::ModelRules;
use super::stop::CompareStop;
use crate::arguments::integer;
use crate::failure::ErrorCode;
use crate::log;

/// The operators of a model to compare.
#[derive(Debug)]
pub(super) enum ModelRange {
    /// Every `step`th operator from `start` to `end`, and these two.
    Range { start: i64, end: i64, step: i64 },
    /// Operators by number.
    Listed(Vec<i64>),
}

const TO_THE_END: i64 = -1;

impl ModelRange {
    /// Parses `start,end,step`; the defaults are 1, -1 and 1.
    pub(super) fn range(text: &str) -> Result<ModelRange, CompareStop> {
        let invalid = || {
            let message =
                format!("The range ({text}) is invalid, just supports \"start,end,step\".");
            CompareStop::coded(ErrorCode::InvalidParameter, message)
        };
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let [start, end, step] = parts[..] else {
            return Err(invalid());
        };
        let number = |text: &str, default| match text {
            "" => Ok(default),
            text if is_digits(text) => Ok(integer(text).unwrap_or(i64::MAX)),
            _ => Err(invalid()),
        };
        let start = number(start, 1)?;
        let end = if end == "-1" {
            TO_THE_END
        } else {
            number(end, TO_THE_END)?
        };
        let step = number(step, 1)?;
        Ok(ModelRange::Range { start, end, step })
    }

    /// Parses comma-separated numbers.
    pub(super) fn listed(text: &str) -> Result<ModelRange, CompareStop> {
        let mut numbers = Vec::new();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            if !is_digits(part) {
                let message = format!(
                    "The index ({text}) is invalid, just supports \"index_1, index_2, ...\", the \
                     value is zero or a positive number."
                );
                return Err(CompareStop::coded(ErrorCode::InvalidParameter, message));
            }
            numbers.push(integer(part).unwrap_or(i64::MAX));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(ModelRange::Listed(numbers))
    }

    /// Checks the selection against the number of the last operator, and drops numbers beyond it.
    pub(super) fn check(&mut self, last: i64) -> Result<(), CompareStop> {
        match self {
            ModelRange::Range { start, end, step } => {
                let out_of_range = |what: &str, value: i64, range: &str| {
                    let message = format!(
                        "The {what} index ({value}) is out of range {range}. Please check the index."
                    );
                    Err(CompareStop::coded(ErrorCode::IndexOutOfBounds, message))
                };
                if *start < 1 || *start > last {
                    return out_of_range("start", *start, &format!("[1, {last}]"));
                }
                if *end == TO_THE_END {
                    *end = last;
                }
                if *end < *start || *end > last {
                    return out_of_range("end", *end, &format!("[1, {last}]"));
                }
                if *step < 1 || *step >= last {
                    return out_of_range("step", *step, &format!("[1, {last})"));
                }
                Ok(())
            }
            ModelRange::Listed(numbers) => {
                let n = numbers.len();
                numbers.retain(|&number| number <= last);
                if numbers.len() == n {
                    return Ok(());
                }
                let message = format!("An index is out of range [1,{last}].");
                if numbers.is_empty() {
                    return Err(CompareStop::coded(ErrorCode::InvalidParameter, message));
                }
                log::warning(&message);
                Ok(())
            }
        }
    }

    /// Indices into [`ModelRules::groups`] of the groups to compare, in order. An operator without
    /// a known group cannot be compared.
    pub(super) fn groups(&self, rule: &ModelRules) -> Result<Vec<usize>, CompareStop> {
        let mut groups = Vec::new();
        for &op in &rule.sequence {
            let number = rule.ops[op].sequence;
            let is_chosen = match self {
                ModelRange::Range { end, .. } if number > *end => break,
                ModelRange::Range { start, end, step } => {
                    number >= *start
                        && (number == *start || number == *end || (number - start) % step == 0)
                }
                ModelRange::Listed(numbers) => numbers.contains(&number),
            };
            if is_chosen {
                let group = rule.position_of(&rule.ops[op].name);
                let group = group.ok_or_else(|| CompareStop::Fatal("None".to_owned()))?;
                if !groups.contains(&group) {
                    groups.push(group);
                }
            }
        }
        Ok(groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_checked() {
        for (text, last, expected) in [
            (",,", 27, Some((1, 27, 1))),
            (" 3 , 9 , 2", 27, Some((3, 9, 2))),
            ("3,-1,", 27, Some((3, 27, 1))),
            ("0,3,1", 27, None),
            ("1,28,1", 27, None),
            ("9,3,1", 27, None),
            ("1,3,27", 27, None),
            ("1,3", 27, None),
            ("1,-2,1", 27, None),
            ("a,3,1", 27, None),
        ] {
            let found = ModelRange::range(text).and_then(|mut choice| {
                choice.check(last)?;
                Ok(choice)
            });
            let found = match found {
                Ok(ModelRange::Range { start, end, step }) => Some((start, end, step)),
                _ => None,
            };
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn lists_lose_what_is_beyond() {
        let mut choice = ModelRange::listed("5, 3,,99,3").unwrap();
        choice.check(10).unwrap();
        assert!(matches!(choice, ModelRange::Listed(numbers) if numbers == [3, 5]));
        assert!(ModelRange::listed("11").unwrap().check(10).is_err());
        assert!(ModelRange::listed("x").is_err());
    }
}
