//! AIPP: how inputs are preprocessed, and the parameters for inputs that a program preprocesses.

use opscope_acl::AippInfo;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::argument::{NumberArg, Word32Arg, WordArg};
use crate::call::{answer, process};
use crate::dims::fill_dims;
use crate::table::table;

table! {
    [also get_aipp_type, get_first_aipp_info]

    values {
        /// aclmdlCreateAIPP: a handle; 0 for no images.
        create_aipp(batch_size: WordArg) -> usize
            => process().create_aipp(batch_size.0 as u64).unwrap_or(0), or 0;
    }

    pairs {
        /// aclmdlGetAippDataSize: bytes and the code.
        get_aipp_data_size(batch_size: WordArg) -> usize
            => process().aipp_data_size(batch_size.0 as u64);
    }

    codes {
        /// aclmdlDestroyAIPP.
        destroy_aipp(aipp_parms_set: WordArg) => process().destroy_aipp(aipp_parms_set.0);
        /// aclmdlSetAIPPInputFormat.
        set_aipp_input_format(aipp_parms_set: WordArg, input_format: Word32Arg)
            => process().set_aipp_input_format(aipp_parms_set.0, input_format.0.cast_signed());
        /// aclmdlSetAIPPCscParams: a switch, a matrix of three rows and columns, and three offsets
        /// each of output and input.
        #[expect(clippy::too_many_arguments, reason = "pyACL's interface")]
        set_aipp_csc_params(
            aipp_parms_set: WordArg, csc_switch: NumberArg<i8>,
            csc_matrix_r0c0: NumberArg<i16>, csc_matrix_r0c1: NumberArg<i16>,
            csc_matrix_r0c2: NumberArg<i16>, csc_matrix_r1c0: NumberArg<i16>,
            csc_matrix_r1c1: NumberArg<i16>, csc_matrix_r1c2: NumberArg<i16>,
            csc_matrix_r2c0: NumberArg<i16>, csc_matrix_r2c1: NumberArg<i16>,
            csc_matrix_r2c2: NumberArg<i16>, csc_output_bias_r0: NumberArg<u8>,
            csc_output_bias_r1: NumberArg<u8>, csc_output_bias_r2: NumberArg<u8>,
            csc_input_bias_r0: NumberArg<u8>, csc_input_bias_r1: NumberArg<u8>,
            csc_input_bias_r2: NumberArg<u8>,
        ) => {
            let matrix = [
                csc_matrix_r0c0, csc_matrix_r0c1, csc_matrix_r0c2, csc_matrix_r1c0,
                csc_matrix_r1c1, csc_matrix_r1c2, csc_matrix_r2c0, csc_matrix_r2c1,
                csc_matrix_r2c2,
            ];
            let output_biases = [csc_output_bias_r0, csc_output_bias_r1, csc_output_bias_r2];
            let input_biases = [csc_input_bias_r0, csc_input_bias_r1, csc_input_bias_r2];
            process().set_aipp_csc_params(
                aipp_parms_set.0, csc_switch.0, numbers(matrix), numbers(output_biases),
                numbers(input_biases),
            )
        };
        /// aclmdlSetAIPPRbuvSwapSwitch.
        set_aipp_rbuv_swap_switch(aipp_parms_set: WordArg, rbuv_swap_switch: NumberArg<i8>)
            => process().set_aipp_rbuv_swap_switch(aipp_parms_set.0, rbuv_swap_switch.0);
        /// aclmdlSetAIPPAxSwapSwitch.
        set_aipp_ax_swap_switch(aipp_parms_set: WordArg, ax_swap_switch: NumberArg<i8>)
            => process().set_aipp_ax_swap_switch(aipp_parms_set.0, ax_swap_switch.0);
        /// aclmdlSetAIPPSrcImageSize.
        set_aipp_src_image_size(
            aipp_parms_set: WordArg, src_image_size_w: NumberArg<i32>,
            src_image_size_h: NumberArg<i32>,
        ) => process().set_aipp_src_image_size(
            aipp_parms_set.0, src_image_size_w.0, src_image_size_h.0
        );
        /// aclmdlSetAIPPScfParams.
        #[expect(clippy::too_many_arguments, reason = "pyACL's interface")]
        #[pyo3(signature = (aipp_parms_set, scf_switch, scf_input_size_w, scf_input_size_h,
            scf_output_size_w, scf_output_size_h, batch_index = WordArg(0)))]
        set_aipp_scf_params(
            aipp_parms_set: WordArg, scf_switch: NumberArg<i8>, scf_input_size_w: NumberArg<i32>,
            scf_input_size_h: NumberArg<i32>, scf_output_size_w: NumberArg<i32>,
            scf_output_size_h: NumberArg<i32>, batch_index: WordArg,
        ) => process().set_aipp_scf_params(
            aipp_parms_set.0, scf_switch.0, [scf_input_size_w.0, scf_input_size_h.0],
            [scf_output_size_w.0, scf_output_size_h.0], batch_index.0 as u64,
        );
        /// aclmdlSetAIPPCropParams.
        #[expect(clippy::too_many_arguments, reason = "pyACL's interface")]
        #[pyo3(signature = (aipp_parms_set, crop_switch, crop_start_pos_w, crop_start_pos_h,
            crop_size_w, crop_size_h, batch_index = WordArg(0)))]
        set_aipp_crop_params(
            aipp_parms_set: WordArg, crop_switch: NumberArg<i8>, crop_start_pos_w: NumberArg<i32>,
            crop_start_pos_h: NumberArg<i32>, crop_size_w: NumberArg<i32>,
            crop_size_h: NumberArg<i32>, batch_index: WordArg,
        ) => process().set_aipp_crop_params(
            aipp_parms_set.0, crop_switch.0, [crop_start_pos_w.0, crop_start_pos_h.0],
            [crop_size_w.0, crop_size_h.0], batch_index.0 as u64,
        );
        /// aclmdlSetAIPPPaddingParams.
        #[expect(clippy::too_many_arguments, reason = "pyACL's interface")]
        #[pyo3(signature = (aipp_parms_set, padding_switch, padding_size_top, padding_size_bottom,
            padding_size_left, padding_size_right, batch_index = WordArg(0)))]
        set_aipp_padding_params(
            aipp_parms_set: WordArg, padding_switch: NumberArg<i8>,
            padding_size_top: NumberArg<i32>, padding_size_bottom: NumberArg<i32>,
            padding_size_left: NumberArg<i32>, padding_size_right: NumberArg<i32>,
            batch_index: WordArg,
        ) => {
            let sizes = [
                padding_size_top, padding_size_bottom, padding_size_left, padding_size_right,
            ];
            process().set_aipp_padding_params(
                aipp_parms_set.0, padding_switch.0, numbers(sizes), batch_index.0 as u64,
            )
        };
        /// aclmdlSetAIPPDtcPixelMean.
        #[pyo3(signature = (aipp_parms_set, dtc_pixel_mean_chn0, dtc_pixel_mean_chn1,
            dtc_pixel_mean_chn2, dtc_pixel_mean_chn3, batch_index = WordArg(0)))]
        set_aipp_dtc_pixel_mean(
            aipp_parms_set: WordArg, dtc_pixel_mean_chn0: NumberArg<i16>,
            dtc_pixel_mean_chn1: NumberArg<i16>, dtc_pixel_mean_chn2: NumberArg<i16>,
            dtc_pixel_mean_chn3: NumberArg<i16>, batch_index: WordArg,
        ) => {
            let means = [
                dtc_pixel_mean_chn0, dtc_pixel_mean_chn1, dtc_pixel_mean_chn2, dtc_pixel_mean_chn3,
            ];
            process().set_aipp_dtc_pixel_mean(
                aipp_parms_set.0, numbers(means), batch_index.0 as u64
            )
        };
        /// aclmdlSetAIPPDtcPixelMin.
        #[pyo3(signature = (aipp_parms_set, dtc_pixel_min_chn0, dtc_pixel_min_chn1,
            dtc_pixel_min_chn2, dtc_pixel_min_chn3, batch_index = WordArg(0)))]
        set_aipp_dtc_pixel_min(
            aipp_parms_set: WordArg, dtc_pixel_min_chn0: NumberArg<f32>,
            dtc_pixel_min_chn1: NumberArg<f32>, dtc_pixel_min_chn2: NumberArg<f32>,
            dtc_pixel_min_chn3: NumberArg<f32>, batch_index: WordArg,
        ) => {
            let minima = [
                dtc_pixel_min_chn0, dtc_pixel_min_chn1, dtc_pixel_min_chn2, dtc_pixel_min_chn3,
            ];
            process().set_aipp_dtc_pixel_min(
                aipp_parms_set.0, numbers(minima), batch_index.0 as u64
            )
        };
        /// aclmdlSetAIPPPixelVarReci.
        #[pyo3(signature = (aipp_parms_set, dtc_pixel_var_reci_chn0, dtc_pixel_var_reci_chn1,
            dtc_pixel_var_reci_chn2, dtc_pixel_var_reci_chn3, batch_index = WordArg(0)))]
        set_aipp_pixel_var_reci(
            aipp_parms_set: WordArg, dtc_pixel_var_reci_chn0: NumberArg<f32>,
            dtc_pixel_var_reci_chn1: NumberArg<f32>, dtc_pixel_var_reci_chn2: NumberArg<f32>,
            dtc_pixel_var_reci_chn3: NumberArg<f32>, batch_index: WordArg,
        ) => {
            let factors = [
                dtc_pixel_var_reci_chn0, dtc_pixel_var_reci_chn1, dtc_pixel_var_reci_chn2,
                dtc_pixel_var_reci_chn3,
            ];
            process().set_aipp_pixel_var_reci(
                aipp_parms_set.0, numbers(factors), batch_index.0 as u64
            )
        };
        /// aclmdlSetInputAIPP.
        set_input_aipp(
            model_id: Word32Arg, dataset: WordArg, index: WordArg, aipp_parms_set: WordArg,
        ) => process().set_input_aipp(model_id.0, dataset.0, index.0, aipp_parms_set.0);
        /// aclmdlSetAIPPByInputIndex.
        set_aipp_by_input_index(
            model_id: Word32Arg, dataset_in: WordArg, index: WordArg, aipp: WordArg,
        ) => process().set_aipp_by_input_index(model_id.0, dataset_in.0, index.0, aipp.0);
    }
}

