use prost::bytes::Bytes;

use super::*;
use crate::onnx::schema::{
    AttributeProto, OnnxAttributeType, OnnxDataType, TensorProto, ValueInfoProto,
};

/// A graph from lines: `given: x`, `held: w b`, `gives: y`, and nodes as `Type name(key=text) x w
/// -> y`. A type may have a domain before a colon; an underscore stands for a name that is absent.
fn graph(text: &str) -> GraphProto {
    let mut graph = GraphProto::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let names = |list: &str| -> Vec<String> {
            let names = list.split_whitespace();
            names
                .map(|name| name.trim_matches('_').to_owned())
                .collect()
        };
        let values = |list: &str| -> Vec<ValueInfoProto> {
            let value = |name| ValueInfoProto {
                name,
                ..ValueInfoProto::default()
            };
            names(list).into_iter().map(value).collect()
        };
        match line.split_once(": ") {
            Some(("given", list)) => graph.input = values(list),
            Some(("gives", list)) => graph.output = values(list),
            Some(("held", list)) => {
                let weights = names(list).into_iter().map(|name| TensorProto {
                    raw_data: Some(Bytes::copy_from_slice(name.as_bytes())),
                    name,
                    ..TensorProto::default()
                });
                graph.initializer = weights.collect();
            }
            _ => graph.node.push(node(line)),
        }
    }
    graph
}

fn node(line: &str) -> NodeProto {
    let (head, output) = line.split_once(" -> ").unwrap();
    let mut words = head.split_whitespace();
    let (op_type, name) = (words.next().unwrap(), words.next().unwrap());
    let (name, attributes) = name.split_once('(').unwrap_or((name, ""));
    let attributes = attributes
        .trim_end_matches(')')
        .split(',')
        .filter_map(|a| a.split_once('='));
    let (domain, op_type) = op_type.rsplit_once(':').unwrap_or(("", op_type));
    let absent = |name: &str| name.trim_matches('_').to_owned();
    NodeProto {
        name: absent(name),
        op_type: op_type.to_owned(),
        domain: domain.to_owned(),
        input: words.map(absent).collect(),
        output: output.split_whitespace().map(absent).collect(),
        attribute: attributes.map(|(key, text)| attribute(key, text)).collect(),
        ..NodeProto::default()
    }
}

fn attribute(name: &str, text: &str) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        s: Some(Bytes::copy_from_slice(text.as_bytes())),
        r#type: Some(OnnxAttributeType::String as i32),
        ..AttributeProto::default()
    }
}

/// Checks each operator of `executed`: its origins, a bar, and what its outputs are.
fn check(original: &str, executed: &str, expected: &[&str]) {
    check_graphs(&graph(original), &graph(executed), expected);
}

fn check_graphs(original: &GraphProto, executed: &GraphProto, expected: &[&str]) {
    let found = origins(original, executed);
    let nodes = proto::all_nodes(executed);
    assert_eq!(nodes.len(), found.len());
    let line = |(node, origin): (&&NodeProto, &OperatorOrigin)| {
        let output = |output: &Option<(String, u32)>| match output {
            Some((name, index)) => format!("{name}.{index}"),
            None => "?".to_owned(),
        };
        let outputs: Vec<String> = origin.outputs.iter().map(output).collect();
        let (name, names) = (proto::node_name(node), origin.names.join(" "));
        format!("{name}: {names} | {}", outputs.join(" "))
    };
    let found: Vec<String> = nodes.iter().zip(&found).map(line).collect();
    assert_eq!(found, expected);
}

const CHAIN: &str = "
    given: x
    held: w b s
    Conv conv x w -> c
    BatchNormalization bn c s b -> n
    Relu relu n -> r
    MaxPool pool r -> y
    gives: y";

#[test]
fn an_operator_that_stayed_is_itself() {
    let expected = [
        "conv:  | conv.0",
        "bn:  | bn.0",
        "relu:  | relu.0",
        "pool:  | pool.0",
    ];
    check(CHAIN, CHAIN, &expected);
    // Nodes without a name go by their output.
    let unnamed = CHAIN
        .replace("Relu relu", "Relu _")
        .replace("Conv conv", "Conv _");
    check(
        &unnamed,
        &unnamed,
        &["c:  | c.0", "bn:  | bn.0", "r:  | r.0", "pool:  | pool.0"],
    );
}

#[test]
fn a_chain_becomes_one_operator() {
    check(
        CHAIN,
        "given: x
         held: folded
         com.microsoft:FusedConv fused x folded -> r
         MaxPool pool r -> y
         gives: y",
        &["fused: conv bn relu | relu.0", "pool:  | pool.0"],
    );
    // The same name and other inputs: not the same operator.
    check(
        CHAIN,
        "given: x
         held: folded
         Conv conv x folded -> n
         Relu relu n -> r
         MaxPool pool r -> y
         gives: y",
        &["conv: conv bn | bn.0", "relu:  | relu.0", "pool:  | pool.0"],
    );
}

