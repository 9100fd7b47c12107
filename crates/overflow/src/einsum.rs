//! `Einsum` of integers.

use opscope_store::record::Record;

use super::OutputOverflow;
use super::contract::{ProductSum, always_fits, zeros};
use super::integers::IntegerTensor;
use super::operators::text;
use super::walk::{OperandWalk, dense_strides};

/// The name of an axis: a letter, or a position in an ellipsis counted from the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AxisLabel {
    Ellipsis(std::cmp::Reverse<usize>),
    Letter(char),
}

/// Results of `Einsum` that do not fit, accumulated in the dtype of the operands.
pub(super) fn place(record: &Record) -> Option<OutputOverflow> {
    let operands: Vec<IntegerTensor> = record
        .inputs
        .iter()
        .map(|(_, tensor)| IntegerTensor::filled(tensor))
        .collect::<Option<_>>()?;
    let equation: String = text(&record.operator, "equation")?
        .chars()
        .filter(|c| !matches!(c, ' ' | '"'))
        .collect();
    let (terms, result) = match equation.split_once("->") {
        Some((terms, result)) => (terms, Some(result)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != operands.len() {
        return None;
    }
    let terms: Vec<Vec<AxisLabel>> = terms
        .iter()
        .zip(&operands)
        .map(|(term, operand)| labels(term, operand.dims.len()))
        .collect::<Option<_>>()?;
    let mut every: Vec<AxisLabel> = terms.iter().flatten().copied().collect();
    // The implicit result has the ellipsis first, then letters in alphabetical order: the order of
    // `AxisLabel`.
    every.sort_unstable();
    let result = match result {
        Some(result) => {
            let mut n_ellipsis: Vec<AxisLabel> =
                every.iter().copied().filter(is_ellipsis).collect();
            n_ellipsis.dedup();
            let n_letters = result.replace("...", "").chars().count();
            let has_ellipsis = result.contains("...");
            labels(
                result,
                n_letters + if has_ellipsis { n_ellipsis.len() } else { 0 },
            )?
        }
        // Without a right side: the axes of the ellipsis, then every letter that occurs once.
        None => {
            let mut kept = every.clone();
            // `every` is sorted, so that equal labels are adjacent.
            kept.dedup();
            kept.retain(|label| {
                is_ellipsis(label) || every.iter().filter(|other| *other == label).count() == 1
            });
            kept
        }
    };
    every.dedup();
    contraction(record, &operands, &terms, &result, &every)
}

/// Whether an axis belongs to an ellipsis.
fn is_ellipsis(label: &AxisLabel) -> bool {
    matches!(label, AxisLabel::Ellipsis(_))
}

fn contraction(
    record: &Record,
    operands: &[IntegerTensor],
    terms: &[Vec<AxisLabel>],
    result: &[AxisLabel],
    every: &[AxisLabel],
) -> Option<OutputOverflow> {
    // An axis of size 1 may be broadcast.
    let extent = |label: AxisLabel| {
        let labelled = terms.iter().zip(operands).flat_map(|(term, operand)| {
            let axes = term.iter().zip(operand.dims);
            axes.filter(move |(own, _)| **own == label)
                .map(|(_, dim)| *dim)
        });
        let mut longer = labelled.filter(|&dim| dim != 1);
        let first = longer.next().unwrap_or(1);
        longer.all(|dim| dim == first).then_some(first)
    };
    let result_dims: Vec<usize> = result
        .iter()
        .map(|label| extent(*label))
        .collect::<Option<_>>()?;
    let summed: Vec<AxisLabel> = every
        .iter()
        .copied()
        .filter(|label| !result.contains(label))
        .collect();
    // Axes of the result are outer loops and summed axes inner ones, so that each total is finished
    // in one go.
    let mut n_products = 1_usize;
    let mut axes = Vec::new();
    for label in result.iter().chain(&summed).copied() {
        let dim = extent(label)?;
        if summed.contains(&label) {
            n_products = n_products.checked_mul(dim)?;
        }
        let mut strides: Vec<usize> = terms
            .iter()
            .zip(operands)
            .map(|(term, operand)| stride(label, term, operand.dims))
            .collect();
        strides.push(stride(label, result, &result_dims));
        axes.push((dim, strides));
    }
    let bounds = operands.first()?.bounds;
    let magnitudes: Vec<u128> = operands.iter().map(IntegerTensor::magnitude_max).collect();
    if always_fits(bounds, n_products, &magnitudes, 0) {
        return None;
    }
    let contraction = ProductSum {
        bounds,
        walk: OperandWalk::new(operands.len() + 1, axes),
        results: zeros(record, &result_dims)?,
    };
    let values: Vec<Vec<i128>> = operands.iter().map(IntegerTensor::to_wide).collect();
    let factors: Vec<&[i128]> = values.iter().map(Vec::as_slice).collect();
    contraction.place(&factors)
}

/// The step along `label` in a dense tensor; a label that occurs twice is a diagonal.
fn stride(label: AxisLabel, term: &[AxisLabel], dims: &[usize]) -> usize {
    let strides = dense_strides(dims);
    let axes = term.iter().zip(dims).zip(strides);
    axes.filter(|((own, dim), _)| **own == label && **dim != 1)
        .map(|(_, stride)| stride)
        .sum()
}

/// The labels of a term with `n_axes` axes.
fn labels(term: &str, n_axes: usize) -> Option<Vec<AxisLabel>> {
    let found = match term.split_once("...") {
        None => letters(term)?,
        Some((before, after)) => {
            let (before, after) = (letters(before)?, letters(after)?);
            let n_more = n_axes.checked_sub(before.len() + after.len())?;
            let more = (0..n_more)
                .rev()
                .map(|i| AxisLabel::Ellipsis(std::cmp::Reverse(i)));
            before.into_iter().chain(more).chain(after).collect()
        }
    };
    // The engine refuses a term that does not fit its operand.
    (found.len() == n_axes).then_some(found)
}

/// The labels of letters; `None` for other characters.
fn letters(text: &str) -> Option<Vec<AxisLabel>> {
    text.chars()
        .map(|c| c.is_ascii_alphabetic().then_some(AxisLabel::Letter(c)))
        .collect()
}
