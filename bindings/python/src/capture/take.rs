//! Converting torch's tensors to records.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use opscope_capture::Tap;
use opscope_tensor::{
    DType, DeviceElements, SharedBytes, Tensor, TensorIdentity, TensorMemo, TensorObserver,
    TensorView, dense_copy,
};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::description::Stability;
use super::device::DeviceWork;
use super::memory::{LentTensor, TensorMemory};
use super::reason::UnseenReason;
use super::shared::TorchSessionState;
use super::shown::ShownValue;

/// Shorter work is done before another thread could take over the interpreter.
const DETACH_BYTES_MIN: usize = 64 << 10;

/// Releases the interpreter during the work if that is long enough.
pub(super) fn detached<T: Send>(
    py: Python<'_>,
    n_bytes: usize,
    work: impl FnOnce() -> T + Send,
) -> T {
    if n_bytes < DETACH_BYTES_MIN {
        return work();
    }
    py.detach(work)
}

/// Statistics of a tensor that was read in place, with its location.
pub(super) struct KnownNumbers {
    place: (usize, usize),
    dtype: DType,
    memo: Arc<TensorMemo>,
    /// The elements, if a device is to compute the statistics.
    elements: Option<Arc<DeviceElements>>,
    /// Whether the elements were read in row-major order. Statistics in another order are only kept
    /// if the order does not matter.
    is_row_major: bool,
}

/// Computes statistics during an operator's recording.
pub(super) struct NumberTaker<'a> {
    pub(super) tap: Option<&'a Tap>,
    /// Those of the operator's inputs.
    pub(super) known: &'a [&'a KnownNumbers],
    /// Whether device values may arrive later.
    pub(super) may_wait: bool,
}

/// Substitutes of a tensor: each with its name, and whether it is unshared.
type Parts<'py> = Vec<(String, Bound<'py, PyAny>, bool)>;

impl TorchSessionState {
    /// Returns a value's tensors at once, wherever they are.
    ///
    /// # Errors
    ///
    /// The reason why the value cannot be observed.
    pub(super) fn show(
        &self,
        stability: Stability,
        object: &Bound<'_, PyAny>,
        tap: Option<&Tap>,
    ) -> Result<ShownValue, UnseenReason> {
        let eye = NumberTaker {
            tap,
            known: &[],
            may_wait: false,
        };
        let (shown, _) = self.show_knowing(stability, object, &eye)?;
        Ok(shown)
    }

    /// Like `show`, also returning statistics that apply to other tensors in the same memory.
    pub(super) fn show_knowing(
        &self,
        stability: Stability,
        object: &Bound<'_, PyAny>,
        eye: &NumberTaker<'_>,
    ) -> Result<(ShownValue, Option<KnownNumbers>), UnseenReason> {
        match self.take(stability, object, eye) {
            Ok((tensor, known)) => Ok((ShownValue::Whole(tensor), known)),
            Err(reason @ UnseenReason::Refused(_)) => Err(reason),
            Err(reason) => Ok((self.show_parts(object, reason, eye.tap)?, None)),
        }
    }

    /// Asks Python for the plain tensors that make up another tensor.
    pub(super) fn show_parts(
        &self,
        object: &Bound<'_, PyAny>,
        reason: UnseenReason,
        tap: Option<&Tap>,
    ) -> Result<ShownValue, UnseenReason> {
        let Some(forms) = &self.forms else {
            return Err(reason);
        };
        let answer = match forms.bind(object.py()).call1((object, reason.name())) {
            Ok(answer) if answer.is_none() => return Err(reason),
            Ok(answer) => answer,
            Err(error) => {
                self.note_fault(|| format!("{}: {error}", reason.name()));
                return Err(reason);
            }
        };
        if let Ok(text) = answer.cast::<PyString>() {
            return Err(UnseenReason::Known(text.to_string()));
        }
        let Ok((parts, is_copied)) = answer.extract::<(Parts<'_>, bool)>() else {
            return Err(reason);
        };
        let mut shown = Vec::with_capacity(parts.len());
        for (name, part, is_own) in parts {
            // A tensor created by Python for this call is not written to; the program's tensors are
            // only valid until the next operator.
            let stability = if is_own {
                Stability::Held
            } else {
                Stability::Operator
            };
            // Parts are in host memory, wherever the tensor is.
            let lent = self.lender.look_on_host(&part)?;
            let eye = NumberTaker {
                tap,
                known: &[],
                may_wait: false,
            };
            let (tensor, _) = self.take_lent(stability, &lent, &eye)?;
            shown.push((name, tensor));
        }
        if is_copied {
            self.n_copied_from_device.fetch_add(1, Ordering::Relaxed);
        }
        match (shown.pop(), shown.is_empty()) {
            (None, _) => Err(reason),
            // A single unnamed tensor is the same value in plain memory, such as a copy from
            // another device, and keeps the value's name in the record.
            (Some((name, tensor)), true) if name.is_empty() => Ok(ShownValue::Whole(tensor)),
            (Some(last), _) => {
                shown.push(last);
                Ok(ShownValue::Parts(shown))
            }
        }
    }

