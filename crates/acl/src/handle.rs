//! Objects behind opaque pointers: numbers that are looked up and never followed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An object behind an opaque pointer. 0 is the null pointer; a process gives out no number twice.
pub type Handle = usize;

/// Gives out handles. Numbers of different kinds of objects differ too, so that a handle of the wrong
/// kind is found out.
#[derive(Debug)]
pub(crate) struct Handles(AtomicUsize);

/// Where handles begin, and the distance between two: they look like addresses of small objects, so
/// that a program which adds to one gets no other.
const FIRST: usize = 0x1000;
const STRIDE: usize = 16;
/// How far handles of a fork are from those of its parent: no process gives out as many.
const GENERATION: usize = 1 << 48;

impl Handles {
    pub(crate) fn new() -> Handles {
        Handles::behind(0)
    }

    /// Those of a fork, which differ from all that its ancestors gave out.
    pub(crate) fn behind(n_ancestors: usize) -> Handles {
        Handles(AtomicUsize::new(FIRST + n_ancestors * GENERATION))
    }

    pub(crate) fn next(&self) -> Handle {
        // 2^60 handles do not run out.
        self.0.fetch_add(STRIDE, Ordering::Relaxed)
    }
}

/// The objects of one kind.
#[derive(Debug)]
pub(crate) struct Table<T>(HashMap<Handle, T>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table(HashMap::new())
    }
}

impl<T> Table<T> {
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        self.0.iter().map(|(handle, object)| (*handle, object))
    }
}
