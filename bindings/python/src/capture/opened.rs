//! Sinks, and where they write.

use std::path::PathBuf;
use std::sync::Arc;

use opscope_capture::sink::{AclSink, Content, MindSporeSink};
use opscope_capture::{Plan, Sink};
use opscope_config::dialect::mindspore;
use opscope_store::StoreError;
use opscope_store::atomic_file::Modes;
use opscope_store::run_file::RunFile;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use super::request::Request;
use super::run_record;

/// A sink, and where it writes.
pub(super) struct Opened {
    pub(super) sink: Arc<dyn Sink>,
    pub(super) place: PathBuf,
    pub(super) root: PathBuf,
    pub(super) run: Arc<RunFile>,
    /// Whether the sink keeps no elements once it has seen them.
    pub(super) is_reducing: bool,
    /// The sink, if it writes a tree of MindSpore's.
    pub(super) mindspore: Option<Arc<MindSporeSink>>,
    /// The device that graphs are said to run on, whatever they say themselves.
    pub(super) device: Option<u32>,
}

impl Opened {
    /// An AscendCL tree below the first of `times` that is free.
    pub(super) fn acl(
        request: Request,
        times: Vec<String>,
        torch_version: &str,
        n_writers: usize,
    ) -> PyResult<(Plan, Opened)> {
        let Request {
            plan,
            content,
            place,
        } = request;
        let is_reducing = matches!(content, Content::Statistics(_));
        let sink = AclSink::create(&place, times, Modes::default())
            .map_err(refused)?
            .with_content(content);
        let root = sink.tree().root().to_owned();
        let at = (place.as_path(), root.as_path());
        let run = run_record::begin("acl", at, &plan, torch_version, n_writers);
        sink.set_run(run.clone());
        let opened = Opened {
            sink: Arc::new(sink),
            place,
            root,
            run,
            is_reducing,
            mindspore: None,
            device: None,
        };
        Ok((plan, opened))
    }

    /// A tree of MindSpore's.
    pub(super) fn mindspore(
        request: mindspore::Request,
        device: u32,
        torch_version: &str,
        n_writers: usize,
    ) -> PyResult<(Plan, Opened)> {
        let mindspore::Request { plan, options } = request;
        let path = options.path.clone();
        let sink = Arc::new(MindSporeSink::create(options).map_err(refused)?);
        let at = (path.as_path(), path.as_path());
        let run = run_record::begin("mindspore", at, &plan, torch_version, n_writers);
        run.begin().map_err(refused)?;
        let opened = Opened {
            sink: sink.clone(),
            place: path.clone(),
            root: path,
            run,
            // Rows of samples and digests need elements after the operator as well.
            is_reducing: false,
            mindspore: Some(sink),
            device: Some(device),
        };
        Ok((plan, opened))
    }
}

fn refused(error: StoreError) -> PyErr {
    PyOSError::new_err(error.to_string())
}
