//! Sinks, and where they write.

use std::path::PathBuf;
use std::sync::Arc;

use opscope_capture::{Plan, Purpose, Sink};
use opscope_config::dialect::acl::Content;
use opscope_dump::{AclSink, MindSporeOptions, MindSporeSink};
use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, Modes};
use opscope_store::run_file::RunFile;
use pyo3::prelude::*;

use super::request::Request;
use super::run_record;
use crate::os_error;

/// The device that operators of the CPU are said to run on.
const CPU: u32 = 0;

/// A sink, and where it writes.
pub(super) struct Opened {
    pub(super) sink: Arc<dyn Sink>,
    pub(super) place: PathBuf,
    pub(super) root: PathBuf,
    /// Where operators go that raise.
    pub(super) failure_dir: PathBuf,
    pub(super) run: Arc<RunFile>,
    /// Whether the sink keeps no elements once it has seen them.
    pub(super) is_reducing: bool,
    /// The sink, if it writes a tree of MindSpore's.
    pub(super) mindspore: Option<Arc<MindSporeSink>>,
    /// The device that graphs are said to run on, whatever they say themselves.
    pub(super) device: Option<u32>,
    /// Whether an `acl.json` asks for operators that belong to no model.
    pub(super) has_single_operators: bool,
}

impl Opened {
    /// An AscendCL tree below the first of `times` that is free.
    pub(super) fn acl(
        request: Request,
        times: Vec<String>,
        torch_version: &str,
        n_writers: usize,
    ) -> PyResult<(Plan, Opened)> {
        let is_lazy = request.is_lazy();
        let Request {
            plan,
            content,
            has_step_tables,
            places,
            has_single_operators,
        } = request;
        let is_reducing = matches!(content, Content::Statistics(_));
        let (sink, place) = create_sink(places, &times, is_lazy).map_err(refused)?;
        let sink = if has_step_tables && plan.purpose == Purpose::Values {
            sink.with_content(content).with_step_tables()
        } else {
            sink.with_content(content)
        };
        let root = sink.tree().root().to_owned();
        let failure_dir = sink.tree().failure_dir(CPU);
        let at = (place.as_path(), root.as_path());
        let run = run_record::begin("acl", at, &plan, torch_version, n_writers);
        sink.set_run(run.clone());
        let opened = Opened {
            sink: Arc::new(sink),
            place,
            root,
            failure_dir,
            run,
            is_reducing,
            mindspore: None,
            device: None,
            has_single_operators,
        };
        Ok((plan, opened))
    }

    /// A tree of MindSpore's.
    pub(super) fn mindspore(
        (plan, options): (Plan, MindSporeOptions),
        device: u32,
        torch_version: &str,
        n_writers: usize,
    ) -> PyResult<(Plan, Opened)> {
        let path = options.path.clone();
        let sink = Arc::new(MindSporeSink::create(options).map_err(refused)?);
        let at = (path.as_path(), path.as_path());
        let run = run_record::begin("mindspore", at, &plan, torch_version, n_writers);
        run.begin().map_err(refused)?;
        let opened = Opened {
            sink: sink.clone(),
            place: path.clone(),
            failure_dir: path.clone(),
            root: path,
            run,
            // Rows of samples and digests need elements after the operator as well.
            is_reducing: false,
            mindspore: Some(sink),
            device: Some(device),
            has_single_operators: false,
        };
        Ok((plan, opened))
    }
}

fn refused(error: StoreError) -> PyErr {
    os_error::of_store(&error)
}

/// A sink at the first place that is usable. Where files may never come, no directory is made for them
/// before they do.
fn create_sink(
    places: Vec<PathBuf>,
    times: &[String],
    is_lazy: bool,
) -> Result<(AclSink, PathBuf), StoreError> {
    let mut first_error = None;
    for place in places {
        let modes = Modes::default();
        let sink = if is_lazy {
            let free = times.iter().find(|time| !place.join(time).exists());
            let time = free.or(times.first()).map_or("", |time| time);
            let creator = Creator::in_dump(&place, modes);
            let created = creator.create_dir(&place);
            created.map(|()| AclSink::lazy(&place, time, modes))
        } else {
            AclSink::create(&place, times.iter().cloned(), modes)
        };
        match sink {
            Ok(sink) => return Ok((sink, place)),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    Err(first_error.unwrap_or_else(|| StoreError::Io {
        action: "create",
        path: PathBuf::new(),
        source: std::io::ErrorKind::NotFound.into(),
    }))
}
