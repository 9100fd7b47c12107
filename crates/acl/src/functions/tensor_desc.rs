//! Descriptions of tensors.

use crate::data::{N_DIMS_MAX, TensorDesc};
use crate::data_type::UNDEFINED;
use crate::handle::Handle;
use crate::status::INVALID_PARAM;
use crate::{AclProcess, Answer};

impl AclProcess {
    /// `aclCreateTensorDesc`; `None` for more than 128 axes.
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
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, a description.
    pub fn destroy_tensor_desc(&self, desc: Handle) -> Answer {
        let ended = self.objects().tensor_descs.take(desc);
        ended.map(drop)
    }

    fn tensor_desc<T>(&self, desc: Handle, read: impl FnOnce(&TensorDesc) -> T) -> Option<T> {
        self.objects().tensor_descs.get(desc).map(read)
    }

    fn change_tensor_desc(&self, desc: Handle, change: impl FnOnce(&mut TensorDesc)) -> Answer {
        let mut objects = self.objects();
        let known = objects.tensor_descs.find_mut(desc)?;
        change(known);
        Ok(())
    }

    /// `aclGetTensorDescType`; -1 for a handle that is not a description.
    pub fn tensor_desc_data_type(&self, desc: Handle) -> i32 {
        self.tensor_desc(desc, |desc| desc.data_type)
            .unwrap_or(UNDEFINED)
    }

    /// `aclGetTensorDescFormat`; -1 for a handle that is not a description.
    pub fn tensor_desc_format(&self, desc: Handle) -> i32 {
        self.tensor_desc(desc, |desc| desc.format)
            .unwrap_or(UNDEFINED)
    }

    /// `aclGetTensorDescSize`: bytes; 0 if a dimension is unknown.
    pub fn tensor_desc_size(&self, desc: Handle) -> usize {
        self.tensor_desc(desc, TensorDesc::n_bytes)
            .flatten()
            .unwrap_or(0)
    }

    /// `aclGetTensorDescElementCount`; 0 if a dimension is unknown.
    pub fn tensor_desc_n_elements(&self, desc: Handle) -> usize {
        let shape = self.tensor_desc(desc, TensorDesc::shape).flatten();
        shape.map_or(0, |shape| shape.n_elements())
    }

    /// `aclGetTensorDescNumDims`.
    pub fn tensor_desc_n_dims(&self, desc: Handle) -> usize {
        self.tensor_desc(desc, |desc| desc.dims.len()).unwrap_or(0)
    }

    /// `aclGetTensorDescDimV2`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a description, and for an axis out of range.
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
    /// `INVALID_PARAM` for a handle that is not a description.
    pub fn set_tensor_desc_name(&self, desc: Handle, name: &str) -> Answer {
        self.change_tensor_desc(desc, |desc| name.clone_into(&mut desc.name))
    }

    /// `aclSetTensorShape`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a description, and for more than 128 axes.
    pub fn set_tensor_shape(&self, desc: Handle, dims: &[i64]) -> Answer {
        check_n_dims(dims)?;
        self.change_tensor_desc(desc, |desc| desc.dims = dims.to_vec())
    }

    /// `aclSetTensorOriginShape`: stored, without effect.
    ///
    /// # Errors
    /// As for [`AclProcess::set_tensor_shape`].
    pub fn set_tensor_origin_shape(&self, desc: Handle, dims: &[i64]) -> Answer {
        check_n_dims(dims)?;
        self.change_tensor_desc(desc, |desc| desc.origin_dims = dims.to_vec())
    }

    /// `aclSetTensorFormat`: the layout of the elements. The format given at creation becomes the
    /// origin format, unless that was set.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a description.
    pub fn set_tensor_format(&self, desc: Handle, format: i32) -> Answer {
        self.change_tensor_desc(desc, |desc| {
            if desc.origin_format == UNDEFINED {
                desc.origin_format = desc.format;
            }
            desc.format = format;
        })
    }

    /// `aclSetTensorOriginFormat`: the default for a description without a format; a single
    /// operator is refused if the two have different axis orders.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a description.
    pub fn set_tensor_origin_format(&self, desc: Handle, format: i32) -> Answer {
        self.change_tensor_desc(desc, |desc| desc.origin_format = format)
    }

    /// `aclSetTensorConst`: the value of a single operator's constant.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a description, and for no bytes.
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
