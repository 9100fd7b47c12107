//! A composed operator as an engine with one operator, so that every kind of dump handles it like
//! an operator of a model.

use std::sync::Arc;

use opscope_capture::{Probe, Tap};
use opscope_engine::{EngineError, LoadedModel, ModelDescription, ModelSignature};
use opscope_store::record::{Operator, SlotSide};
use opscope_tensor::{DType, Shape, Tensor};

use super::cache::LoadedGraph;
use super::call::{ElementForm, Feed, Place, ResultSource, filled};
use super::elements::{convert, from_raw, raw};
use crate::lock::lock;

/// A tensor that an operator reads or writes.
#[derive(Clone, Debug)]
pub(crate) struct ShownTensor {
    pub(crate) place: Place,
    /// Its index among the operator's inputs or outputs, including absent ones.
    pub(crate) position: usize,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
}

/// An operator that a graph computes.
pub(crate) struct ComposedOperator {
    pub(crate) description: ModelDescription,
    pub(crate) reads: Vec<ShownTensor>,
    pub(crate) writes: Vec<ShownTensor>,
    pub(crate) feeds: Vec<Feed>,
    /// In the order of `writes`.
    pub(crate) results: Vec<ResultSource>,
    /// `None` if no engine is needed.
    pub(crate) graph: Option<Arc<LoadedGraph>>,
}

impl ComposedOperator {
    pub(crate) fn description(operator: Operator) -> ModelDescription {
        ModelDescription {
            // The inputs are unnamed, so a plan cannot select by input name.
            signature: ModelSignature::default(),
            operators: vec![Arc::new(operator)],
            ..ModelDescription::default()
        }
    }

    /// Renames the operator for future runs.
    pub(crate) fn rename(&mut self, op_name: &str) {
        for operator in &mut self.description.operators {
            op_name.clone_into(&mut Arc::make_mut(operator).op_name);
        }
    }

    fn failed(&self, reason: impl Into<String>) -> EngineError {
        let operator = self.description.operators.first();
        EngineError::Operator {
            op_type: operator.map_or_else(String::new, |operator| operator.op_type.clone()),
            op_name: operator.map_or_else(String::new, |operator| operator.op_name.clone()),
            reason: reason.into(),
        }
    }

    /// The tensors for the graph.
    fn fed(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, EngineError> {
        let mut fed = Vec::with_capacity(self.feeds.len());
        for feed in &self.feeds {
            let (place, form) = match feed {
                Feed::Value(tensor) => {
                    fed.push(tensor.clone());
                    continue;
                }
                Feed::Argument(place, form) => (place, *form),
                Feed::Divisor(place, via) => (place, ElementForm::Number(*via, DType::I64)),
            };
            // The tap gets inputs as the program passed them; the graph gets the converted ones.
            let at = self.reads.iter().position(|read| read.place == *place);
            let tensor = at.and_then(|at| inputs.get(at));
            let converted = tensor.and_then(|tensor| match form {
                ElementForm::Number(via, dtype) => {
                    convert(tensor, via).and_then(|tensor| convert(&tensor, dtype))
                }
                ElementForm::Raw => raw(tensor),
            });
            let converted =
                converted.ok_or_else(|| self.failed("an argument cannot be converted"))?;
            if matches!(feed, Feed::Divisor(..)) && has_zero(&converted) {
                return Err(self.failed("integers are divided by 0"));
            }
            fed.push(converted);
        }
        Ok(fed)
    }

    /// The outputs, converted from the graph's results.
    fn produced(&self, results: &[Tensor]) -> Result<Vec<Tensor>, EngineError> {
        let sources = self.results.iter().zip(&self.writes);
        sources
            .map(|(source, write)| match source {
                ResultSource::Fill(number) => {
                    let shape = Shape::new(write.dims.clone()).ok();
                    let tensor = shape.and_then(|shape| filled(*number, write.dtype, shape));
                    tensor.ok_or_else(|| self.failed("an output cannot be filled"))
                }
                ResultSource::Graph(position, form) | ResultSource::Part(position, form) => {
                    let result = results.get(*position);
                    let result = result.ok_or_else(|| self.failed("a result is missing"))?;
                    let converted = match form {
                        ElementForm::Number(via, dtype) => {
                            // Conversion goes through the operator's dtype, which determines the
                            // rounding, whatever the output's is.
                            let rounded = convert(result, *via);
                            rounded.and_then(|tensor| convert(&tensor, *dtype))
                        }
                        ElementForm::Raw => from_raw(result, write.dtype),
                    };
                    let tensor =
                        converted.ok_or_else(|| self.failed("a result cannot be converted"))?;
                    // The composed graph has promised this shape.
                    let (found, expected) = (tensor.shape().dims(), &write.dims);
                    let is_part = matches!(source, ResultSource::Part(..));
                    if found != expected && !(is_part && fits(found, expected)) {
                        let text = format!("a result has the shape {found:?}, not {expected:?}");
                        return Err(self.failed(text));
                    }
                    Ok(tensor)
                }
            })
            .collect()
    }

    fn compute(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, EngineError> {
        let Some(graph) = &self.graph else {
            return self.produced(&[]);
        };
        let fed = self.fed(inputs)?;
        // The engine gets no tap: the graph's nodes are not operators of the program.
        match lock(&graph.model).run(&fed, None) {
            Ok(results) => self.produced(&results),
            Err(EngineError::Operator { reason, .. }) => Err(self.failed(reason)),
            Err(error) => Err(error),
        }
    }
}

/// Whether a tensor has the same number of axes as another, and no larger ones.
fn fits(dims: &[usize], room: &[usize]) -> bool {
    dims.len() == room.len() && dims.iter().zip(room).all(|(n, most)| n <= most)
}

/// Whether any of these int64 is 0.
fn has_zero(tensor: &Tensor) -> bool {
    let bytes = tensor.host_bytes().unwrap_or_default();
    bytes.as_chunks::<8>().0.contains(&[0; 8])
}

fn show(probe: &mut Probe, side: SlotSide, shown: &[ShownTensor], tensors: &[Tensor]) {
    for (one, tensor) in shown.iter().zip(tensors) {
        match side {
            SlotSide::Input => probe.input(one.position, tensor.clone()),
            SlotSide::Output => probe.output(one.position, tensor.clone()),
        }
    }
}

impl LoadedModel for ComposedOperator {
    fn description(&self) -> &ModelDescription {
        &self.description
    }

    fn run(&mut self, inputs: &[Tensor], tap: Option<&Tap>) -> Result<Vec<Tensor>, EngineError> {
        let tap = tap.filter(|tap| tap.is_active());
        // A dump that has stopped its host's run stops it before the next operator.
        if tap.is_some_and(Tap::is_stopped) {
            return Err(EngineError::Stopped);
        }
        let operator = self.description.operators.first();
        let opened = tap.zip(operator);
        let mut probe = opened.and_then(|(tap, operator)| tap.open(operator));
        if let Some(probe) = &mut probe {
            show(probe, SlotSide::Input, &self.reads, inputs);
        }
        match (self.compute(inputs), probe) {
            (Ok(outputs), Some(mut probe)) => {
                show(&mut probe, SlotSide::Output, &self.writes, &outputs);
                probe.submit();
                Ok(outputs)
            }
            (Err(error), Some(probe)) => {
                if let EngineError::Operator { reason, .. } = &error {
                    probe.fail(reason);
                }
                Err(error)
            }
            (outcome, None) => outcome,
        }
    }
}
