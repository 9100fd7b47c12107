//! Tensors, scalars and lists for two-stage operators.

use opscope_store::file_format::ascend_codes::dtype_from_graph_engine;
use opscope_tensor::Shape;

use crate::aclnn::object::{AclTensor, AclnnObjects, N_AXES_MAX, ScalarValue, dense_strides};
use crate::handle::{Handle, HandleTable};
use crate::status::{ACLNN_PARAM_INVALID, ACLNN_PARAM_NULLPTR, ACLNN_RUNTIME_ERROR};
use crate::{AclProcess, Answer, Status};

/// The arguments of `aclCreateTensor`.
#[derive(Clone, Debug, Default)]
pub struct TensorViewArguments {
    /// The shape of the view.
    pub dims: Vec<i64>,
    /// A number of `aclDataType`.
    pub data_type: i32,
    /// Strides in elements; `None` for a dense view.
    pub strides: Option<Vec<i64>>,
    /// Elements before the first one.
    pub offset: i64,
    /// A number of `aclFormat`.
    pub format: i32,
    /// The shape of the storage.
    pub storage_dims: Vec<i64>,
    /// The address of the storage; may be null.
    pub address: usize,
}

/// A list of numbers, as the functions for lists take it.
#[derive(Clone, Debug, PartialEq)]
pub enum NumberList {
    /// `aclIntArray`.
    Ints(Vec<i64>),
    /// `aclFloatArray`.
    Floats(Vec<f32>),
    /// `aclBoolArray`.
    Flags(Vec<bool>),
    /// `aclFp16Array` and `aclBf16Array`, as bits.
    Halves(Vec<u16>),
}

/// The kind of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// `aclIntArray`.
    Ints,
    /// `aclFloatArray`.
    Floats,
    /// `aclBoolArray`.
    Flags,
    /// `aclFp16Array` and `aclBf16Array`.
    Halves,
    /// `aclTensorList`.
    Tensors,
    /// `aclScalarList`.
    Scalars,
}

impl AclProcess {
    /// Reports a mistake in a call of `function`.
    pub(crate) fn aclnn_refuse(&self, status: Status, function: &str, text: &str) -> Status {
        // The vendor's codes for the three kinds of errors.
        let code = match status {
            ACLNN_PARAM_NULLPTR | ACLNN_PARAM_INVALID => "EZ1001",
            ACLNN_RUNTIME_ERROR => "EZ9903",
            _ => "EZ9999",
        };
        self.refuse(status, code, &[function, text])
    }

    /// For bindings: reports that `parameter` of `function` is null.
    pub fn aclnn_null(&self, function: &str, parameter: &str) -> Status {
        let text = format!("`{parameter}` is a null pointer");
        self.aclnn_refuse(ACLNN_PARAM_NULLPTR, function, &text)
    }

