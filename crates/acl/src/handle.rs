//! Objects behind opaque pointers: numbers that are looked up and never followed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Answer;
use crate::status::INVALID_PARAM;

/// An object behind an opaque pointer. 0 is the null pointer; a process gives out no number twice.
pub type Handle = usize;

/// Gives out handles. Numbers of different kinds of objects differ too, so that a handle of the
/// wrong kind is found out.
#[derive(Debug)]
pub(crate) struct HandleCounter(AtomicUsize);

/// Where handles begin, and the distance between two: they look like addresses of small objects, so
/// that a program which adds to one gets no other.
const FIRST: usize = 0x1000;
const STRIDE: usize = 16;
/// How far handles of a fork are from those of its parent: no process gives out as many.
const GENERATION: usize = 1 << 48;

impl HandleCounter {
    pub(crate) fn new() -> HandleCounter {
        HandleCounter::behind(0)
    }

    /// Those of a fork, which differ from all that its ancestors gave out.
    pub(crate) fn behind(n_ancestors: usize) -> HandleCounter {
        HandleCounter(AtomicUsize::new(FIRST + n_ancestors * GENERATION))
    }

    pub(crate) fn next(&self) -> Handle {
        // 2^60 handles do not run out.
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

    /// The object that a function of the interface was given.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, an object of this kind.
    pub(crate) fn find(&self, handle: Handle) -> Answer<&T> {
        self.get(handle).ok_or(INVALID_PARAM)
    }

    /// Copies of the objects that a function of the interface was given.
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

    /// As [`HandleTable::find`], to change the object.
    pub(crate) fn find_mut(&mut self, handle: Handle) -> Answer<&mut T> {
        self.get_mut(handle).ok_or(INVALID_PARAM)
    }

    /// Ends the object that a function of the interface was given. The caller drops it when nobody
    /// is locked out any more, because large objects take time.
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
