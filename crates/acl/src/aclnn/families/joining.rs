//! Concatenation, splitting and repetition.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::families::indexing::NOWHERE;
use crate::aclnn::families::movement::{
    Elements, as_int, axis_attribute, axis_in, axis_of, constant_of, expect_same_dtype, extent,
    gathered, joined, picked, read_moved, sliced,
};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::is_integer;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of operators that join, split and repeat.
#[macro_export]
macro_rules! aclnn_joining {
    ($rows:ident) => {
        $rows! { "joining, splitting and repeating";
            ConcatD("aclnn_cat.h", "the tensors one after the other along axis dim") by concatenate():
                aclnnCat(tensors: TensorList, dim: Int, out: Out);
            Pack("aclnn_stack.h", "the tensors one after the other along a new axis dim") by stack():
                aclnnStack(tensors: TensorList, dim: Int, out: Out);
            SplitV("aclnn_split_tensor.h", "parts of splitSections entries of axis dim; the last one has the rest") by split_evenly():
                aclnnSplitTensor(self_: Tensor, splitSections: Unsigned, dim: Int, out: OutList);
            SplitV("aclnn_split_with_size.h", "parts of axis dim with as many entries as splitSize says") by split():
                aclnnSplitWithSize(self_: Tensor, splitSize: IntArray, dim: Int, out: OutList);
            RepeatInterleave("aclnn_repeat_interleave.h", "each element of self as often as repeats says, as a row") by repeat_each():
                aclnnRepeatInterleave(self_: Tensor, repeats: Tensor, outputSize: Int, out: Out);
            RepeatInterleave("aclnn_repeat_interleave.h", "each entry of axis dim as often as repeats says") by repeat_each():
                aclnnRepeatInterleaveWithDim(self_: Tensor, repeats: Tensor, dim: Int, outputSize: Int, out: Out);
            RepeatInterleave("aclnn_repeat_interleave.h", "each element of self repeats times, as a row") by repeat_each():
                aclnnRepeatInterleaveInt(self_: Tensor, repeats: Int, outputSize: Int, out: Out);
            RepeatInterleave("aclnn_repeat_interleave.h", "each entry of axis dim repeats times") by repeat_each():
                aclnnRepeatInterleaveIntWithDim(self_: Tensor, repeats: Int, dim: Int, outputSize: Int, out: Out);
            RepeatInterleave("aclnn_repeat_interleave.h", "each position of repeats as often as the number there says") by repeat_positions():
                aclnnRepeatInterleaveTensor(repeats: Tensor, outputSize: Int, out: Out);
        }
    };
}
aclnn_joining!(operator_rows);

fn concatenate(call: &OperatorCall<'_>) -> Composed {
    let (tensors, out) = (call.tensors("tensors")?, call.tensor("out")?);
    // PyTorch skips tensors of shape [0], whatever the other shapes are.
    let all: Vec<&TensorArgument> = tensors.iter().collect();
    let mut kept = all.clone();
    kept.retain(|tensor| tensor.dims() != [0]);
    let Some(first) = kept.first().or(all.first()) else {
        return Err(Refusal::invalid(
            "`tensors` is empty; expected one at least",
        ));
    };
    let axis = axis_of(call, "dim", first)?;
    refuse_if!(
        first.n_axes() == 0,
        "`tensors` has one without axes; expected one at least"
    );
    let mut dims = first.dims().to_vec();
    dims[axis] = 0;
    for tensor in &kept {
        let mut others = tensor.dims().to_vec();
        let n = others
            .get_mut(axis)
            .map(|n| std::mem::replace(n, dims[axis]));
        match n {
            Some(n) if others == dims => dims[axis] += n,
            _ => {
                let (found, expected) = (tensor.dims(), first.dims());
                return Err(Refusal::invalid(format!(
                    "`tensors` has the shapes {expected:?} and {found:?}; expected the same one \
                     but for axis {axis}"
                )));
            }
        }
    }
    call.expect_shape(out, &dims)?;
    let elements = Elements::common(call, &all, out)?;
    // Their shapes were checked; engines differ in concatenating empty tensors.
    kept.retain(|tensor| !tensor.is_empty());
    join(call, elements, &kept, axis, out)
}

