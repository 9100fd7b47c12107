//! The numbers that ONNX uses for dtypes: the only table of them.
//!
//! Source: `TensorProto.DataType` in `onnx.proto3`.

use opscope_tensor::DType;

/// ONNX's number for a dtype; `None` if ONNX lacks it.
pub fn code(dtype: DType) -> Option<u64> {
    use DType::*;
    Some(match dtype {
        F32 => 1,
        U8 => 2,
        I8 => 3,
        U16 => 4,
        I16 => 5,
        I32 => 6,
        I64 => 7,
        String => 8,
        Bool => 9,
        F16 => 10,
        F64 => 11,
        U32 => 12,
        U64 => 13,
        C64 => 14,
        C128 => 15,
        BF16 => 16,
        F8E4M3FN => 17,
        F8E4M3FNUZ => 18,
        F8E5M2 => 19,
        F8E5M2FNUZ => 20,
        U4 => 21,
        I4 => 22,
        F4E2M1 => 23,
        F8E8M0 => 24,
        U2 => 25,
        I2 => 26,
        F6E2M3 => 27,
        F6E3M2 => 28,
        Undefined | DualSubI8 | DualSubU8 | QI8 | QI16 | QI32 | QU8 | QU16 | Resource
        | StringRef | Dual | Variant | U1 | C32 | HiF8 | F4E1M2 | HiF4 | HiF4Scale => return None,
    })
}
