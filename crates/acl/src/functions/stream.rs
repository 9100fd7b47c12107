//! Streams. They keep the order of what is submitted by running it at once.

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

    /// `aclrtCreateStreamWithConfig`: priority and flags have no effect.
    ///
    /// # Errors
    /// As for [`AclProcess::create_stream`].
    pub fn create_stream_with_config(&self, _priority: u32, _flag: u32) -> Answer<Handle> {
        self.create_stream()
    }

    /// `aclrtDestroyStream`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null, otherwise as for [`AclProcess::synchronize_stream`].
    pub fn destroy_stream(&self, stream: Handle) -> Answer {
        if stream == 0 {
            return Err(INVALID_PARAM);
        }
        let mut state = lock(&self.runtime.state);
        state.find_stream(stream)?;
        state.end_stream(stream);
        drop(state);
        self.runtime.changed.notify_all();
        Ok(())
    }

    /// `aclrtSynchronizeStream`: waits for the stream's callbacks that block it. Null is the
    /// default stream.
    ///
    /// # Errors
    /// `RT_INVALID_HANDLE` for a handle that is not, or no longer, a stream, `RT_STREAM_CONTEXT`
    /// for a stream of a context that is not the calling thread's.
    pub fn synchronize_stream(&self, stream: Handle) -> Answer {
        self.synchronize_stream_with_timeout(stream, -1)
    }

    /// `aclrtSynchronizeStreamWithTimeout`; -1 waits without end.
    ///
    /// # Errors
    /// As for [`AclProcess::synchronize_stream`], `INVALID_PARAM` for less than -1, and
    /// `RT_STREAM_SYNC_TIMEOUT`.
    pub fn synchronize_stream_with_timeout(&self, stream: Handle, timeout_ms: i32) -> Answer {
        if timeout_ms < -1 {
            return Err(INVALID_PARAM);
        }
        let state = lock(&self.runtime.state);
        // A thread without a context has no default stream, and nothing that it could wait for.
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

    /// Whether work may be submitted to `stream`.
    pub(crate) fn check_stream(&self, stream: Handle) -> Answer {
        lock(&self.runtime.state).find_stream(stream).map(drop)
    }
}
