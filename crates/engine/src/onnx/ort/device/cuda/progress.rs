//! How far a device has come with what was put on the engine's stream.

use std::ptr;
use std::sync::Arc;

use super::api::Handle;
use super::context::{CudaContext, handle_of};
use crate::onnx::ort::device::place::DeviceStream;

/// The driver's flag for events that are waited for and have no timing.
const DISABLE_TIMING: u32 = 2;
/// The driver's flag for streams that do not wait for the default one.
const NON_BLOCKING: u32 = 1;

/// An event after the last request, and our own stream to wait for it on: the engine's may be gone
/// once its run has ended.
pub(super) struct StreamProgress {
    context: Arc<CudaContext>,
    stream: Handle,
    event: Handle,
}

// SAFETY: as for contexts.
unsafe impl Send for StreamProgress {}
// SAFETY: likewise.
unsafe impl Sync for StreamProgress {}

impl StreamProgress {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<StreamProgress, String> {
        let mut progress = StreamProgress {
            context: context.clone(),
            stream: ptr::null_mut(),
            event: ptr::null_mut(),
        };
        let api = &context.api;
        let _current = context.enter()?;
        // SAFETY: the places live during the calls.
        unsafe {
            let status = (api.create_stream)(&raw mut progress.stream, NON_BLOCKING);
            api.check("cuStreamCreate", status)?;
            let status = (api.create_event)(&raw mut progress.event, DISABLE_TIMING);
            api.check("cuEventCreate", status)?;
        }
        Ok(progress)
    }

    /// Notes that everything on the stream up to now is waited for.
    pub(super) fn note(&self, stream: DeviceStream) -> Result<(), String> {
        let _current = self.context.enter()?;
        let api = &self.context.api;
        // SAFETY: the event is ours, and the stream the one of a kernel that runs now.
        let status = unsafe { (api.record_event)(self.event, handle_of(stream)) };
        api.check("cuEventRecord", status)
    }

    /// A stream on which everything comes behind what was noted.
    pub(super) fn behind(&self) -> Result<DeviceStream, String> {
        let _current = self.context.enter()?;
        let api = &self.context.api;
        // SAFETY: stream and event are ours.
        let status = unsafe { (api.await_event)(self.stream, self.event, 0) };
        api.check("cuStreamWaitEvent", status)?;
        Ok(DeviceStream(self.stream.expose_provenance()))
    }
}

impl Drop for StreamProgress {
    fn drop(&mut self) {
        let api = &self.context.api;
        let Ok(_current) = self.context.enter() else {
            return;
        };
        // SAFETY: both are ours, as far as they were made, and are not used again.
        unsafe {
            if !self.event.is_null() {
                (api.destroy_event)(self.event);
            }
            if !self.stream.is_null() {
                (api.destroy_stream)(self.stream);
            }
        }
    }
}