    fn take(
        &self,
        stability: Stability,
        object: &Bound<'_, PyAny>,
        eye: &NumberTaker<'_>,
    ) -> Result<(Tensor, Option<KnownNumbers>), UnseenReason> {
        match self.lender.look(object) {
            Ok(lent) => self.take_lent(stability, &lent, eye),
            Err(UnseenReason::Device) => self.take_from_device(stability, object, eye),
            Err(reason) => Err(reason),
        }
    }

    /// Makes a device compute statistics, or copy the elements; the result arrives later.
    fn take_from_device(
        &self,
        stability: Stability,
        object: &Bound<'_, PyAny>,
        eye: &NumberTaker<'_>,
    ) -> Result<(Tensor, Option<KnownNumbers>), UnseenReason> {
        let Some(link) = self.devices.as_ref().filter(|_| eye.may_wait) else {
            return Err(UnseenReason::Device);
        };
        let memory = self.lender.look_on_device(object);
        let memory = memory.map_err(|_| UnseenReason::Device)?;
        let is_steady = stability != Stability::Operator;
        let may_recall = is_steady && self.reduces_on_devices && memory.strides.is_none();
        let mut known = eye.known.iter().filter(|_| may_recall);
        if let Some(known) = known.find(|known| known.is_of(&memory)) {
            return Ok((known.awaited(&memory)?, Some(known.again())));
        }
        let is_held = stability == Stability::Held;
        let (tensor, work) = link.request(self, object, &memory, is_held)?;
        let may_recall = may_recall && work == DeviceWork::Numbers;
        let known = may_recall.then(|| KnownNumbers::new(&memory, &tensor));
        Ok((tensor, known))
    }

    fn take_lent(
        &self,
        stability: Stability,
        lent: &LentTensor<'_, '_>,
        eye: &NumberTaker<'_>,
    ) -> Result<(Tensor, Option<KnownNumbers>), UnseenReason> {
        let py = lent.py();
        let mut memo = None;
        if self.is_reducing && (lent.strides.is_none() || lent.is_permuted()) {
            // Statistics are computed now: the memory is cached, torch gets it back at once, and
            // later it may have been overwritten.
            let is_steady = stability != Stability::Operator;
            let found = eye
                .known
                .iter()
                .find(|known| is_steady && known.is_of(lent));
            if let Some(known) = found {
                return Ok((known.tensor(lent)?, Some(known.again())));
            }
            match eye.tap.map(|tap| numbers(py, lent, tap)).transpose()? {
                // In another order the first non-finite element would be unknown.
                Some((numbers, true)) if lent.strides.is_none() || !numbers.non_finite().any() => {
                    let known = is_steady.then(|| KnownNumbers::new(lent, &numbers));
                    return Ok((numbers, known));
                }
                // Statistics in another order do not apply to row-major order.
                Some((numbers, _)) if lent.strides.is_none() => memo = Some(numbers.memo().clone()),
                _ => {}
            }
        }
        let (bytes, identity) = match &lent.strides {
            Some(strides) => self.shared_bytes(self.gather(py, lent, strides)?),
            // A reference suffices here instead of a copy, because the memory is not written.
            None if stability == Stability::Held => self.shared_bytes(lent.hold(&self.released)),
            None => {
                let (pool, bytes) = (&self.pool, lent.bytes());
                self.shared_bytes(detached(py, bytes.len(), || {
                    pool.copy(bytes).map_err(|_| UnseenReason::Copy)
                })?)
            }
        };
        let tensor = lent.tensor(bytes)?;
        // The sink has seen the statistics and wants the elements.
        if let Some(memo) = memo {
            return Ok((tensor.with_memo(memo), None));
        }
        let tensor = match (eye.tap, identity) {
            (Some(tap), None) if self.is_reducing => {
                detached(py, tensor.n_bytes(), || tap.look(tensor))
            }
            (_, None) => tensor,
            (_, Some(identity)) => tensor.with_identity(identity),
        };
        Ok((tensor, None))
    }

