//! Any bytes are a graph or refused; an accepted graph round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::{ms_graph_ir, ms_graph_pb};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(graph) = ms_graph_pb::decode(bytes) {
        ms_graph_ir::encode(&graph);
        let again = ms_graph_pb::decode(&ms_graph_pb::encode(&graph));
        let again = again.expect("what is written is read");
        assert_eq!(again.nodes.len(), graph.nodes.len());
    }
});
