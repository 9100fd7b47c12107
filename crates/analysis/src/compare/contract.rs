//! The contract: do both models keep the same promises to their callers?
//!
//! A model promises outputs: their number, names, shapes, dtypes and values. They decide the
//! verdict. Operators inside that differ, or have no partner, are notes as long as the outputs
//! agree. [`Contract`] is the result, and
//! `docs/compare/contract.md` has the rules.
//!
//! | module | job |
//! | --- | --- |
//! | `model_values` | the slots that are the inputs and outputs of a model |
//! | `pairing` | which output of one model is which of the other |
//! | `outputs` | pairs and measures the outputs |
//! | `inputs` | pairs and measures the inputs |
//! | `weights` | weights that differ |
//! | `coverage` | how many bytes of golden's outputs were compared |
//! | `evidence` | faults of a quantised model that quantising does not explain |
//! | `hidden` | a difference that outputs known by statistics do not show |
//! | `losses` | where a quantised model loses most |
//! | `precision` | operators in a shorter dtype than all around them |
//! | `state` | what became of one value |
//! | `conclusion` | the verdict on the whole, from the saved result |

mod conclusion;
mod coverage;
mod evidence;
mod hidden;
mod inputs;
mod known_pairs;
mod losses;
mod model_values;
mod outputs;
mod pairing;
mod precision;
mod state;
mod weights;

use super::matching::MatchedDumps;
use super::measure::MeasureOptions;
use super::result::{Comparison, Contract};
use super::selection::Selection;
use super::verdict::Thresholds;

pub(super) use self::conclusion::conclude;
use self::model_values::ModelPlaces;
pub(super) use self::model_values::quantised_sides;

/// Everything that the contract is examined with.
#[derive(Clone, Copy)]
pub(super) struct ContractOptions<'a> {
    pub(super) measure: MeasureOptions<'a>,
    pub(super) thresholds: &'a Thresholds,
    pub(super) selection: &'a Selection,
}

/// Finds, pairs and measures the inputs, outputs and weights of both models. Slots must have been
/// judged; [`conclude`] judges the whole.
pub(super) fn examine(
    comparison: &Comparison,
    sides: MatchedDumps<'_>,
    options: ContractOptions<'_>,
) -> Contract {
    let places = ModelPlaces::collect(sides);
    let is_quantised = quantised_sides(sides);
    let mut contract = Contract {
        n_output_bytes: coverage::output_bytes(comparison, sides),
        is_quantised: is_quantised == [true, false],
        has_quantised: is_quantised[0],
        ..Contract::default()
    };
    outputs::examine(&mut contract, comparison, &places, options);
    if contract.is_known() {
        inputs::examine(&mut contract, comparison, &places, options);
        weights::examine(&mut contract, comparison, &places);
    } else {
        contract.last_alone = coverage::last_alone(sides);
    }
    if !contract.is_quantised {
        contract.islands = precision::islands(sides);
    }
    if contract.has_quantised {
        contract.loss = losses::find(&contract, comparison, sides, options).map(Box::new);
    }
    contract
}
