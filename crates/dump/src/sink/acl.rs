//! A sink that writes the AscendCL tree: one file for each operator execution.

mod failure_text;
mod outlet;
mod step_table;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use opscope_capture::overflow::OperatorOverflow;
use opscope_capture::{
    BatchPreparer, FailureDetail, OperatorFailure, Sink, SinkError, StepRemoval, StepRemover,
    TensorRules, TensorSummarizer, WholeTensors, WrittenFiles,
};
use opscope_config::dialect::acl::AclContent;
use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::file_format::op_debug::OverflowRecord;
use opscope_store::file_format::stats_csv::{self, StatsColumns};
use opscope_store::file_format::{dump_data, mapping_csv};
use opscope_store::record::{ModelId, Record};
use opscope_store::run_file::RunFile;
use opscope_store::tree::acl::{
    AclPlace, AclTree, FailureFile, TRACE_SUFFIX, UNKNOWN_ID, hash_file_name, hash_name, stream_id,
    task_id,
};
use opscope_tensor::{HostAccessError, TensorObserver};

use self::outlet::Outlet;
use super::ledger::{FileOrigin, Ledger, StepKey};
use super::refusals::Refusals;

pub use outlet::{CHUNK_BYTES_MAX, ChunkFunction, FileChunk};

/// How often a taken name is tried again with a later time stamp.
const N_NAME_ATTEMPTS: u64 = 1000;
/// Records whose averages a writer computes side by side.
const N_REDUCED_AT_ONCE: usize = 128;

/// Writes below `{dump_path}/{time}`, failing operators below `{dump_path}/extra-info/data-dump`;
/// or passes the same bytes with the same paths to a function and writes nothing.
///
/// A record whose tensors are all empty has no file. Tensors of dtypes that CANN does not have are
/// left out of files and counted ([`AclSink::refused`]); tables have rows of them.
pub struct AclSink {
    tree: AclTree,
    content: AclContent,
    /// Which operators are written whole under [`AclContent::Both`].
    tensors: TensorRules,
    /// Results of rows that were appended together, by the time stamps of their records.
    appended: Mutex<HashMap<u64, WrittenFiles>>,
    outlet: Outlet,
    ledger: Ledger,
    run: OnceLock<Arc<RunFile>>,
    refusals: Refusals,
}

impl AclSink {
    /// Creates the tree's root directory, so that an unusable place is found before a model runs.
    ///
    /// `times` are the names that the directory may have, the first free one is taken: two dumps
    /// never share a tree.
    ///
    /// # Errors
    /// [`StoreError::Io`] if `dump_path` or the directory in it cannot be created.
    pub fn create(
        dump_path: &Path,
        times: impl IntoIterator<Item = String>,
        modes: PermissionModes,
    ) -> Result<AclSink, StoreError> {
        AclSink::create_by(
            Arc::new(Creator::in_dump(dump_path, modes)),
            dump_path,
            times,
        )
    }

    /// [`AclSink::create`] by way of `creator`, which may be one that only pretends.
    ///
    /// # Errors
    /// As for [`AclSink::create`].
    pub fn create_by(
        creator: Arc<Creator>,
        dump_path: &Path,
        times: impl IntoIterator<Item = String>,
    ) -> Result<AclSink, StoreError> {
        creator.create_dir(dump_path)?;
        let mut tree = AclTree::new(dump_path, "");
        let mut is_new = false;
        for time in times {
            tree = AclTree::new(dump_path, &time);
            // Creating the directory decides, not looking for it: of two processes in the same
            // second only one succeeds.
            is_new = creator.create_new_dir(tree.root())?;
            if is_new {
                break;
            }
        }
        let sink = AclSink::new(tree, Outlet::files(creator));
        if is_new {
            sink.ledger.note_upper_dir(sink.tree.root());
        }
        Ok(sink)
    }

    /// Creates nothing until there is something to write.
    pub fn lazy(dump_path: &Path, time: &str, modes: PermissionModes) -> AclSink {
        AclSink::lazy_by(
            Arc::new(Creator::in_dump(dump_path, modes)),
            dump_path,
            time,
        )
    }

    /// [`AclSink::lazy`] by way of `creator`, which may be one that only pretends.
    pub fn lazy_by(creator: Arc<Creator>, dump_path: &Path, time: &str) -> AclSink {
        AclSink::new(AclTree::new(dump_path, time), Outlet::files(creator))
    }

