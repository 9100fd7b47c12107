//! Match counts of a graph's operators.

use opscope_analysis::compare::result::{PairingEvidence, SkipReason};
use serde_json::{Value, json};

use super::OpenGraph;
use crate::viewed::ViewedRuns;

/// Pairs by matching method, and unmatched operators.
pub(super) fn counts(shown: &OpenGraph<'_>) -> Value {
    let (mut same_name, mut fused, mut guessed, mut by_hand) = (0, 0, 0, 0);
    let (mut inside, mut alone) = (0, [0, 0]);
    for node in &shown.graph.nodes {
        let sides = node.members.iter().enumerate();
        let members = sides.flat_map(|(side, members)| members.iter().map(move |m| (side, m)));
        for (side, member) in members {
            match member.reason {
                Some(SkipReason::InsideFusion) => inside += 1,
                Some(_) => alone[side] += 1,
                None => {}
            }
        }
        let operator = node.facts.as_ref().and_then(|facts| facts.compared);
        let Some(operator) = operator.filter(|_| !node.is_alone()) else {
            continue;
        };
        // Each pair counts once, under the most significant method.
        match operator.how {
            PairingEvidence::Mapping => by_hand += 1,
            _ if node.is_fused() => fused += 1,
            PairingEvidence::Name => same_name += 1,
            _ => guessed += 1,
        }
    }
    json!({
        "same_name": same_name,
        "fused": fused,
        "other": guessed,
        "target_only": alone[0],
        "golden_only": alone[1],
        "inside_fusion": inside,
        "by_hand": by_hand,
    })
}

/// The mapping used by the comparison.
pub(super) fn mapping(runs: &ViewedRuns) -> Option<&str> {
    let mut options = runs.comparison()?.config.options.iter();
    options
        .find(|(name, _)| name == "mapping")
        .map(|(_, path)| path.as_str())
}
