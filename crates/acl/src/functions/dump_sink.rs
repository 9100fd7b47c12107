//! The destination of a dump's bytes: the disk, or the program's callback.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::{SessionSummary, Sink, SinkError};
use opscope_config::dialect::acl::AclContent;
use opscope_dump::{AclSink, FileChunk as Piece};
use opscope_store::atomic_file::PermissionModes;
use opscope_store::run_file::RunFile;

use crate::AclProcess;
use crate::callback::{DumpCallback, FilePiece};
use crate::dump::AcceptedDump;
use crate::lock::lock;
use crate::message::AclReport;

impl AclProcess {
    /// A sink for one execution under `settings`; `None`, with a report, on failure.
    pub(crate) fn dump_sink(&self, settings: &AcceptedDump) -> Option<Arc<dyn Sink>> {
        let run = Some(&settings.run);
        self.sink(&settings.dump_path, &settings.time, &settings.content, run)
    }

    pub(crate) fn sink(
        &self,
        dump_path: &Path,
        time: &str,
        content: &AclContent,
        run: Option<&Arc<RunFile>>,
    ) -> Option<Arc<dyn Sink>> {
        let callback = lock(&self.callback).clone();
        let sink = match callback {
            None => Ok(AclSink::lazy(dump_path, time, PermissionModes::default())),
            Some(callback) => {
                let is_text = matches!(content, AclContent::Statistics(_));
                let function = Arc::new(move |piece: &Piece<'_>| {
                    hand_over(&callback, piece, is_text);
                    Ok::<(), SinkError>(())
                });
                AclSink::to_function(dump_path, time, function)
            }
        };
        match sink {
            Ok(sink) => {
                if let Some(run) = run {
                    sink.set_run(run.clone());
                }
                Some(Arc::new(sink.with_content(content.clone())))
            }
            Err(error) => {
                self.dump_failed(&error.to_string());
                None
            }
        }
    }

    /// Reports what a session could not write.
    pub(crate) fn check_written(&self, summary: &SessionSummary) {
        if let Some(error) = &summary.first_error {
            let n = summary.counters.n_failed + summary.counters.dropped.n_stopped;
            self.dump_failed(&format!(
                "{n} tensors were lost, the first because: {error}"
            ));
        }
    }

    /// Reports an incomplete dump. Executions continue: they are the program's purpose.
    pub(crate) fn dump_failed(&self, reason: &str) {
        let text = format!("the dump is not complete: {reason}");
        self.log.error(&text);
        self.reports.push(AclReport::inner(&text));
    }
}

/// Passes a piece of a file on. Text ends with a NUL, as in the vendor's library.
fn hand_over(callback: &DumpCallback, piece: &Piece<'_>, is_text: bool) {
    let file_name = piece.path.to_string_lossy();
    let mut text = Vec::new();
    let parts: Vec<&[u8]> = if is_text && piece.is_last {
        // The vendor's library passes statistics in one piece, whose length counts the NUL.
        text.extend(piece.parts.concat());
        text.push(0);
        vec![&text]
    } else {
        // Programs that receive dumps treat an empty piece as an error.
        let parts = piece.parts.iter().copied();
        parts.filter(|part| !part.is_empty()).collect()
    };
    for (i, bytes) in parts.iter().enumerate() {
        callback(&FilePiece {
            file_name: &file_name,
            bytes,
            is_last: piece.is_last && i + 1 == parts.len(),
        });
    }
}
