//! Descriptions of a model's inputs and outputs.

use opscope_acl::status::INVALID_PARAM;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::load::model_at;
use crate::argument::{FilePath, Text, Word, Word32};
use crate::call::{Pair, answer, code, pair, value};
use crate::dims::{self, Described, described};
use crate::functions;

/// Answer for the type or the format of something that is not there.
const UNDEFINED: i32 = -1;
/// Most sets of extents that can be asked for.
const N_GEARS_MAX: usize = 4096;

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        create_desc,
        destroy_desc,
        get_desc,
        get_desc_from_file,
        get_desc_from_mem,
        get_num_inputs,
        get_num_outputs,
        get_input_size_by_index,
        get_output_size_by_index,
        get_input_dims,
        get_input_dims_v2,
        get_input_dims_range,
        get_output_dims,
        get_cur_output_dims,
        get_input_name_by_index,
        get_output_name_by_index,
        get_input_index_by_name,
        get_output_index_by_name,
        get_input_format,
        get_output_format,
        get_input_data_type,
        get_output_data_type,
        get_dynamic_batch,
        get_dynamic_hw,
        get_input_dynamic_gear_count,
        get_input_dynamic_dims,
        get_op_attr,
        get_tensor_real_name,
    );
    Ok(())
}

/// aclmdlCreateDesc: a handle.
#[pyfunction]
fn create_desc(py: Python<'_>) -> usize {
    value(py, |process| process.create_desc())
}

/// aclmdlDestroyDesc.
#[pyfunction]
fn destroy_desc(py: Python<'_>, model_desc: Word) -> i32 {
    code(py, |process| process.destroy_desc(model_desc.0))
}

/// aclmdlGetDesc: fills a description.
#[pyfunction]
fn get_desc(py: Python<'_>, model_desc: Word, model_id: Word32) -> i32 {
    code(py, |process| process.fill_desc(model_desc.0, model_id.0))
}

/// aclmdlGetDescFromFile: fills a description without keeping the model.
#[pyfunction]
fn get_desc_from_file(py: Python<'_>, model_desc: Word, model_path: FilePath) -> i32 {
    code(py, |process| {
        process.fill_desc_from_file(model_desc.0, model_path.as_path())
    })
}

/// aclmdlGetDescFromMem: fills a description without keeping the model.
#[pyfunction]
fn get_desc_from_mem(py: Python<'_>, model_desc: Word, model: Word, model_size: Word) -> i32 {
    code(py, |process| {
        let bytes = model_at(process, "aclmdlGetDescFromMem", model, model_size)?;
        process.fill_desc_from_mem(model_desc.0, &bytes)
    })
}

/// aclmdlGetNumInputs.
#[pyfunction]
fn get_num_inputs(py: Python<'_>, model_desc: Word) -> usize {
    value(py, |process| process.n_inputs(model_desc.0))
}

/// aclmdlGetNumOutputs.
#[pyfunction]
fn get_num_outputs(py: Python<'_>, model_desc: Word) -> usize {
    value(py, |process| process.n_outputs(model_desc.0))
}

/// aclmdlGetInputSizeByIndex: bytes.
#[pyfunction]
fn get_input_size_by_index(py: Python<'_>, model_desc: Word, index: Word) -> usize {
    value(py, |process| process.input_size(model_desc.0, index.0))
}

/// aclmdlGetOutputSizeByIndex: bytes.
#[pyfunction]
fn get_output_size_by_index(py: Python<'_>, model_desc: Word, index: Word) -> usize {
    value(py, |process| process.output_size(model_desc.0, index.0))
}

/// aclmdlGetInputDims: a dictionary with `name`, `dimCount` and `dims`, and the code.
#[pyfunction]
fn get_input_dims<'py>(py: Python<'py>, model_desc: Word, index: Word) -> Described<'py> {
    let found = answer(py, |process| process.input_dims(model_desc.0, index.0));
    described(py, found, |dict, found| {
        dict.update(dims::dict(py, &found)?.as_mapping())
    })
}

/// aclmdlGetInputDimsV2: as `get_input_dims`, since no model has image preprocessing inside.
#[pyfunction]
fn get_input_dims_v2<'py>(py: Python<'py>, model_desc: Word, index: Word) -> Described<'py> {
    get_input_dims(py, model_desc, index)
}

/// aclmdlGetInputDimsRange: a dictionary with `rangeCount` and `range`, pairs of the smallest and the
/// largest extent, and the code.
#[pyfunction]
fn get_input_dims_range<'py>(py: Python<'py>, model_desc: Word, index: Word) -> Described<'py> {
    let found = answer(py, |process| {
        process.input_dims_range(model_desc.0, index.0)
    });
    described(py, found, |dict, ranges| {
        dict.set_item("rangeCount", ranges.len())?;
        let ranges: Vec<[i64; 2]> = ranges.into_iter().map(|(low, high)| [low, high]).collect();
        dict.set_item("range", ranges)
    })
}

/// aclmdlGetOutputDims: a dictionary with `name`, `dimCount` and `dims`, and the code.
#[pyfunction]
fn get_output_dims<'py>(py: Python<'py>, model_desc: Word, index: Word) -> Described<'py> {
    let found = answer(py, |process| process.output_dims(model_desc.0, index.0));
    described(py, found, |dict, found| {
        dict.update(dims::dict(py, &found)?.as_mapping())
    })
}

/// aclmdlGetCurOutputDims: a dictionary with `name`, `dimCount` and `dims`, and the code.
#[pyfunction]
fn get_cur_output_dims<'py>(py: Python<'py>, model_desc: Word, index: Word) -> Described<'py> {
    let found = answer(py, |process| {
        process.current_output_dims(model_desc.0, index.0)
    });
    described(py, found, |dict, found| {
        dict.update(dims::dict(py, &found)?.as_mapping())
    })
}