    /// Memory to share, with an identity if the sink uses them.
    fn shared_bytes<T: AsRef<[u8]> + Send + Sync + 'static>(
        &self,
        bytes: T,
    ) -> (SharedBytes, Option<TensorIdentity>) {
        let owner = Arc::new(bytes);
        let identity = self
            .has_identities
            .then(|| TensorIdentity::from_owner(&owner));
        (owner, identity)
    }

    /// The elements, made contiguous.
    fn gather(
        &self,
        py: Python<'_>,
        lent: &LentTensor<'_, '_>,
        strides: &[isize],
    ) -> Result<Vec<u8>, UnseenReason> {
        let (dtype, shape, bytes) = (lent.dtype, &lent.shape, lent.bytes());
        let n_bytes = shape.n_bytes(dtype).map_err(|_| UnseenReason::Shape)?;
        // Written out, an expanded tensor of a few bytes may exceed the memory.
        if n_bytes > bytes.len() && n_bytes as u64 > self.queue_bytes_max {
            return Err(UnseenReason::Expanded);
        }
        detached(py, n_bytes, || {
            dense_copy(dtype, shape, strides, 0, bytes).map_err(|_| UnseenReason::Copy)
        })
    }
}

/// The sink's statistics of a tensor in place, and whether it needs nothing more.
fn numbers(
    py: Python<'_>,
    lent: &LentTensor<'_, '_>,
    tap: &Tap,
) -> Result<(Tensor, bool), UnseenReason> {
    let (dtype, shape) = lent.unpacked()?;
    let view = TensorView::new(dtype, &shape, lent.bytes());
    let memo = Arc::<TensorMemo>::default();
    let is_row_major = lent.strides.is_none();
    let is_enough = detached(py, view.bytes.len(), || {
        let tensor = TensorObserver::new(view, &memo);
        if is_row_major {
            tap.look_at(tensor)
        } else {
            tap.look_at_permuted(tensor)
        }
    });
    let numbers = Tensor::from_memo(view, memo).map_err(|_| UnseenReason::Shape)?;
    Ok((numbers, is_enough))
}

impl KnownNumbers {
    fn new(lent: &TensorMemory, numbers: &Tensor) -> KnownNumbers {
        KnownNumbers {
            elements: numbers.device_elements().cloned(),
            place: lent.place(),
            dtype: numbers.dtype(),
            memo: numbers.memo().clone(),
            is_row_major: lent.strides.is_none(),
        }
    }

    fn again(&self) -> KnownNumbers {
        KnownNumbers {
            memo: self.memo.clone(),
            elements: self.elements.clone(),
            ..*self
        }
    }

    /// Whether it applies to these elements: an operator has read them at this location, so they
    /// exist since and are not written. Row-major statistics need not apply to another order,
    /// because averages depend on it.
    fn is_of(&self, lent: &TensorMemory) -> bool {
        let dtype = lent.unpacked().map(|(dtype, _)| dtype);
        let is_same_order = lent.strides.is_none() || !self.is_row_major;
        is_same_order && self.place == lent.place() && dtype.is_ok_and(|dtype| dtype == self.dtype)
    }

    /// The tensor in device `memory` whose statistics are computed or pending.
    fn awaited(&self, memory: &TensorMemory) -> Result<Tensor, UnseenReason> {
        let (dtype, shape) = memory.unpacked()?;
        let elements = self.elements.clone().ok_or(UnseenReason::Device)?;
        let tensor = Tensor::on_device(dtype, shape, elements).map_err(|_| UnseenReason::Shape)?;
        Ok(tensor.with_memo(self.memo.clone()))
    }

    fn tensor(&self, lent: &LentTensor<'_, '_>) -> Result<Tensor, UnseenReason> {
        let (dtype, shape) = lent.unpacked()?;
        let view = TensorView::new(dtype, &shape, lent.bytes());
        Tensor::from_memo(view, self.memo.clone()).map_err(|_| UnseenReason::Shape)
    }
}
