//! Merges the slices of FFTS+ operators.

use opscope_tensor::DType;
use serde_json::Value;

use super::dump::{ComparedFile, FileTensor, TensorContent};
use super::file_name::without_slice;
use super::stop::CompareStop;
use crate::array::{SaveOrder, count, width};
use crate::failure::ErrorCode;
use crate::log;

/// File name field for sorting slices that cannot be merged.
const TIME_FIELD: usize = 4;
/// Path fields that remain for merged slices.
const PATH_FIELDS: usize = 4;

/// One slice of an output.
struct FftsSlice {
    dtype: DType,
    dims: Vec<usize>,
    bytes: Vec<u8>,
}

/// The merged dump of `dumps`, sorted by slice, and a path for it.
pub(super) fn merge(
    paths: Vec<String>,
    mut dumps: Vec<ComparedFile>,
) -> Result<(String, ComparedFile), CompareStop> {
    // A single file counts as complete regardless of its attribute.
    if dumps.len() == 1
        && let (Some(path), Some(mut dump)) = (paths.first(), dumps.pop())
    {
        dump.is_complete = true;
        return Ok((path.clone(), dump));
    }
    let n_dumps = dumps.len();
    let base = dumps.first_mut().ok_or_else(CompareStop::index)?;
    let Some(attribute) = base.attribute.clone() else {
        return Err(CompareStop::Exception(
            "there is no FFTS+ attribute".to_owned(),
        ));
    };
    let n_slices = attribute.get("slice_instance_num").and_then(Value::as_u64);
    if n_slices != Some(n_dumps as u64) {
        base.is_complete = false;
        log::warning(&format!(
            "This is a FFTS+ mode dump data {}, The number of files does not match the number of \
             thread (instance slice num).",
            base.op_name
        ));
    }
    let axes = cut_axes(&attribute)?;
    // Nothing was cut, so every thread wrote the same tensors.
    if axes.iter().all(Option::is_none) {
        return newest(paths, dumps);
    }
    let is_auto = is_true(attribute.get("threadMode"));
    let outputs = dumps
        .iter()
        .enumerate()
        .map(|(thread, dump)| slices(dump, is_auto.then_some(thread)))
        .collect::<Result<Vec<_>, _>>()?;
    if outputs
        .iter()
        .any(|slices| slices.len() != outputs[0].len())
    {
        return Err(CompareStop::bare(ErrorCode::InvalidDumpData));
    }
    let path = paths.first().cloned().unwrap_or_default();
    let fields: Vec<&str> = path.split('.').take(PATH_FIELDS).chain(["*"]).collect();
    Ok((
        fields.join("."),
        joined(dumps.swap_remove(0), &outputs, &axes)?,
    ))
}

/// For each output the first cut axis.
fn cut_axes(attribute: &Value) -> Result<Vec<Option<usize>>, CompareStop> {
    let cuts = attribute
        .get("outputCutList")
        .ok_or_else(|| CompareStop::Fatal("'outputCutList'".to_owned()))?;
    if !is_true(Some(cuts)) {
        return Ok(Vec::new());
    }
    let axes = cuts.as_array().ok_or_else(not_a_list)?.iter().map(|cuts| {
        let cuts = cuts.as_array().ok_or_else(not_a_list)?;
        // Python compares numbers of any type, so `1.0` counts too.
        Ok(cuts.iter().position(|cut| cut.as_f64() != Some(1.0)))
    });
    axes.collect()
}

/// The exception for cuts that are not a list.
fn not_a_list() -> CompareStop {
    CompareStop::Exception("the cuts are no list".to_owned())
}

/// Slices that must not be merged: the file with the latest time represents all.
fn newest(
    paths: Vec<String>,
    dumps: Vec<ComparedFile>,
) -> Result<(String, ComparedFile), CompareStop> {
    let mut last: Option<(String, String, ComparedFile)> = None;
    for (path, dump) in paths.into_iter().zip(dumps) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let time = name
            .split('.')
            .nth(TIME_FIELD)
            .ok_or_else(CompareStop::index)?;
        let time = time.to_owned();
        // Compared as text: all timestamps have the same number of digits.
        if last.as_ref().is_none_or(|(latest, _, _)| *latest <= time) {
            last = Some((time, path, dump));
        }
    }
    let (_, path, dump) = last.ok_or_else(CompareStop::index)?;
    log::warning(&format!(
        "The cut axis of Dump data is invalid. The current compare dump file is {path}."
    ));
    Ok((path, dump))
}

