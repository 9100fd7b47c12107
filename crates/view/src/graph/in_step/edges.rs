//! The lines of each side, along those of the common layout.

use std::collections::HashMap;

use super::{SideBoxes, StepEdge, StepEdges, StepMember, StepNode};
use crate::graph::groups::{BoxEdge, BoxKind, GraphLayout};
use crate::graph::layers::Point;

/// The distance from a stack of boxes to the lines that reach those in its middle.
const BYPASS: f64 = 8.0;
/// Above and below a stack, where such a line turns.
const TURN: f64 = 6.0;
/// Boxes that a line may pass before nobody looks whether it can be straight.
const N_PASSED_MAX: usize = 64;

/// Draws one line for each pair of visible boxes of a side.
pub(super) fn draw(
    nodes: &[StepNode],
    skeleton: &GraphLayout,
    sides: &SideBoxes,
    edges: &[StepEdges; 2],
) -> Vec<StepEdge> {
    let mut drawn = Vec::new();
    for side in [0, 1] {
        let lines = SideLines {
            nodes,
            skeleton,
            sides,
            side,
            obstacles: obstacles(sides, side),
        };
        lines.draw(&edges[side], &mut drawn);
    }
    drawn
}

/// Left edge, right edge, and top of a side's boxes by the box around them, from top to bottom.
type Obstacles = HashMap<Option<u32>, Vec<[f64; 3]>>;

fn obstacles(sides: &SideBoxes, side: usize) -> Obstacles {
    let mut of_parent = Obstacles::new();
    for found in sides.boxes.iter().filter(|found| found.side == side) {
        let shown = &found.shown;
        let of_parent = of_parent.entry(shown.parent).or_default();
        of_parent.push([shown.x, shown.x + shown.width, shown.y]);
    }
    for boxes in of_parent.values_mut() {
        boxes.sort_by(|a, b| a[2].total_cmp(&b[2]));
    }
    of_parent
}

struct SideLines<'a> {
    nodes: &'a [StepNode],
    skeleton: &'a GraphLayout,
    sides: &'a SideBoxes,
    side: usize,
    obstacles: Obstacles,
}

