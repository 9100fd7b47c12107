//! Names of dtypes and layouts in statistics files.

use opscope_tensor::{DType, Layout};

/// Stands for dtypes and layouts that have no name. The missing letter is the vendor's.
const UNKNOWN: &str = "UNKNOW";

/// The name in the plain table, which knows only the older types.
pub(super) fn plain_dtype(dtype: DType) -> &'static str {
    if is_in_plain_table(dtype) {
        self::dtype(dtype)
    } else {
        "-"
    }
}

/// The name in a table of chosen columns.
pub(super) fn dtype(dtype: DType) -> &'static str {
    match dtype {
        DType::Undefined => "DT_UNDEFINED",
        DType::F32 => "DT_FLOAT",
        DType::F16 => "DT_FLOAT16",
        DType::I8 => "DT_INT8",
        DType::U8 => "DT_UINT8",
        DType::I16 => "DT_INT16",
        DType::U16 => "DT_UINT16",
        DType::I32 => "DT_INT32",
        DType::I64 => "DT_INT64",
        DType::U32 => "DT_UINT32",
        DType::U64 => "DT_UINT64",
        DType::Bool => "DT_BOOL",
        DType::F64 => "DT_DOUBLE",
        DType::String => "DT_STRING",
        DType::DualSubI8 => "DT_DUAL_SUB_INT8",
        DType::DualSubU8 => "DT_DUAL_SUB_UINT8",
        DType::C64 => "DT_COMPLEX64",
        DType::C128 => "DT_COMPLEX128",
        DType::QI8 => "DT_QINT8",
        DType::QI16 => "DT_QINT16",
        DType::QI32 => "DT_QINT32",
        DType::QU8 => "DT_QUINT8",
        DType::QU16 => "DT_QUINT16",
        DType::Resource => "DT_RESOURCE",
        DType::StringRef => "DT_STRING_REF",
        DType::Dual => "DT_DUAL",
        DType::Variant => "DT_VARIANT",
        DType::BF16 => "DT_BF16",
        DType::I4 => "DT_INT4",
        DType::U1 => "DT_UINT1",
        DType::I2 => "DT_INT2",
        DType::U2 => "DT_UINT2",
        DType::HiF8 => "DT_HIFLOAT8",
        DType::F8E5M2 => "DT_FLOAT8_E5M2",
        DType::F8E4M3FN => "DT_FLOAT8_E4M3FN",
        DType::F8E8M0 => "DT_FLOAT8_E8M0",
        DType::F6E3M2 => "DT_FLOAT6_E3M2",
        DType::F6E2M3 => "DT_FLOAT6_E2M3",
        DType::F4E2M1 => "DT_FLOAT4_E2M1",
        DType::F4E1M2 => "DT_FLOAT4_E1M2",
        // The vendor has no such types; these names follow its own.
        DType::U4 => "DT_UINT4",
        DType::F8E4M3FNUZ => "DT_FLOAT8_E4M3FNUZ",
        DType::F8E5M2FNUZ => "DT_FLOAT8_E5M2FNUZ",
        _ => UNKNOWN,
    }
}

/// Whether the dtype has a name of its own.
pub(super) fn is_distinct(dtype: DType) -> bool {
    self::dtype(dtype) != UNKNOWN
}

/// The name in the plain table, which ends at `RESERVED`.
pub(super) fn plain_layout(layout: Layout) -> &'static str {
    use Layout::{All, C1hwc0, FractalZWino, FractalZnRnn, Max, Ncl, NdRnnBias, Null, Yuv, YuvA};
    match layout {
        All | Null | NdRnnBias | FractalZnRnn | Yuv | YuvA | Ncl | FractalZWino | C1hwc0 | Max => {
            "-"
        }
        known => known.name(),
    }
}

/// The name in a table of chosen columns.
pub(super) fn layout(layout: Layout) -> &'static str {
    match layout {
        Layout::Max => UNKNOWN,
        known => known.name(),
    }
}

fn is_in_plain_table(dtype: DType) -> bool {
    !matches!(
        dtype,
        DType::Variant
            | DType::BF16
            | DType::I4
            | DType::U1
            | DType::I2
            | DType::U2
            | DType::C32
            | DType::HiF8
            | DType::F8E5M2
            | DType::F8E4M3FN
            | DType::F8E8M0
            | DType::F6E3M2
            | DType::F6E2M3
            | DType::F4E2M1
            | DType::F4E1M2
            | DType::HiF4
            | DType::HiF4Scale
            | DType::U4
            | DType::F8E4M3FNUZ
            | DType::F8E5M2FNUZ
    )
}