/// The outputs of one file with the shapes of their slices.
fn slices(dump: &ComparedFile, thread: Option<usize>) -> Result<Vec<FftsSlice>, CompareStop> {
    let shapes = match thread {
        Some(thread) => thread_shapes(dump, thread)?,
        None => dump
            .outputs
            .iter()
            .map(|output| output.dims.clone())
            .collect(),
    };
    let mut slices = Vec::new();
    for (i, output) in dump.outputs.iter().enumerate() {
        let dims = shapes.get(i).ok_or_else(CompareStop::index)?.clone();
        if dims.is_empty() {
            return Err(CompareStop::Exception(
                "reduce() of empty iterable".to_owned(),
            ));
        }
        let array = output.decode()?;
        if array.dims().last().copied() != count(&dims) {
            log::error(
                "The number of elements of an output does not match the shape of its slice.",
            );
            return Err(CompareStop::bare(ErrorCode::SliceShape));
        }
        let (dtype, array) = (
            array.dtype(),
            array.reshape(&dims).map_err(CompareStop::Exception)?,
        );
        let bytes = array.bytes_in_order(SaveOrder::C).into_owned();
        slices.push(FftsSlice { dtype, dims, bytes });
    }
    Ok(slices)
}

fn thread_shapes(dump: &ComparedFile, thread: usize) -> Result<Vec<Vec<usize>>, CompareStop> {
    let Some(attribute) = &dump.attribute else {
        return Ok(Vec::new());
    };
    let threads = attribute
        .get("output_tensor_slice")
        .ok_or_else(|| CompareStop::Fatal("'output_tensor_slice'".to_owned()))?;
    if !is_true(Some(threads)) {
        return Ok(Vec::new());
    }
    let outputs = threads.get(thread).and_then(Value::as_array);
    let outputs = outputs.ok_or_else(CompareStop::index)?.iter();
    let shapes = outputs.map(|axes| {
        let axes = axes.as_array().into_iter().flatten();
        axes.map(extent).collect()
    });
    let shapes: Option<Vec<Vec<usize>>> = shapes.collect();
    shapes.ok_or_else(|| CompareStop::Exception("a part of an axis has no bounds".to_owned()))
}

fn extent(part: &Value) -> Option<usize> {
    let [higher, lower] = ["higher", "lower"].map(|key| part.get(key).and_then(Value::as_u64));
    usize::try_from(higher?.checked_sub(lower?)?).ok()
}

/// The first dump with its outputs replaced.
fn joined(
    base: ComparedFile,
    outputs: &[Vec<FftsSlice>],
    axes: &[Option<usize>],
) -> Result<ComparedFile, CompareStop> {
    let mut merged = Vec::new();
    for (i, axis) in axes.iter().enumerate() {
        let parts = outputs
            .iter()
            .map(|slices| slices.get(i).ok_or_else(CompareStop::index))
            .collect::<Result<Vec<_>, _>>()?;
        let (dims, bytes) = match axis {
            None => (parts[0].dims.clone(), parts[0].bytes.clone()),
            Some(axis) => concatenate(&parts, *axis)?,
        };
        let tensor = base.outputs.get(i).ok_or_else(CompareStop::index)?;
        merged.push(FileTensor {
            dims,
            groups: 0,
            is_ffts: true,
            content: TensorContent::Elements(parts[0].dtype, bytes),
            ..tensor.clone()
        });
    }
    Ok(ComparedFile {
        op_name: without_slice(&base.op_name),
        attribute: None,
        inputs: base.inputs,
        outputs: merged,
        is_complete: base.is_complete,
    })
}

fn concatenate(parts: &[&FftsSlice], axis: usize) -> Result<(Vec<usize>, Vec<u8>), CompareStop> {
    let first = parts[0];
    if axis >= first.dims.len()
        || !parts.iter().all(|part| {
            part.dtype == first.dtype
                && part.dims.len() == first.dims.len()
                && (0..part.dims.len()).all(|i| i == axis || part.dims[i] == first.dims[i])
        })
    {
        return Err(CompareStop::Exception(
            "the slices do not fit each other".to_owned(),
        ));
    }
    let mut dims = first.dims.clone();
    dims[axis] = parts.iter().map(|part| part.dims[axis]).sum();
    let n_outer = count(&dims[..axis]).unwrap_or(0);
    let inner = count(&dims[axis + 1..]).unwrap_or(0) * width(first.dtype);
    let mut bytes = Vec::new();
    for outer in 0..n_outer {
        for part in parts {
            let n = part.dims[axis] * inner;
            bytes.extend_from_slice(&part.bytes[outer * n..][..n]);
        }
    }
    Ok((dims, bytes))
}

fn is_true(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_joined_along_their_axis() {
        let slice = |dims: &[usize], bytes: &[u8]| FftsSlice {
            dtype: DType::U8,
            dims: dims.to_vec(),
            bytes: bytes.to_vec(),
        };
        let (a, b) = (slice(&[2, 1], &[1, 2]), slice(&[2, 2], &[3, 4, 5, 6]));
        let (dims, bytes) = concatenate(&[&a, &b], 1).unwrap();
        assert_eq!(
            (dims.as_slice(), bytes.as_slice()),
            (&[2, 3][..], &[1, 3, 4, 2, 5, 6][..])
        );
        assert!(concatenate(&[&a, &b], 0).is_err());
        assert!(concatenate(&[&a], 2).is_err());
    }
}