impl SideLines<'_> {
    fn draw(&self, edges: &[(StepMember, StepMember)], drawn: &mut Vec<StepEdge>) {
        let visible = |member: StepMember| {
            let boxes = &self.skeleton.box_of_operator;
            boxes.get(member.node as usize).copied()
        };
        let mut wanted: Vec<(u32, u32, StepMember, StepMember)> = edges
            .iter()
            .filter_map(|&(from, to)| Some((visible(from)?, visible(to)?, from, to)))
            .collect();
        wanted.sort_unstable();
        let mut last = None;
        for &(from_box, to_box, from, to) in &wanted {
            let index = |member| self.sides.index(self.skeleton, member, self.side);
            let (Some(start), Some(end)) = (index(from), index(to)) else {
                continue;
            };
            // Of many values between two boxes one line is enough.
            if start == end || last.replace((start, end)) == Some((start, end)) {
                continue;
            }
            let points = if from_box == to_box {
                self.inside(start, end)
            } else {
                let lines = &self.skeleton.edges;
                let at =
                    lines.binary_search_by(|line| (line.from, line.to).cmp(&(from_box, to_box)));
                let line = at.ok().and_then(|at| lines.get(at));
                line.map(|line| self.between(line, from, to))
            };
            drawn.extend(points.map(|points| StepEdge {
                side: self.side,
                from: start,
                to: end,
                points,
            }));
        }
    }

    /// A line between two operators of one node.
    fn inside(&self, from: u32, to: u32) -> Option<Vec<Point>> {
        let [from_box, to_box] = [from, to].map(|at| self.sides.boxes.get(at as usize));
        let (from_box, to_box) = (&from_box?.shown, &to_box?.shown);
        let x = from_box.x + from_box.width / 2.0;
        if to == from + 1 {
            let bottom = from_box.y + from_box.height;
            return Some(vec![Point { x, y: bottom }, Point { x, y: to_box.y }]);
        }
        // Around what stands between them.
        let (right, middle) = (
            from_box.x + from_box.width,
            from_box.y + from_box.height / 2.0,
        );
        let end = to_box.y + to_box.height / 2.0;
        let way = right + BYPASS;
        let points = [(right, middle), (way, middle), (way, end), (right, end)];
        Some(points.map(|(x, y)| Point { x, y }).to_vec())
    }

    /// A line between two nodes or groups.
    fn between(&self, line: &BoxEdge, from: StepMember, to: StepMember) -> Vec<Point> {
        let offset = self.sides.offsets[self.side];
        let mut points: Vec<Point> = line
            .points
            .iter()
            .map(|point| Point {
                x: point.x + offset,
                y: point.y,
            })
            .collect();
        let is_upward = points
            .first()
            .zip(points.last())
            .is_some_and(|(first, last)| first.y > last.y);
        // Lines against the order of execution are rare, and end at the stack as a whole.
        if is_upward {
            return points;
        }
        self.straighten(line, &mut points);
        self.leave_stack(from, &mut points);
        self.enter_stack(to, &mut points);
        points
    }

    /// Takes out a detour around something that only the other side has.
    fn straighten(&self, line: &BoxEdge, points: &mut Vec<Point>) {
        let (Some(&first), Some(&last)) = (points.first(), points.last()) else {
            return;
        };
        let [from, to] = [line.from, line.to].map(|at| self.skeleton.boxes.get(at as usize));
        let parents = [from, to].map(|shown| shown.map(|shown| shown.parent));
        if points.len() <= 2 || first.x != last.x || parents[0] != parents[1] {
            return;
        }
        let parent = parents[0].flatten();
        let parent = parent.and_then(|at| self.sides.firsts[self.side].get(at as usize).copied());
        let Some(boxes) = self.obstacles.get(&parent.flatten()) else {
            return;
        };
        let start = boxes.partition_point(|found| found[2] < first.y);
        let passed = &boxes[start..];
        let n = passed.partition_point(|found| found[2] < last.y);
        let is_free = n <= N_PASSED_MAX
            && passed[..n]
                .iter()
                .all(|[left, right, _]| first.x < *left || first.x > *right);
        if is_free {
            *points = vec![first, last];
        }
    }

    /// Leads from the side of an operator that others of its node stand below.
    fn leave_stack(&self, from: StepMember, points: &mut Vec<Point>) {
        let Some((shown, n)) = self.in_stack(from) else {
            return;
        };
        let (Some(&bottom), true) = (points.first(), from.place + 1 < n) else {
            return;
        };
        let (right, middle) = (shown[0] + shown[2], shown[1] + shown[3] / 2.0);
        let way = right + BYPASS;
        let turn = bottom.y + TURN;
        let around = [
            (right, middle),
            (way, middle),
            (way, turn),
            (bottom.x, turn),
        ];
        points.splice(..1, around.map(|(x, y)| Point { x, y }));
    }

    /// Leads to the side of an operator that others of its node stand above.
    fn enter_stack(&self, to: StepMember, points: &mut Vec<Point>) {
        let Some((shown, _)) = self.in_stack(to) else {
            return;
        };
        let (Some(&top), true) = (points.last(), to.place > 0) else {
            return;
        };
        let (left, middle) = (shown[0], shown[1] + shown[3] / 2.0);
        let way = left - BYPASS;
        let turn = top.y - TURN;
        points.pop();
        let around = [(top.x, turn), (way, turn), (way, middle), (left, middle)];
        points.extend(around.map(|(x, y)| Point { x, y }));
    }

    /// Left edge, top, width and height of an operator that shares its node, and how many do.
    fn in_stack(&self, member: StepMember) -> Option<([f64; 4], u32)> {
        let at = *self.skeleton.box_of_operator.get(member.node as usize)?;
        let is_operator = self.skeleton.boxes.get(at as usize)?.kind == BoxKind::Operator;
        let n = self.nodes.get(member.node as usize)?.n_members[self.side];
        let at = self.sides.index(self.skeleton, member, self.side)?;
        let shown = &self.sides.boxes.get(at as usize)?.shown;
        (is_operator && n > 1).then_some(([shown.x, shown.y, shown.width, shown.height], n))
    }
}
