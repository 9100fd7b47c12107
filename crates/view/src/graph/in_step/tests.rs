use super::*;

fn node(path: &str, n_members: [u32; 2]) -> StepNode {
    StepNode {
        scopes: crate::graph::groups::scopes(path, None),
        n_members,
    }
}

fn members(pairs: &[(u32, u32, u32, u32)]) -> StepEdges {
    let edge = |&(from, from_place, to, to_place): &(u32, u32, u32, u32)| {
        let member = |node, place| StepMember { node, place };
        (member(from, from_place), member(to, to_place))
    };
    pairs.iter().map(edge).collect()
}

/// Two matrix products, each with a bias. The target fuses them and has an extra reshape; golden
/// has an extra cast.
fn attention() -> (Vec<StepNode>, [StepEdges; 2]) {
    let nodes = vec![
        node("/norm/Norm", [1, 1]),
        node("/attn/reshape", [1, 0]),
        node("/attn/q", [1, 2]),
        node("/attn/k", [1, 2]),
        node("/attn/v", [1, 3]),
        node("/attn/MatMul", [1, 1]),
        node("/attn/Cast", [0, 1]),
        node("/out", [1, 1]),
    ];
    let target = [
        (0, 0, 1, 0),
        (1, 0, 2, 0),
        (1, 0, 3, 0),
        (1, 0, 4, 0),
        (2, 0, 5, 0),
        (3, 0, 5, 0),
        (4, 0, 5, 0),
        (5, 0, 7, 0),
    ];
    let golden = [
        (0, 0, 2, 0),
        (0, 0, 3, 0),
        (0, 0, 4, 0),
        (2, 0, 2, 1),
        (3, 0, 3, 1),
        (4, 0, 4, 1),
        (4, 1, 4, 2),
        (4, 0, 4, 2),
        (2, 1, 5, 0),
        (3, 1, 5, 0),
        (4, 2, 5, 0),
        (5, 0, 6, 0),
        (6, 0, 7, 0),
    ];
    (nodes, [members(&target), members(&golden)])
}

/// Lays out twice and checks the general invariants of two graphs.
#[track_caller]
fn check(nodes: &[StepNode], edges: &[StepEdges; 2], open: &[&str]) -> StepLayout {
    let open: Vec<String> = open.iter().map(|path| (*path).to_owned()).collect();
    let layout = lay_out_in_step(nodes, edges, &open);
    let again = lay_out_in_step(nodes, edges, &open);
    assert_eq!(layout, again, "not deterministic");
    for (at, found) in layout.boxes.iter().enumerate() {
        let shown = &found.shown;
        assert!(shown.x >= 0.0 && shown.x + shown.width <= layout.width);
        assert!(shown.y >= 0.0 && shown.y + shown.height <= layout.height);
        assert_eq!(shown.x > layout.spine, found.side == 1, "{shown:?}");
        if let Some(parent) = shown.parent {
            assert!((parent as usize) < at, "{shown:?}");
            assert_eq!(layout.boxes[parent as usize].side, found.side);
        }
        for other in &layout.boxes[at + 1..] {
            let other = &other.shown;
            let is_apart = other.x >= shown.x + shown.width
                || other.y >= shown.y + shown.height
                || other.x + other.width <= shown.x
                || other.y + other.height <= shown.y;
            assert!(
                is_apart || other.parent != shown.parent,
                "{shown:?} meets {other:?}"
            );
        }
    }
    for pair in layout.rows.windows(2) {
        assert!(pair[1].y - pair[0].y >= 36.0, "{pair:?}");
    }
    for edge in &layout.edges {
        let ends = [edge.from, edge.to].map(|at| &layout.boxes[at as usize]);
        assert!(ends.iter().all(|end| end.side == edge.side));
        for pair in edge.points.windows(2) {
            let is_straight = pair[0].x == pair[1].x || pair[0].y == pair[1].y;
            assert!(is_straight, "slanted: {pair:?}");
        }
        for (point, end) in [edge.points.first(), edge.points.last()].iter().zip(ends) {
            let (point, shown) = (point.expect("a line has ends"), &end.shown);
            let is_at = |from: f64, length: f64, at: f64| at >= from && at <= from + length;
            let touches =
                is_at(shown.x, shown.width, point.x) && is_at(shown.y, shown.height, point.y);
            assert!(touches, "{point:?} is not at {shown:?}");
        }
    }
    layout
}

