//! One module for each file format. Only these modules know a byte offset.

pub mod dump_data;
pub mod ffts_plus;
pub mod mapping_csv;
pub mod nano;
pub mod npy;
pub mod npz;
pub mod op_debug;
pub mod protobuf;
pub mod safetensors;
pub mod stats_csv;
pub mod torch_save;
