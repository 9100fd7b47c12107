//! Where a copy is, which both ways of copying move on.

/// The slices and the offsets that the remaining loops start from.
pub(super) struct CopyCursor<'a> {
    pub src: &'a [u8],
    pub dst: &'a mut [u8],
    pub src_at: usize,
    pub dst_at: usize,
}
