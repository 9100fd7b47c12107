//! Objects behind opaque pointers: numbers that are looked up and never dereferenced.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Answer;
use crate::status::INVALID_PARAM;

/// An object behind an opaque pointer. 0 is the null pointer; a process never reuses a number.
pub type Handle = usize;

/// Creates handles. Objects of different kinds also have different numbers, so a handle of the
/// wrong kind is detected.
#[derive(Debug)]
pub(crate) struct HandleCounter(AtomicUsize);

/// The first handle, and the distance between two: they look like addresses of small objects, so
/// that adding to one yields no other.
const FIRST: usize = 0x1000;
const STRIDE: usize = 16;
/// Distance of a fork's handles from those of its parent: no process creates that many.
const GENERATION: usize = 1 << 48;

impl HandleCounter {
    pub(crate) fn new() -> HandleCounter {
        HandleCounter::behind(0)
    }

    /// A counter for a fork, whose handles differ from those of all its ancestors.
    pub(crate) fn behind(n_ancestors: usize) -> HandleCounter {
        HandleCounter(AtomicUsize::new(FIRST + n_ancestors * GENERATION))
    }

    pub(crate) fn next(&self) -> Handle {
        // 2^60 handles never run out.
        self.0.fetch_add(STRIDE, Ordering::Relaxed)
    }
}

/// The objects of one kind.
#[derive(Debug)]
pub(crate) struct HandleTable<T>(HashMap<Handle, T>);

impl<T> Default for HandleTable<T> {
    fn default() -> Self {
        HandleTable(HashMap::new())
    }
}

impl<T> HandleTable<T> {
    pub(crate) fn insert(&mut self, handle: Handle, object: T) -> Handle {
        self.0.insert(handle, object);
        handle
    }

    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        self.0.get(&handle)
    }

    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        self.0.get_mut(&handle)
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Option<T> {
        self.0.remove(&handle)
    }

    /// The object of a handle argument.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, an object of this kind.
    pub(crate) fn find(&self, handle: Handle) -> Answer<&T> {
        self.get(handle).ok_or(INVALID_PARAM)
    }

    /// Copies of the objects of handle arguments.
    ///
    /// # Errors
    /// As for [`HandleTable::find`].
    pub(crate) fn find_all(&self, handles: &[Handle]) -> Answer<Vec<T>>
    where
        T: Clone,
    {
        handles
            .iter()
            .map(|&handle| self.find(handle).cloned())
            .collect()
    }

    /// Like [`HandleTable::find`], to modify the object.
    pub(crate) fn find_mut(&mut self, handle: Handle) -> Answer<&mut T> {
        self.get_mut(handle).ok_or(INVALID_PARAM)
    }

    /// Removes the object of a handle argument. The caller drops it after releasing the lock,
    /// because large objects take time.
    ///
    /// # Errors
    /// As for [`HandleTable::find`].
    pub(crate) fn take(&mut self, handle: Handle) -> Answer<T> {
        self.remove(handle).ok_or(INVALID_PARAM)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        self.0.iter().map(|(handle, object)| (*handle, object))
    }
}
