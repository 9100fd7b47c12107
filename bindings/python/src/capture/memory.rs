//! The memory of torch's tensors: the only file of this crate that dereferences addresses.
//!
//! A tensor's address, dtype and shape come from torch's DLPack table of C functions if available
//! (2.10 and later), and otherwise from the tensor's attributes, which is ten times slower. Only
//! plain tensors are queried: those of a subclass may have no memory, or memory with another
//! meaning.

#![expect(
    unsafe_code,
    reason = "torch says where a tensor is as an address; each use says who keeps the memory"
)]

use std::ffi::{CStr, c_int, c_void};
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;

use opscope_tensor::{DType, Shape, SharedBytes, Tensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use super::element_type::{self, ElementType};
use super::reason::{UnseenReason, attribute_text};
use super::release::ReleaseQueue;

/// Attributes with the table, newest name first.
const TABLE_ATTRIBUTES: [&str; 2] = ["__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"];
const TABLE_NAME: &CStr = c"dlpack_exchange_api";
/// The supported version of DLPack's structures; later minor ones only add to it.
const MAJOR_VERSION: u32 = 1;
/// CPU memory, and pinned CPU memory.
const CPU: [i32; 2] = [1, 3];

/// DLPack's `DLDevice`.
#[repr(C)]
struct DlDevice {
    kind: i32,
    index: i32,
}

/// DLPack's `DLDataType`.
#[repr(C)]
struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// DLPack's `DLTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    n_axes: i32,
    dtype: DlDataType,
    shape: *const i64,
    /// Null for contiguous tensors.
    strides: *const i64,
    byte_offset: u64,
}

/// The used part of DLPack's `DLPackExchangeAPI`.
#[repr(C)]
struct ExchangeTable {
    major: u32,
    minor: u32,
    previous: *const c_void,
    allocate: *const c_void,
    from_object: *const c_void,
    to_object: *const c_void,
    borrow: Option<Borrow>,
}

/// Describes a tensor without taking a reference; valid while the caller holds the object.
type Borrow = unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int;

/// Describes the memory of tensors.
pub(super) struct TensorLender {
    /// The types of plain tensors.
    plain: Vec<Py<PyType>>,
    borrow: Option<Borrow>,
    bytes: ByteTypes,
    /// Whether CPU memory is treated as a device's, as in tests without a device.
    is_host_claimed: bool,
}

/// The kind of memory that a tensor is expected in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemoryOwner {
    Host,
    Device,
}

/// Torch's byte-sized dtypes.
struct ByteTypes([Py<PyAny>; 2]);

impl ByteTypes {
    fn new(py: Python<'_>) -> PyResult<ByteTypes> {
        let torch = py.import("torch")?;
        let (signed, unsigned) = (torch.getattr("int8")?, torch.getattr("uint8")?);
        Ok(ByteTypes([signed.unbind(), unsigned.unbind()]))
    }

    fn are_of(&self, tensor: &Bound<'_, PyAny>) -> bool {
        let dtype = tensor.getattr(intern!(tensor.py(), "dtype"));
        dtype.is_ok_and(|dtype| self.0.iter().any(|known| dtype.is(known)))
    }
}

/// A plain tensor in CPU memory.
pub(super) struct LentTensor<'a, 'py> {
    object: &'a Bound<'py, PyAny>,
    memory: TensorMemory,
}

/// The location of a plain tensor, in the CPU's or a device's memory.
pub(super) struct TensorMemory {
    /// Address of the first element.
    pub(super) address: usize,
    /// From the first element to the end of the last one.
    n_bytes: usize,
    /// The dtype in memory, element by element.
    pub(super) dtype: DType,
    /// The dtype of the values packed into each element, if any are.
    packed: Option<DType>,
    pub(super) shape: Shape,
    /// In elements, none negative; `None` if contiguous in row-major order.
    pub(super) strides: Option<Vec<isize>>,
}