/// Concatenates tensors; without any, the output is empty.
fn join(
    call: &OperatorCall<'_>,
    elements: Elements,
    tensors: &[&TensorArgument],
    axis: usize,
    out: &TensorArgument,
) -> Composed {
    let mut values = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        values.push(elements.read(call, tensor)?);
    }
    if values.is_empty() {
        let nothing = call.constant(0.0, DType::I64);
        values.push(nothing);
    }
    elements.write(call, out, joined(call, &values, axis))
}

fn stack(call: &OperatorCall<'_>) -> Composed {
    let (tensors, out) = (call.tensors("tensors")?, call.tensor("out")?);
    let Some(first) = tensors.first() else {
        return Err(Refusal::invalid(
            "`tensors` is empty; expected one at least",
        ));
    };
    let axis = axis_in("dim", call.int("dim")?, first.n_axes() + 1)?;
    if let Some(other) = tensors.iter().find(|tensor| tensor.dims() != first.dims()) {
        let (found, expected) = (other.dims(), first.dims());
        return Err(Refusal::invalid(format!(
            "`tensors` has the shapes {expected:?} and {found:?}; expected the same one"
        )));
    }
    let mut dims = first.dims().to_vec();
    dims.insert(axis, tensors.len());
    call.expect_shape(out, &dims)?;
    let tensors: Vec<&TensorArgument> = tensors.iter().collect();
    let elements = Elements::common(call, &tensors, out)?;
    let mut values = Vec::with_capacity(tensors.len());
    // Each tensor is one entry of the new axis.
    dims[axis] = 1;
    for tensor in tensors {
        let value = elements.read(call, tensor)?;
        values.push(value.reshaped(&dims));
    }
    elements.write(call, out, joined(call, &values, axis))
}

fn split_evenly(call: &OperatorCall<'_>) -> Composed {
    let x = call.tensor("self")?;
    let axis = axis_of(call, "dim", x)?;
    let number = call.int("splitSections")?;
    let size = extent("splitSections", number)?;
    let n = x.dims().get(axis).copied().unwrap_or(1);
    // Parts of size 0 would never end.
    refuse_if!(
        size == 0 && n > 0,
        "`splitSections` is 0; expected 1 or more"
    );
    let mut sizes: Vec<usize> = Vec::new();
    // The number of parts must be that of the existing outputs. Otherwise a huge tensor in parts of
    // one entry would make an equally long list.
    let n_outputs = call.tensors("out")?.len();
    let mut left = n;
    while sizes.len() <= n_outputs && (left > 0 || sizes.is_empty()) {
        let part = left.min(size);
        sizes.push(part);
        left -= part;
    }
    split_into(call, x, axis, &sizes)
}

fn split(call: &OperatorCall<'_>) -> Composed {
    let x = call.tensor("self")?;
    let axis = axis_of(call, "dim", x)?;
    let sizes = call.ints("splitSize")?;
    let sizes: Vec<usize> = sizes
        .iter()
        .map(|&n| extent("splitSize", n))
        .collect::<Composed<_>>()?;
    split_into(call, x, axis, &sizes)
}

fn split_into(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    axis: usize,
    sizes: &[usize],
) -> Composed {
    let outputs = call.tensors("out")?;
    let n = x
        .dims()
        .get(axis)
        .copied()
        .ok_or_else(|| Refusal::invalid("`self` has no axes; expected one to split"))?;
    // This precedes any reading: too short a list of outputs would lose entries.
    if sizes.len() != outputs.len() {
        let (found, expected) = (outputs.len(), sizes.len());
        return Err(Refusal::invalid(format!(
            "`out` has {found} tensors; expected one for each of {expected} parts"
        )));
    }
    let total = sizes
        .iter()
        .try_fold(0_usize, |sum, &size| sum.checked_add(size));
    refuse_if!(
        total != Some(n),
        "the parts are {sizes:?}; expected {n} entries altogether"
    );
    let mut dims = x.dims().to_vec();
    let mut start = 0;
    let elements = outputs
        .first()
        .map_or(Ok(Elements::Bits(x.dtype)), |first| {
            Elements::common(call, &[x], first)
        })?;
    // One value serves all parts: the memory is read once.
    let value = elements.read(call, x)?;
    for (&size, out) in sizes.iter().zip(outputs) {
        dims[axis] = size;
        call.expect_shape(out, &dims)?;
        if let Some(first) = outputs.first() {
            expect_same_dtype(call, out, first)?;
        }
        let range = [as_int(start), as_int(start + size), 1];
        elements.write(call, out, sliced(call, &value, axis, range))?;
        start += size;
    }
    Ok(())
}