#[test]
fn what_was_computed_beforehand_belongs_to_its_reader() {
    let original = "
        given: x
        held: w
        Add fold w w -> k
        Shape shape x -> d
        Gather gather d w -> g
        Add add x k -> a
        Reshape reshape a g -> y
        gives: y";
    let executed = "
        given: x
        held: k g
        Add add x k -> a
        Reshape reshape a g -> y
        gives: y";
    check(
        original,
        executed,
        &[
            "add: fold add | add.0",
            "reshape: shape gather reshape | reshape.0",
        ],
    );
}

#[test]
fn what_passes_values_on_or_is_there_twice_goes_with_the_value() {
    check(
        "given: x
         Relu first x -> a
         Identity same a -> b
         Dropout drop b -> c mask
         Exp one c -> d
         Exp two b -> e
         Add add d e -> y
         gives: y",
        "given: x
         Relu first x -> a
         Exp two a -> e
         Add add e e -> y
         gives: y",
        &[
            "first: first same drop | first.0",
            "two: one two | two.0",
            "add:  | add.0",
        ],
    );
}

#[test]
fn activations_that_quantising_does_again_leave_their_name_behind() {
    let original = "
        given: x
        held: w s
        Gemm gemm x w -> g
        Relu relu g -> r
        QuantizeLinear quantize r s -> y
        gives: y";
    let kept = "
        given: x
        held: w s
        Gemm gemm x w -> r
        QuantizeLinear quantize r s -> y
        gives: y";
    // The value that is called `r` is what was called `g`.
    check(
        original,
        kept,
        &["gemm: gemm relu | gemm.0", "quantize:  | quantize.0"],
    );
    let other = kept.replace("Gemm gemm x w", "com.microsoft:FusedGemm fused x packed");
    let other = other.replace("held: w s", "held: packed s");
    check(
        original,
        &other,
        &["fused: gemm relu | gemm.0", "quantize:  | quantize.0"],
    );
    let with_activation = other.replace("fused", "fused(activation=Relu)");
    check(
        original,
        &with_activation,
        &["fused: gemm relu | relu.0", "quantize:  | quantize.0"],
    );
}

#[test]
fn quantised_operators_take_the_casts_around_them() {
    let original = "
        given: q
        held: s w b
        DequantizeLinear dq q s -> x
        DequantizeLinear dw w s -> v
        MatMul mul x v -> m
        QuantizeLinear quantize m s -> y
        Relu other x -> z
        gives: y z";
    let executed = "
        given: q
        held: s w b
        DequantizeLinear dq q s -> x
        com.microsoft:QLinearMatMul mul q s w s -> y
        Relu other x -> z
        gives: y z";
    check(
        original,
        executed,
        &[
            "dq:  | dq.0",
            "mul: dq dw mul quantize | quantize.0",
            "other:  | other.0",
        ],
    );
    // Other integers stand for the same numbers, and are no original value.
    let shifted = "
        given: q
        held: s t w b
        DequantizeLinear dq q s -> x
        com.microsoft:QLinearMatMul mul q s w s -> u
        DequantizeLinear du u t -> d
        Relu other x -> z
        gives: d z";
    let longer = original
        .replace("-> y", "-> y\nDequantizeLinear du y s -> d")
        .replace("gives: y", "gives: d");
    check(
        &longer,
        shifted,
        &[
            "dq:  | dq.0",
            "mul: dq dw mul quantize | ?",
            "du:  | du.0",
            "other:  | other.0",
        ],
    );
}

const BLOCKS: &str = "
    given: x
    held: w k s b
    Conv conv1 x w -> c1
    Relu relu1 c1 -> r1
    Conv conv2 r1 k -> c2
    BatchNormalization bn2 c2 s b -> n2
    Add add n2 x -> a
    Relu relu2 a -> r2
    Conv conv3 r2 w -> c3
    Sigmoid sigmoid c3 -> z
    Mul mul c3 z -> m
    Pad pad m -> p
    Conv conv4 p w -> y
    gives: y";

