//! The interface's functions: methods of [`Process`](crate::AclProcess), a file for each group.
//!
//! They call each other as methods, so a file imports another only for its types.

mod aclnn;
pub(crate) mod aclnn_objects;
mod aipp;
mod blas;
mod configuration;
mod control;
mod dataset;
mod description;
mod device;
mod dump;
mod dump_args;
mod dump_callback;
mod dump_run;
mod dump_sink;
mod event;
mod exception;
mod exception_tensors;
mod exec_config;
mod execute;
mod execution;
mod gear;
mod host_function;
mod life_cycle;
mod media;
mod memory;
mod model;
mod model_config;
mod operator;
mod overflow_status;
mod reload;
mod report;
mod single_operator;
mod stream;
mod tensor_desc;

pub(crate) use dump_args::OperatorDescriptions;

pub use blas::{MatrixProduct, MatrixProductData};
pub use media::MEDIA_ADVICE;
