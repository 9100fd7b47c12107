//! One operator that was made of several.

use opscope_analysis::compare::matching::{FusedOperator, FusionRules, Matching, MatchingOptions};
use opscope_analysis::compare::side::{ComparedDump, OperatorExecution};
use opscope_store::record::SlotSide;

use crate::matching::{lines, matched, matched_by, op, same, side, slot_lines};

const IMAGE: &[u64] = &[1, 3, 8, 8];
const WEIGHT: &[u64] = &[8, 3, 3, 3];
const SHAPE: &[u64] = &[1, 8, 4, 4];

/// Convolution, norm and activation, between two others.
fn chain() -> Vec<OperatorExecution> {
    vec![
        same("Mul", "scale", IMAGE),
        op("Conv", "conv1", &[IMAGE, WEIGHT], &[SHAPE]),
        op("BatchNormalization", "bn1", &[SHAPE, &[8]], &[SHAPE]),
        same("Relu", "relu1", SHAPE),
        op("MaxPool", "pool", &[SHAPE], &[&[1, 8, 2, 2]]),
    ]
}

fn fused(op_type: &str, name: &str) -> Vec<OperatorExecution> {
    vec![
        same("Mul", "scale", IMAGE),
        op(op_type, name, &[IMAGE, WEIGHT, &[8]], &[SHAPE]),
        op("MaxPool", "pool", &[SHAPE], &[&[1, 8, 2, 2]]),
    ]
}

/// The lines of the middle.
fn middle(matching: &Matching, target: &ComparedDump, golden: &ComparedDump) -> Vec<String> {
    let all = lines(matching, target, golden)
        .into_iter()
        .chain(slot_lines(matching, target, golden));
    all.filter(|line| !line.contains("scale") && !line.contains("pool"))
        .collect()
}

const FUSED_SLOTS: [&str; 4] = [
    "golden: bn1, inside_fusion",
    "F:input.0 = conv1:input.0",
    "F:input.1 = conv1:input.1",
    "F:output.0 = relu1:output.0",
];

fn expected(name: &str, how: &str) -> Vec<String> {
    let mut lines = vec![format!("{name} = conv1+bn1+relu1, {how}")];
    lines.extend(
        FUSED_SLOTS[1..]
            .iter()
            .map(|line| line.replace("F:", &format!("{name}:"))),
    );
    // The norm gives its scale, so that it is a part of the pair.
    lines.insert(3, format!("{name}:input.2 = bn1:input.1"));
    lines
}

#[test]
fn what_the_dump_says_comes_before_equal_names() {
    // The fused operator has the name of one of those that it was made of.
    for name in ["conv1", "conv1relu1_x", "relu1"] {
        let mut target = fused("Conv2D", name);
        target[1].original_names = ["conv1", "bn1", "relu1"].map(str::to_owned).into();
        let (target, golden) = (side(target), side(chain()));
        let found = middle(&matched(&target, &golden), &target, &golden);
        assert_eq!(found, expected(name, "fusion"));
        // And the other way round.
        let found = matched(&golden, &target);
        assert_eq!(found.pairs[1].target[..], [1, 2, 3]);
        assert_eq!(found.pairs[1].golden[..], [1]);
    }
}

/// Where the header of a dump file names the last operator only, of whose output it is.
#[test]
fn an_output_of_another_operator_is_not_that_of_its_namesake() {
    let mut target = fused("Conv2D", "conv1");
    target[1].original_names = ["relu1".to_owned()].into();
    target[1].slots[3].set_original(("relu1".to_owned(), 0));
    let (target, golden) = (side(target), side(chain()));
    let matching = matched(&target, &golden);
    let slots = slot_lines(&matching, &target, &golden);
    assert!(
        slots.contains(&"conv1:output.0 = relu1:output.0".to_owned()),
        "{slots:?}"
    );
    // The other side is fused as well, and does not say so.
    let golden = side(fused("Conv2D", "conv1"));
    assert_eq!(
        lines(&matched(&target, &golden), &target, &golden)[1],
        "conv1 = conv1, name"
    );
}

