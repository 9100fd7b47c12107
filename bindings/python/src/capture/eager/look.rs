//! Locating torch's tensors in memory, and reading them.

use std::sync::Arc;

use opscope_capture::Tap;
use opscope_store::record::parallel::Placement;
use opscope_tensor::{DType, ElementKind, SharedBytes, Tensor, TensorView, dense_copy};
use pyo3::intern;
use pyo3::prelude::*;

use super::inner::EagerState;
use super::lock::lock;
use super::values::{ElementPlace, Pin, TensorSighting, ValueContent};
use crate::capture::device::DeviceWork;
use crate::capture::memory::{LentTensor, TensorMemory};
use crate::capture::reason::UnseenReason;
use crate::capture::shown::ShownValue;
use crate::capture::take::detached;

/// The subclass of distributed tensors, and its attribute with the local part.
const SPREAD: (&str, &str) = ("DTensor", "_local_tensor");
/// The subclass of collectives' results, its attribute with the tensor, and the one that says
/// whether it is ready.
const AWAITED: (&str, &str, &str) = ("AsyncCollectiveTensor", "elem", "completed");

/// A tensor that can be read.
pub(super) struct ReadableTensor<'py> {
    pub(super) subject: Bound<'py, PyAny>,
    /// `None` if its memory cannot be identified.
    pub(super) found: Option<TensorSighting>,
    /// Its placement in a distributed tensor.
    pub(super) placement: Option<Arc<Placement>>,
    is_lazy: bool,
}

