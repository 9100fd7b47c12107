//! Strings that C gets a pointer to.
//!
//! A string is stored for its object, until the object is destroyed or the string changes, so that
//! a program may hold the names of all inputs at once. Error reports are stored per thread, until
//! the thread requests another.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use opscope_acl::{Handle, PerProcess};

/// Strings of each object by name. Strings without an object are stored for 0.
static STRINGS: PerProcess<Mutex<HashMap<Handle, HashMap<String, CString>>>> = PerProcess::new();

thread_local! {
    static REPORT: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Stores a string of `object` under a name; null for `None`.
pub(crate) fn keep(object: Handle, name: String, text: Option<String>) -> *const c_char {
    let Some(text) = text else {
        return ptr::null();
    };
    let text = c_text(text);
    let mut stored = STRINGS.get().lock().unwrap_or_else(PoisonError::into_inner);
    let stored = stored.entry(object).or_default().entry(name);
    let stored = stored
        .and_modify(|stored| {
            // An unchanged string keeps its address, which the program may still use.
            if *stored != text {
                stored.clone_from(&text);
            }
        })
        .or_insert(text);
    stored.as_ptr()
}

/// Like [`keep`], with the empty string for `None`.
pub(crate) fn keep_or_empty(object: Handle, name: String, text: Option<String>) -> *const c_char {
    if text.is_none() {
        return c"".as_ptr();
    }
    keep(object, name, text)
}

/// Drops the strings of an object.
pub(crate) fn forget(object: Handle) {
    let mut stored = STRINGS.get().lock().unwrap_or_else(PoisonError::into_inner);
    stored.remove(&object);
}

/// Stores a report for this thread.
pub(crate) fn keep_report(report: Option<String>) -> *const c_char {
    REPORT.with_borrow_mut(|stored| {
        *stored = report.map(c_text);
        stored.as_ref().map_or(ptr::null(), |text| text.as_ptr())
    })
}

/// A string up to its first NUL, where it ends for C.
fn c_text(text: String) -> CString {
    let mut bytes = text.into_bytes();
    if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
        bytes.truncate(end);
    }
    CString::new(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn a_text_stays_where_it_is_until_it_changes() {
        let keep = |text: &str| keep(usize::MAX, "name".to_owned(), Some(text.to_owned()));
        let first = keep("conv");
        assert_eq!(keep("conv"), first);
        assert_ne!(keep("relu\0hidden"), first);
        let stored = STRINGS.get().lock().unwrap();
        assert_eq!(stored[&usize::MAX]["name"].as_c_str(), c"relu");
        drop(stored);
        forget(usize::MAX);
        assert!(!STRINGS.get().lock().unwrap().contains_key(&usize::MAX));
    }

    #[test]
    fn nothing_is_null() {
        assert!(keep(0, "nothing".to_owned(), None).is_null());
        assert!(keep_report(None).is_null());
        let empty = keep_or_empty(0, "nothing".to_owned(), None);
        assert_eq!(empty, <CStr>::as_ptr(c""));
    }
}
