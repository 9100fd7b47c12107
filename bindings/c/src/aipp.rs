//! Image preparation in hardware (AIPP). ONNX models have none, so there is nothing to set: every function
//! answers `ACL_ERROR_API_NOT_SUPPORT`.

use opscope_acl::{Handle, status};

use crate::border::{Code, call};
use crate::pointer::Out;

fn refuse() -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}

/// No parameters, so null.
#[unsafe(no_mangle)]
extern "C" fn aclmdlCreateAIPP(_batch: u64) -> Handle {
    refuse();
    0
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlDestroyAIPP(_aipp: Handle) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetAippDataSize(_batch: u64, _size: Out<usize>) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPInputFormat(_aipp: Handle, _format: i32) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPCscParams(
    _aipp: Handle,
    _on: i8,
    _r0c0: i16,
    _r0c1: i16,
    _r0c2: i16,
    _r1c0: i16,
    _r1c1: i16,
    _r1c2: i16,
    _r2c0: i16,
    _r2c1: i16,
    _r2c2: i16,
    _output_bias_0: u8,
    _output_bias_1: u8,
    _output_bias_2: u8,
    _input_bias_0: u8,
    _input_bias_1: u8,
    _input_bias_2: u8,
) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPRbuvSwapSwitch(_aipp: Handle, _on: i8) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPAxSwapSwitch(_aipp: Handle, _on: i8) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPSrcImageSize(_aipp: Handle, _width: i32, _height: i32) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPScfParams(
    _aipp: Handle,
    _on: i8,
    _input_width: i32,
    _input_height: i32,
    _output_width: i32,
    _output_height: i32,
    _batch_index: u64,
) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPCropParams(
    _aipp: Handle,
    _on: i8,
    _x: i32,
    _y: i32,
    _width: i32,
    _height: i32,
    _batch_index: u64,
) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPPaddingParams(
    _aipp: Handle,
    _on: i8,
    _top: i32,
    _bottom: i32,
    _left: i32,
    _right: i32,
    _batch_index: u64,
) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPDtcPixelMean(
    _aipp: Handle,
    _c0: i16,
    _c1: i16,
    _c2: i16,
    _c3: i16,
    _batch_index: u64,
) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPDtcPixelMin(
    _aipp: Handle,
    _c0: f32,
    _c1: f32,
    _c2: f32,
    _c3: f32,
    _batch_index: u64,
) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPPixelVarReci(
    _aipp: Handle,
    _c0: f32,
    _c1: f32,
    _c2: f32,
    _c3: f32,
    _batch_index: u64,
) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetInputAIPP(
    _model_id: u32,
    _inputs: Handle,
    _index: usize,
    _aipp: Handle,
) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetAIPPByInputIndex(
    _model_id: u32,
    _inputs: Handle,
    _index: usize,
    _aipp: Handle,
) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetAippType(
    _model_id: u32,
    _index: usize,
    _kind: Out<i32>,
    _attached_index: Out<usize>,
) -> Code {
    refuse()
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetFirstAippInfo(_model_id: u32, _index: usize, _info: usize) -> Code {
    refuse()
}
