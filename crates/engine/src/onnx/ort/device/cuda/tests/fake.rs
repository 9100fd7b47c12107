//! A driver of a device that is not there, for tests.
//!
//! Work is done when it is queued, as operators on the CPU do not wait for it. Its results reach
//! the host when the host has waited: until then a copy holds a pattern. Each device number behaves
//! differently ([`FakeDevice`]).

use std::alloc::{Layout, alloc, dealloc};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use opscope_tensor::{DType, Tensor};

use crate::onnx::ort::device::cuda::api::{CudaApi, DeviceAddress, Handle, Status};
use crate::onnx::ort::device::cuda::*;

const SUCCESS: Status = 0;
const OUT_OF_MEMORY: Status = 2;
const NO_DEVICE: Status = 101;
const LOST: Status = 719;
/// Bytes of a copy that has not come.
const PATTERN: u8 = 0xA5;
/// Waits of a device before it is lost; the check at the beginning takes the first.
const N_WAITS_OF_LOST: usize = 2;

/// The stream and the event of a device; it has one of each.
const STREAM: usize = 0x51;
const EVENT: usize = 0xE1;

/// How a device behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FakeDevice {
    Sound = 0,
    /// It computes sums that are wrong.
    Wrong = 1,
    /// It fails when it is waited for in a run.
    Lost = 2,
    /// It has no memory that a device can write to by itself.
    Unpinned = 3,
    /// It takes no kernels.
    Kernelless = 4,
    Missing = 5,
}

/// Opens the device. Its memory is the CPU's for the engine.
pub(crate) fn open(behaviour: FakeDevice) -> Result<CudaDevice, String> {
    let kind = sys::OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU as i32;
    CudaDevice::with_api(api(), behaviour as i32, (None, kind))
}

/// How often this thread has waited for any of the devices.
pub(crate) fn n_waits() -> usize {
    N_WAITS.get()
}

struct FakeState {
    behaviour: FakeDevice,
    /// Destination and elements of copies that were asked for, and whether they are on the device's
    /// own stream.
    copies: Vec<(usize, Vec<u8>, bool)>,
    /// The tensor whose partial results were stored last.
    parts: Option<(u64, u64, DType)>,
    n_waits: usize,
    /// How many copies come before the event, and before what is put on the stream.
    n_copies: [usize; 2],
    buffers: HashMap<usize, Layout>,
}

