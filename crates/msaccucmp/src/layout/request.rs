//! The request for a conversion, and shared arithmetic on shapes.

use crate::array::ElementArray;

/// The reference passes the number of groups from this number on.
pub(super) const GROUPS_MIN: i32 = 2;

/// A tensor to convert.
pub(crate) struct LayoutRequest<'a, 'b> {
    /// The elements along one axis.
    pub(crate) array: ElementArray<'a>,
    /// The dump's shape.
    pub(crate) dims: &'b [usize],
    /// The final shape; may be empty.
    pub(crate) wanted: &'b [usize],
    /// The header's `sub_format`.
    pub(crate) groups: i32,
}

/// Only conversions to `FRACTAL_Z` take groups; the others are called with one argument too many.
pub(super) fn refuse_groups(request: &LayoutRequest<'_, '_>) -> Result<(), String> {
    if request.groups >= GROUPS_MIN {
        return Err("convert() takes 3 positional arguments but 4 were given".to_owned());
    }
    Ok(())
}

/// The first `N` dimensions.
pub(super) fn leading<const N: usize>(dims: &[usize]) -> Result<[usize; N], String> {
    dims.first_chunk()
        .copied()
        .ok_or_else(|| "list index out of range".to_owned())
}

/// The saturating product of two dimensions: an overflow exceeds any valid size.
pub(super) fn times(a: usize, b: usize) -> usize {
    a.saturating_mul(b)
}

/// How many of `padded` entries remain when the reference cuts them to `wanted`.
///
/// It writes `[: wanted - padded]`, which counts from the end if negative. If more is wanted than
/// available, the same expression keeps the first `wanted - padded` entries.
pub(super) fn numpy_cut(padded: usize, wanted: usize) -> usize {
    if wanted <= padded {
        wanted
    } else {
        (wanted - padded).min(padded)
    }
}