    fn aclnn_find<'a, T>(
        &self,
        table: &'a HandleTable<T>,
        handle: Handle,
        function: &str,
        parameter: &str,
        kind: &str,
    ) -> Answer<&'a T> {
        if handle == 0 {
            return Err(self.aclnn_null(function, parameter));
        }
        table.get(handle).ok_or_else(|| {
            let text = format!("`{parameter}` is not, or no longer, {kind}");
            self.aclnn_refuse(ACLNN_PARAM_INVALID, function, &text)
        })
    }

    /// `aclCreateTensor`. The memory is not read before an operator runs.
    ///
    /// # Errors
    /// `ACLNN_PARAM_INVALID` for negative dimensions, strides or offset, an unknown type, more than
    /// 64 axes, and a view or storage that exceeds the address space.
    pub fn create_tensor(&self, view: &TensorViewArguments) -> Answer<Handle> {
        let tensor = self.aclnn_tensor("aclCreateTensor", view)?;
        let handle = self.handles.next();
        Ok(self.objects().aclnn.tensors.insert(handle, tensor))
    }

    /// `aclInitTensor`: the same for an existing tensor.
    ///
    /// # Errors
    /// As for [`AclProcess::create_tensor`], and for a handle that is not a tensor.
    pub fn init_tensor(&self, handle: Handle, view: &TensorViewArguments) -> Answer {
        const FUNCTION: &str = "aclInitTensor";
        let tensor = self.aclnn_tensor(FUNCTION, view)?;
        self.change_tensor(FUNCTION, handle, |known| *known = tensor)
    }

    fn change_tensor(
        &self,
        function: &str,
        handle: Handle,
        change: impl FnOnce(&mut AclTensor),
    ) -> Answer {
        let mut objects = self.objects();
        self.aclnn_find(
            &objects.aclnn.tensors,
            handle,
            function,
            "tensor",
            "a tensor",
        )?;
        if let Some(known) = objects.aclnn.tensors.get_mut(handle) {
            change(known);
        }
        Ok(())
    }

    fn aclnn_tensor(&self, function: &str, view: &TensorViewArguments) -> Answer<AclTensor> {
        checked_tensor(view).map_err(|text| self.aclnn_refuse(ACLNN_PARAM_INVALID, function, &text))
    }

    /// Reads a property of the tensor behind a handle.
    fn aclnn_look<T>(
        &self,
        function: &str,
        handle: Handle,
        look: impl FnOnce(&AclTensor) -> T,
    ) -> Answer<T> {
        let objects = self.objects();
        let known = &objects.aclnn.tensors;
        self.aclnn_find(known, handle, function, "tensor", "a tensor")
            .map(look)
    }

    /// `aclGetViewShape`.
    ///
    /// # Errors
    /// `ACLNN_PARAM_NULLPTR` for null, `ACLNN_PARAM_INVALID` for a handle that is not a tensor.
    pub fn tensor_view_dims(&self, tensor: Handle) -> Answer<Vec<i64>> {
        self.aclnn_look("aclGetViewShape", tensor, |known| {
            known.dims.iter().map(|&n| n.cast_signed() as i64).collect()
        })
    }

    /// `aclGetStorageShape`.
    ///
    /// # Errors
    /// As for [`AclProcess::tensor_view_dims`].
    pub fn tensor_storage_dims(&self, tensor: Handle) -> Answer<Vec<i64>> {
        self.aclnn_look("aclGetStorageShape", tensor, |known| {
            known.storage_dims.clone()
        })
    }

    /// `aclGetViewStrides`.
    ///
    /// # Errors
    /// As for [`AclProcess::tensor_view_dims`].
    pub fn tensor_view_strides(&self, tensor: Handle) -> Answer<Vec<i64>> {
        self.aclnn_look("aclGetViewStrides", tensor, |known| known.strides.clone())
    }

    /// `aclGetViewOffset`.
    ///
    /// # Errors
    /// As for [`AclProcess::tensor_view_dims`].
    pub fn tensor_view_offset(&self, tensor: Handle) -> Answer<i64> {
        self.aclnn_look("aclGetViewOffset", tensor, |known| known.offset)
    }

    /// `aclGetFormat`.
    ///
    /// # Errors
    /// As for [`AclProcess::tensor_view_dims`].
    pub fn tensor_format(&self, tensor: Handle) -> Answer<i32> {
        self.aclnn_look("aclGetFormat", tensor, |known| known.format)
    }

    /// `aclGetDataType`.
    ///
    /// # Errors
    /// As for [`AclProcess::tensor_view_dims`].
    pub fn tensor_data_type(&self, tensor: Handle) -> Answer<i32> {
        self.aclnn_look("aclGetDataType", tensor, |known| known.data_type)
    }

    /// `aclGetRawTensorAddr`.
    ///
    /// # Errors
    /// As for [`AclProcess::tensor_view_dims`].
    pub fn tensor_address(&self, tensor: Handle) -> Answer<usize> {
        self.aclnn_look("aclGetRawTensorAddr", tensor, |known| known.address)
    }

    /// `aclSetRawTensorAddr`. Existing executors keep their address.
    ///
    /// # Errors
    /// As for [`AclProcess::tensor_view_dims`].
    pub fn set_tensor_address(&self, tensor: Handle, address: usize) -> Answer {
        self.change_tensor("aclSetRawTensorAddr", tensor, |known| {
            known.address = address;
        })
    }

    /// `aclDestroyTensor`.
    ///
    /// # Errors
    /// As for [`AclProcess::tensor_view_dims`].
    pub fn destroy_tensor(&self, tensor: Handle) -> Answer {
        let mut objects = self.objects();
        let known = &objects.aclnn.tensors;
        self.aclnn_find(known, tensor, "aclDestroyTensor", "tensor", "a tensor")?;
        objects.aclnn.tensors.remove(tensor);
        Ok(())
    }

    /// `aclCreateScalar`, with the bytes of the number.
    ///
    /// # Errors
    /// `ACLNN_PARAM_INVALID` for non-numeric types.
    pub fn create_scalar(&self, bytes: &[u8], data_type: i32) -> Answer<Handle> {
        let dtype = dtype_from_graph_engine(data_type);
        let scalar = dtype.and_then(|dtype| ScalarValue::read(dtype, bytes));
        let scalar = scalar.ok_or_else(|| {
            let text = format!("`dataType` is {data_type}; expected a boolean, integer or float");
            self.aclnn_refuse(ACLNN_PARAM_INVALID, "aclCreateScalar", &text)
        })?;
        let handle = self.handles.next();
        Ok(self.objects().aclnn.scalars.insert(handle, scalar))
    }

    /// `aclDestroyScalar`.
    ///
    /// # Errors
    /// `ACLNN_PARAM_NULLPTR` for null, `ACLNN_PARAM_INVALID` for a handle that is not a scalar.
    pub fn destroy_scalar(&self, scalar: Handle) -> Answer {
        let mut objects = self.objects();
        let known = &objects.aclnn.scalars;
        self.aclnn_find(known, scalar, "aclDestroyScalar", "scalar", "a scalar")?;
        objects.aclnn.scalars.remove(scalar);
        Ok(())
    }

    /// `aclCreateIntArray` and so on.
    pub fn create_number_list(&self, list: NumberList) -> Handle {
        let handle = self.handles.next();
        let objects = &mut self.objects().aclnn;
        match list {
            NumberList::Ints(list) => objects.int_arrays.insert(handle, list),
            NumberList::Floats(list) => objects.float_arrays.insert(handle, list),
            NumberList::Flags(list) => objects.bool_arrays.insert(handle, list),
            NumberList::Halves(list) => objects.half_arrays.insert(handle, list),
        }
    }

    /// `aclCreateTensorList`. The list takes ownership of the tensors.
    ///
    /// # Errors
    /// `ACLNN_PARAM_INVALID` if one of them is not a tensor.
    pub fn create_tensor_list(&self, tensors: Vec<Handle>) -> Answer<Handle> {
        let mut objects = self.objects();
        for &tensor in &tensors {
            let known = &objects.aclnn.tensors;
            self.aclnn_find(known, tensor, "aclCreateTensorList", "value", "a tensor")?;
        }
        Ok(objects
            .aclnn
            .tensor_lists
            .insert(self.handles.next(), tensors))
    }

    /// `aclCreateScalarList`. The list takes ownership of the scalars.
    ///
    /// # Errors
    /// `ACLNN_PARAM_INVALID` if one of them is not a scalar.
    pub fn create_scalar_list(&self, scalars: Vec<Handle>) -> Answer<Handle> {
        let mut objects = self.objects();
        for &scalar in &scalars {
            let known = &objects.aclnn.scalars;
            self.aclnn_find(known, scalar, "aclCreateScalarList", "value", "a scalar")?;
        }
        Ok(objects
            .aclnn
            .scalar_lists
            .insert(self.handles.next(), scalars))
    }

    /// `aclGetIntArraySize` and so on.
    ///
    /// # Errors
    /// `ACLNN_PARAM_NULLPTR` for null, `ACLNN_PARAM_INVALID` for a handle that is not a list of the
    /// kind.
    pub fn list_size(&self, function: &str, list: Handle, kind: ListKind) -> Answer<u64> {
        let objects = self.objects();
        self.list_length(&objects.aclnn, function, list, kind)
            .map(|n| n as u64)
    }

    fn list_length(
        &self,
        objects: &AclnnObjects,
        function: &str,
        list: Handle,
        kind: ListKind,
    ) -> Answer<usize> {
        let lengths = match kind {
            ListKind::Ints => objects.int_arrays.get(list).map(Vec::len),
            ListKind::Floats => objects.float_arrays.get(list).map(Vec::len),
            ListKind::Flags => objects.bool_arrays.get(list).map(Vec::len),
            ListKind::Halves => objects.half_arrays.get(list).map(Vec::len),
            ListKind::Tensors => objects.tensor_lists.get(list).map(Vec::len),
            ListKind::Scalars => objects.scalar_lists.get(list).map(Vec::len),
        };
        match lengths {
            Some(n) => Ok(n),
            None if list == 0 => Err(self.aclnn_null(function, "array")),
            None => {
                let text = "`array` is not, or no longer, a list of this kind";
                Err(self.aclnn_refuse(ACLNN_PARAM_INVALID, function, text))
            }
        }
    }

    /// `aclDestroyIntArray` and so on. Destroys the tensors or scalars of a list too.
    ///
    /// # Errors
    /// As for [`AclProcess::list_size`].
    pub fn destroy_list(&self, function: &str, list: Handle, kind: ListKind) -> Answer {
        let mut objects = self.objects();
        self.list_length(&objects.aclnn, function, list, kind)?;
        let objects = &mut objects.aclnn;
        match kind {
            ListKind::Ints => drop(objects.int_arrays.remove(list)),
            ListKind::Floats => drop(objects.float_arrays.remove(list)),
            ListKind::Flags => drop(objects.bool_arrays.remove(list)),
            ListKind::Halves => drop(objects.half_arrays.remove(list)),
            ListKind::Tensors => {
                for tensor in objects.tensor_lists.remove(list).unwrap_or_default() {
                    objects.tensors.remove(tensor);
                }
            }
            ListKind::Scalars => {
                for scalar in objects.scalar_lists.remove(list).unwrap_or_default() {
                    objects.scalars.remove(scalar);
                }
            }
        }
        Ok(())
    }
}

