//! Any bytes are a description of a graph or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::graph_json;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(graph) = graph_json::parse(bytes) {
        assert!(graph.version > 0);
    }
});
