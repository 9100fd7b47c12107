//! What a plan's purposes leave behind, from the tap to the files.

mod chosen;
mod double;
mod failures;
mod graph_inputs;
mod overflow;
mod quantising;
mod statistics;
mod to_function;
mod watch;
