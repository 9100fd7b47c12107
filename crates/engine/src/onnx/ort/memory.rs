//! The values of a kernel in ONNX Runtime's memory, and the memory that we lend it for the time of
//! a run.
//!
//! The C functions are called directly: between two operators there is no time for objects around
//! them.

#![expect(
    unsafe_code,
    reason = "values are memory at an address, and what is lent outlives no call"
)]

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::{PoisonError, RwLock};

use opscope_tensor::{DType, Layout, Shape, Tensor, TensorView, text};
use ort::operator::ComputeContext;
use ort::{AsPointer, sys};

use super::device::{DeviceMemory, DeviceStream};
use super::loan::MemoryLender;
use super::value;

/// The inputs of a kernel, for the time of one call.
pub(super) struct KernelInputs<'a> {
    context: &'a ComputeContext,
    api: &'static sys::OrtApi,
    /// Whether values may be in a device's memory.
    has_devices: bool,
}

/// A tensor in the engine's memory.
pub(super) struct KernelTensor<'a> {
    dtype: DType,
    shape: Shape,
    elements: KernelElements<'a>,
}

enum KernelElements<'a> {
    There(&'a [u8]),
    /// Texts, which the engine stores in another form.
    Made(Vec<u8>),
}

impl<'a> KernelTensor<'a> {
    /// The tensor; its axes have this meaning.
    pub(super) fn view(&self, layout: Layout) -> TensorView<'_> {
        let bytes = match &self.elements {
            KernelElements::There(bytes) => bytes,
            KernelElements::Made(bytes) => bytes.as_slice(),
        };
        TensorView {
            dtype: self.dtype,
            shape: &self.shape,
            layout,
            bytes,
        }
    }

    /// The tensor where it is, for as long as `lender` waits for it; `None` if the engine keeps its
    /// elements in another form.
    pub(super) fn lent(&self, lender: &MemoryLender<'a>) -> Option<Tensor> {
        match self.elements {
            KernelElements::There(bytes) => lender.lend(self.dtype, self.shape.clone(), bytes),
            KernelElements::Made(_) => None,
        }
    }

    /// A copy in memory of our own; `None` if there is no memory for it.
    pub(super) fn into_tensor(self) -> Option<Tensor> {
        let bytes = match self.elements {
            KernelElements::There(bytes) => {
                let mut copy = Vec::new();
                copy.try_reserve_exact(bytes.len()).ok()?;
                copy.extend_from_slice(bytes);
                copy
            }
            KernelElements::Made(bytes) => bytes,
        };
        Tensor::from_vec(self.dtype, self.shape, bytes).ok()
    }

    /// Bytes of the elements.
    pub(super) fn n_bytes(&self) -> usize {
        match &self.elements {
            KernelElements::There(bytes) => bytes.len(),
            KernelElements::Made(bytes) => bytes.len(),
        }
    }

    /// Number of axes.
    pub(super) fn n_axes(&self) -> usize {
        self.shape.n_axes()
    }
}

impl<'a> KernelInputs<'a> {
    /// The inputs that a kernel is given.
    pub(super) fn new(context: &'a ComputeContext, has_devices: bool) -> KernelInputs<'a> {
        KernelInputs {
            context,
            api: ort::api(),
            has_devices,
        }
    }

    /// The only element of an input of 64-bit integers; `None` if it is something else.
    pub(super) fn number(&self, index: usize) -> Option<i64> {
        let seen = self.tensor(index)?;
        match seen.elements {
            KernelElements::There(bytes) if seen.dtype == DType::I64 => {
                Some(i64::from_le_bytes(bytes.try_into().ok()?))
            }
            _ => None,
        }
    }

    /// An input; `None` if it is absent, not in the CPU's memory, of a type that we lack, or its
    /// elements are fewer or more than its shape asks for.
    pub(super) fn tensor(&self, index: usize) -> Option<KernelTensor<'a>> {
        let value = self.value(index)?;
        let (code, shape) = self.description(value)?;
        // The library may be newer and have unknown types.
        let dtype = value::dtype_of_code(code)?;
        // Asking takes a call of the library for each value, which is spared where no device was
        // asked for.
        if self.has_devices && !self.is_on_cpu(value) {
            return None;
        }
        let elements = if dtype == DType::String {
            // The library keeps texts as C++ objects, whose memory is no array of bytes.
            KernelElements::Made(self.texts(value, shape.n_elements())?)
        } else {
            KernelElements::There(self.bytes(value, shape.n_bytes(dtype).ok()?)?)
        };
        Some(KernelTensor {
            dtype,
            shape,
            elements,
        })
    }