#[test]
fn an_operator_without_a_slot_in_common_is_inside() {
    let mut target = fused("Conv2D", "f");
    target[1].original_names = ["conv1", "bn1", "relu1"].map(str::to_owned).into();
    target[1].slots.remove(2);
    let (target, golden) = (side(target), side(chain()));
    let found = middle(&matched(&target, &golden), &target, &golden);
    assert_eq!(found[0], "f = conv1+relu1, fusion");
    assert_eq!(found[1..], FUSED_SLOTS.map(|line| line.replace("F:", "f:")));
}

#[test]
fn outputs_go_to_what_they_were() {
    let mut target = vec![op("Fused", "f", &[&[4]], &[&[4], &[4]])];
    target[0].slots[1].set_original(("b".to_owned(), 0));
    target[0].slots[2].set_original(("a".to_owned(), 1));
    target[0].original_names = ["b".to_owned(), "a".to_owned()].into();
    let golden = vec![
        op("Split", "a", &[&[4]], &[&[4], &[4]]),
        same("Relu", "b", &[4]),
    ];
    let (target, golden) = (side(target), side(golden));
    let matching = matched(&target, &golden);
    assert_eq!(lines(&matching, &target, &golden), ["f = a+b, fusion"]);
    let expected = [
        "f:input.0 = a:input.0",
        "f:output.0 = b:output.0",
        "f:output.1 = a:output.1",
    ];
    assert_eq!(slot_lines(&matching, &target, &golden), expected);
    let is_inner: Vec<bool> = matching.pairs[0]
        .missing
        .iter()
        .map(|slot| slot.is_inner)
        .collect();
    assert_eq!(is_inner, [true, true]);
}

#[test]
fn rules_of_the_compiler_say_it_where_the_dump_does_not() {
    let rules: FusionRules = [FusedOperator {
        name: "f".to_owned(),
        originals: ["conv1", "bn1", "relu1"].map(str::to_owned).to_vec(),
        outputs: vec![Some(("relu1".to_owned(), 0))],
    }]
    .into_iter()
    .collect();
    let (target, golden) = (side(fused("Conv2D", "f")), side(chain()));
    let options = MatchingOptions {
        target_fusion: Some(rules),
        no_guesses: true,
        ..MatchingOptions::default()
    };
    let found = middle(&matched_by(&target, &golden, &options), &target, &golden);
    assert_eq!(found, expected("f", "fusion"));
    let without = MatchingOptions {
        no_guesses: true,
        ..MatchingOptions::default()
    };
    assert_eq!(matched_by(&target, &golden, &without).pairs.len(), 2);
}

#[test]
fn the_end_of_a_chain_that_was_not_dumped_is_not_made_up() {
    let mut target = fused("Conv2D", "f");
    target[1].original_names = ["conv1", "bn1", "relu1"].map(str::to_owned).into();
    let mut golden = chain();
    golden.remove(3);
    let (target, golden) = (side(target), side(golden));
    let matching = matched(&target, &golden);
    let outputs = slot_lines(&matching, &target, &golden);
    assert!(
        !outputs.iter().any(|line| line.starts_with("f:output")),
        "{outputs:?}"
    );
}

#[test]
fn both_sides_fused_alike_match_by_name_or_originals() {
    let with = |name: &str| {
        let mut runs = fused("Conv2D", name);
        runs[1].original_names = ["conv1", "bn1", "relu1"].map(str::to_owned).into();
        side(runs)
    };
    for (a, b, how) in [("conv1", "conv1", "name"), ("f1", "f2", "fusion")] {
        let (target, golden) = (with(a), with(b));
        let found = lines(&matched(&target, &golden), &target, &golden);
        assert_eq!(found[1], format!("{a} = {b}, {how}"));
    }
}

#[test]
fn one_that_became_several() {
    let mut target = vec![
        op("MatMul", "fc_part1", &[&[1, 4]], &[&[1, 9]]),
        op("Add", "fc_part2", &[&[1, 9], &[9]], &[&[1, 9]]),
    ];
    for run in &mut target {
        run.original_names = ["fc".to_owned()].into();
    }
    let golden = vec![op("Gemm", "fc", &[&[1, 4], &[9]], &[&[1, 9]])];
    let (target, golden) = (side(target), side(golden));
    let matching = matched(&target, &golden);
    assert_eq!(
        lines(&matching, &target, &golden),
        ["fc_part1+fc_part2 = fc, fusion"]
    );
    let expected = [
        "fc_part1:input.0 = fc:input.0",
        "fc_part2:input.1 = fc:input.1",
        "fc_part2:output.0 = fc:output.0",
    ];
    assert_eq!(slot_lines(&matching, &target, &golden), expected);
}

