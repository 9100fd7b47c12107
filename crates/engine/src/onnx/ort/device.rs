//! Values in a device's memory: numbers of them, or copies, that come behind the run.
//!
//! A tap on the device is called when its operator was put on the device's stream, long before the
//! operator is done. Its copies and kernels go onto the same stream: they begin when the operator
//! is done, and end before the memory gets another value. So nothing waits while the model runs,
//! and records wait here for their tensors.

mod cuda;
mod kernels;
mod place;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_capture::Probe;
use opscope_tensor::{DeviceArrival, DeviceElements, DeviceRow, SharedBytes, Tensor, TensorMemo};

pub(super) use self::cuda::CudaDevice;
#[cfg(test)]
pub(super) use self::cuda::tests::fake;
pub(super) use self::place::{DeviceMemory, DeviceStream};
use self::place::{N_ROWS_MAX, RowWords};
use crate::LoadOptions;

/// Bytes of copies that records may wait with.
const WAITING_BYTES_MAX: usize = 256 << 20;

/// Opens the device that sessions with these options run on, if they run on one that taps can be
/// on.
pub(super) type DeviceOpener = fn(&LoadOptions) -> Option<Result<CudaDevice, String>>;

/// A session's work on a device.
pub(super) struct DeviceSide {
    device: Arc<CudaDevice>,
    queue: Mutex<DeviceQueue>,
}

/// Values that the device is at, and records that wait for them.
#[derive(Default)]
struct DeviceQueue {
    stream: Option<DeviceStream>,
    tickets: Vec<DeviceTicket>,
    n_rows: usize,
    /// Bytes of copies, those from the CPU's memory among them.
    n_bytes_waiting: usize,
    records: Vec<WaitingRecord>,
    /// The first thing that went wrong.
    fault: Option<String>,
}

/// A value that the device is at.
struct DeviceTicket {
    elements: Arc<DeviceElements>,
    /// Shared with the tensor.
    memo: Arc<TensorMemo>,
    n_elements: usize,
    work: DeviceWork,
}

enum DeviceWork {
    /// The row of this number.
    Row(usize),
    Copy(SharedBytes),
}

/// An operator that was shown, and its values.
pub(super) struct WaitingRecord {
    pub(super) probe: Probe,
    pub(super) inputs: Vec<(usize, Tensor)>,
    pub(super) outputs: Vec<(usize, Tensor)>,
}