/// aclmdlGetInputNameByIndex: None if there is no such input.
#[pyfunction]
fn get_input_name_by_index(py: Python<'_>, model_desc: Word, index: Word) -> Option<String> {
    value(py, |process| process.input_name(model_desc.0, index.0))
}

/// aclmdlGetOutputNameByIndex: None if there is no such output.
#[pyfunction]
fn get_output_name_by_index(py: Python<'_>, model_desc: Word, index: Word) -> Option<String> {
    value(py, |process| process.output_name(model_desc.0, index.0))
}

/// aclmdlGetInputIndexByName: the index and the code.
#[pyfunction]
fn get_input_index_by_name(py: Python<'_>, model_desc: Word, name: Text) -> Pair<usize> {
    pair(py, |process| process.input_index(model_desc.0, &name.0))
}

/// aclmdlGetOutputIndexByName: the index and the code.
#[pyfunction]
fn get_output_index_by_name(py: Python<'_>, model_desc: Word, name: Text) -> Pair<usize> {
    pair(py, |process| process.output_index(model_desc.0, &name.0))
}

/// aclmdlGetInputFormat: -1 if there is no such input.
#[pyfunction]
fn get_input_format(py: Python<'_>, model_desc: Word, index: Word) -> i32 {
    value(py, |process| {
        Some(process.input_format(model_desc.0, index.0))
    })
    .unwrap_or(UNDEFINED)
}

/// aclmdlGetOutputFormat: -1 if there is no such output.
#[pyfunction]
fn get_output_format(py: Python<'_>, model_desc: Word, index: Word) -> i32 {
    value(py, |process| {
        Some(process.output_format(model_desc.0, index.0))
    })
    .unwrap_or(UNDEFINED)
}

/// aclmdlGetInputDataType: -1 if there is no such input.
#[pyfunction]
fn get_input_data_type(py: Python<'_>, model_desc: Word, index: Word) -> i32 {
    let found = value(py, |process| {
        Some(process.input_data_type(model_desc.0, index.0))
    });
    found.unwrap_or(UNDEFINED)
}

/// aclmdlGetOutputDataType: -1 if there is no such output.
#[pyfunction]
fn get_output_data_type(py: Python<'_>, model_desc: Word, index: Word) -> i32 {
    let found = value(py, |process| {
        Some(process.output_data_type(model_desc.0, index.0))
    });
    found.unwrap_or(UNDEFINED)
}

/// aclmdlGetDynamicBatch: a dictionary with `batchCount` and `batch`, the sizes that the model is prepared for, and the
/// code. There are none without a file of them beside the model.
#[pyfunction]
fn get_dynamic_batch(py: Python<'_>, model_desc: Word) -> Described<'_> {
    let found = answer(py, |process| process.dynamic_batches(model_desc.0));
    described(py, found, |dict, sizes| {
        dict.set_item("batchCount", sizes.len())?;
        dict.set_item("batch", sizes)
    })
}

/// aclmdlGetDynamicHW: a dictionary with `hwCount` and `hw`, a list of heights and widths, and the code.
#[pyfunction]
fn get_dynamic_hw<'py>(py: Python<'py>, model_desc: Word, _index: Word) -> Described<'py> {
    let found = answer(py, |process| process.dynamic_sizes(model_desc.0));
    described(py, found, |dict, sizes| {
        dict.set_item("hwCount", sizes.len())?;
        let sizes: Vec<Vec<u64>> = sizes.into_iter().map(Vec::from).collect();
        dict.set_item("hw", sizes)
    })
}

/// aclmdlGetInputDynamicGearCount: how many sets of extents the model is prepared for, and the code.
#[pyfunction]
fn get_input_dynamic_gear_count(py: Python<'_>, model_desc: Word, _index: Word) -> Pair<usize> {
    pair(py, |process| Ok(process.dynamic_dims(model_desc.0)?.len()))
}

/// aclmdlGetInputDynamicDims: a list of sets of extents, a dictionary each, and the code. `gear_count` says how many
/// there is room for.
#[pyfunction]
fn get_input_dynamic_dims<'py>(
    py: Python<'py>,
    model_desc: Word,
    _index: Word,
    gear_count: Word,
) -> PyResult<Pair<Option<Bound<'py, PyList>>>> {
    if gear_count.0 > N_GEARS_MAX {
        return Ok((None, INVALID_PARAM.0));
    }
    let found = answer(py, |process| {
        let gears = process.dynamic_dims(model_desc.0)?;
        if gears.len() > gear_count.0 {
            return Err(INVALID_PARAM);
        }
        Ok(gears)
    });
    let (gears, code) = match found {
        Ok(gears) => (gears, 0),
        Err(status) => (Vec::new(), status.0),
    };
    let list = PyList::empty(py);
    for gear in &gears {
        list.append(dims::dict(py, gear)?)?;
    }
    Ok((Some(list), code))
}

/// aclmdlGetOpAttr: None if the operator or its attribute is not known.
#[pyfunction]
fn get_op_attr(py: Python<'_>, model_desc: Word, op_name: Text, attr: Text) -> Option<String> {
    value(py, |process| {
        process.operator_attribute(model_desc.0, &op_name.0, &attr.0)
    })
}

/// aclmdlGetTensorRealName: the name in the model of a tensor that was given a shorter one.
#[pyfunction]
fn get_tensor_real_name(py: Python<'_>, model_desc: Word, name: Text) -> Option<String> {
    value(py, |process| process.real_name(model_desc.0, &name.0))
}
