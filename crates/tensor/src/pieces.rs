//! Work on the bytes of a tensor on the way of a pass that has another purpose.

use crate::cpu::LaneMachine;

/// Bytes of a piece: a small part of the nearest cache, so that the next pass finds them there.
pub(crate) const PIECE_BYTES: usize = 1 << 10;

/// Receives the whole pieces of a tensor in order, each just before the pass reads it.
pub(crate) trait PieceReader {
    /// Takes the next piece; to be marked `#[inline(always)]`.
    fn take<M: LaneMachine>(&mut self, m: M, piece: &[u8; PIECE_BYTES]);
}

/// No reader.
impl PieceReader for () {
    #[inline(always)]
    fn take<M: LaneMachine>(&mut self, _: M, _: &[u8; PIECE_BYTES]) {}
}

/// Shows `reader` the whole pieces of `bytes`.
#[inline(always)]
pub(crate) fn read_pieces<M: LaneMachine>(m: M, bytes: &[u8], reader: &mut impl PieceReader) {
    for piece in bytes.as_chunks().0 {
        reader.take(m, piece);
    }
}
