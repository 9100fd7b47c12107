//! Addresses from C.
//!
//! These types are parameters of exported functions and have no constructor in Rust, so every value
//! was passed by a C caller. The caller promises the usual contract of C: an address is null, or
//! valid during the call for everything that the function reads or writes there. Null and
//! misaligned addresses are checked here; the rest cannot be.

use std::borrow::Cow;
use std::ffi::{OsStr, c_char};
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use opscope_acl::{Answer, status};
use opscope_store::memory_bytes;

use crate::border::{null, process};

/// Maximum length read of a path: one byte more than the operating system accepts, so that it
/// refuses a longer one.
const PATH_BYTES_MAX: usize = 4097;
/// Maximum length of a list.
const N_VALUES_MAX: usize = 1 << 20;
/// Maximum number of dimensions of a shape.
pub(crate) const N_DIMS_MAX: usize = 128;
/// Maximum length read of other strings.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The address of a result.
#[repr(transparent)]
pub(crate) struct OutPointer<T>(*mut T);

impl<T> Clone for OutPointer<T> {
    fn clone(&self) -> OutPointer<T> {
        *self
    }
}

impl<T> Copy for OutPointer<T> {}

impl<T> OutPointer<T> {
    /// Reports a null pointer with C's names of the function and the parameter.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null.
    pub(crate) fn require(self, function: &'static str, parameter: &'static str) -> Answer {
        if self.0.is_null() {
            return Err(null(function, parameter));
        }
        Ok(())
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Stores a result.
    pub(crate) fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, and the caller's promise; `write_unaligned` needs no alignment.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Stores consecutive results; the caller promises room for that many.
    pub(crate) fn set_all(self, values: impl IntoIterator<Item = T>) {
        if self.0.is_null() {
            return;
        }
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: not null, and the caller's promise of room for all of them.
            unsafe { self.0.add(i).write_unaligned(value) }
        }
    }
}

impl<T> OutPointer<T> {
    /// The address of the results that follow this one in the caller's structure.
    pub(crate) fn behind<U>(self) -> OutPointer<U> {
        if self.0.is_null() {
            return OutPointer(std::ptr::null_mut());
        }
        // Not dereferenced here: the caller's promise covers the next store too.
        OutPointer(self.0.wrapping_add(1).cast())
    }
}

impl OutPointer<c_char> {
    /// Stores a string with its NUL, if that fits `size` bytes.
    pub(crate) fn set_text(self, text: &str, size: usize) -> Answer {
        if text.len() >= size {
            return Err(status::INVALID_PARAM);
        }
        let bytes = text.bytes().chain([0]);
        self.set_all(bytes.map(u8::cast_signed).map(|byte| byte as c_char));
        Ok(())
    }
}

/// The address of one or several values to read.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct InPointer<T>(*const T);

impl<T: Copy> InPointer<T> {
    /// Like [`OutPointer::require`].
    pub(crate) fn require(self, function: &'static str, parameter: &'static str) -> Answer {
        if self.0.is_null() {
            return Err(null(function, parameter));
        }
        Ok(())
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The value, or `None` for null.
    pub(crate) fn get(self) -> Option<T> {
        // SAFETY: not null, and the caller's promise; `read_unaligned` needs no alignment.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// `n` values, up to a generous maximum; null is valid only for an empty list.
    pub(crate) fn list(self, n: usize) -> Answer<Vec<T>> {
        self.list_up_to(n, N_VALUES_MAX)
    }

    /// Like [`InPointer::list`], with a known maximum.
    pub(crate) fn list_up_to(self, n: usize, n_max: usize) -> Answer<Vec<T>> {
        if n == 0 {
            return Ok(Vec::new());
        }
        if self.0.is_null() {
            return Err(status::INVALID_PARAM);
        }
        // An invalid count is the most likely mistake, and the list has no end marker.
        process().check_count(n, n_max)?;
        // Values are read individually, because C may pass addresses that Rust calls misaligned.
        // SAFETY: not null, and the caller's promise of `n` values.
        Ok((0..n)
            .map(|i| unsafe { self.0.add(i).read_unaligned() })
            .collect())
    }
}

impl InPointer<u8> {
    /// A slice of `n` bytes, for the length of the call.
    pub(crate) fn bytes<'a>(self, n: usize) -> Answer<&'a [u8]> {
        if self.0.is_null() {
            return Err(status::INVALID_PARAM);
        }
        let n_max = usize::try_from(memory_bytes()).unwrap_or(usize::MAX);
        process().check_count(n, n_max.min(isize::MAX.cast_unsigned()))?;
        // SAFETY: not null, bytes are always aligned, the size fits, and the caller's promise.
        Ok(unsafe { std::slice::from_raw_parts(self.0, n) })
    }

    /// The string whose address is stored here, as for options.
    pub(crate) fn text_behind(self, size: usize) -> Answer<CText> {
        if size != size_of::<*const c_char>() {
            return Err(status::INVALID_PARAM);
        }
        let address = InPointer(self.0.cast::<*const c_char>()).get();
        address.map(CText).ok_or(status::INVALID_PARAM)
    }
}

/// A NUL-terminated string.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct CText(*const c_char);

impl CText {
    /// The bytes up to the NUL or `max`; `None` for null.
    fn bytes<'a>(self, max: usize) -> Option<&'a [u8]> {
        let start = self.0.cast::<u8>();
        if start.is_null() {
            return None;
        }
        // SAFETY: not null, and the caller's promise of a string: no byte after the NUL is read.
        let n = (0..max).take_while(|&i| unsafe { start.add(i).read() } != 0);
        let n = n.count();
        // SAFETY: these bytes have just been read.
        Some(unsafe { std::slice::from_raw_parts(start, n) })
    }

    /// The string as a path; `None` for null.
    pub(crate) fn path<'a>(self) -> Option<&'a Path> {
        let bytes = self.bytes(PATH_BYTES_MAX)?;
        Some(Path::new(OsStr::from_bytes(bytes)))
    }

    /// The string as a name or value; `None` for null.
    ///
    /// # Errors
    /// `INVALID_PARAM` if it is not UTF-8 or is longer than a mebibyte.
    pub(crate) fn name<'a>(self) -> Answer<Option<&'a str>> {
        let Some(bytes) = self.bytes(TEXT_BYTES_MAX) else {
            return Ok(None);
        };
        if bytes.len() == TEXT_BYTES_MAX {
            return Err(status::INVALID_PARAM);
        }
        let text = str::from_utf8(bytes).map_err(|_| status::INVALID_PARAM)?;
        Ok(Some(text))
    }

    /// A required path.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null, reported with C's names of the function and the parameter.
    pub(crate) fn require_path<'a>(
        self,
        function: &'static str,
        parameter: &'static str,
    ) -> Answer<&'a Path> {
        self.path().ok_or_else(|| null(function, parameter))
    }

    /// A required name.
    ///
    /// # Errors
    /// As for [`CText::name`] and [`CText::require_path`].
    pub(crate) fn require_name<'a>(
        self,
        function: &'static str,
        parameter: &'static str,
    ) -> Answer<&'a str> {
        self.name()?.ok_or_else(|| null(function, parameter))
    }

    /// The string for messages, with invalid UTF-8 replaced.
    pub(crate) fn lossy<'a>(self) -> Cow<'a, str> {
        self.bytes(TEXT_BYTES_MAX)
            .map_or(Cow::Borrowed(""), String::from_utf8_lossy)
    }
}
