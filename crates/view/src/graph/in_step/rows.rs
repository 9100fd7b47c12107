//! Rows of boxes at the same height, each with one mark between both sides.

use super::{SideBoxes, StepLeaf, StepRow};
use crate::graph::groups::{BoxKind, GraphBox, GraphLayout};

/// The minimum distance between two marks: a pill, and a line below it.
const MARK_PITCH: f64 = 36.0;

/// Lists the rows from top to bottom. Boxes of adjacent groups join the row above if their marks
/// would overlap.
pub(super) fn find(skeleton: &GraphLayout, sides: &SideBoxes) -> Vec<StepRow> {
    let leaves = skeleton.boxes.iter().enumerate();
    let mut leaves: Vec<(usize, &GraphBox)> = leaves
        .filter(|(_, shown)| shown.kind != BoxKind::OpenGroup)
        .collect();
    leaves.sort_by(|(_, a), (_, b)| a.y.total_cmp(&b.y).then(a.x.total_cmp(&b.x)));
    let mut rows: Vec<StepRow> = Vec::new();
    for row in leaves.chunk_by(|(_, a), (_, b)| a.y == b.y) {
        // Among boxes with the same top, the tallest determines the centre.
        let y = row
            .iter()
            .map(|(_, shown)| shown.y + shown.height / 2.0)
            .fold(0.0, f64::max);
        let leaves = row.iter().map(|&(at, shown)| StepLeaf {
            nodes: shown.operators.clone(),
            boxes: [0, 1].map(|side: usize| sides.firsts[side].get(at).copied().flatten()),
        });
        match rows.last_mut() {
            Some(last) if y - last.y < MARK_PITCH => last.leaves.extend(leaves),
            _ => rows.push(StepRow {
                y,
                leaves: leaves.collect(),
            }),
        }
    }
    rows
}
