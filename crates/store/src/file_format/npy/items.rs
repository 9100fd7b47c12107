//! Forms in which an array file stores its elements.

use opscope_tensor::DType;

use super::descr;
use crate::FormatError;
use crate::decimal::number;

/// Maximum number of bytes of an item; numpy counts them in 32 bits with a sign.
const ITEM_BYTES_MAX: usize = i32::MAX as usize;
/// Bytes of a character.
pub(super) const CHARACTER_BYTES: usize = 4;

/// Form in which an array file stores each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemForm {
    /// A number of the header's dtype.
    Numbers,
    /// So many characters of 32 bits, zeros at the end (`<U3`).
    Characters(usize),
    /// So many bytes of text, zeros at the end (`|S3`).
    Bytes(usize),
    /// So many bytes of a type that numpy does not know (`|V2`).
    Void(usize),
}

impl ItemForm {
    /// Parses a code such as `U3`; `None` for number codes, invalid codes and too large items.
    pub(super) fn of_code(code: &str) -> Option<ItemForm> {
        let kind = code.chars().next()?;
        let digits = &code[kind.len_utf8()..];
        let n: usize = number(digits)?;
        let items = match kind {
            'U' => ItemForm::Characters(n),
            // `a` is an older name that numpy has for `S`.
            'S' | 'a' => ItemForm::Bytes(n),
            'V' => ItemForm::Void(n),
            _ => return None,
        };
        let n_bytes = match items {
            ItemForm::Characters(n) => n.checked_mul(CHARACTER_BYTES)?,
            _ => n,
        };
        (n_bytes <= ITEM_BYTES_MAX).then_some(items)
    }

    /// The dtype that elements of items other than numbers get.
    pub(super) fn dtype(self) -> DType {
        match self {
            ItemForm::Characters(_) | ItemForm::Bytes(_) => DType::String,
            ItemForm::Numbers | ItemForm::Void(_) => DType::Undefined,
        }
    }

    /// Bytes of one item.
    pub(super) fn n_bytes(self, dtype: DType) -> usize {
        match self {
            ItemForm::Numbers => dtype.bytes().unwrap_or(1),
            // `of_code` has checked that it fits.
            ItemForm::Characters(n) => n.saturating_mul(CHARACTER_BYTES),
            ItemForm::Bytes(n) | ItemForm::Void(n) => n,
        }
    }

    /// Returns the `descr` of a header for such items; `None` where numpy has no name.
    pub(super) fn descr(self, dtype: DType) -> Option<String> {
        match self {
            ItemForm::Numbers => descr(dtype).map(str::to_owned),
            ItemForm::Characters(n) => Some(format!("<U{n}")),
            ItemForm::Bytes(n) => Some(format!("|S{n}")),
            ItemForm::Void(_) => None,
        }
    }

    /// # Errors
    /// [`FormatError`] if the file does not contain the type of the elements.
    pub(crate) fn check_known(self) -> Result<(), FormatError> {
        match self {
            ItemForm::Void(n) => Err(FormatError::new(
                0,
                "a dtype of numbers, booleans or text",
                format!("`V{n}`, {n} bytes that may be anything"),
            )),
            _ => Ok(()),
        }
    }
}
