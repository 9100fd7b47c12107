//! Configuration files, lowered to a [`Plan`](opscope_capture::Plan).
//!
//! Each dialect is one module of [`dialect`]; no other crate knows a configuration key. Reading
//! never stops at "something is wrong": it collects [`Issue`]s, each with the place it is about.

mod control;
pub mod dialect;
mod environment;
mod file_stamp;
mod issue;
mod json;
mod load;
mod report;
mod text_position;

pub use control::{Control, ControlConfig};
pub use environment::Environment;
pub use file_stamp::FileStamp;
pub use issue::{Issue, Severity};
pub use json::check_nesting;
pub use load::{CONFIG_BYTES_MAX, ConfigError, read_text};
pub use report::{Conflict, Reason, Report};
pub use text_position::Place;
