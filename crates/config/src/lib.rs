//! Configuration files, lowered to a [`Plan`](opscope_capture::Plan).
//!
//! Each dialect is one module of [`dialect`]; no other crate knows a configuration key. Parsing
//! collects [`ConfigIssue`]s, each with its position.

mod control;
pub mod dialect;
mod environment;
mod file_stamp;
mod issue;
mod json;
mod load;
mod report;
mod text_position;

pub use control::{ControlConfig, ControlRequests};
pub use environment::ConfigEnvironment;
pub use file_stamp::FileStamp;
pub use issue::{ConfigIssue, Severity};
pub use json::check_nesting;
pub use load::{CONFIG_BYTES_MAX, ConfigError, read_text};
pub use report::{ErrorReport, RefusalReason, SettingConflict};
pub use text_position::TextPosition;
