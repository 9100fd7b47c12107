//! Operators that were renamed, inserted, deleted, repeated.

use opscope_analysis::compare::side::OperatorExecution;

use crate::matching::{lines, matched, op, same, side, slot_lines};

const SHAPE: &[u64] = &[1, 8, 4, 4];

fn network() -> Vec<OperatorExecution> {
    vec![
        op("Conv", "conv1", &[&[1, 3, 8, 8], &[8, 3, 3, 3]], &[SHAPE]),
        same("Relu", "relu1", SHAPE),
        op("MaxPool", "pool1", &[SHAPE], &[&[1, 8, 2, 2]]),
        op("Gemm", "fc1", &[&[1, 32], &[32, 10]], &[&[1, 10]]),
        same("Softmax", "prob", &[1, 10]),
    ]
}

#[track_caller]
fn check(target: Vec<OperatorExecution>, golden: Vec<OperatorExecution>, expected: &[&str]) {
    let (target, golden) = (side(target), side(golden));
    assert_eq!(
        lines(&matched(&target, &golden), &target, &golden),
        expected
    );
}

#[test]
fn a_renamed_operator_is_found_by_its_place() {
    let mut target = network();
    target[1].op_name = "activation_7".into();
    let expected = [
        "conv1 = conv1, name",
        "activation_7 = relu1, order",
        "pool1 = pool1, name",
        "fc1 = fc1, name",
        "prob = prob, name",
    ];
    check(target, network(), &expected);
}

#[test]
fn everything_renamed_in_another_framework() {
    let words = [
        ("aten_convolution_default", "convolution"),
        ("aten_relu_default", "relu"),
        ("aten_max_pool2d_with_indices_default", "max_pool2d"),
        ("aten_addmm_default", "addmm"),
        ("aten__softmax_default", "_softmax"),
    ];
    let mut target = network();
    for (run, (op_type, op_name)) in target.iter_mut().zip(words) {
        run.op_type = op_type.into();
        run.op_name = op_name.into();
    }
    // What only passes on values is in one of them alone.
    target.insert(
        3,
        op("aten_view_default", "view", &[&[1, 8, 2, 2]], &[&[1, 32]]),
    );
    target.insert(3, same("aten_detach_default", "detach", &[1, 8, 2, 2]));
    let mut golden = network();
    golden.insert(1, same("TransData", "trans_TransData_3", SHAPE));
    let expected = [
        "convolution = conv1, order",
        "relu = relu1, order",
        "max_pool2d = pool1, order",
        "addmm = fc1, order",
        "_softmax = prob, order",
        "target: detach, missing",
        "target: view, missing",
        "golden: trans_TransData_3, missing",
    ];
    check(target, golden, &expected);
}

#[test]
fn inserted_and_deleted_operators_stay_alone() {
    let mut target = network();
    target.insert(2, same("Tanh", "extra", SHAPE));
    target.remove(4);
    let expected = [
        "conv1 = conv1, name",
        "relu1 = relu1, name",
        "pool1 = pool1, name",
        "prob = prob, name",
        "target: extra, missing",
        "golden: fc1, missing",
    ];
    check(target, network(), &expected);
}

#[test]
fn of_several_alike_the_name_tells_which_was_deleted() {
    let relus = |names: &[&str]| -> Vec<OperatorExecution> {
        names.iter().map(|name| same("Relu", name, SHAPE)).collect()
    };
    let expected = [
        "first_block_act = first_block, order",
        "third_block_act = third_block, order",
        "golden: second_block, missing",
    ];
    check(
        relus(&["first_block_act", "third_block_act"]),
        relus(&["first_block", "second_block", "third_block"]),
        &expected,
    );
}

#[test]
fn numbers_that_were_given_anew_are_no_names() {
    // One operator more at the start moves all numbers behind it.
    let target = vec![
        same("Mul", "node_0", &[1, 3]),
        op("Gemm", "node_1", &[&[1, 3]], &[&[1, 7]]),
        same("Relu", "node_2", &[1, 7]),
        op("Gemm", "node_3", &[&[1, 7]], &[&[1, 2]]),
    ];
    let golden = vec![
        op("Gemm", "node_0", &[&[1, 3]], &[&[1, 7]]),
        same("Relu", "node_1", &[1, 7]),
        op("Gemm", "node_2", &[&[1, 7]], &[&[1, 2]]),
    ];
    let expected = [
        "node_1 = node_0, order",
        "node_2 = node_1, order",
        "node_3 = node_2, order",
        "target: node_0, other_type",
    ];
    check(target, golden, &expected);
}

