//! Image preprocessing inside a model. ONNX models have none, and every function says so.

use opscope_acl::AIPP_ADVICE;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::argument::{Word32Arg, WordArg};
use crate::call::{Pair, process};
use crate::functions;

macro_rules! not_supported {
    ($($function:ident $in_c:ident),+ $(,)?) => {
        $(
            /// Image preprocessing is not supported: 200001.
            #[pyfunction]
            #[pyo3(signature = (*_args))]
            fn $function(_args: &Bound<'_, PyTuple>) -> i32 {
                refused(stringify!($in_c))
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
    destroy_aipp aclmdlDestroyAIPP,
    set_aipp_input_format aclmdlSetAIPPInputFormat,
    set_aipp_csc_params aclmdlSetAIPPCscParams,
    set_aipp_rbuv_swap_switch aclmdlSetAIPPRbuvSwapSwitch,
    set_aipp_ax_swap_switch aclmdlSetAIPPAxSwapSwitch,
    set_aipp_src_image_size aclmdlSetAIPPSrcImageSize,
    set_aipp_scf_params aclmdlSetAIPPScfParams,
    set_aipp_crop_params aclmdlSetAIPPCropParams,
    set_aipp_padding_params aclmdlSetAIPPPaddingParams,
    set_aipp_dtc_pixel_mean aclmdlSetAIPPDtcPixelMean,
    set_aipp_dtc_pixel_min aclmdlSetAIPPDtcPixelMin,
    set_aipp_pixel_var_reci aclmdlSetAIPPPixelVarReci,
    set_aipp_by_input_index aclmdlSetAIPPByInputIndex,
    set_input_aipp aclmdlSetInputAIPP,
);

/// Reports what to do instead; the code that says so.
fn refused(function: &str) -> i32 {
    process().refuse_function(function, AIPP_ADVICE).0
}

/// aclmdlCreateAIPP: 0, as there are no such objects.
#[pyfunction]
fn create_aipp(_batch_size: WordArg) -> usize {
    refused("aclmdlCreateAIPP");
    0
}

/// aclmdlGetAippDataSize: no bytes, and 200001.
#[pyfunction]
fn get_aipp_data_size(_batch_size: WordArg) -> Pair<usize> {
    (0, refused("aclmdlGetAippDataSize"))
}

/// aclmdlGetAippType: nothing, and 200001.
#[pyfunction]
fn get_aipp_type(_model_id: Word32Arg, _index: WordArg) -> (i32, usize, i32) {
    (0, 0, refused("aclmdlGetAippType"))
}

/// aclmdlGetFirstAippInfo: nothing, and 200001.
#[pyfunction]
fn get_first_aipp_info(_model_id: Word32Arg, _index: WordArg) -> Pair<Option<()>> {
    (None, refused("aclmdlGetFirstAippInfo"))
}
