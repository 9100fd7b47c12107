//! Stretches of the order of execution, given by their first and last operator.

use std::sync::Arc;

use opscope_store::record::Operator;

use crate::NameRange;

/// Where the walk through the operators is.
enum WalkState {
    Before,
    Inside,
    After,
}

/// Marks the operators of `range`, both ends included. A range whose first operator never runs is
/// empty; one whose last never runs continues to the end.
///
/// An end that comes before its begin, or a begin that comes again after the end, makes the rest of
/// the range meaningless: nothing more is marked.
pub(super) fn mark(range: &NameRange, operators: &[Arc<Operator>], is_marked: &mut [bool]) {
    let mut state = WalkState::Before;
    for (operator, is_marked) in operators.iter().zip(is_marked) {
        let is_begin = operator.op_name == range.begin;
        let is_end = operator.op_name == range.end;
        state = match state {
            WalkState::Before if is_begin => WalkState::Inside,
            WalkState::Before if is_end => return,
            WalkState::After if is_begin => return,
            state => state,
        };
        if let WalkState::Inside = state {
            *is_marked = true;
            if is_end {
                state = WalkState::After;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        // The order of execution, begin and end, and what is marked.
        let cases = [
            ("abcde", "bd", "bcd"),
            ("abcde", "cc", "c"),
            ("abcde", "db", ""),
            ("abcde", "az", "abcde"),
            ("abcde", "za", ""),
            ("abcde", "xy", ""),
            ("abcbd", "bc", "bc"),
            ("abcac", "ab", "ab"),
            ("aabb", "ab", "aab"),
            ("bab", "ab", ""),
            ("bcb", "bb", "b"),
            ("", "ab", ""),
        ];
        for (order, range, expected) in cases {
            let operators: Vec<_> = order
                .chars()
                .map(|name| {
                    Arc::new(Operator {
                        op_name: name.to_string(),
                        ..Operator::default()
                    })
                })
                .collect();
            let range = NameRange {
                begin: range[..1].to_owned(),
                end: range[1..].to_owned(),
            };
            let mut is_marked = vec![false; operators.len()];
            mark(&range, &operators, &mut is_marked);
            let marked: String = order
                .chars()
                .zip(&is_marked)
                .filter_map(|(name, &is)| is.then_some(name))
                .collect();
            assert_eq!(marked, expected, "{order} {range:?}");
        }
    }
}
