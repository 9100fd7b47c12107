//! Layout of the graph: layers for a level, levels for groups within groups, and two graphs in step.

pub mod groups;
pub mod in_step;
pub mod layers;
