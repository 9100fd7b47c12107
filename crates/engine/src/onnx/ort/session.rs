//! Sessions of ONNX Runtime.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use opscope_tensor::Tensor;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::{
    HasSelectedOutputs, OutputSelector, RunOptions, Session as OrtSession, SessionInputValue,
};
use ort::value::ValueType;

use super::library::OrtLibrary;
use super::value::{self, RunInput};
use super::{error, provider};
use crate::LoadOptions;

/// Where a model in memory says its data outside are.
const DATA_FOLDER: &str = "session.model_external_initializers_file_folder_path";

/// A model that is ready to run, and the results that are asked for.
pub(super) struct LoadedSession {
    session: OrtSession,
    options: RunOptions<HasSelectedOutputs>,
    outputs: Vec<String>,
}

/// The model that a session is created from.
#[derive(Clone, Copy)]
pub(super) enum SessionSource<'a> {
    /// A file; external data are relative to its directory.
    File(&'a Path),
    /// The bytes of such a file, and where data outside are, if there are any.
    Bytes(&'a [u8], Option<&'a Path>),
}

/// Options for a session that runs the graph it is given, operator by operator.
///
/// They are those of the Python package with graph optimisation off: the two compute the same to
/// the last bit.
pub(super) fn builder(
    library: &OrtLibrary,
    options: &LoadOptions,
) -> Result<SessionBuilder, String> {
    let builder = error::quietly(|| {
        let builder = SessionBuilder::new(&library.environment)?
            // Fused operators are not operators of the file, which are to be shown.
            .with_optimization_level(GraphOptimizationLevel::Disable)?
            .with_intra_threads(options.n_threads.max(1))?
            // One operator at a time: taps rely on the order, and results on the order of sums.
            .with_inter_threads(1)?
            .with_parallel_execution(false)?;
        Ok(builder)
    })?;
    provider::append(builder, &options.providers)
}

impl LoadedSession {
    /// Makes a session.
    pub(super) fn new(
        library: &OrtLibrary,
        mut builder: SessionBuilder,
        source: SessionSource<'_>,
    ) -> Result<LoadedSession, String> {
        // The library keeps one list of the domains of custom operators, which sessions add to
        // without regard to others unless the domain is there already.
        static MAKING: Mutex<()> = Mutex::new(());
        let making =
            (!library.knows_domain).then(|| MAKING.lock().unwrap_or_else(PoisonError::into_inner));
        let session = match source {
            SessionSource::File(path) => error::quietly(|| builder.commit_from_file(path)),
            SessionSource::Bytes(bytes, None) => {
                error::quietly(|| builder.commit_from_memory(bytes))
            }
            SessionSource::Bytes(bytes, Some(folder)) => {
                if !library.has_data_folder() {
                    return Err(format!(
                        "it keeps data in other files, which ONNX Runtime {} cannot find for a model in \
                         memory; 1.21 or newer can",
                        library.version
                    ));
                }
                // An empty path means the current directory here, and no folder at all to the
                // library.
                let folder = if folder.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    folder
                };
                let Some(folder) = folder.to_str() else {
                    return Err(format!(
                        "the folder of its data, `{}`, is not UTF-8",
                        folder.display()
                    ));
                };
                error::quietly(|| {
                    let mut builder = builder.with_config_entry(DATA_FOLDER, folder)?;
                    builder.commit_from_memory(bytes)
                })
            }
        }?;
        // Only creating sessions is serialised. The rest concerns this session alone.
        drop(making);
        // Values that are not tensors are computed and stay with the library.
        let outputs = session
            .outputs()
            .iter()
            .filter(|value| matches!(value.dtype(), ValueType::Tensor { .. }));
        let outputs: Vec<String> = outputs.map(|value| value.name().to_owned()).collect();
        // All outputs by name, because the default includes values that are not tensors.
        let asked_for = outputs
            .iter()
            .fold(OutputSelector::no_default(), |selector, name| {
                selector.with(name)
            });
        let options = error::quietly(|| Ok(RunOptions::new()?.with_outputs(asked_for)))?;
        Ok(LoadedSession {
            session,
            options,
            outputs,
        })
    }

    /// Names of the results, in order: those of the graph's that are tensors.
    pub(super) fn outputs(&self) -> &[String] {
        &self.outputs
    }

    /// Executes the graph once. Every name has to be one of the graph's inputs.
    pub(super) fn run(&mut self, names: &[&str], inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        let inputs = inputs.iter().map(RunInput::new);
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let named: Vec<(Cow<'_, str>, SessionInputValue<'_>)> = names
            .iter()
            .zip(&inputs)
            .map(|(&name, input)| (name.into(), input.view()))
            .collect();
        let (session, options) = (&mut self.session, &self.options);
        let outputs = error::quietly(|| {
            let outputs = session.run_with_options(named, options)?;
            Ok(outputs
                .into_iter()
                .map(|(_, value)| value)
                .collect::<Vec<_>>())
        })?;
        outputs
            .into_iter()
            .map(|output| value::to_tensor(output, &inputs))
            .collect()
    }
}
