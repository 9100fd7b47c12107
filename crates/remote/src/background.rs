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

/// The runtime of this process. After a fork the threads of the parent's are not there, and what
/// waits for them would wait without end: then another one is made.
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
    // It lives as long as the process, and is never dropped where that could not wait.
    let runtime: &'static Runtime = Box::leak(Box::new(runtime));
    *known = Some((pid, runtime));
    Ok(runtime.handle())
}

/// Waits for a result. The caller may itself be a task of another runtime, which may not wait in
/// one: so the work is done over there, and the caller's thread stands still.
pub(crate) fn wait_for<T: Send + 'static>(
    work: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    handle()?.spawn(async move {
        // Nobody waits any more only if the process is about to end.
        let _ = sender.send(work.await);
    });
    receiver
        .recv()
        .map_err(|_| io::Error::other("the request was given up after an error of this program"))?
}
