use super::*;

fn operators(paths: &[&str]) -> Vec<OperatorNode> {
    let operator = |path: &&str| OperatorNode {
        scopes: scopes(path, None),
        ..OperatorNode::default()
    };
    paths.iter().map(operator).collect()
}

fn layer_net() -> (Vec<OperatorNode>, Vec<(u32, u32)>) {
    let paths = [
        "conv1/Conv",
        "/layer1/a/Conv",
        "/layer1/a/Relu",
        "/layer1/b/Conv",
        "/layer1/b/Relu",
        "/layer1/Add",
        "/layer2/x/Conv",
        "/layer2/x/Relu",
        "/layer2/Add",
        "weight",
        "Softmax",
    ];
    let edges = vec![
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
        (1, 5),
        (4, 5),
        (5, 6),
        (6, 7),
        (7, 8),
        (5, 8),
        (9, 6),
        (8, 10),
        (4, 10),
    ];
    (operators(&paths), edges)
}

/// Lays out a graph and checks the general invariants.
#[track_caller]
fn check(nodes: &[OperatorNode], edges: &[(u32, u32)], open: &[&str]) -> GraphLayout {
    let open: Vec<String> = open.iter().map(|path| (*path).to_owned()).collect();
    let layout = lay_out_groups(nodes, edges, &open);
    assert_eq!(
        layout,
        lay_out_groups(nodes, edges, &open),
        "not deterministic"
    );
    for (idx, inner) in layout.boxes.iter().enumerate() {
        let (right, bottom) = (inner.x + inner.width, inner.y + inner.height);
        let around = inner.parent.map(|parent| &layout.boxes[parent as usize]);
        let (left, top, width, height) =
            around.map_or((0.0, 0.0, layout.width, layout.height), |outer| {
                (
                    outer.x,
                    outer.y + HEAD_HEIGHT,
                    outer.width,
                    outer.height - HEAD_HEIGHT,
                )
            });
        assert!(
            inner.x >= left && right <= left + width,
            "{inner:?} sticks out"
        );
        assert!(
            inner.y >= top && bottom <= top + height,
            "{inner:?} sticks out"
        );
        for other in &layout.boxes[idx + 1..] {
            let is_apart = other.x >= right
                || other.y >= bottom
                || other.x + other.width <= inner.x
                || other.y + other.height <= inner.y;
            assert!(
                is_apart || other.parent != inner.parent,
                "{inner:?} meets {other:?}"
            );
        }
    }
    for edge in &layout.edges {
        let (mut from, mut to) = (
            &layout.boxes[edge.from as usize],
            &layout.boxes[edge.to as usize],
        );
        let (mut first, mut last) = (edge.points[0], edge.points[edge.points.len() - 1]);
        if first.y > last.y {
            std::mem::swap(&mut from, &mut to);
            std::mem::swap(&mut first, &mut last);
        }
        assert_eq!(
            (first.x, first.y),
            (from.x + from.width / 2.0, from.y + from.height)
        );
        assert_eq!((last.x, last.y), (to.x + to.width / 2.0, to.y));
        for pair in edge.points.windows(2) {
            assert!(
                pair[0].x == pair[1].x || pair[0].y == pair[1].y,
                "slanted: {pair:?}"
            );
        }
    }
    layout
}

fn keys(layout: &GraphLayout) -> Vec<&str> {
    layout
        .boxes
        .iter()
        .map(|inner| inner.key.as_str())
        .collect()
}

#[test]
fn scopes_come_from_the_module_or_the_name() {
    let cases: [(&str, Option<&str>, &[&str]); 8] = [
        ("", None, &[]),
        ("Conv_0", None, &[]),
        (
            "/layer2/layer2.1/conv1/Conv",
            None,
            &["layer2", "layer2.1", "conv1"],
        ),
        ("layer2//Conv", None, &["layer2"]),
        ("x", Some("layer2.1.conv1"), &["layer2", "1", "conv1"]),
        ("x", Some("Net/layer2"), &["Net", "layer2"]),
        ("a/x", Some(""), &["a"]),
        ("x", Some("."), &[]),
    ];
    for (name, module, expected) in cases {
        assert_eq!(scopes(name, module), expected, "{name} {module:?}");
    }
    assert_eq!(scopes(&"a/".repeat(1_000), None).len(), 32);
}