impl TensorLender {
    /// `plain` are `torch.Tensor` and subclasses that only add a name.
    pub(super) fn new(py: Python<'_>, plain: &[Bound<'_, PyType>]) -> PyResult<TensorLender> {
        let borrow = match plain.first() {
            Some(tensor) => find_borrow(tensor)?,
            None => None,
        };
        Ok(TensorLender {
            plain: plain.iter().map(|plain| plain.clone().unbind()).collect(),
            borrow,
            bytes: ByteTypes::new(py)?,
            is_host_claimed: false,
        })
    }

    /// Treats CPU tensors as those of a device if `is_claimed`.
    pub(super) fn with_host_claimed(self, is_claimed: bool) -> TensorLender {
        TensorLender {
            is_host_claimed: is_claimed,
            ..self
        }
    }

    /// Whether torch's C functions describe tensors.
    pub(super) fn has_table(&self) -> bool {
        self.borrow.is_some()
    }

    /// Whether the object is a plain tensor.
    pub(super) fn knows(&self, object: &Bound<'_, PyAny>) -> bool {
        let found = object.get_type();
        self.plain.iter().any(|plain| found.is(plain))
    }

    /// The location of the tensor, or why it is unknown.
    pub(super) fn look<'a, 'py>(
        &self,
        object: &'a Bound<'py, PyAny>,
    ) -> Result<LentTensor<'a, 'py>, UnseenReason> {
        if self.is_host_claimed && self.knows(object) {
            return Err(UnseenReason::Device);
        }
        self.look_on_host(object)
    }

    /// Likewise for our own tensor, such as a copy of another one.
    pub(super) fn look_on_host<'a, 'py>(
        &self,
        object: &'a Bound<'py, PyAny>,
    ) -> Result<LentTensor<'a, 'py>, UnseenReason> {
        let memory = self.describe(object, MemoryOwner::Host)?;
        Ok(LentTensor { object, memory })
    }

    /// The location of a device tensor, whose memory cannot be read here.
    pub(super) fn look_on_device(
        &self,
        object: &Bound<'_, PyAny>,
    ) -> Result<TensorMemory, UnseenReason> {
        let owner = if self.is_host_claimed {
            MemoryOwner::Host
        } else {
            MemoryOwner::Device
        };
        self.describe(object, owner)
    }

    fn describe(
        &self,
        object: &Bound<'_, PyAny>,
        owner: MemoryOwner,
    ) -> Result<TensorMemory, UnseenReason> {
        if !self.knows(object) {
            return Err(UnseenReason::of_type(&object.get_type()));
        }
        match self.borrow {
            Some(borrow) => describe_by_table(borrow, &self.bytes, object, owner),
            None => describe_by_attributes(object, owner),
        }
    }
}

impl TensorMemory {
    fn new(
        address: usize,
        dtype: ElementType,
        dims: &[i64],
        strides: Option<&[i64]>,
    ) -> Result<TensorMemory, UnseenReason> {
        let dims: Option<Vec<usize>> = dims.iter().map(|&dim| dim.try_into().ok()).collect();
        let shape = dims.and_then(|dims| Shape::new(dims).ok());
        let shape = shape.ok_or(UnseenReason::Shape)?;
        let strides = match strides {
            Some(strides) => {
                let strides = strides.iter().map(|&stride| isize::try_from(stride).ok());
                let strides: Vec<isize> =
                    strides.collect::<Option<_>>().ok_or(UnseenReason::Shape)?;
                // Only tensors without strides can be shared or copied directly, so redundant
                // strides are dropped here.
                (!is_dense(&shape, &strides)).then_some(strides)
            }
            None => None,
        };
        let width = dtype.stored.bytes().ok_or(UnseenReason::Shape)?;
        let n_elements = span(&shape, strides.as_deref()).ok_or(UnseenReason::Shape)?;
        let n_bytes = n_elements.checked_mul(width).ok_or(UnseenReason::Shape)?;
        if n_bytes > 0 && address == 0 {
            return Err(UnseenReason::NoMemory);
        }
        Ok(TensorMemory {
            address,
            n_bytes,
            dtype: dtype.stored,
            packed: dtype.packed,
            shape,
            strides,
        })
    }