#[test]
fn a_replaced_operator_keeps_its_name() {
    let mut target = network();
    target[3].op_type = "Conv2D".into();
    let expected = [
        "conv1 = conv1, name",
        "relu1 = relu1, name",
        "pool1 = pool1, name",
        "fc1 = fc1, name",
        "prob = prob, name",
    ];
    check(target, network(), &expected);
}

#[test]
fn names_agree_as_file_names_have_them() {
    let target = vec![same("Relu", "net/layer.1 x\\relu", SHAPE)];
    let golden = vec![same("Relu", "net_layer_1_x_relu", SHAPE)];
    check(
        target,
        golden,
        &["net/layer.1 x\\relu = net_layer_1_x_relu, name"],
    );
}

#[test]
fn loops_match_turn_by_turn() {
    let turns = |n: usize| -> Vec<OperatorExecution> {
        let turn = |_| {
            [
                same("MatMul", "cell/mm", SHAPE),
                same("Tanh", "cell/tanh", SHAPE),
            ]
        };
        (0..n).flat_map(turn).collect()
    };
    let expected = [
        "cell/mm = cell/mm, name",
        "cell/tanh = cell/tanh, name",
        "cell/mm = cell/mm, name",
        "cell/tanh = cell/tanh, name",
        "golden: cell/mm, missing_repeat",
        "golden: cell/tanh, missing_repeat",
    ];
    check(turns(2), turns(3), &expected);
}

#[test]
fn slots_go_by_side_and_position() {
    let target = side(vec![op("Split", "s", &[&[4]], &[&[2], &[1]])]);
    let golden = side(vec![op("Split", "s", &[&[4], &[1]], &[&[2], &[1], &[1]])]);
    let matching = matched(&target, &golden);
    let expected = [
        "s:input.0 = s:input.0",
        "s:output.0 = s:output.0",
        "s:output.1 = s:output.1",
    ];
    assert_eq!(slot_lines(&matching, &target, &golden), expected);
    let missing: Vec<_> = matching.pairs[0]
        .missing
        .iter()
        .map(|slot| (slot.party.index() == 0, slot.side.name(), slot.index))
        .collect();
    assert_eq!(missing, [(false, "input", 1), (false, "output", 2)]);
}

#[test]
fn without_types_names_have_to_be_alike() {
    let target = vec![
        same("", "a", &[3]),
        same("", "encoder_attention_output_projection", SHAPE),
        same("", "zz", SHAPE),
        same("", "b", &[5]),
    ];
    let golden = vec![
        same("", "a", &[3]),
        same("", "encoder.attention.projection", SHAPE),
        same("", "b", &[5]),
    ];
    let expected = [
        "a = a, name",
        "encoder_attention_output_projection = encoder.attention.projection, fuzzy",
        "b = b, name",
        "target: zz, missing",
    ];
    check(target, golden, &expected);
}

#[test]
fn what_is_like_two_is_left_alone() {
    let target = vec![same("", "block_x_out", SHAPE), same("Foo", "end", &[2])];
    let golden = vec![
        same("", "block_a_out", SHAPE),
        same("", "block_b_out", SHAPE),
        same("Foo", "end", &[2]),
    ];
    let expected = [
        "end = end, name",
        "target: block_x_out, ambiguous",
        "golden: block_a_out, missing",
        "golden: block_b_out, missing",
    ];
    check(target, golden, &expected);
}

#[test]
fn of_nothing_comes_nothing() {
    check(vec![], vec![], &[]);
    check(
        vec![same("Relu", "a", SHAPE)],
        vec![],
        &["target: a, missing_place"],
    );
}

#[test]
fn without_an_order_nothing_goes_by_order() {
    let [target, golden] = [
        ["conv_a", "relu_b", "zz_relu"],
        ["aa_relu", "relu_b", "my_conv_a"],
    ];
    let unordered = |names: [&str; 3], times: [u64; 3]| {
        let mut one = side(names.map(|name| same("Relu", name, SHAPE)).to_vec());
        for (run, time) in one.runs.iter_mut().zip(times) {
            run.task_id = None;
            run.timestamp_us = Some(time);
        }
        one
    };
    let target = side(target.map(|name| same("Relu", name, SHAPE)).to_vec());
    // All were written at the same time.
    let unknown = unordered(golden, [5; 3]);
    let expected = [
        "conv_a = my_conv_a, fuzzy",
        "relu_b = relu_b, name",
        "zz_relu = aa_relu, fuzzy",
    ];
    assert_eq!(
        lines(&matched(&target, &unknown), &target, &unknown),
        expected
    );
    // The times show the order.
    let timed = unordered(golden, [8, 7, 6]);
    let expected = [
        "conv_a = my_conv_a, order",
        "relu_b = relu_b, name",
        "zz_relu = aa_relu, order",
    ];
    assert_eq!(lines(&matched(&target, &timed), &target, &timed), expected);
}
