//! From torch's tensors to what a record is made of.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use opscope_capture::Tap;
use opscope_tensor::{Identity, SharedBytes, Tensor, dense_copy};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::description::Stability;
use super::memory::Lent;
use super::reason::Reason;
use super::shared::Shared;
use super::shown::Shown;

/// Shorter work is done before another thread could have taken the interpreter over.
const DETACH_BYTES_MIN: usize = 64 << 10;

/// Works without the interpreter, if the work is long enough.
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

/// Tensors that stand for another one: what each of them is, the tensor, and whether nobody else has it.
type Parts<'py> = Vec<(String, Bound<'py, PyAny>, bool)>;

impl Shared {
    /// What a value is made of, or why nothing can be shown.
    pub(super) fn show(
        &self,
        stability: Stability,
        object: &Bound<'_, PyAny>,
        tap: Option<&Tap>,
    ) -> Result<Shown, Reason> {
        match self.take(stability, object, tap) {
            Ok(tensor) => Ok(Shown::Whole(tensor)),
            Err(reason) => self.show_parts(object, reason, tap),
        }
    }

    /// Asks Python for plain tensors that a tensor of another kind is made of.
    fn show_parts(
        &self,
        object: &Bound<'_, PyAny>,
        reason: Reason,
        tap: Option<&Tap>,
    ) -> Result<Shown, Reason> {
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
            return Err(Reason::Known(text.to_string()));
        }
        let Ok((parts, is_copied)) = answer.extract::<(Parts<'_>, bool)>() else {
            return Err(reason);
        };
        let mut shown = Vec::with_capacity(parts.len());
        for (name, part, is_own) in parts {
            let stability = match is_own {
                true => Stability::Held,
                false => Stability::Operator,
            };
            shown.push((name, self.take(stability, &part, tap)?));
        }
        if is_copied {
            self.n_copied_from_device.fetch_add(1, Ordering::Relaxed);
        }
        match (shown.pop(), shown.is_empty()) {
            (None, _) => Err(reason),
            (Some((name, tensor)), true) if name.is_empty() => Ok(Shown::Whole(tensor)),
            (Some(last), _) => {
                shown.push(last);
                Ok(Shown::Parts(shown))
            }
        }
    }

    fn take(
        &self,
        stability: Stability,
        object: &Bound<'_, PyAny>,
        tap: Option<&Tap>,
    ) -> Result<Tensor, Reason> {
        let lent = self.lender.look(object)?;
        let outlives = stability == Stability::Held;
        if !outlives && lent.strides.is_none() && self.is_reducing {
            // Numbers are taken here and now: writers would find what the caller or a later operator has written.
            if let Some(numbers) = self.numbers(object.py(), &lent, tap) {
                return Ok(numbers);
            }
        }
        let (bytes, identity) = match &lent.strides {
            Some(strides) => self.shared_bytes(self.gather(object.py(), &lent, strides)?),
            None if outlives => self.shared_bytes(lent.hold(&self.released)),
            None => {
                let (pool, bytes) = (&self.pool, lent.bytes());
                let copy = || pool.copy(bytes).map_err(|_| Reason::Copy);
                self.shared_bytes(detached(object.py(), bytes.len(), copy)?)
            }
        };
        let tensor = lent.tensor(bytes)?;
        Ok(match identity {
            Some(identity) => tensor.with_identity(identity),
            None => tensor,
        })
    }

    /// Memory to share, and a name for it if the sink makes anything of names.
    fn shared_bytes<T: AsRef<[u8]> + Send + Sync + 'static>(
        &self,
        bytes: T,
    ) -> (SharedBytes, Option<Identity>) {
        let owner = Arc::new(bytes);
        let identity = self.has_identities.then(|| Identity::of(&owner));
        (owner, identity)
    }

    /// What the sink needs of the tensor; `None` if that is its elements.
    fn numbers(&self, py: Python<'_>, lent: &Lent<'_, '_>, tap: Option<&Tap>) -> Option<Tensor> {
        let tap = tap?;
        let held = Arc::new(lent.hold(&self.released));
        let tensor = lent.tensor(held).ok()?;
        let n_bytes = tensor.n_bytes();
        let looked_at = detached(py, n_bytes, || tap.look(tensor));
        (!looked_at.has_elements()).then_some(looked_at)
    }

    /// The elements side by side.
    fn gather(
        &self,
        py: Python<'_>,
        lent: &Lent<'_, '_>,
        strides: &[isize],
    ) -> Result<Vec<u8>, Reason> {
        let (dtype, shape, bytes) = (lent.dtype, &lent.shape, lent.bytes());
        let n_bytes = shape.n_bytes(dtype).map_err(|_| Reason::Shape)?;
        if n_bytes > bytes.len() && n_bytes as u64 > self.queue_bytes_max {
            return Err(Reason::Expanded);
        }
        let copy = || dense_copy(dtype, shape, strides, 0, bytes).map_err(|_| Reason::Copy);
        detached(py, n_bytes, copy)
    }
}
