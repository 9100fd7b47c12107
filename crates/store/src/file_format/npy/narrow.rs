//! Arrays of dtypes that numpy lacks, as other programs store them.
//!
//! The package `ml_dtypes` adds such dtypes to numpy. In a file they are void items of whole bytes,
//! so their type has to come from elsewhere.

use opscope_tensor::DType;

use super::ItemForm;
use crate::FormatError;

/// Bytes of a void item that can hold an element; `None` for dtypes that numpy has, or that no
/// program stores so.
fn n_void_bytes(dtype: DType) -> Option<usize> {
    use DType::*;
    match dtype {
        BF16 | C32 | HiF8 | F8E5M2 | F8E4M3FN | F8E4M3FNUZ | F8E5M2FNUZ | F8E8M0 | F6E3M2
        | F6E2M3 | F4E2M1 | F4E1M2 | I4 | U4 | I2 | U2 => {
            dtype.bits().map(|bits| bits.div_ceil(8) as usize)
        }
        Undefined | F32 | F16 | I8 | U8 | I16 | U16 | I32 | I64 | U32 | U64 | Bool | F64
        | String | DualSubI8 | DualSubU8 | C64 | C128 | QI8 | QI16 | QI32 | QU8 | QU16
        | Resource | StringRef | Dual | Variant | U1 | HiF4 | HiF4Scale => None,
    }
}

/// The dtype of numpy's in which integers narrower than a byte are stored one by one.
fn byte_dtype(dtype: DType) -> Option<DType> {
    match dtype {
        DType::I4 | DType::I2 => Some(DType::I8),
        DType::U4 | DType::U2 => Some(DType::U8),
        _ => None,
    }
}

/// Whether an array of `items` of `found` holds elements of `wanted`, in another form than a
/// tensor's.
pub(super) fn is_stored_as(wanted: DType, items: ItemForm, found: DType) -> bool {
    match items {
        ItemForm::Void(n) => n_void_bytes(wanted) == Some(n),
        // `uint16` does not count as `bfloat16`: it may hold values as well as patterns.
        ItemForm::Numbers => byte_dtype(wanted) == Some(found),
        ItemForm::Characters(_) | ItemForm::Bytes(_) => false,
    }
}

/// The elements of an array for which [`is_stored_as`] holds: packed if they are narrower than a
/// byte.
///
/// # Errors
/// [`FormatError`] if a byte holds more than such an element. `start` is where the data begin.
pub(super) fn elements(
    dtype: DType,
    items: ItemForm,
    data: Vec<u8>,
    start: usize,
) -> Result<Vec<u8>, FormatError> {
    let n_bits = match dtype.bits() {
        Some(n_bits @ 1..8) => n_bits as usize,
        _ => return Ok(data),
    };
    let n_above = 8 - n_bits;
    let is_signed = byte_dtype(dtype) == Some(DType::I8);
    // Bits above an element's may be its sign, or zero where the item is a pattern and no number.
    let is_element = |byte: u8| {
        let is_pattern = byte >> n_bits == 0;
        let extended = (byte << n_above).cast_signed() >> n_above;
        match (is_signed, items) {
            (false, _) => is_pattern,
            (true, ItemForm::Numbers) => extended == byte.cast_signed(),
            (true, _) => is_pattern || extended == byte.cast_signed(),
        }
    };
    let mut packed = vec![0; (data.len() * n_bits).div_ceil(8)];
    for (i, &byte) in data.iter().enumerate() {
        // Cutting the upper bits off would turn a damaged byte into an innocent number.
        if !is_element(byte) {
            let at = (start + i) as u64;
            let found = format!("the byte {byte:#04x}");
            return Err(FormatError::new(
                at,
                format!("an element of {dtype}"),
                found,
            ));
        }
        // Six-bit elements cross bytes, so a code is shifted inside two of them.
        let code = u16::from(byte & (u8::MAX >> n_above)) << (i * n_bits % 8);
        let [low, high] = code.to_le_bytes();
        let at = i * n_bits / 8;
        packed[at] |= low;
        // The last code may end with the last byte, and then there is no next one.
        if high != 0 {
            packed[at + 1] |= high;
        }
    }
    Ok(packed)
}
