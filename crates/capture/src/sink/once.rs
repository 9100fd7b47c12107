//! What is written once and then linked.

/// Which tensors share a file, where a sink writes one file for each tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dedup {
    /// None: every tensor has a file of its own.
    Off,
    /// Those that are the same memory of the engine: an operator's output and the inputs that it
    /// becomes, weights and constants over steps.
    #[default]
    Identity,
    /// Those whose bytes are equal, over steps, runs and ranks below the same directory.
    Content,
}
