//! Operators that programs call in two stages, on tensors with strides (`aclnn`).
//!
//! A row of a family's table names an operator with its parameters and the function that composes
//! it from ONNX nodes ([`OperatorCall`](call::OperatorCall)). Stage one checks the arguments,
//! builds the graph and stores both as an executor; stage two gathers the input views, runs the
//! graph in the engine, and scatters the results into the output views. Loaded graphs are cached
//! ([`GraphCache`](cache::GraphCache)) by their bytes, which contain everything that they depend
//! on.
//!
//! Files import downwards: `elements` at the bottom, then `object` and `view`, `parameter`, `call`
//! with `promotion` and `shape`, `families` above them, and `table` on top.

pub(crate) mod cache;
pub(crate) mod call;
pub(crate) mod composed;
pub(crate) mod elements;
pub(crate) mod executor;
mod families;
pub(crate) mod object;
pub(crate) mod parameter;
pub(crate) mod promotion;
pub(crate) mod row;
pub(crate) mod shape;
pub(crate) mod table;
pub(crate) mod view;