    /// Whether elements are dense in another order than row-major.
    pub(super) fn is_permuted(&self) -> bool {
        let Some(strides) = &self.strides else {
            return false;
        };
        let dims = self.shape.iter().copied();
        let mut axes: Vec<_> = strides.iter().copied().zip(dims).collect();
        // An axis of one element may have any stride, which would break the chain below.
        axes.retain(|&(_, dim)| dim != 1);
        axes.sort_unstable();
        let mut expected = 1;
        axes.into_iter().all(|(stride, dim)| {
            let is_next = stride == expected;
            expected = expected.saturating_mul(dim.cast_signed());
            is_next
        })
    }

    /// Address and size of the memory.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.address, self.n_bytes)
    }

    /// Whether elements hold several packed values.
    pub(super) fn is_packed(&self) -> bool {
        self.packed.is_some()
    }

    /// Dtype and shape of the packed values, or of the elements.
    pub(super) fn unpacked(&self) -> Result<(DType, Shape), UnseenReason> {
        Ok(match self.packed {
            Some(packed) => (packed, unpacked(&self.shape)?),
            None => (self.dtype, self.shape.clone()),
        })
    }
}

impl<'py> LentTensor<'_, 'py> {
    /// The memory from the first element to the end of the last one.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: torch has just said that elements of this dtype, shape and strides begin at the
        // address, and `object` keeps the tensor, and with it its memory, for as long as `self`
        // lives.
        unsafe { bytes_at(self.address, self.n_bytes) }
    }

    /// A tensor of these elements, from contiguous `bytes`.
    pub(super) fn tensor(&self, bytes: SharedBytes) -> Result<Tensor, UnseenReason> {
        let (dtype, shape) = self.unpacked()?;
        Tensor::new(dtype, shape, bytes).map_err(|_| UnseenReason::Shape)
    }

    /// The memory beyond this call, keeping the tensor alive. The caller guarantees that it is not
    /// written meanwhile.
    pub(super) fn hold(&self, released: &Arc<ReleaseQueue>) -> HeldMemory {
        HeldMemory {
            object: Some(self.object.clone().unbind()),
            address: self.address,
            n_bytes: self.n_bytes,
            released: released.clone(),
        }
    }

    /// The same, with a Python object that is released together with the tensor.
    pub(super) fn hold_with(
        &self,
        lease: &Bound<'py, PyAny>,
        released: &Arc<ReleaseQueue>,
    ) -> HeldMemory {
        let object = (self.object.clone(), lease.clone()).into_pyobject(self.object.py());
        HeldMemory {
            // Creating a pair fails only when out of memory; then the tensor alone is held.
            object: Some(
                object
                    .map_or_else(|_| self.object.clone(), Bound::into_any)
                    .unbind(),
            ),
            address: self.address,
            n_bytes: self.n_bytes,
            released: released.clone(),
        }
    }

    /// The interpreter of this borrow.
    pub(super) fn py(&self) -> Python<'py> {
        self.object.py()
    }

    /// The location without access.
    pub(super) fn into_memory(self) -> TensorMemory {
        self.memory
    }
}

impl Deref for LentTensor<'_, '_> {
    type Target = TensorMemory;

    fn deref(&self) -> &TensorMemory {
        &self.memory
    }
}

impl HeldMemory {
    /// Whether the tensor still has the same memory as when it was held: if its storage was
    /// resized, it must not be read through this.
    pub(super) fn is_still(&self, lent: &LentTensor<'_, '_>) -> bool {
        self.address == lent.address && self.n_bytes == lent.n_bytes
    }

    /// Whether this memory contains all bytes of `lent`.
    pub(super) fn covers(&self, lent: &LentTensor<'_, '_>) -> bool {
        let is_inside =
            lent.address.saturating_add(lent.n_bytes) <= self.address.saturating_add(self.n_bytes);
        self.address <= lent.address && is_inside
    }

