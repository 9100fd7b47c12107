//! Sessions of models whose results are rounded.

use std::sync::Arc;

use opscope_tensor::Tensor;

use super::library::OrtLibrary;
use super::prepared::PreparedModel;
use super::rewrite::{FloatOutputs, with_rounding};
use super::round_operator::{self, RoundingSwitch};
use super::session::{self, LoadedSession, SessionSource};
use super::site::TapRequests;
use super::tapped::TappedSession;
use super::{OrtModel, by_reference, error, fail, names};
use crate::{EngineError, LoadOptions, ResultRounding, ResultSurvey};

/// A session of a model that can round the results of any of its operators.
///
/// There is one session for all roundings: which of them is followed is said before each run.
pub(super) struct RoundedSession {
    /// The outputs that have a node which rounds.
    floats: FloatOutputs,
    session: LoadedSession,
    switch: Arc<RoundingSwitch>,
}

impl RoundedSession {
    fn new(
        library: &OrtLibrary,
        options: &LoadOptions,
        prepared: &PreparedModel,
        floats: FloatOutputs,
    ) -> Result<RoundedSession, String> {
        let model = with_rounding(prepared.model(), &floats);
        let bytes = by_reference::encode(&model)?;
        let switch = Arc::new(RoundingSwitch::default());
        let domain = round_operator::domain(&switch)?;
        let builder = session::builder(library, options)?;
        let builder = error::quietly(|| Ok(builder.with_operators(domain)?))?;
        let source = SessionSource::Bytes(&bytes, prepared.folder());
        Ok(RoundedSession {
            floats,
            session: LoadedSession::new(library, builder, source)?,
            switch,
        })
    }
}

impl OrtModel {
    /// [`crate::LoadedModel::survey_results`].
    pub(super) fn survey(&mut self, inputs: &[Tensor]) -> Result<ResultSurvey, EngineError> {
        self.begin_run(inputs)?;
        let wanted = TapRequests::outputs_of(&self.description.operators);
        let mut surveying = match self.surveying.take() {
            Some(session) => session,
            None => {
                self.let_go();
                let (library, options) = (&self.library, &self.options);
                let made = TappedSession::surveying(library, options, &mut self.prepared, wanted);
                made.map_err(|text| fail(self.prepared.with_own_names(&text)))?
            }
        };
        let result = surveying.survey(&names(&self.description.signature), inputs);
        self.surveying = Some(surveying);
        let survey = result.map_err(|text| self.error_of_run(&text))?;
        self.surveyed.merge(&survey);
        Ok(survey)
    }

    /// [`crate::LoadedModel::run_rounded`].
    pub(super) fn run_with_rounding(
        &mut self,
        inputs: &[Tensor],
        rounding: &ResultRounding,
    ) -> Result<Vec<Tensor>, EngineError> {
        self.begin_run(inputs)?;
        let floats: FloatOutputs = self
            .surveyed
            .operators()
            .map(|known| (known.operator.task_id, known.float_outputs().collect()))
            .collect();
        // A survey since the last run may have seen a branch that none took before.
        let known = self
            .rounded
            .take()
            .filter(|session| session.floats == floats);
        let mut rounded = match known {
            Some(session) => session,
            None => {
                self.let_go();
                let (library, options) = (&self.library, &self.options);
                let made = RoundedSession::new(library, options, &self.prepared, floats);
                made.map_err(|text| fail(self.prepared.with_own_names(&text)))?
            }
        };
        // A session takes seconds to make and this takes none, which is what a ranking lives on.
        rounded.switch.set(rounding);
        let names = names(&self.description.signature);
        let result = rounded.session.run(&names, inputs);
        self.rounded = Some(rounded);
        result.map_err(|text| self.error_of_run(&text))
    }

    /// Lets go of all sessions: each holds the packed weights once more.
    pub(super) fn let_go(&mut self) {
        (self.plain, self.tapped) = (None, None);
        (self.surveying, self.rounded) = (None, None);
    }
}
