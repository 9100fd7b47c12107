//! A sink that writes the native form: a table for each step, and few files of elements.

mod elements;
mod open_steps;
mod rows;
mod step;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use opscope_capture::{
    BatchPreparer, Sink, SinkError, StepRemoval, StepRemover, TensorRules, TensorSummarizer,
    WholeTensors, WrittenFiles,
};
use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::record::{ModelId, Record};
use opscope_store::run_file::RunFile;
use opscope_store::slot_table::SlotRow;
use opscope_store::tree::native::NativeTree;
use opscope_tensor::TensorObserver;

use self::elements::{ElementsPlace, ElementsStore};
use self::open_steps::{EndingStep, OpenSteps};
use self::step::StepRows;
use super::ledger::{FileOrigin, Ledger, StepKey};

/// Records whose rows are written together, where several wait.
const N_RECORDS_AT_ONCE: usize = 64;

/// The parts of each tensor that a native dump has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NativeContent {
    /// Its elements and their digest.
    #[default]
    Tensors,
    /// Statistics and the digest.
    Statistics,
    /// Elements, digest and statistics.
    Both,
}

impl NativeContent {
    fn has_elements(self) -> bool {
        self != NativeContent::Statistics
    }

    fn has_statistics(self) -> bool {
        self != NativeContent::Tensors
    }
}

/// Writes below `{dump_path}/{time}/rank-{rank}`.
///
/// A row is in the file of its step before [`Sink::write`] returns, and the elements that it names
/// before the row. When a step ends its rows become a table in order of execution.
pub struct NativeSink {
    tree: NativeTree,
    content: NativeContent,
    /// Which operators are written whole under [`NativeContent::Both`].
    tensors: TensorRules,
    creator: Arc<Creator>,
    elements: ElementsStore,
    steps: OpenSteps,
    /// Results of records that were written together, by the time stamps of the records.
    prepared: Mutex<HashMap<u64, Result<WrittenFiles, SinkError>>>,
    ledger: Ledger,
    run: OnceLock<Arc<RunFile>>,
}

impl NativeSink {
    /// Creates the directory of the run, the first of `times` that is free, so that an unusable
    /// place is found before a model runs.
    ///
    /// # Errors
    /// [`StoreError::Io`] if `dump_path` or the directory in it cannot be created.
    pub fn create_by(
        creator: Arc<Creator>,
        dump_path: &Path,
        times: impl IntoIterator<Item = String>,
        rank: u32,
    ) -> Result<NativeSink, StoreError> {
        creator.create_dir(dump_path)?;
        let mut tree = NativeTree::new(dump_path, "", rank);
        for time in times {
            tree = NativeTree::new(dump_path, &time, rank);
            // Creating the directory decides, not looking for it: of two processes in the same
            // second only one succeeds.
            if creator.create_new_dir(tree.root())? {
                break;
            }
        }
        Ok(NativeSink::new(creator, tree))
    }

    /// [`NativeSink::create_by`] with explicit permissions.
    ///
    /// # Errors
    /// As for [`NativeSink::create_by`].
    pub fn create(
        dump_path: &Path,
        times: impl IntoIterator<Item = String>,
        modes: PermissionModes,
    ) -> Result<NativeSink, StoreError> {
        let creator = Arc::new(Creator::in_dump(dump_path, modes));
        NativeSink::create_by(creator, dump_path, times, 0)
    }

    /// Creates nothing until there is something to write.
    pub fn lazy_by(creator: Arc<Creator>, dump_path: &Path, time: &str, rank: u32) -> NativeSink {
        NativeSink::new(creator, NativeTree::new(dump_path, time, rank))
    }

    fn new(creator: Arc<Creator>, tree: NativeTree) -> NativeSink {
        NativeSink {
            elements: ElementsStore::new(creator.clone(), tree.clone()),
            tree,
            content: NativeContent::default(),
            tensors: TensorRules::default(),
            creator,
            steps: OpenSteps::default(),
            prepared: Mutex::default(),
            ledger: Ledger::default(),
            run: OnceLock::new(),
        }
    }

    /// The same sink with something else to write of each tensor.
    #[must_use]
    pub fn with_content(self, content: NativeContent) -> NativeSink {
        NativeSink { content, ..self }
    }