impl EagerState {
    /// The location of a tensor, or why it is unknown.
    pub(super) fn look<'py>(
        &self,
        object: &Bound<'py, PyAny>,
    ) -> Result<ReadableTensor<'py>, UnseenReason> {
        let lent = match self.shared.lender.look(object) {
            Ok(lent) => lent.into_memory(),
            // Device memory can be identified, too.
            Err(UnseenReason::Device) => {
                let found = self.shared.lender.look_on_device(object);
                found.map_err(|_| UnseenReason::Device)?
            }
            Err(UnseenReason::Type(name)) if name == SPREAD.0 => {
                let part = object
                    .getattr(SPREAD.1)
                    .map_err(|_| UnseenReason::Type(name))?;
                let part = awaited(&part)?.unwrap_or(part);
                // A part that is not plain ends here; otherwise the call below would recurse
                // forever.
                self.describe(&part)?;
                let mut looked = self.look(&part)?;
                looked.placement = self.placements.find(object);
                return Ok(looked);
            }
            Err(reason) => match awaited(object)? {
                Some(result) => {
                    self.describe(&result)?;
                    return self.look(&result);
                }
                None => return Err(reason),
            },
        };
        let subject = object.clone();
        if lent.is_packed() {
            return Err(UnseenReason::ElementType("float4_e2m1fn_x2".to_owned()));
        }
        // When in doubt torch resolves it, which returns the same tensor if there is nothing to
        // resolve.
        let is_lazy = is_lazy(object, lent.dtype).unwrap_or(true);
        let TensorMemory {
            address,
            dtype,
            shape,
            strides,
            ..
        } = lent;
        let place = ElementPlace {
            address,
            dtype,
            shape,
            strides,
            is_lazy,
        };
        Ok(ReadableTensor {
            found: find(&subject, place).ok(),
            subject,
            placement: None,
            is_lazy,
        })
    }

    /// Whether a tensor is plain, or why it is unreadable.
    fn describe(&self, object: &Bound<'_, PyAny>) -> Result<(), UnseenReason> {
        let lender = &self.shared.lender;
        match lender.look(object) {
            Ok(_) => Ok(()),
            Err(UnseenReason::Device) => lender.look_on_device(object).map(|_| ()),
            Err(reason) => Err(reason),
        }
    }

    /// Keeps the address of a storage object reserved, unless it already is.
    pub(super) fn pin(&self, subject: &Bound<'_, PyAny>, storage: usize) -> PyResult<Pin> {
        if lock(&self.values).has(storage) {
            return Ok(None);
        }
        let py = subject.py();
        let found = subject.call_method0(intern!(py, "untyped_storage"))?;
        let pin: usize = found.call_method0(intern!(py, "_weak_ref"))?.extract()?;
        Ok(Some(pin))
    }

    /// The current elements, for a record and for reuse.
    pub(super) fn read(
        &self,
        tap: &Tap,
        looked: &ReadableTensor<'_>,
    ) -> Result<(Tensor, ValueContent), UnseenReason> {
        if looked.is_lazy {
            let resolved = resolved(&looked.subject).map_err(|_| UnseenReason::NoMemory)?;
            return self.read_memory(tap, &resolved);
        }
        self.read_memory(tap, &looked.subject)
    }

    fn read_memory(
        &self,
        tap: &Tap,
        subject: &Bound<'_, PyAny>,
    ) -> Result<(Tensor, ValueContent), UnseenReason> {
        let py = subject.py();
        let lent = match self.shared.lender.look(subject) {
            Ok(lent) => lent,
            Err(UnseenReason::Device) => return self.read_device(tap, subject),
            Err(reason) => return Err(reason),
        };
        let dense = match &lent.strides {
            Some(strides) => Some(self.gather(py, &lent, strides)?),
            None => None,
        };
        if self.shared.is_reducing {
            let bytes = dense.as_deref().unwrap_or(lent.bytes());
            let view = TensorView::new(lent.dtype, &lent.shape, bytes);
            let tensor =
                detached(py, bytes.len(), || tap.take(view)).map_err(|_| UnseenReason::Copy)?;
            // Statistics are small enough to keep; elements would waste memory.
            let content = if tensor.has_elements() {
                ValueContent::None
            } else {
                ValueContent::Numbers(tensor.clone())
            };
            return Ok((tensor, content));
        }
        let bytes: SharedBytes = match dense {
            Some(bytes) => Arc::new(bytes),
            None => {
                let (pool, bytes) = (&self.shared.pool, lent.bytes());
                Arc::new(detached(py, bytes.len(), || {
                    pool.copy(bytes).map_err(|_| UnseenReason::Copy)
                })?)
            }
        };
        // Only writers keep the copy, so that reuse adds nothing to the queue's memory.
        let weak = Arc::downgrade(&bytes);
        let tensor =
            Tensor::new(lent.dtype, lent.shape.clone(), bytes).map_err(|_| UnseenReason::Shape)?;
        let content = ValueContent::Copy(weak, tensor.memo().clone());
        Ok((tensor, content))
    }

    /// Statistics or elements of a device tensor, which arrive later unless torch must copy it.
    fn read_device(
        &self,
        tap: &Tap,
        subject: &Bound<'_, PyAny>,
    ) -> Result<(Tensor, ValueContent), UnseenReason> {
        let shared = &self.shared;
        let memory = shared.lender.look_on_device(subject);
        let memory = memory.map_err(|_| UnseenReason::Device)?;
        let asked = match &shared.devices {
            // A program may write to its tensors at any time.
            Some(link) => link.request(shared, subject, &memory, false),
            None => Err(UnseenReason::Device),
        };
        match asked {
            Ok((tensor, work)) => {
                let content = match tensor.device_elements() {
                    // Elements would waste memory.
                    Some(elements) if work == DeviceWork::Copy => {
                        let memo = tensor.memo().clone();
                        ValueContent::DeviceCopy(Arc::downgrade(elements), memo)
                    }
                    _ => ValueContent::Numbers(tensor.clone()),
                };
                Ok((tensor, content))
            }
            Err(UnseenReason::Device) => {
                match shared.show_parts(subject, UnseenReason::Device, Some(tap))? {
                    ShownValue::Whole(tensor) if tensor.has_elements() => {
                        Ok((tensor, ValueContent::None))
                    }
                    ShownValue::Whole(tensor) => {
                        let content = ValueContent::Numbers(tensor.clone());
                        Ok((tensor, content))
                    }
                    ShownValue::Parts(_) => Err(UnseenReason::Device),
                }
            }
            Err(reason) => Err(reason),
        }
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
        if n_bytes > bytes.len() && n_bytes as u64 > self.shared.queue_bytes_max {
            return Err(UnseenReason::Expanded);
        }
        detached(py, n_bytes, || {
            dense_copy(dtype, shape, strides, 0, bytes).map_err(|_| UnseenReason::Copy)
        })
    }

    /// The elements as read before; `None` if they have been freed.
    pub(super) fn again(
        &self,
        looked: &ReadableTensor<'_>,
        content: &ValueContent,
    ) -> Option<Tensor> {
        let place = &looked.found.as_ref()?.place;
        match content {
            ValueContent::None | ValueContent::Unseen(_) => None,
            ValueContent::Copy(bytes, memo) => {
                let bytes = bytes.upgrade()?;
                let tensor = Tensor::new(place.dtype, place.shape.clone(), bytes).ok()?;
                Some(tensor.with_memo(memo.clone()))
            }
            ValueContent::DeviceCopy(elements, memo) => {
                let (dtype, shape) = (place.dtype, place.shape.clone());
                let tensor = Tensor::on_device(dtype, shape, elements.upgrade()?).ok()?;
                Some(tensor.with_memo(memo.clone()))
            }
            ValueContent::Numbers(tensor) if *tensor.shape() == place.shape => Some(tensor.clone()),
            // The same elements in another shape: the statistics apply, the shape does not.
            ValueContent::Numbers(tensor) => {
                if let Some(elements) = tensor.device_elements() {
                    let (dtype, shape) = (place.dtype, place.shape.clone());
                    let other = Tensor::on_device(dtype, shape, elements.clone()).ok()?;
                    return Some(other.with_memo(tensor.memo().clone()));
                }
                let lent = self.shared.lender.look(&looked.subject).ok()?;
                let view = TensorView::new(lent.dtype, &lent.shape, lent.bytes());
                Tensor::from_memo(view, tensor.memo().clone()).ok()
            }
        }
    }

    /// Forgets freed memory.
    pub(super) fn sweep(&self, py: Python<'_>) -> PyResult<()> {
        let (known, spare, [expired, free]) = lock(&self.values).take_suspects(py);
        let mut gone = Vec::new();
        for storage in known {
            if expired.call1(py, (storage,))?.is_truthy(py)? {
                gone.push(storage);
            }
        }
        // Freed storages stay freed and are no longer looked up.
        lock(&self.values).forget(&gone);
        for storage in gone.into_iter().chain(spare) {
            free.call1(py, (storage,))?;
        }
        Ok(())
    }
}

