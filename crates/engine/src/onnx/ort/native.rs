//! Calls of ONNX Runtime's C functions that `ort` does not wrap, and the memory of its values.

#![expect(
    unsafe_code,
    reason = "the library is C's, and its values are memory at an address"
)]

use std::env;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::{self, NonNull};

use libloading::Library;
use ort::memory::{Allocator, MemoryInfo};
use ort::session::SessionInputValue;
use ort::session::builder::SessionBuilder;
use ort::value::{DynTensor, DynValue, TensorElementType};
use ort::{AsPointer, Error, sys};

/// The variable that keeps ONNX Runtime from reporting its use, and its value.
const TELEMETRY_SWITCH: (&str, &str) = ("ORT_DISABLE_TELEMETRY", "1");

/// Keeps every library of ONNX Runtime that this process loads from now on from reporting its use.
///
/// From 1.32 on, the library creates a store below `~/.cache` and looks up its vendor's host as
/// soon as an environment is created, which is before the C interface can switch that off. Only the
/// variable is read early enough.
///
/// Programs call this while they start, when no other thread is likely to read the environment.
pub(crate) fn disable_telemetry() {
    let (name, value) = TELEMETRY_SWITCH;
    // Writing it again would race with threads that read the environment by now.
    if env::var_os(name).is_some_and(|found| found == value) {
        return;
    }
    // SAFETY: Rust code reads and writes the environment under one lock. Foreign code may read it
    // without that lock, which is why programs do this first; afterwards the check above returns.
    unsafe { env::set_var(name, value) };
}

/// A library that answers as ONNX Runtime does. It stays loaded.
pub(super) struct LibraryProbe(&'static sys::OrtApiBase);

impl LibraryProbe {
    /// Loads a library and looks for its entry.
    pub(super) fn open(path: &Path) -> Result<LibraryProbe, String> {
        // SAFETY: loading runs the library's initialisers, which is what its user asks for by
        // naming it.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            // The system's message is the cause; the error itself only names the failed call.
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            cause.unwrap_or_else(|| error.to_string())
        })?;
        // SAFETY: the type is that of ONNX Runtime's only entry; no other library has one of this
        // name.
        let entry = unsafe {
            library.get::<unsafe extern "C" fn() -> *const sys::OrtApiBase>(b"OrtGetApiBase\0")
        };
        let entry = entry.map_err(|_| "it has no function `OrtGetApiBase`".to_owned())?;
        // SAFETY: the function takes nothing and can be called at any time.
        let base = unsafe { entry() };
        // SAFETY: ONNX Runtime returns null or a table that lives as long as the library.
        let base =
            unsafe { base.as_ref() }.ok_or("its function `OrtGetApiBase` returns nothing")?;
        // The table's pointers are invalid once the library is closed.
        std::mem::forget(library);
        Ok(LibraryProbe(base))
    }

    /// Its version, such as `1.31.1`.
    pub(super) fn version(&self) -> Result<String, String> {
        // SAFETY: the function of the table takes nothing.
        let text = unsafe { (self.0.GetVersionString)() };
        if text.is_null() {
            return Err("it does not say its version".into());
        }
        // SAFETY: a text that is not null ends with a zero and lives as long as the library.
        Ok(unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned())
    }

    /// Whether it has this version of the interface.
    pub(super) fn has_api(&self, version: u32) -> bool {
        // SAFETY: any number is valid.
        !unsafe { (self.0.GetApi)(version) }.is_null()
    }
}

/// Names of the execution providers that the library was built with.
pub(super) fn available_providers() -> ort::Result<Vec<String>> {
    let api = ort::api();
    let mut names: *mut *mut c_char = ptr::null_mut();
    let mut n_names: c_int = 0;
    // SAFETY: both places live during the call.
    unsafe {
        check((api.GetAvailableProviders)(
            &raw mut names,
            &raw mut n_names,
        ))
    }?;
    let n = usize::try_from(n_names).unwrap_or(0);
    let mut providers = Vec::with_capacity(n);
    for i in 0..n {
        // SAFETY: the library has returned `n` texts, each with a zero at its end.
        let name = unsafe { CStr::from_ptr(*names.add(i)) };
        providers.push(name.to_string_lossy().into_owned());
    }
    // SAFETY: the list is the one that was returned, and is not used again.
    unsafe { check((api.ReleaseAvailableProviders)(names, n_names)) }?;
    Ok(providers)
}

/// Adds an execution provider by its name, without options.
pub(super) fn append_provider(builder: &mut SessionBuilder, name: &CStr) -> ort::Result<()> {
    let append = ort::api().SessionOptionsAppendExecutionProvider;
    let options = builder.ptr_mut();
    // SAFETY: the options belong to the builder; no key and no value is read.
    unsafe { check(append(options, name.as_ptr(), ptr::null(), ptr::null(), 0)) }
}

