//! Memory of the engine that is lent as tensors, for the time of one call.
//!
//! Writers work on other threads. The lender waits until each of its tensors has been dropped, so
//! that a tensor too large to copy is written in place.

#![expect(
    unsafe_code,
    reason = "a tensor of ours outlives the borrow of the memory, and is waited for"
)]

use std::cell::OnceCell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use opscope_tensor::{DType, Shape, Tensor};

/// Lends memory that is there for `'a`. It exists only inside of [`lending`].
pub(super) struct MemoryLender<'a> {
    loans: OnceCell<Arc<LoanCount>>,
    /// Memory with a shorter life must not pass for such.
    memory: PhantomData<&'a mut &'a [u8]>,
}

/// How many tensors have not come back.
#[derive(Default)]
struct LoanCount {
    n_out: Mutex<usize>,
    is_back: Condvar,
}

/// One of them.
struct LentMemory {
    address: NonNull<u8>,
    n_bytes: usize,
    loans: Arc<LoanCount>,
}

// SAFETY: the memory is only read, and `lending` keeps it borrowed until the loan has been dropped.
unsafe impl Send for LentMemory {}
// SAFETY: likewise.
unsafe impl Sync for LentMemory {}

/// Runs `work`, which may lend, and returns once every tensor that was lent has been dropped, also
/// if `work` panics.
pub(super) fn lending<'a, R>(work: impl FnOnce(&MemoryLender<'a>) -> R) -> R {
    /// Waits for what is out.
    struct ReturnGuard<'a>(MemoryLender<'a>);
    impl Drop for ReturnGuard<'_> {
        fn drop(&mut self) {
            if let Some(loans) = self.0.loans.get() {
                loans.wait();
            }
        }
    }
    // The wait is in a destructor, so that it happens when `work` panics as well.
    let lender = ReturnGuard(MemoryLender {
        loans: OnceCell::new(),
        memory: PhantomData,
    });
    work(&lender.0)
}

impl<'a> MemoryLender<'a> {
    /// A tensor with these elements, where they are; `None` if they do not fit its description.
    pub(super) fn lend(&self, dtype: DType, shape: Shape, bytes: &'a [u8]) -> Option<Tensor> {
        let loans = self.loans.get_or_init(Arc::default).clone();
        // Counted before the tensor exists: it must not be able to come back before it was counted.
        *loans.lock() += 1;
        let loan = LentMemory {
            address: NonNull::from(bytes).cast(),
            n_bytes: bytes.len(),
            loans,
        };
        Tensor::new(dtype, shape, Arc::new(loan)).ok()
    }
}

impl AsRef<[u8]> for LentMemory {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: address and length are those of a slice that is borrowed for a lifetime around
        // `lending`, which does not return before this loan has been dropped. A borrowed slice is
        // not written to.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.n_bytes) }
    }
}

impl Drop for LentMemory {
    fn drop(&mut self) {
        let mut n_out = self.loans.lock();
        *n_out -= 1;
        if *n_out == 0 {
            self.loans.is_back.notify_all();
        }
    }
}

impl LoanCount {
    fn wait(&self) {
        let mut n_out = self.lock();
        // A condition variable may wake up without a cause.
        while *n_out > 0 {
            let woken = self.is_back.wait(n_out);
            n_out = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        // Nothing panics while it is held.
        self.n_out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// A thread that holds tensors until it is notified to release them.
    fn holder(is_dropped: &Arc<AtomicBool>) -> (mpsc::Sender<Tensor>, mpsc::Sender<()>) {
        let (tensors, held) = mpsc::channel::<Tensor>();
        let (leave, left) = mpsc::channel::<()>();
        let is_dropped = is_dropped.clone();
        thread::spawn(move || {
            let tensor = held.recv().unwrap();
            left.recv().unwrap();
            assert_eq!(tensor.host_bytes().unwrap(), [7; 8]);
            is_dropped.store(true, Ordering::SeqCst);
            drop(tensor);
        });
        (tensors, leave)
    }

    #[test]
    fn memory_is_back_when_the_work_ends_however_it_does() {
        for panics in [false, true] {
            let is_dropped = Arc::new(AtomicBool::new(false));
            let (tensors, leave) = holder(&is_dropped);
            let memory = vec![7_u8; 8];
            let work = || {
                lending(|lender| {
                    let shape = Shape::new([8]).unwrap();
                    let tensor = lender.lend(DType::U8, shape, &memory).unwrap();
                    assert_eq!(tensor.host_bytes().unwrap().as_ptr(), memory.as_ptr());
                    tensors.send(tensor).unwrap();
                    assert!(!is_dropped.load(Ordering::SeqCst));
                    leave.send(()).unwrap();
                    assert!(!panics, "on purpose");
                });
            };
            assert_eq!(catch_unwind(AssertUnwindSafe(work)).is_err(), panics);
            assert!(is_dropped.load(Ordering::SeqCst));
        }
    }

    #[test]
    fn what_does_not_fit_is_not_lent() {
        let memory = [0_u8; 8];
        lending(|lender| {
            let shape = Shape::new([3]).unwrap();
            assert!(lender.lend(DType::F32, shape, &memory).is_none());
        });
    }
}
