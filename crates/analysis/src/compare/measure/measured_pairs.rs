//! Pairs of slots that were measured while the target ran.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opscope_store::{HeldElements, SharedPath};
use opscope_tensor::difference::{self, TensorDifference};
use opscope_tensor::{DType, Layout, TensorView};

use super::masked;
use super::same_contents::PairNumbers;
use crate::compare::side::ExecutionSlot;
use crate::elements::LastFile;

/// Numbers of pairs whose target this process holds.
#[derive(Default)]
pub struct MeasuredPairs {
    pairs: Mutex<HashMap<PairKey, PairNumbers>>,
}

/// The contents of both sides and their interpretation: the same bytes may have another dtype or
/// shape in another slot.
#[derive(PartialEq, Eq, Hash)]
struct PairKey {
    target: u64,
    golden: (SharedPath, u64),
    /// Those of the target and of the golden side.
    dtypes: [DType; 2],
    shape: Vec<u64>,
}

/// A tensor and the elements of its golden partner.
pub struct StreamedDifference {
    /// The numbers.
    pub difference: TensorDifference,
    /// Whether both are the same, bit for bit.
    pub is_identical: bool,
    n_bytes: u64,
}

impl StreamedDifference {
    /// Measures a tensor against the elements of a golden slot, both as stored. `None` if layout or
    /// shape differ, or if they cannot be compared: matching the whole dumps reports such cases in
    /// detail.
    pub fn measure(
        tensor: TensorView<'_>,
        golden: &ExecutionSlot,
        file: &mut LastFile,
        options: difference::DifferenceOptions,
    ) -> Option<StreamedDifference> {
        let extents = golden.shape.as_deref()?.iter();
        let is_alike = golden.layout.unwrap_or(Layout::Nd) == tensor.layout
            && extents
                .copied()
                .eq(tensor.shape.iter().map(|&dim| dim as u64));
        if !(is_alike && golden.has_elements) {
            return None;
        }
        let found = golden.with_elements(file, |elements| {
            let difference = masked::difference(tensor, elements, options).ok()?;
            // Zeros of either sign and NaN of any kind count as equal, and are not identical.
            let is_identical = tensor.dtype == elements.dtype
                && difference.n_equal == difference.n
                && tensor.bytes == elements.bytes;
            Some(StreamedDifference {
                difference,
                is_identical,
                n_bytes: (tensor.bytes.len() + elements.bytes.len()) as u64,
            })
        });
        found.ok().flatten()
    }
}

impl MeasuredPairs {
    /// Remembers the numbers of a target that is held now.
    pub fn note(
        &self,
        (target, dtype): (&HeldElements, DType),
        golden: &ExecutionSlot,
        found: &StreamedDifference,
    ) {
        let numbers = PairNumbers::from_difference(&found.difference, found.n_bytes);
        if let Some(key) = key_of(target.number(), dtype, golden) {
            self.lock().insert(key, numbers);
        }
    }

    /// The numbers of a pair, if it was measured in this form.
    pub(super) fn get(
        &self,
        target: &ExecutionSlot,
        golden: &ExecutionSlot,
    ) -> Option<PairNumbers> {
        let is_alike = target.shape == golden.shape && target.layout == golden.layout;
        let number = target.held().filter(|_| is_alike)?.number();
        let key = key_of(number, target.dtype?, golden)?;
        self.lock().get(&key).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PairKey, PairNumbers>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key_of(target: u64, dtype: DType, golden: &ExecutionSlot) -> Option<PairKey> {
    Some(PairKey {
        target,
        golden: (golden.path.clone(), golden.contents_number()?),
        dtypes: [dtype, golden.dtype?],
        shape: golden.shape.clone()?,
    })
}
