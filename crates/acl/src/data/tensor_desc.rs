//! Descriptions of tensors.

use opscope_store::file_format::ascend_codes::dtype_from_graph_engine;
use opscope_tensor::Shape;

use crate::data_type::{self, UNDEFINED};

/// Maximum number of axes of a description.
pub(crate) const N_DIMS_MAX: usize = 128;

/// A program's description of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorDesc {
    /// The `aclDataType`.
    pub(crate) data_type: i32,
    /// The shape; negative where unknown.
    pub(crate) dims: Vec<i64>,
    /// The `aclFormat`.
    pub(crate) format: i32,
    pub(crate) name: String,
    pub(crate) origin_dims: Vec<i64>,
    pub(crate) origin_format: i32,
    /// The value, if the operator has it as a constant.
    pub(crate) constant: Option<Vec<u8>>,
}

impl TensorDesc {
    pub(crate) fn new(data_type: i32, dims: &[i64], format: i32) -> TensorDesc {
        TensorDesc {
            data_type,
            dims: dims.to_vec(),
            format,
            name: String::new(),
            origin_dims: Vec::new(),
            origin_format: UNDEFINED,
            constant: None,
        }
    }

    /// The shape, if every dimension is known and the elements fit into memory.
    pub(crate) fn shape(&self) -> Option<Shape> {
        let dims: Option<Vec<usize>> = self.dims.iter().map(|&n| usize::try_from(n).ok()).collect();
        Shape::new(dims?).ok()
    }

    /// Bytes of the elements; `None` if a dimension is unknown or they do not fit into memory.
    pub(crate) fn n_bytes(&self) -> Option<usize> {
        let shape = self.shape()?;
        match dtype_from_graph_engine(self.data_type) {
            Some(dtype) => shape.n_bytes(dtype).ok(),
            // The interface also defines sizes of types without a dtype.
            None => shape
                .n_elements()
                .checked_mul(data_type::data_type_size(self.data_type)),
        }
    }
}
