//! The numbers that `DumpData` uses for dtypes and layouts.

use opscope_tensor::{DType, Layout};

/// In the order of their numbers, from 0.
const DTYPES: &[DType] = &[
    DType::Undefined,
    DType::F32,
    DType::F16,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::I64,
    DType::U32,
    DType::U64,
    DType::Bool,
    DType::F64,
    DType::String,
    DType::DualSubI8,
    DType::DualSubU8,
    DType::C64,
    DType::C128,
    DType::QI8,
    DType::QI16,
    DType::QI32,
    DType::QU8,
    DType::QU16,
    DType::Resource,
    DType::StringRef,
    DType::Dual,
    DType::Variant,
    DType::BF16,
    DType::I4,
    DType::U1,
    DType::I2,
    DType::U2,
    DType::C32,
    DType::HiF8,
    DType::F8E5M2,
    DType::F8E4M3FN,
    DType::F8E8M0,
    DType::F6E3M2,
    DType::F6E2M3,
    DType::F4E2M1,
    DType::F4E1M2,
    DType::HiF4,
    DType::HiF4Scale,
];

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
    DTYPES.get(code as usize).copied()
}

/// The number that a header carries for `dtype`; `None` for those that CANN does not have.
pub fn dtype_code(dtype: DType) -> Option<u32> {
    position(DTYPES, &dtype)
}

/// The layout that a header's `format` number means, if it is known.
pub fn layout_from_code(code: u32) -> Option<Layout> {
    if code == LAYOUT_MAX_CODE {
        return Some(Layout::Max);
    }
    LAYOUTS.get(code as usize).copied()
}

/// The number that a header carries for `layout`.
pub fn layout_code(layout: Layout) -> u32 {
    position(LAYOUTS, &layout).unwrap_or(LAYOUT_MAX_CODE)
}

fn position<T: PartialEq>(table: &[T], wanted: &T) -> Option<u32> {
    table
        .iter()
        .position(|entry| entry == wanted)
        .and_then(|i| u32::try_from(i).ok())
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
