//! Values that a fork of the process does not inherit.
//!
//! A fork copies everything except other threads: a lock held by one of them stays locked forever,
//! and the files that it was writing belong to the parent. So a fork starts with new values and
//! leaves the parent's alone.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum depth of nested forks with separate values.
const N_GENERATIONS: usize = 64;

/// A value that each process has separately, created on first use.
#[derive(Debug)]
pub struct PerProcess<T> {
    /// The first slot belongs to the first process that used the value, the next to its fork, and
    /// so on. A slot is claimed before its value is created, so that a fork never waits for an
    /// ancestor's.
    generations: [ProcessSlot<T>; N_GENERATIONS],
}

#[derive(Debug)]
struct ProcessSlot<T> {
    /// The process that has claimed it; 0 if unclaimed.
    process: AtomicU32,
    value: OnceLock<T>,
}

impl<T> PerProcess<T> {
    /// Creates it without a value.
    pub const fn new() -> PerProcess<T> {
        PerProcess {
            generations: [const {
                ProcessSlot {
                    process: AtomicU32::new(0),
                    value: OnceLock::new(),
                }
            }; N_GENERATIONS],
        }
    }

    /// The value of this process. `make` gets the number of ancestors with values.
    ///
    /// Beyond 64 generations a value lasts for one call only.
    pub fn get_or_init(&'static self, make: impl FnOnce(usize) -> T) -> &'static T {
        self.get_as(std::process::id(), make)
    }

    fn get_as(&'static self, process: u32, make: impl FnOnce(usize) -> T) -> &'static T {
        for (i, generation) in self.generations.iter().enumerate() {
            if generation.is_of(process) {
                return generation.value.get_or_init(|| make(i));
            }
        }
        // Callers keep the reference forever, so a value without a slot is leaked.
        Box::leak(Box::new(make(N_GENERATIONS)))
    }
}

impl<T: Default> PerProcess<T> {
    /// The value of this process.
    pub fn get(&'static self) -> &'static T {
        self.get_or_init(|_| T::default())
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}

impl<T> ProcessSlot<T> {
    /// Whether it belongs to `process`, which claims it if unclaimed.
    fn is_of(&self, process: u32) -> bool {
        // Relaxed ordering is enough: the value has a lock.
        let claimed =
            self.process
                .compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed);
        claimed.is_ok() || claimed == Err(process)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn each_process_has_its_own() {
        static VALUES: PerProcess<(usize, Mutex<u32>)> = PerProcess::new();
        let of = |process: u32| VALUES.get_as(process, |n| (n, Mutex::new(process)));
        let held = of(7).1.lock().unwrap();
        assert_eq!(*held, 7);
        // A fork while a lock is held: the fork's lock is free.
        assert_eq!(*of(8).1.lock().unwrap(), 8);
        assert!(std::ptr::eq(of(8), of(8)));
        assert_eq!((of(7).0, of(8).0, of(9).0), (0, 1, 2));
        for process in 10..100 {
            assert!(of(process).1.try_lock().is_ok_and(|held| *held == process));
        }
    }

    #[test]
    fn a_fork_does_not_wait_for_a_value_that_an_ancestor_is_making() {
        static VALUES: PerProcess<u32> = PerProcess::new();
        assert_eq!(*VALUES.get_as(1, |_| *VALUES.get_as(2, |_| 20)), 20);
    }
}
