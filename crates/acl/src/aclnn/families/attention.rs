//! Attention in training, and code shared by every attention.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::activation::{SMALL_FLOATS, is_small_float};
use super::attention_masks::{Sample, Samples, Sparsity, expect_broadcast, fitted, packed};
use super::attention_operands::{AxisOrder, HeadsFirst, Operands, turned, write_ordered};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of attention.
#[macro_export]
macro_rules! aclnn_attention {
    ($rows:ident) => {
        $rows! { "attention";
            FlashAttentionScore("aclnn_flash_attention_score.h", "softmax(scaleValue * (query @ key^T + realShiftOptional)) @ value, without what attenMaskOptional masks; sparse modes 0 to 6, without dropout") by train(&TRAINED_ORDERS):
                aclnnFlashAttentionScore(query: Tensor, key: Tensor, value: Tensor, realShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, prefixOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, softmaxMaxOut: OptionalOut, softmaxSumOut: OptionalOut, softmaxOutOut: OptionalOut, attentionOutOut: Out);
            FlashAttentionScore("aclnn_flash_attention_score.h", "as aclnnFlashAttentionScore; with pseType 0 realShiftOptional is added after the scale, with 1 before it") by train(&TRAINED_ORDERS):
                aclnnFlashAttentionScoreV2(query: Tensor, key: Tensor, value: Tensor, realShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, prefixOptional: OptionalIntArray, qStartIdxOptional: OptionalIntArray, kvStartIdxOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, pseType: Int, softmaxMaxOut: OptionalOut, softmaxSumOut: OptionalOut, softmaxOutOut: OptionalOut, attentionOutOut: Out);
            FlashAttentionScore("aclnn_flash_attention_score.h", "as aclnnFlashAttentionScore, of samples that lie one after the other and end at the numbers of actualSeqQLenOptional and actualSeqKvLenOptional; sparse modes 0 to 4") by train(&[AxisOrder::Tnd]):
                aclnnFlashAttentionVarLenScore(query: Tensor, key: Tensor, value: Tensor, realShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, prefixOptional: OptionalIntArray, actualSeqQLenOptional: OptionalIntArray, actualSeqKvLenOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, softmaxMaxOut: OptionalOut, softmaxSumOut: OptionalOut, softmaxOutOut: OptionalOut, attentionOutOut: Out);
            FlashAttentionScore("aclnn_flash_attention_score.h", "as aclnnFlashAttentionVarLenScore") by train(&[AxisOrder::Tnd]):
                aclnnFlashAttentionVarLenScoreV2(query: Tensor, key: Tensor, value: Tensor, realShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, prefixOptional: OptionalIntArray, actualSeqQLenOptional: OptionalIntArray, actualSeqKvLenOptional: OptionalIntArray, qStartIdxOptional: OptionalIntArray, kvStartIdxOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, pseType: Int, softmaxMaxOut: OptionalOut, softmaxSumOut: OptionalOut, softmaxOutOut: OptionalOut, attentionOutOut: Out);
            ScaledMaskedSoftmaxV2("aclnn_scaled_masked_softmax.h", "softmax(scale * x) along the last axis, with -10000 where mask is true") by scaled_masked_softmax():
                aclnnScaledMaskedSoftmax(x: Tensor, mask: Tensor, scale: Double, fixedTriuMask: Flag, y: Out);
        }
    };
}
aclnn_attention!(operator_rows);

/// The result of an attention, with the axes batch, heads, tokens and elements, and the maximum and
/// the sum of each row of scores.
pub(super) struct Attended {
    pub(super) result: Value,
    pub(super) maximum: Value,
    pub(super) sum: Value,
}

/// The scores of queries and the same number of key heads, -infinity where masked.
pub(super) fn masked_scores(
    call: &OperatorCall<'_>,
    [query, key]: [&Value; 2],
    shift: Option<&Value>,
    masks: &[Value],
) -> Composed<Value> {
    let key = turned(call, key, [0, 1, 3, 2]);
    let mut scores = query.matmul(&key);
    let scale = call.number_value(ScalarNumber::Float(call.number("scaleValue")?), DType::F32)?;
    // The older training function adds before it scales, one of two orders of the newer one;
    // inference functions scale first.
    let adds_first = if call.has("pseType") {
        call.int("pseType")? == 1
    } else {
        is_in_training(call)
    };
    if let Some(shift) = shift.filter(|_| adds_first) {
        scores = &scores + shift;
    }
    scores = &scores * &scale;
    if let Some(shift) = shift.filter(|_| !adds_first) {
        scores = &scores + shift;
    }
    // Masked elements get a weight of exactly 0, not a small one.
    for mask in masks {
        scores = mask.choose(f64::NEG_INFINITY, &scores);
    }
    Ok(scores)
}