fn boxes_of(layout: &StepLayout, node: u32, side: usize) -> Vec<&GraphBox> {
    let of_node = layout
        .boxes
        .iter()
        .filter(|found| found.side == side && found.member.is_some_and(|it| it.node == node));
    of_node.map(|found| &found.shown).collect()
}

fn pairs_of(layout: &StepLayout, side: usize) -> Vec<(&str, &str)> {
    let key = |at: u32| layout.boxes[at as usize].shown.key.as_str();
    let edges = layout.edges.iter().filter(|edge| edge.side == side);
    edges.map(|edge| (key(edge.from), key(edge.to))).collect()
}

#[test]
fn partners_stand_at_one_height() {
    let (nodes, edges) = attention();
    let layout = check(&nodes, &edges, &["attn"]);
    for at in [0, 2, 3, 4, 5, 7] {
        let [target, golden] = [0, 1].map(|side| boxes_of(&layout, at, side));
        let bottom = |boxes: &[&GraphBox]| boxes.last().map(|last| last.y + last.height);
        assert_eq!(target[0].y, golden[0].y, "node {at}");
        assert_eq!(bottom(&target), bottom(&golden), "node {at}");
        assert_eq!(target[0].width, golden[0].width);
        assert_eq!(
            golden[0].x - target[0].x,
            layout.centers[1] - layout.centers[0]
        );
    }
    let groups: Vec<_> = layout
        .boxes
        .iter()
        .filter(|found| found.shown.kind == BoxKind::OpenGroup)
        .map(|found| (found.shown.key.as_str(), found.shown.y, found.shown.height))
        .collect();
    assert_eq!(groups[0].0, "target:group:attn");
    assert_eq!(groups[1].0, "golden:group:attn");
    assert_eq!((groups[0].1, groups[0].2), (groups[1].1, groups[1].2));
}

#[test]
fn a_fused_box_is_as_tall_as_those_it_replaces() {
    let (nodes, edges) = attention();
    let layout = check(&nodes, &edges, &["attn"]);
    for (at, n) in [(2, 2), (4, 3)] {
        let [target, golden] = [0, 1].map(|side| boxes_of(&layout, at, side));
        assert_eq!((target.len(), golden.len()), (1, n));
        assert!(golden.iter().all(|part| part.height == BOX_HEIGHT));
        let n = n as f64;
        assert_eq!(target[0].height, n * BOX_HEIGHT + (n - 1.0) * STACK_GAP);
    }
    // Three operators of one side and two of the other share the height.
    let layout = check(
        &[node("a", [2, 3])],
        &[members(&[(0, 0, 0, 1)]), Vec::new()],
        &[],
    );
    let heights = |side| {
        let boxes = boxes_of(&layout, 0, side);
        boxes.iter().map(|part| part.height).collect::<Vec<_>>()
    };
    assert_eq!(
        (heights(0), heights(1)),
        (vec![41.0, 41.0], vec![24.0, 24.0, 24.0])
    );
}

#[test]
fn what_has_no_partner_leaves_the_other_side_empty() {
    let (nodes, edges) = attention();
    let layout = check(&nodes, &edges, &["attn"]);
    for (at, side) in [(1, 0), (6, 1)] {
        assert_eq!(boxes_of(&layout, at, side).len(), 1);
        assert_eq!(boxes_of(&layout, at, 1 - side).len(), 0);
    }
    let alone = layout
        .rows
        .iter()
        .find(|row| row.leaves.iter().any(|leaf| leaf.nodes == [1]));
    let alone = alone.expect("the reshape has a row");
    assert_eq!(alone.leaves.len(), 1);
    assert_eq!(
        alone.leaves[0].boxes.map(|found| found.is_some()),
        [true, false]
    );
}

