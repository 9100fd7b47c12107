//! Setting aside, copying and filling memory. There is one kind of it: every address is the process's.

use opscope_acl::{Answer, Handle, status};

use crate::border::{Code, call, null, process};
use crate::pointer::Out;

/// Alignments of the three ways to ask are all met by the strictest one.
fn malloc(function: &'static str, address: Out<usize>, size: usize, policy: u32) -> Code {
    call(|| {
        if address.is_null() {
            return Err(null(function, "devPtr"));
        }
        address.set(process().malloc(size, policy)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMalloc(address: Out<usize>, size: usize, policy: u32) -> Code {
    malloc("aclrtMalloc", address, size, policy)
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMallocAlign32(address: Out<usize>, size: usize, policy: u32) -> Code {
    malloc("aclrtMallocAlign32", address, size, policy)
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMallocCached(address: Out<usize>, size: usize, policy: u32) -> Code {
    malloc("aclrtMallocCached", address, size, policy)
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMemFlush(address: usize, size: usize) -> Code {
    call(|| check_range("aclrtMemFlush", address, size))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMemInvalidate(address: usize, size: usize) -> Code {
    call(|| check_range("aclrtMemInvalidate", address, size))
}

/// There is no cache of a device to write back.
fn check_range(function: &'static str, address: usize, size: usize) -> Answer {
    if address == 0 {
        return Err(null(function, "devPtr"));
    }
    if size == 0 {
        return Err(status::INVALID_PARAM);
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn aclrtFree(address: usize) -> Code {
    call(|| process().free(address))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMallocHost(address: Out<usize>, size: usize) -> Code {
    call(|| {
        if address.is_null() {
            return Err(null("aclrtMallocHost", "hostPtr"));
        }
        address.set(process().malloc_host(size)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtFreeHost(address: usize) -> Code {
    call(|| process().free_host(address))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMemcpy(to: usize, to_size: usize, from: usize, count: usize, kind: i32) -> Code {
    call(|| process().memcpy(to, to_size, from, count, kind))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMemcpyAsync(
    to: usize,
    to_size: usize,
    from: usize,
    count: usize,
    kind: i32,
    stream: Handle,
) -> Code {
    call(|| process().memcpy_async(to, to_size, from, count, kind, stream))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMemcpy2d(
    to: usize,
    to_pitch: usize,
    from: usize,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: i32,
) -> Code {
    call(|| {
        let rows = Rows::new(to, to_pitch, from, from_pitch, width, height)?;
        rows.copy(|to, from| process().memcpy(to, width, from, width, kind))
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMemcpy2dAsync(
    to: usize,
    to_pitch: usize,
    from: usize,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: i32,
    stream: Handle,
) -> Code {
    call(|| {
        let rows = Rows::new(to, to_pitch, from, from_pitch, width, height)?;
        rows.copy(|to, from| process().memcpy_async(to, width, from, width, kind, stream))
    })
}

/// Rows of equal length, at equal distances.
struct Rows {
    to: usize,
    to_pitch: usize,
    from: usize,
    from_pitch: usize,
    height: usize,
}

impl Rows {
    fn new(
        to: usize,
        to_pitch: usize,
        from: usize,
        from_pitch: usize,
        width: usize,
        height: usize,
    ) -> Answer<Rows> {
        let ends = |start: usize, pitch: usize| {
            let size = pitch.checked_mul(height)?;
            start.checked_add(size)
        };
        let is_plausible = width != 0
            && height != 0
            && width <= to_pitch.min(from_pitch)
            && ends(to, to_pitch).is_some()
            && ends(from, from_pitch).is_some();
        if to == 0 || from == 0 || !is_plausible {
            return Err(status::INVALID_PARAM);
        }
        Ok(Rows {
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

#[unsafe(no_mangle)]
extern "C" fn aclrtMemset(address: usize, size: usize, value: i32, count: usize) -> Code {
    call(|| process().memset(address, size, value, count))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMemsetAsync(
    address: usize,
    size: usize,
    value: i32,
    count: usize,
    stream: Handle,
) -> Code {
    call(|| process().memset_async(address, size, value, count, stream))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetMemInfo(kind: i32, n_free: Out<usize>, n_total: Out<usize>) -> Code {
    call(|| {
        if n_free.is_null() {
            return Err(null("aclrtGetMemInfo", "free"));
        }
        if n_total.is_null() {
            return Err(null("aclrtGetMemInfo", "total"));
        }
        let (free, total) = process().mem_info(kind)?;
        n_free.set(free);
        n_total.set(total);
        Ok(())
    })
}