/// Fully masked rows yield 0.
pub(super) fn attend(
    call: &OperatorCall<'_>,
    operands: &Operands<'_>,
    values: HeadsFirst,
    shift: Option<&Value>,
    masks: &[Value],
) -> Composed<Attended> {
    let HeadsFirst { query, key, value } = values;
    let key = operands.repeated(key, &operands.keys);
    let value = operands.repeated(value, &operands.values);
    let scores = masked_scores(call, [&query, &key], shift, masks)?;
    let last = vec![
        ("axes", OperatorAttribute::Ints(vec![-1])),
        ("keepdims", OperatorAttribute::Int(1)),
    ];
    let maximum = call.node_with("ReduceMax", &[&scores], last, DType::F32);
    // In a fully masked row the difference of two infinities would be NaN.
    let is_masked = maximum.equal(f64::NEG_INFINITY);
    let powers = (&scores - is_masked.choose(0.0, &maximum)).exp();
    let axes = call.constant_ints(&[-1]);
    let keeps_axes = vec![("keepdims", OperatorAttribute::Int(1))];
    let sum = call.node_with("ReduceSum", &[&powers, &axes], keeps_axes, DType::F32);
    // Powers are divided before the product, which keeps its terms within the range of the values.
    let result = (&powers / is_masked.choose(1.0, &sum)).matmul(&value);
    Ok(Attended {
        result,
        maximum,
        sum,
    })
}

/// Stores the result in the axis order of the query.
pub(super) fn write_attended(
    call: &OperatorCall<'_>,
    operands: &Operands<'_>,
    result: &Value,
    out: &TensorArgument,
) -> Composed {
    write_ordered(
        call,
        operands.result_order,
        result,
        out,
        operands.query.dtype,
    )
}

pub(super) fn expect_result(
    call: &OperatorCall<'_>,
    operands: &Operands<'_>,
    out: &TensorArgument,
) -> Composed {
    call.expect_shape(out, &operands.result_order.dims(&operands.result()))?;
    call.expect_dtype(out, is_small_float, SMALL_FLOATS)
}

/// Whether this is a training function, judging by the name of its head count.
fn is_in_training(call: &OperatorCall<'_>) -> bool {
    call.has("headNum")
}

/// Refuses all unsupported features.
pub(super) fn refuse_in_training(call: &OperatorCall<'_>) -> Composed {
    let is_dropping = call
        .optional_tensor("dropMaskOptional")?
        .is_some_and(|tensor| !tensor.is_empty());
    refuse_if!(
        is_dropping || (call.number("keepProb")? - 1.0).abs() > 0.0,
        "dropout is not supported"
    );
    refuse_if!(
        call.optional_tensor("paddingMaskOptional")?.is_some(),
        "`paddingMaskOptional` is not supported"
    );
    refuse_if!(
        call.has("pseType") && !(0..=1).contains(&call.int("pseType")?),
        "`pseType` is neither 0 nor 1; shifts generated by the operator are not supported"
    );
    Ok(())
}

/// The orders with a separate axis for samples.
pub(super) const TRAINED_ORDERS: [AxisOrder; 4] = [
    AxisOrder::Bsh,
    AxisOrder::Sbh,
    AxisOrder::Bsnd,
    AxisOrder::Bnsd,
];

