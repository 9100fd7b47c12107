//! `opscope mcp`.

mod answer;
pub(crate) mod message;
