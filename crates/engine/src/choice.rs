//! Choosing the engine: tract, which is part of a build, or ONNX Runtime, whose library is looked
//! for.

mod find;
mod library;
mod python;
mod surroundings;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use opscope_capture::Purpose;

use self::find::{LibraryMatch, find, named};
use self::surroundings::SearchSurroundings;
use crate::{
    Engine, EngineError, FallbackEngine, FallbackModel, GraphKind, LoadOptions, ModelSource,
    SharedEngine,
};

pub use self::surroundings::look_in_package;

/// The variable that says which engine runs models.
pub const ENGINE_VARIABLE: &str = "OPSCOPE_ENGINE";
/// The variable that says where ONNX Runtime's library is.
pub const LIBRARY_VARIABLE: &str = "OPSCOPE_ENGINE_LIB";
/// The variable that configures the path for other programs with ONNX Runtime's Rust interface.
const SHARED_VARIABLE: &str = "ORT_DYLIB_PATH";

/// Which engine runs models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// ONNX Runtime if there is one that can be loaded, else tract.
    #[default]
    Auto,
    /// tract.
    Tract,
    /// ONNX Runtime.
    OnnxRuntime,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [EngineKind; 3] = [EngineKind::Auto, EngineKind::Tract, EngineKind::OnnxRuntime];

    /// The word for it in options and variables.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Auto => "auto",
            EngineKind::Tract => "tract",
            EngineKind::OnnxRuntime => "onnxruntime",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = String;

    /// # Errors
    /// Text that names the words that are allowed.
    fn from_str(text: &str) -> Result<EngineKind, String> {
        let found = EngineKind::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| "expected auto, tract or onnxruntime".to_owned())
    }
}

/// A user's choice of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineRequest {
    /// Which engine.
    pub kind: EngineKind,
    /// Where ONNX Runtime's library is. If set, [`EngineKind::Auto`] means
    /// [`EngineKind::OnnxRuntime`].
    pub library: Option<NamedLibrary>,
}

/// A library that a user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLibrary {
    /// The file, or a directory that has it: itself, in `lib`, or in the Python package
    /// `onnxruntime` below it.
    pub path: PathBuf,
    /// The option, variable or other place that named it.
    pub named_by: &'static str,
}