/// The numbers of repeats: one for all entries, or a tensor with one for each.
enum Repeats<'a> {
    Same(usize),
    Each(&'a TensorArgument),
}

fn repeats<'a>(call: &OperatorCall<'a>, n_entries: usize) -> Composed<Repeats<'a>> {
    let Ok(tensor) = call.tensor("repeats") else {
        return Ok(Repeats::Same(extent("repeats", call.int("repeats")?)?));
    };
    call.expect_dtype(tensor, is_integer, "int32 or int64")?;
    // A single number applies to each entry, with or without an axis.
    let is_one = tensor.n_axes() <= 1 && tensor.n_elements() == 1;
    refuse_if!(
        !is_one && tensor.dims() != [n_entries],
        "`repeats` is {tensor}; expected one number, or {n_entries} of them"
    );
    Ok(Repeats::Each(tensor))
}

fn repeat_each(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    let (axis, dims) = if call.has("dim") {
        let axis = axis_of(call, "dim", x)?;
        refuse_if!(
            x.n_axes() == 0,
            "`self` has no axes; expected one to repeat along"
        );
        (axis, x.dims().to_vec())
    } else {
        (0, vec![x.n_elements()])
    };
    let n = dims[axis];
    let size = extent("outputSize", call.int("outputSize")?)?;
    let mut expected = dims.clone();
    expected[axis] = size;
    call.expect_shape(out, &expected)?;
    let value = read_moved(call, x, out)?;
    let value = value.reshaped(&dims);
    let result = match repeats(call, n)? {
        Repeats::Same(times) => {
            refuse_if!(
                n.checked_mul(times) != Some(size),
                "`outputSize` is {size}; expected {n} times {times}"
            );
            let places: Vec<i64> = (0..size).map(|i| as_int(i / times.max(1))).collect();
            picked(call, &value, axis, &places)
        }
        Repeats::Each(tensor) => {
            let places = repeated_positions(call, tensor, n, size)?;
            gathered(call, &value, axis, &places)
        }
    };
    call.write_raw(out, &result)
}

/// The index of each of `n` entries, repeated as a tensor says, `size` in total. Another total
/// makes the run fail, since an index is out of range then.
fn repeated_positions(
    call: &OperatorCall<'_>,
    repeats: &TensorArgument,
    n: usize,
    size: usize,
) -> Composed<Value> {
    let times = call.read(repeats, DType::I64)?;
    // A single number is expanded to one for each entry.
    let times = times.expanded(&[n]);
    let axis = call.constant(0.0, DType::I64);
    let ends = call.node("CumSum", &[&times, &axis], DType::I64);
    let ends = times.less(0.0).choose(NOWHERE, &ends);
    // Entry i ends at the cumulative sum of the repeats: the index increases after each end.
    let marks = constant_of(call, 0.0, DType::I64, &[size + 1]);
    let ones = constant_of(call, 1.0, DType::I64, &[n]);
    let mut attributes = axis_attribute(0);
    attributes.push(("reduction", OperatorAttribute::Text("add".into())));
    let marks = call.node_with(
        "ScatterElements",
        &[&marks, &ends, &ones],
        attributes,
        DType::I64,
    );
    let positions = call.node("CumSum", &[&marks, &axis], DType::I64);
    Ok(sliced(call, &positions, 0, [0, as_int(size), 1]))
}

fn repeat_positions(call: &OperatorCall<'_>) -> Composed {
    let (repeats, out) = (call.tensor("repeats")?, call.tensor("out")?);
    call.expect_dtype(repeats, is_integer, "int32 or int64")?;
    let &[n] = repeats.dims() else {
        let text = format!("`repeats` is {repeats}; expected one axis");
        return Err(Refusal::invalid(text));
    };
    let size = extent("outputSize", call.int("outputSize")?)?;
    call.expect_shape(out, &[size])?;
    refuse_if!(
        n == 0 && size > 0,
        "`outputSize` is {size}; expected 0, the sum of no repeats"
    );
    let places = repeated_positions(call, repeats, n, size)?;
    // Indices after the last entry's end are invalid.
    let all = super::movement::counted(call, n)?;
    call.write(out, gathered(call, &all, 0, &places), DType::I64)
}
