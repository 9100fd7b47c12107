//! Files of `torch.save`: a zip archive with a pickle of plain data, and the bytes of its tensors.
//!
//! Members, all stored without compression: `{dir}/data.pkl`, `{dir}/byteorder`, `{dir}/data/{key}` for the elements of
//! each storage, and a few that say nothing of tensors. The pickle says how to rebuild tensors from storages.
//! Source: PyTorch's serialization notes, `torch/serialization.py` and `torch/_utils.py`.

pub mod pickle;
mod write;

pub use write::write;
