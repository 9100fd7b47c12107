//! Turns the positions of axes in source and target into loops over bytes.
//!
//! Every layout is a way to walk along the axes of the same tensor: in even steps or in blocks. A
//! [`CopyRegion`] pairs the two walks of each axis. Lowering cuts blocked axes into whole blocks
//! and a tail, so that padding is never read and never written, and yields one [`LoopNest`] for
//! each combination of pieces.

/// The step of an axis with these dimensions inside it; meaningless, but no panic, if they do not
/// fit.
pub(super) fn steps_product(dims: &[usize]) -> usize {
    dims.iter()
        .fold(1, |product: usize, &dim| product.saturating_mul(dim))
}

/// How the offset grows along an axis, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxisWalk {
    /// Index `x` is at `x * step`.
    Even(usize),
    /// Index `x` is at `(x + shift) / block * outer + (x + shift) % block * inner`.
    Blocked {
        block: usize,
        shift: usize,
        outer: usize,
        inner: usize,
    },
}

/// One axis in source and target.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisWalks {
    pub extent: usize,
    pub src: AxisWalk,
    pub dst: AxisWalk,
}

/// A box of elements to copy; bases are in elements.
#[derive(Clone, Debug)]
pub(super) struct CopyRegion {
    pub src_base: usize,
    pub dst_base: usize,
    pub axes: Vec<AxisWalks>,
}

/// One loop; steps are in bytes once it is part of a [`LoopNest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopyLoop {
    pub extent: usize,
    pub src: usize,
    pub dst: usize,
}

/// Runs of bytes to copy, at every combination of the loops, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoopNest {
    pub run: usize,
    pub src_base: usize,
    pub dst_base: usize,
    pub loops: Vec<CopyLoop>,
}

/// A part of an axis within which both walks are even, or even on two levels.
struct AxisPiece {
    src_base: usize,
    dst_base: usize,
    loops: [CopyLoop; 2],
}

/// Two walks in blocks of different sizes, which no two loops can follow.
#[derive(Debug)]
pub(super) struct BlockMismatch;

impl AxisWalk {
    fn offset(self, x: usize) -> usize {
        match self {
            AxisWalk::Even(step) => x * step,
            AxisWalk::Blocked {
                block,
                shift,
                outer,
                inner,
            } => (x + shift) / block * outer + (x + shift) % block * inner,
        }
    }

    /// Steps from block to block and within a block.
    fn steps(self, block: usize) -> [usize; 2] {
        match self {
            AxisWalk::Even(step) => [block * step, step],
            AxisWalk::Blocked { outer, inner, .. } => [outer, inner],
        }
    }

    /// Size of the blocks, and how many elements of the first one come before index 0.
    fn grid(self) -> Option<(usize, usize)> {
        match self {
            AxisWalk::Even(_) => None,
            AxisWalk::Blocked { block, shift, .. } => Some((block, shift % block)),
        }
    }
}

impl AxisWalks {
    fn pieces(&self) -> Result<Vec<AxisPiece>, BlockMismatch> {
        let (block, shift) = match (self.src.grid(), self.dst.grid()) {
            (None, None) => (self.extent, 0),
            (Some(grid), None) | (None, Some(grid)) => grid,
            // Blocks of one size on both sides are cut at the same places.
            (Some(src), Some(dst)) if src == dst => src,
            _ => return Err(BlockMismatch),
        };
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < self.extent {
            let rest = self.extent - start;
            let in_first = block - (start + shift) % block;
            let (n_blocks, len) = match rest / block {
                // A block that begins before the axis or ends after it.
                _ if in_first < block || rest < block => (1, in_first.min(rest)),
                n_blocks => (n_blocks, block),
            };
            let ([src_outer, src_inner], [dst_outer, dst_inner]) =
                (self.src.steps(block), self.dst.steps(block));
            pieces.push(AxisPiece {
                src_base: self.src.offset(start),
                dst_base: self.dst.offset(start),
                loops: [
                    CopyLoop {
                        extent: n_blocks,
                        src: src_outer,
                        dst: dst_outer,
                    },
                    CopyLoop {
                        extent: len,
                        src: src_inner,
                        dst: dst_inner,
                    },
                ],
            });
            start += n_blocks * len;
        }
        Ok(pieces)
    }
}

impl CopyRegion {
    /// Adds the nests that copy this region, for elements of `width` bytes.
    pub(super) fn lower(
        &self,
        width: usize,
        nests: &mut Vec<LoopNest>,
    ) -> Result<(), BlockMismatch> {
        let mut partial = vec![LoopNest {
            run: width,
            src_base: self.src_base,
            dst_base: self.dst_base,
            loops: vec![],
        }];
        for axis in &self.axes {
            let pieces = axis.pieces()?;
            partial = partial
                .iter()
                .flat_map(|nest| pieces.iter().map(|piece| nest.with(piece)))
                .collect();
        }
        nests.extend(partial.into_iter().map(|nest| nest.into_bytes(width)));
        Ok(())
    }
}

impl LoopNest {
    /// Number of bytes that the nest copies.
    pub(super) fn n_bytes(&self) -> usize {
        self.loops.iter().map(|l| l.extent).product::<usize>() * self.run
    }

    /// The ends of the furthest run: no byte from there on is read or written.
    pub(super) fn ends(&self) -> (usize, usize) {
        self.loops.iter().fold(
            (self.src_base + self.run, self.dst_base + self.run),
            |ends, l| {
                (
                    ends.0 + (l.extent - 1) * l.src,
                    ends.1 + (l.extent - 1) * l.dst,
                )
            },
        )
    }

    fn with(&self, piece: &AxisPiece) -> LoopNest {
        let mut nest = self.clone();
        nest.src_base += piece.src_base;
        nest.dst_base += piece.dst_base;
        nest.loops
            // Loops that run once only make it harder to join the others.
            .extend(piece.loops.iter().filter(|l| l.extent > 1));
        nest
    }

    fn into_bytes(mut self, width: usize) -> LoopNest {
        self.src_base *= width;
        self.dst_base *= width;
        for l in &mut self.loops {
            l.src *= width;
            l.dst *= width;
        }
        self.simplify();
        self
    }

    /// Joins loops that together are one even loop, and loops that continue the run.
    fn simplify(&mut self) {
        // Innermost first, so that each loop finds the one that it continues.
        self.loops.sort_by_key(|l| (l.dst, l.src));
        let mut joined: Vec<CopyLoop> = Vec::with_capacity(self.loops.len());
        for l in self.loops.drain(..) {
            if joined.is_empty() && l.src == self.run && l.dst == self.run {
                self.run *= l.extent;
            } else if let Some(inner) = joined.iter_mut().find(|inner| {
                l.src == inner.src * inner.extent && l.dst == inner.dst * inner.extent
            }) {
                inner.extent *= l.extent;
            } else {
                joined.push(l);
            }
        }
        // Large steps outside, so that neighbouring memory is copied together.
        joined.sort_by_key(|l| std::cmp::Reverse(l.src + l.dst));
        self.loops = joined;
    }
}
