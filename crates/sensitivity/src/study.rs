//! A model whose outputs are measured under roundings.

use std::collections::HashSet;
use std::sync::Arc;

use opscope_engine::{EngineError, LoadedModel, ResultRounding, ResultSurvey};
use opscope_store::record::Operator;
use opscope_tensor::Tensor;

use crate::distance::{DistanceSum, OutputDistance};

/// Asked before each run of the model; its error ends the study.
pub type BeforeRun<'a> = dyn Fn() -> Result<(), EngineError> + 'a;

/// A loaded model, its inputs, and its outputs without rounding.
pub struct SensitivityStudy<'a> {
    model: &'a mut dyn LoadedModel,
    before_run: &'a BeforeRun<'a>,
    /// The inputs of each sample, in the order of the signature.
    samples: Vec<Vec<Tensor>>,
    golden: Vec<Vec<Tensor>>,
    survey: ResultSurvey,
    repeated: OutputDistance,
}

/// An operator of the model.
#[derive(Clone, Debug)]
pub struct StudiedOperator {
    /// The operator.
    pub operator: Arc<Operator>,
    /// Whether its results can be rounded.
    pub state: OperatorState,
}

/// Whether results of an operator can be rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorState {
    /// It has floating-point results.
    Rounded,
    /// It ran, but has no floating-point result.
    WithoutFloats,
    /// No sample ran it.
    NotRun,
}

impl<'a> SensitivityStudy<'a> {
    /// Runs the model three times for each sample: to see which operators run, and twice for the
    /// outputs without rounding.
    ///
    /// # Errors
    /// [`EngineError`] of a run, or that of `before_run`.
    pub fn begin(
        model: &'a mut dyn LoadedModel,
        samples: Vec<Vec<Tensor>>,
        before_run: &'a BeforeRun<'a>,
    ) -> Result<SensitivityStudy<'a>, EngineError> {
        let mut survey = ResultSurvey::default();
        for inputs in &samples {
            before_run()?;
            survey.merge(&model.survey_results(inputs)?);
        }
        // Not `run`: golden outputs take the rounding path too, with nothing to round, so that
        // rounding is the only difference.
        let mut golden = Vec::with_capacity(samples.len());
        for inputs in &samples {
            before_run()?;
            golden.push(model.run_rounded(inputs, &ResultRounding::default())?);
        }
        let mut study = SensitivityStudy {
            model,
            before_run,
            samples,
            golden,
            survey,
            repeated: OutputDistance::default(),
        };
        study.repeated = study.distance(&ResultRounding::default())?;
        Ok(study)
    }

    /// The distance between two runs without rounding: smaller distances are noise. Zero unless the
    /// model or the engine is nondeterministic.
    pub fn repeated(&self) -> &OutputDistance {
        &self.repeated
    }

    /// Number of samples.
    pub fn n_samples(&self) -> usize {
        self.samples.len()
    }

    /// All operators in file order. An engine may not know operators in a body that no sample has
    /// run.
    pub fn operators(&self) -> Vec<StudiedOperator> {
        let mut all: Vec<StudiedOperator> = Vec::new();
        for surveyed in self.survey.operators() {
            let has_floats = surveyed.float_outputs().next().is_some();
            all.push(StudiedOperator {
                operator: surveyed.operator.clone(),
                state: if has_floats {
                    OperatorState::Rounded
                } else {
                    OperatorState::WithoutFloats
                },
            });
        }
        // Only the engine's list has branches that no sample took.
        let seen: HashSet<u32> = all
            .iter()
            .map(|operator| operator.operator.task_id)
            .collect();
        let listed = self.model.operators().iter();
        let others = listed.filter(|operator| !seen.contains(&operator.task_id));
        all.extend(others.map(|operator| StudiedOperator {
            operator: operator.clone(),
            state: OperatorState::NotRun,
        }));
        all.sort_by_key(|operator| operator.operator.task_id);
        all
    }

    /// The operators whose results can be rounded, in file order.
    pub fn roundable(&self) -> Vec<Arc<Operator>> {
        let all = self.operators().into_iter();
        let rounded = all.filter(|operator| operator.state == OperatorState::Rounded);
        rounded.map(|operator| operator.operator).collect()
    }

    /// Runs the model on each sample under a rounding, and compares the outputs with those without
    /// rounding.
    ///
    /// # Errors
    /// [`EngineError`] of a run, or that of `before_run`.
    pub fn distance(&mut self, rounding: &ResultRounding) -> Result<OutputDistance, EngineError> {
        let names = self.output_names();
        let mut sums = vec![DistanceSum::default(); names.len()];
        for (inputs, golden) in self.samples.iter().zip(&self.golden) {
            (self.before_run)()?;
            let outputs = match self.model.run_rounded(inputs, rounding) {
                Ok(outputs) => outputs,
                // The model ran without rounding, so this operator fails because of it: that is an
                // answer.
                Err(error @ (EngineError::Operator { .. } | EngineError::Engine { .. })) => {
                    return Ok(OutputDistance {
                        outputs: Vec::new(),
                        failure: Some(error.to_string()),
                    });
                }
                Err(error) => return Err(error),
            };
            for ((sum, target), golden) in sums.iter_mut().zip(&outputs).zip(golden) {
                sum.add(target, golden);
            }
        }
        let outputs = sums.into_iter().zip(&names);
        Ok(OutputDistance {
            outputs: outputs.map(|(sum, name)| sum.finish(name)).collect(),
            failure: None,
        })
    }

    fn output_names(&self) -> Vec<String> {
        let outputs = self.model.signature().outputs.iter();
        outputs.map(|value| value.name.clone()).collect()
    }
}