    /// An input in memory of a kind that `owns` says is a device's; `None` if it is something else.
    pub(super) fn on_device(
        &self,
        index: usize,
        owns: impl FnOnce(i32) -> bool,
    ) -> Option<DeviceMemory> {
        let value = self.value(index)?;
        let (code, shape) = self.description(value)?;
        let dtype = value::dtype_of_code(code).filter(|dtype| *dtype != DType::String)?;
        self.memory_kind(value).filter(|kind| owns(*kind))?;
        let n_bytes = shape.n_bytes(dtype).ok()?;
        // The library may give no address for a tensor without elements.
        let address = match n_bytes {
            0 => 0,
            _ => self.data(value)?.as_ptr().expose_provenance() as u64,
        };
        Some(DeviceMemory {
            address,
            dtype,
            shape,
            n_bytes,
        })
    }

    /// The stream that the operators of the kernel's provider run on; the default one for the
    /// CPU's.
    pub(super) fn stream(&self) -> Option<DeviceStream> {
        self.context.stream().ok().map(DeviceStream::at)
    }

    /// Copies the first input, a dense tensor on the CPU, to the first output, and lets `work` change
    /// the copy. `None` if the library refuses or the input is something else; then nothing was
    /// changed.
    pub(super) fn copy_through(&self, work: impl FnOnce(DType, &[usize], &mut [u8])) -> Option<()> {
        let KernelTensor {
            dtype,
            shape,
            elements: KernelElements::There(bytes),
        } = self.tensor(0)?
        else {
            return None;
        };
        let dims = shape.dims().iter().map(|&n| i64::try_from(n).ok());
        let dims: Vec<i64> = dims.collect::<Option<_>>()?;
        let mut value: *mut sys::OrtValue = ptr::null_mut();
        let (context, n_axes) = (self.context.ptr().cast_mut(), dims.len());
        // SAFETY: the context is the one of this call, and `dims` holds the stated number of
        // dimensions.
        let status = unsafe {
            (self.api.KernelContext_GetOutput)(context, 0, dims.as_ptr(), n_axes, &raw mut value)
        };
        let value = NonNull::new(value).filter(|_| self.is_ok(status))?;
        if !bytes.is_empty() {
            let mut data: *mut c_void = ptr::null_mut();
            // SAFETY: the value is the tensor that was just made.
            let status = unsafe { (self.api.GetTensorMutableData)(value.as_ptr(), &raw mut data) };
            let data = NonNull::new(data).filter(|_| self.is_ok(status))?;
            // SAFETY: the output has the type that its operator declares, which is that of the
            // input, and was made for the same shape, so it has as many bytes. The memory is
            // separate: no output of our operators may share that of an input.
            let copy =
                unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>().as_ptr(), bytes.len()) };
            copy.copy_from_slice(bytes);
            work(dtype, shape.dims(), copy);
        }
        Some(())
    }

    /// Type of the elements of an input, wherever they are; `None` if it is absent, no tensor, or of
    /// a type that we lack.
    pub(super) fn dtype(&self, index: usize) -> Option<DType> {
        let (code, _) = self.description(self.value(index)?)?;
        value::dtype_of_code(code)
    }

    fn value(&self, index: usize) -> Option<NonNull<sys::OrtValue>> {
        let mut value: *const sys::OrtValue = ptr::null();
        // SAFETY: the context is the one of this call; an index that is too large is an error.
        let status =
            unsafe { (self.api.KernelContext_GetInput)(self.context.ptr(), index, &raw mut value) };
        self.is_ok(status)
            .then(|| NonNull::new(value.cast_mut()))
            .flatten()
    }

    /// The engine's number for the type of the elements, and the shape.
    fn description(&self, value: NonNull<sys::OrtValue>) -> Option<(i32, Shape)> {
        let api = self.api;
        let mut info: *mut sys::OrtTensorTypeAndShapeInfo = ptr::null_mut();
        // SAFETY: the value is one of this call's; one that is no tensor is an error.
        let status = unsafe { (api.GetTensorTypeAndShape)(value.as_ptr(), &raw mut info) };
        if !self.is_ok(status) || info.is_null() {
            return None;
        }
        let mut code: i32 = 0;
        let mut n_axes = 0;
        // SAFETY: the description was just made. The type is written as a plain number, because a
        // newer library may have types that the enumeration lacks.
        let statuses = unsafe {
            [
                (api.GetTensorElementType)(info, (&raw mut code).cast()),
                (api.GetDimensionsCount)(info, &raw mut n_axes),
            ]
        };
        let mut is_known = statuses.map(|status| self.is_ok(status)) == [true; 2];
        is_known &= n_axes <= Shape::N_AXES_MAX;
        let mut dims = [0_i64; Shape::N_AXES_MAX];
        if is_known {
            // SAFETY: the room for the dimensions was just checked.
            let status = unsafe { (api.GetDimensions)(info, dims.as_mut_ptr(), n_axes) };
            is_known = self.is_ok(status);
        }
        // SAFETY: the description is ours and is not used again.
        unsafe { (api.ReleaseTensorTypeAndShapeInfo)(info) };
        let dims = dims.get(..n_axes).filter(|_| is_known)?;
        let dims = dims.iter().map(|&n| usize::try_from(n).ok());
        Some((code, Shape::new(dims.collect::<Option<Vec<_>>>()?).ok()?))
    }

    fn is_on_cpu(&self, value: NonNull<sys::OrtValue>) -> bool {
        let cpu = sys::OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU as i32;
        self.memory_kind(value) == Some(cpu)
    }

    /// The library's number for the kind of memory that a tensor is in.
    fn memory_kind(&self, value: NonNull<sys::OrtValue>) -> Option<i32> {
        let mut info: *const sys::OrtMemoryInfo = ptr::null();
        // SAFETY: the value is a tensor of this call; the description belongs to it.
        let status = unsafe { (self.api.GetTensorMemoryInfo)(value.as_ptr(), &raw mut info) };
        if !self.is_ok(status) || info.is_null() {
            return None;
        }
        let mut device: i32 = -1;
        // SAFETY: the description lives as long as the value. The device is written as a plain
        // number, because a newer library may have more of them.
        unsafe { (self.api.MemoryInfoGetDeviceType)(info, (&raw mut device).cast()) };
        Some(device)
    }

    fn bytes(&self, value: NonNull<sys::OrtValue>, n_bytes: usize) -> Option<&'a [u8]> {
        // The library may give no address for a tensor without elements.
        if n_bytes == 0 {
            return Some(&[]);
        }
        let data = self.data(value)?;
        // SAFETY: a dense tensor of this type and shape has that many bytes. They are on the CPU,
        // and stay as they are until the kernel returns, which is not before this borrow of its
        // context ends.
        Some(unsafe { std::slice::from_raw_parts(data.cast::<u8>().as_ptr(), n_bytes) })
    }

    /// Where the elements of a tensor are.
    fn data(&self, value: NonNull<sys::OrtValue>) -> Option<NonNull<c_void>> {
        let mut data: *mut c_void = ptr::null_mut();
        // SAFETY: the value is a tensor of this call. Nothing is written through the address.
        let status = unsafe { (self.api.GetTensorMutableData)(value.as_ptr(), &raw mut data) };
        NonNull::new(data).filter(|_| self.is_ok(status))
    }

    /// A tensor of `n` texts in our form.
    fn texts(&self, value: NonNull<sys::OrtValue>, n: usize) -> Option<Vec<u8>> {
        let mut n_bytes = 0;
        // SAFETY: the value is a tensor of texts of this call.
        let status =
            unsafe { (self.api.GetStringTensorDataLength)(value.as_ptr(), &raw mut n_bytes) };
        if !self.is_ok(status) {
            return None;
        }
        let mut all = Vec::new();
        all.try_reserve_exact(n_bytes).ok()?;
        all.resize(n_bytes, 0_u8);
        // The library returns the offsets only; each text ends where the next one begins.
        let mut starts = vec![0_usize; n];
        if n > 0 {
            // SAFETY: both places have the stated sizes, which the library requires.
            let status = unsafe {
                (self.api.GetStringTensorContent)(
                    value.as_ptr(),
                    all.as_mut_ptr().cast(),
                    n_bytes,
                    starts.as_mut_ptr(),
                    n,
                )
            };
            if !self.is_ok(status) {
                return None;
            }
        }
        let ends = starts.iter().skip(1).copied().chain([n_bytes]);
        let texts = starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| all.get(start..end));
        Some(text::encode(&texts.collect::<Option<Vec<_>>>()?))
    }

    /// Whether a function went well; its status is freed.
    fn is_ok(&self, status: sys::OrtStatusPtr) -> bool {
        if status.0.is_null() {
            return true;
        }
        // SAFETY: the status is ours and is not used again.
        unsafe { (self.api.ReleaseStatus)(status.0) };
        false
    }
}

