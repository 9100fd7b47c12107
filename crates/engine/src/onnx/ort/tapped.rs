//! Sessions of models with taps in them.

use std::sync::Arc;

use opscope_capture::Tap;
use opscope_tensor::Tensor;

use super::library::OrtLibrary;
use super::prepared::PreparedModel;
use super::rewrite::{self, TappedModel};
use super::session::{self, LoadedSession, SessionSource};
use super::shared::{FailedInputs, RunHalt, TapDuty, TapState};
use super::site::TapRequests;
use super::{by_reference, error, tap_operator};
use crate::{LoadOptions, ResultSurvey};

/// How often a session is tried again without a value that the library does not show.
const N_REFUSED_MAX: usize = 256;

/// A session of a model with taps.
pub(super) struct TappedSession {
    /// The values that it shows.
    pub(super) wanted: TapRequests,
    session: LoadedSession,
    shared: Arc<TapState>,
}

/// Why a run did not finish.
pub(super) enum RunFailure {
    /// A tap ended it.
    By(RunHalt),
    /// The library ended it, with this message.
    Failed(String),
}

impl TappedSession {
    /// Makes a session that shows `wanted`. Values that the library does not hand to operators of
    /// ours are left out, and `prepared` knows of them from now on.
    pub(super) fn new(
        library: &OrtLibrary,
        options: &LoadOptions,
        prepared: &mut PreparedModel,
        wanted: TapRequests,
    ) -> Result<TappedSession, String> {
        TappedSession::with_duty(library, options, prepared, wanted, TapDuty::Show)
    }

    /// Likewise a session that notes types of the values.
    pub(super) fn surveying(
        library: &OrtLibrary,
        options: &LoadOptions,
        prepared: &mut PreparedModel,
        wanted: TapRequests,
    ) -> Result<TappedSession, String> {
        TappedSession::with_duty(library, options, prepared, wanted, TapDuty::NoteTypes)
    }

    fn with_duty(
        library: &OrtLibrary,
        options: &LoadOptions,
        prepared: &mut PreparedModel,
        wanted: TapRequests,
        duty: TapDuty,
    ) -> Result<TappedSession, String> {
        // The library names one value at a time that it does not hand to a tap, and only when a
        // session is made.
        for _ in 0..N_REFUSED_MAX {
            let tapped = prepared.tapped(&wanted);
            match create(library, options, prepared, tapped, duty) {
                Ok((session, shared)) => {
                    return Ok(TappedSession {
                        wanted,
                        session,
                        shared,
                    });
                }
                Err(text) => {
                    let names = refused_values(&text, || prepared.tapped(&wanted));
                    let n_new = names.iter().filter(|name| prepared.refuse(name)).count();
                    // Then leaving values out does not help, and the text has another cause. Taps
                    // on the CPU may work, and otherwise their error describes the problem.
                    if n_new == 0 && !prepared.leave_device(&text) {
                        return Err(text);
                    }
                }
            }
        }
        Err(format!("more than {N_REFUSED_MAX} values cannot be shown"))
    }

    /// Names of the model's results that are tensors.
    pub(super) fn outputs(&self) -> &[String] {
        self.session.outputs()
    }

    /// Executes the model once and shows it to `tap`.
    pub(super) fn run(
        &mut self,
        names: &[&str],
        inputs: &[Tensor],
        tap: &Tap,
    ) -> Result<Vec<Tensor>, RunFailure> {
        let session = &mut self.session;
        let (result, halt, _) = self
            .shared
            .during(inputs, Some(tap), || session.run(names, inputs));
        result.map_err(|text| halt.map_or(RunFailure::Failed(text), RunFailure::By))
    }

    /// Executes the model of a session that notes types; returns what it has noted.
    pub(super) fn survey(
        &mut self,
        names: &[&str],
        inputs: &[Tensor],
    ) -> Result<ResultSurvey, String> {
        let session = &mut self.session;
        let (result, _, _) = self
            .shared
            .during(inputs, None, || session.run(names, inputs));
        // Notes of a run that failed are not those of the next.
        let survey = self.shared.take_survey();
        result.map(|_| survey)
    }

    /// Takes the first thing that went wrong on the device.
    pub(super) fn take_device_fault(&self) -> Option<String> {
        self.shared.take_device_fault()
    }

