//! Descriptions of a model's inputs and outputs.

use opscope_acl::status::INVALID_PARAM;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::load::model_at;
use crate::argument::{FilePath, TextArg, Word32Arg, WordArg};
use crate::call::{Pair, answer, process};
use crate::dims::fill_dims;
use crate::table::table;

/// Result for the type or format of a missing item.
const UNDEFINED: i32 = -1;
/// Maximum number of gears that can be requested.
const N_GEARS_MAX: usize = 4096;

table! {
    [also get_input_dynamic_dims]

    codes {
        /// aclmdlDestroyDesc.
        destroy_desc(model_desc: WordArg) => process().destroy_desc(model_desc.0);
        /// aclmdlGetDesc: fills a description.
        get_desc(model_desc: WordArg, model_id: Word32Arg)
            => process().fill_desc(model_desc.0, model_id.0);
        /// aclmdlGetDescFromFile: fills a description without keeping the model.
        get_desc_from_file(model_desc: WordArg, model_path: FilePath)
            => process().fill_desc_from_file(model_desc.0, model_path.as_path());
        /// aclmdlGetDescFromMem: fills a description without keeping the model.
        get_desc_from_mem(model_desc: WordArg, model: WordArg, model_size: WordArg) => {
            let bytes = model_at("aclmdlGetDescFromMem", model, model_size)?;
            process().fill_desc_from_mem(model_desc.0, &bytes)
        };
    }

    values {
        /// aclmdlCreateDesc: a handle.
        create_desc() -> usize => process().create_desc(), or 0;
        /// aclmdlGetNumInputs.
        get_num_inputs(model_desc: WordArg) -> usize => process().n_inputs(model_desc.0), or 0;
        /// aclmdlGetNumOutputs.
        get_num_outputs(model_desc: WordArg) -> usize => process().n_outputs(model_desc.0), or 0;
        /// aclmdlGetInputSizeByIndex: bytes.
        get_input_size_by_index(model_desc: WordArg, index: WordArg) -> usize
            => process().input_size(model_desc.0, index.0), or 0;
        /// aclmdlGetOutputSizeByIndex: bytes.
        get_output_size_by_index(model_desc: WordArg, index: WordArg) -> usize
            => process().output_size(model_desc.0, index.0), or 0;
        /// aclmdlGetInputNameByIndex: None if there is no such input.
        get_input_name_by_index(model_desc: WordArg, index: WordArg) -> Option<String>
            => process().input_name(model_desc.0, index.0), or None;
        /// aclmdlGetOutputNameByIndex: None if there is no such output.
        get_output_name_by_index(model_desc: WordArg, index: WordArg) -> Option<String>
            => process().output_name(model_desc.0, index.0), or None;
        /// aclmdlGetInputFormat: -1 if there is no such input.
        get_input_format(model_desc: WordArg, index: WordArg) -> i32
            => process().input_format(model_desc.0, index.0), or UNDEFINED;
        /// aclmdlGetOutputFormat: -1 if there is no such output.
        get_output_format(model_desc: WordArg, index: WordArg) -> i32
            => process().output_format(model_desc.0, index.0), or UNDEFINED;
        /// aclmdlGetInputDataType: -1 if there is no such input.
        get_input_data_type(model_desc: WordArg, index: WordArg) -> i32
            => process().input_data_type(model_desc.0, index.0), or UNDEFINED;
        /// aclmdlGetOutputDataType: -1 if there is no such output.
        get_output_data_type(model_desc: WordArg, index: WordArg) -> i32
            => process().output_data_type(model_desc.0, index.0), or UNDEFINED;
        /// aclmdlGetOpAttr: None if the operator or its attribute is unknown.
        get_op_attr(model_desc: WordArg, op_name: TextArg, attr: TextArg) -> Option<String>
            => process().operator_attribute(model_desc.0, &op_name.0, &attr.0), or None;
        /// aclmdlGetTensorRealName: the model's name of a tensor with a shortened name.
        get_tensor_real_name(model_desc: WordArg, name: TextArg) -> Option<String>
            => process().real_name(model_desc.0, &name.0), or None;
    }

    dicts {
        /// aclmdlGetInputDims: a dictionary with `name`, `dimCount` and `dims`, and the code.
        get_input_dims(model_desc: WordArg, index: WordArg)
            => process().input_dims(model_desc.0, index.0), into fill_dims;
        /// aclmdlGetInputDimsV2: like `get_input_dims`, but with a height that includes all planes
        /// of AIPP images.
        get_input_dims_v2(model_desc: WordArg, index: WordArg)
            => process().input_dims_in_bytes(model_desc.0, index.0), into fill_dims;
        /// aclmdlGetInputDimsRange: a dictionary with `rangeCount` and `range`, pairs of the
        /// smallest and the largest dimension, and the code.
        get_input_dims_range(model_desc: WordArg, index: WordArg)
            => process().input_dims_range(model_desc.0, index.0), into fill_ranges;
        /// aclmdlGetOutputDims: a dictionary with `name`, `dimCount` and `dims`, and the code.
        get_output_dims(model_desc: WordArg, index: WordArg)
            => process().output_dims(model_desc.0, index.0), into fill_dims;
        /// aclmdlGetCurOutputDims: a dictionary with `name`, `dimCount` and `dims`, and the code.
        get_cur_output_dims(model_desc: WordArg, index: WordArg)
            => process().current_output_dims(model_desc.0, index.0), into fill_dims;
        /// aclmdlGetDynamicBatch: a dictionary with `batchCount` and `batch`, the model's batch
        /// sizes, and the code. They come from the gears file next to the model.
        get_dynamic_batch(model_desc: WordArg)
            => process().dynamic_batches(model_desc.0), into fill_batches;
        /// aclmdlGetDynamicHW: a dictionary with `hwCount` and `hw`, a list of heights and widths,
        /// and the code.
        get_dynamic_hw(model_desc: WordArg, _index: WordArg)
            => process().dynamic_sizes(model_desc.0), into fill_sizes;
    }

    pairs {
        /// aclmdlGetInputIndexByName: the index and the code.
        get_input_index_by_name(model_desc: WordArg, name: TextArg) -> usize
            => process().input_index(model_desc.0, &name.0);
        /// aclmdlGetOutputIndexByName: the index and the code.
        get_output_index_by_name(model_desc: WordArg, name: TextArg) -> usize
            => process().output_index(model_desc.0, &name.0);
        /// aclmdlGetInputDynamicGearCount: the number of the model's gears, and the code.
        get_input_dynamic_gear_count(model_desc: WordArg, _index: WordArg) -> usize
            => Ok(process().dynamic_dims(model_desc.0)?.len());
    }
}