    /// Writes nothing: `function` gets what would be written, in chunks that name the file by its
    /// absolute path. Files come one after the other, never two at once.
    ///
    /// # Errors
    /// [`StoreError::Io`] if `dump_path` is relative and the current directory is not known.
    pub fn to_function(
        dump_path: &Path,
        time: &str,
        function: Arc<ChunkFunction>,
    ) -> Result<AclSink, StoreError> {
        // `canonicalize` would want a directory that exists, and none is made here.
        let absolute =
            std::path::absolute(dump_path).map_err(StoreError::io("resolve", dump_path))?;
        Ok(AclSink::new(
            AclTree::new(&absolute, time),
            Outlet::function(function),
        ))
    }

    fn new(tree: AclTree, outlet: Outlet) -> AclSink {
        AclSink {
            tree,
            content: AclContent::Tensors,
            tensors: TensorRules::default(),
            appended: Mutex::default(),
            outlet,
            ledger: Ledger::default(),
            run: OnceLock::new(),
            refusals: Refusals::default(),
        }
    }

    /// Writes the record of the run just before the first file, unless it exists by then. Later
    /// calls have no effect.
    pub fn set_run(&self, run: Arc<RunFile>) {
        let _ = self.run.set(run);
    }

    /// The same sink with other content for each tensor. Failing operators are always written with
    /// their tensors.
    #[must_use]
    pub fn with_content(self, content: AclContent) -> AclSink {
        AclSink { content, ..self }
    }

    /// The same sink, but it writes tensors in addition to statistics ([`AclContent::Both`]) only
    /// for operators with a tensor that `rules` select. A file holds all tensors of an operator, so
    /// it contains all of them.
    #[must_use]
    pub fn with_tensors_where(self, rules: TensorRules) -> AclSink {
        AclSink {
            tensors: rules,
            ..self
        }
    }

    /// The directories that models write to.
    pub fn tree(&self) -> &AclTree {
        &self.tree
    }

    /// Why tensors were left out, and how many for each reason.
    pub fn refused(&self) -> Vec<(String, u64)> {
        self.refusals.all().into_iter().collect()
    }

    fn write_tensors(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let (record, refused) = self.refusals.numbered(record);
        let record = &*record;
        if record.n_bytes() == 0 {
            return Ok(refused);
        }
        let prelude = dump_data::prelude(record);
        let parts = parts(&prelude, record)?;
        let (written, _) = self.put(record, &parts, short_name, |attempt| {
            let timestamp_us = record.timestamp_us.saturating_add(attempt);
            self.tree.place(record, timestamp_us)
        })?;
        let whole = WholeTensors::all(record);
        Ok(refused + WrittenFiles { whole, ..written })
    }

    fn write_statistics(
        &self,
        record: &Record,
        columns: &StatsColumns,
    ) -> Result<WrittenFiles, SinkError> {
        let text = stats_csv::encode(record, columns);
        let (written, _) = self.put(record, &[text.as_bytes()], short_name, |attempt| {
            let timestamp_us = record.timestamp_us.saturating_add(attempt);
            let mut place = self.tree.place(record, timestamp_us);
            place.file_name.push_str(stats_csv::FILE_NAME_SUFFIX);
            place
        })?;
        Ok(written)
    }

    /// Creates a file at the first free one of `places`; returns which one that is.
    fn put(
        &self,
        record: &Record,
        parts: &[&[u8]],
        short_name: fn(&AclPlace) -> Option<String>,
        places: impl Fn(u64) -> AclPlace,
    ) -> Result<(WrittenFiles, u64), SinkError> {
        for attempt in 0..N_NAME_ATTEMPTS {
            let place = places(attempt);
            // The record is written first: leftovers of a killed run are searched only in
            // directories with a record.
            if let (Some(run), false) = (self.run.get(), self.outlet.is_function()) {
                run.note_file(&place.dir);
            }
            let short_name = short_name(&place);
            if let Some(written) = self.outlet.put(&place, short_name.clone(), parts)? {
                self.note(record, &place, short_name, written)?;
                return Ok((written, attempt));
            }
        }
        let name = &record.operator.op_name;
        Err(SinkError::Other(format!(
            "no free file name for operator `{name}`"
        )))
    }
}

