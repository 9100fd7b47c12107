//! Files that stay open while a thread has work of one kind to do.

use std::cell::{RefCell, RefMut};
use std::thread::LocalKey;

/// The open files of a thread. There is no list while the thread does no such work: a file must not
/// stay open because it was read once.
#[derive(Debug)]
pub struct KeptOpen<T>(RefCell<Option<Vec<T>>>);

impl<T> KeptOpen<T> {
    /// Nothing is open, and nothing is kept open.
    pub const fn new() -> KeptOpen<T> {
        KeptOpen(RefCell::new(None))
    }

    /// The list, while files stay open.
    pub fn list(&self) -> Option<RefMut<'_, Vec<T>>> {
        RefMut::filter_map(self.0.borrow_mut(), Option::as_mut).ok()
    }

    /// Does `work`, during which files in the list of this thread stay open. They are closed after
    /// the outermost call, and after a panic.
    pub fn during<R>(of_thread: &'static LocalKey<KeptOpen<T>>, work: impl FnOnce() -> R) -> R
    where
        T: 'static,
    {
        struct Closing<T: 'static>(Option<&'static LocalKey<KeptOpen<T>>>);

        impl<T> Drop for Closing<T> {
            fn drop(&mut self) {
                if let Some(of_thread) = self.0 {
                    of_thread.with(|open| open.0.take());
                }
            }
        }

        let is_outermost = of_thread.with(|open| {
            let mut list = open.0.borrow_mut();
            let is_outermost = list.is_none();
            list.get_or_insert_default();
            is_outermost
        });
        let _closing = Closing(is_outermost.then_some(of_thread));
        work()
    }
}

impl<T> Default for KeptOpen<T> {
    fn default() -> KeptOpen<T> {
        KeptOpen::new()
    }
}
