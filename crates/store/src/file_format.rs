//! One module for each file format. Only these modules know a byte offset.

pub mod dump_data;
pub mod mapping_csv;
pub mod npy;
pub mod npz;
pub mod protobuf;