#[test]
fn names_that_are_made_of_names() {
    for name in [
        "conv1+bn1+relu1",
        "conv1_bn1_relu1",
        "fused_conv1_bn1_relu1_op",
        "conv1bn1relu1",
        "conv1_bn1_relu1_fusion_3",
    ] {
        let (target, golden) = (side(fused("Conv2D", name)), side(chain()));
        let found = middle(&matched(&target, &golden), &target, &golden);
        assert_eq!(found, expected(name, "fusion"), "{name}");
    }
    // Below a scope, the parts need not repeat it.
    let scoped = |mut runs: Vec<OperatorExecution>| {
        for run in &mut runs {
            run.op_name = format!("net/block.1/{}", run.op_name).into();
        }
        side(runs)
    };
    let (target, golden) = (scoped(fused("Conv2D", "conv1_bn1_relu1")), scoped(chain()));
    assert_eq!(matched(&target, &golden).pairs[1].golden[..], [1, 2, 3]);
    // Not in this order, or with a word that says nothing.
    for name in ["relu1_bn1_conv1", "conv1_wrong_relu1"] {
        let mut runs = fused("Conv2D", name);
        // What the others of the chain read would tell as well.
        runs[1]
            .slots
            .retain(|slot| slot.side == SlotSide::Output || slot.index == 0);
        let (target, golden) = (side(runs), side(chain()));
        let matching = matched(&target, &golden);
        let hows: Vec<&str> = matching
            .pairs
            .iter()
            .map(|pair| pair.how.evidence().name())
            .collect();
        assert!(!hows.contains(&"fusion"), "{name}: {hows:?}");
    }
}

#[test]
fn a_lone_operator_where_the_other_side_has_a_chain() {
    // A type that no table has.
    let (target, golden) = (side(fused("ConvBnActivation", "x17")), side(chain()));
    let found = middle(&matched(&target, &golden), &target, &golden);
    assert_eq!(found, expected("x17", "fusion"));
    // One that is in the chain, as it is, is that one.
    let (target, golden) = (
        side(vec![same("Mul", "a", &[4]), same("Relu", "x", &[4])]),
        side(vec![
            same("Mul", "a", &[4]),
            same("Relu", "r", &[4]),
            same("Tanh", "t", &[4]),
        ]),
    );
    let expected = ["a = a, name", "x = r, order", "golden: t, missing"];
    assert_eq!(
        lines(&matched(&target, &golden), &target, &golden),
        expected
    );
}

#[test]
fn a_product_is_no_chain_that_adds_a_bias() {
    let x: &[u64] = &[2, 9, 16];
    let flat: &[u64] = &[18, 16];
    let golden = |inputs: &[&[u64]]| {
        side(vec![
            same("Gelu", "gelu", x),
            op("MatMul", "down", inputs, &[&[2, 9, 8]]),
        ])
    };
    let target = side(vec![
        same("Gelu", "gelu", x),
        op("aten_view_default", "view", &[x], &[flat]),
        op(
            "aten_addmm_default",
            "addmm",
            &[&[8], flat, &[16, 8]],
            &[&[18, 8]],
        ),
        op(
            "aten__unsafe_view_default",
            "_unsafe_view",
            &[&[18, 8]],
            &[&[2, 9, 8]],
        ),
    ]);
    for (inputs, chain) in [
        (&[x, &[16, 8]][..], "golden: down, missing"),
        (
            &[x, &[16, 8], &[8]],
            "view+addmm+_unsafe_view = down, fusion",
        ),
    ] {
        let golden = golden(inputs);
        let found = lines(&matched(&target, &golden), &target, &golden);
        assert!(found.contains(&chain.to_owned()), "{found:?}");
    }
}
