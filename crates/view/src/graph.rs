//! Layout of the graph: layers for a level, and levels for groups within groups.

pub mod groups;
pub mod layers;
