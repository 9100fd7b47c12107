//! Devices, contexts, streams, events and callbacks.
//!
//! There is one device, the CPU, number 0. What is submitted to a stream has run when the submitting
//! call returns, so a stream has nothing to wait for but callbacks that another thread has still to
//! run.

mod context;
mod event;
mod report;
mod stream;

use std::collections::HashMap;
use std::sync::{Condvar, Mutex};
use std::thread::{self, ThreadId};

use self::context::Context;
use self::event::Event;
use self::report::Subscriber;
pub use self::report::Work;
use self::stream::Stream;
use crate::handle::{Handle, Table};
use crate::process::lock;
use crate::status::{INVALID_PARAM, RT_FEATURE_NOT_SUPPORT};
use crate::{Answer, Process};

/// `ACL_HOST`: the program runs where its memory is.
const RUN_MODE_HOST: i32 = 1;
/// Kinds of memory that `aclrtGetMemInfo` knows.
const N_MEMORY_KINDS: i32 = 11;

#[derive(Default)]
pub(crate) struct Runtime {
    state: Mutex<State>,
    /// Notified when callbacks are submitted or done, or a subscription ends.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The context that `aclrtSetDevice` shares among threads, and how often it was set.
    primary: Option<(Handle, u64)>,
    contexts: Table<Context>,
    streams: Table<Stream>,
    events: Table<Event>,
    current: HashMap<ThreadId, Handle>,
    /// By the number that the program gives its thread.
    subscribers: HashMap<u64, Subscriber>,
}

impl State {
    fn current_context(&self) -> Option<Handle> {
        self.current.get(&thread::current().id()).copied()
    }
}

impl Process {
    /// `aclrtGetRunMode`: the host's.
    pub fn run_mode(&self) -> i32 {
        RUN_MODE_HOST
    }

    /// `aclrtGetSocName`.
    pub fn soc_name(&self) -> &'static str {
        "CPU"
    }

    /// `aclrtGetMemInfo`: free and total bytes, which are the machine's for every kind.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a kind that is none, `RT_FEATURE_NOT_SUPPORT` where the system does not
    /// tell.
    pub fn mem_info(&self, kind: i32) -> Answer<(usize, usize)> {
        if !(0..N_MEMORY_KINDS).contains(&kind) {
            return Err(INVALID_PARAM);
        }
        let text = std::fs::read_to_string("/proc/meminfo").map_err(|_| RT_FEATURE_NOT_SUPPORT)?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: usize = line.split_whitespace().next()?.parse().ok()?;
            kib.checked_mul(1024)
        };
        bytes("MemAvailable:")
            .zip(bytes("MemTotal:"))
            .ok_or(RT_FEATURE_NOT_SUPPORT)
    }

    /// `aclrtMemcpyAsync`: copies before it returns.
    ///
    /// # Errors
    /// As for [`Process::memcpy`] and [`Process::synchronize_stream`].
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
    /// As for [`Process::memset`] and [`Process::synchronize_stream`].
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

    /// Whether work may be submitted to `stream`.
    pub(crate) fn check_stream(&self, stream: Handle) -> Answer {
        lock(&self.runtime.state).find_stream(stream).map(drop)
    }
}
