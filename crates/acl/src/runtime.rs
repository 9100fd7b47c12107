//! Devices, contexts, streams, events and callbacks.
//!
//! There is one device, the CPU, number 0. Work submitted to a stream is complete when the
//! submitting call returns, so a stream only waits for callbacks that another thread has yet to
//! run.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

use crate::Answer;
use crate::handle::{Handle, HandleCounter, HandleTable};
use crate::status::{RT_INVALID_HANDLE, RT_STREAM_CONTEXT};

#[derive(Default)]
pub(crate) struct DeviceRuntime {
    pub(crate) state: Mutex<RuntimeState>,
    /// Notified when callbacks are submitted or done, or a subscription ends.
    pub(crate) changed: Condvar,
}

#[derive(Default)]
pub(crate) struct RuntimeState {
    /// The context that `aclrtSetDevice` shares among threads, and how often it was set.
    pub(crate) primary: Option<(Handle, u64)>,
    pub(crate) contexts: HandleTable<DeviceContext>,
    pub(crate) streams: HandleTable<DeviceStream>,
    pub(crate) events: HandleTable<StreamEvent>,
    pub(crate) current: HashMap<ThreadId, Handle>,
    /// By the program's ID of the thread.
    pub(crate) subscribers: HashMap<u64, CallbackThread>,
}

/// A context, which owns streams.
#[derive(Debug)]
pub(crate) struct DeviceContext {
    /// The stream behind the null handle.
    pub(crate) default_stream: Handle,
}

pub(crate) struct DeviceStream {
    pub(crate) context: Handle,
    /// The ID of the thread that runs its callbacks.
    pub(crate) subscriber: Option<u64>,
    /// Number of submitted blocking callbacks that have not run.
    pub(crate) n_blocking: u64,
    /// Pending functions for a thread of the library.
    pub(crate) host_functions: VecDeque<Work>,
    /// The thread that runs them, if any.
    pub(crate) host_thread: HostThread,
    pub(crate) config: StreamConfig,
}

/// The state of the thread for a stream's host functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostThread {
    /// There is none, and nothing to run.
    Absent,
    /// It is being started.
    Starting,
    Running(ThreadId),
}

/// A program's settings for a stream. On the CPU only the switch has an effect.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamConfig {
    pub(crate) priority: u32,
    pub(crate) flags: u32,
    /// Whether operators are checked for overflows: 0 or 1.
    pub(crate) overflow_switch: u32,
}

impl DeviceStream {
    pub(crate) fn new(context: Handle) -> DeviceStream {
        DeviceStream {
            context,
            subscriber: None,
            n_blocking: 0,
            host_functions: VecDeque::new(),
            host_thread: HostThread::Absent,
            config: StreamConfig::default(),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.n_blocking > 0 || self.has_host_functions()
    }

    /// Whether a host function is pending or running.
    pub(crate) fn has_host_functions(&self) -> bool {
        self.host_thread != HostThread::Absent
    }
}

/// The time when the event was last recorded.
#[derive(Debug, Default)]
pub(crate) struct StreamEvent(pub(crate) Option<Instant>);

/// A callback of the program.
pub type Work = Box<dyn FnOnce() + Send>;

/// A thread that runs callbacks.
#[derive(Default)]
pub(crate) struct CallbackThread {
    pub(crate) streams: Vec<Handle>,
    pub(crate) waiting: VecDeque<(Handle, bool, Work)>,
}

impl CallbackThread {
    pub(crate) fn end_stream(&mut self, stream: Handle) {
        self.streams.retain(|known| *known != stream);
        self.waiting.retain(|(of, ..)| *of != stream);
    }

    /// Whether it has no stream.
    pub(crate) fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }
}

impl DeviceRuntime {
    /// Waits until the host functions of a stream have run, because later work must wait for them.
    /// A host function itself does not wait.
    pub(crate) fn wait_for_host_functions<'a>(
        &self,
        state: MutexGuard<'a, RuntimeState>,
        stream: Handle,
    ) -> MutexGuard<'a, RuntimeState> {
        let own = HostThread::Running(thread::current().id());
        let waiting = self.changed.wait_while(state, |state| {
            let stream = state.streams.get(stream);
            stream.is_some_and(|stream| stream.has_host_functions() && stream.host_thread != own)
        });
        waiting.unwrap_or_else(PoisonError::into_inner)
    }
}

impl RuntimeState {
    pub(crate) fn current_context(&self) -> Option<Handle> {
        self.current.get(&thread::current().id()).copied()
    }

    pub(crate) fn add_context(&mut self, handles: &HandleCounter) -> Handle {
        let context = handles.next();
        let default_stream = handles.next();
        self.streams
            .insert(default_stream, DeviceStream::new(context));
        self.contexts
            .insert(context, DeviceContext { default_stream })
    }

    /// Destroys a context with its streams; threads that use it have none afterwards.
    pub(crate) fn remove_context(&mut self, context: Handle) -> bool {
        if self.contexts.remove(context).is_none() {
            return false;
        }
        // Listed first, because removing a stream changes the table.
        let ended: Vec<Handle> = self
            .streams
            .iter()
            .filter(|(_, stream)| stream.context == context)
            .map(|(handle, _)| handle)
            .collect();
        ended.into_iter().for_each(|stream| self.end_stream(stream));
        self.current.retain(|_, current| *current != context);
        true
    }

    pub(crate) fn make_current(&mut self, context: Handle) {
        self.current.insert(thread::current().id(), context);
    }

    /// The stream behind a handle: null means the default stream of the thread's context, or `None`
    /// if it has none.
    ///
    /// # Errors
    /// `RT_INVALID_HANDLE` for a handle that is not, or no longer, a stream, `RT_STREAM_CONTEXT`
    /// for a stream of a context that is not the thread's.
    pub(crate) fn find_stream(&self, stream: Handle) -> Answer<Option<Handle>> {
        let current = self.current_context();
        if stream == 0 {
            let context = current.and_then(|context| self.contexts.get(context));
            return Ok(context.map(|context| context.default_stream));
        }
        let known = self.streams.get(stream).ok_or(RT_INVALID_HANDLE)?;
        if current.is_some_and(|current| current != known.context) {
            return Err(RT_STREAM_CONTEXT);
        }
        Ok(Some(stream))
    }

    /// Removes a stream and its pending work.
    pub(crate) fn end_stream(&mut self, stream: Handle) {
        self.streams.remove(stream);
        for subscriber in self.subscribers.values_mut() {
            subscriber.end_stream(stream);
        }
        // A thread without a stream must not wait for callbacks: it is woken to find out.
        self.subscribers
            .retain(|_, subscriber| !subscriber.is_idle());
    }
}
