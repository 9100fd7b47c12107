//! Graph layout: layers within a level, nested groups as levels, and two graphs in step.

pub mod groups;
pub mod in_step;
pub mod layers;
