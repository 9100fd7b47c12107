//! The MindSpore sink: trees of every target, from made-up executions.

mod compressed;
mod kernels;
mod once;
mod ring;
mod run;
mod statistics;
#[path = "../../../store/tests/it/support/tree.rs"]
#[allow(dead_code, reason = "only one of its comparisons is used")]
mod tree;
mod volume;
mod whole_graphs;
