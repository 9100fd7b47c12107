//! Allocating, copying and filling memory.

use crate::handle::Handle;
use crate::memory::MemoryKind;
use crate::status::{
    INVALID_PARAM, RT_FEATURE_NOT_SUPPORT, RT_MEMORY_ALLOCATION, RT_PARAM_INVALID,
};
use crate::{AclProcess, Answer};

/// Directions of copies; all memory is the host's, so they are equivalent.
const N_COPY_KINDS: i32 = 8;
/// Device memory comes in multiples of this many bytes, and `aclrtMalloc` adds one.
const DEVICE_UNIT: usize = 32;
/// Kinds of memory in `aclrtGetMemInfo`.
const N_MEMORY_KINDS: i32 = 11;

impl AclProcess {
    /// `aclrtMalloc`. The memory is zero. Every `policy` allocates host memory.
    ///
    /// # Errors
    /// `INVALID_PARAM` for 0 bytes, `RT_MEMORY_ALLOCATION` if out of memory.
    pub fn malloc(&self, size: usize, policy: u32) -> Answer<usize> {
        // The documentation promises these additional bytes, and programs access them.
        let padded = size
            .checked_next_multiple_of(DEVICE_UNIT)
            .and_then(|size| size.checked_add(DEVICE_UNIT))
            .filter(|_| size > 0);
        self.malloc_aligned(padded.unwrap_or(size), policy)
    }

    /// `aclrtMallocAlign32`: like [`AclProcess::malloc`], but only rounded up to a multiple of the
    /// unit.
    ///
    /// # Errors
    /// As for [`AclProcess::malloc`].
    pub fn malloc_aligned(&self, size: usize, _policy: u32) -> Answer<usize> {
        self.check_memory(size)?;
        let padded = size.checked_next_multiple_of(DEVICE_UNIT).unwrap_or(size);
        self.memory.allocate(padded, MemoryKind::Device)
    }

    /// `aclrtMallocHost`.
    ///
    /// # Errors
    /// As for [`AclProcess::malloc`].
    pub fn malloc_host(&self, size: usize) -> Answer<usize> {
        self.check_memory(size)?;
        self.memory.allocate(size, MemoryKind::Host)
    }

    /// Refuses more than the machine's memory: the system might grant it, and kill the process
    /// later.
    fn check_memory(&self, size: usize) -> Answer {
        opscope_store::check_memory(size as u64)
            .map_err(|error| self.inner_error(RT_MEMORY_ALLOCATION, &error.to_string()))
    }

    /// For bindings: checks that a list or a block of `n` values is not absurdly long.
    ///
    /// # Errors
    /// `INVALID_PARAM`, reported with both numbers.
    pub fn check_count(&self, n: usize, n_max: usize) -> Answer {
        if n <= n_max {
            return Ok(());
        }
        let reason = format!("it exceeds {n_max}, the largest plausible number");
        Err(self.refuse(INVALID_PARAM, "EH0001", &[&n.to_string(), "count", &reason]))
    }

    /// `aclrtFree`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null, `RT_PARAM_INVALID` for an address that [`AclProcess::malloc`] did
    /// not return or that was freed.
    pub fn free(&self, address: usize) -> Answer {
        self.memory.release(address, MemoryKind::Device)
    }

    /// `aclrtFreeHost`.
    ///
    /// # Errors
    /// As for [`AclProcess::free`].
    pub fn free_host(&self, address: usize) -> Answer {
        self.memory.release(address, MemoryKind::Host)
    }

    /// `aclrtMemcpy`. The ranges may overlap; 0 bytes are always copied.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null, `RT_PARAM_INVALID` if `count` exceeds `to_max`, if a range leaves
    /// its allocation, or if `kind` is unknown.
    pub fn memcpy(&self, to: usize, to_max: usize, from: usize, count: usize, kind: i32) -> Answer {
        if count == 0 {
            return Ok(());
        }
        if to == 0 || from == 0 {
            return Err(INVALID_PARAM);
        }
        if count > to_max || !(0..N_COPY_KINDS).contains(&kind) {
            return Err(RT_PARAM_INVALID);
        }
        self.memory.copy(to, from, count).ok_or(RT_PARAM_INVALID)
    }

    /// `aclrtMemset`, with the lowest byte of `value`.
    ///
    /// # Errors
    /// As for [`AclProcess::memcpy`].
    pub fn memset(&self, to: usize, to_max: usize, value: i32, count: usize) -> Answer {
        if count == 0 {
            return Ok(());
        }
        if to == 0 {
            return Err(INVALID_PARAM);
        }
        if count > to_max {
            return Err(RT_PARAM_INVALID);
        }
        // Like C's `memset`, which takes an `int` and uses one byte of it.
        let [value, ..] = value.to_le_bytes();
        self.memory.fill(to, value, count).ok_or(RT_PARAM_INVALID)
    }

    /// Reads bytes at an address; for bindings that copy memory into their language.
    ///
    /// # Errors
    /// `RT_PARAM_INVALID` for null, or if the range leaves its allocation.
    pub fn read_memory(&self, address: usize, count: usize) -> Answer<Vec<u8>> {
        self.memory.read(address, count).ok_or(RT_PARAM_INVALID)
    }

    /// Writes bytes at an address.
    ///
    /// # Errors
    /// As for [`AclProcess::read_memory`].
    pub fn write_memory(&self, address: usize, bytes: &[u8]) -> Answer {
        self.memory.write(address, bytes).ok_or(RT_PARAM_INVALID)
    }

    /// `aclrtGetMemInfo`: free and total bytes of the machine, for every kind.
    ///
    /// # Errors
    /// `INVALID_PARAM` for an unknown kind, `RT_FEATURE_NOT_SUPPORT` if the system does not report
    /// them.
    pub fn mem_info(&self, kind: i32) -> Answer<(usize, usize)> {
        if !(0..N_MEMORY_KINDS).contains(&kind) {
            return Err(INVALID_PARAM);
        }
        let text = std::fs::read_to_string("/proc/meminfo").map_err(|_| RT_FEATURE_NOT_SUPPORT)?;
        let available = meminfo_bytes(&text, "MemAvailable:");
        let total = meminfo_bytes(&text, "MemTotal:");
        available.zip(total).ok_or(RT_FEATURE_NOT_SUPPORT)
    }

    /// `aclrtMemcpyAsync`: copies before it returns.
    ///
    /// # Errors
    /// As for [`AclProcess::memcpy`] and [`AclProcess::synchronize_stream`].
    pub fn memcpy_async(
        &self,
        to: usize,
        to_max: usize,
        from: usize,
        count: usize,
        kind: i32,
        stream: Handle,
    ) -> Answer {
        self.check_stream(stream)?;
        self.memcpy(to, to_max, from, count, kind)
    }

    /// `aclrtMemsetAsync`: writes before it returns.
    ///
    /// # Errors
    /// As for [`AclProcess::memset`] and [`AclProcess::synchronize_stream`].
    pub fn memset_async(
        &self,
        to: usize,
        to_max: usize,
        value: i32,
        count: usize,
        stream: Handle,
    ) -> Answer {
        self.check_stream(stream)?;
        self.memset(to, to_max, value, count)
    }
}

/// The bytes in a line of `/proc/meminfo`, which counts KiB.
fn meminfo_bytes(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: usize = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}