fn train(call: &OperatorCall<'_>, known: &[AxisOrder]) -> Composed {
    let each = ["query", "key", "value"];
    let [query, key, value] = each.map(|name| call.tensor(name));
    let (query, key, value) = (query?, key?, value?);
    let out = call.tensor("attentionOutOut")?;
    let order = AxisOrder::new(call, known)?;
    let heads = call.int("headNum")?;
    let operands = Operands::new(call, [query, key, value], order, heads, None)?;
    refuse_in_training(call)?;
    expect_result(call, &operands, out)?;
    let scores = operands.score_dims();
    let [batch, heads, queries, _] = scores;
    let is_packed = order == AxisOrder::Tnd;
    let samples = trained_samples(call, &operands)?;
    let saved = [
        call.optional_tensor("softmaxMaxOut")?,
        call.optional_tensor("softmaxSumOut")?,
    ];
    let statistics = if is_packed {
        vec![queries, heads, 8]
    } else {
        vec![batch, heads, queries, 8]
    };
    for tensor in saved.into_iter().flatten() {
        call.expect_shape(tensor, &statistics)?;
        call.expect_dtype(tensor, |dtype| dtype == DType::F32, "float32")?;
    }
    if let Some(unused) = call.optional_tensor("softmaxOutOut")? {
        call.fill(unused, ScalarNumber::Int(0))?;
    }
    if operands.is_empty() {
        for tensor in saved.into_iter().flatten().chain([out]) {
            call.fill(tensor, ScalarNumber::Int(0))?;
        }
        return Ok(());
    }
    let sparsity = Sparsity::new(call, "attenMaskOptional", false)?;
    let masks = sparsity.masks(call, &samples, &scores)?;
    let shift = match call.optional_tensor("realShiftOptional")? {
        Some(shift) if !shift.is_empty() => Some(read_shift(call, shift, &samples, &scores)?),
        _ => None,
    };
    let values = operands.read(call, [key, value])?;
    let attended = attend(call, &operands, values, shift.as_ref(), &masks)?;
    write_attended(call, &operands, &attended.result, out)?;
    for (tensor, value) in saved.into_iter().zip([&attended.maximum, &attended.sum]) {
        if let Some(tensor) = tensor {
            // Packed samples have tokens before heads.
            let value = if is_packed {
                let value = turned(call, value, [0, 2, 1, 3]);
                value.reshaped(&[queries, heads, 1])
            } else {
                value.clone()
            };
            // Each number is stored eight times.
            call.write(tensor, value.expanded(&statistics), DType::F32)?;
        }
    }
    Ok(())
}

/// The samples of a training function.
pub(super) fn trained_samples(
    call: &OperatorCall<'_>,
    operands: &Operands<'_>,
) -> Composed<Samples> {
    let [batch, _, queries, keys] = operands.score_dims();
    if operands.order == AxisOrder::Tnd {
        let names = ["actualSeqQLenOptional", "actualSeqKvLenOptional"];
        return packed(call, names, [queries, keys]);
    }
    Ok(Samples::Apart(vec![Sample::alone(queries, keys); batch]))
}

/// The shifts added to the scores.
pub(super) fn read_shift(
    call: &OperatorCall<'_>,
    shift: &TensorArgument,
    samples: &Samples,
    scores: &[usize],
) -> Composed<Value> {
    call.expect_dtype(shift, is_small_float, SMALL_FLOATS)?;
    if matches!(samples, Samples::Packed(_)) {
        let name = call.name(shift);
        return Err(Refusal::invalid(format!(
            "`{name}` is not supported for packed samples"
        )));
    }
    let value = call.read(shift, DType::F32)?;
    let may_be_longer = !is_in_training(call);
    fitted(
        call,
        shift,
        value,
        shift.dims().to_vec(),
        scores,
        may_be_longer,
    )
}

/// Masked scores get this number, so that fully masked rows are uniform.
const MASKED: f64 = -10_000.0;

fn scaled_masked_softmax(call: &OperatorCall<'_>) -> Composed {
    let (x, mask) = (call.tensor("x")?, call.tensor("mask")?);
    let out = call.tensor("y")?;
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    call.expect_dtype(mask, |dtype| dtype == DType::Bool, "bool")?;
    call.expect_like(out, x)?;
    refuse_if!(
        call.flag("fixedTriuMask")?,
        "`fixedTriuMask` is true; expected false"
    );
    refuse_if!(
        x.n_axes() != 4 || x.dims()[3] == 0,
        "`x` has the shape {:?}; expected 4 axes",
        x.dims()
    );
    expect_broadcast(call, mask, mask.dims(), x.dims())?;
    if x.is_empty() {
        return call.fill(out, ScalarNumber::Int(0));
    }
    let scale = call.number_value(ScalarNumber::Float(call.number("scale")?), DType::F32)?;
    let value = call.read(x, DType::F32)?;
    let mask = call.read(mask, DType::Bool)?;
    let scaled = mask.choose(MASKED, &value * &scale);
    let last = vec![("axis", OperatorAttribute::Int(-1))];
    let result = call.node_with("Softmax", &[&scaled], last, DType::F32);
    call.write(out, &result, x.dtype)
}