/// A value in memory that the caller keeps.
pub(super) struct BorrowedValue<'a> {
    value: DynValue,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> BorrowedValue<'a> {
    /// Shows elements to ONNX Runtime where they are; it reads them only. `bytes` has to be as long
    /// as type and shape ask for.
    pub(super) fn new(
        element: TensorElementType,
        dims: &[i64],
        bytes: &'a [u8],
    ) -> ort::Result<BorrowedValue<'a>> {
        let info = MemoryInfo::default();
        let mut value: *mut sys::OrtValue = ptr::null_mut();
        // The C function has no form for memory that is only read.
        let data = bytes.as_ptr().cast_mut().cast::<c_void>();
        let create = ort::api().CreateTensorWithDataAsOrtValue;
        // SAFETY: `bytes` are borrowed for as long as the value lives; ONNX Runtime checks their
        // number against type and shape, and writes to no input of a model.
        unsafe {
            check(create(
                info.ptr(),
                data,
                bytes.len(),
                dims.as_ptr(),
                dims.len(),
                element.into(),
                &raw mut value,
            ))?;
        }
        let value = NonNull::new(value).ok_or_else(|| Error::new("no value was made"))?;
        // SAFETY: the value was just created and has no other owner; it needs no allocator to be
        // freed.
        let value = unsafe { DynValue::from_ptr(value, Some(&Allocator::default())) };
        Ok(BorrowedValue {
            value,
            bytes: PhantomData,
        })
    }

    /// The value, for a run.
    pub(super) fn view(&self) -> SessionInputValue<'_> {
        (&self.value).into()
    }
}

/// A copy of elements, in memory that ONNX Runtime aligns as it likes.
pub(super) fn copied(
    element: TensorElementType,
    dims: &[i64],
    bytes: &[u8],
) -> ort::Result<DynTensor> {
    let mut value = DynTensor::new(&Allocator::default(), element, dims)?;
    // The copy below is as long as `bytes`, and the new tensor is as long as its shape says.
    if value.size() != Some(bytes.len()) {
        return Err(Error::new("the elements do not fill the tensor"));
    }
    let data = value.data_ptr_mut().cast::<u8>();
    if !bytes.is_empty() && !data.is_null() {
        // SAFETY: the new tensor has as many bytes, as was just checked, and is not shared yet.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
    }
    Ok(value)
}

/// A tensor that holds texts.
pub(super) fn of_texts(dims: &[i64], texts: &[&[u8]]) -> ort::Result<DynTensor> {
    let mut value = DynTensor::new(&Allocator::default(), TensorElementType::String, dims)?;
    let resize = ort::api().GetResizedStringTensorElementBuffer;
    for (i, text) in texts.iter().enumerate() {
        let mut buffer: *mut c_char = ptr::null_mut();
        // SAFETY: the tensor is ours; a position that it does not have is refused.
        unsafe { check(resize(value.ptr_mut(), i, text.len(), &raw mut buffer)) }?;
        if !text.is_empty() && !buffer.is_null() {
            // SAFETY: the element was just given room for as many bytes, and is not shared yet.
            unsafe { ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), text.len()) };
        }
    }
    Ok(value)
}

/// The texts of a tensor one after the other, and where each begins.
pub(super) fn texts(value: &DynTensor, n_texts: usize) -> ort::Result<(Vec<u8>, Vec<usize>)> {
    let mut n_bytes = 0;
    let api = ort::api();
    // SAFETY: the value lives, and the place for the answer too. Values other than tensors of texts
    // are refused.
    unsafe {
        check((api.GetStringTensorDataLength)(
            value.ptr(),
            &raw mut n_bytes,
        ))
    }?;
    let mut bytes = vec![0_u8; n_bytes];
    let mut starts = vec![0_usize; n_texts];
    let read = api.GetStringTensorContent;
    let (into, starts_into) = (bytes.as_mut_ptr().cast(), starts.as_mut_ptr());
    // SAFETY: both places have the lengths that are said; other lengths than the tensor's are
    // refused.
    unsafe { check(read(value.ptr(), into, n_bytes, starts_into, n_texts)) }?;
    Ok((bytes, starts))
}

/// A tensor of ONNX Runtime whose bytes can be read from any thread.
pub(super) struct OwnedBytes {
    /// Inside the memory of `_value`.
    bytes: &'static [u8],
    _value: DynTensor,
}

impl OwnedBytes {
    /// Takes a tensor over. `None` if its memory is not the CPU's, or its elements have no fixed
    /// size.
    pub(super) fn new(value: DynTensor) -> Option<OwnedBytes> {
        if !value.memory_info().is_cpu_accessible() {
            return None;
        }
        let n_bytes = value.size()?;
        let data = value.data_ptr().cast::<u8>();
        let bytes = if n_bytes == 0 || data.is_null() {
            &[]
        } else {
            // SAFETY: the tensor has that many bytes, and keeps them where they are until it is
            // dropped, which is when this reference goes too. We own it: there are no writers.
            unsafe { std::slice::from_raw_parts(data, n_bytes) }
        };
        Some(OwnedBytes {
            bytes,
            _value: value,
        })
    }
}

impl AsRef<[u8]> for OwnedBytes {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

/// The error of a status, which is freed.
///
/// # Safety
/// `status` has to come from one of ONNX Runtime's functions, and is not to be used again.
unsafe fn check(status: sys::OrtStatusPtr) -> ort::Result<()> {
    // SAFETY: as this function asks for.
    unsafe { Error::result_from_status(status) }
}