    /// How often a tap ran out of order.
    pub(super) fn n_inversions(&self) -> usize {
        self.shared.n_inversions()
    }
}

/// Runs a model again that has just failed, and returns the inputs of the operator that failed.
/// `None` if it does not fail again, or fails elsewhere.
pub(super) fn inputs_of_failed(
    library: &OrtLibrary,
    options: &LoadOptions,
    prepared: &PreparedModel,
    task_id: u32,
    names: &[&str],
    inputs: &[Tensor],
) -> Option<FailedInputs> {
    let tapped = prepared.tapped_before(task_id);
    let (mut session, shared) =
        create(library, options, prepared, tapped, TapDuty::KeepInputs).ok()?;
    // Without a tap to show to: the kernel keeps what it reads.
    let (result, _, kept) = shared.during(inputs, None, || session.run(names, inputs));
    let text = result.err()?;
    let (_, name, _) = error::failed_operator(&text)?;
    let operator = prepared.operator_of_node(name)?;
    // A model may fail elsewhere the second time, and its inputs would not be those of the first
    // failure.
    kept.filter(|_| operator.task_id == task_id)
}

fn create(
    library: &OrtLibrary,
    options: &LoadOptions,
    prepared: &PreparedModel,
    tapped: TappedModel,
    duty: TapDuty,
) -> Result<(LoadedSession, Arc<TapState>), String> {
    let bytes = by_reference::encode(&tapped.model)?;
    let has_devices = !options.providers.is_empty();
    // What goes before a failed operator is kept on the CPU.
    let device = prepared.device().filter(|_| duty != TapDuty::KeepInputs);
    let shared = Arc::new(TapState::new(tapped, has_devices, device, duty));
    let domain = tap_operator::domain(&shared)?;
    let builder = session::builder(library, options)?;
    let builder = error::quietly(|| {
        // Between two operators a tap may take a while. Threads that wait for the next one by
        // spinning would take the processors from those that write.
        let builder = builder.with_intra_op_spinning(false)?;
        Ok(builder.with_operators(domain)?)
    })?;
    let session = LoadedSession::new(
        library,
        builder,
        SessionSource::Bytes(&bytes, prepared.folder()),
    )?;
    Ok((session, shared))
}

/// The values that the library does not hand to a tap, if that is why there is no session.
fn refused_values(text: &str, tapped: impl FnOnce() -> TappedModel) -> Vec<String> {
    if let Some(name) = refused_value(text) {
        return vec![name.to_owned()];
    }
    match tap_without_kernel(text) {
        Some(tap) => tapped().values_of(tap),
        None => Vec::new(),
    }
}

/// The value whose type the library names as one that a tap does not take.
fn refused_value(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("of input parameter (")?;
    let (name, rest) = rest.split_once(") of operator (")?;
    let (operator, _) = rest.split_once(')')?;
    [rewrite::TAP, rewrite::DEVICE_TAP]
        .contains(&operator)
        .then_some(name)
}

/// The node of a tap for whose types the library finds no kernel. Taps on a device are not meant:
/// others may take the types.
fn tap_without_kernel(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("Could not find an implementation for ")?;
    let rest = rest.strip_prefix(rewrite::TAP)?.strip_prefix('(')?;
    let (_, rest) = rest.split_once("node with name '")?;
    Some(rest.split_once('\'')?.0)
}

#[cfg(test)]
mod tests {
    use super::{refused_value, tap_without_kernel};

    #[test]
    fn the_refused_value_is_named() {
        let text = "Type Error: Type 'seq(tensor(float))' of input parameter (x/y) of operator (Tap) in node \
                    (opscope:tap:0) is invalid.";
        assert_eq!(refused_value(text), Some("x/y"));
        assert_eq!(refused_value(&text.replace("(Tap)", "(Relu)")), None);
        assert_eq!(refused_value("something else"), None);
        let text = "Could not find an implementation for Tap(1) node with name 'opscope:tap:7'";
        assert_eq!(tap_without_kernel(text), Some("opscope:tap:7"));
        assert_eq!(tap_without_kernel(&text.replace("Tap(", "Tape(")), None);
    }
}
