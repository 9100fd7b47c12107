//! Tensors that the form of a dump has no place for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opscope_capture::WrittenFiles;
use opscope_store::file_format::dump_data;
use opscope_store::record::Record;
use opscope_tensor::{DType, Tensor};

/// Why tensors were left out, and how many for each reason.
#[derive(Default)]
pub(super) struct Refusals(Mutex<BTreeMap<String, u64>>);

impl Refusals {
    /// Counts a tensor.
    pub(super) fn refuse(&self, reason: String) -> WrittenFiles {
        *self.lock().entry(reason).or_default() += 1;
        WrittenFiles {
            n_refused: 1,
            ..WrittenFiles::default()
        }
    }

    /// All reasons so far, sorted.
    pub(super) fn all(&self) -> BTreeMap<String, u64> {
        self.lock().clone()
    }

    /// The record without the tensors of dtypes that `DumpData` has no number for, which are
    /// counted.
    pub(super) fn numbered<'r>(&self, record: &'r Record) -> (Cow<'r, Record>, WrittenFiles) {
        let has_number = |tensor: &Tensor| dump_data::dtype_code(tensor.dtype()).is_some();
        if record.slots().all(|(_, _, tensor)| has_number(tensor)) {
            return (Cow::Borrowed(record), WrittenFiles::default());
        }
        // Tensors are shared, so that this copies no elements.
        let mut kept = record.clone();
        let mut written = WrittenFiles::default();
        for slots in [&mut kept.inputs, &mut kept.outputs] {
            slots.retain(|(_, tensor)| {
                let is_kept = has_number(tensor);
                if !is_kept {
                    written = written + self.refuse(reason(tensor.dtype()));
                }
                is_kept
            });
        }
        (Cow::Owned(kept), written)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        // Counts stay whole whatever panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reason(dtype: DType) -> String {
    format!("tensor files of AscendCL have no number for {dtype}")
}
