//! The one library of ONNX Runtime that a process can use.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ort::environment::Environment;
use ort::logging::LogLevel;

use super::native::{LibraryProbe, disable_telemetry};
use super::{domain, error};
use crate::{EngineError, guard};

/// The interface that is asked for; libraries from 1.17 on have it.
const API_VERSION: u32 = ort::MINOR_VERSION;
/// From 1.21 on, a model in memory can say where its data outside are.
const MINOR_WITH_DATA_FOLDER: u32 = 21;

static LOADED: Mutex<Option<Arc<OrtLibrary>>> = Mutex::new(None);

/// A loaded library, and what sessions are made under.
pub(super) struct OrtLibrary {
    /// Where it really is; links are followed.
    pub(super) path: PathBuf,
    pub(super) version: String,
    minor: u32,
    pub(super) environment: Environment,
    /// Whether sessions may be made side by side.
    pub(super) knows_domain: bool,
}

impl OrtLibrary {
    /// Loads a library, or returns it if this process has loaded it before.
    pub(super) fn load(path: &Path) -> Result<Arc<OrtLibrary>, EngineError> {
        let fail = |reason: String| EngineError::Library {
            path: path.to_owned(),
            reason,
        };
        let real_path = path.canonicalize().map_err(|error| {
            fail(format!(
                "{error}; expected a file such as `libonnxruntime.so`"
            ))
        })?;
        if !real_path.is_file() {
            return Err(fail(
                "it is not a file; expected one such as `libonnxruntime.so`".into(),
            ));
        }
        // A thread that panicked while holding it had not stored anything.
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = &*loaded {
            // The library keeps its state in globals, and the wrapper its table of functions: a
            // second one would mix with the first.
            if library.path == real_path {
                return Ok(library.clone());
            }
            return Err(fail(format!(
                "this process uses ONNX Runtime {} from `{}` already, and can have one only",
                library.version,
                library.path.display()
            )));
        }
        let library = OrtLibrary::open(real_path).map_err(fail)?;
        Ok(loaded.insert(Arc::new(library)).clone())
    }

    fn open(path: PathBuf) -> Result<OrtLibrary, String> {
        // Before the library's own code runs for the first time.
        disable_telemetry();
        let (version, minor) = guard::catch(|| probe(&path))??;
        let environment = guard::catch(|| {
            let builder = ort::init_from(&path).map_err(|error| error.to_string())?;
            // Whatever is wrong comes back as an error; the library would print it as well.
            let builder = builder
                .with_name("opscope")
                .with_telemetry(false)
                .with_logger(Arc::new(|_, _, _, _, _| {}));
            let environment = builder.build().map_err(|error| error::readable(&error))?;
            // Logging to standard error would go between the lines of the user's program.
            environment.set_log_level(LogLevel::Fatal);
            Ok::<_, String>(environment)
        })??;
        Ok(OrtLibrary {
            // A library that cannot do this makes sessions one after the other.
            knows_domain: domain::introduce(&environment).is_ok(),
            path,
            version,
            minor,
            environment,
        })
    }

    /// Whether a model in memory can say in which folder its data outside are.
    pub(super) fn has_data_folder(&self) -> bool {
        self.minor >= MINOR_WITH_DATA_FOLDER
    }
}

/// The library's version and the second number of it.
fn probe(path: &Path) -> Result<(String, u32), String> {
    let expected = "expected the shared library of ONNX Runtime";
    // Checked before the wrapper loads it: a file that is no such library needs a clear error.
    let probe = LibraryProbe::open(path).map_err(|reason| format!("{reason}; {expected}"))?;
    let version = probe.version()?;
    // Builds of a development version have more behind the second number.
    let mut numbers = version.split('.').map_while(|n| n.parse::<u32>().ok());
    let (Some(1), Some(minor)) = (numbers.next(), numbers.next()) else {
        return Err(format!(
            "its version is `{version}`; expected 1.{API_VERSION} or a newer 1.x"
        ));
    };
    // A library that is too old prints so when it is asked.
    if minor < API_VERSION {
        return Err(format!(
            "it needs API {API_VERSION}, i.e. 1.{API_VERSION} or newer, found {version}"
        ));
    }
    if !probe.has_api(API_VERSION) {
        return Err(format!(
            "it says that it is {version}, and does not have API {API_VERSION}"
        ));
    }
    Ok((version, minor))
}
