//! Image preprocessing inside a model. ONNX models have none, and every function says so.

use opscope_acl::status::API_NOT_SUPPORT;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::argument::{Word32Arg, WordArg};
use crate::call::Pair;
use crate::functions;

macro_rules! not_supported {
    ($($function:ident),+ $(,)?) => {
        $(
            /// Image preprocessing is not supported: 200001.
            #[pyfunction]
            #[pyo3(signature = (*_args))]
            fn $function(_args: &Bound<'_, PyTuple>) -> i32 {
                API_NOT_SUPPORT.0
            }
        )+

        pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
            functions!(
                module,
                create_aipp,
                get_aipp_data_size,
                get_aipp_type,
                get_first_aipp_info,
                $($function),+
            );
            Ok(())
        }
    };
}

not_supported!(
    destroy_aipp,
    set_aipp_input_format,
    set_aipp_csc_params,
    set_aipp_rbuv_swap_switch,
    set_aipp_ax_swap_switch,
    set_aipp_src_image_size,
    set_aipp_scf_params,
    set_aipp_crop_params,
    set_aipp_padding_params,
    set_aipp_dtc_pixel_mean,
    set_aipp_dtc_pixel_min,
    set_aipp_pixel_var_reci,
    set_aipp_by_input_index,
    set_input_aipp,
);

/// aclmdlCreateAIPP: 0, as there are no such objects.
#[pyfunction]
fn create_aipp(_batch_size: WordArg) -> usize {
    0
}

/// aclmdlGetAippDataSize: no bytes, and 200001.
#[pyfunction]
fn get_aipp_data_size(_batch_size: WordArg) -> Pair<usize> {
    (0, API_NOT_SUPPORT.0)
}

/// aclmdlGetAippType: nothing, and 200001.
#[pyfunction]
fn get_aipp_type(_model_id: Word32Arg, _index: WordArg) -> (i32, usize, i32) {
    (0, 0, API_NOT_SUPPORT.0)
}

/// aclmdlGetFirstAippInfo: nothing, and 200001.
#[pyfunction]
fn get_first_aipp_info(_model_id: Word32Arg, _index: WordArg) -> Pair<Option<()>> {
    (None, API_NOT_SUPPORT.0)
}
