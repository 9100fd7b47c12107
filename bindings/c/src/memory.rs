//! Allocating, copying and filling memory. There is one kind of memory: that of the process.

use opscope_acl::{Answer, Handle, status};

use crate::border::{null, process};
use crate::pointer::OutPointer;
use crate::table::{codes, results};

results! {
    // The strictest alignment of the three satisfies each of them.
    aclrtMalloc(devPtr: OutPointer<usize>, size: usize, policy: u32)
        => devPtr = process().malloc(size, policy)?;
    aclrtMallocAlign32(devPtr: OutPointer<usize>, size: usize, policy: u32)
        => devPtr = process().malloc_aligned(size, policy)?;
    aclrtMallocCached(devPtr: OutPointer<usize>, size: usize, policy: u32)
        => devPtr = process().malloc(size, policy)?;
    aclrtMallocHost(hostPtr: OutPointer<usize>, size: usize) => hostPtr = process().malloc_host(size)?;

    // The configuration, such as a device, makes no difference here.
    aclrtMallocWithCfg(devPtr: OutPointer<usize>, size: usize, policy: u32, _config: usize)
        => devPtr = process().malloc(size, policy)?;
    aclrtMallocForTaskScheduler(devPtr: OutPointer<usize>, size: usize, policy: u32, _config: usize)
        => devPtr = process().malloc(size, policy)?;
    aclrtMallocHostWithCfg(ptr: OutPointer<usize>, size: u64, _config: usize) => ptr = {
        let size = usize::try_from(size).map_err(|_| status::INVALID_PARAM)?;
        process().malloc_host(size)?
    };

    // The device reads the host's memory in place.
    aclrtHostRegister(address: usize, size: u64, kind: i32, devPtr: OutPointer<usize>) => devPtr = {
        if !matches!(kind, 0 | 4 | 8) {
            return Err(status::INVALID_PARAM);
        }
        check_range(FUNCTION, "ptr", address, size)?;
        address
    };
    aclrtHostGetDevicePointer(address: usize, pDevice: OutPointer<usize>, _flags: u32)
        => pDevice = check_range(FUNCTION, "ptr", address, 1).map(|()| address)?;
}

codes! {
    aclrtHostRegisterV2(address: usize, size: u64, _flags: u32)
        => check_range("aclrtHostRegisterV2", "ptr", address, size);
    aclrtHostUnregister(address: usize) => check_range("aclrtHostUnregister", "ptr", address, 1);
    aclrtFree(address: usize) => process().free(address);
    aclrtFreeHost(address: usize) => process().free_host(address);
    aclrtMemFlush(address: usize, size: usize)
        => check_range("aclrtMemFlush", "devPtr", address, size as u64);
    aclrtMemInvalidate(address: usize, size: usize)
        => check_range("aclrtMemInvalidate", "devPtr", address, size as u64);

    aclrtMemcpy(to: usize, to_size: usize, from: usize, count: usize, kind: i32)
        => process().memcpy(to, to_size, from, count, kind);
    aclrtMemcpyAsync(
        to: usize, to_size: usize, from: usize, count: usize, kind: i32, stream: Handle,
    ) => process().memcpy_async(to, to_size, from, count, kind, stream);
    aclrtMemcpy2d(
        to: usize, to_pitch: usize, from: usize, from_pitch: usize,
        width: usize, height: usize, kind: i32,
    ) => CopyRows::new(to, to_pitch, from, from_pitch, width, height)?
        .copy(|to, from| process().memcpy(to, width, from, width, kind));
    aclrtMemcpy2dAsync(
        to: usize, to_pitch: usize, from: usize, from_pitch: usize,
        width: usize, height: usize, kind: i32, stream: Handle,
    ) => CopyRows::new(to, to_pitch, from, from_pitch, width, height)?
        .copy(|to, from| process().memcpy_async(to, width, from, width, kind, stream));

    aclrtMemset(address: usize, size: usize, value: i32, count: usize)
        => process().memset(address, size, value, count);
    aclrtMemsetAsync(address: usize, size: usize, value: i32, count: usize, stream: Handle)
        => process().memset_async(address, size, value, count, stream);

    aclrtGetMemInfo(kind: i32, n_free: OutPointer<usize>, n_total: OutPointer<usize>) => {
        n_free.require("aclrtGetMemInfo", "free")?;
        n_total.require("aclrtGetMemInfo", "total")?;
        let (free, total) = process().mem_info(kind)?;
        n_free.set(free);
        n_total.set(total);
        Ok(())
    };
}

/// Checks memory of which nothing else is needed: there is no device cache to write back.
fn check_range(function: &'static str, name: &'static str, address: usize, size: u64) -> Answer {
    if address == 0 {
        return Err(null(function, name));
    }
    if size == 0 {
        return Err(status::INVALID_PARAM);
    }
    Ok(())
}

/// Rows of equal length and stride.
struct CopyRows {
    to: usize,
    to_pitch: usize,
    from: usize,
    from_pitch: usize,
    height: usize,
}

impl CopyRows {
    fn new(
        to: usize,
        to_pitch: usize,
        from: usize,
        from_pitch: usize,
        width: usize,
        height: usize,
    ) -> Answer<CopyRows> {
        // The last row's address is checked before the first row is copied, so no sum below
        // overflows.
        let is_plausible = width != 0
            && height != 0
            && width <= to_pitch.min(from_pitch)
            && end(to, to_pitch, height).is_some()
            && end(from, from_pitch, height).is_some();
        if to == 0 || from == 0 || !is_plausible {
            return Err(status::INVALID_PARAM);
        }
        Ok(CopyRows {
            to,
            to_pitch,
            from,
            from_pitch,
            height,
        })
    }

    fn copy(&self, mut copy: impl FnMut(usize, usize) -> Answer) -> Answer {
        (0..self.height)
            .try_for_each(|i| copy(self.to + i * self.to_pitch, self.from + i * self.from_pitch))
    }
}

fn end(start: usize, pitch: usize, height: usize) -> Option<usize> {
    start.checked_add(pitch.checked_mul(height)?)
}