#[test]
fn lines_make_no_detour_around_what_only_the_other_side_has() {
    let nodes = [
        node("a", [1, 1]),
        node("cast", [0, 1]),
        node("b", [1, 1]),
        node("aside", [0, 1]),
    ];
    let golden = members(&[(0, 0, 1, 0), (1, 0, 2, 0), (0, 0, 3, 0), (3, 0, 2, 0)]);
    let layout = check(&nodes, &[members(&[(0, 0, 2, 0)]), golden], &[]);
    let target: Vec<_> = layout.edges.iter().filter(|edge| edge.side == 0).collect();
    assert_eq!(target.len(), 1);
    assert_eq!(target[0].points.len(), 2, "{:?}", target[0].points);
    // Each side routes around its own boxes.
    let both = members(&[(0, 0, 1, 0), (1, 0, 2, 0), (0, 0, 2, 0)]);
    let nodes = [node("a", [1, 1]), node("cast", [1, 1]), node("b", [1, 1])];
    let layout = check(&nodes, &[both.clone(), both], &[]);
    let longest = layout.edges.iter().map(|edge| edge.points.len()).max();
    assert!(longest > Some(2));
}

#[test]
fn each_side_has_its_own_edges() {
    let (nodes, edges) = attention();
    let layout = check(&nodes, &edges, &["attn"]);
    let [target, golden] = [0, 1].map(|side| pairs_of(&layout, side));
    assert_eq!((target.len(), golden.len()), (8, 13));
    assert!(target.contains(&("target:op:1.0", "target:op:4.0")));
    assert!(golden.contains(&("golden:op:0.0", "golden:op:2.0")));
    assert!(golden.contains(&("golden:op:4.0", "golden:op:4.2")));
    // In a closed group one line represents all edges.
    let layout = check(&nodes, &edges, &[]);
    let [target, golden] = [0, 1].map(|side| pairs_of(&layout, side));
    assert_eq!(
        target,
        [
            ("target:op:0.0", "target:group:attn"),
            ("target:group:attn", "target:op:7.0")
        ]
    );
    assert_eq!(
        golden,
        [
            ("golden:op:0.0", "golden:group:attn"),
            ("golden:group:attn", "golden:op:7.0")
        ]
    );
}

#[test]
fn rows_have_one_mark_each() {
    let (nodes, edges) = attention();
    let layout = check(&nodes, &edges, &["attn"]);
    let rows: Vec<Vec<u32>> = layout
        .rows
        .iter()
        .map(|row| {
            row.leaves
                .iter()
                .flat_map(|leaf| leaf.nodes.clone())
                .collect()
        })
        .collect();
    let expected: [&[u32]; 6] = [&[0], &[1], &[2, 3, 4], &[5], &[6], &[7]];
    assert_eq!(rows, expected);
    let layout = check(&nodes, &edges, &[]);
    let group = &layout.rows[1].leaves[0];
    assert_eq!(group.nodes, [1, 2, 3, 4, 5, 6]);
    assert_eq!(group.boxes.map(|found| found.is_some()), [true, true]);
}

#[test]
fn odd_graphs_are_survived() {
    check(&[], &[Vec::new(), Vec::new()], &[]);
    // The node is empty, and its edges are dropped.
    let edges = [members(&[(0, 0, 1, 0), (7, 0, 0, 0)]), Vec::new()];
    let layout = check(&[node("a", [0, 0]), node("b", [1, 0])], &edges, &["x"]);
    assert_eq!((layout.boxes.len(), layout.edges.len()), (1, 0));
    // Both sides run two operators in opposite order.
    let edges = [members(&[(0, 0, 1, 0)]), members(&[(1, 0, 0, 0)])];
    let layout = check(&[node("a", [1, 1]), node("b", [1, 1])], &edges, &[]);
    assert_eq!(layout.edges.len(), 2);
    // A group that only one side has.
    let nodes = [node("g/a", [0, 1]), node("g/b", [0, 1]), node("c", [1, 1])];
    let edges = [Vec::new(), members(&[(0, 0, 1, 0), (1, 0, 2, 0)])];
    for open in [&["g"][..], &[]] {
        let layout = check(&nodes, &edges, open);
        let of_target = layout.boxes.iter().filter(|found| found.side == 0);
        assert_eq!(of_target.count(), 1);
    }
}