impl AclSink {
    /// Notes a file, in case its step is taken back. Operators that run on their own share a
    /// directory, so its name does not say which step it is.
    fn note(
        &self,
        record: &Record,
        place: &AclPlace,
        short_name: Option<String>,
        written: WrittenFiles,
    ) -> Result<(), SinkError> {
        let key = (place.dir.clone(), record.step);
        if short_name.is_some() {
            let mapping = place.dir.join(mapping_csv::FILE_NAME);
            self.ledger.note(&key, &mapping, 0, FileOrigin::Uncounted)?;
        }
        let path = place
            .dir
            .join(short_name.unwrap_or_else(|| place.file_name.clone()));
        self.ledger
            .note(&key, &path, written.n_bytes, FileOrigin::New)?;
        Ok(())
    }

    fn step_key(&self, model: &ModelId, step: u64) -> StepKey {
        (self.tree.step_dir(model, step), step)
    }
}

impl Sink for AclSink {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        if record.n_bytes() == 0 {
            return Ok(WrittenFiles::default());
        }
        match &self.content {
            AclContent::Tensors => self.write_tensors(record),
            AclContent::Statistics(columns) => self.write_statistics(record, columns),
            AclContent::Both(columns) => {
                let written = self.write_statistics(record, columns)?;
                if self.tensors.choose_any(record) {
                    return Ok(written + self.write_tensors(record)?);
                }
                Ok(written)
            }
            AclContent::StepTable => self.write_row(record),
        }
    }

    /// The overflow record is written first: if it cannot be written, nothing is kept of the
    /// operator.
    fn write_overflow(
        &self,
        record: &Record,
        overflow: &OperatorOverflow,
    ) -> Result<WrittenFiles, SinkError> {
        let model_id = record.model.load.unwrap_or(UNKNOWN_ID);
        let (stream_id, task_id) = (stream_id(&record.model), task_id(record));
        let block = overflow.to_record(model_id.into(), stream_id.into(), task_id.into());
        let bytes = dump_data::op_debug_file(&OverflowRecord::Blocks(block), record.timestamp_us);
        let (written, _) = self.put(record, &[&bytes], short_name, |attempt| {
            let timestamp_us = record.timestamp_us.saturating_add(attempt);
            self.tree.op_debug_place(record, timestamp_us)
        })?;
        Ok(written + self.write(record)?)
    }

    fn write_failure(
        &self,
        record: &Record,
        failure: &OperatorFailure,
    ) -> Result<WrittenFiles, SinkError> {
        // Before tensors are left out: the text can name those that the file cannot hold.
        let message = failure_text::message(record, failure);
        let (record, refused) = self.refusals.numbered(record);
        let record = &*record;
        let (file, op_name) = match failure.detail {
            FailureDetail::Brief if self.outlet.is_function() => (FailureFile::BriefMessage, ""),
            FailureDetail::Brief => (FailureFile::Brief, ""),
            FailureDetail::Normal | FailureDetail::Full => {
                (FailureFile::Named, record.operator.op_name.as_str())
            }
        };
        let prelude = dump_data::exception_prelude(record, op_name, &message);
        let places = |attempt: u64| {
            // These names have milliseconds, so that a microsecond later would be the same name.
            let timestamp_us = record.timestamp_us.saturating_add(attempt * 1000);
            let time = local_time(timestamp_us);
            self.tree.failure_place(record, file, &time)
        };
        let short = |place: &AclPlace| hash_file_name(&place.file_name);
        let (written, taken) = self.put(record, &parts(&prelude, record)?, short, places)?;
        let whole = WholeTensors::all(record);
        let written = refused + WrittenFiles { whole, ..written };
        let Some(trace) = &failure.trace else {
            return Ok(written);
        };
        let text = failure_text::with_trace(&message, record, trace);
        let (beside, _) = self.put(record, &[text.as_bytes()], short, |attempt| {
            // Begins where the tensors found a place, so that both files have the same name
            // wherever that is free.
            let mut place = places(taken + attempt);
            place.file_name.push_str(TRACE_SUFFIX);
            place
        })?;
        Ok(written + beside)
    }

    fn begin_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        let model_dir = self.tree.model_dir(model);
        // Counted from the parent of the tree's root, which a lazy sink has not created yet and
        // which is removed too if it is empty at the end.
        let root = self.tree.root().parent().unwrap_or(self.tree.root());
        self.ledger
            .begin(self.step_key(model, step), &model_dir, root);
        Ok(WrittenFiles::default())
    }

    fn finish(&self) -> Result<WrittenFiles, SinkError> {
        if let Outlet::Files { creator, .. } = &self.outlet {
            self.ledger.remove_upper_dirs(creator)?;
        }
        Ok(WrittenFiles::default())
    }

    fn summarizer(&self) -> Option<&dyn TensorSummarizer> {
        (self.content != AclContent::Tensors).then_some(self)
    }

    fn batch_preparer(&self) -> Option<&dyn BatchPreparer> {
        let is_of_rows = matches!(
            self.content,
            AclContent::Statistics(_) | AclContent::StepTable
        );
        is_of_rows.then_some(self)
    }

    fn step_remover(&self) -> Option<&dyn StepRemover> {
        match &self.outlet {
            Outlet::Files { .. } => Some(self),
            // A function cannot return the bytes that it received.
            Outlet::Function { .. } => None,
        }
    }
}

