//! Kernels as the driver has them.

use std::collections::HashMap;
use std::ffi::CString;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use super::api::Handle;
use super::context::CudaContext;
use crate::onnx::ort::device::kernels;

/// Kernels by name; each is made for the device when it is first asked for.
pub(super) struct KernelLoader {
    context: Arc<CudaContext>,
    texts: HashMap<String, String>,
    loaded: Mutex<HashMap<&'static str, Result<LoadedKernel, String>>>,
}

/// A kernel, and the module that it is in.
#[derive(Clone, Copy)]
struct LoadedKernel {
    module: Handle,
    function: Handle,
}

// SAFETY: as for contexts.
unsafe impl Send for LoadedKernel {}

impl KernelLoader {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<KernelLoader, String> {
        Ok(KernelLoader {
            context: context.clone(),
            texts: kernels::texts()?,
            loaded: Mutex::default(),
        })
    }

    /// A kernel; the driver makes it for the device at the first call, which takes about a second.
    pub(super) fn get(&self, name: &'static str) -> Result<Handle, String> {
        // The list is changed by whole entries.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loaded.entry(name).or_insert_with(|| self.load(name));
        known.clone().map(|kernel| kernel.function)
    }

    fn load(&self, name: &str) -> Result<LoadedKernel, String> {
        let text = self
            .texts
            .get(name)
            .ok_or_else(|| format!("no kernel `{name}`"))?;
        let text = CString::new(text.as_str()).map_err(|error| error.to_string())?;
        let entry = if name == kernels::JOIN {
            kernels::JOIN
        } else {
            kernels::PARTS
        };
        let entry = CString::new(entry).map_err(|error| error.to_string())?;
        let api = &self.context.api;
        let _current = self.context.enter()?;
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: both texts end with a zero and live during the calls.
        unsafe {
            let status = (api.load_module)(&raw mut module, text.as_ptr().cast());
            api.check("cuModuleLoadData", status)?;
            let status = (api.function)(&raw mut function, module, entry.as_ptr());
            api.check("cuModuleGetFunction", status)?;
        }
        Ok(LoadedKernel { module, function })
    }
}

impl Drop for KernelLoader {
    fn drop(&mut self) {
        let loaded = self
            .loaded
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Ok(_current) = self.context.enter() {
            for kernel in loaded.values().flatten() {
                // SAFETY: nothing launches the kernel any more.
                unsafe { (self.context.api.unload_module)(kernel.module) };
            }
        }
    }
}
