//! One module for each file format. Only these modules know a byte offset.

pub mod ascend_codes;
pub mod dump_data;
pub mod execution_order;
pub mod ffts_plus;
pub mod gears_json;
pub mod graph_json;
pub mod hdf5;
mod json_object;
pub mod mapping_csv;
pub mod ms_dtype;
pub mod ms_graph_ir;
pub mod ms_graph_pb;
pub mod ms_json;
pub mod nano;
pub mod npy;
pub mod npy_zst;
pub mod npz;
pub mod number_text;
pub mod op_debug;
pub mod polygraphy_json;
pub mod protobuf;
pub mod run_json;
pub mod safetensors;
pub mod statistic_csv;
pub mod stats_csv;
pub mod torch_save;
pub mod zstd;