thread_local! {
    static N_WAITS: Cell<usize> = const { Cell::new(0) };
    static CURRENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn lock(state: &Mutex<FakeState>) -> std::sync::MutexGuard<'_, FakeState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` with the device whose context is current.
fn with_current(work: impl FnOnce(&mut FakeState) -> Status) -> Status {
    let current = CURRENT.with_borrow(|all| all.last().copied());
    let current = current.expect("no context is current");
    // SAFETY: the code that made the context current holds it.
    let state = unsafe { &*ptr::with_exposed_provenance::<Mutex<FakeState>>(current) };
    work(&mut lock(state))
}

fn api() -> CudaApi {
    CudaApi {
        init,
        error_text,
        device,
        retain_context,
        release_context,
        push_context,
        pop_context,
        load_module,
        unload_module,
        function,
        launch,
        allocate,
        free,
        allocate_host,
        free_host,
        copy_to_device,
        copy_to_host,
        create_stream,
        destroy_stream,
        await_event,
        synchronize,
        create_event,
        destroy_event,
        record_event,
    }
}

unsafe extern "C" fn init(_: c_uint) -> Status {
    SUCCESS
}

unsafe extern "C" fn error_text(status: Status, text: *mut *const c_char) -> Status {
    let words = match status {
        OUT_OF_MEMORY => c"out of memory",
        NO_DEVICE => c"invalid device ordinal",
        _ => c"unspecified launch failure",
    };
    // SAFETY: the caller's place.
    unsafe { *text = words.as_ptr() };
    SUCCESS
}

unsafe extern "C" fn device(device: *mut c_int, number: c_int) -> Status {
    if number == FakeDevice::Missing as i32 {
        return NO_DEVICE;
    }
    // SAFETY: the caller's place.
    unsafe { *device = number };
    SUCCESS
}

unsafe extern "C" fn retain_context(context: *mut Handle, number: c_int) -> Status {
    let all = [
        FakeDevice::Sound,
        FakeDevice::Wrong,
        FakeDevice::Lost,
        FakeDevice::Unpinned,
        FakeDevice::Kernelless,
    ];
    let state = FakeState {
        behaviour: all[usize::try_from(number).unwrap()],
        copies: Vec::new(),
        parts: None,
        n_waits: 0,
        n_copies: [0, 0],
        buffers: HashMap::new(),
    };
    // It stays, as a primary context does.
    let state = Box::leak(Box::new(Mutex::new(state)));
    // SAFETY: the caller's place.
    unsafe { *context = ptr::from_mut(state).cast() };
    SUCCESS
}

unsafe extern "C" fn release_context(_: c_int) -> Status {
    SUCCESS
}

unsafe extern "C" fn push_context(context: Handle) -> Status {
    CURRENT.with_borrow_mut(|all| all.push(context.expose_provenance()));
    SUCCESS
}

unsafe extern "C" fn pop_context(_: *mut Handle) -> Status {
    CURRENT.with_borrow_mut(|all| all.pop().expect("no context is current"));
    SUCCESS
}

unsafe extern "C" fn load_module(module: *mut Handle, image: *const c_void) -> Status {
    // SAFETY: the caller's text, which ends with a zero.
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_str().unwrap();
    let texts = kernels::texts().unwrap();
    let name = texts.iter().find(|(_, known)| *known == text);
    let name = name.expect("a kernel that is known").0.clone();
    with_current(|state| {
        if state.behaviour == FakeDevice::Kernelless {
            return LOST;
        }
        // SAFETY: the caller's place.
        unsafe { *module = Box::into_raw(Box::new(name)).cast() };
        SUCCESS
    })
}

unsafe extern "C" fn unload_module(module: Handle) -> Status {
    // SAFETY: made by `load_module`.
    drop(unsafe { Box::from_raw(module.cast::<String>()) });
    SUCCESS
}

unsafe extern "C" fn function(
    function: *mut Handle,
    module: Handle,
    entry: *const c_char,
) -> Status {
    // SAFETY: made by `load_module`, and a text that ends with a zero.
    let (name, entry) = unsafe { (&*module.cast::<String>(), CStr::from_ptr(entry)) };
    let expected = if name == kernels::JOIN {
        kernels::JOIN
    } else {
        kernels::PARTS
    };
    assert_eq!(entry.to_str(), Ok(expected));
    // SAFETY: the caller's place.
    unsafe { *function = module };
    SUCCESS
}

unsafe extern "C" fn launch(
    function: Handle,
    n_programs: c_uint,
    _: c_uint,
    _: c_uint,
    n_threads: c_uint,
    _: c_uint,
    _: c_uint,
    shared_bytes: c_uint,
    _: Handle,
    places: *mut *mut c_void,
    _: *mut *mut c_void,
) -> Status {
    assert_eq!((n_threads, shared_bytes), (128, 32));
    // SAFETY: a function is the name of its module, and its places are as many numbers as it takes.
    let (name, number) = unsafe {
        let name = &*function.cast::<String>();
        (name, |i: usize| **places.add(i).cast::<*const u64>())
    };
    with_current(|state| {
        if name == kernels::JOIN {
            let (address, n, dtype) = state.parts.expect("parts are stored first");
            let tensor = at(address, n, dtype);
            assert_eq!(number(4), tensor.n_bytes() as u64);
            let mut words = row_of(&tensor);
            if state.behaviour == FakeDevice::Wrong {
                words[11] ^= 1 << 52;
            }
            let row = number(0) + 8 * number(1);
            let row = ptr::with_exposed_provenance_mut::<RowWords>(usize::try_from(row).unwrap());
            // SAFETY: the caller's memory.
            unsafe { row.write_unaligned(words) };
        } else {
            let dtype = DType::ALL
                .iter()
                .find(|dtype| kernels::name_for(**dtype) == Some(name));
            let dtype = *dtype.expect("a type that has a kernel");
            let tensor = at(number(1), number(2), dtype);
            let plan = PartsPlan::new(tensor.n_bytes()).unwrap();
            assert_eq!(
                (u64::from(n_programs), number(3)),
                (plan.n_parts as u64, plan.n_part_lines as u64)
            );
            state.parts = Some((number(1), number(2), dtype));
        }
        SUCCESS
    })
}

/// The tensor at an address.
fn at(address: u64, n: u64, dtype: DType) -> Tensor {
    let shape = Shape::new([usize::try_from(n).unwrap()]).unwrap();
    let n_bytes = shape.n_bytes(dtype).unwrap();
    let address = ptr::with_exposed_provenance::<u8>(usize::try_from(address).unwrap());
    // SAFETY: the caller's memory.
    let bytes = unsafe { std::slice::from_raw_parts(address, n_bytes) };
    Tensor::from_vec(dtype, shape, bytes.to_vec()).unwrap()
}

/// The words of a tensor's row.
fn row_of(tensor: &Tensor) -> RowWords {
    let found = tensor.stats().unwrap();
    let places = tensor.observed().non_finite_places();
    let numbers = [
        found.min, found.max, found.sum, found.l1, found.l2, found.mean, found.std,
    ];
    let mut words = found.counts.to_array().to_vec();
    words.extend(numbers.map(f64::to_bits));
    words.push(places.nan.map_or(u64::MAX, |at| at as u64));
    words.extend([f64::INFINITY, f64::NEG_INFINITY].map(|sign| {
        let infinity = places.infinity.filter(|(_, value)| *value == sign);
        infinity.map_or(u64::MAX, |(at, _)| at as u64)
    }));
    words.extend([7, 8]);
    words.try_into().unwrap()
}

unsafe extern "C" fn allocate(address: *mut DeviceAddress, n_bytes: usize) -> Status {
    let layout = Layout::from_size_align(n_bytes, 256).unwrap();
    // SAFETY: the size is never zero.
    let memory = unsafe { alloc(layout) }.expose_provenance();
    // SAFETY: the caller's place.
    unsafe { *address = memory as u64 };
    with_current(|state| {
        state.buffers.insert(memory, layout);
        SUCCESS
    })
}

unsafe extern "C" fn free(address: DeviceAddress) -> Status {
    let address = usize::try_from(address).unwrap();
    with_current(|state| {
        let layout = state
            .buffers
            .remove(&address)
            .expect("memory of the device");
        // SAFETY: made by `allocate`.
        unsafe { dealloc(ptr::with_exposed_provenance_mut(address), layout) };
        SUCCESS
    })
}

unsafe extern "C" fn allocate_host(address: *mut *mut c_void, n_bytes: usize, _: c_uint) -> Status {
    let layout = Layout::from_size_align(n_bytes, 4096).unwrap();
    with_current(|state| {
        if state.behaviour == FakeDevice::Unpinned {
            return OUT_OF_MEMORY;
        }
        // SAFETY: the size is never zero.
        let memory = unsafe { alloc(layout) };
        state.buffers.insert(memory.expose_provenance(), layout);
        // SAFETY: the caller's place.
        unsafe { *address = memory.cast() };
        SUCCESS
    })
}

unsafe extern "C" fn free_host(address: *mut c_void) -> Status {
    // SAFETY: made by `allocate_host`.
    unsafe { free(address.expose_provenance() as u64) }
}

unsafe extern "C" fn copy_to_device(
    to: DeviceAddress,
    from: *const c_void,
    n_bytes: usize,
) -> Status {
    let to = ptr::with_exposed_provenance_mut::<u8>(usize::try_from(to).unwrap());
    // SAFETY: the caller's memory.
    unsafe { ptr::copy_nonoverlapping(from.cast(), to, n_bytes) };
    SUCCESS
}

unsafe extern "C" fn copy_to_host(
    to: *mut c_void,
    from: DeviceAddress,
    n_bytes: usize,
    stream: Handle,
) -> Status {
    let from = ptr::with_exposed_provenance::<u8>(usize::try_from(from).unwrap());
    // SAFETY: the caller's memory.
    let bytes = unsafe {
        to.cast::<u8>().write_bytes(PATTERN, n_bytes);
        std::slice::from_raw_parts(from, n_bytes)
    };
    with_current(|state| {
        let is_of_stream = stream.addr() == STREAM;
        let copy = (to.expose_provenance(), bytes.to_vec(), is_of_stream);
        state.copies.push(copy);
        SUCCESS
    })
}

unsafe extern "C" fn create_stream(stream: *mut Handle, _: c_uint) -> Status {
    // SAFETY: the caller's place.
    unsafe { *stream = ptr::without_provenance_mut(STREAM) };
    SUCCESS
}

unsafe extern "C" fn destroy_stream(stream: Handle) -> Status {
    assert_eq!(stream.addr(), STREAM);
    SUCCESS
}

unsafe extern "C" fn create_event(event: *mut Handle, _: c_uint) -> Status {
    // SAFETY: the caller's place.
    unsafe { *event = ptr::without_provenance_mut(EVENT) };
    SUCCESS
}

unsafe extern "C" fn destroy_event(event: Handle) -> Status {
    assert_eq!(event.addr(), EVENT);
    SUCCESS
}

unsafe extern "C" fn record_event(event: Handle, stream: Handle) -> Status {
    assert_eq!(event.addr(), EVENT);
    assert_ne!(stream.addr(), STREAM, "the engine's stream is meant");
    with_current(|state| {
        state.n_copies[0] = state.copies.len();
        SUCCESS
    })
}

unsafe extern "C" fn await_event(stream: Handle, event: Handle, _: c_uint) -> Status {
    assert_eq!((stream.addr(), event.addr()), (STREAM, EVENT));
    with_current(|state| {
        state.n_copies[1] = state.n_copies[0];
        SUCCESS
    })
}

unsafe extern "C" fn synchronize(stream: Handle) -> Status {
    assert_eq!(stream.addr(), STREAM, "the engine's may be gone");
    with_current(|state| {
        state.n_waits += 1;
        N_WAITS.set(N_WAITS.get() + 1);
        let copies = std::mem::take(&mut state.copies);
        if state.behaviour == FakeDevice::Lost && state.n_waits >= N_WAITS_OF_LOST {
            return LOST;
        }
        // Copies that are never waited for do not arrive.
        let n_awaited = state.n_copies[1];
        for (i, (to, bytes, is_of_stream)) in copies.into_iter().enumerate() {
            if i < n_awaited || is_of_stream {
                let to = ptr::with_exposed_provenance_mut::<u8>(to);
                // SAFETY: the requester of the copy keeps the memory until now.
                unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
            }
        }
        state.n_copies = [0, 0];
        SUCCESS
    })
}