fn fill_ranges(dict: &Bound<'_, PyDict>, ranges: Vec<(i64, i64)>) -> PyResult<()> {
    dict.set_item("rangeCount", ranges.len())?;
    // Lists of two numbers, because a Rust tuple would become a Python tuple.
    let ranges: Vec<[i64; 2]> = ranges.into_iter().map(|(low, high)| [low, high]).collect();
    dict.set_item("range", ranges)
}

fn fill_batches(dict: &Bound<'_, PyDict>, sizes: Vec<u64>) -> PyResult<()> {
    dict.set_item("batchCount", sizes.len())?;
    dict.set_item("batch", sizes)
}

fn fill_sizes(dict: &Bound<'_, PyDict>, sizes: Vec<[u64; 2]>) -> PyResult<()> {
    dict.set_item("hwCount", sizes.len())?;
    let sizes: Vec<Vec<u64>> = sizes.into_iter().map(Vec::from).collect();
    dict.set_item("hw", sizes)
}

/// aclmdlGetInputDynamicDims: a list of shapes, one dictionary each, and the code.
/// `gear_count` is the available room.
#[pyfunction]
fn get_input_dynamic_dims<'py>(
    py: Python<'py>,
    model_desc: WordArg,
    _index: WordArg,
    gear_count: WordArg,
) -> PyResult<Pair<Option<Bound<'py, PyList>>>> {
    if gear_count.0 > N_GEARS_MAX {
        return Ok((None, INVALID_PARAM.0));
    }
    let gears = answer(py, || {
        let gears = process().dynamic_dims(model_desc.0)?;
        if gears.len() > gear_count.0 {
            return Err(INVALID_PARAM);
        }
        Ok(gears)
    });
    let (gears, code) = match gears {
        Ok(gears) => (gears, 0),
        Err(status) => (Vec::new(), status.0),
    };
    let list = PyList::empty(py);
    for gear in gears {
        let dict = PyDict::new(py);
        fill_dims(&dict, gear)?;
        list.append(dict)?;
    }
    Ok((Some(list), code))
}
