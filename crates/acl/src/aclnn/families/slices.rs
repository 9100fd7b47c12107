//! Slices of axes.

use crate::aclnn::call::{Composed, OperatorCall, Refusal, refuse_if};
use crate::aclnn::families::movement::{as_int, axis_in, read_moved, sliced};
use crate::aclnn::families::moves::ends;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of slices.
#[macro_export]
macro_rules! aclnn_slices {
    ($rows:ident) => {
        $rows! { "slices";
            StridedSlice("aclnn_slice.h", "every step-th entry of axis dim from start on, before end") by slice():
                aclnnSlice(self_: Tensor, dim: Int, start: Int, end: Int, step: Int, out: Out);
            StridedSlice("aclnn_slice_v2.h", "as aclnnSlice, along several axes") by slice_axes():
                aclnnSliceV2(self_: Tensor, starts: IntArray, ends: IntArray, axes: IntArray, steps: IntArray, out: Out);
            StridedSlice("aclnn_strided_slice.h", "entries from begin on, before end; bits of the masks change what a position means") by strided_slice():
                aclnnStridedSlice(self_: Tensor, begin: IntArray, end: IntArray, strides: IntArray, beginMask: Int, endMask: Int, ellipsisMask: Int, newAxisMask: Int, shrinkAxisMask: Int, out: Out);
        }
    };
}
aclnn_slices!(operator_rows);

/// The bounds of a slice, and its number of entries. Negative positions count from the end, and
/// those beyond an end are clamped.
fn slice_range(n: usize, [start, end, step]: [i64; 3]) -> ([i64; 3], usize) {
    let n = as_int(n);
    // Backwards, the position before the first one is an end too.
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let [start, end] =
        [start, end].map(|at| (if at < 0 { at.saturating_add(n) } else { at }).clamp(low, high));
    let distance = if step > 0 { end - start } else { start - end };
    let step_size = step.unsigned_abs().max(1);
    let count = distance.max(0).unsigned_abs().div_ceil(step_size);
    let end = if end < 0 { i64::MIN } else { end };
    ([start, end, step], usize::try_from(count).unwrap_or(0))
}

fn slice(call: &OperatorCall<'_>) -> Composed {
    let (start, end, step) = (call.int("start")?, call.int("end")?, call.int("step")?);
    let dim = call.int("dim")?;
    slice_along(call, &[(dim, [start, end, step])])
}

fn slice_axes(call: &OperatorCall<'_>) -> Composed {
    let (starts, ends) = (call.ints("starts")?, call.ints("ends")?);
    let (axes, steps) = (call.ints("axes")?, call.ints("steps")?);
    let n = starts.len();
    if [ends.len(), axes.len(), steps.len()] != [n; 3] {
        let text = "`starts`, `ends`, `axes` and `steps` differ in length; expected the same";
        return Err(Refusal::invalid(text));
    }
    let slices: Vec<(i64, [i64; 3])> = (0..n)
        .map(|i| (axes[i], [starts[i], ends[i], steps[i]]))
        .collect();
    slice_along(call, &slices)
}

fn slice_along(call: &OperatorCall<'_>, slices: &[(i64, [i64; 3])]) -> Composed {
    let (x, out) = ends(call)?;
    refuse_if!(x.n_axes() == 0, "`self` has no axes; expected one to slice");
    let mut dims = x.dims().to_vec();
    let mut ranges = Vec::new();
    for &(dim, slice) in slices {
        let axis = axis_in("dim", dim, x.n_axes())?;
        refuse_if!(
            slice[2] <= 0,
            "the step is {}; expected 1 or more",
            slice[2]
        );
        // A second slice would count within the first one.
        refuse_if!(
            ranges.iter().any(|&(known, _)| known == axis),
            "axis {axis} is sliced twice"
        );
        let (range, n) = slice_range(x.dims()[axis], slice);
        dims[axis] = n;
        ranges.push((axis, range));
    }
    call.expect_shape(out, &dims)?;
    let mut value = read_moved(call, x, out)?;
    for (axis, range) in ranges {
        value = sliced(call, &value, axis, range);
    }
    call.write_raw(out, &value)
}

/// The masks of a strided slice: bit `i` affects position `i` of its lists.
struct SliceMasks {
    begin: i64,
    end: i64,
    ellipsis: i64,
    new_axis: i64,
    shrunk_axis: i64,
}

impl SliceMasks {
    fn read(call: &OperatorCall<'_>) -> Composed<SliceMasks> {
        let masks = SliceMasks {
            begin: call.int("beginMask")?,
            end: call.int("endMask")?,
            ellipsis: call.int("ellipsisMask")?,
            new_axis: call.int("newAxisMask")?,
            shrunk_axis: call.int("shrinkAxisMask")?,
        };
        refuse_if!(
            masks.ellipsis.count_ones() > 1,
            "`ellipsisMask` is {}; expected one bit at most",
            masks.ellipsis
        );
        Ok(masks)
    }

