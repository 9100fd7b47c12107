//! Arrays of text.
//!
//! numpy stores text of one length, filled up with zeros: characters of 32 bits, or bytes. Zeros at
//! the end of a text are therefore not part of it.

use opscope_tensor::text::{self, TextBuilder, TextError};
use opscope_tensor::{Shape, TensorView};
use thiserror::Error;

use super::items::CHARACTER_BYTES;
use super::{ItemForm, NpyHeader};
use crate::FormatError;

/// Maximum number of texts of an array whose texts have no bytes at all, because nothing in the
/// file bounds them.
const N_EMPTY_TEXTS_MAX: usize = 1 << 20;
/// Largest array of text that is written. One long text makes all of them long.
pub const TEXT_BYTES_MAX: usize = 4 << 30;

/// Why a tensor of text has no array file.
#[derive(Debug, Error)]
pub enum TextArrayError {
    /// The tensor's bytes are not valid texts.
    #[error(transparent)]
    Text(#[from] TextError),
    /// As many characters for each text as the longest one has are too many.
    #[error("{n} texts of up to {longest} bytes make an array of more than {TEXT_BYTES_MAX} bytes")]
    TooLarge {
        /// Number of texts.
        n: usize,
        /// Bytes that the longest one takes in the array.
        longest: usize,
    },
}

/// The file of a tensor of text: header and data. Items have as many characters as the longest
/// text, and one at least; where a text is not UTF-8, they are bytes.
///
/// # Errors
/// [`TextArrayError`].
pub fn text_array(tensor: TensorView<'_>) -> Result<(Vec<u8>, Vec<u8>), TextArrayError> {
    let texts = text::iter(tensor)?;
    // An array has one kind of item, so one text that is not UTF-8 makes bytes of all.
    let characters: Option<Vec<&str>> = texts.clone().map(|t| str::from_utf8(t).ok()).collect();
    let (items, n_item_bytes) = match &characters {
        Some(texts) => {
            let n = texts.iter().map(|text| text.chars().count()).max();
            // numpy reads an item without characters as one with a single character.
            let n = n.unwrap_or(0).max(1);
            (ItemForm::Characters(n), n.saturating_mul(CHARACTER_BYTES))
        }
        None => {
            let n = texts.clone().map(<[u8]>::len).max().unwrap_or(0).max(1);
            (ItemForm::Bytes(n), n)
        }
    };
    let (n, longest) = (texts.len(), n_item_bytes);
    let too_large = || TextArrayError::TooLarge { n, longest };
    let n_bytes = n
        .checked_mul(n_item_bytes)
        .filter(|&n_bytes| n_bytes <= TEXT_BYTES_MAX)
        .ok_or_else(too_large)?;
    let mut data = Vec::new();
    // One long text makes every item long, so the product can exceed memory for small inputs.
    data.try_reserve_exact(n_bytes).map_err(|_| too_large())?;
    let mut end = 0;
    for (i, bytes) in texts.enumerate() {
        match characters.as_ref().and_then(|texts| texts.get(i)) {
            Some(text) => text
                .chars()
                .for_each(|c| data.extend_from_slice(&u32::from(c).to_le_bytes())),
            None => data.extend_from_slice(bytes),
        }
        end += n_item_bytes;
        data.resize(end, 0);
    }
    let header = NpyHeader {
        dtype: tensor.dtype,
        items,
        is_big_endian: false,
        is_fortran_order: false,
        shape: tensor.shape.clone(),
    };
    // Both kinds of items have a name.
    Ok((header.encode().unwrap_or_default(), data))
}

/// # Errors
/// [`FormatError`] if there are so many texts without characters that nothing in the file accounts
/// for their heads.
pub(super) fn check_number(items: ItemForm, shape: &Shape) -> Result<(), FormatError> {
    let n = shape.n_elements();
    if items.n_bytes(items.dtype()) > 0 || n <= N_EMPTY_TEXTS_MAX {
        return Ok(());
    }
    let expected = format!("at most {N_EMPTY_TEXTS_MAX} texts without characters");
    Err(FormatError::new(0, expected, n.to_string()))
}

/// The bytes of a tensor with the texts in `data`: C order, little-endian. `start` is where the
/// data begin in the file.
///
/// # Errors
/// [`FormatError`] if a character is not Unicode. [`check_number`] comes before.
pub(super) fn from_items(
    items: ItemForm,
    shape: &Shape,
    data: &[u8],
    start: usize,
) -> Result<Vec<u8>, FormatError> {
    let n = shape.n_elements();
    let n_item_bytes = items.n_bytes(items.dtype());
    let mut builder = TextBuilder::new(n, 0);
    // `chunks_exact` panics for chunks without bytes.
    if n_item_bytes == 0 {
        (0..n).for_each(|_| builder.push(&[]));
        return Ok(builder.into_bytes());
    }
    let mut text = String::new();
    for (i, item) in data.chunks_exact(n_item_bytes).enumerate() {
        let ItemForm::Characters(_) = items else {
            builder.push(without_zeros(item, &0));
            continue;
        };
        text.clear();
        let characters = item.as_chunks::<CHARACTER_BYTES>().0;
        for (k, &code) in without_zeros(characters, &[0; CHARACTER_BYTES])
            .iter()
            .enumerate()
        {
            let code = u32::from_le_bytes(code);
            // numpy can hold half of a surrogate pair, which is not valid text.
            text.push(char::from_u32(code).ok_or_else(|| {
                let at = start + i * n_item_bytes + k * CHARACTER_BYTES;
                FormatError::new(at as u64, "a character", format!("{code:#x}"))
            })?);
        }
        builder.push(text.as_bytes());
    }
    Ok(builder.into_bytes())
}

/// Returns the items before the zeros at the end.
fn without_zeros<'a, T: PartialEq>(items: &'a [T], zero: &T) -> &'a [T] {
    let n = items.iter().rposition(|item| item != zero);
    &items[..n.map_or(0, |last| last + 1)]
}
