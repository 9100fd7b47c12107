//! Work that a program need not wait for, such as writing the description of a step.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Tasks that may wait; the program waits for room beyond.
const N_WAITING_MAX: usize = 16;

type Task = Box<dyn FnOnce() + Send>;

/// Does tasks in order, in a thread that is started with the first one.
#[derive(Default)]
pub(super) struct BackgroundWorker {
    worker: Mutex<Option<WorkerThread>>,
}

struct WorkerThread {
    tasks: SyncSender<Task>,
    thread: JoinHandle<()>,
}

impl BackgroundWorker {
    /// Has a task done after those before it; waits while there are too many of them. Without a
    /// thread it is done now.
    pub(super) fn push(&self, task: impl FnOnce() + Send + 'static) {
        let mut worker = self.lock();
        if worker.is_none() {
            *worker = WorkerThread::start();
        }
        let rejected: Task = match &*worker {
            Some(worker) => match worker.tasks.send(Box::new(task)) {
                Ok(()) => return,
                // The thread is gone, so the program does the task itself.
                Err(rejected) => rejected.0,
            },
            None => Box::new(task),
        };
        rejected();
    }

    /// Waits until everything is done.
    pub(super) fn finish(&self) {
        if let Some(WorkerThread { tasks, thread }) = self.lock().take() {
            // The thread ends when nobody can send any more; `join` would wait for ever before
            // that.
            drop(tasks);
            // Of a task that panicked its owner has told.
            let _ = thread.join();
        }
    }

    /// Lets go of a thread that a fork does not have.
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
