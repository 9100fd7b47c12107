//! Streams. They keep the order of submitted work by running it at once.

use std::sync::PoisonError;
use std::time::Duration;

use crate::handle::Handle;
use crate::lock::lock;
use crate::runtime::{DeviceStream, RuntimeState};
use crate::status::{INVALID_PARAM, RT_CONTEXT_NULL, RT_STREAM_SYNC_TIMEOUT};
use crate::{AclProcess, Answer};

impl AclProcess {
    /// `aclrtCreateStream`: a stream of the calling thread's context.
    ///
    /// # Errors
    /// `RT_CONTEXT_NULL` if it has none.
    pub fn create_stream(&self) -> Answer<Handle> {
        let mut state = lock(&self.runtime.state);
        let context = state.current_context().ok_or(RT_CONTEXT_NULL)?;
        Ok(state
            .streams
            .insert(self.handles.next(), DeviceStream::new(context)))
    }

    /// `aclrtCreateStreamWithConfig`: priority and flags are stored and have no effect.
    ///
    /// # Errors
    /// As for [`AclProcess::create_stream`].
    pub fn create_stream_with_config(&self, priority: u32, flags: u32) -> Answer<Handle> {
        let stream = self.create_stream()?;
        let mut state = lock(&self.runtime.state);
        if let Some(known) = state.streams.get_mut(stream) {
            (known.config.priority, known.config.flags) = (priority, flags);
        }
        Ok(stream)
    }

    /// `aclrtStreamGetPriority` and `aclrtStreamGetFlags`: the stream's settings at creation.
    ///
    /// # Errors
    /// As for [`AclProcess::synchronize_stream`], and `RT_CONTEXT_NULL` for the default stream of a
    /// thread without a context.
    pub fn stream_priority_and_flags(&self, stream: Handle) -> Answer<(u32, u32)> {
        let state = lock(&self.runtime.state);
        let stream = state.find_stream(stream)?.ok_or(RT_CONTEXT_NULL)?;
        let known = state.streams.find(stream)?;
        Ok((known.config.priority, known.config.flags))
    }

    /// `aclrtCtxGetCurrentDefaultStream`: the calling thread's default stream, which null means.
    ///
    /// # Errors
    /// `RT_CONTEXT_NULL` if the thread has no context.
    pub fn default_stream(&self) -> Answer<Handle> {
        let state = lock(&self.runtime.state);
        state.find_stream(0)?.ok_or(RT_CONTEXT_NULL)
    }

    /// `aclrtDestroyStream`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null, otherwise as for [`AclProcess::synchronize_stream`].
    pub fn destroy_stream(&self, stream: Handle) -> Answer {
        if stream == 0 {
            return Err(INVALID_PARAM);
        }
        let state = lock(&self.runtime.state);
        state.find_stream(stream)?;
        // Host functions may use memory that the program frees after this call.
        let mut state = self.runtime.wait_for_host_functions(state, stream);
        state.end_stream(stream);
        drop(state);
        self.runtime.changed.notify_all();
        Ok(())
    }

    /// `aclrtSynchronizeStream`: waits for the stream's blocking callbacks and host functions. Null
    /// is the default stream.
    ///
    /// # Errors
    /// `RT_INVALID_HANDLE` for a handle that is not, or no longer, a stream, `RT_STREAM_CONTEXT`
    /// for a stream of a context that is not the calling thread's.
    pub fn synchronize_stream(&self, stream: Handle) -> Answer {
        self.synchronize_stream_with_timeout(stream, -1)
    }

    /// `aclrtSynchronizeStreamWithTimeout`; -1 waits forever.
    ///
    /// # Errors
    /// As for [`AclProcess::synchronize_stream`], `INVALID_PARAM` for less than -1, and
    /// `RT_STREAM_SYNC_TIMEOUT`.
    pub fn synchronize_stream_with_timeout(&self, stream: Handle, timeout_ms: i32) -> Answer {
        if timeout_ms < -1 {
            return Err(INVALID_PARAM);
        }
        let state = lock(&self.runtime.state);
        // A thread without a context has no default stream, and nothing to wait for.
        let Some(stream) = state.find_stream(stream)? else {
            return Ok(());
        };
        let is_busy =
            |state: &mut RuntimeState| state.streams.get(stream).is_some_and(DeviceStream::is_busy);
        let changed = &self.runtime.changed;
        let Ok(timeout_ms) = u64::try_from(timeout_ms) else {
            let state = changed.wait_while(state, is_busy);
            drop(state.unwrap_or_else(PoisonError::into_inner));
            return Ok(());
        };
        let timeout = Duration::from_millis(timeout_ms);
        let (state, result) = changed
            .wait_timeout_while(state, timeout, is_busy)
            .unwrap_or_else(PoisonError::into_inner);
        drop(state);
        if result.timed_out() {
            return Err(RT_STREAM_SYNC_TIMEOUT);
        }
        Ok(())
    }

    /// Checks that work may be submitted to `stream`, and waits for its turn.
    pub(crate) fn check_stream(&self, stream: Handle) -> Answer {
        let state = lock(&self.runtime.state);
        if let Some(stream) = state.find_stream(stream)? {
            drop(self.runtime.wait_for_host_functions(state, stream));
        }
        Ok(())
    }
}