impl WaitingRecord {
    /// A record without tensors so far.
    pub(super) fn new(probe: Probe) -> WaitingRecord {
        WaitingRecord {
            probe,
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn is_awaited(&self) -> bool {
        let mut slots = self.inputs.iter().chain(&self.outputs);
        slots.any(|(_, tensor)| tensor.is_awaited())
    }

    /// Shows what there is, and hands the record over. The probe counts what stays away.
    pub(super) fn submit(mut self) {
        for (position, tensor) in self.inputs {
            if let Ok(tensor) = tensor.arrived() {
                self.probe.input(position, tensor);
            }
        }
        for (position, tensor) in self.outputs {
            if let Ok(tensor) = tensor.arrived() {
                self.probe.output(position, tensor);
            }
        }
        self.probe.submit();
    }
}

impl DeviceSide {
    pub(super) fn new(device: Arc<CudaDevice>) -> DeviceSide {
        DeviceSide {
            device,
            queue: Mutex::default(),
        }
    }

    /// The provider that taps on the device belong to; none for the CPU's.
    pub(super) fn provider(&self) -> Option<&'static str> {
        self.device.provider()
    }

    /// Whether the library's memory of this kind is the device's.
    pub(super) fn owns(&self, kind: i32) -> bool {
        self.device.owns(kind)
    }

    /// Describes a tensor, and has the device compute numbers of it, or copy it. `None` if it can do
    /// neither.
    pub(super) fn take(
        &self,
        stream: DeviceStream,
        memory: &DeviceMemory,
        takes_numbers: bool,
    ) -> Option<Tensor> {
        let (dtype, shape) = (memory.dtype, memory.shape.clone());
        // A device need not have an address for what has no elements.
        if memory.n_bytes == 0 {
            return Tensor::from_vec(dtype, shape, Vec::new()).ok();
        }
        let elements = Arc::<DeviceElements>::default();
        let n_elements = shape.n_elements();
        let tensor = Tensor::on_device(dtype, shape, elements.clone()).ok()?;
        if self.lock().stream.is_some_and(|other| other != stream) {
            // Results of both would go to the same places, in any order.
            self.settle();
        }
        let mut queue = self.lock();
        let started = if takes_numbers && self.device.can_reduce(memory) {
            let row = queue.n_rows;
            let started = self.device.reduce(stream, memory, row);
            started.map(|()| {
                queue.n_rows += 1;
                DeviceWork::Row(row)
            })
        } else {
            let started = self.device.copy(stream, memory);
            started.map(|bytes| {
                queue.n_bytes_waiting += memory.n_bytes;
                DeviceWork::Copy(bytes)
            })
        };
        match started {
            Ok(work) => {
                queue.stream = Some(stream);
                queue.tickets.push(DeviceTicket {
                    elements,
                    memo: tensor.memo().clone(),
                    n_elements,
                    work,
                });
                Some(tensor)
            }
            Err(reason) => {
                queue.fault.get_or_insert(reason);
                None
            }
        }
    }

    /// Hands a record over behind those before it, once its values are there.
    pub(super) fn submit(&self, record: WaitingRecord) {
        let mut queue = self.lock();
        if record.is_awaited() || !queue.records.is_empty() {
            queue.records.push(record);
        } else {
            drop(queue);
            // Handing over may wait.
            record.submit();
        }
    }

    /// Notes a copy of a value that was in the CPU's memory: its record may have to wait.
    pub(super) fn note_copy(&self, n_bytes: usize) {
        self.lock().n_bytes_waiting += n_bytes;
    }

    /// Waits for what is under way if there is no room for the values of another operator.
    pub(super) fn make_room(&self, n_values: usize) {
        let queue = self.lock();
        let is_full = queue.n_rows + n_values > N_ROWS_MAX
            || queue.n_bytes_waiting >= WAITING_BYTES_MAX
            || queue.records.len() >= N_ROWS_MAX;
        drop(queue);
        if is_full {
            self.settle();
        }
    }

    /// Waits for what is under way, and hands over the records that waited for it.
    pub(super) fn settle(&self) {
        let mut queue = self.lock();
        let rows = match queue.stream.take() {
            Some(_) => self.device.wait(queue.n_rows),
            None => Ok(Vec::new()),
        };
        let tickets = std::mem::take(&mut queue.tickets);
        (queue.n_rows, queue.n_bytes_waiting) = (0, 0);
        match rows {
            Ok(rows) => tickets.into_iter().for_each(|ticket| ticket.arrive(&rows)),
            Err(reason) => {
                queue.fault.get_or_insert(reason);
                tickets.into_iter().for_each(DeviceTicket::lose);
            }
        }
        let records = std::mem::take(&mut queue.records);
        drop(queue);
        records.into_iter().for_each(WaitingRecord::submit);
    }

    /// Takes the first thing that went wrong.
    pub(super) fn take_fault(&self) -> Option<String> {
        self.lock().fault.take()
    }

    fn lock(&self) -> MutexGuard<'_, DeviceQueue> {
        // Lists stay whole whatever panics.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DeviceSide {
    fn drop(&mut self) {
        // The device must not write to memory that is given back.
        self.settle();
    }
}

impl DeviceTicket {
    /// Completes the tensor with the results.
    fn arrive(self, rows: &[RowWords]) {
        let arrival = match self.work {
            DeviceWork::Copy(bytes) => DeviceArrival::Elements(bytes),
            DeviceWork::Row(row) => {
                let row = rows.get(row).map(DeviceRow::from_words);
                match row.filter(|row| row.is_of(self.n_elements)) {
                    Some(row) => {
                        self.memo.note_row(&row);
                        DeviceArrival::Numbers
                    }
                    None => DeviceArrival::Lost,
                }
            }
        };
        self.elements.arrive(arrival);
    }

    /// Marks the tensor's elements as lost.
    fn lose(self) {
        self.elements.arrive(DeviceArrival::Lost);
        if let DeviceWork::Copy(bytes) = self.work {
            // The device may still write to it.
            std::mem::forget(bytes);
        }
    }
}
