use super::*;

const SIZE: NodeSize = NodeSize {
    width: 182.0,
    height: 24.0,
};

/// Lays out `n` nodes twice and checks the general invariants.
#[track_caller]
fn check(n: usize, edges: &[(u32, u32)], n_layers: u32) -> LayeredLayout {
    let nodes = vec![SIZE; n];
    let layout = lay_out(&nodes, edges);
    assert_eq!(layout, lay_out(&nodes, edges), "not deterministic");
    assert_eq!(layout.n_layers, n_layers);
    assert_eq!(
        (layout.corners.len(), layout.routes.len()),
        (n, edges.len())
    );
    let mut sorted: Vec<(u32, f64)> = layout
        .ranks
        .iter()
        .zip(&layout.corners)
        .map(|(rank, at)| (*rank, at.x))
        .collect();
    sorted.sort_by(|left, right| left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)));
    for pair in sorted.windows(2) {
        let is_apart = pair[0].0 != pair[1].0 || pair[1].1 - pair[0].1 >= SIZE.width + 20.0;
        assert!(is_apart, "nodes overlap: {pair:?}");
    }
    for (&(from, to), route) in edges.iter().zip(&layout.routes) {
        let is_drawn = from != to && (from as usize) < n && (to as usize) < n;
        assert_eq!(!route.is_empty(), is_drawn, "edge {from} -> {to}");
        for pair in route.windows(2) {
            assert!(
                pair[0].x == pair[1].x || pair[0].y == pair[1].y,
                "slanted: {pair:?}"
            );
        }
        for point in route {
            assert!(
                point.x >= 0.0 && point.x <= layout.width,
                "outside: {point:?}"
            );
            assert!(
                point.y >= 0.0 && point.y <= layout.height,
                "outside: {point:?}"
            );
        }
        if let (Some(first), Some(last)) = (route.first(), route.last()) {
            let center = |node: u32| layout.corners[node as usize].x + SIZE.width / 2.0;
            assert_eq!((first.x, last.x), (center(from), center(to)));
        }
    }
    layout
}

#[test]
fn small_graphs_have_the_layers_of_their_longest_path() {
    type Case = (usize, &'static [(u32, u32)], u32);
    let cases: [Case; 13] = [
        (0, &[], 0),
        (0, &[(0, 1)], 0),
        (1, &[], 1),
        (1, &[(0, 0)], 1),
        (2, &[(0, 1), (0, 1)], 2),
        (2, &[(0, 1), (1, 0)], 2),
        (2, &[(0, 2), (7, 1), (u32::MAX, 0)], 1),
        (3, &[(0, 1), (1, 2)], 3),
        (3, &[(2, 1), (1, 0)], 3),
        (3, &[(0, 1), (1, 2), (2, 0)], 3),
        (4, &[(0, 1), (0, 2), (1, 3), (2, 3)], 3),
        (4, &[(0, 1), (2, 3)], 2),
        (5, &[(0, 1), (1, 2), (2, 3), (0, 3), (4, 3)], 4),
    ];
    for (n, edges, n_layers) in cases {
        check(n, edges, n_layers);
    }
}

#[test]
fn a_wide_fan_in_stays_in_order() {
    let edges: Vec<(u32, u32)> = (0..50).map(|node| (node, 50)).collect();
    let layout = check(51, &edges, 2);
    for node in 1..50 {
        assert!(layout.corners[node - 1].x < layout.corners[node].x);
    }
}

#[test]
fn a_constant_stands_just_above_its_consumer() {
    let layout = check(5, &[(0, 1), (1, 2), (2, 3), (4, 3)], 4);
    assert_eq!(layout.ranks, [0, 1, 2, 3, 2]);
}

#[test]
fn the_main_way_of_a_residual_block_is_vertical() {
    let edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (4, 5)];
    let layout = check(6, &edges, 6);
    for corner in &layout.corners {
        assert_eq!(corner.x, layout.corners[0].x);
    }
    assert_eq!(
        layout.routes[4].len(),
        6,
        "the long edge has one bend at each end"
    );
}

#[test]
fn edges_beyond_the_bound_of_dummies_run_along_the_side() {
    let chain = (1..2_000).map(|node| (node - 1, node));
    let edges: Vec<(u32, u32)> = chain.chain((2..2_000).map(|node| (0, node))).collect();
    let layout = check(2_000, &edges, 2_000);
    let n_points: usize = layout.routes.iter().map(Vec::len).sum();
    assert!(n_points < 40_000, "{n_points} points");
}

#[test]
fn a_closing_edge_leaves_at_the_top() {
    let layout = check(2, &[(0, 1), (1, 0)], 2);
    assert_eq!(layout.routes[1][0].y, layout.corners[1].y);
}

#[test]
fn sizes_that_are_no_sizes_count_as_zero() {
    for size in [f64::NAN, f64::INFINITY, -5.0] {
        let layout = lay_out(
            &[
                NodeSize {
                    width: size,
                    height: size,
                },
                SIZE,
            ],
            &[(0, 1)],
        );
        assert!(layout.width.is_finite() && layout.height.is_finite());
    }
}
