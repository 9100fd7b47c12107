//! Pairs the outputs of both models.

use std::collections::{HashMap, HashSet};

use crate::compare::result::ValuePairing;

/// Matching positions in golden's and the target's list, and the evidence.
pub(super) type PairedNames = Vec<(usize, Option<(usize, ValuePairing)>)>;

/// Pairs the named outputs of two models: by name, and what that leaves by position, if both sides
/// have as many left or no name is on both sides. Golden's outputs in their order.
pub(super) fn by_name_or_position(golden: &[&str], target: &[&str]) -> PairedNames {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (position, name) in target.iter().enumerate() {
        places.entry(name).or_insert(position);
    }
    let mut paired: PairedNames = golden
        .iter()
        .enumerate()
        .map(|(position, name)| {
            let partner = places.remove(name);
            (position, partner.map(|at| (at, ValuePairing::Name)))
        })
        .collect();
    let taken: HashSet<usize> = partners(&paired).collect();
    let left: Vec<usize> = (0..target.len()).filter(|at| !taken.contains(at)).collect();
    let n_alone = paired.len() - taken.len();
    if taken.is_empty() || n_alone == left.len() {
        let alone = paired.iter_mut().filter(|(_, partner)| partner.is_none());
        for ((_, partner), at) in alone.zip(left) {
            *partner = Some((at, ValuePairing::Position));
        }
    }
    paired
}

/// Pairs outputs in the order in which a caller gets them.
pub(super) fn by_position(n_golden: usize, n_target: usize) -> PairedNames {
    (0..n_golden)
        .map(|at| (at, (at < n_target).then_some((at, ValuePairing::Name))))
        .collect()
}

/// The target's positions that have a partner.
pub(super) fn partners(paired: &PairedNames) -> impl Iterator<Item = usize> {
    paired
        .iter()
        .filter_map(|(_, partner)| partner.map(|(at, _)| at))
}

/// Whether names on both sides are in another order.
pub(super) fn is_reordered(paired: &PairedNames) -> bool {
    let named = paired.iter().filter_map(|(_, partner)| match partner {
        Some((at, ValuePairing::Name)) => Some(*at),
        _ => None,
    });
    !named.is_sorted()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_before_positions() {
        let check = |golden: &[&str], target: &[&str], expected: &[Option<usize>]| {
            let paired = by_name_or_position(golden, target);
            let found: Vec<Option<usize>> = paired
                .iter()
                .map(|(_, partner)| partner.map(|(at, _)| at))
                .collect();
            assert_eq!(found, expected, "{golden:?} {target:?}");
        };
        check(&["y", "z"], &["y", "z"], &[Some(0), Some(1)]);
        check(&["y", "z"], &["z", "y"], &[Some(1), Some(0)]);
        // One name differs.
        check(&["y", "z"], &["w", "y"], &[Some(1), Some(0)]);
        // All names differ.
        check(&["y", "z"], &["a", "b"], &[Some(0), Some(1)]);
        check(&["y"], &["a", "b"], &[Some(0)]);
        check(&["y", "z"], &["a"], &[Some(0), None]);
        // One is lost, and others are added.
        check(&["y", "z"], &["y"], &[Some(0), None]);
        check(&["y", "z"], &["y", "a", "b"], &[Some(0), None]);
        check(&[], &["a"], &[]);
    }

    #[test]
    fn order_counts_for_equal_names() {
        assert!(!is_reordered(&by_name_or_position(
            &["y", "z"],
            &["y", "z"]
        )));
        assert!(is_reordered(&by_name_or_position(&["y", "z"], &["z", "y"])));
        assert!(!is_reordered(&by_name_or_position(
            &["y", "z"],
            &["b", "a"]
        )));
    }
}
