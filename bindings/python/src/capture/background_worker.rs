//! Work that a program need not wait for, such as writing a step's description.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Maximum number of queued tasks; the program waits beyond.
const N_WAITING_MAX: usize = 16;

type Task = Box<dyn FnOnce() + Send>;

/// Runs tasks in order, in a thread that starts with the first one.
#[derive(Default)]
pub(super) struct BackgroundWorker {
    worker: Mutex<Option<WorkerThread>>,
}

struct WorkerThread {
    tasks: SyncSender<Task>,
    thread: JoinHandle<()>,
}

impl BackgroundWorker {
    /// Queues a task; blocks while the queue is full. Without a thread the task runs now.
    pub(super) fn push(&self, task: impl FnOnce() + Send + 'static) {
        let mut worker = self.lock();
        if worker.is_none() {
            *worker = WorkerThread::start();
        }
        let rejected: Task = match &*worker {
            Some(worker) => match worker.tasks.send(Box::new(task)) {
                Ok(()) => return,
                // The thread is gone, so the program runs the task itself.
                Err(rejected) => rejected.0,
            },
            None => Box::new(task),
        };
        rejected();
    }

    /// Waits until all tasks are done.
    pub(super) fn finish(&self) {
        if let Some(WorkerThread { tasks, thread }) = self.lock().take() {
            // The thread ends when the channel closes; before that `join` would block forever.
            drop(tasks);
            // The task reports its own panics.
            let _ = thread.join();
        }
    }

    /// Drops a thread that does not exist in a fork.
    pub(super) fn forget(&self) {
        std::mem::forget(self.lock().take());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<WorkerThread>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerThread {
    fn start() -> Option<WorkerThread> {
        let (tasks, waiting) = sync_channel::<Task>(N_WAITING_MAX);
        let thread = thread::Builder::new().name("opscope-later".to_owned());
        let thread = thread
            .spawn(move || waiting.into_iter().for_each(|task| task()))
            .ok()?;
        Some(WorkerThread { tasks, thread })
    }
}
