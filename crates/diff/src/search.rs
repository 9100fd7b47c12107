//! Finds the smallest set of changes that has an effect.

use std::collections::HashMap;

/// Whether these changes, ascending, have the effect; none if no more questions are allowed.
pub(crate) type Question<'a> = dyn FnMut(&[usize]) -> Option<bool> + 'a;

/// Number of changes tried first, and the factor by which it grows.
const FIRST: usize = 1;
const GROWTH: usize = 4;

/// The answer to a question, and the question.
type Answer = (Option<bool>, Vec<usize>);

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The changes have the effect, and it disappears without any one of them.
    Least(Vec<usize>),
    /// The changes have the effect; fewer may suffice.
    Within(Vec<usize>),
    /// All together do not have it.
    Nothing,
    /// No more questions are allowed, and the answer is unknown.
    Unknown,
}

/// Searches for a small set of the changes 0 to `n` with the effect, beginning with `likely`.
///
/// The search assumes that additional changes do no harm: it tries the first one, four, sixteen …
/// until they suffice, and bisection finds the last necessary change, then the one before it. A
/// returned set was always measured to have the effect.
pub(crate) fn least(n: usize, likely: &[usize], ask: &mut Question<'_>) -> Found {
    let mut known: HashMap<Vec<usize>, bool> = HashMap::new();
    // The sorted set is the key of the cache.
    let mut ask = |set: &[usize]| {
        let mut set = set.to_vec();
        set.sort_unstable();
        set.dedup();
        // Answers take long, and some sets come up twice.
        let answer = known.get(&set).copied().or_else(|| ask(&set));
        known.extend(answer.map(|answer| (set.clone(), answer)));
        (answer, set)
    };
    if !likely.is_empty() {
        match ask(likely) {
            (Some(true), set) => return reduced(set, &mut ask),
            (Some(false), _) => {}
            (None, _) => return Found::Unknown,
        }
    }
    // The first candidate is likelier to be a cause than those that follow from it.
    let mut n_failed = 0;
    let mut n_tried = FIRST.min(n);
    loop {
        let first: Vec<usize> = (0..n_tried).collect();
        match ask(&first).0 {
            Some(true) => break,
            Some(false) if n_tried == n => return Found::Nothing,
            Some(false) => (n_failed, n_tried) = (n_tried, n.min(n_tried * GROWTH)),
            None => return Found::Unknown,
        }
    }
    let mut rest: Vec<usize> = (0..n_tried).collect();
    let mut low = n_failed;
    let mut needed: Vec<usize> = Vec::new();
    while !rest.is_empty() {
        // Invariant: `low` of the rest do not suffice, and all of them do.
        let mut high = rest.len();
        while high - low > 1 {
            let middle = low.midpoint(high);
            let set = [&needed[..], &rest[..middle]].concat();
            match ask(&set).0 {
                Some(true) => high = middle,
                Some(false) => low = middle,
                None => {
                    rest.truncate(high);
                    return within(needed, rest);
                }
            }
        }
        // The changes before this one do not suffice without it.
        needed.push(rest[high - 1]);
        rest.truncate(high - 1);
        low = 0;
        match ask(&needed) {
            (Some(true), set) => return reduced(set, &mut ask),
            (Some(false), _) => {}
            (None, _) => return within(needed, rest),
        }
    }
    // Only if answers contradict each other.
    Found::Unknown
}

fn within(needed: Vec<usize>, rest: Vec<usize>) -> Found {
    let mut set = [needed, rest].concat();
    set.sort_unstable();
    Found::Within(set)
}

/// Removes unnecessary changes.
fn reduced(mut set: Vec<usize>, ask: &mut dyn FnMut(&[usize]) -> Answer) -> Found {
    let mut at = 0;
    while set.len() > 1 && at < set.len() {
        let without: Vec<usize> = (set.iter().enumerate())
            .filter(|(place, _)| *place != at)
            .map(|(_, &change)| change)
            .collect();
        match ask(&without).0 {
            Some(true) => set = without,
            Some(false) => at += 1,
            None => return Found::Within(set),
        }
    }
    Found::Least(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The effect requires all of `causes`.
    fn check(n: usize, likely: &[usize], causes: &[usize], n_asked_max: usize, expected: &Found) {
        let mut n_asked = 0;
        let found = least(n, likely, &mut |set| {
            n_asked += 1;
            assert!(set.is_sorted(), "{set:?}");
            (n_asked <= n_asked_max).then(|| causes.iter().all(|cause| set.contains(cause)))
        });
        assert_eq!(
            &found, expected,
            "{n} {likely:?} {causes:?}: {n_asked} asked"
        );
    }

    #[test]
    fn what_is_likely_comes_first() {
        check(100, &[7], &[7], 1, &Found::Least(vec![7]));
        check(100, &[7, 9], &[7], 3, &Found::Least(vec![7]));
        check(100, &[7, 9], &[7, 9], 3, &Found::Least(vec![7, 9]));
    }

    #[test]
    fn causes_are_found_among_many() {
        check(1, &[], &[0], 2, &Found::Least(vec![0]));
        check(64, &[3], &[40], 12, &Found::Least(vec![40]));
        check(64, &[], &[0], 1, &Found::Least(vec![0]));
        check(64, &[], &[63], 11, &Found::Least(vec![63]));
        check(64, &[5], &[5, 50], 20, &Found::Least(vec![5, 50]));
        check(64, &[], &[1, 2, 3], 12, &Found::Least(vec![1, 2, 3]));
    }

    #[test]
    fn no_more_is_said_than_was_asked() {
        check(8, &[], &[8], 9, &Found::Nothing);
        check(8, &[1], &[2], 0, &Found::Unknown);
        check(8, &[], &[2], 2, &Found::Within(vec![0, 1, 2, 3]));
        check(8, &[], &[2], 1, &Found::Unknown);
    }
}
