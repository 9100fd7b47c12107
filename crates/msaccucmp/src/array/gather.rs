//! Copying a strided array to dense memory.

use super::geometry::Geometry;

/// Edge of the square blocks in which two axes are swapped: small enough that the lines read and
/// written stay in the first-level cache.
const TILE: usize = 32;

/// The elements in C order. `width` is 1, 2, 4, 8 or 16.
pub(super) fn gather(geometry: &Geometry, bytes: &[u8], width: usize) -> Vec<u8> {
    let mut out = vec![0; geometry.n_elements() * width];
    match width {
        2 => gather_elements::<2>(geometry, bytes, &mut out),
        4 => gather_elements::<4>(geometry, bytes, &mut out),
        8 => gather_elements::<8>(geometry, bytes, &mut out),
        16 => gather_elements::<16>(geometry, bytes, &mut out),
        _ => gather_elements::<1>(geometry, bytes, &mut out),
    }
    out
}

/// One axis of the copy.
#[derive(Clone, Copy, Debug)]
struct CopyAxis {
    n: usize,
    from: usize,
    to: usize,
}

fn gather_elements<const N: usize>(geometry: &Geometry, bytes: &[u8], out: &mut [u8]) {
    let (from, to) = (bytes.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    if to.is_empty() {
        return;
    }
    let mut axes = joined_axes(geometry);
    let inner = axes.pop().unwrap_or(CopyAxis {
        n: 1,
        from: 1,
        to: 1,
    });
    // The axis that is dense in the source, unless it is already the innermost one of the target.
    let dense = axes
        .iter()
        .position(|axis| axis.from == 1)
        .filter(|_| inner.from != 1);
    let across = dense.map(|i| axes.remove(i));
    let mut index = vec![0; axes.len()];
    loop {
        let start = |stride: fn(&CopyAxis) -> usize| -> usize {
            axes.iter()
                .zip(&index)
                .map(|(axis, &i)| i * stride(axis))
                .sum()
        };
        let (from, to) = (&from[start(|a| a.from)..], &mut to[start(|a| a.to)..]);
        match across {
            Some(across) => exchange(from, to, across, inner),
            None if inner.from == 1 => to[..inner.n].copy_from_slice(&from[..inner.n]),
            None => {
                for (to, from) in to
                    .iter_mut()
                    .zip(from.iter().step_by(inner.from))
                    .take(inner.n)
                {
                    *to = *from;
                }
            }
        }
        let Some(axis) = (0..axes.len())
            .rev()
            .find(|&axis| index[axis] + 1 < axes[axis].n)
        else {
            return;
        };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

/// Copies two axes of which `across` is dense in the source and `inner` in the target.
fn exchange<T: Copy>(from: &[T], to: &mut [T], across: CopyAxis, inner: CopyAxis) {
    for i0 in (0..across.n).step_by(TILE) {
        let i_end = across.n.min(i0 + TILE);
        for j0 in (0..inner.n).step_by(TILE) {
            let j_end = inner.n.min(j0 + TILE);
            for i in i0..i_end {
                let line = &mut to[i * across.to..][j0..j_end];
                for (j, to) in (j0..).zip(line) {
                    *to = from[j * inner.from + i];
                }
            }
        }
    }
}

/// The axes with more than one element, outermost first; adjacent axes with joint strides are
/// merged.
fn joined_axes(geometry: &Geometry) -> Vec<CopyAxis> {
    let dense = Geometry::contiguous(geometry.dims());
    let mut axes: Vec<CopyAxis> = Vec::new();
    for ((n, from), &to) in geometry.axes().zip(dense.strides()) {
        match axes.last_mut() {
            _ if n == 1 => {}
            Some(last) if last.from == n * from => {
                *last = CopyAxis {
                    n: last.n * n,
                    from,
                    to,
                }
            }
            _ => axes.push(CopyAxis { n, from, to }),
        }
    }
    axes
}