#[test]
fn operators_on_blocked_channels_go_by_their_names() {
    check(
        BLOCKS,
        "given: x
         held: w2 k2 b2
         com.microsoft.nchwc:ReorderInput ReorderInput x -> t0
         com.microsoft.nchwc:Conv r1_nchwc t0 w2 -> t1
         com.microsoft.nchwc:Conv n2_nchwc(activation=Relu) t1 k2 b2 t0 -> t2
         com.microsoft.nchwc:Conv c3_nchwc_token_4 t2 w2 -> t3
         com.microsoft:QuickGelu new t3 -> t4
         com.microsoft.nchwc:Conv y_nchwc t4 w2 -> t5
         com.microsoft.nchwc:ReorderOutput ReorderOutput t5 -> y
         gives: y",
        &[
            "ReorderInput:  | ?",
            "r1_nchwc: conv1 relu1 | ?",
            "n2_nchwc: conv2 bn2 add relu2 | ?",
            "c3_nchwc_token_4: conv3 | ?",
            "new: sigmoid mul | ?",
            "y_nchwc: pad conv4 | ?",
            "ReorderOutput:  | conv4.0",
        ],
    );
}

#[test]
fn inserted_casts_and_layouts_have_no_origin() {
    check(
        "given: x
         held: w
         Relu relu x -> r
         MatMul mul r w -> y
         gives: y",
        "given: x
         held: w
         Cast InsertedPrecisionFreeCast_x x -> InsertedPrecisionFreeCast_x
         Relu relu InsertedPrecisionFreeCast_x -> InsertedPrecisionFreeCast_r
         Cast InsertedPrecisionFreeCast_w w -> InsertedPrecisionFreeCast_w
         com.microsoft:FusedMatMul new InsertedPrecisionFreeCast_r InsertedPrecisionFreeCast_w -> turned
         Transpose Transpose_token_1 turned -> y
         gives: y",
        &[
            "InsertedPrecisionFreeCast_x:  | ?",
            "relu:  | relu.0",
            "InsertedPrecisionFreeCast_w:  | ?",
            "new: mul | ?",
            "Transpose_token_1:  | mul.0",
        ],
    );
}

#[test]
fn parts_of_a_function_share_their_origin() {
    check(
        "given: x
         HardSwish swish x -> s
         Relu relu s -> y
         gives: y",
        "given: x
         HardSigmoid _ x -> _inlfunc_t
         Mul _ x _inlfunc_t -> s
         Relu relu s -> y
         gives: y",
        &[
            "inlfunc_t: swish | ?",
            "s: swish | swish.0",
            "relu:  | relu.0",
        ],
    );
}

#[test]
fn nothing_is_said_where_nothing_is_known() {
    // The result cannot be computed from what is read.
    check(
        "given: x z
         Add add x z -> a
         Relu relu a -> y
         gives: y",
        "given: x z
         com.example:New new x -> y
         gives: y",
        &["new:  | relu.0"],
    );
    check(
        "given: x\nRelu relu x -> y\ngives: y",
        "given: x\nOther other x -> q\ngives: q",
        &["other:  | ?"],
    );
}

fn with_bodies(line: &str, bodies: &[(&str, &str)]) -> NodeProto {
    let mut node = node(line);
    node.attribute = bodies
        .iter()
        .map(|(name, text)| AttributeProto {
            name: (*name).to_owned(),
            g: Some(graph(text)),
            r#type: Some(OnnxAttributeType::Graph as i32),
            ..AttributeProto::default()
        })
        .collect();
    node
}

const THEN: &str = "MatMul mul x w -> m\nAdd add m w -> a\nIdentity same a -> t\ngives: t";
const ELSE: &str = "Relu relu x -> e\ngives: e";

#[test]
fn bodies_are_looked_into() {
    let mut original = graph("given: x c\nheld: w\ngives: y");
    original.node.push(with_bodies(
        "If if c -> y",
        &[("then_branch", THEN), ("else_branch", ELSE)],
    ));
    let mut executed = original.clone();
    let fused = "com.microsoft:Fused fused x w w -> t\ngives: t";
    executed.node = vec![with_bodies(
        "If if c -> y",
        &[("else_branch", ELSE), ("then_branch", fused)],
    )];
    let expected = [
        "if:  | if.0",
        "relu:  | relu.0",
        "fused: mul add same | same.0",
    ];
    check_graphs(&original, &executed, &expected);
    // A body of an operator that is not there in the original.
    executed.node[0].name = "new".into();
    check_graphs(
        &original,
        &executed,
        &["new: if | if.0", "relu:  | ", "fused:  | "],
    );
}

#[test]
fn a_decided_branch_takes_its_operators_along() {
    let mut original = graph("given: x\nheld: w c\ngives: y");
    original.initializer[1].data_type = Some(OnnxDataType::Bool as i32);
    original.initializer[1].raw_data = Some(Bytes::from_static(&[1]));
    original.node.push(with_bodies(
        "If if c -> y",
        &[("else_branch", ELSE), ("then_branch", THEN)],
    ));
    let executed = graph("given: x\nheld: w\ncom.microsoft:FusedGemm fused x w w -> y\ngives: y");
    check_graphs(&original, &executed, &["fused: if mul add same | if.0"]);
}
