//! The state that the interface keeps between calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use opscope_config::ConfigEnvironment;
use opscope_engine::SharedEngine;

use crate::aclnn::cache::GraphCache;
use crate::callback::DumpCallback;
use crate::control::ControlFile;
use crate::dump::ProcessDumps;
use crate::exception::ExceptionCallback;
use crate::functions::OperatorDescriptions;
use crate::handle::HandleCounter;
use crate::lock::lock;
use crate::log::ProcessLog;
use crate::memory::MemoryTable;
use crate::message::{AclReport, ReportQueue};
use crate::model::AclModel;
use crate::objects::ObjectTables;
use crate::overflow_status::OverflowStatus;
use crate::per_process::PerProcess;
use crate::runtime::DeviceRuntime;
use crate::{Status, status};

/// The state of AscendCL between calls. A program has one, [`AclProcess::global`]; tests have many.
///
/// Its methods may be called from any thread. If order matters, as between `aclmdlSetDump` and
/// loading a model, calls take effect one after the other. While a model runs or files are written,
/// only the model's lock is held.
///
/// Locks are taken in the order of the fields.
pub struct AclProcess {
    pub(crate) engine: SharedEngine,
    pub(crate) handles: HandleCounter,
    pub(crate) log: ProcessLog,
    pub(crate) environment: EnvironmentSource,
    pub(crate) life: Mutex<LifeCycle>,
    /// `None` unless the environment names one.
    pub(crate) control: Option<ControlFile>,
    pub(crate) dump: Mutex<ProcessDumps>,
    pub(crate) models: Mutex<ModelRegistry>,
    pub(crate) objects: Mutex<ObjectTables>,
    /// Shared with the threads of host functions.
    pub(crate) runtime: Arc<DeviceRuntime>,
    pub(crate) overflow_status: OverflowStatus,
    pub(crate) callback: Mutex<Option<DumpCallback>>,
    pub(crate) exception_callback: Mutex<Option<ExceptionCallback>>,
    pub(crate) operator_descriptions: Mutex<Option<OperatorDescriptions>>,
    /// Number of single operators run, by type.
    pub(crate) op_counts: Mutex<HashMap<String, u64>>,
    /// Graphs of two-stage operators.
    pub(crate) graphs: Mutex<GraphCache>,
    pub(crate) memory: MemoryTable,
    pub(crate) reports: ReportQueue,
}

/// The source of the environment for configurations.
#[derive(Clone, Debug)]
pub(crate) enum EnvironmentSource {
    /// The program's, read for each configuration: the current directory may change.
    Program,
    /// A given one.
    Given(ConfigEnvironment),
}

/// The loaded models.
#[derive(Default)]
pub(crate) struct ModelRegistry {
    pub(crate) by_id: BTreeMap<u32, Arc<AclModel>>,
    /// Number of models loaded so far: the ID of the latest.
    pub(crate) n_loaded: u32,
}

/// The state between the first `aclInit` and the last `aclFinalize`.
#[derive(Debug, Default)]
pub(crate) struct LifeCycle {
    /// Number of `aclInit` calls not yet undone, including refused repetitions.
    pub(crate) n_inits: u64,
    /// Whether `aclFinalize` was the last of the two to succeed.
    pub(crate) is_finalized: bool,
    /// The text of the first configuration that `aclInit` accepted: a different one is refused.
    pub(crate) first_text: Option<Vec<u8>>,
    /// Whether `aclmdlInitDump` was called and `aclmdlFinalizeDump` not yet. Outlives
    /// `aclFinalize`.
    pub(crate) is_dump_begun: bool,
}

static GLOBAL: PerProcess<AclProcess> = PerProcess::new();

impl AclProcess {
    /// A separate process, in the environment of the program.
    pub fn new(engine: SharedEngine) -> AclProcess {
        let log = ProcessLog::from_environment(|name| std::env::var(name).ok());
        let process = AclProcess::start(engine, EnvironmentSource::Program, log);
        AclProcess {
            // Only here: processes in a given environment must not follow the control file of the
            // test's own process.
            control: ControlFile::of_environment(),
            ..process
        }
    }

    /// A separate process, in the given environment.
    pub fn with_environment(engine: SharedEngine, environment: ConfigEnvironment) -> AclProcess {
        let log = ProcessLog::from_environment(|_| None);
        AclProcess::start(engine, EnvironmentSource::Given(environment), log)
    }

    /// The process shared by all bindings of a program. `engine` is called once, for the first
    /// caller.
    ///
    /// A fork has another one, which is not initialised: models, dumps and objects of the parent
    /// are unknown there, and their numbers are not reused.
    pub fn global(engine: impl FnOnce() -> SharedEngine) -> &'static AclProcess {
        GLOBAL.get_or_init(|n_ancestors| {
            // This precedes any engine, while the program is likely to have one thread.
            opscope_engine::disable_telemetry();
            AclProcess {
                // Handles of the parent must be invalid here.
                handles: HandleCounter::behind(n_ancestors),
                ..AclProcess::new(engine())
            }
        })
    }

    fn start(engine: SharedEngine, environment: EnvironmentSource, log: ProcessLog) -> AclProcess {
        let process = AclProcess {
            engine,
            handles: HandleCounter::new(),
            log,
            environment,
            life: Mutex::default(),
            control: None,
            dump: Mutex::default(),
            models: Mutex::default(),
            objects: Mutex::default(),
            runtime: Arc::default(),
            overflow_status: OverflowStatus::default(),
            callback: Mutex::default(),
            exception_callback: Mutex::default(),
            operator_descriptions: Mutex::default(),
            op_counts: Mutex::default(),
            graphs: Mutex::default(),
            memory: MemoryTable::default(),
            reports: ReportQueue::default(),
        };
        // The environment requests this dump regardless of the program's configuration.
        process.start_environment_dump();
        process
    }

    /// The current environment.
    pub(crate) fn environment(&self) -> std::io::Result<ConfigEnvironment> {
        match &self.environment {
            EnvironmentSource::Program => ConfigEnvironment::of_process(),
            EnvironmentSource::Given(environment) => Ok(environment.clone()),
        }
    }

    /// The objects, locked.
    pub(crate) fn objects(&self) -> MutexGuard<'_, ObjectTables> {
        lock(&self.objects)
    }

    /// Reports an error and returns the status, so that a check is one expression.
    pub(crate) fn refuse(
        &self,
        status: Status,
        code: &'static str,
        placeholders: &[&str],
    ) -> Status {
        self.reports.push(AclReport::new(code, placeholders));
        status
    }

    /// Reports an internal error, in the words of the failing part.
    pub(crate) fn inner_error(&self, status: Status, text: &str) -> Status {
        self.reports.push(AclReport::inner(text));
        status
    }

    /// For bindings: reports that `parameter` of `function` is a null pointer.
    pub fn null_argument(&self, function: &str, parameter: &str) -> Status {
        self.refuse(status::INVALID_PARAM, "EH0002", &[function, parameter])
    }

    /// The same for the functions of the dump interface, which have a separate code.
    pub fn null_pointer(&self, function: &str, parameter: &str) -> Status {
        self.refuse(status::INVALID_PARAM, "EP0007", &[function, parameter])
    }

    /// `aclGetRecentErrMsg`: the errors since the last call, the newest first; `None` without
    /// errors. Reports belong to the thread that caused them, unless the configuration of `aclInit`
    /// makes them common (`err_msg_mode`).
    pub fn recent_error(&self) -> Option<String> {
        self.reports.take()
    }
}
