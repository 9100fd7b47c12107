//! The same inputs for two models.

mod defaults;
mod recorded;
mod widened;

use opscope_engine::input::check_shape;
use opscope_engine::{InputError, ModelSignature, ValueInfo};
use opscope_tensor::{DType, Tensor};
use thiserror::Error;

pub use defaults::default_shapes;
pub use recorded::{RecordedInputsError, recorded_inputs};

/// Maps the inputs of one model, the base, to those of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputPairing {
    /// For each input of the other model, its index among those of the base.
    places: Vec<usize>,
    values: Vec<ValueInfo>,
    /// Whether inputs are paired by name; otherwise by position.
    pub is_by_name: bool,
}

/// Why two models cannot run on the same inputs.
#[derive(Debug, Error)]
pub enum PairingError {
    /// Neither the names nor the numbers of inputs match.
    #[error("the models take different inputs: the target {target}, the golden side {golden}")]
    Names {
        /// The inputs of the target, as text.
        target: String,
        /// The inputs of the golden side.
        golden: String,
    },
    /// No value fits both.
    #[error(
        "the models take different inputs: `{target_name}` is {target} in the target, and \
         `{golden_name}` is {golden} on the golden side"
    )]
    Dtypes {
        /// Name in the target.
        target_name: String,
        /// Its dtype.
        target: DType,
        /// Name on the golden side.
        golden_name: String,
        /// Its dtype.
        golden: DType,
    },
}

/// Pairs the inputs of a target and of a golden model. Inputs are generated for the base and then
/// applied to the other side, as a wider dtype holds all values of a narrow one.
///
/// # Errors
/// [`PairingError`].
pub fn pair_inputs(
    target: &ModelSignature,
    golden: &ModelSignature,
) -> Result<(BaseSide, InputPairing), PairingError> {
    match pair_from(target, golden)? {
        Ok(pairing) => Ok((BaseSide::Target, pairing)),
        Err(misfit) => match pair_from(golden, target)? {
            Ok(pairing) => Ok((BaseSide::Golden, pairing)),
            Err(_) => Err(other_dtypes(misfit)),
        },
    }
}

/// The error of two inputs without a common dtype.
fn other_dtypes((target, golden): (&ValueInfo, &ValueInfo)) -> PairingError {
    PairingError::Dtypes {
        target_name: target.name.clone(),
        target: target.dtype,
        golden_name: golden.name.clone(),
        golden: golden.dtype,
    }
}

/// The side whose inputs are generated; the other one gets the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseSide {
    /// The target.
    Target,
    /// The golden side.
    Golden,
}

/// A pairing, or the first pair of inputs whose other side cannot hold the base's values.
type Fit<'a> = Result<InputPairing, (&'a ValueInfo, &'a ValueInfo)>;

fn pair_from<'a>(
    base: &'a ModelSignature,
    other: &'a ModelSignature,
) -> Result<Fit<'a>, PairingError> {
    // Exporters change the order of inputs more often than their names.
    let by_name: Option<Vec<usize>> = other
        .inputs
        .iter()
        .map(|value| {
            base.inputs
                .iter()
                .position(|input| input.name == value.name)
        })
        .collect();
    let is_by_name = by_name.is_some();
    let places = match by_name {
        Some(places) => places,
        None if base.inputs.len() == other.inputs.len() => (0..base.inputs.len()).collect(),
        None => {
            return Err(PairingError::Names {
                target: names(base),
                golden: names(other),
            });
        }
    };
    // Rounding an input would change every operator after it, so only wider dtypes match.
    let mut pairs = places.iter().map(|&i| &base.inputs[i]).zip(&other.inputs);
    if let Some(misfit) = pairs.find(|(from, to)| !widened::is_within(from.dtype, to.dtype)) {
        return Ok(Err(misfit));
    }
    Ok(Ok(InputPairing {
        places,
        values: other.inputs.clone(),
        is_by_name,
    }))
}

fn names(signature: &ModelSignature) -> String {
    let all = signature.inputs.iter();
    let all: Vec<String> = all
        .map(|value| format!("`{}` ({} {})", value.name, value.dtype, value.shape_text()))
        .collect();
    if all.is_empty() {
        return "none".to_owned();
    }
    all.join(", ")
}

impl InputPairing {
    /// The inputs of the other model, with the values of the base's inputs.
    ///
    /// # Errors
    /// [`InputError::Shape`] if the other model does not take the shape.
    pub fn apply(&self, base: &[Tensor]) -> Result<Vec<Tensor>, InputError> {
        let pairs = self.places.iter().zip(&self.values);
        pairs
            .map(|(&place, value)| {
                let tensor = widened::widened(&base[place], value.dtype).ok_or_else(|| {
                    InputError::Dtype {
                        name: value.name.clone(),
                        expected: value.dtype,
                        found: base[place].dtype(),
                    }
                })?;
                // The base model may accept shapes that this one does not.
                check_shape(value, tensor.shape())?;
                Ok(tensor)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