impl TensorSummarizer for AclSink {
    fn summarize(&self, tensor: TensorObserver<'_>) -> bool {
        match &self.content {
            AclContent::Tensors => false,
            AclContent::Statistics(columns) => stats_csv::reduce(tensor, columns),
            AclContent::Both(columns) => {
                stats_csv::reduce(tensor, columns);
                // Another tensor of the operator may be chosen, and then this one is written as
                // well.
                self.tensors.rule_out(tensor);
                false
            }
            AclContent::StepTable => {
                stats_csv::step_table::reduce(tensor);
                true
            }
        }
    }

    fn summarize_permuted(&self, tensor: TensorObserver<'_>) -> bool {
        match &self.content {
            AclContent::Tensors | AclContent::Both(_) => false,
            AclContent::Statistics(columns) => stats_csv::reduce_permuted(tensor, columns),
            // Sums of these tables run through the elements as they lie in memory.
            AclContent::StepTable => self.summarize(tensor),
        }
    }
}

impl BatchPreparer for AclSink {
    fn batch_size(&self) -> usize {
        match self.content {
            AclContent::StepTable => step_table::N_AT_ONCE,
            _ => N_REDUCED_AT_ONCE,
        }
    }

    fn prepare_batch(&self, records: &[&Record]) {
        match &self.content {
            AclContent::Tensors | AclContent::Both(_) => {}
            AclContent::Statistics(columns) => {
                let tensors = records.iter().flat_map(|record| record.slots());
                let whole = tensors.filter(|(_, _, tensor)| tensor.has_elements());
                let whole: Vec<_> = whole.map(|(_, _, tensor)| tensor.observed()).collect();
                stats_csv::reduce_together(&whole, columns);
            }
            AclContent::StepTable => self.append_together(records),
        }
    }
}

impl StepRemover for AclSink {
    fn remember_steps(&self) {
        self.ledger.open();
    }

    fn remove_step(&self, model: &ModelId, step: u64) -> Result<StepRemoval, SinkError> {
        match &self.outlet {
            Outlet::Files { creator, .. } => {
                Ok(self.ledger.remove(&self.step_key(model, step), creator)?)
            }
            Outlet::Function { .. } => Ok(StepRemoval::default()),
        }
    }

    fn keep_step(&self, model: &ModelId, step: u64) {
        self.ledger.keep(&self.step_key(model, step));
    }
}

/// Returns the parts of a dump file: the header, then the elements of each tensor.
pub(super) fn parts<'a>(
    prelude: &'a [u8],
    record: &'a Record,
) -> Result<Vec<&'a [u8]>, HostAccessError> {
    let tensors = record.slots().map(|(_, _, tensor)| tensor.host_bytes());
    std::iter::once(Ok(prelude)).chain(tensors).collect()
}

/// Values behind these locks stay consistent after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn short_name(place: &AclPlace) -> Option<String> {
    hash_name(&place.dir, &place.file_name)
}

/// `YYYYMMDDHHMMSSmmm` on the clock of the place where the program runs.
fn local_time(timestamp_us: u64) -> String {
    let microseconds = i64::try_from(timestamp_us).unwrap_or(i64::MAX);
    let timestamp = Timestamp::from_microsecond(microseconds).unwrap_or(Timestamp::MAX);
    let time = timestamp.to_zoned(TimeZone::system());
    format!("{}{:03}", time.strftime("%Y%m%d%H%M%S"), time.millisecond())
}
