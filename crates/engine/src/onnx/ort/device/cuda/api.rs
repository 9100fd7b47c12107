//! The functions of CUDA's driver that are called, loaded from its library.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use libloading::Library;

/// Zero is success.
pub(super) type Status = c_int;
/// An address in a device's memory.
pub(super) type DeviceAddress = u64;
/// A context, module, function or stream of the driver's.
pub(super) type Handle = *mut c_void;

/// The driver's library, which comes with the driver itself.
const LIBRARY: &str = "libcuda.so.1";

macro_rules! driver_functions {
    ($($name:ident = $symbol:literal ( $($argument:ty),* );)*) => {
        /// The driver's functions, in its own words.
        #[derive(Clone, Copy)]
        pub(super) struct CudaApi {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> Status,)*
        }

        impl CudaApi {
            /// Loads the driver's library, which stays loaded.
            pub(super) fn load() -> Result<CudaApi, String> {
                // SAFETY: loading runs the initialisers of the driver that ONNX Runtime's provider
                // has loaded before.
                let library = unsafe { Library::new(LIBRARY) }
                    .map_err(|error| format!("`{LIBRARY}` cannot be loaded: {error}"))?;
                let api = CudaApi {
                    $($name: {
                        // SAFETY: the type is that of the function of this name and version.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) -> Status>($symbol)
                        };
                        *found.map_err(|error| format!("`{LIBRARY}` is too old: {error}"))?
                    },)*
                };
                std::mem::forget(library);
                Ok(api)
            }
        }
    };
}

driver_functions! {
    init = b"cuInit\0"(c_uint);
    error_text = b"cuGetErrorString\0"(Status, *mut *const c_char);
    device = b"cuDeviceGet\0"(*mut c_int, c_int);
    retain_context = b"cuDevicePrimaryCtxRetain\0"(*mut Handle, c_int);
    release_context = b"cuDevicePrimaryCtxRelease_v2\0"(c_int);
    push_context = b"cuCtxPushCurrent_v2\0"(Handle);
    pop_context = b"cuCtxPopCurrent_v2\0"(*mut Handle);
    load_module = b"cuModuleLoadData\0"(*mut Handle, *const c_void);
    unload_module = b"cuModuleUnload\0"(Handle);
    function = b"cuModuleGetFunction\0"(*mut Handle, Handle, *const c_char);
    launch = b"cuLaunchKernel\0"(
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void,
        *mut *mut c_void
    );
    allocate = b"cuMemAlloc_v2\0"(*mut DeviceAddress, usize);
    free = b"cuMemFree_v2\0"(DeviceAddress);
    allocate_host = b"cuMemHostAlloc\0"(*mut *mut c_void, usize, c_uint);
    free_host = b"cuMemFreeHost\0"(*mut c_void);
    copy_to_device = b"cuMemcpyHtoD_v2\0"(DeviceAddress, *const c_void, usize);
    copy_to_host = b"cuMemcpyDtoHAsync_v2\0"(*mut c_void, DeviceAddress, usize, Handle);
    create_stream = b"cuStreamCreate\0"(*mut Handle, c_uint);
    destroy_stream = b"cuStreamDestroy_v2\0"(Handle);
    await_event = b"cuStreamWaitEvent\0"(Handle, Handle, c_uint);
    synchronize = b"cuStreamSynchronize\0"(Handle);
    create_event = b"cuEventCreate\0"(*mut Handle, c_uint);
    destroy_event = b"cuEventDestroy_v2\0"(Handle);
    record_event = b"cuEventRecord\0"(Handle, Handle);
}

impl CudaApi {
    /// An error in the driver's words, if a call was one.
    pub(super) fn check(&self, call: &str, status: Status) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let mut text: *const c_char = ptr::null();
        // SAFETY: any number is valid.
        unsafe { (self.error_text)(status, &raw mut text) };
        if text.is_null() {
            return Err(format!("CUDA: {call}: error {status}"));
        }
        // SAFETY: the driver's texts end with a zero and stay.
        let text = unsafe { CStr::from_ptr(text) };
        Err(format!("CUDA: {call}: {}", text.to_string_lossy()))
    }
}
