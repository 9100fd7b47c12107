//! The lines of each side, routed along those of the common layout.

use super::{SideBoxes, StepEdge, StepEdges, StepMember, StepNode};
use crate::graph::groups::{BoxEdge, BoxKind, GraphLayout};
use crate::graph::layers::Point;

/// The distance between a stack of boxes and the lines to its inner boxes.
const BYPASS: f64 = 8.0;
/// The distance above and below a stack at which such a line turns.
const TURN: f64 = 6.0;
/// The minimum distance of a line from a box that it passes.
const CLEARANCE: f64 = 4.0;
/// Maximum number of boxes to check when straightening a line.
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
            obstacles: Obstacles::new(sides, side),
        };
        lines.draw(&edges[side], &mut drawn);
    }
    drawn
}

/// Boxes of a side, which its lines must not cross.
struct Obstacles {
    /// Left, right, top and bottom of operators and closed groups, sorted by top.
    leaves: Vec<[f64; 4]>,
    /// The height of the tallest leaf.
    tallest: f64,
    /// Bounds of open groups, with their indices in the list of boxes.
    groups: Vec<(u32, [f64; 4])>,
}

impl Obstacles {
    fn new(sides: &SideBoxes, side: usize) -> Obstacles {
        let mut obstacles = Obstacles {
            leaves: Vec::new(),
            tallest: 0.0,
            groups: Vec::new(),
        };
        let boxes = sides.boxes.iter().enumerate();
        for (at, found) in boxes.filter(|(_, found)| found.side == side) {
            let shown = &found.shown;
            let (right, bottom) = (shown.x + shown.width, shown.y + shown.height);
            let extent = [shown.x, right, shown.y, bottom];
            if shown.kind == BoxKind::OpenGroup {
                obstacles.groups.push((at as u32, extent));
            } else {
                obstacles.leaves.push(extent);
                obstacles.tallest = obstacles.tallest.max(shown.height);
            }
        }
        obstacles.leaves.sort_by(|a, b| a[2].total_cmp(&b[2]));
        obstacles
    }

    /// Whether a straight line crosses no box except the groups `around` its ends.
    fn is_free(&self, [a, b]: [Point; 2], around: &[u32]) -> bool {
        let (left, right) = (a.x.min(b.x) - CLEARANCE, a.x.max(b.x) + CLEARANCE);
        let (top, bottom) = (a.y.min(b.y), a.y.max(b.y));
        let meets = |extent: &[f64; 4]| {
            extent[0] < right
                && extent[1] > left
                && extent[2] < bottom.max(top + 1.0)
                && extent[3] > top
        };
        // Boxes that begin further up cannot reach the line.
        let first = self
            .leaves
            .partition_point(|extent| extent[2] < top - self.tallest);
        let n = self.leaves[first..].partition_point(|extent| extent[2] <= bottom);
        n <= N_PASSED_MAX
            && !self.leaves[first..first + n].iter().any(meets)
            && !self
                .groups
                .iter()
                .any(|(at, extent)| meets(extent) && !around.contains(at))
    }
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
        let mut wanted: Vec<(u32, u32, StepMember, StepMember)> = edges
            .iter()
            .filter_map(|&(from, to)| Some((self.visible(from)?, self.visible(to)?, from, to)))
            .collect();
        wanted.sort_unstable();
        let mut last = None;
        for &(from_box, to_box, from, to) in &wanted {
            let ends = [from, to].map(|end| self.sides.index(self.skeleton, end, self.side));
            let [Some(start), Some(end)] = ends else {
                continue;
            };
            // One line represents any number of values between two boxes.
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

    /// The skeleton box that shows an operator.
    fn visible(&self, member: StepMember) -> Option<u32> {
        let boxes = &self.skeleton.box_of_operator;
        boxes.get(member.node as usize).copied()
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
        // Avoids the boxes in between.
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
            .map(|point| Point::new(point.x + offset, point.y))
            .collect();
        let is_upward = points
            .first()
            .zip(points.last())
            .is_some_and(|(first, last)| first.y > last.y);
        // Lines against execution order are rare; they end at the stack's border.
        if is_upward {
            return points;
        }
        self.straighten(line, &mut points);
        self.leave_stack(from, &mut points);
        self.enter_stack(to, &mut points);
        points
    }

    /// Removes detours around boxes of the other side: where a line goes down, sideways, down and
    /// sideways again although the straight path is free.
    fn straighten(&self, line: &BoxEdge, points: &mut Vec<Point>) {
        let around = self.around(line);
        let mut at = 0;
        while let Some(&[start, turn, _, end, next]) = points.get(at..at + 5) {
            let corner = Point::new(start.x, end.y);
            let goes_down = start.x == turn.x && turn.y >= start.y && end.y > turn.y;
            let is_free = goes_down
                && self.obstacles.is_free([turn, corner], &around)
                && self.obstacles.is_free([corner, next], &around);
            if !is_free {
                at += 1;
            } else if next.x == start.x {
                points.drain(at + 1..at + 5);
            } else {
                points.splice(at + 1..at + 4, [corner]);
            }
        }
    }

    /// The open groups around either end, whose borders a line may cross.
    fn around(&self, line: &BoxEdge) -> Vec<u32> {
        let mut around = Vec::new();
        for end in [line.from, line.to] {
            let mut at = Some(end);
            while let Some(found) = at {
                around.extend(
                    self.sides.firsts[self.side]
                        .get(found as usize)
                        .copied()
                        .flatten(),
                );
                at = self
                    .skeleton
                    .boxes
                    .get(found as usize)
                    .and_then(|shown| shown.parent);
            }
        }
        around
    }

    /// Routes from the side of an operator that has others of its node below.
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

    /// Routes to the side of an operator that has others of its node above.
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

    /// Left edge, top, width and height of an operator in a stack, and the stack's size.
    fn in_stack(&self, member: StepMember) -> Option<([f64; 4], u32)> {
        let at = *self.skeleton.box_of_operator.get(member.node as usize)?;
        let is_operator = self.skeleton.boxes.get(at as usize)?.kind == BoxKind::Operator;
        let n = self.nodes.get(member.node as usize)?.n_members[self.side];
        let at = self.sides.index(self.skeleton, member, self.side)?;
        let shown = &self.sides.boxes.get(at as usize)?.shown;
        (is_operator && n > 1).then_some(([shown.x, shown.y, shown.width, shown.height], n))
    }
}