impl EngineRequest {
    /// Reads the choice from `OPSCOPE_ENGINE` and `OPSCOPE_ENGINE_LIB`. An empty variable is as
    /// none.
    ///
    /// # Errors
    /// [`EngineError::NoEngine`] if the first one has another word than those of [`EngineKind`].
    pub fn from_environment() -> Result<EngineRequest, EngineError> {
        EngineRequest::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(
        variable: impl Fn(&str) -> Option<std::ffi::OsString>,
    ) -> Result<EngineRequest, EngineError> {
        // Job files often export a variable with nothing in it to switch it off.
        let [kind, library] = [ENGINE_VARIABLE, LIBRARY_VARIABLE]
            .map(|name| variable(name).filter(|value| !value.is_empty()));
        let kind = match kind {
            None => EngineKind::Auto,
            Some(text) => {
                let text = text.to_string_lossy();
                text.parse().map_err(|expected| {
                    no_engine(format!("{ENGINE_VARIABLE} is `{text}`: {expected}"))
                })?
            }
        };
        let library = library.map(|path| NamedLibrary {
            path: path.into(),
            named_by: LIBRARY_VARIABLE,
        });
        Ok(EngineRequest { kind, library })
    }
}

/// An engine, and why it is this one.
#[derive(Clone)]
pub struct EngineChoice {
    /// Which one it is; never [`EngineKind::Auto`].
    pub kind: EngineKind,
    /// The engine.
    pub engine: SharedEngine,
    /// Its name and version, where it is, and why it was chosen, in one line.
    pub reason: String,
    /// Why a library that was found could not be used.
    pub warning: Option<String>,
    /// The engine to fall back on for a model that the first one cannot run; `None` if the user
    /// named the engine.
    pub other: Option<SharedEngine>,
}

impl EngineChoice {
    /// Loads a model for runs of this purpose: with the engine that was chosen or, if the choice
    /// was open, with the other one where only that one can.
    ///
    /// # Errors
    /// As for [`Engine::load`], in the words of the engine that was chosen.
    pub fn load(
        &self,
        source: ModelSource<'_>,
        options: &LoadOptions,
        purpose: Purpose,
    ) -> Result<FallbackModel, EngineError> {
        // The chosen engine always tries first: another one may differ from it in the last digits.
        let loaded = self.engine.load(source, options);
        let reason = match &loaded {
            Ok(model) => model.refusal(purpose).map(|refusal| refusal.to_string()),
            Err(error) => lack(error),
        };
        // Options are an engine's own.
        let is_plain = options.graph == GraphKind::Original && options.providers.is_empty();
        let other = self.other.as_ref().filter(|_| is_plain);
        if let (Some(reason), Some(engine)) = (reason, other)
            && let Ok(model) = engine.load(source, options)
            // An engine that loads the model and then refuses the run would be of no help.
            && model.refusal(purpose).is_none()
        {
            let engine = engine.clone();
            let taken = Some(FallbackEngine { engine, reason });
            return Ok(FallbackModel { model, taken });
        }
        loaded.map(|model| FallbackModel { model, taken: None })
    }
}

/// Says what the engine lacks to run a sound model. `None` for a damaged model, which no other
/// engine could run either.
fn lack(error: &EngineError) -> Option<String> {
    let is_lack = match error {
        // Only what the engine lacks is worth another try. A damaged file stays damaged in every
        // engine.
        EngineError::Unsupported { .. } => true,
        EngineError::Invalid { reason, .. } => is_lack_of_onnx_runtime(reason),
        _ => false,
    };
    is_lack.then(|| error.to_string())
}

#[cfg(feature = "onnxruntime")]
fn is_lack_of_onnx_runtime(reason: &str) -> bool {
    crate::onnx::is_lack(reason)
}

#[cfg(not(feature = "onnxruntime"))]
fn is_lack_of_onnx_runtime(_reason: &str) -> bool {
    false
}

impl fmt::Debug for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chosen")
            .field("engine", &self.engine.name())
            .field("reason", &self.reason)
            .field("warning", &self.warning)
            .finish()
    }
}

/// Chooses the engine that `wanted` asks for on this machine. A library is loaded to find out
/// whether it works.
///
/// # Errors
/// [`EngineError::NoEngine`] with advice: the wanted engine is not part of this build, there is no
/// library, or it cannot be loaded. [`EngineKind::Auto`] fails only if no engine is left.
pub fn choose(wanted: &EngineRequest) -> Result<EngineChoice, EngineError> {
    EngineChooser {
        around: SearchSurroundings::of_process,
        load: built_in_loader(),
        tract: built_in_tract(),
    }
    .choose(wanted)
}

/// Loads ONNX Runtime from a file.
type Loader = fn(&Path) -> Result<SharedEngine, EngineError>;

/// The engines that there are to choose from.
struct EngineChooser<A> {
    around: A,
    /// `None` in a build without ONNX Runtime.
    load: Option<Loader>,
    /// `None` in a build without tract.
    tract: Option<SharedEngine>,
}

/// Why there is no ONNX Runtime.
enum RuntimeAbsence {
    /// Not in this build.
    NotBuilt,
    /// No library was found; the searched places.
    Missing(String),
    /// A library that was found or named cannot be used.
    Unusable(String),
}

impl RuntimeAbsence {
    /// Says what is wrong, and what would help.
    fn text(&self) -> String {
        match self {
            RuntimeAbsence::NotBuilt => {
                "this build has no ONNX Runtime: build it with `--features onnxruntime`".to_owned()
            }
            RuntimeAbsence::Missing(text) => {
                format!(
                    "{text}; install it with `pip install onnxruntime`, or name it with --engine-lib or {LIBRARY_VARIABLE}"
                )
            }
            RuntimeAbsence::Unusable(text) => text.clone(),
        }
    }
}

/// The message of a build without any engine.
const NO_ENGINE: &str = "this build has no engine to run models with: build it with \
                         `--features onnxruntime` or `--features tract`";