fn numbers<T, const N: usize>(arguments: [NumberArg<T>; N]) -> [T; N] {
    arguments.map(|argument| argument.0)
}

/// aclmdlGetAippType: the type, the index of the input for the parameters, and the code.
#[pyfunction]
fn get_aipp_type(py: Python<'_>, model_id: Word32Arg, index: WordArg) -> (i32, usize, i32) {
    match answer(py, || process().aipp_type(model_id.0, index.0)) {
        Ok((kind, attached)) => (kind, attached, 0),
        Err(status) => (0, 0, status.0),
    }
}

/// aclmdlGetFirstAippInfo: a dictionary with the members of `aclAippInfo`, and the code. None on
/// failure.
#[pyfunction]
fn get_first_aipp_info(
    py: Python<'_>,
    model_id: Word32Arg,
    index: WordArg,
) -> PyResult<(Option<Bound<'_, PyDict>>, i32)> {
    match answer(py, || process().first_aipp_info(model_id.0, index.0)) {
        Ok(info) => Ok((Some(info_dict(py, info)?), 0)),
        Err(status) => Ok((None, status.0)),
    }
}

fn info_dict(py: Python<'_>, info: AippInfo) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("inputFormat", info.input_format)?;
    set_all(
        &dict,
        ["srcImageSizeW", "srcImageSizeH"],
        info.src_image_size,
    )?;
    dict.set_item("cropSwitch", i32::from(info.crop))?;
    set_all(
        &dict,
        ["loadStartPosW", "loadStartPosH"],
        info.load_start_pos,
    )?;
    set_all(&dict, ["cropSizeW", "cropSizeH"], info.crop_size)?;
    set_all(
        &dict,
        ["resizeSwitch", "resizeOutputW", "resizeOutputH"],
        [0; 3],
    )?;
    dict.set_item("paddingSwitch", i32::from(info.padding))?;
    let sides = [
        "leftPaddingSize",
        "rightPaddingSize",
        "topPaddingSize",
        "bottomPaddingSize",
    ];
    set_all(&dict, sides, info.padding_sizes)?;
    let switches = ["cscSwitch", "rbuvSwapSwitch", "axSwapSwitch"];
    let are_on = [info.csc, info.rbuv_swap, info.ax_swap];
    set_all(&dict, switches, are_on.map(i32::from))?;
    dict.set_item("singleLineMode", 0)?;
    for (i, element) in info.matrix.iter().enumerate() {
        dict.set_item(format!("matrixR{}C{}", i / 3, i % 3), element)?;
    }
    set_numbered(&dict, "outputBias", info.output_biases)?;
    set_numbered(&dict, "inputBias", info.input_biases)?;
    set_numbered(&dict, "meanChn", info.means)?;
    set_numbered(&dict, "minChn", info.minima)?;
    set_numbered(&dict, "varReciChn", info.factors)?;
    dict.set_item("srcFormat", info.src_format)?;
    dict.set_item("srcDatatype", info.src_data_type)?;
    dict.set_item("srcDimNum", info.src_n_dims)?;
    dict.set_item("shapeCount", info.shapes.len())?;
    let shapes = PyList::empty(py);
    for shape in info.shapes {
        let entry = PyDict::new(py);
        // AIPP's output is the model's input, so both halves are the same.
        for (dims, size) in [("srcDims", "srcSize"), ("aippOutdims", "aippOutSize")] {
            let extents = PyDict::new(py);
            fill_dims(&extents, shape.dims.clone())?;
            entry.set_item(dims, extents)?;
            entry.set_item(size, shape.n_bytes)?;
        }
        shapes.append(entry)?;
    }
    dict.set_item("outDims", shapes)?;
    dict.set_item("aippExtend", 0)?;
    Ok(dict)
}

fn set_all<const N: usize>(
    dict: &Bound<'_, PyDict>,
    names: [&str; N],
    values: [i32; N],
) -> PyResult<()> {
    for (name, value) in names.iter().zip(values) {
        dict.set_item(name, value)?;
    }
    Ok(())
}

/// Sets members with numbered names.
fn set_numbered<'py, T: IntoPyObject<'py>, const N: usize>(
    dict: &Bound<'py, PyDict>,
    name: &str,
    values: [T; N],
) -> PyResult<()> {
    for (i, value) in values.into_iter().enumerate() {
        dict.set_item(format!("{name}{i}"), value)?;
    }
    Ok(())
}
