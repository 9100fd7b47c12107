//! The space for elements: memory up to a limit, then a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::SinkError;
use opscope_store::{HeldElements, StoreError};
use opscope_tensor::{HostAccessError, Tensor, TensorElements};

/// Tensors in the file begin at multiples of this, so that reading them crosses no more lines of a
/// cache than it has to.
const ALIGNMENT: u64 = 64;

/// Memory up to a limit, and a file beyond it. Several dumps may share both.
pub struct HeldRoom {
    bytes_max: u64,
    n_bytes_in_memory: AtomicU64,
    spill: Mutex<Option<SpillFile>>,
}

/// An unnamed file in the directory for temporary files. The system removes it when it is closed,
/// however this process ends, and no other process can open it.
struct SpillFile {
    file: Arc<File>,
    n_bytes: u64,
}

impl HeldRoom {
    /// Room for this many bytes in memory.
    pub fn new(bytes_max: u64) -> HeldRoom {
        HeldRoom {
            bytes_max,
            n_bytes_in_memory: AtomicU64::new(0),
            spill: Mutex::new(None),
        }
    }

    /// Bytes in memory, and bytes in the file.
    pub fn n_bytes(&self) -> [u64; 2] {
        let spill = self.spill.lock().unwrap_or_else(PoisonError::into_inner);
        let in_file = spill.as_ref().map_or(0, |spill| spill.n_bytes);
        [self.n_bytes_in_memory.load(Ordering::Relaxed), in_file]
    }

    pub(super) fn hold(&self, tensor: &Tensor) -> Result<HeldElements, SinkError> {
        let TensorElements::Host(bytes) = tensor.elements() else {
            return Err(HostAccessError.into());
        };
        let n_bytes = tensor.n_bytes() as u64;
        let taken = self
            .n_bytes_in_memory
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                n.checked_add(n_bytes).filter(|n| *n <= self.bytes_max)
            });
        // By reference: the engine makes its next tensors in other memory.
        if taken.is_ok() {
            return Ok(HeldElements::in_memory(bytes.clone()));
        }
        let written = self.spill((**bytes).as_ref());
        Ok(written.map_err(StoreError::io(
            "write a temporary file in",
            &std::env::temp_dir(),
        ))?)
    }

    fn spill(&self, bytes: &[u8]) -> io::Result<HeldElements> {
        let (file, offset) = {
            let mut spill = self.spill.lock().unwrap_or_else(PoisonError::into_inner);
            let spill = match &mut *spill {
                Some(spill) => spill,
                none => none.insert(SpillFile {
                    file: Arc::new(tempfile::tempfile()?),
                    n_bytes: 0,
                }),
            };
            let offset = spill.n_bytes.next_multiple_of(ALIGNMENT);
            spill.n_bytes = offset + bytes.len() as u64;
            (spill.file.clone(), offset)
        };
        // Outside the lock: writers work side by side, each in its own part.
        file.write_all_at(bytes, offset)?;
        Ok(HeldElements::in_file(file, offset, bytes.len()))
    }
}
