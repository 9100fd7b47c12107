//! The elements of a slot.

use opscope_analysis::compare::result::SlotKey;
use opscope_analysis::compare::side::{ExecutionSlot, LoadedSlot};
use opscope_analysis::elements::{ElementsAccess, NumpyArray};
use opscope_store::file_format::npy;
use opscope_tensor::Numbers;

use super::{Answer, AnswerError, AskedSlot, Query, side_of};
use crate::json::slot;
use crate::viewed::{ShownSide, ViewedRuns};

/// The elements of a slot on a side, in a dtype that numpy supports.
pub(super) fn load(
    runs: &ViewedRuns,
    operator: usize,
    key: SlotKey,
    side: ShownSide,
) -> Result<NumpyArray, AnswerError> {
    if runs.is_saved {
        let reason = "only the result of the comparison was saved, without the dumps".to_owned();
        return Err(AnswerError::Missing(reason));
    }
    let found = runs.slot(operator, key, side);
    let found = found
        .ok_or_else(|| AnswerError::Missing("the dump does not have this tensor".to_owned()))?;
    array_of(found)
}

/// The elements of a slot of a dump.
pub(crate) fn array_of(found: &ExecutionSlot) -> Result<NumpyArray, AnswerError> {
    if let Some(problem) = &found.problem {
        return Err(AnswerError::Dump(problem.clone()));
    }
    if let Some(reason) = found.parts_problem() {
        return Err(AnswerError::Missing(reason.to_owned()));
    }
    if !found.has_elements {
        let reason = "the dump has only statistics of this tensor".to_owned();
        return Err(AnswerError::Missing(reason));
    }
    // Mapped if the bytes are already numpy's, so a slice of a large tensor copies nothing.
    if found.whole().is_some() {
        let loaded = found.load(None);
        return loaded
            .map(LoadedSlot::into_array)
            .map_err(|error| AnswerError::Missing(chain(&error)));
    }
    let array = NumpyArray::decoded(&found.elements_record(), None, ElementsAccess::Read);
    array.map_err(|error| AnswerError::Dump(chain(&error)))
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// The elements as numbers; an error for text and complex numbers.
pub(super) fn numbers(array: &NumpyArray) -> Result<Numbers<'_>, AnswerError> {
    let numbers = Numbers::new(array.dtype, array.bytes());
    numbers.ok_or_else(|| {
        AnswerError::Missing(format!("elements of `{}` are not numbers", array.dtype))
    })
}

/// The tensor as an npy file.
pub(super) fn npy(runs: &ViewedRuns, query: &Query) -> Result<Answer, AnswerError> {
    let asked = AskedSlot::read(runs, query)?;
    let array = load(runs, asked.operator, asked.key, side_of(query)?)?;
    let header = npy::encode_header(array.dtype, &array.shape);
    let mut file =
        header.ok_or_else(|| AnswerError::Missing(format!("numpy has no `{}`", array.dtype)))?;
    file.extend_from_slice(array.bytes());
    Ok(Answer::File(
        format!("{}.{}.npy", asked.operator, slot(asked.key)),
        file,
    ))
}
