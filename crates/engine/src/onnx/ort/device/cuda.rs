//! A CUDA device by way of its driver, in the context that ONNX Runtime uses.

#![expect(
    unsafe_code,
    reason = "the driver's functions are C's, and it writes to memory behind our back"
)]

mod api;
mod context;
mod loader;
mod pinned;
mod progress;

use std::ffi::c_void;
use std::sync::Arc;

use opscope_tensor::{DType, DeviceRow, Shape, SharedBytes, Tensor};
use ort::sys;

use self::api::CudaApi;
use self::context::{CudaContext, DeviceBuffer};
use self::loader::KernelLoader;
use self::pinned::PinnedPool;
use self::progress::StreamProgress;
use super::kernels::{self, PartsPlan};
use super::place::{DeviceMemory, DeviceStream, N_ROWS_MAX, RowWords};
use crate::onnx::ort::provider;

/// Addresses of tensors that kernels read are multiples of this.
const ALIGNMENT: u64 = 16;
const ROW_BYTES: usize = size_of::<RowWords>();
const PARTS_BYTES: usize = kernels::N_PARTS_MAX * kernels::PART_WORDS * 8;

/// A CUDA device.
pub(crate) struct CudaDevice {
    context: Arc<CudaContext>,
    pinned: Arc<PinnedPool>,
    kernels: KernelLoader,
    /// Rows of results, and partial results of one tensor: work on a stream has its order.
    rows: DeviceBuffer,
    parts: DeviceBuffer,
    progress: StreamProgress,
    /// The provider that taps belong to, and the library's number for its memory.
    provider: Option<&'static str>,
    kind: i32,
}

impl CudaDevice {
    /// The device of this number, once it was seen to compute and to copy.
    ///
    /// # Errors
    /// A text, if there is no such device, or it does not do what it should.
    pub(crate) fn open(number: i32) -> Result<CudaDevice, String> {
        let kind = sys::OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_GPU as i32;
        CudaDevice::with_api(CudaApi::load()?, number, (Some(provider::CUDA), kind))
    }

    fn with_api(
        api: CudaApi,
        number: i32,
        (provider, kind): (Option<&'static str>, i32),
    ) -> Result<CudaDevice, String> {
        let context = Arc::new(CudaContext::retain(api, number)?);
        let device = CudaDevice {
            pinned: Arc::new(PinnedPool::new(context.clone())),
            kernels: KernelLoader::new(&context)?,
            rows: DeviceBuffer::new(&context, N_ROWS_MAX * ROW_BYTES)?,
            parts: DeviceBuffer::new(&context, PARTS_BYTES)?,
            progress: StreamProgress::new(&context)?,
            context,
            provider,
            kind,
        };
        device.check_itself()?;
        Ok(device)
    }

    /// Whether the library's memory of this kind is the device's.
    pub(crate) fn owns(&self, kind: i32) -> bool {
        kind == self.kind
    }

    /// The provider whose operators run on the device; none for the CPU's.
    pub(crate) fn provider(&self) -> Option<&'static str> {
        self.provider
    }

    /// Whether the device can compute numbers of this tensor.
    pub(super) fn can_reduce(&self, tensor: &DeviceMemory) -> bool {
        let has_kernel = kernels::name_for(tensor.dtype);
        let has_kernel = has_kernel.is_some_and(|name| self.kernels.get(name).is_ok());
        has_kernel
            && tensor.address.is_multiple_of(ALIGNMENT)
            && PartsPlan::new(tensor.n_bytes).is_some()
    }

    /// Queues the kernels that fill a row with the statistics of a non-empty tensor. Rows are
    /// numbered from 0, restarting after each [`CudaDevice::wait`], and all are on one stream.
    ///
    /// # Errors
    /// A text, if the row will not be filled.
    pub(super) fn reduce(
        &self,
        stream: DeviceStream,
        tensor: &DeviceMemory,
        row: usize,
    ) -> Result<(), String> {
        let name = kernels::name_for(tensor.dtype).ok_or("no kernel is for this type")?;
        let plan = PartsPlan::new(tensor.n_bytes).ok_or("the tensor is too large")?;
        if row >= N_ROWS_MAX {
            return Err("there is no room for another row".into());
        }
        let (parts, join) = (self.kernels.get(name)?, self.kernels.get(kernels::JOIN)?);
        let n_parts = plan.n_parts as u64;
        let _current = self.context.enter()?;
        // Behind what a view needs: one axis without gaps. Two places for the compiler's own use
        // come last.
        let mut numbers = [
            self.parts.address,
            tensor.address,
            tensor.shape.n_elements() as u64,
            plan.n_part_lines as u64,
            1,
            1,
            1,
            0,
            0,
            0,
            1,
            0,
            0,
        ];
        self.context
            .launch(stream, parts, plan.n_parts, &mut numbers)?;
        let mut numbers = [
            self.rows.address,
            (row * DeviceRow::N_WORDS) as u64,
            self.parts.address,
            n_parts,
            tensor.n_bytes as u64,
            0,
            0,
        ];
        self.context.launch(stream, join, 1, &mut numbers)?;
        self.progress.note(stream)
    }

