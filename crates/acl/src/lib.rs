//! The AscendCL process: what `aclInit`, `aclmdlSetDump`, `aclmdlExecute` and their like mean,
//! once, for every binding.
//!
//! A [`AclProcess`] holds what the interface keeps between calls. Its methods are the interface's
//! functions, with Rust's types: an [`Answer`] instead of a number and out-parameters, a slice
//! instead of a pointer and a length. Objects that the interface hands out behind pointers are
//! [`Handle`]s: numbers that are looked up and never followed, so a wrong, destroyed or invented
//! one gives a code. A binding translates types and nothing else.
//!
//! `docs/acl/process.md` says what holds when, and where this differs from the vendor's library.
//!
//! [`OPERATOR_FAMILIES`] is the table of the operators that programs call in two stages.
//!
//! Files import downwards only. At the bottom are tables and texts (`status`, `handle`, `message`,
//! …), above them the state: objects (`aipp`, `data`, `model`, `operator`, `aclnn`, `runtime`), `memory`,
//! and what is in force (`control`, `dump`, `exception`). `process` composes the state, and
//! `functions` above it holds the interface, a file for each group.

mod aclnn;
mod aipp;
mod callback;
mod capture;
mod control;
mod data;
mod data_type;
mod dump;
mod engine;
mod exception;
mod functions;
mod handle;
mod lock;
mod log;
mod media;
mod media_table;
mod memory;
mod message;
mod model;
mod objects;
mod operator;
mod overflow_status;
mod per_process;
mod process;
mod runtime;
pub mod status;

pub use aclnn::parameter::{Parameter, ParameterKind, RawArgument};
pub use aclnn::row::{OperatorFamily, OperatorRow};
pub use aclnn::table::FAMILIES as OPERATOR_FAMILIES;
pub use callback::{DumpCallback, FilePiece};
pub use data_type::{data_type_size, float_to_float16, float16_to_float};
pub use engine::engine_of_environment;
pub use exception::{ExceptionCallback, ExceptionInfo, ExceptionTensor};
pub use functions::aclnn_objects::{ListKind, NumberList, TensorViewArguments};
pub use functions::{MEDIA_ADVICE, MatrixProduct, MatrixProductData};
pub use handle::Handle;
pub use media::{MediaField, MediaKind, MediaNumber};
pub use model::{AippInfo, AippShape, ConfigValue, NamedDims};
pub use operator::AttributeValue;
pub use opscope_engine::SharedEngine;
pub use per_process::PerProcess;
pub use process::AclProcess;
pub use runtime::Work;
pub use status::{Answer, Status};
