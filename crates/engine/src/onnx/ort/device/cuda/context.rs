//! The driver's context of a device, and what is called in it.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use super::api::{CudaApi, DeviceAddress, Handle};
use crate::onnx::ort::device::kernels;
use crate::onnx::ort::device::place::DeviceStream;

/// The context that the engine's provider uses as well.
pub(super) struct CudaContext {
    pub(super) api: CudaApi,
    device: i32,
    handle: Handle,
}

// SAFETY: the driver's objects may be used from any thread, which makes the context current first.
unsafe impl Send for CudaContext {}
// SAFETY: likewise.
unsafe impl Sync for CudaContext {}

/// A context that is this thread's current one until this is dropped.
pub(super) struct CurrentContext<'a>(&'a CudaContext);

/// Memory of the device.
pub(super) struct DeviceBuffer {
    context: Arc<CudaContext>,
    pub(super) address: DeviceAddress,
}

impl CudaContext {
    pub(super) fn retain(api: CudaApi, number: i32) -> Result<CudaContext, String> {
        let (mut device, mut handle) = (0, ptr::null_mut());
        // SAFETY: the places live during the calls, which come in the order that the driver asks
        // for.
        unsafe {
            api.check("cuInit", (api.init)(0))?;
            api.check("cuDeviceGet", (api.device)(&raw mut device, number))?;
            let status = (api.retain_context)(&raw mut handle, device);
            api.check("cuDevicePrimaryCtxRetain", status)?;
        }
        Ok(CudaContext {
            api,
            device,
            handle,
        })
    }

    /// Makes the context this thread's; the engine's own is there again afterwards.
    pub(super) fn enter(&self) -> Result<CurrentContext<'_>, String> {
        // SAFETY: the context is held.
        let status = unsafe { (self.api.push_context)(self.handle) };
        self.api.check("cuCtxPushCurrent", status)?;
        Ok(CurrentContext(self))
    }

    /// Puts a kernel on a stream. A context has to be current.
    pub(super) fn launch<const N: usize>(
        &self,
        stream: DeviceStream,
        function: Handle,
        n_programs: usize,
        numbers: &mut [u64; N],
    ) -> Result<(), String> {
        let n_programs = u32::try_from(n_programs).map_err(|_| "too many programs")?;
        let first: *mut u64 = numbers.as_mut_ptr();
        let mut places: [*mut c_void; N] = std::array::from_fn(|i| first.wrapping_add(i).cast());
        // SAFETY: the kernel takes that many numbers of eight bytes each, which the call copies.
        // They point to memory of the device, held by this or by the engine until the stream has
        // finished.
        let status = unsafe {
            (self.api.launch)(
                function,
                n_programs,
                1,
                1,
                kernels::N_THREADS,
                1,
                1,
                kernels::SHARED_BYTES,
                handle_of(stream),
                places.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.api.check("cuLaunchKernel", status)
    }

    pub(super) fn copy_to_host(
        &self,
        stream: DeviceStream,
        to: *mut c_void,
        (from, n_bytes): (DeviceAddress, usize),
    ) -> Result<(), String> {
        let _current = self.enter()?;
        // SAFETY: there are as many bytes at either address, and the caller keeps both until it has
        // waited for the stream.
        let status = unsafe { (self.api.copy_to_host)(to, from, n_bytes, handle_of(stream)) };
        self.api.check("cuMemcpyDtoHAsync", status)
    }

    pub(super) fn synchronize(&self, stream: DeviceStream) -> Result<(), String> {
        let _current = self.enter()?;
        // SAFETY: the stream is ours.
        let status = unsafe { (self.api.synchronize)(handle_of(stream)) };
        self.api.check("cuStreamSynchronize", status)
    }
}

pub(super) fn handle_of(stream: DeviceStream) -> Handle {
    ptr::with_exposed_provenance_mut(stream.0)
}

impl Drop for CudaContext {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and whatever was in it is gone.
        unsafe { (self.api.release_context)(self.device) };
    }
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        let mut popped = ptr::null_mut();
        // SAFETY: this thread's current context is the pushed one.
        unsafe { (self.0.api.pop_context)(&raw mut popped) };
    }
}

impl DeviceBuffer {
    pub(super) fn new(context: &Arc<CudaContext>, n_bytes: usize) -> Result<DeviceBuffer, String> {
        let _current = context.enter()?;
        let mut address = 0;
        // SAFETY: the place lives during the call.
        let status = unsafe { (context.api.allocate)(&raw mut address, n_bytes) };
        context.api.check("cuMemAlloc", status)?;
        Ok(DeviceBuffer {
            context: context.clone(),
            address,
        })
    }

    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), String> {
        let _current = self.context.enter()?;
        let api = &self.context.api;
        // SAFETY: the buffer was made for as many bytes.
        let status =
            unsafe { (api.copy_to_device)(self.address, bytes.as_ptr().cast(), bytes.len()) };
        api.check("cuMemcpyHtoD", status)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: the memory is the driver's, which waits for work that uses it.
            unsafe { (self.context.api.free)(self.address) };
        }
    }
}
