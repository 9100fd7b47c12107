//! Graph files of real MindSpore runs.

use std::fs;
use std::path::{Path, PathBuf};

use opscope_store::file_format::{ms_graph_ir, ms_graph_pb};
use opscope_store::record::AttributeKind;
use opscope_store::record::graph::{
    AttributeGroup, GraphAttribute, GraphDescription, GraphNode, InputOrigin, Literal, NodeSource,
};
use opscope_tensor::DType;

/// Graph files of every recorded run with this extension.
fn files(extension: &str) -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/mindspore");
    let mut files = Vec::new();
    for case in fs::read_dir(golden).unwrap() {
        let dir = case.unwrap().path().join("dump/rank_0/graphs");
        for file in fs::read_dir(dir).into_iter().flatten() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|e| e == extension) {
                files.push(path);
            }
        }
    }
    assert_eq!(files.len(), 31);
    files
}

#[test]
fn text_is_written_as_it_was_read() {
    // In the text two constants of one value look like one that is used twice; only the
    // number of nodes does.
    let is_count = |line: &str| line.starts_with("Total number of nodes: ");
    let mut n_other_counts = 0;
    for path in files("ir") {
        let text = fs::read_to_string(&path).unwrap();
        let graph = ms_graph_ir::decode(&text).unwrap();
        let written = ms_graph_ir::encode(&graph);
        assert_eq!(written.lines().count(), text.lines().count());
        for (i, (a, b)) in written.lines().zip(text.lines()).enumerate() {
            if is_count(a) && is_count(b) {
                n_other_counts += usize::from(a != b);
            } else {
                assert_eq!(a, b, "{}:{}", path.display(), i + 1);
            }
        }
        assert_eq!(ms_graph_ir::decode(&written).unwrap(), graph);
    }
    assert_eq!(n_other_counts, 1);
}

#[test]
fn messages_are_written_as_they_were_read() {
    for path in files("pb") {
        let bytes = fs::read(&path).unwrap();
        let graph = ms_graph_pb::decode(&bytes).unwrap();
        assert!(ms_graph_pb::encode(&graph) == bytes, "{}", path.display());
    }
}

/// Values of every kind, alone and in lists, and texts that could be taken for something else.
fn values() -> Vec<Literal> {
    let text = |text: &str| Literal::Text(text.to_owned());
    let int = |value| Literal::Int(Some(DType::I64), value);
    let float = |value| Literal::Float(DType::F32, value);
    let none = || Literal::Name("None".to_owned());
    let plain = vec![
        Literal::Bool(true),
        int(-3),
        float(0.5),
        float(1e-9_f32.into()),
        text("same"),
        text(""),
        text("a \"quoted\" \\d, (b\nc"),
        text("1"),
        text("true"),
        text("None"),
        none(),
        Literal::Name("F32".to_owned()),
        Literal::Name("BF16".to_owned()),
    ];
    let list = Literal::List(plain.clone());
    let tuple = Literal::Tuple(vec![int(1), list.clone(), Literal::Tuple(Vec::new())]);
    plain.into_iter().chain([list, tuple]).collect()
}

#[test]
fn attributes_of_every_kind_come_back_from_both_files() {
    for value in values() {
        let attribute = |value| GraphAttribute {
            group: AttributeGroup::Operator,
            name: "a".to_owned(),
            value,
        };
        let graph = GraphDescription {
            name: "kernel_graph0".to_owned(),
            nodes: vec![GraphNode {
                label: "CNode_0".to_owned(),
                op_type: "Conv".to_owned(),
                attributes: vec![attribute(value.clone()), attribute(Literal::Bool(false))],
                ..GraphNode::default()
            }],
            ..GraphDescription::default()
        };
        let text = ms_graph_ir::encode(&graph);
        let of_text = ms_graph_ir::decode(&text).unwrap();
        let of_message = ms_graph_pb::decode(&ms_graph_pb::encode(&graph)).unwrap();
        for found in [&of_text, &of_message] {
            let attributes = &found.nodes[0].attributes;
            assert_eq!(attributes.len(), 2, "{text}");
            assert_eq!(
                attributes[0].value.plain_text(),
                value.plain_text(),
                "{text}"
            );
            // A text stays one, and what is none does not become one.
            let is_text = |value: &Literal| matches!(value, Literal::Text(_));
            assert_eq!(is_text(&attributes[0].value), is_text(&value), "{text}");
        }
        assert_eq!(ms_graph_ir::encode(&of_text), text);
    }
}

