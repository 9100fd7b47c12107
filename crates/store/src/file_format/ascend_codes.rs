//! The numbers and names that Ascend uses for dtypes and layouts: the only table of them.
//!
//! Ascend numbers dtypes twice. `DumpData` counts them in the order of its message; the graph
//! engine, AscendCL (`aclDataType`) and the nano runtime share another numbering. Layouts have one
//! numbering everywhere.

use opscope_tensor::{DType, Layout};

/// Ascend's names and numbers of one dtype.
struct DTypeCodes {
    in_dump: Option<u32>,
    in_graph_engine: Option<i32>,
    name: Option<&'static str>,
}

const fn codes(
    in_dump: Option<u32>,
    in_graph_engine: Option<i32>,
    name: Option<&'static str>,
) -> DTypeCodes {
    DTypeCodes {
        in_dump,
        in_graph_engine,
        name,
    }
}

/// One row for each dtype: its number in `DumpData`, its number in the graph engine, its name.
const fn codes_of(dtype: DType) -> DTypeCodes {
    use DType::*;
    match dtype {
        // AscendCL calls this -1 and the graph engine 28, so the numbering that they share has
        // neither.
        Undefined => codes(Some(0), None, Some("DT_UNDEFINED")),
        F32 => codes(Some(1), Some(0), Some("DT_FLOAT")),
        F16 => codes(Some(2), Some(1), Some("DT_FLOAT16")),
        I8 => codes(Some(3), Some(2), Some("DT_INT8")),
        U8 => codes(Some(4), Some(4), Some("DT_UINT8")),
        I16 => codes(Some(5), Some(6), Some("DT_INT16")),
        U16 => codes(Some(6), Some(7), Some("DT_UINT16")),
        I32 => codes(Some(7), Some(3), Some("DT_INT32")),
        I64 => codes(Some(8), Some(9), Some("DT_INT64")),
        U32 => codes(Some(9), Some(8), Some("DT_UINT32")),
        U64 => codes(Some(10), Some(10), Some("DT_UINT64")),
        Bool => codes(Some(11), Some(12), Some("DT_BOOL")),
        F64 => codes(Some(12), Some(11), Some("DT_DOUBLE")),
        String => codes(Some(13), Some(13), Some("DT_STRING")),
        DualSubI8 => codes(Some(14), Some(14), Some("DT_DUAL_SUB_INT8")),
        DualSubU8 => codes(Some(15), Some(15), Some("DT_DUAL_SUB_UINT8")),
        C64 => codes(Some(16), Some(16), Some("DT_COMPLEX64")),
        C128 => codes(Some(17), Some(17), Some("DT_COMPLEX128")),
        QI8 => codes(Some(18), Some(18), Some("DT_QINT8")),
        QI16 => codes(Some(19), Some(19), Some("DT_QINT16")),
        QI32 => codes(Some(20), Some(20), Some("DT_QINT32")),
        QU8 => codes(Some(21), Some(21), Some("DT_QUINT8")),
        QU16 => codes(Some(22), Some(22), Some("DT_QUINT16")),
        Resource => codes(Some(23), Some(23), Some("DT_RESOURCE")),
        StringRef => codes(Some(24), Some(24), Some("DT_STRING_REF")),
        Dual => codes(Some(25), Some(25), Some("DT_DUAL")),
        Variant => codes(Some(26), Some(26), Some("DT_VARIANT")),
        BF16 => codes(Some(27), Some(27), Some("DT_BF16")),
        // In the graph engine 28 means undefined, so the two numberings differ by one from here on.
        I4 => codes(Some(28), Some(29), Some("DT_INT4")),
        U1 => codes(Some(29), Some(30), Some("DT_UINT1")),
        I2 => codes(Some(30), Some(31), Some("DT_INT2")),
        U2 => codes(Some(31), Some(32), Some("DT_UINT2")),
        // Tables of statistics print `UNKNOW` for dtypes without a name, as the vendor's do for
        // this one.
        C32 => codes(Some(32), Some(33), None),
        HiF8 => codes(Some(33), Some(34), Some("DT_HIFLOAT8")),
        F8E5M2 => codes(Some(34), Some(35), Some("DT_FLOAT8_E5M2")),
        F8E4M3FN => codes(Some(35), Some(36), Some("DT_FLOAT8_E4M3FN")),
        F8E8M0 => codes(Some(36), Some(37), Some("DT_FLOAT8_E8M0")),
        F6E3M2 => codes(Some(37), Some(38), Some("DT_FLOAT6_E3M2")),
        F6E2M3 => codes(Some(38), Some(39), Some("DT_FLOAT6_E2M3")),
        F4E2M1 => codes(Some(39), Some(40), Some("DT_FLOAT4_E2M1")),
        F4E1M2 => codes(Some(40), Some(41), Some("DT_FLOAT4_E1M2")),
        HiF4 => codes(Some(41), Some(42), None),
        HiF4Scale => codes(Some(42), Some(43), None),
        // Ascend lacks what follows; the names are ours and follow its own.
        U4 => codes(None, None, Some("DT_UINT4")),
        F8E4M3FNUZ => codes(None, None, Some("DT_FLOAT8_E4M3FNUZ")),
        F8E5M2FNUZ => codes(None, None, Some("DT_FLOAT8_E5M2FNUZ")),
    }
}