/// Creates the tensor of the arguments, or returns a description of the mistake.
fn checked_tensor(view: &TensorViewArguments) -> Result<AclTensor, String> {
    let dtype = dtype_from_graph_engine(view.data_type)
        .ok_or_else(|| format!("`dataType` is {}, which is not a type", view.data_type))?;
    let n_axes = view.dims.len();
    if n_axes > N_AXES_MAX || view.storage_dims.len() > N_AXES_MAX {
        return Err(format!("there are more than {N_AXES_MAX} axes"));
    }
    let dims = extents(&view.dims).ok_or_else(|| negative("viewDims", &view.dims))?;
    let storage = extents(&view.storage_dims);
    let storage = storage.ok_or_else(|| negative("storageDims", &view.storage_dims))?;
    for dims in [&dims, &storage] {
        let shape = Shape::new(dims.clone()).map_err(|error| error.to_string())?;
        // Types narrower than a byte have a size too.
        shape.n_bytes(dtype).map_err(|error| error.to_string())?;
    }
    // Null means dense.
    let strides = view.strides.clone().unwrap_or_else(|| dense_strides(&dims));
    if strides.len() != n_axes {
        return Err(format!("{n_axes} axes have {} strides", strides.len()));
    }
    if strides.iter().any(|&stride| stride < 0) {
        return Err(negative("stride", &strides));
    }
    if view.offset < 0 {
        return Err(negative("offset", &[view.offset]));
    }
    let tensor = AclTensor {
        data_type: view.data_type,
        format: view.format,
        dims,
        strides,
        offset: view.offset,
        storage_dims: view.storage_dims.clone(),
        address: view.address,
    };
    // An empty view accesses no memory, whatever its offset.
    let is_empty = tensor.dims.contains(&0);
    if !is_empty && tensor.range().is_none() {
        let (strides, offset) = (&tensor.strides, tensor.offset);
        return Err(format!(
            "strides {strides:?} with offset {offset} leave memory"
        ));
    }
    Ok(tensor)
}

fn extents(dims: &[i64]) -> Option<Vec<usize>> {
    dims.iter().map(|&n| usize::try_from(n).ok()).collect()
}

fn negative(parameter: &str, found: &[i64]) -> String {
    format!("`{parameter}` is {found:?}; expected non-negative numbers")
}