#[test]
fn groups_show_what_is_open() {
    let (nodes, edges) = layer_net();
    let closed = ["op:0", "group:layer1", "group:layer2", "op:10"];
    assert_eq!(keys(&check(&nodes, &edges, &[])), closed);
    // A group inside a closed one is not visible.
    assert_eq!(keys(&check(&nodes, &edges, &["layer1/a", "none"])), closed);
    assert_eq!(
        keys(&check(&nodes, &edges, &["layer1", "layer1/b", "layer2"])),
        [
            "op:0",
            "group:layer1",
            "group:layer1/a",
            "group:layer1/b",
            "op:3",
            "op:4",
            "op:5",
            "group:layer2",
            "group:layer2/x",
            "op:8",
            "op:10"
        ]
    );
}

#[test]
fn edges_between_visible_boxes_merge() {
    let (nodes, edges) = layer_net();
    let layout = check(&nodes, &edges, &[]);
    let pairs: Vec<_> = layout
        .edges
        .iter()
        .map(|edge| (edge.from, edge.to))
        .collect();
    assert_eq!(pairs, [(0, 1), (1, 2), (1, 3), (2, 3)]);
}

#[test]
fn opening_a_group_keeps_the_order_outside() {
    let nodes = operators(&["in", "a/x", "a/y", "b/x", "b/y", "c/x", "c/y", "out"]);
    let edges = [
        (0, 1),
        (1, 2),
        (0, 3),
        (3, 4),
        (0, 5),
        (5, 6),
        (2, 7),
        (4, 7),
        (6, 7),
    ];
    for open in [
        &[][..],
        &["a"],
        &["b"],
        &["c"],
        &["a", "c"],
        &["a", "b", "c"],
    ] {
        let layout = check(&nodes, &edges, open);
        let x = |key: &str| {
            layout
                .boxes
                .iter()
                .find(|inner| inner.key == key)
                .map(|inner| inner.x)
        };
        assert!(
            x("group:a") < x("group:b") && x("group:b") < x("group:c"),
            "{open:?}"
        );
    }
}

#[test]
fn operators_without_edges_stand_in_a_column() {
    let nodes = vec![OperatorNode::default(); 100];
    let layout = check(&nodes, &[], &[]);
    assert!(layout.edges.is_empty());
    for (idx, inner) in layout.boxes.iter().enumerate() {
        assert_eq!((inner.x, inner.y), (0.0, idx as f64 * 44.0));
    }
}

#[test]
fn odd_graphs_are_survived() {
    check(&[], &[], &[]);
    check(&[], &[(0, 1)], &["a"]);
    check(&operators(&["x"]), &[(0, 0), (0, 9)], &[]);
    // Operators without scopes that consume each other.
    check(
        &operators(&["x", "y", "a/p", "a/q"]),
        &[(0, 1), (1, 0), (2, 3)],
        &["a"],
    );
    // Groups that feed each other.
    let nodes = operators(&["a/p", "b/p", "a/q", "b/q"]);
    check(&nodes, &[(0, 1), (1, 2), (2, 3)], &["a", "b"]);
    check(&nodes, &[(0, 1), (1, 2), (2, 3)], &[]);
}

#[test]
fn labels_say_more_than_a_number() {
    let module = |path| OperatorNode {
        scopes: scopes("", Some(path)),
        ..OperatorNode::default()
    };
    let nodes = [
        module("layers.0.a"),
        module("layers.0.b"),
        module("layers.1"),
        module("layers.1"),
    ];
    let layout = check(&nodes, &[(0, 1), (1, 2), (2, 3)], &["layers"]);
    let labels: Vec<&str> = layout
        .boxes
        .iter()
        .map(|inner| inner.label.as_str())
        .collect();
    assert_eq!(labels, ["layers", "layers.0", "layers.1"]);
}
