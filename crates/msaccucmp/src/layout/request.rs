//! The request for a conversion, and the arithmetic on extents that all of them share.

use crate::array::ElementArray;

/// Number of groups from which the reference hands them over.
pub(super) const GROUPS_MIN: i32 = 2;

/// A tensor to convert.
pub(crate) struct LayoutRequest<'a, 'b> {
    /// The elements along one axis.
    pub(crate) array: ElementArray<'a>,
    /// The dump's shape.
    pub(crate) dims: &'b [usize],
    /// The shape that is wanted in the end; may be empty.
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

/// The first `N` extents.
pub(super) fn leading<const N: usize>(dims: &[usize]) -> Result<[usize; N], String> {
    dims.first_chunk()
        .copied()
        .ok_or_else(|| "list index out of range".to_owned())
}

/// The product of two extents; what does not fit cannot be the extent of anything.
pub(super) fn times(a: usize, b: usize) -> usize {
    a.saturating_mul(b)
}

/// How many entries are left of `padded` when the reference cuts them to `wanted`.
///
/// It writes `[: wanted - padded]`, which counts from the end if that is negative. If more is
/// wanted than there is, the same expression keeps the first `wanted - padded` entries.
pub(super) fn numpy_cut(padded: usize, wanted: usize) -> usize {
    if wanted <= padded {
        wanted
    } else {
        (wanted - padded).min(padded)
    }
}
