//! The order of graph executions, which differs from that of compilation.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use serde_json::json;

/// Maximum number of stored executions; later ones are only counted.
const N_EXECUTIONS_MAX: usize = 1 << 20;

/// The executions of a session's graphs, in order of their start.
pub(super) struct ExecutionLog {
    /// `None` if they are only counted.
    file: Option<(PathBuf, Arc<Creator>)>,
    /// Of all graphs, dumped or not.
    n_begun: AtomicU64,
    dumped: Mutex<ExecutionList>,
}

#[derive(Default)]
struct ExecutionList {
    list: Vec<GraphExecution>,
    n_left_out: u64,
    threads: HashMap<ThreadId, u32>,
}

struct GraphExecution {
    index: u64,
    graph: String,
    step: u64,
    thread: u32,
    state: ExecutionPhase,
}

/// The state of an execution.
#[derive(Clone, Copy)]
pub(super) enum ExecutionPhase {
    Running,
    Finished,
    Failed,
}

impl ExecutionPhase {
    fn name(self) -> &'static str {
        match self {
            ExecutionPhase::Running => "running",
            ExecutionPhase::Finished => "finished",
            ExecutionPhase::Failed => "failed",
        }
    }
}

impl ExecutionLog {
    /// A log that is written to `path`.
    pub(super) fn new(path: PathBuf, creator: Arc<Creator>) -> ExecutionLog {
        ExecutionLog {
            file: Some((path, creator)),
            n_begun: AtomicU64::new(0),
            dumped: Mutex::default(),
        }
    }

    /// A log that only counts.
    pub(super) fn unwritten() -> ExecutionLog {
        ExecutionLog {
            file: None,
            n_begun: AtomicU64::new(0),
            dumped: Mutex::default(),
        }
    }

    /// Counts an execution; returns its number in the process.
    pub(super) fn count(&self) -> u64 {
        self.n_begun.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a dumped execution. The result is for [`ExecutionLog::end`].
    pub(super) fn begin(&self, index: u64, graph: &str, step: u64) -> Option<usize> {
        let mut dumped = self.lock();
        let n_threads = dumped.threads.len() as u32;
        // A `ThreadId` has no number to print, so threads are numbered as they appear.
        let thread = *dumped
            .threads
            .entry(thread::current().id())
            .or_insert(n_threads);
        if dumped.list.len() >= N_EXECUTIONS_MAX {
            dumped.n_left_out += 1;
            return None;
        }
        dumped.list.push(GraphExecution {
            index,
            graph: graph.to_owned(),
            step,
            thread,
            state: ExecutionPhase::Running,
        });
        Some(dumped.list.len() - 1)
    }

    /// Records the end. Returns whether to write the list now, in case the process is killed later:
    /// after each doubling.
    pub(super) fn end(&self, position: Option<usize>, state: ExecutionPhase) -> bool {
        let mut dumped = self.lock();
        let Some(execution) = position.and_then(|position| dumped.list.get_mut(position)) else {
            return false;
        };
        execution.state = state;
        position.is_some_and(|position| (position + 1).is_power_of_two())
    }

    /// Writes the list unless empty.
    pub(super) fn write(&self) -> Result<(), StoreError> {
        let Some((path, creator)) = &self.file else {
            return Ok(());
        };
        // The lock ends with the block, so executions do not wait for the disk.
        let text = {
            let dumped = self.lock();
            if dumped.list.is_empty() {
                return Ok(());
            }
            self.text(&dumped)
        };
        creator.create_dir(path.parent().unwrap_or(path))?;
        creator.replace_file(path, &[text.as_bytes()])?;
        Ok(())
    }

    /// One line per execution.
    fn text(&self, dumped: &ExecutionList) -> String {
        let mut sorted: Vec<&GraphExecution> = dumped.list.iter().collect();
        // Threads get their number before they enter the list, so it may be out of order.
        sorted.sort_by_key(|entry| entry.index);
        let lines: Vec<String> = (sorted.into_iter())
            .map(|entry| {
                let line = json!({
                    "index": entry.index,
                    "graph": entry.graph,
                    "step": entry.step,
                    "thread": entry.thread,
                    "state": entry.state.name(),
                });
                format!("  {line}")
            })
            .collect();
        format!(
            "{{\n \"version\": 1,\n \"n_executions\": {},\n \"n_left_out\": {},\n \"executions\": [\n{}\n ]\n}}\n",
            self.n_begun.load(Ordering::Relaxed),
            dumped.n_left_out,
            lines.join(",\n"),
        )
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ExecutionList> {
        self.dumped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
