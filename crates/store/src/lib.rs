//! The dump on disk.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`record`] | what is known of one operator execution: the operator, the step, its tensors |
//! | [`tree`] | one file for each directory dialect: where a record goes and what its file is called |
//! | [`file_format`] | one file for each file format: its bytes, both ways |
//! | [`dump`] | a directory of dump files, listed for reading |
//! | [`slot_table`] | a table with a row for each tensor |
//! | [`reader`] | every form of dump, read into one index of its tensors |
//! | [`regular_file`] | opening files for reading: regular files, and nothing else |
//! | [`file_bytes`] | a file's bytes in memory |
//! | [`file_parts`] | a file whose parts are read on demand |
//! | `held_elements` | elements that this process holds for itself |
//! | [`atomic_file`] | directories and files that appear whole or not at all |
//! | [`remote`] | paths that are URLs |
//! | [`removal`] | files and directories that are taken back |
//! | [`temporary`] | names of files that are being written, and removing what killed processes left of them |
//! | [`owner`] | which process something belongs to |
//! | `memory`, `space` | how much room there is in memory and on the disk |
//! | [`run_file`] | the record of a run, next to its dump |
//! | `shared_path`, `shared_text` | a path and a text that are cheap to clone |
//! | [`visible`] | text from files, so that a terminal shows it and does nothing else |
//!
//! Nothing here knows an engine, a configuration or a thread.

pub mod atomic_file;
pub mod clock;
pub mod decimal;
pub mod dump;
mod error;
pub mod file_bytes;
pub mod file_format;
pub mod file_parts;
pub mod guard;
mod held_elements;
pub mod kept_open;
mod memory;
pub mod owner;
pub mod reader;
pub mod record;
pub mod regular_file;
pub mod remote;
pub mod removal;
pub mod run_file;
mod shared_path;
mod shared_text;
pub mod slot_table;
mod space;
pub mod temporary;
pub mod tree;
pub mod visible;

pub use error::{FormatError, StoreError};
pub use held_elements::HeldElements;
pub use memory::{check_memory, free_memory_bytes, memory_bytes};
pub use shared_path::SharedPath;
pub use shared_text::SharedText;
pub use space::{FreeSpace, space};
