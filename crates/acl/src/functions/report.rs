//! Callbacks that a stream passes to a thread of the program.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::handle::Handle;
use crate::lock::lock;
use crate::runtime::Work;
use crate::status::{
    INVALID_PARAM, REPEAT_SUBSCRIBE, RT_CONTEXT_NULL, STREAM_NOT_SUBSCRIBE, THREAD_NOT_SUBSCRIBE,
    WAIT_CALLBACK_TIMEOUT,
};
use crate::{AclProcess, Answer};

/// `ACL_CALLBACK_BLOCK`: the stream waits for the callback.
const BLOCK: i32 = 1;

impl AclProcess {
    /// `aclrtSubscribeReport`: `thread` runs the callbacks of `stream` from now on, in
    /// [`AclProcess::process_report`]. It is the thread's ID (`pthread_self`).
    ///
    /// # Errors
    /// `REPEAT_SUBSCRIBE` if the stream has such a thread, otherwise as for
    /// [`AclProcess::synchronize_stream`].
    pub fn subscribe_report(&self, thread: u64, stream: Handle) -> Answer {
        let mut state = lock(&self.runtime.state);
        let stream = state.find_stream(stream)?.ok_or(RT_CONTEXT_NULL)?;
        if let Some(known) = state.streams.get_mut(stream) {
            if known.subscriber.is_some() {
                return Err(REPEAT_SUBSCRIBE);
            }
            known.subscriber = Some(thread);
        }
        state
            .subscribers
            .entry(thread)
            .or_default()
            .streams
            .push(stream);
        Ok(())
    }

    /// `aclrtUnSubscribeReport`. Pending callbacks never run.
    ///
    /// # Errors
    /// `THREAD_NOT_SUBSCRIBE` or `STREAM_NOT_SUBSCRIBE` if the two do not belong together.
    pub fn unsubscribe_report(&self, thread: u64, stream: Handle) -> Answer {
        let mut state = lock(&self.runtime.state);
        let stream = state.find_stream(stream)?.ok_or(RT_CONTEXT_NULL)?;
        let subscriber = state.subscribers.get_mut(&thread);
        let subscriber = subscriber.ok_or(THREAD_NOT_SUBSCRIBE)?;
        if !subscriber.streams.contains(&stream) {
            return Err(STREAM_NOT_SUBSCRIBE);
        }
        subscriber.end_stream(stream);
        if subscriber.is_idle() {
            state.subscribers.remove(&thread);
        }
        if let Some(known) = state.streams.get_mut(stream) {
            // Callbacks that never run must not block waiting for the stream.
            known.subscriber = None;
            known.n_blocking = 0;
        }
        drop(state);
        self.runtime.changed.notify_all();
        Ok(())
    }

    /// `aclrtLaunchCallback`: submits `work` for the thread that has subscribed to `stream`.
    ///
    /// # Errors
    /// `INVALID_PARAM` if `block_type` is neither 0 nor 1, `STREAM_NOT_SUBSCRIBE`, otherwise as for
    /// [`AclProcess::synchronize_stream`].
    pub fn launch_callback(&self, work: Work, block_type: i32, stream: Handle) -> Answer {
        if !(0..=BLOCK).contains(&block_type) {
            return Err(INVALID_PARAM);
        }
        let is_blocking = block_type == BLOCK;
        let mut state = lock(&self.runtime.state);
        let stream = state.find_stream(stream)?.ok_or(STREAM_NOT_SUBSCRIBE)?;
        let known = state.streams.get_mut(stream).ok_or(STREAM_NOT_SUBSCRIBE)?;
        let thread = known.subscriber.ok_or(STREAM_NOT_SUBSCRIBE)?;
        known.n_blocking += u64::from(is_blocking);
        let subscriber = state.subscribers.entry(thread).or_default();
        subscriber.waiting.push_back((stream, is_blocking, work));
        drop(state);
        self.runtime.changed.notify_all();
        Ok(())
    }

    /// `aclrtProcessReport`: waits for callbacks of the streams that `thread`, the calling one, has
    /// subscribed to, and runs those that have arrived. -1 waits forever.
    ///
    /// # Errors
    /// `INVALID_PARAM` for less than -1, `THREAD_NOT_SUBSCRIBE`, also if the subscription ends
    /// during the wait, and `WAIT_CALLBACK_TIMEOUT`.
    pub fn process_report(&self, thread: u64, timeout_ms: i32) -> Answer {
        if timeout_ms < -1 {
            return Err(INVALID_PARAM);
        }
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = lock(&self.runtime.state);
        let ready = loop {
            let subscriber = state.subscribers.get_mut(&thread);
            let subscriber = subscriber.ok_or(THREAD_NOT_SUBSCRIBE)?;
            if !subscriber.waiting.is_empty() {
                break std::mem::take(&mut subscriber.waiting);
            }
            let changed = &self.runtime.changed;
            // Callbacks of other threads wake this one too, so the queue is checked each time.
            let Some(end) = end else {
                state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(WAIT_CALLBACK_TIMEOUT);
            }
            let (woken, _) = changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
        };
        // A callback may call the interface again, which takes the lock.
        drop(state);
        for (stream, is_blocking, work) in ready {
            work();
            if is_blocking {
                let mut state = lock(&self.runtime.state);
                if let Some(known) = state.streams.get_mut(stream) {
                    // The callback may have ended the subscription, which sets the count to 0.
                    known.n_blocking = known.n_blocking.saturating_sub(1);
                }
                drop(state);
                self.runtime.changed.notify_all();
            }
        }
        Ok(())
    }
}