/// In the order of their numbers, from 0.
const LAYOUTS: &[Layout] = &[
    Layout::Nchw,
    Layout::Nhwc,
    Layout::Nd,
    Layout::Nc1hwc0,
    Layout::FractalZ,
    Layout::Nc1c0hwPad,
    Layout::Nhwc1c0,
    Layout::FsrNchw,
    Layout::FractalDeconv,
    Layout::C1hwnc0,
    Layout::FractalDeconvTranspose,
    Layout::FractalDeconvSpStrideTrans,
    Layout::Nc1hwc0C04,
    Layout::FractalZC04,
    Layout::Chwn,
    Layout::FractalDeconvSpStride8Trans,
    Layout::Hwcn,
    Layout::Nc1khkwhwc0,
    Layout::BnWeight,
    Layout::FilterHwck,
    Layout::HashtableLookupLookups,
    Layout::HashtableLookupKeys,
    Layout::HashtableLookupValue,
    Layout::HashtableLookupOutput,
    Layout::HashtableLookupHits,
    Layout::C1hwncoc0,
    Layout::Md,
    Layout::Ndhwc,
    Layout::FractalZz,
    Layout::FractalNz,
    Layout::Ncdhw,
    Layout::Dhwcn,
    Layout::Ndc1hwc0,
    Layout::FractalZ3d,
    Layout::Cn,
    Layout::Nc,
    Layout::Dhwnc,
    Layout::FractalZ3dTranspose,
    Layout::FractalZnLstm,
    Layout::FractalZG,
    Layout::Reserved,
    Layout::All,
    Layout::Null,
    Layout::NdRnnBias,
    Layout::FractalZnRnn,
    Layout::Yuv,
    Layout::YuvA,
    Layout::Ncl,
    Layout::FractalZWino,
    Layout::C1hwc0,
];

const LAYOUT_MAX_CODE: u32 = 255;

/// The dtype that a header's `data_type` number means, if it is known.
pub fn dtype_from_code(code: u32) -> Option<DType> {
    let mut dtypes = DType::ALL.iter().copied();
    // A search through the one table keeps both directions in step, where a second table could
    // drift.
    dtypes.find(|&dtype| dtype_code(dtype) == Some(code))
}

/// The number that a header carries for `dtype`; `None` for those that CANN does not have.
pub fn dtype_code(dtype: DType) -> Option<u32> {
    codes_of(dtype).in_dump
}

/// The dtype for a number of the graph engine and of `aclDataType`, if known.
pub fn dtype_from_graph_engine(code: i32) -> Option<DType> {
    let mut dtypes = DType::ALL.iter().copied();
    dtypes.find(|&dtype| graph_engine_code(dtype) == Some(code))
}

/// The number of `dtype` in the graph engine and in `aclDataType`.
pub fn graph_engine_code(dtype: DType) -> Option<i32> {
    codes_of(dtype).in_graph_engine
}

/// The name of `dtype` with the vendor's prefix, such as `DT_FLOAT`.
pub fn dtype_name(dtype: DType) -> Option<&'static str> {
    codes_of(dtype).name
}

/// The layout that a header's `format` number means, if it is known.
pub fn layout_from_code(code: u32) -> Option<Layout> {
    // The message's enumeration jumps from 49 to 255, so a list by position cannot hold its end.
    if code == LAYOUT_MAX_CODE {
        return Some(Layout::Max);
    }
    LAYOUTS.get(code as usize).copied()
}

/// The number that a header carries for `layout`.
pub fn layout_code(layout: Layout) -> u32 {
    let position = LAYOUTS.iter().position(|known| *known == layout);
    // Only `Layout::Max` is not in the list; a test checks all layouts.
    position.map_or(LAYOUT_MAX_CODE, |i| i as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_and_layout_has_its_own_number() {
        let mut without = Vec::new();
        for &dtype in DType::ALL {
            match dtype_code(dtype) {
                Some(code) => assert_eq!(dtype_from_code(code), Some(dtype)),
                None => without.push(dtype),
            }
        }
        assert_eq!(without, [DType::U4, DType::F8E4M3FNUZ, DType::F8E5M2FNUZ]);
        for &layout in Layout::ALL {
            assert_eq!(layout_from_code(layout_code(layout)), Some(layout));
        }
    }

    #[test]
    fn numbers_of_the_public_message() {
        let dtypes = [
            (1, DType::F32),
            (12, DType::F64),
            (27, DType::BF16),
            (29, DType::U1),
            (36, DType::F8E8M0),
        ];
        for (code, dtype) in dtypes {
            assert_eq!(dtype_code(dtype), Some(code));
        }
        let layouts = [
            (0, Layout::Nchw),
            (2, Layout::Nd),
            (16, Layout::Hwcn),
            (29, Layout::FractalNz),
            (44, Layout::FractalZnRnn),
            (49, Layout::C1hwc0),
            (255, Layout::Max),
        ];
        for (code, layout) in layouts {
            assert_eq!(layout_code(layout), code);
        }
        assert_eq!(dtype_from_code(43), None);
        assert_eq!(layout_from_code(50), None);
    }
}
