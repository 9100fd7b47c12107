//! Events: points in time on a stream.

use std::time::Instant;

use crate::handle::Handle;
use crate::lock::lock;
use crate::runtime::StreamEvent;
use crate::status::{INVALID_PARAM, RT_INVALID_HANDLE, RT_PARAM_INVALID};
use crate::{AclProcess, Answer};

/// `ACL_EVENT_STATUS_COMPLETE`.
const COMPLETE: i32 = 0;

impl AclProcess {
    /// `aclrtCreateEvent`.
    ///
    /// # Errors
    /// None today.
    pub fn create_event(&self) -> Answer<Handle> {
        let mut state = lock(&self.runtime.state);
        Ok(state
            .events
            .insert(self.handles.next(), StreamEvent::default()))
    }

    /// `aclrtDestroyEvent`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null, `RT_INVALID_HANDLE` for a handle that is not, or no longer, an
    /// event.
    pub fn destroy_event(&self, event: Handle) -> Answer {
        if event == 0 {
            return Err(INVALID_PARAM);
        }
        let mut state = lock(&self.runtime.state);
        state
            .events
            .remove(event)
            .map(drop)
            .ok_or(RT_INVALID_HANDLE)
    }

    /// `aclrtRecordEvent`: records the time.
    ///
    /// # Errors
    /// As for [`AclProcess::destroy_event`] and [`AclProcess::synchronize_stream`].
    pub fn record_event(&self, event: Handle, stream: Handle) -> Answer {
        if event == 0 {
            return Err(INVALID_PARAM);
        }
        // Tasks are complete when the submitting call returns; only host functions need a wait.
        self.check_stream(stream)?;
        let mut state = lock(&self.runtime.state);
        let known = state.events.get_mut(event).ok_or(RT_INVALID_HANDLE)?;
        known.0 = Some(Instant::now());
        Ok(())
    }

    /// `aclrtSynchronizeEvent`: returns at once, as every recorded event has happened.
    ///
    /// # Errors
    ///
    /// As for [`AclProcess::destroy_event`].
    pub fn synchronize_event(&self, event: Handle) -> Answer {
        self.query_event(event).map(drop)
    }

    /// `aclrtQueryEvent`: 0, complete.
    ///
    /// # Errors
    /// As for [`AclProcess::destroy_event`].
    pub fn query_event(&self, event: Handle) -> Answer<i32> {
        if event == 0 {
            return Err(INVALID_PARAM);
        }
        let state = lock(&self.runtime.state);
        state.events.get(event).ok_or(RT_INVALID_HANDLE)?;
        Ok(COMPLETE)
    }

    /// `aclrtEventElapsedTime`: milliseconds from `start` to `end`, negative if `end` was recorded
    /// earlier.
    ///
    /// # Errors
    /// As for [`AclProcess::destroy_event`], and `RT_PARAM_INVALID` if one was not recorded.
    pub fn event_elapsed_ms(&self, start: Handle, end: Handle) -> Answer<f32> {
        if start == 0 || end == 0 {
            return Err(INVALID_PARAM);
        }
        let state = lock(&self.runtime.state);
        let start = state.events.get(start).ok_or(RT_INVALID_HANDLE)?;
        let start = start.0.ok_or(RT_PARAM_INVALID)?;
        let end = state.events.get(end).ok_or(RT_INVALID_HANDLE)?;
        let end = end.0.ok_or(RT_PARAM_INVALID)?;
        // Durations are unsigned: one of the two is 0.
        let elapsed = end.saturating_duration_since(start).as_secs_f32();
        let reversed = start.saturating_duration_since(end).as_secs_f32();
        Ok((elapsed - reversed) * 1000.0)
    }

    /// `aclrtStreamWaitEvent`: there is never anything to wait for.
    ///
    /// # Errors
    /// As for [`AclProcess::destroy_event`] and [`AclProcess::synchronize_stream`].
    pub fn stream_wait_event(&self, stream: Handle, event: Handle) -> Answer {
        self.check_stream(stream)?;
        self.query_event(event).map(drop)
    }
}