    /// Puts on the stream a copy of a tensor that has elements; it is whole behind
    /// [`CudaDevice::wait`], and has to be kept until then.
    ///
    /// # Errors
    /// A text, if there will be no copy.
    pub(super) fn copy(
        &self,
        stream: DeviceStream,
        tensor: &DeviceMemory,
    ) -> Result<SharedBytes, String> {
        let n_bytes = tensor.n_bytes;
        // A copy to memory that is not pinned is done when the driver returns from the call.
        let (address, bytes): (*mut c_void, SharedBytes) = match self.pinned.take(n_bytes) {
            Some(buffer) => (buffer.address(), Arc::new(buffer)),
            None => {
                let mut memory = Vec::new();
                memory
                    .try_reserve_exact(n_bytes)
                    .map_err(|_| format!("no memory for a copy of {n_bytes} bytes"))?;
                memory.resize(n_bytes, 0_u8);
                let address = memory.as_mut_ptr().cast();
                (address, Arc::new(memory))
            }
        };
        self.context
            .copy_to_host(stream, address, (tensor.address, n_bytes))?;
        if let Err(reason) = self.progress.note(stream) {
            // The copy is in progress, and cannot be waited for.
            std::mem::forget(bytes);
            return Err(reason);
        }
        Ok(bytes)
    }

    /// Waits until everything that was asked for is done; returns the first rows. The engine may
    /// have given up its stream by then.
    ///
    /// # Errors
    /// A text, if the device has failed. Whether it still writes to what was asked for is unknown.
    pub(super) fn wait(&self, n_rows: usize) -> Result<Vec<RowWords>, String> {
        let mut rows: Vec<RowWords> = vec![[0; DeviceRow::N_WORDS]; n_rows.min(N_ROWS_MAX)];
        let n_bytes = rows.len() * ROW_BYTES;
        let stream = self.progress.behind()?;
        let copied = match n_bytes {
            0 => Ok(()),
            _ => {
                // Not pinned, so that the rows are there, or are not written to, in any case.
                let to = rows.as_mut_ptr().cast();
                self.context
                    .copy_to_host(stream, to, (self.rows.address, n_bytes))
            }
        };
        // Also where the copy could not be started: others are under way.
        self.context.synchronize(stream)?;
        copied.map(|()| rows)
    }

    /// Computes and copies what is known, so that a device or a driver that does otherwise is not
    /// believed.
    fn check_itself(&self) -> Result<(), String> {
        // Of more than one part, and then with everything that is counted.
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1e-40];
        let values = (0..40_000_u16).map(|i| f32::from(i % 251) - 100.0);
        let values: Vec<f32> = values.chain(special).collect();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let memory = DeviceBuffer::new(&self.context, bytes.len())?;
        memory.write(&bytes)?;
        let stream = DeviceStream(0);
        let mut expected = Vec::new();
        let mut copies = Vec::new();
        for (row, n) in [values.len() - special.len(), values.len()]
            .into_iter()
            .enumerate()
        {
            let shape = Shape::new([n]).map_err(|error| error.to_string())?;
            let there = DeviceMemory {
                address: memory.address,
                dtype: DType::F32,
                n_bytes: 4 * n,
                shape: shape.clone(),
            };
            copies.push(self.copy(stream, &there)?);
            self.reduce(stream, &there, row)?;
            let here = Tensor::from_vec(DType::F32, shape, bytes[..4 * n].to_vec());
            expected.push(here.map_err(|error| error.to_string())?);
        }
        let rows = self.wait(expected.len())?;
        for ((row, copy), tensor) in rows.iter().zip(&copies).zip(&expected) {
            if tensor.host_bytes() != Ok((**copy).as_ref()) {
                return Err("a copy of known values has others".into());
            }
            if !is_row_of(&DeviceRow::from_words(row), tensor) {
                return Err("numbers of known values are others".into());
            }
        }
        Ok(())
    }
}

/// Whether a row is that of a tensor on the host: counts and places to the last one, sums but for
/// rounding.
fn is_row_of(row: &DeviceRow, tensor: &Tensor) -> bool {
    let Ok(stats) = tensor.stats() else {
        return false;
    };
    let found = &row.stats;
    let pairs = [
        (found.min, stats.min),
        (found.max, stats.max),
        (found.sum, stats.sum),
        (found.l1, stats.l1),
        (found.l2, stats.l2),
        (found.mean, stats.mean),
        (found.std, stats.std),
    ];
    found.counts == stats.counts
        && row.places == tensor.observed().non_finite_places()
        && pairs
            .iter()
            .all(|&(a, b)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9)
}

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) mod fake;
}
