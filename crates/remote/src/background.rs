//! The threads that wait for servers.

use std::future::Future;
use std::io;
use std::sync::Mutex;
use std::sync::mpsc;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::lock;

/// Requests are waiting most of the time: two threads serve many.
const N_THREADS: usize = 2;

static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

/// The runtime of this process. A fork does not copy the parent's threads, and waiting for them
/// would never end, so a forked child creates a new runtime.
pub(crate) fn handle() -> io::Result<&'static Handle> {
    let mut known = lock(&RUNTIME);
    let pid = std::process::id();
    if let Some((owner, runtime)) = *known
        && owner == pid
    {
        return Ok(runtime.handle());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(N_THREADS)
        .thread_name("opscope-remote")
        .enable_all()
        .build()?;
    // The runtime is leaked: it lives as long as the process, and dropping it might block where
    // blocking is not allowed.
    let runtime: &'static Runtime = Box::leak(Box::new(runtime));
    *known = Some((pid, runtime));
    Ok(runtime.handle())
}

/// Waits for a result. The caller may itself be a task of another runtime, where blocking on a
/// runtime is not allowed: the work runs on this one, and the caller's thread blocks.
pub(crate) fn wait_for<T: Send + 'static>(
    work: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    handle()?.spawn(async move {
        // The receiver is gone only if the process is about to end.
        let _ = sender.send(work.await);
    });
    receiver
        .recv()
        .map_err(|_| io::Error::other("the request was dropped because of an internal error"))?
}
