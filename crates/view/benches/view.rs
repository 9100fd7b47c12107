//! The page's slow operations: graph layouts, distributions of large tensors, and slices.
//!
//! `cargo bench -p opscope-view`. One thread; prints the shortest of several rounds and the limit.
//! Checks every answer.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::{Duration, Instant};

use opscope_tensor::distribution;
use opscope_tensor::slice::{AxisRole, SliceAxes};
use opscope_tensor::{DType, Numbers, Shape, TensorView, stats};
use opscope_view::graph::groups::{OperatorNode, lay_out_groups, scopes};
use opscope_view::graph::in_step::{StepEdges, StepMember, StepNode, lay_out_in_step};

const N_ROUNDS: usize = 5;
/// Operators per block of the graphs.
const BLOCK: u32 = 29;
/// Elements of the large tensor, 1 GiB.
const N_ELEMENTS: usize = 1 << 28;
const N_BINS: usize = 64;
const PERCENTS: [f64; 11] = [
    0.0, 0.1, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9, 100.0,
];

fn main() {
    for (n, limit) in [(5_000, 0.05), (20_000, 0.25), (100_000, 2.0)] {
        layout(n, limit);
        in_step(n, limit);
    }
    distribution();
}

fn report(name: &str, seconds: Duration, limit: f64) {
    let seconds = seconds.as_secs_f64();
    println!(
        "{name:<48} {:8.1} ms  {:5.2} of {limit} s",
        1000.0 * seconds,
        seconds / limit
    );
}

/// Calls `work` several times; returns its last result and the shortest time.
fn timed<R>(mut work: impl FnMut() -> R) -> (R, Duration) {
    let mut shortest = Duration::MAX;
    let mut round = || {
        let start = Instant::now();
        let result = work();
        shortest = shortest.min(start.elapsed());
        result
    };
    let mut result = round();
    for _ in 1..N_ROUNDS {
        result = round();
    }
    (result, shortest)
}

/// A chain of transformer blocks, and a mask that each of them reads.
fn transformer(n: u32) -> (Vec<String>, Vec<(u32, u32)>) {
    let mut names = vec!["mask".to_owned()];
    let mut edges = Vec::new();
    let mut start = 1;
    while start + BLOCK <= n {
        for node in 0..BLOCK {
            let part = if node < 17 { "attn" } else { "mlp" };
            let layer = start / BLOCK;
            names.push(format!("/layers/layers.{layer}/{part}/op{node}/Op"));
            // Three parallel paths at the beginning, a single one after them.
            let before = if node < 10 { 3 } else { 1 };
            if node >= before {
                edges.push((start + node - before, start + node));
            }
        }
        edges.extend([(0, start + 11), (start, start + 1), (start, start + 2)]);
        if start > 1 {
            // The path through the block, and the skip connections around its halves.
            edges.extend([(start - 1, start), (start - 1, start + 17)]);
            edges.push((start + 16, start + 28));
        }
        start += BLOCK;
    }
    (names, edges)
}

fn layout(n: u32, limit: f64) {
    let (names, edges) = transformer(n);
    let node = |name: &String| OperatorNode {
        scopes: scopes(name, None),
        ..OperatorNode::default()
    };
    let nodes: Vec<OperatorNode> = names.iter().map(node).collect();
    let flat = vec![OperatorNode::default(); names.len()];
    let (closed, seconds) = timed(|| lay_out_groups(&nodes, &edges, &["layers".to_owned()]));
    assert_eq!(closed.box_of_operator.len(), names.len());
    report(
        &format!("layout, {} operators in groups", names.len()),
        seconds,
        limit,
    );
    let (open, seconds) = timed(|| lay_out_groups(&flat, &edges, &[]));
    assert_eq!(open.boxes.len(), names.len());
    // Boxes have the same height and must not overlap.
    let mut corners: Vec<(f64, f64)> = open.boxes.iter().map(|shown| (shown.y, shown.x)).collect();
    corners.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut pairs = corners.windows(2);
    assert!(
        pairs.all(|pair| pair[0].0 != pair[1].0 || pair[1].1 - pair[0].1 >= open.boxes[0].width)
    );
    report(
        &format!("layout, {} operators, {} edges", names.len(), edges.len()),
        seconds,
        limit,
    );
}

