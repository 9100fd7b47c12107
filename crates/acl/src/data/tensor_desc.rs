//! Descriptions of tensors.

use opscope_store::file_format::ascend_codes::dtype_from_graph_engine;
use opscope_tensor::Shape;

use crate::data_type::{self, UNDEFINED};
use crate::handle::Handle;
use crate::status::INVALID_PARAM;
use crate::{Answer, Process};

/// Most axes of a description.
pub(crate) const N_DIMS_MAX: usize = 128;

/// A program's description of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorDesc {
    /// The number of `aclDataType`.
    pub(crate) data_type: i32,
    /// Extents; negative where they are not known.
    pub(crate) dims: Vec<i64>,
    /// The number of `aclFormat`.
    pub(crate) format: i32,
    pub(crate) name: String,
    pub(crate) origin_dims: Vec<i64>,
    pub(crate) origin_format: i32,
    /// The value, where the operator takes it as part of itself.
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

    /// The shape, if every extent is known and the elements fit memory.
    pub(crate) fn shape(&self) -> Option<Shape> {
        let dims: Option<Vec<usize>> = self.dims.iter().map(|&n| usize::try_from(n).ok()).collect();
        Shape::new(dims?).ok()
    }

    fn size(&self) -> usize {
        let size = || {
            let shape = self.shape()?;
            match dtype_from_graph_engine(self.data_type) {
                Some(dtype) => shape.n_bytes(dtype).ok(),
                None => shape
                    .n_elements()
                    .checked_mul(data_type::data_type_size(self.data_type)),
            }
        };
        size().unwrap_or(0)
    }
}

impl Process {
    /// `aclCreateTensorDesc`; `None` for more axes than 128.
    pub fn create_tensor_desc(&self, data_type: i32, dims: &[i64], format: i32) -> Option<Handle> {
        if dims.len() > N_DIMS_MAX {
            return None;
        }
        let handle = self.handles.next();
        let desc = TensorDesc::new(data_type, dims, format);
        Some(self.objects().tensor_descs.insert(handle, desc))
    }

    /// `aclDestroyTensorDesc`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for what is no description, or no longer.
    pub fn destroy_tensor_desc(&self, desc: Handle) -> Answer {
        let removed = self.objects().tensor_descs.remove(desc);
        removed.map(drop).ok_or(INVALID_PARAM)
    }

    fn tensor_desc<T>(&self, desc: Handle, read: impl FnOnce(&TensorDesc) -> T) -> Option<T> {
        self.objects().tensor_descs.get(desc).map(read)
    }

    fn change_tensor_desc(&self, desc: Handle, change: impl FnOnce(&mut TensorDesc)) -> Answer {
        let mut objects = self.objects();
        let known = objects.tensor_descs.get_mut(desc).ok_or(INVALID_PARAM)?;
        change(known);
        Ok(())
    }

    /// `aclGetTensorDescType`; -1 for what is no description.
    pub fn tensor_desc_data_type(&self, desc: Handle) -> i32 {
        self.tensor_desc(desc, |desc| desc.data_type)
            .unwrap_or(UNDEFINED)
    }

    /// `aclGetTensorDescFormat`; -1 for what is no description.
    pub fn tensor_desc_format(&self, desc: Handle) -> i32 {
        self.tensor_desc(desc, |desc| desc.format)
            .unwrap_or(UNDEFINED)
    }

    /// `aclGetTensorDescSize`: bytes; 0 where an extent is not known.
    pub fn tensor_desc_size(&self, desc: Handle) -> usize {
        self.tensor_desc(desc, TensorDesc::size).unwrap_or(0)
    }

    /// `aclGetTensorDescElementCount`; 0 where an extent is not known.
    pub fn tensor_desc_n_elements(&self, desc: Handle) -> usize {
        let n = |desc: &TensorDesc| desc.shape().map_or(0, |shape| shape.n_elements());
        self.tensor_desc(desc, n).unwrap_or(0)
    }

    /// `aclGetTensorDescNumDims`.
    pub fn tensor_desc_n_dims(&self, desc: Handle) -> usize {
        self.tensor_desc(desc, |desc| desc.dims.len()).unwrap_or(0)
    }

    /// `aclGetTensorDescDimV2`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for what is no description, and for an axis that is not there.
    pub fn tensor_desc_dim(&self, desc: Handle, index: usize) -> Answer<i64> {
        let dim = self.tensor_desc(desc, |desc| desc.dims.get(index).copied());
        dim.flatten().ok_or(INVALID_PARAM)
    }

    /// `aclGetTensorDescName`; empty if none was set.
    pub fn tensor_desc_name(&self, desc: Handle) -> Option<String> {
        self.tensor_desc(desc, |desc| desc.name.clone())
    }

    /// `aclSetTensorDescName`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for what is no description.
    pub fn set_tensor_desc_name(&self, desc: Handle, name: &str) -> Answer {
        self.change_tensor_desc(desc, |desc| name.clone_into(&mut desc.name))
    }

    /// `aclSetTensorShape`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for what is no description, and for more axes than 128.
    pub fn set_tensor_shape(&self, desc: Handle, dims: &[i64]) -> Answer {
        check_n_dims(dims)?;
        self.change_tensor_desc(desc, |desc| desc.dims = dims.to_vec())
    }

    /// `aclSetTensorOriginShape`: noted, and without effect.
    ///
    /// # Errors
    /// As for [`Process::set_tensor_shape`].
    pub fn set_tensor_origin_shape(&self, desc: Handle, dims: &[i64]) -> Answer {
        check_n_dims(dims)?;
        self.change_tensor_desc(desc, |desc| desc.origin_dims = dims.to_vec())
    }

    /// `aclSetTensorFormat`: how the elements lie. The format that the description was made with is the
    /// origin's from then on, unless that was set.
    ///
    /// # Errors
    /// `INVALID_PARAM` for what is no description.
    pub fn set_tensor_format(&self, desc: Handle, format: i32) -> Answer {
        self.change_tensor_desc(desc, |desc| {
            if desc.origin_format == UNDEFINED {
                desc.origin_format = desc.format;
            }
            desc.format = format;
        })
    }

    /// `aclSetTensorOriginFormat`: stands for the format of a description that has none of its own; a
    /// single operator is refused if both name axes in another order.
    ///
    /// # Errors
    /// `INVALID_PARAM` for what is no description.
    pub fn set_tensor_origin_format(&self, desc: Handle, format: i32) -> Answer {
        self.change_tensor_desc(desc, |desc| desc.origin_format = format)
    }

    /// `aclSetTensorConst`: the value that a single operator takes as part of itself.
    ///
    /// # Errors
    /// `INVALID_PARAM` for what is no description, and for no bytes.
    pub fn set_tensor_const(&self, desc: Handle, bytes: &[u8]) -> Answer {
        if bytes.is_empty() {
            return Err(INVALID_PARAM);
        }
        self.change_tensor_desc(desc, |desc| desc.constant = Some(bytes.to_vec()))
    }
}

fn check_n_dims(dims: &[i64]) -> Answer {
    if dims.len() > N_DIMS_MAX {
        return Err(INVALID_PARAM);
    }
    Ok(())
}
