//! One module for each directory dialect. Only these modules name a directory or file pattern.

pub mod acl;
pub mod mindspore;
pub mod own;