/// The same blocks on both sides. Every fifth target operator is two on the golden side, and every
/// seventh is on one side only.
fn in_step(n: u32, limit: f64) {
    let (names, pairs) = transformer(n);
    let n_members = |at: usize| -> [u32; 2] {
        match at {
            at if at % 5 == 4 => [1, 2],
            at if at % 14 == 6 => [1, 0],
            at if at % 14 == 13 => [0, 1],
            _ => [1, 1],
        }
    };
    let nodes = |is_flat: bool| -> Vec<StepNode> {
        let nodes = names.iter().enumerate().map(|(at, name)| StepNode {
            scopes: if is_flat {
                Vec::new()
            } else {
                scopes(name, None)
            },
            n_members: n_members(at),
        });
        nodes.collect()
    };
    let member = |node, place| StepMember { node, place };
    let edges = [0, 1].map(|side| {
        let last = |node: u32| (n_members(node as usize)[side]).saturating_sub(1);
        let mut edges: StepEdges = pairs
            .iter()
            .map(|&(from, to)| (member(from, last(from)), member(to, 0)))
            .collect();
        let inside = (0..names.len() as u32).filter(|&node| last(node) > 0);
        edges.extend(inside.map(|node| (member(node, 0), member(node, 1))));
        edges
    });
    for (words, nodes, open) in [
        ("in groups", nodes(false), vec!["layers".to_owned()]),
        ("in step", nodes(true), Vec::new()),
    ] {
        let (layout, seconds) = timed(|| lay_out_in_step(&nodes, &edges, &open));
        let mut tops = vec![None; nodes.len()];
        // Matched operators begin at the same height.
        for found in layout
            .boxes
            .iter()
            .filter(|found| found.shown.operators.len() == 1)
        {
            if let Some(member) = found.member.filter(|member| member.place == 0) {
                let top = tops[member.node as usize].get_or_insert(found.shown.y);
                assert_eq!(*top, found.shown.y);
            }
        }
        assert!(layout.rows.windows(2).all(|pair| pair[0].y < pair[1].y));
        let words = format!("both sides {words}, {} operators", names.len());
        report(&words, seconds, limit);
    }
}

fn distribution() {
    // A repeating sequence with known answers.
    let values: Vec<f32> = (0..1000_u16).map(|i| f32::from(i) - 500.0).collect();
    let bytes: Vec<u8> = (0..N_ELEMENTS)
        .flat_map(|at| values[at % values.len()].to_le_bytes())
        .collect();
    let Some(numbers) = Numbers::new(DType::F32, &bytes) else {
        return;
    };
    let Ok(shape) = Shape::new([N_ELEMENTS]) else {
        return;
    };
    let view = TensorView::new(DType::F32, &shape, &bytes);
    let (found, seconds) = timed(|| {
        // As the page computes it: the range comes from the statistics.
        let ends = stats(view).map(|stats| (stats.min, stats.max));
        let (low, high) = ends.clone().unwrap_or_default();
        let (counts, found) = distribution::distribution(numbers, [low, high], N_BINS, &PERCENTS);
        (ends, counts, found)
    });
    assert_eq!(found.0, Ok((-500.0, 499.0)));
    assert_eq!(found.1.iter().sum::<u64>(), N_ELEMENTS as u64);
    assert_eq!(found.2[5], Some(-1.0));
    report(
        "histogram and percentiles of 1 GiB of float32",
        seconds,
        1.0,
    );
    let dims = [64, 4096, 1024];
    let roles = [AxisRole::At(7), AxisRole::Row, AxisRole::Column];
    let Ok(axes) = SliceAxes::new(&dims, &roles) else {
        return;
    };
    let read = |at| numbers.get(at).unwrap_or(f64::NAN);
    let (picture, seconds) = timed(|| axes.draw([300, 300], read));
    assert_eq!(picture.full_size, [4096, 1024]);
    assert_eq!(picture.range.map(|range| range.0), Some(-500.0));
    report(
        "a slice of 4096 × 1024 elements, 300 × 300 pixels",
        seconds,
        0.05,
    );
}