    /// The tensor; `None` only while being dropped.
    pub(super) fn object(&self) -> Option<&Py<PyAny>> {
        self.object.as_ref()
    }
}

/// Memory of a tensor, kept alive.
pub(super) struct HeldMemory {
    /// `None` only while being dropped.
    object: Option<Py<PyAny>>,
    address: usize,
    n_bytes: usize,
    released: Arc<ReleaseQueue>,
}

impl AsRef<[u8]> for HeldMemory {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: made by `LentTensor::hold` of memory that was readable then; the reference to the
        // object keeps the tensor, which keeps its memory.
        unsafe { bytes_at(self.address, self.n_bytes) }
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        // A writer's thread must not wait for the interpreter.
        if let Some(object) = self.object.take() {
            self.released.push(object);
        }
    }
}

/// # Safety
/// Unless `n_bytes` is 0, that many bytes at `address` have to be readable while the slice is used.
unsafe fn bytes_at<'a>(address: usize, n_bytes: usize) -> &'a [u8] {
    if n_bytes == 0 {
        return &[];
    }
    // SAFETY: the caller says so; bytes need no alignment.
    unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(address), n_bytes) }
}

/// The function that describes tensors; `None` if this torch has no supported one.
fn find_borrow(tensor: &Bound<'_, PyType>) -> PyResult<Option<Borrow>> {
    for attribute in TABLE_ATTRIBUTES {
        let Some(found) = tensor.getattr_opt(attribute)? else {
            continue;
        };
        let Ok(capsule) = found.cast::<PyCapsule>() else {
            continue;
        };
        let Ok(table) = capsule.pointer_checked(Some(TABLE_NAME)) else {
            continue;
        };
        // SAFETY: a capsule of this name holds DLPack's table, whose two first fields are the
        // version in every version; the rest is read only of the version that `ExchangeTable` is
        // written after. Torch keeps the table as long as the process lives.
        let borrow = unsafe {
            let table = table.cast::<ExchangeTable>().as_ptr();
            match (*table).major {
                MAJOR_VERSION => (*table).borrow,
                _ => None,
            }
        };
        if borrow.is_some() {
            return Ok(borrow);
        }
    }
    Ok(None)
}

fn describe_by_table(
    borrow: Borrow,
    bytes: &ByteTypes,
    object: &Bound<'_, PyAny>,
    owner: MemoryOwner,
) -> Result<TensorMemory, UnseenReason> {
    let mut found = DlTensor {
        data: ptr::null_mut(),
        device: DlDevice { kind: 0, index: 0 },
        n_axes: 0,
        dtype: DlDataType {
            code: 0,
            bits: 0,
            lanes: 0,
        },
        shape: ptr::null(),
        strides: ptr::null(),
        byte_offset: 0,
    };
    // SAFETY: the object is a `torch.Tensor`, whose function this is, and this thread has the
    // interpreter.
    let code = unsafe { borrow(object.as_ptr().cast(), &raw mut found) };
    if code != 0 {
        // The attributes provide the reason in shorter form.
        drop(PyErr::take(object.py()));
        return Err(UnseenReason::of_refused(object));
    }
    if CPU.contains(&found.device.kind) != (owner == MemoryOwner::Host) {
        return Err(UnseenReason::Device);
    }
    let DlDataType { code, bits, lanes } = found.dtype;
    let dtype = element_type::from_dlpack(code, bits, lanes)
        .ok_or_else(|| UnseenReason::of_dtype(object))?;
    if let (0 | 1, 8) = (code, bits)
        && !bytes.are_of(object)
    {
        // Integers smaller than a byte are described as bytes.
        return Err(UnseenReason::of_dtype(object));
    }
    let n_axes = usize::try_from(found.n_axes).map_err(|_| UnseenReason::Shape)?;
    // SAFETY: torch gives as many extents, and as many strides if any, as there are axes; they are
    // part of the tensor, which `object` keeps.
    let (dims, strides) = unsafe { (list(found.shape, n_axes), list(found.strides, n_axes)) };
    let dims = match (dims, n_axes) {
        (Some(dims), _) => dims,
        // A tensor without axes has no list, so a null pointer is valid there.
        (None, 0) => &[],
        (None, _) => return Err(UnseenReason::Shape),
    };
    let offset = usize::try_from(found.byte_offset).map_err(|_| UnseenReason::Shape)?;
    let address = match found.data.expose_provenance() {
        // Missing memory must stay a null pointer whatever the offset, to be recognised.
        0 => 0,
        address => address.checked_add(offset).ok_or(UnseenReason::Shape)?,
    };
    TensorMemory::new(address, dtype, dims, strides)
}

