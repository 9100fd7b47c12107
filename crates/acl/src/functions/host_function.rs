//! Functions of the program that run in a thread of the library, in stream order.

use std::sync::Arc;
use std::thread;

use crate::handle::Handle;
use crate::lock::lock;
use crate::runtime::{DeviceRuntime, HostThread, Work};
use crate::status::{RT_CONTEXT_NULL, RT_INTERNAL_ERROR};
use crate::{AclProcess, Answer};

impl AclProcess {
    /// `aclrtLaunchHostFunc`: runs `work` in a thread of the library. Later work on the stream
    /// waits for it, and so does synchronising the stream.
    ///
    /// # Errors
    /// `RT_CONTEXT_NULL` for the default stream of a thread without a context, `RT_INTERNAL_ERROR`,
    /// reported, if no thread could be started, otherwise as for
    /// [`AclProcess::synchronize_stream`].
    pub fn launch_host_function(&self, work: Work, stream: Handle) -> Answer {
        let mut state = lock(&self.runtime.state);
        let stream = state.find_stream(stream)?.ok_or(RT_CONTEXT_NULL)?;
        let known = state.streams.get_mut(stream).ok_or(RT_CONTEXT_NULL)?;
        // Queued even if a thread is running: it checks the queue again before it ends.
        known.host_functions.push_back(work);
        if known.has_host_functions() {
            return Ok(());
        }
        known.host_thread = HostThread::Starting;
        drop(state);
        let runtime = self.runtime.clone();
        let builder = thread::Builder::new().name("opscope-host-fn".to_owned());
        let started = builder.spawn(move || run_host_functions(&runtime, stream));
        started.map(drop).map_err(|error| {
            if let Some(known) = lock(&self.runtime.state).streams.get_mut(stream) {
                // Nothing runs them, so no thread must wait for them.
                known.host_functions.clear();
                known.host_thread = HostThread::Absent;
            }
            self.runtime.changed.notify_all();
            let text = format!("no thread could be started for a host function: {error}");
            self.inner_error(RT_INTERNAL_ERROR, &text)
        })
    }
}

/// Runs the host functions of a stream until its queue is empty.
fn run_host_functions(runtime: &Arc<DeviceRuntime>, stream: Handle) {
    loop {
        let mut state = lock(&runtime.state);
        let Some(known) = state.streams.get_mut(stream) else {
            // Its context was destroyed, and with it the queue.
            break;
        };
        let Some(work) = known.host_functions.pop_front() else {
            known.host_thread = HostThread::Absent;
            break;
        };
        known.host_thread = HostThread::Running(thread::current().id());
        // A host function may read the time, or log: no lock is held during the call.
        drop(state);
        work();
    }
    runtime.changed.notify_all();
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;
    use crate::engine_of_environment;
    use crate::status::RT_INVALID_HANDLE;

    #[test]
    fn host_functions_run_in_order_and_block_their_stream() {
        let process = AclProcess::new(engine_of_environment());
        process.set_device(0).unwrap();
        let stream = process.create_stream().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        // The first one ends once the others are submitted.
        let (all_submitted, wait) = mpsc::channel();
        let mut wait = Some(wait);
        for i in 0..8 {
            let (seen, wait) = (seen.clone(), wait.take());
            let work = Box::new(move || {
                if let Some(wait) = wait {
                    wait.recv().unwrap();
                }
                seen.lock().unwrap().push(i);
            });
            assert_eq!(process.launch_host_function(work, stream), Ok(()));
        }
        all_submitted.send(()).unwrap();
        assert_eq!(process.check_stream(stream), Ok(()));
        assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(process.synchronize_stream(stream), Ok(()));
        // A second batch needs a new thread.
        let again = seen.clone();
        let work = Box::new(move || again.lock().unwrap().clear());
        assert_eq!(process.launch_host_function(work, stream), Ok(()));
        assert_eq!(process.destroy_stream(stream), Ok(()));
        assert_eq!(*seen.lock().unwrap(), [0; 0]);
        let refused = process.launch_host_function(Box::new(|| ()), stream);
        assert_eq!(refused, Err(RT_INVALID_HANDLE));
    }

    #[test]
    fn a_host_function_may_submit_to_its_own_stream() {
        let process: &'static AclProcess =
            Box::leak(Box::new(AclProcess::new(engine_of_environment())));
        process.set_device(0).unwrap();
        let stream = process.create_stream().unwrap();
        let work = Box::new(move || assert_eq!(process.check_stream(stream), Ok(())));
        assert_eq!(process.launch_host_function(work, stream), Ok(()));
        assert_eq!(process.synchronize_device(), Ok(()));
    }
}
