//! Image preparation in hardware (AIPP). ONNX models have none, so there is nothing to set: every
//! function answers `ACL_ERROR_API_NOT_SUPPORT`.

use opscope_acl::{AIPP_ADVICE, Handle};

use crate::pointer::OutPointer;
use crate::table::refusals;

refusals! {
    because AIPP_ADVICE;
    aclmdlCreateAIPP(u64) -> Handle;
    aclmdlDestroyAIPP(Handle);
    aclmdlGetAippDataSize(u64, OutPointer<usize>);
    aclmdlSetAIPPInputFormat(Handle, i32);
    /// A switch, a matrix of three rows and columns, and three offsets each of output and input.
    aclmdlSetAIPPCscParams(
        Handle, i8, i16, i16, i16, i16, i16, i16, i16, i16, i16, u8, u8, u8, u8, u8, u8
    );
    aclmdlSetAIPPRbuvSwapSwitch(Handle, i8);
    aclmdlSetAIPPAxSwapSwitch(Handle, i8);
    aclmdlSetAIPPSrcImageSize(Handle, i32, i32);
    aclmdlSetAIPPScfParams(Handle, i8, i32, i32, i32, i32, u64);
    aclmdlSetAIPPCropParams(Handle, i8, i32, i32, i32, i32, u64);
    aclmdlSetAIPPPaddingParams(Handle, i8, i32, i32, i32, i32, u64);
    aclmdlSetAIPPDtcPixelMean(Handle, i16, i16, i16, i16, u64);
    aclmdlSetAIPPDtcPixelMin(Handle, f32, f32, f32, f32, u64);
    aclmdlSetAIPPPixelVarReci(Handle, f32, f32, f32, f32, u64);
    aclmdlSetInputAIPP(u32, Handle, usize, Handle);
    aclmdlSetAIPPByInputIndex(u32, Handle, usize, Handle);
    aclmdlGetAippType(u32, usize, OutPointer<i32>, OutPointer<usize>);
    aclmdlGetFirstAippInfo(u32, usize, usize);
}
