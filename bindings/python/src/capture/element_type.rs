//! Torch's dtypes.

use opscope_tensor::DType;

/// How elements are stored, and their type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ElementType {
    /// The dtype that torch counts as one element: a byte, if several are packed into one.
    pub(super) stored: DType,
    /// The dtype of the values packed into each, adjacent along the last axis.
    pub(super) packed: Option<DType>,
}

/// Two 4-bit values in each byte, the first one in the lower half.
const FLOAT4_PAIR: ElementType = ElementType {
    stored: DType::U8,
    packed: Some(DType::F4E2M1),
};

/// The dtype of DLPack's type code, width and number of lanes; `None` for unsupported ones.
pub(super) fn from_dlpack(code: u8, bits: u8, lanes: u16) -> Option<ElementType> {
    if (code, bits, lanes) == (17, 4, 2) {
        return Some(FLOAT4_PAIR);
    }
    // DLPack describes no other torch dtype with several lanes.
    if lanes != 1 {
        return None;
    }
    Some(plain(match (code, bits) {
        (0, 8) => DType::I8,
        (0, 16) => DType::I16,
        (0, 32) => DType::I32,
        (0, 64) => DType::I64,
        (1, 8) => DType::U8,
        (1, 16) => DType::U16,
        (1, 32) => DType::U32,
        (1, 64) => DType::U64,
        (2, 16) => DType::F16,
        (2, 32) => DType::F32,
        (2, 64) => DType::F64,
        (4, 16) => DType::BF16,
        (5, 32) => DType::C32,
        (5, 64) => DType::C64,
        (5, 128) => DType::C128,
        (6, 8) => DType::Bool,
        (10, 8) => DType::F8E4M3FN,
        (12, 8) => DType::F8E5M2,
        (14, 8) => DType::F8E8M0,
        _ => return None,
    }))
}

fn plain(stored: DType) -> ElementType {
    ElementType {
        stored,
        packed: None,
    }
}

/// The dtype of torch's printed name, such as `torch.float32`.
pub(super) fn from_torch(name: &str) -> Option<ElementType> {
    let name = name.strip_prefix("torch.")?;
    // Quantised elements are meaningless without their scale.
    if name.starts_with('q') {
        return None;
    }
    let known = match name {
        "float4_e2m1fn_x2" => return Some(FLOAT4_PAIR),
        "float8_e8m0fnu" => DType::F8E8M0,
        _ => name.parse().ok()?,
    };
    // Widths below a byte are stored differently here, if at all.
    known.bytes().map(|_| plain(known))
}
