//! Edges between visible boxes, crossing the borders of open groups.

use super::tree::{Child, Meeting};
use super::{BoxEdge, GraphBox, GraphLayout, Level, Levels, PADDING};
use crate::graph::layers::Point;

/// Draws one line for each pair of visible boxes.
pub(super) fn draw(
    levels: &Levels<'_>,
    layout: &GraphLayout,
    edges: &[(u32, u32)],
) -> Vec<BoxEdge> {
    let mut pairs: Vec<(u32, u32, u32, u32)> = edges
        .iter()
        .map(|&(from, to)| {
            let [from_box, to_box] = [from, to].map(|id| layout.box_of_operator[id as usize]);
            (from_box, to_box, from, to)
        })
        .filter(|pair| pair.0 != pair.1)
        .collect();
    pairs.sort_unstable();
    // One line represents any number of values between two groups.
    pairs.dedup_by_key(|pair| (pair.0, pair.1));
    pairs
        .into_iter()
        .filter_map(|(from, to, producer, consumer)| {
            let meeting = levels.tree.meeting(producer, consumer)?;
            let points = line(levels, layout, &meeting, (from, to))?;
            Some(BoxEdge { from, to, points })
        })
        .collect()
}

fn line(
    levels: &Levels<'_>,
    layout: &GraphLayout,
    meeting: &Meeting,
    (from, to): (u32, u32),
) -> Option<Vec<Point>> {
    let level = levels.of_group.get(&meeting.group)?;
    let idx = *level.edge_of.get(&(meeting.from, meeting.to))?;
    let mut route = level.layout.routes.get(idx as usize)?.clone();
    for point in &mut route {
        point.x += level.origin.x;
        point.y += level.origin.y;
    }
    let (mut upper, mut lower) = ((from, meeting.from), (to, meeting.to));
    let is_upward = is_upward(&route);
    // The code below assumes lines that run down.
    if is_upward {
        route.reverse();
        std::mem::swap(&mut upper, &mut lower);
    }
    let mut points = Vec::with_capacity(route.len() + 4);
    let outer = box_of(level, upper.1)?;
    outwards(levels, layout, upper.0, outer, BoxEnd::Bottom, &mut points);
    points.extend(route);
    let mut entering = Vec::new();
    let outer = box_of(level, lower.1)?;
    outwards(levels, layout, lower.0, outer, BoxEnd::Top, &mut entering);
    // It was built from the inside out.
    points.extend(entering.into_iter().rev());
    if is_upward {
        points.reverse();
    }
    points.dedup();
    drop_straight_corners(&mut points);
    Some(points)
}

/// Edges that close a cycle run from the top of their producer up to their consumer.
fn is_upward(route: &[Point]) -> bool {
    route
        .first()
        .zip(route.last())
        .is_some_and(|(first, last)| first.y > last.y)
}

fn box_of(level: &Level, child: Child) -> Option<u32> {
    level
        .boxes
        .get(*level.place_of.get(&child)? as usize)
        .copied()
}

/// Routes from a box to the same end of the enclosing box `outer`: from the bottom straight down if
/// it is in the last layer of a group, otherwise along the right padding; from the top straight up
/// if it is in the first layer, otherwise along the left padding.
fn outwards(
    levels: &Levels<'_>,
    layout: &GraphLayout,
    inner: u32,
    outer: u32,
    end: BoxEnd,
    points: &mut Vec<Point>,
) {
    const GAP: f64 = PADDING / 2.0;
    let mut current = inner;
    while current != outer {
        let Some((group, step)) = around(levels, layout, current) else {
            return;
        };
        let here = &layout.boxes[current as usize];
        let (is_outermost, y, turn, side, border) = match end {
            BoxEnd::Bottom => {
                let bottom = here.y + here.height;
                let is_last = step.rank + 1 == step.n_layers;
                let right = group.x + group.width - GAP;
                let border = group.y + group.height - GAP;
                (is_last, bottom, bottom + GAP, right, border)
            }
            // The line avoids the head's text, which starts at the left.
            BoxEnd::Top => {
                let border = group.y + super::HEAD_HEIGHT + GAP;
                (step.rank == 0, here.y, here.y - GAP, group.x + GAP, border)
            }
        };
        let mut x = center(here);
        points.push(Point { x, y });
        if !is_outermost {
            points.push(Point::new(x, turn));
            x = side;
            points.push(Point::new(x, turn));
        }
        points.push(Point::new(x, border));
        points.push(Point::new(center(group), border));
        current = step.group_box;
    }
}

/// The end of a box at which a line leaves or enters.
#[derive(Clone, Copy)]
enum BoxEnd {
    Top,
    Bottom,
}

struct Step {
    group_box: u32,
    rank: u32,
    n_layers: u32,
}

/// Finds the open group that contains a box, and the box's layer in it.
fn around<'a>(
    levels: &Levels<'_>,
    layout: &'a GraphLayout,
    idx: u32,
) -> Option<(&'a GraphBox, Step)> {
    let here = layout.boxes.get(idx as usize)?;
    let group_box = here.parent?;
    let group = layout.boxes.get(group_box as usize)?;
    let level = levels.of_group.get(levels.group_of_box.get(&group_box)?)?;
    let place = level.boxes.binary_search(&idx).ok()?;
    let rank = *level.layout.ranks.get(place)?;
    Some((
        group,
        Step {
            group_box,
            rank,
            n_layers: level.layout.n_layers,
        },
    ))
}

fn center(graph_box: &GraphBox) -> f64 {
    graph_box.x + graph_box.width / 2.0
}

fn drop_straight_corners(points: &mut Vec<Point>) {
    let mut kept: Vec<Point> = Vec::with_capacity(points.len());
    for &point in &*points {
        if let [.., before, last] = kept.as_slice() {
            let is_straight = (before.x == last.x && last.x == point.x)
                || (before.y == last.y && last.y == point.y);
            if is_straight {
                kept.pop();
            }
        }
        kept.push(point);
    }
    *points = kept;
}
