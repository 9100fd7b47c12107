//! Slices of tensors: as pictures, and as values around an element.

use opscope_analysis::elements::NumpyArray;
use opscope_tensor::Numbers;
use opscope_tensor::slice::{AxisRole, SliceAxes};
use serde_json::{Value, json};

use super::elements::{load, numbers};
use super::{AnswerError, AskedSlot, Query, number, number_or, side_of};
use crate::json;
use crate::viewed::{ShownSide, ViewedRuns};

/// Maximum number of rows and columns of pixels.
const N_PIXELS_MAX: usize = 2048;
/// Maximum number of rows and columns of values.
const N_VALUES_MAX: usize = 32;

/// The sliced tensors.
struct Sliced {
    target: Option<NumpyArray>,
    golden: Option<NumpyArray>,
}

impl Sliced {
    fn any(&self) -> Result<&NumpyArray, AnswerError> {
        self.target
            .as_ref()
            .or(self.golden.as_ref())
            .ok_or_else(|| AnswerError::Missing("there are no elements".to_owned()))
    }
}

/// Rows and columns of the picture and of the slice, smallest and largest pixel, the pixels, and
/// the largest magnitude of each row.
pub(super) fn picture(runs: &ViewedRuns, query: &Query) -> Result<Vec<u8>, AnswerError> {
    let asked = AskedSlot::read(runs, query)?;
    let is_difference = query.get("side").is_some_and(|side| side == "difference");
    let sliced = if is_difference {
        Sliced {
            target: Some(load(runs, asked.operator, asked.key, ShownSide::Target)?),
            golden: Some(load(runs, asked.operator, asked.key, ShownSide::Golden)?),
        }
    } else {
        Sliced {
            target: Some(load(runs, asked.operator, asked.key, side_of(query)?)?),
            golden: None,
        }
    };
    let array = sliced.any()?;
    let axes = axes(query, array.shape.dims())?;
    // More pixels than a screen has would only take time.
    let most = [
        number_or(query, "rows", 256_usize)?.min(N_PIXELS_MAX),
        number_or(query, "columns", 256_usize)?.min(N_PIXELS_MAX),
    ];
    let target = numbers(array)?;
    let picture = match &sliced.golden {
        None => axes.draw(most, |at| target.get(at).unwrap_or(f64::NAN)),
        Some(golden) if golden.shape != array.shape => {
            return Err(AnswerError::Missing("the shapes differ".to_owned()));
        }
        Some(golden) => {
            let golden = numbers(golden)?;
            axes.draw(most, |at| difference(target.get(at), golden.get(at)))
        }
    };
    let mut bytes = Vec::with_capacity(24 + picture.pixels.len() * 4);
    for extent in picture.size.into_iter().chain(picture.full_size) {
        bytes.extend(u32::try_from(extent).unwrap_or(u32::MAX).to_le_bytes());
    }
    // Without finite elements there is no scale.
    let (low, high) = picture.range.unwrap_or((0.0, 0.0));
    let pixels = picture.pixels.iter().copied();
    let rows = picture.pixels.chunks(picture.size[1].max(1)).map(largest);
    for value in [low, high].into_iter().chain(pixels).chain(rows) {
        bytes.extend((value as f32).to_le_bytes());
    }
    Ok(bytes)
}

/// Difference of two elements; zero if they are equal, including equal NaN or infinities.
fn difference(target: Option<f64>, golden: Option<f64>) -> f64 {
    let (Some(target), Some(golden)) = (target, golden) else {
        return f64::NAN;
    };
    if target == golden || target.is_nan() && golden.is_nan() {
        0.0
    } else {
        target - golden
    }
}

fn largest(row: &[f64]) -> f64 {
    let magnitudes = row.iter().map(|value| value.abs());
    magnitudes.fold(0.0, |most, value| {
        // `f64::max` would ignore NaN, and a row with one must stand out. Once found it stays,
        // because no number compares as larger.
        if value.is_nan() || value > most {
            value
        } else {
            most
        }
    })
}

/// The axes of a query; by default the last two axes, and index 0 of the others.
fn axes(query: &Query, dims: &[usize]) -> Result<SliceAxes, AnswerError> {
    let roles: Vec<AxisRole> = match query.get("axes").filter(|text| !text.is_empty()) {
        None => default_roles(dims.len()),
        Some(text) => {
            let roles = text.split(',').map(|role| match role {
                "r" => Ok(AxisRole::Row),
                "c" => Ok(AxisRole::Column),
                index => number(index, "axes").map(AxisRole::At),
            });
            roles.collect::<Result<_, _>>()?
        }
    };
    let axes = SliceAxes::new(dims, &roles);
    axes.map_err(|error| AnswerError::Query(format!("`axes`: {error}")))
}

fn default_roles(n_axes: usize) -> Vec<AxisRole> {
    // In the orientation of a printed matrix.
    let roles = (0..n_axes).map(|axis| match n_axes - axis {
        1 => AxisRole::Column,
        2 => AxisRole::Row,
        _ => AxisRole::At(0),
    });
    roles.collect()
}

/// Values of both sides around a row and a column.
pub(super) fn values(runs: &ViewedRuns, query: &Query) -> Result<Value, AnswerError> {
    let asked = AskedSlot::read(runs, query)?;
    let sliced = Sliced {
        target: load(runs, asked.operator, asked.key, ShownSide::Target).ok(),
        golden: load(runs, asked.operator, asked.key, ShownSide::Golden).ok(),
    };
    let array = sliced.any()?;
    let axes = axes(query, array.shape.dims())?;
    let [n_rows, n_columns] = axes.full_size();
    let (row, column): (usize, usize) =
        (number_or(query, "row", 0)?, number_or(query, "column", 0)?);
    if row >= n_rows || column >= n_columns {
        let size = format!("{n_rows} × {n_columns}");
        return Err(AnswerError::Query(format!(
            "row {row}, column {column} of a slice of {size}"
        )));
    }
    let n = number_or(query, "n", 5_usize)?.min(N_VALUES_MAX);
    let [rows, columns] =
        [(row, n_rows), (column, n_columns)].map(|(at, extent)| around(at, n, extent));
    // If the shapes agree, golden's elements are at the same positions.
    let golden = sliced
        .golden
        .as_ref()
        .filter(|golden| golden.shape == array.shape);
    let [target, golden] = [sliced.target.as_ref(), golden].map(|array| {
        let numbers: Numbers<'_> = numbers(array?).ok()?;
        let rows = rows.clone().map(|row| {
            let columns = columns.clone();
            let line = columns.map(|column| json::known(numbers.get(axes.position(row, column))));
            line.collect()
        });
        Some(rows.collect::<Vec<Vec<Value>>>())
    });
    Ok(json!({
        "rows": rows.clone().collect::<Vec<_>>(),
        "columns": columns.clone().collect::<Vec<_>>(),
        "index": axes.index(row, column),
        "target": target,
        "golden": golden,
    }))
}

/// A range of `n` positions around one, clipped to the dimension.
fn around(at: usize, n: usize, extent: usize) -> std::ops::Range<usize> {
    let n = n.min(extent);
    let start = at.saturating_sub(n / 2).min(extent - n);
    start..start + n
}

#[cfg(test)]
mod tests {
    use super::around;

    #[test]
    fn places_around_one_are_within_the_extent() {
        for (at, n, extent, expected) in [
            (0, 5, 10, 0..5),
            (5, 5, 10, 3..8),
            (9, 5, 10, 5..10),
            (1, 5, 3, 0..3),
            (0, 0, 3, 0..0),
        ] {
            assert_eq!(around(at, n, extent), expected);
        }
    }
}