impl<A: Fn() -> SearchSurroundings> EngineChooser<A> {
    fn choose(&self, wanted: &EngineRequest) -> Result<EngineChoice, EngineError> {
        match (wanted.kind, &wanted.library) {
            (EngineKind::Tract, _) => self.tract(),
            (EngineKind::Auto, None) => self.auto(),
            // A library that the user names is required, so its problems are errors and no reason
            // to fall back.
            (EngineKind::OnnxRuntime, _) | (EngineKind::Auto, Some(_)) => {
                let chosen = self.onnx_runtime(wanted.library.as_ref());
                chosen.map_err(|trouble| no_engine(trouble.text()))
            }
        }
    }

    fn tract(&self) -> Result<EngineChoice, EngineError> {
        let Some(engine) = &self.tract else {
            let text = "this build has no tract: build it with `--features tract`";
            return Err(no_engine(text.to_owned()));
        };
        Ok(EngineChoice {
            kind: EngineKind::Tract,
            reason: format!("{}, as asked for", title(&**engine)),
            engine: engine.clone(),
            warning: None,
            other: None,
        })
    }

    fn auto(&self) -> Result<EngineChoice, EngineError> {
        let trouble = match self.onnx_runtime(None) {
            Ok(chosen) => {
                let other = self.tract.clone();
                return Ok(EngineChoice { other, ..chosen });
            }
            Err(trouble) => trouble,
        };
        let Some(engine) = &self.tract else {
            return Err(no_engine(match trouble {
                RuntimeAbsence::NotBuilt => NO_ENGINE.to_owned(),
                trouble => format!("{}; this build has no tract", trouble.text()),
            }));
        };
        let title = title(&**engine);
        let engine = engine.clone();
        Ok(match trouble {
            // A library that is there and does not work deserves a warning; one that is not there
            // is the usual case.
            RuntimeAbsence::Unusable(text) => EngineChoice {
                kind: EngineKind::Tract,
                engine,
                reason: format!("{title}: the ONNX Runtime that was found cannot be used"),
                warning: Some(text),
                other: None,
            },
            trouble => EngineChoice {
                kind: EngineKind::Tract,
                engine,
                reason: format!("{title}: {}", trouble.text()),
                warning: None,
                other: None,
            },
        })
    }

    fn onnx_runtime(&self, library: Option<&NamedLibrary>) -> Result<EngineChoice, RuntimeAbsence> {
        let load = self.load.ok_or(RuntimeAbsence::NotBuilt)?;
        let LibraryMatch { path, how } = match library {
            Some(library) => {
                named(&library.path, library.named_by).map_err(RuntimeAbsence::Unusable)
            }
            None => {
                let around = (self.around)();
                match around.path(SHARED_VARIABLE) {
                    Some(path) => named(path, SHARED_VARIABLE).map_err(RuntimeAbsence::Unusable),
                    None => find(&around).map_err(RuntimeAbsence::Missing),
                }
            }
        }?;
        let engine = load(&path).map_err(|error| {
            let reason = match error {
                EngineError::Library { reason, .. } => reason,
                other => other.to_string(),
            };
            let path = path.display();
            RuntimeAbsence::Unusable(format!(
                "the library `{path}`, {how}, cannot be used: {reason}"
            ))
        })?;
        Ok(EngineChoice {
            kind: EngineKind::OnnxRuntime,
            reason: format!("{} of `{}`, {how}", title(&*engine), path.display()),
            engine,
            warning: None,
            other: None,
        })
    }
}

/// Name and version.
fn title(engine: &dyn Engine) -> String {
    match engine.version() {
        Some(version) => format!("{} {version}", engine.name()),
        None => engine.name().to_owned(),
    }
}

fn no_engine(reason: String) -> EngineError {
    EngineError::NoEngine { reason }
}

#[cfg(feature = "onnxruntime")]
#[expect(clippy::unnecessary_wraps, reason = "other builds have none")]
fn built_in_loader() -> Option<Loader> {
    Some(|path| Ok(std::sync::Arc::new(crate::onnx::OnnxRuntime::load(path)?)))
}

#[cfg(not(feature = "onnxruntime"))]
fn built_in_loader() -> Option<Loader> {
    None
}

#[cfg(feature = "tract")]
#[expect(clippy::unnecessary_wraps, reason = "other builds have none")]
fn built_in_tract() -> Option<SharedEngine> {
    Some(std::sync::Arc::new(crate::onnx::Tract))
}

#[cfg(not(feature = "tract"))]
fn built_in_tract() -> Option<SharedEngine> {
    None
}

#[cfg(test)]
mod tests;
