//! Any text is a graph or refused, and any graph can be written. Any text is also the value of an
//! attribute.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::{ms_graph_ir, ms_graph_pb};
use opscope_store::record::AttributeKind;
use opscope_store::record::graph::Literal;

fuzz_target!(|text: &str| {
    for r#type in [
        AttributeKind::Python,
        AttributeKind::Text,
        AttributeKind::Other,
    ] {
        Literal::from_text(text, r#type).plain_text();
    }
    if let Ok(graph) = ms_graph_ir::decode(text) {
        ms_graph_ir::encode(&graph);
        let graph = graph.completed();
        let message = ms_graph_pb::encode(&graph);
        let again = ms_graph_pb::decode(&message).expect("what is written is read");
        assert_eq!(again.nodes.len(), graph.nodes.len());
    }
});