    /// The same sink, but it writes elements in addition to statistics ([`NativeContent::Both`])
    /// only for operators with a tensor that `rules` select.
    #[must_use]
    pub fn with_tensors_where(self, rules: TensorRules) -> NativeSink {
        NativeSink {
            tensors: rules,
            ..self
        }
    }

    /// Lets the record of the run come just before the first file, if it is not there by then. The
    /// first record that is given stays.
    pub fn set_run(&self, run: Arc<RunFile>) {
        let _ = self.run.set(run);
    }

    /// The directories of the dump.
    pub fn tree(&self) -> &NativeTree {
        &self.tree
    }

    /// Writes records of which those of a step follow one another; the results are in the same
    /// order.
    fn write_together(&self, records: &[&Record]) -> Vec<Result<WrittenFiles, SinkError>> {
        let mut results = Vec::with_capacity(records.len());
        for group in records.chunk_by(|a, b| a.step == b.step && Arc::ptr_eq(&a.model, &b.model)) {
            let mut frames: Vec<Vec<SlotRow>> = Vec::with_capacity(group.len());
            let first = results.len();
            for record in group {
                let rows = self.elements_and_rows(record);
                results.push(rows.map(|(written, rows)| {
                    frames.push(rows);
                    written
                }));
            }
            let appended = self
                .step(&group[0].model, group[0].step)
                .and_then(|step| Ok(step.append(&mut frames)?));
            if let Err(error) = appended {
                // No row of the group is there, so none of its records counts as written. The first
                // error gives the reason.
                let mut error = Some(error);
                for result in results[first..].iter_mut().filter(|result| result.is_ok()) {
                    let text = "rows that were written together with others could not be written";
                    *result = Err(error
                        .take()
                        .unwrap_or_else(|| SinkError::Other(text.to_owned())));
                }
            }
        }
        results
    }

    fn elements_and_rows(
        &self,
        record: &Record,
    ) -> Result<(WrittenFiles, Vec<SlotRow>), SinkError> {
        if let Some(run) = self.run.get() {
            run.note_file(&self.tree.rank_dir());
        }
        let is_whole = match self.content {
            NativeContent::Tensors => true,
            NativeContent::Statistics => false,
            NativeContent::Both => self.tensors.choose_any(record),
        };
        if self.content.has_statistics() {
            // First of all: one pass computes what elements, rows and the search for NaN ask for.
            let slots = record.slots();
            slots.for_each(|(_, _, tensor)| summarize_whole(tensor.observed()));
        }
        let mut written = WrittenFiles::default();
        let mut places: Vec<Option<ElementsPlace>> = vec![None; record.n_slots() as usize];
        if is_whole {
            // Elements of a step that may be removed are in separate files, which are removed with
            // it.
            let is_own = self.ledger.is_open();
            let step = is_own.then(|| self.step_key(&record.model, record.step));
            let (stored, bytes) = self.elements.put(record, step.as_ref())?;
            places = stored.into_iter().map(Some).collect();
            written = written + bytes;
            written.whole = WholeTensors::all(record);
        }
        let rows = rows::rows(record, &self.tree, self.content, &places);
        Ok((written, rows))
    }

    fn step(&self, model: &Arc<ModelId>, step: u64) -> Result<Arc<StepRows>, SinkError> {
        let key = self.step_key(model, step);
        Ok(self.steps.get_or_create(key, || {
            StepRows::create(&self.creator, &self.tree, model, step)
        })?)
    }

    fn step_key(&self, model: &ModelId, step: u64) -> StepKey {
        (self.tree.model_dir(model), step)
    }

    /// Ends the files of elements that a step has for itself.
    fn end_elements(&self, key: &StepKey) -> Result<(), StoreError> {
        for (path, n_bytes) in self.elements.close_step(key)? {
            self.ledger.note(key, &path, n_bytes, FileOrigin::New)?;
        }
        Ok(())
    }

    /// Turns the rows of a step into its table.
    fn finish_step(&self, step: &EndingStep<'_>) -> Result<WrittenFiles, SinkError> {
        let key = &step.key;
        let (path, n_bytes) = step.rows.finish()?;
        // A file that is removed with its step has to be known to the ledger.
        self.ledger.note(key, &path, n_bytes, FileOrigin::New)?;
        self.end_elements(key)?;
        Ok(WrittenFiles {
            n_files: 1,
            n_bytes,
            ..WrittenFiles::default()
        })
    }
}

