//! Memory allocated by the interface, and the only place that dereferences an address.
//!
//! Addresses come from programs in C or Python, which may also pass other memory. For memory
//! allocated here every access is checked against the allocation: its bounds, and that it was not
//! freed. Any other address is trusted, as in C: functions of the interface that take an address
//! require that it is null, in an allocation of this process, or valid for reading or writing the
//! given length. Bindings pass that requirement on to their callers; this crate never invents an
//! address.

#![expect(
    unsafe_code,
    reason = "addresses of the program are dereferenced here, and nowhere else"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::Answer;
use crate::status::{INVALID_PARAM, RT_MEMORY_ALLOCATION, RT_PARAM_INVALID};

/// Alignment of allocations in bytes, which suits every operator.
const ALIGNMENT: usize = 512;

/// Which function may free an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    Device,
    Host,
}

#[derive(Debug)]
struct Allocation {
    /// The allocator's address: `address` is the first multiple of the alignment in it.
    base: usize,
    layout: Layout,
    /// Bytes from `address` on.
    size: usize,
    kind: MemoryKind,
}

/// The allocations of a process, by address.
#[derive(Debug, Default)]
pub(crate) struct MemoryTable(RwLock<BTreeMap<usize, Allocation>>);

/// Whether an access is valid.
#[derive(Debug, PartialEq, Eq)]
enum MemoryAccess {
    /// Inside an allocation, or in the caller's memory.
    Fine,
    /// Beyond the end of an allocation or of the address space, or null.
    Bad,
}

type Allocations = BTreeMap<usize, Allocation>;

impl MemoryTable {
    /// Keeps every allocation alive while held; concurrent copies share it.
    fn keep(&self) -> RwLockReadGuard<'_, Allocations> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, Allocations> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn allocate(&self, size: usize, kind: MemoryKind) -> Answer<usize> {
        if size == 0 {
            return Err(INVALID_PARAM);
        }
        // The system has lazily zeroed memory for small alignments only.
        let layout = size
            .checked_add(ALIGNMENT)
            .and_then(|size| Layout::from_size_align(size, align_of::<u64>()).ok())
            .ok_or(RT_MEMORY_ALLOCATION)?;
        // SAFETY: the size of the layout is not 0.
        let base = unsafe { alloc_zeroed(layout) } as usize;
        if base == 0 {
            return Err(RT_MEMORY_ALLOCATION);
        }
        let address = base.next_multiple_of(ALIGNMENT);
        let allocation = Allocation {
            base,
            layout,
            size,
            kind,
        };
        self.change().insert(address, allocation);
        Ok(address)
    }

    pub(crate) fn release(&self, address: usize, kind: MemoryKind) -> Answer {
        if address == 0 {
            return Err(INVALID_PARAM);
        }
        let mut allocations = self.change();
        let is_known = allocations
            .get(&address)
            .is_some_and(|known| known.kind == kind);
        let Some(allocation) = is_known.then(|| allocations.remove(&address)).flatten() else {
            return Err(RT_PARAM_INVALID);
        };
        // SAFETY: the table held this base and layout, so they come from `alloc_zeroed` and were
        // not freed; copies hold the table's lock, so none is running.
        unsafe { dealloc(allocation.base as *mut u8, allocation.layout) };
        Ok(())
    }

    /// Whether an access stays within its allocation, or is to the caller's memory.
    pub(crate) fn admits(&self, address: usize, count: usize) -> bool {
        check(&self.keep(), address, count) == MemoryAccess::Fine
    }

    /// Reads `count` bytes; `None` if the access would leave an allocation or is null.
    pub(crate) fn read(&self, address: usize, count: usize) -> Option<Vec<u8>> {
        if count == 0 {
            return Some(Vec::new());
        }
        let mut bytes = Vec::new();
        // The program chooses the count, so the allocation must be able to fail. It comes before
        // the lock, which other threads wait for.
        bytes.try_reserve_exact(count).ok()?;
        let allocations = self.keep();
        if check(&allocations, address, count) == MemoryAccess::Bad {
            return None;
        }
        // SAFETY: the range is inside an allocation, which the guard keeps alive, or the caller has
        // promised that it is readable. `address` is not null and the range does not wrap. There is
        // room for `count` bytes, all of which are copied. No reference to the program's memory is
        // created, which another of its threads may write to meanwhile.
        unsafe {
            std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), count);
            bytes.set_len(count);
        }
        Some(bytes)
    }

    /// Writes `bytes`; `None` if the access would leave an allocation or is null.
    pub(crate) fn write(&self, address: usize, bytes: &[u8]) -> Option<()> {
        if bytes.is_empty() {
            return Some(());
        }
        let allocations = self.keep();
        if check(&allocations, address, bytes.len()) == MemoryAccess::Bad {
            return None;
        }
        // SAFETY: as for `read`, for writing; `bytes` is memory of this library, which no
        // allocation overlaps.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len());
        }
        Some(())
    }

    pub(crate) fn copy(&self, to: usize, from: usize, count: usize) -> Option<()> {
        let allocations = self.keep();
        for address in [to, from] {
            if check(&allocations, address, count) == MemoryAccess::Bad {
                return None;
            }
        }
        // SAFETY: both ranges have been checked or promised; they may overlap.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, count) };
        Some(())
    }

    pub(crate) fn fill(&self, to: usize, value: u8, count: usize) -> Option<()> {
        let allocations = self.keep();
        if check(&allocations, to, count) == MemoryAccess::Bad {
            return None;
        }
        // SAFETY: the range has been checked or promised.
        unsafe { std::ptr::write_bytes(to as *mut u8, value, count) };
        Some(())
    }
}

impl Drop for MemoryTable {
    fn drop(&mut self) {
        let allocations = std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
        for allocation in allocations.into_values() {
            // SAFETY: as in `release`; the process that owns the allocation ends with the table.
            unsafe { dealloc(allocation.base as *mut u8, allocation.layout) };
        }
    }
}

fn check(allocations: &Allocations, address: usize, count: usize) -> MemoryAccess {
    let end = address.checked_add(count);
    // A Rust slice has at most `isize::MAX` bytes.
    let Some(end) = end.filter(|_| address != 0 && isize::try_from(count).is_ok()) else {
        return MemoryAccess::Bad;
    };
    let before = allocations.range((Bound::Unbounded, Bound::Excluded(end)));
    match before.last() {
        // The last allocation that begins before the range's end either ends before the range
        // begins, or must contain all of it.
        Some((start, known)) if start + known.size > address => {
            if *start <= address && end <= start + known.size {
                MemoryAccess::Fine
            } else {
                MemoryAccess::Bad
            }
        }
        _ => MemoryAccess::Fine,
    }
}
