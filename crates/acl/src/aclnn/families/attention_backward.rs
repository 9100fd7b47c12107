//! Gradients of attention.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::activation::{SMALL_FLOATS, is_small_float};
use super::attention::{
    TRAINED_ORDERS, masked_scores, read_shift, refuse_in_training, trained_samples,
};
use super::attention_masks::Sparsity;
use super::attention_operands::{
    AxisOrder, Operands, Sizes, expect_same_types, heads_first, turned, write_ordered,
};
use super::movement::sliced;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of gradients of attention.
#[macro_export]
macro_rules! aclnn_attention_backward {
    ($rows:ident) => {
        $rows! { "gradients of attention";
            FlashAttentionScoreGrad("aclnn_flash_attention_score_grad.h", "the gradients of aclnnFlashAttentionScore for query, keyIn and value; dy is that of its result, of which softmaxMaxOptional, softmaxSumOptional and attentionInOptional are read if they are given") by backward(&TRAINED_ORDERS):
                aclnnFlashAttentionScoreGrad(query: Tensor, keyIn: Tensor, value: Tensor, dy: Tensor, pseShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, softmaxMaxOptional: OptionalTensor, softmaxSumOptional: OptionalTensor, softmaxInOptional: OptionalTensor, attentionInOptional: OptionalTensor, prefixOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, dqOut: Out, dkOut: Out, dvOut: Out, dpseOut: OptionalOut);
            FlashAttentionScoreGrad("aclnn_flash_attention_score_grad.h", "the gradients of aclnnFlashAttentionScoreV2") by backward(&TRAINED_ORDERS):
                aclnnFlashAttentionScoreGradV2(query: Tensor, keyIn: Tensor, value: Tensor, dy: Tensor, pseShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, softmaxMaxOptional: OptionalTensor, softmaxSumOptional: OptionalTensor, softmaxInOptional: OptionalTensor, attentionInOptional: OptionalTensor, prefixOptional: OptionalIntArray, qStartIdxOptional: OptionalIntArray, kvStartIdxOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, pseType: Int, dqOut: Out, dkOut: Out, dvOut: Out, dpseOut: OptionalOut);
            FlashAttentionScoreGrad("aclnn_flash_attention_score_grad.h", "the gradients of aclnnFlashAttentionVarLenScore") by backward(&[AxisOrder::Tnd]):
                aclnnFlashAttentionUnpaddingScoreGrad(query: Tensor, keyIn: Tensor, value: Tensor, dy: Tensor, pseShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, softmaxMaxOptional: OptionalTensor, softmaxSumOptional: OptionalTensor, softmaxInOptional: OptionalTensor, attentionInOptional: OptionalTensor, prefixOptional: OptionalIntArray, actualSeqQLenOptional: OptionalIntArray, actualSeqKvLenOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, dqOut: Out, dkOut: Out, dvOut: Out, dpseOut: OptionalOut);
        }
    };
}
aclnn_attention_backward!(operator_rows);

fn backward(call: &OperatorCall<'_>, known: &[AxisOrder]) -> Composed {
    let (query, key) = (call.tensor("query")?, call.tensor("keyIn")?);
    let (value, dy) = (call.tensor("value")?, call.tensor("dy")?);
    let order = AxisOrder::new(call, known)?;
    let heads = call.int("headNum")?;
    let operands = Operands::new(call, [query, key, value], order, heads, None)?;
    refuse_in_training(call)?;
    expect_same_types(call, query, &[dy])?;
    call.expect_shape(dy, &order.dims(&operands.result()))?;
    let names = ["dqOut", "dkOut", "dvOut"];
    let outs = [
        call.tensor(names[0])?,
        call.tensor(names[1])?,
        call.tensor(names[2])?,
    ];
    for (out, tensor) in outs.into_iter().zip([query, key, value]) {
        call.expect_shape(out, tensor.dims())?;
        call.expect_dtype(out, is_small_float, SMALL_FLOATS)?;
    }
    if let Some(unused) = call.optional_tensor("dpseOut")? {
        call.fill(unused, ScalarNumber::Int(0))?;
    }
    let samples = trained_samples(call, &operands)?;
    if operands.is_empty() {
        for out in outs {
            call.fill(out, ScalarNumber::Int(0))?;
        }
        return Ok(());
    }
    let sparsity = Sparsity::new(call, "attenMaskOptional", false)?;
    let scores = operands.score_dims();
    let masks = sparsity.masks(call, &samples, &scores)?;
    let shift = match call.optional_tensor("pseShiftOptional")? {
        Some(shift) if !shift.is_empty() => Some(read_shift(call, shift, &samples, &scores)?),
        _ => None,
    };
    let values = operands.read(call, [key, value])?;
    // Shared heads are repeated for the products; `gathered` sums their gradients below.
    let key = operands.repeated(values.key, &operands.keys);
    let value = operands.repeated(values.value, &operands.values);
    let scores = masked_scores(call, [&values.query, &key], shift.as_ref(), &masks)?;
    let weights = weights(call, &operands, &scores)?;
    let dy = heads_first(call, dy, order, &operands.result())?;
    let slopes = slopes(call, &operands, &weights, [&dy, &value])?;
    let dq = slopes.matmul(&key);
    // The products run the other way: over queries for keys and values.
    let across = turned(call, &slopes, [0, 1, 3, 2]);
    let dk = across.matmul(&values.query);
    let dk = gathered(call, &dk, &operands, &operands.keys)?;
    let across = turned(call, &weights, [0, 1, 3, 2]);
    let dv = across.matmul(&dy);
    let dv = gathered(call, &dv, &operands, &operands.values)?;
    for (out, result) in outs.into_iter().zip([dq, dk, dv]) {
        write_ordered(call, order, &result, out, query.dtype)?;
    }
    Ok(())
}

