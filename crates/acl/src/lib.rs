//! The AscendCL process: the implementation of `aclInit`, `aclmdlSetDump`, `aclmdlExecute` and so
//! on, shared by every binding.
//!
//! An [`AclProcess`] holds the state of the interface between calls. Its methods are the
//! interface's functions, with Rust's types: an [`Answer`] instead of a number and out-parameters,
//! a slice instead of a pointer and a length. Opaque pointers of the interface are [`Handle`]s:
//! numbers that are looked up and never dereferenced, so a wrong, destroyed or invented one returns
//! a code. A binding translates types and nothing else.
//!
//! `docs/acl/process.md` documents the behaviour, and differences from the vendor's library.
//!
//! [`OPERATOR_FAMILIES`] is the table of the two-stage operators.
//!
//! Files import downwards only. At the bottom are tables and messages (`status`, `handle`,
//! `message`, …), above them the state: objects (`aipp`, `data`, `model`, `operator`, `aclnn`,
//! `runtime`), `memory`, and the dumps in force (`control`, `dump`, `exception`). `process`
//! composes the state, and `functions` above it implements the interface, with a file for each
//! group.

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