/// Lends a value to all who share the desk, for the time of a call.
pub(super) struct LendingDesk<T>(RwLock<Option<NonNull<T>>>);

// SAFETY: other threads access a lent value only by shared reference, which `T: Sync` allows, and
// never after the loan has ended.
unsafe impl<T: Sync> Send for LendingDesk<T> {}
// SAFETY: likewise.
unsafe impl<T: Sync> Sync for LendingDesk<T> {}

impl<T> Default for LendingDesk<T> {
    fn default() -> LendingDesk<T> {
        LendingDesk(RwLock::new(None))
    }
}

impl<T> LendingDesk<T> {
    /// Lends `thing` while `work` runs. Restores the previous loan afterwards.
    pub(super) fn lend<R>(&self, thing: &T, work: impl FnOnce() -> R) -> R {
        /// Takes the loan back, also when the work panics.
        struct DeskGuard<'a, T>(&'a LendingDesk<T>, Option<NonNull<T>>);
        impl<T> Drop for DeskGuard<'_, T> {
            fn drop(&mut self) {
                self.0.exchange(self.1);
            }
        }
        let before = self.exchange(Some(NonNull::from(thing)));
        let _loan = DeskGuard(self, before);
        work()
    }

    /// Passes the lent value to `work`; `None` if there is none.
    pub(super) fn look<R>(&self, work: impl FnOnce(&T) -> R) -> Option<R> {
        let lent = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `lend` has stored the address here and cannot return before removing it, for
        // which it waits until the lock has no readers.
        lent.map(|thing| work(unsafe { thing.as_ref() }))
    }

    fn exchange(&self, thing: Option<NonNull<T>>) -> Option<NonNull<T>> {
        let mut lent = self.0.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut lent, thing)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_loan_ends_however_the_work_does() {
        let desk: LendingDesk<i32> = LendingDesk::default();
        let seen = || desk.look(|thing| *thing);
        assert_eq!(seen(), None);
        let inside = desk.lend(&1, || {
            let inner = desk.lend(&2, seen);
            (inner, seen())
        });
        assert_eq!(inside, (Some(2), Some(1)));
        assert!(catch_unwind(AssertUnwindSafe(|| desk.lend(&3, || panic!("on purpose")))).is_err());
        assert_eq!(seen(), None);
    }
}
