//! Any text is a graph or refused, and any graph can be written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::{ms_graph_ir, ms_graph_pb};

fuzz_target!(|text: &str| {
    if let Ok(graph) = ms_graph_ir::decode(text) {
        ms_graph_ir::encode(&graph);
        let message = ms_graph_pb::encode(&graph);
        let again = ms_graph_pb::decode(&message).expect("what is written is read");
        assert_eq!(again.nodes.len(), graph.nodes.len());
    }
});
