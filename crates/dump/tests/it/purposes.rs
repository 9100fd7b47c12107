//! Plans of every purpose, from the tap to the files.

mod chosen;
mod double;
mod failures;
mod graph_inputs;
mod overflow;
mod quantised_model;
mod quantising;
mod statistics;
mod to_function;
mod watch;