/// # Safety
/// Unless it is null, `n` numbers at `first` have to be readable while the slice is used.
unsafe fn list<'a>(first: *const i64, n: usize) -> Option<&'a [i64]> {
    // SAFETY: the caller says so; torch's numbers are aligned.
    (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts(first, n) })
}

fn describe_by_attributes(
    object: &Bound<'_, PyAny>,
    owner: MemoryOwner,
) -> Result<TensorMemory, UnseenReason> {
    let refused = |_| UnseenReason::of_refused(object);
    if attribute_text(object, "layout").map_err(refused)? != "torch.strided" {
        return Err(UnseenReason::of_refused(object));
    }
    let device = attribute_text(object, "device").map_err(refused)?;
    if device == "meta" {
        return Err(UnseenReason::NoMemory);
    }
    if (device.split(':').next() == Some("cpu")) != (owner == MemoryOwner::Host) {
        return Err(UnseenReason::Device);
    }
    let dtype = attribute_text(object, "dtype").map_err(refused)?;
    let dtype = element_type::from_torch(&dtype).ok_or_else(|| UnseenReason::of_refused(object))?;
    let dims = object.getattr("shape").and_then(|dims| dims.extract());
    let dims: Vec<i64> = dims.map_err(refused)?;
    let strides = object
        .call_method0("stride")
        .and_then(|strides| strides.extract());
    let strides: Vec<i64> = strides.map_err(refused)?;
    let address = object.call_method0("data_ptr").and_then(|at| at.extract());
    TensorMemory::new(address.map_err(refused)?, dtype, &dims, Some(&strides))
}

/// The shape of values packed in pairs.
fn unpacked(shape: &Shape) -> Result<Shape, UnseenReason> {
    let mut dims: Vec<usize> = shape.iter().copied().collect();
    match dims.last_mut() {
        Some(last) => *last = last.checked_mul(2).ok_or(UnseenReason::Shape)?,
        // A packed scalar holds two values, for which it has no axis yet.
        None => dims.push(2),
    }
    Shape::new(dims).map_err(|_| UnseenReason::Shape)
}

/// Whether elements are contiguous in row-major order. Strides of axes with one element are
/// irrelevant.
fn is_dense(shape: &Shape, strides: &[isize]) -> bool {
    if shape.n_elements() == 0 {
        return true;
    }
    let mut expected = 1;
    for (&dim, &stride) in shape.iter().zip(strides).rev() {
        if dim > 1 && stride != expected {
            return false;
        }
        expected *= dim as isize;
    }
    strides.len() == shape.n_axes()
}

/// Number of elements from the first to the last.
fn span(shape: &Shape, strides: Option<&[isize]>) -> Option<usize> {
    let n_elements = shape.n_elements();
    let Some(strides) = strides.filter(|_| n_elements > 0) else {
        return Some(n_elements);
    };
    let mut last = 0_usize;
    for (&dim, &stride) in shape.iter().zip(strides) {
        // A negative stride would put elements before the address, outside the slice.
        let step = usize::try_from(stride).ok()?;
        last = last.checked_add((dim - 1).checked_mul(step)?)?;
    }
    last.checked_add(1).filter(|&n| isize::try_from(n).is_ok())
}
