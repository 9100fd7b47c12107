use super::*;
use crate::file_format::protobuf::MessageWriter;
use crate::record::graph::{GraphDescription, GraphNode, NodeSource};

#[test]
fn candidates_are_kept_apart() {
    let source = |lines: &[&str]| NodeSource {
        heading: Some("Corresponding code candidate".to_owned()),
        lines: lines.iter().map(|&line| line.to_owned()).collect(),
    };
    let graph = GraphDescription {
        name: "kernel_graph0".to_owned(),
        nodes: vec![GraphNode {
            source: vec![source(&["a.py:1/x/", "a.py:2/y/"]), source(&["b.py:3/z/"])],
            ..GraphNode::default()
        }],
        ..GraphDescription::default()
    };
    let found = decode(&encode(&graph)).unwrap();
    assert_eq!(found.nodes[0].source, graph.nodes[0].source);
}

#[test]
fn damage_is_refused() {
    assert!(decode(b"").is_err());
    assert!(decode(b"\x22\x05abc").is_err());
    let mut nested = MessageWriter::default();
    nested.varint_always(1, 31);
    for _ in 0..100 {
        let inner = std::mem::take(&mut nested).into_bytes();
        nested.bytes(18, &inner);
    }
    let value = nested.into_bytes();
    let mut constant = MessageWriter::default();
    constant.bytes(2, &value);
    let mut graph = MessageWriter::default();
    graph.bytes(5, &constant.into_bytes());
    let mut model = MessageWriter::default();
    model.bytes(4, &graph.into_bytes());
    let error = decode(&model.into_bytes()).unwrap_err();
    assert!(error.to_string().contains("nested"), "{error}");
}