/// The tensor in a collective's result; `None` for any other tensor.
///
/// # Errors
///
/// If the result is not ready: its memory is undefined until then.
fn awaited<'py>(object: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyAny>>, UnseenReason> {
    let found = object.get_type();
    if !found.name().is_ok_and(|name| name == AWAITED.0) {
        return Ok(None);
    }
    let failed = |_| UnseenReason::of_type(&found);
    let is_there = object.getattr(AWAITED.2).and_then(|flag| flag.is_truthy());
    if !is_there.map_err(failed)? {
        return Err(UnseenReason::unfinished());
    }
    object.getattr(AWAITED.1).map(Some).map_err(failed)
}

fn find(subject: &Bound<'_, PyAny>, place: ElementPlace) -> PyResult<TensorSighting> {
    let py = subject.py();
    let storage = subject.call_method0(intern!(py, "untyped_storage"))?;
    let is_counted = !subject
        .call_method0(intern!(py, "is_inference"))?
        .is_truthy()?;
    // Torch raises an error for the version counter of an inference tensor.
    let version = if is_counted {
        Some(subject.getattr(intern!(py, "_version"))?.extract()?)
    } else {
        None
    };
    Ok(TensorSighting {
        storage: storage.getattr(intern!(py, "_cdata"))?.extract()?,
        version,
        place,
        object: subject.as_ptr().addr(),
        // Torch does not resize memory shared with NumPy or provided externally.
        is_shared: !storage
            .call_method0(intern!(py, "resizable"))?
            .is_truthy()?,
    })
}

/// Whether the elements differ from the contents of memory.
fn is_lazy(tensor: &Bound<'_, PyAny>, dtype: DType) -> PyResult<bool> {
    let py = tensor.py();
    let is_complex = matches!(dtype.kind(), ElementKind::Complex(_));
    if tensor.call_method0(intern!(py, "is_neg"))?.is_truthy()? {
        return Ok(true);
    }
    Ok(is_complex && tensor.call_method0(intern!(py, "is_conj"))?.is_truthy()?)
}

fn resolved<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    tensor
        .call_method0(intern!(py, "resolve_conj"))?
        .call_method0(intern!(py, "resolve_neg"))
}