impl Sink for NativeSink {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        if let Some(result) = lock(&self.prepared).remove(&record.timestamp_us) {
            return result;
        }
        let mut results = self.write_together(&[record]);
        results.pop().unwrap_or_else(|| Ok(WrittenFiles::default()))
    }

    fn begin_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        let root = self.tree.root().parent().unwrap_or(self.tree.root());
        self.ledger.begin(
            self.step_key(model, step),
            &self.tree.model_dir(model),
            root,
        );
        Ok(WrittenFiles::default())
    }

    fn end_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        let key = self.step_key(model, step);
        match self.steps.end(&key) {
            Some(step) => self.finish_step(&step),
            // Nothing of it was selected, or it is removed.
            None => Ok(WrittenFiles::default()),
        }
    }

    /// Steps that a tap is still in end here.
    fn finish(&self) -> Result<WrittenFiles, SinkError> {
        let mut written = WrittenFiles::default();
        let mut first_error = None;
        // One by one, so that a step that ends meanwhile is not ended twice.
        while let Some(step) = self.steps.end_any() {
            match self.finish_step(&step) {
                Ok(more) => written = written + more,
                // The others still get their tables.
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        self.elements.finish()?;
        self.ledger.remove_upper_dirs(&self.creator)?;
        first_error.map_or(Ok(written), Err)
    }

    /// Elements that are written have to be there.
    fn takes_device_numbers(&self) -> bool {
        !self.content.has_elements()
    }

    fn summarizer(&self) -> Option<&dyn TensorSummarizer> {
        self.content.has_statistics().then_some(self)
    }

    fn batch_preparer(&self) -> Option<&dyn BatchPreparer> {
        Some(self)
    }

    fn step_remover(&self) -> Option<&dyn StepRemover> {
        Some(self)
    }
}

impl TensorSummarizer for NativeSink {
    fn summarize(&self, tensor: TensorObserver<'_>) -> bool {
        // While the elements are still in the processor's cache.
        summarize_whole(tensor);
        if self.content.has_elements() {
            self.tensors.rule_out(tensor);
        }
        !self.content.has_elements()
    }
}

impl BatchPreparer for NativeSink {
    fn batch_size(&self) -> usize {
        N_RECORDS_AT_ONCE
    }

    /// Rows gain little from waiting, while the model would make its next tensors in memory that no
    /// cache has yet.
    fn n_awaited(&self) -> usize {
        1
    }

    fn prepare_batch(&self, records: &[&Record]) {
        let results = self.write_together(records);
        let times = records.iter().map(|record| record.timestamp_us);
        // `write` is called for each of them next, and answers with these.
        lock(&self.prepared).extend(times.zip(results));
    }
}

impl StepRemover for NativeSink {
    fn remember_steps(&self) {
        self.ledger.open();
    }

    fn remove_step(&self, model: &ModelId, step: u64) -> Result<StepRemoval, SinkError> {
        let key = self.step_key(model, step);
        // All its records are written, but the note of its end may still be on its way. A table
        // would be written for nothing.
        if let Some(step) = self.steps.end(&key) {
            step.rows.discard()?;
            self.end_elements(&key)?;
        }
        // Or a writer is busy with it: it notes its files before it ends.
        self.steps.wait_for(&key);
        Ok(self.ledger.remove(&key, &self.creator)?)
    }

    fn keep_step(&self, model: &ModelId, step: u64) {
        self.ledger.keep(&self.step_key(model, step));
    }
}

/// Leaves statistics, digest and what is not finite in the memo of a tensor.
fn summarize_whole(tensor: TensorObserver<'_>) {
    // Types without statistics have a digest all the same.
    let _ = tensor.digested_stats();
    let _ = tensor.digest();
}

/// Values behind these locks stay consistent after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A path below the directory of the run, as tables have it.
fn name_below(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    below.to_string_lossy().into_owned()
}

/// Files and their sizes.
type FileSizes = Vec<(PathBuf, u64)>;