    fn has(mask: i64, position: usize) -> bool {
        position < 63 && (mask >> position) & 1 == 1
    }
}

/// The lists and masks of a strided slice.
struct StridedSlice<'a> {
    begin: &'a [i64],
    end: &'a [i64],
    strides: &'a [i64],
    masks: SliceMasks,
}

/// The effect of a list position on an axis.
enum AxisSlice {
    /// It takes a range, with its number of entries.
    Range([i64; 3], usize),
    /// It takes one entry, and drops the axis.
    Entry(i64),
}

impl<'a> StridedSlice<'a> {
    fn read(call: &OperatorCall<'a>) -> Composed<StridedSlice<'a>> {
        let (begin, end) = (call.ints("begin")?, call.ints("end")?);
        let strides = call.ints("strides")?;
        if [end.len(), strides.len()] != [begin.len(); 2] {
            let text = "`begin`, `end` and `strides` differ in length; expected the same";
            return Err(Refusal::invalid(text));
        }
        let masks = SliceMasks::read(call)?;
        Ok(StridedSlice {
            begin,
            end,
            strides,
            masks,
        })
    }

    /// Number of axes that the positions consume, without the ellipsis.
    fn n_axes(&self) -> usize {
        let masks = self.masks.ellipsis | self.masks.new_axis;
        (0..self.begin.len())
            .filter(|&i| !SliceMasks::has(masks, i))
            .count()
    }

    /// The slice of an axis of `n` entries.
    fn axis(&self, i: usize, n: usize) -> Composed<AxisSlice> {
        let (begin, step) = (self.begin[i], self.strides[i]);
        refuse_if!(step == 0, "`strides` has 0; expected another number");
        if SliceMasks::has(self.masks.shrunk_axis, i) {
            let place = if begin < 0 {
                begin.saturating_add(as_int(n))
            } else {
                begin
            };
            refuse_if!(
                step < 0 || !(0..as_int(n)).contains(&place),
                "`begin` has {begin} and `strides` {step} for one entry of {n}"
            );
            return Ok(AxisSlice::Entry(place));
        }
        // A masked bound is the end that the step comes from or leads to.
        let (first, last) = if step > 0 {
            (0, i64::MAX)
        } else {
            (i64::MAX, i64::MIN)
        };
        let is_free = SliceMasks::has(self.masks.begin, i);
        let start = if is_free { first } else { begin };
        let is_free = SliceMasks::has(self.masks.end, i);
        let stop = if is_free { last } else { self.end[i] };
        let (range, n) = slice_range(n, [start, stop, step]);
        Ok(AxisSlice::Range(range, n))
    }
}

fn strided_slice(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = ends(call)?;
    let slice = StridedSlice::read(call)?;
    let n_taken = slice.n_axes();
    let rest = x.n_axes().checked_sub(n_taken).ok_or_else(|| {
        let n = x.n_axes();
        Refusal::invalid(format!("{n_taken} axes are sliced; expected {n} at most"))
    })?;
    let (mut axis, mut dims, mut ranges) = (0, Vec::new(), Vec::new());
    for i in 0..slice.begin.len() {
        // The vendor's precedence of the masks: ellipsis, then new axis.
        if SliceMasks::has(slice.masks.ellipsis, i) {
            dims.extend(&x.dims()[axis..axis + rest]);
            axis += rest;
        } else if SliceMasks::has(slice.masks.new_axis, i) {
            dims.push(1);
        } else {
            match slice.axis(i, x.dims()[axis])? {
                AxisSlice::Range(range, n) => {
                    ranges.push((axis, range));
                    dims.push(n);
                }
                AxisSlice::Entry(place) => ranges.push((axis, [place, place + 1, 1])),
            }
            axis += 1;
        }
    }
    // Axes without a position stay whole.
    dims.extend(&x.dims()[axis..]);
    call.expect_shape(out, &dims)?;
    let mut value = read_moved(call, x, out)?;
    for (axis, range) in ranges {
        value = sliced(call, &value, axis, range);
    }
    // Drops axes of single entries, and inserts new ones.
    value = value.reshaped(&dims);
    call.write_raw(out, &value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_cut_at_the_ends_of_an_axis() {
        for (n, slice, expected) in [
            (5, [1, 4, 1], ([1, 4, 1], 3)),
            (5, [-3, i64::MAX, 2], ([2, 5, 2], 2)),
            (5, [4, 2, 1], ([4, 2, 1], 0)),
            (5, [i64::MAX, i64::MIN, -2], ([4, i64::MIN, -2], 3)),
            (5, [3, 0, -1], ([3, 0, -1], 3)),
            (0, [0, 9, 1], ([0, 0, 1], 0)),
        ] {
            assert_eq!(slice_range(n, slice), expected, "{slice:?} of {n}");
        }
    }
}