#[test]
fn attributes_are_written_as_mindspore_writes_them() {
    let text = "  %0(a) = Conv2D() primitive_attrs: {kernel_size: (3, 3), pad_mode: \"same\", mode: I64(1), \
                gradient_scale: F32(1), is_grad: Bool(0), input_names: [x, w], dst_type: F32}";
    let graph = ms_graph_ir::decode(&format!("subgraph @g0() {{\n{text}\n}}\n")).unwrap();
    assert!(ms_graph_ir::encode(&graph).contains(text));
    let made = |text, r#type| Literal::from_text(text, r#type);
    let attributes = &graph.nodes[0].attributes;
    assert_eq!(
        made("[3, 3]", AttributeKind::Ints).plain_text(),
        attributes[0].value.plain_text()
    );
    assert_eq!(made("\"same\"", AttributeKind::Text), attributes[1].value);
    assert_eq!(made("1", AttributeKind::Int), attributes[2].value);
}

/// Facts that both files give of a node.
type Facts = (String, String, String, String, Vec<String>, Vec<String>);

fn facts(graph: &GraphDescription, node: &GraphNode) -> Facts {
    let inputs = node.inputs.iter().map(|input| match input {
        InputOrigin::Constant(_) => "constant".to_owned(),
        other => graph.input_name(other),
    });
    let operator = node.attributes.iter();
    let names = operator.filter(|a| a.group == AttributeGroup::Operator);
    let output = match node.output.tensor() {
        Some(tensor) => format!("{tensor:?}"),
        None => format!("{:?}", node.output).chars().take(8).collect(),
    };
    (
        node.op_type.clone(),
        node.full_name.clone(),
        node.scope().to_owned(),
        output,
        inputs.collect(),
        names.map(|a| a.name.clone()).collect(),
    )
}

#[test]
fn both_files_say_the_same() {
    for path in files("ir") {
        let text = ms_graph_ir::decode(&fs::read_to_string(&path).unwrap()).unwrap();
        let bytes = fs::read(path.with_extension("pb")).unwrap();
        let message = ms_graph_pb::decode(&bytes).unwrap();
        assert_eq!((text.id, &text.name), (message.id, &message.name));
        assert_eq!(text.nodes.len(), message.nodes.len(), "{}", path.display());
        assert!(text.constants.len() <= message.constants.len());
        let names = |graph: &GraphDescription| -> Vec<String> {
            graph.parameters.iter().map(|p| p.name.clone()).collect()
        };
        assert_eq!(names(&text), names(&message), "{}", path.display());
        assert_eq!(text.outputs, message.outputs);
        for (a, b) in text.nodes.iter().zip(&message.nodes) {
            assert_eq!(facts(&text, a), facts(&message, b), "{}", path.display());
            let places = |sources: &[NodeSource]| -> Vec<String> {
                sources.iter().flat_map(|s| s.lines.clone()).collect()
            };
            // The text merges the candidates that the message keeps apart.
            let of_text = places(&a.source);
            let of_message = places(&b.source);
            assert_eq!(of_text.is_empty(), of_message.is_empty());
            assert!(of_message.iter().all(|place| of_text.contains(place)));
            let is_merged = b.source.len() != 1 || a.source[0].heading.is_some();
            assert!(is_merged || of_text == of_message, "{}", path.display());
        }
    }
}