/// A statistic of each row, which the forward operator stored eight times, for each query of each
/// head.
fn statistic(
    call: &OperatorCall<'_>,
    operands: &Operands<'_>,
    name: &str,
) -> Composed<Option<Value>> {
    let Some(tensor) = call
        .optional_tensor(name)?
        .filter(|tensor| !tensor.is_empty())
    else {
        return Ok(None);
    };
    let [batch, heads, queries, _] = operands.score_dims();
    let is_packed = operands.order == AxisOrder::Tnd;
    let dims = if is_packed {
        vec![queries, heads, 8]
    } else {
        vec![batch, heads, queries, 8]
    };
    call.expect_shape(tensor, &dims)?;
    call.expect_dtype(tensor, |dtype| dtype == DType::F32, "float32")?;
    let value = call.read(tensor, DType::F32)?;
    let value = sliced(call, &value, dims.len() - 1, [0, 1, 1]);
    if !is_packed {
        return Ok(Some(value));
    }
    let value = value.reshaped(&[1, queries, heads, 1]);
    Ok(Some(turned(call, &value, [0, 2, 1, 3])))
}

/// The forward operator's weights.
fn weights(call: &OperatorCall<'_>, operands: &Operands<'_>, scores: &Value) -> Composed<Value> {
    let maximum = match statistic(call, operands, "softmaxMaxOptional")? {
        Some(maximum) => maximum,
        None => {
            let last = vec![
                ("axes", OperatorAttribute::Ints(vec![-1])),
                ("keepdims", OperatorAttribute::Int(1)),
            ];
            call.node_with("ReduceMax", &[scores], last, DType::F32)
        }
    };
    // In a fully masked row the difference of two infinities would be NaN.
    let is_masked = maximum.equal(f64::NEG_INFINITY);
    let powers = (scores - is_masked.choose(0.0, &maximum)).exp();
    let sum = match statistic(call, operands, "softmaxSumOptional")? {
        Some(sum) => sum,
        None => row_sums(call, &powers),
    };
    Ok(&powers / is_masked.choose(1.0, &sum))
}

fn row_sums(call: &OperatorCall<'_>, x: &Value) -> Value {
    let last = call.constant_ints(&[-1]);
    let keeps_axes = vec![("keepdims", OperatorAttribute::Int(1))];
    call.node_with("ReduceSum", &[x, &last], keeps_axes, DType::F32)
}

/// The gradient of the products of queries and keys.
fn slopes(
    call: &OperatorCall<'_>,
    operands: &Operands<'_>,
    weights: &Value,
    [dy, value]: [&Value; 2],
) -> Composed<Value> {
    let value = turned(call, value, [0, 1, 3, 2]);
    let by_weight = dy.matmul(&value);
    // The common term of a row is the sum over its weights, or equally over its result.
    let terms = match call.optional_tensor("attentionInOptional")? {
        Some(result) if !result.is_empty() => {
            expect_result(call, operands, result)?;
            let result = heads_first(call, result, operands.order, &operands.result())?;
            dy * &result
        }
        _ => weights * &by_weight,
    };
    let common = row_sums(call, &terms);
    // The products are scaled in both orders of shift and scale.
    let scale = call.number_value(ScalarNumber::Float(call.number("scaleValue")?), DType::F32)?;
    Ok(weights * (&by_weight - &common) * &scale)
}

fn expect_result(
    call: &OperatorCall<'_>,
    operands: &Operands<'_>,
    result: &TensorArgument,
) -> Composed {
    expect_same_types(call, operands.query, &[result])?;
    call.expect_shape(result, &operands.order.dims(&operands.result()))
}

/// The sum over the query heads that share a key head.
fn gathered(
    call: &OperatorCall<'_>,
    x: &Value,
    operands: &Operands<'_>,
    sizes: &Sizes,
) -> Composed<Value> {
    let n = operands
        .queries
        .heads
        .checked_div(sizes.heads)
        .ok_or_else(|| Refusal::invalid("keys have no heads"))?;
    if n == 1 {
        return Ok(x.clone());
    }
    let x = x.reshaped(&[sizes.batch, sizes.heads, n, sizes.tokens, sizes.width]);
    let axis = call.constant_ints(&[2]);
    let drops_axes = vec![("keepdims", OperatorAttribute::Int(0))];
    Ok(call.node_with("ReduceSum", &[&x, &axis], drops_axes, DType::F32))
}
