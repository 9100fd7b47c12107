//! Attention in training, and what every attention shares.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::activation::{SMALL_FLOATS, is_small_float};
use super::attention_masks::{Sample, Samples, Sparsity, expect_broadcast, fitted, packed};
use super::pooling::expect_room;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of attention.
#[macro_export]
macro_rules! aclnn_attention {
    ($rows:ident) => {
        $rows! { "attention";
            aclnnFlashAttentionScore = FlashAttentionScore("aclnn_flash_attention_score.h", "softmax(scaleValue * (query @ key^T + realShiftOptional)) @ value, without what attenMaskOptional masks; sparse modes 0 to 6, without dropout") by attention_in_training
                (query: Tensor, key: Tensor, value: Tensor, realShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, prefixOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, softmaxMaxOut: OptionalOut, softmaxSumOut: OptionalOut, softmaxOutOut: OptionalOut, attentionOutOut: Out);
            aclnnFlashAttentionScoreV2 = FlashAttentionScore("aclnn_flash_attention_score.h", "as aclnnFlashAttentionScore; with pseType 0 realShiftOptional is added after the scale, with 1 before it") by attention_in_training
                (query: Tensor, key: Tensor, value: Tensor, realShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, prefixOptional: OptionalIntArray, qStartIdxOptional: OptionalIntArray, kvStartIdxOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, pseType: Int, softmaxMaxOut: OptionalOut, softmaxSumOut: OptionalOut, softmaxOutOut: OptionalOut, attentionOutOut: Out);
            aclnnFlashAttentionVarLenScore = FlashAttentionScore("aclnn_flash_attention_score.h", "as aclnnFlashAttentionScore, of samples that lie one after the other and end at the numbers of actualSeqQLenOptional and actualSeqKvLenOptional; sparse modes 0 to 4") by attention_of_packed
                (query: Tensor, key: Tensor, value: Tensor, realShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, prefixOptional: OptionalIntArray, actualSeqQLenOptional: OptionalIntArray, actualSeqKvLenOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, softmaxMaxOut: OptionalOut, softmaxSumOut: OptionalOut, softmaxOutOut: OptionalOut, attentionOutOut: Out);
            aclnnFlashAttentionVarLenScoreV2 = FlashAttentionScore("aclnn_flash_attention_score.h", "as aclnnFlashAttentionVarLenScore") by attention_of_packed
                (query: Tensor, key: Tensor, value: Tensor, realShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, prefixOptional: OptionalIntArray, actualSeqQLenOptional: OptionalIntArray, actualSeqKvLenOptional: OptionalIntArray, qStartIdxOptional: OptionalIntArray, kvStartIdxOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, pseType: Int, softmaxMaxOut: OptionalOut, softmaxSumOut: OptionalOut, softmaxOutOut: OptionalOut, attentionOutOut: Out);
            aclnnScaledMaskedSoftmax = ScaledMaskedSoftmaxV2("aclnn_scaled_masked_softmax.h", "softmax(scale * x) along the last axis, with -10000 where mask is true") by scaled_masked_softmax
                (x: Tensor, mask: Tensor, scale: Double, fixedTriuMask: Flag, y: Out);
        }
    };
}
aclnn_attention!(operator_rows);

pub(super) fn turned(call: &mut OperatorCall<'_>, x: &Value, order: [i64; 4]) -> Value {
    let order = vec![("perm", OperatorAttribute::Ints(order.to_vec()))];
    call.node_with("Transpose", &[x], order, x.dtype)
}

/// The order of the axes of query, key and value: batch, tokens, heads and elements of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxisOrder {
    /// Heads and their elements are one axis.
    Bsh,
    /// As [`AxisOrder::Bsh`], with the tokens in front.
    Sbh,
    Bsnd,
    Bnsd,
    /// Tokens of all samples, one sample after the other.
    Tnd,
}

impl AxisOrder {
    pub(super) fn new(call: &OperatorCall<'_>, known: &[AxisOrder]) -> Composed<AxisOrder> {
        let text = call.text("inputLayout")?;
        let found = match text.as_ref() {
            "BSH" | "" => Some(AxisOrder::Bsh),
            "SBH" => Some(AxisOrder::Sbh),
            "BSND" => Some(AxisOrder::Bsnd),
            // The result has another order, which is the caller's to write.
            "BNSD" | "BNSD_BSND" => Some(AxisOrder::Bnsd),
            "TND" => Some(AxisOrder::Tnd),
            _ => None,
        };
        let found = found.filter(|order| known.contains(order));
        found.ok_or_else(|| {
            Refusal::invalid(format!(
                "`inputLayout` is \"{text}\", which is not computed"
            ))
        })
    }

    pub(super) fn sizes(self, x: &TensorArgument, heads: Option<usize>) -> Option<Sizes> {
        let (batch, tokens, heads, width) = match (self, x.dims()) {
            // The number of heads is the program's, as the shape does not tell it.
            (AxisOrder::Bsh, &[b, s, h]) | (AxisOrder::Sbh, &[s, b, h]) => {
                let heads = heads.filter(|&n| n > 0 && h.is_multiple_of(n))?;
                (b, s, heads, h / heads)
            }
            (AxisOrder::Bsnd, &[b, s, n, d]) | (AxisOrder::Bnsd, &[b, n, s, d]) => (b, s, n, d),
            (AxisOrder::Tnd, &[t, n, d]) => (1, t, n, d),
            _ => return None,
        };
        Some(Sizes {
            batch,
            tokens,
            heads,
            width,
        })
    }

    /// The shape of a tensor in this order.
    pub(super) fn dims(self, sizes: &Sizes) -> Vec<usize> {
        let Sizes {
            batch,
            tokens,
            heads,
            width,
        } = *sizes;
        match self {
            AxisOrder::Bsh => vec![batch, tokens, heads * width],
            AxisOrder::Sbh => vec![tokens, batch, heads * width],
            AxisOrder::Bsnd => vec![batch, tokens, heads, width],
            AxisOrder::Bnsd => vec![batch, heads, tokens, width],
            AxisOrder::Tnd => vec![tokens, heads, width],
        }
    }

    /// The axes that batch, heads, tokens and elements have, once heads are an axis.
    pub(super) fn order(self) -> [i64; 4] {
        match self {
            AxisOrder::Bsh | AxisOrder::Bsnd | AxisOrder::Tnd => [0, 2, 1, 3],
            AxisOrder::Sbh => [1, 2, 0, 3],
            AxisOrder::Bnsd => [0, 1, 2, 3],
        }
    }

    /// The way back of [`AxisOrder::order`].
    fn way_back(self) -> [i64; 4] {
        match self {
            AxisOrder::Sbh => [2, 0, 1, 3],
            other => other.order(),
        }
    }

    pub(super) fn split_dims(self, sizes: &Sizes) -> Vec<usize> {
        let Sizes {
            batch,
            tokens,
            heads,
            width,
        } = *sizes;
        match self {
            AxisOrder::Sbh => vec![tokens, batch, heads, width],
            AxisOrder::Bnsd => vec![batch, heads, tokens, width],
            AxisOrder::Bsh | AxisOrder::Bsnd | AxisOrder::Tnd => {
                vec![batch, tokens, heads, width]
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) batch: usize,
    pub(super) tokens: usize,
    pub(super) heads: usize,
    pub(super) width: usize,
}

impl Sizes {
    pub(super) fn is_empty(&self) -> bool {
        [self.batch, self.tokens, self.heads, self.width].contains(&0)
    }
}

/// The operands of an attention.
pub(super) struct Operands<'a> {
    pub(super) query: &'a TensorArgument,
    pub(super) order: AxisOrder,
    /// The order of the result.
    pub(super) result_order: AxisOrder,
    pub(super) queries: Sizes,
    pub(super) keys: Sizes,
    pub(super) values: Sizes,
}

/// Query, key and value with the axes batch, heads, tokens and elements.
pub(super) struct HeadsFirst {
    pub(super) query: Value,
    pub(super) key: Value,
    pub(super) value: Value,
}

pub(super) fn expect_same_types(
    call: &OperatorCall<'_>,
    query: &TensorArgument,
    others: &[&TensorArgument],
) -> Composed {
    call.expect_dtype(query, is_small_float, SMALL_FLOATS)?;
    for tensor in others {
        if tensor.dtype != query.dtype {
            let text = format!("`{}` is {}", call.name(tensor), tensor.dtype);
            return Err(Refusal::invalid(format!(
                "{text}, but `query` {}",
                query.dtype
            )));
        }
    }
    Ok(())
}

impl<'a> Operands<'a> {
    /// `heads` and `key_heads` are numbers of heads; 0 or `None` where they follow from the shapes.
    pub(super) fn new(
        call: &OperatorCall<'_>,
        [query, key, value]: [&'a TensorArgument; 3],
        order: AxisOrder,
        heads: i64,
        key_heads: Option<i64>,
    ) -> Composed<Operands<'a>> {
        expect_same_types(call, query, &[key, value])?;
        let misfit = || {
            Refusal::invalid(format!(
                "query, key and value of the shapes {:?}, {:?} and {:?} do not fit together with \
                 {heads} heads",
                query.dims(),
                key.dims(),
                value.dims()
            ))
        };
        let queries = query_sizes(query, order, heads).ok_or_else(misfit)?;
        let key_heads = match key_heads {
            Some(0) => Some(queries.heads),
            Some(n) => usize::try_from(n).ok(),
            // As many as have the width of the query's.
            None => key.dims().last().map(|h| h / queries.width.max(1)),
        };
        let keys = order.sizes(key, key_heads).ok_or_else(misfit)?;
        let values = order.sizes(value, Some(keys.heads)).ok_or_else(misfit)?;
        Operands::of_sizes(query, order, [queries, keys, values]).ok_or_else(misfit)?
    }

    /// The operands, if their sizes fit together.
    pub(super) fn of_sizes(
        query: &'a TensorArgument,
        order: AxisOrder,
        [queries, keys, values]: [Sizes; 3],
    ) -> Option<Composed<Operands<'a>>> {
        let fits = keys.batch == queries.batch
            && keys.width == queries.width
            && Sizes {
                width: keys.width,
                ..values
            } == keys
            && keys.heads > 0
            && queries.heads.is_multiple_of(keys.heads);
        let operands = Operands {
            query,
            order,
            result_order: order,
            queries,
            keys,
            values,
        };
        fits.then(|| operands.expect_room().map(|()| operands))
    }

    pub(super) fn result(&self) -> Sizes {
        Sizes {
            width: self.values.width,
            ..self.queries
        }
    }

    /// Whether there is memory for scores and repeated keys.
    pub(super) fn expect_room(&self) -> Composed {
        expect_room(self.score_dims())?;
        let [batch, heads, _, keys] = self.score_dims();
        expect_room([batch, heads, keys, self.keys.width.max(self.values.width)])
    }

    /// Batch, heads, tokens of the query and tokens of the key.
    pub(super) fn score_dims(&self) -> [usize; 4] {
        let Sizes {
            batch,
            tokens,
            heads,
            ..
        } = self.queries;
        [batch, heads, tokens, self.keys.tokens]
    }

    /// The operands as they are given.
    pub(super) fn read(
        &self,
        call: &mut OperatorCall<'_>,
        [key, value]: [&TensorArgument; 2],
    ) -> Composed<HeadsFirst> {
        // Every order of the axes becomes one, so that the rest is the same for all of them.
        Ok(HeadsFirst {
            query: heads_first(call, self.query, self.order, &self.queries)?,
            key: heads_first(call, key, self.order, &self.keys)?,
            value: heads_first(call, value, self.order, &self.values)?,
        })
    }

    /// A value whose heads are repeated until there are as many as the query has.
    pub(super) fn repeated(
        &self,
        call: &mut OperatorCall<'_>,
        value: Value,
        sizes: &Sizes,
    ) -> Composed<Value> {
        // Groups of query heads share a head of the key; neighbours do.
        let n = self.queries.heads / sizes.heads;
        if n == 1 {
            return Ok(value);
        }
        let (batch, heads, tokens, width) = (sizes.batch, sizes.heads, sizes.tokens, sizes.width);
        let value = call.reshaped(&value, &[batch, heads, 1, tokens, width])?;
        let dims = call.constant_dims(&[batch, heads, n, tokens, width])?;
        let value = call.node("Expand", &[&value, &dims], DType::F32);
        call.reshaped(&value, &[batch, heads * n, tokens, width])
    }

    pub(super) fn is_empty(&self) -> bool {
        let each = [self.queries, self.keys, self.values];
        each.iter().any(Sizes::is_empty)
    }
}

/// The sizes of a query with this number of heads.
pub(super) fn query_sizes(query: &TensorArgument, order: AxisOrder, heads: i64) -> Option<Sizes> {
    let heads = usize::try_from(heads).ok().filter(|&n| n > 0);
    let sizes = order.sizes(query, heads)?;
    (Some(sizes.heads) == heads).then_some(sizes)
}

/// A tensor with the axes batch, heads, tokens and elements.
pub(super) fn heads_first(
    call: &mut OperatorCall<'_>,
    x: &TensorArgument,
    order: AxisOrder,
    sizes: &Sizes,
) -> Composed<Value> {
    let value = call.read(x, DType::F32)?;
    let value = call.reshaped(&value, &order.split_dims(sizes))?;
    Ok(turned(call, &value, order.order()))
}

/// The result of an attention, with the axes batch, heads, tokens and elements, and the maximum and
/// the sum of each row of scores.
pub(super) struct Attended {
    pub(super) result: Value,
    pub(super) maximum: Value,
    pub(super) sum: Value,
}

/// The scores of queries and as many heads of keys, -infinity where a mask leaves them out.
pub(super) fn masked_scores(
    call: &mut OperatorCall<'_>,
    [query, key]: [&Value; 2],
    shift: Option<&Value>,
    masks: &[Value],
) -> Composed<Value> {
    let key = turned(call, key, [0, 1, 3, 2]);
    let mut scores = call.node("MatMul", &[query, &key], DType::F32);
    let scale = call.number_value(ScalarNumber::Float(call.number("scaleValue")?), DType::F32)?;
    // The older function of training adds before it scales, which is one of two ways of the newer
    // one; functions for inference scale first.
    let adds_first = if call.has("pseType") {
        call.int("pseType")? == 1
    } else {
        is_in_training(call)
    };
    if let Some(shift) = shift.filter(|_| adds_first) {
        scores = call.node("Add", &[&scores, shift], DType::F32);
    }
    scores = call.node("Mul", &[&scores, &scale], DType::F32);
    if let Some(shift) = shift.filter(|_| !adds_first) {
        scores = call.node("Add", &[&scores, shift], DType::F32);
    }
    // Whatever is masked gets a weight of exactly 0, not one that is small.
    let lowest = call.constant(f64::NEG_INFINITY, DType::F32)?;
    for mask in masks {
        scores = call.node("Where", &[mask, &lowest, &scores], DType::F32);
    }
    Ok(scores)
}

/// Rows of which everything is masked give 0.
pub(super) fn attend(
    call: &mut OperatorCall<'_>,
    operands: &Operands<'_>,
    values: HeadsFirst,
    shift: Option<&Value>,
    masks: &[Value],
) -> Composed<Attended> {
    let HeadsFirst { query, key, value } = values;
    let key = operands.repeated(call, key, &operands.keys)?;
    let value = operands.repeated(call, value, &operands.values)?;
    let scores = masked_scores(call, [&query, &key], shift, masks)?;
    let lowest = call.constant(f64::NEG_INFINITY, DType::F32)?;
    let (zero, one) = (
        call.constant(0.0, DType::F32)?,
        call.constant(1.0, DType::F32)?,
    );
    let last = vec![
        ("axes", OperatorAttribute::Ints(vec![-1])),
        ("keepdims", OperatorAttribute::Int(1)),
    ];
    let maximum = call.node_with("ReduceMax", &[&scores], last, DType::F32);
    // The difference of two infinities would be NaN, where nothing is seen.
    let is_masked = call.node("Equal", &[&maximum, &lowest], DType::Bool);
    let base = call.node("Where", &[&is_masked, &zero, &maximum], DType::F32);
    let scores = call.node("Sub", &[&scores, &base], DType::F32);
    let powers = call.node("Exp", &[&scores], DType::F32);
    let axes = call.constant_ints(&[-1])?;
    let keeps_axes = vec![("keepdims", OperatorAttribute::Int(1))];
    let sum = call.node_with("ReduceSum", &[&powers, &axes], keeps_axes, DType::F32);
    let divisor = call.node("Where", &[&is_masked, &one, &sum], DType::F32);
    // Powers are divided before the product, which keeps its terms within the values.
    let weights = call.node("Div", &[&powers, &divisor], DType::F32);
    let result = call.node("MatMul", &[&weights, &value], DType::F32);
    Ok(Attended {
        result,
        maximum,
        sum,
    })
}

/// Stores the result in the order of the axes of the query.
pub(super) fn write_attended(
    call: &mut OperatorCall<'_>,
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

/// Stores a value with the axes batch, heads, tokens and elements in this order.
pub(super) fn write_ordered(
    call: &mut OperatorCall<'_>,
    order: AxisOrder,
    value: &Value,
    out: &TensorArgument,
    dtype: DType,
) -> Composed {
    let value = turned(call, value, order.way_back());
    let value = call.reshaped(&value, out.dims())?;
    call.write(out, &value, dtype);
    Ok(())
}

pub(super) fn expect_result(
    call: &OperatorCall<'_>,
    operands: &Operands<'_>,
    out: &TensorArgument,
) -> Composed {
    call.expect_shape(out, &operands.result_order.dims(&operands.result()))?;
    call.expect_dtype(out, is_small_float, SMALL_FLOATS)
}

/// Whether the function is one of training, by the name of its number of heads.
fn is_in_training(call: &OperatorCall<'_>) -> bool {
    call.has("headNum")
}

/// Refuses all that is asked for and not computed.
pub(super) fn refuse_in_training(call: &OperatorCall<'_>) -> Composed {
    let is_dropping = call
        .optional_tensor("dropMaskOptional")?
        .is_some_and(|one| !one.is_empty());
    if is_dropping || (call.number("keepProb")? - 1.0).abs() > 0.0 {
        return Err(Refusal::invalid(
            "dropout is asked for, which is not computed",
        ));
    }
    if call.optional_tensor("paddingMaskOptional")?.is_some() {
        let text = "`paddingMaskOptional` is given, which is not computed";
        return Err(Refusal::invalid(text));
    }
    if call.has("pseType") && !(0..=1).contains(&call.int("pseType")?) {
        let text = "`pseType` is neither 0 nor 1; shifts that the operator makes are not computed";
        return Err(Refusal::invalid(text));
    }
    Ok(())
}

/// The orders in which samples have an axis of their own.
pub(super) const TRAINED_ORDERS: [AxisOrder; 4] = [
    AxisOrder::Bsh,
    AxisOrder::Sbh,
    AxisOrder::Bsnd,
    AxisOrder::Bnsd,
];

fn attention_in_training(call: &mut OperatorCall<'_>) -> Composed {
    train(call, &TRAINED_ORDERS)
}

fn attention_of_packed(call: &mut OperatorCall<'_>) -> Composed {
    train(call, &[AxisOrder::Tnd])
}

fn train(call: &mut OperatorCall<'_>, known: &[AxisOrder]) -> Composed {
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
        call.fill(unused, ScalarNumber::Int(0));
    }
    if operands.is_empty() {
        for tensor in saved.into_iter().flatten().chain([out]) {
            call.fill(tensor, ScalarNumber::Int(0));
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
    let statistics = call.constant_dims(&statistics)?;
    for (tensor, value) in saved.into_iter().zip([&attended.maximum, &attended.sum]) {
        if let Some(tensor) = tensor {
            // Tokens come before heads where samples are packed.
            let value = if is_packed {
                let value = turned(call, value, [0, 2, 1, 3]);
                call.reshaped(&value, &[queries, heads, 1])?
            } else {
                value.clone()
            };
            // Each number stands there eight times.
            let value = call.node("Expand", &[&value, &statistics], DType::F32);
            call.write(tensor, &value, DType::F32);
        }
    }
    Ok(())
}

/// The samples of a function of training.
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

/// The numbers that are added to the scores.
pub(super) fn read_shift(
    call: &mut OperatorCall<'_>,
    shift: &TensorArgument,
    samples: &Samples,
    scores: &[usize],
) -> Composed<Value> {
    call.expect_dtype(shift, is_small_float, SMALL_FLOATS)?;
    if matches!(samples, Samples::Packed(_)) {
        let name = call.name(shift);
        return Err(Refusal::invalid(format!(
            "`{name}` is given for samples that lie one after the other, which is not computed"
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

/// Scores that are masked get this number, so that rows that are masked as a whole are uniform.
const MASKED: f64 = -10_000.0;

fn scaled_masked_softmax(call: &mut OperatorCall<'_>) -> Composed {
    let (x, mask) = (call.tensor("x")?, call.tensor("mask")?);
    let out = call.tensor("y")?;
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    call.expect_dtype(mask, |dtype| dtype == DType::Bool, "bool")?;
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, x.dtype)?;
    if call.flag("fixedTriuMask")? {
        return Err(Refusal::invalid("`fixedTriuMask` is true; expected false"));
    }
    if x.n_axes() != 4 || x.dims()[3] == 0 {
        let text = format!("`x` has the shape {:?}; expected 4 axes", x.dims());
        return Err(Refusal::invalid(text));
    }
    expect_broadcast(call, mask, mask.dims(), x.dims())?;
    if x.is_empty() {
        call.fill(out, ScalarNumber::Int(0));
        return Ok(());
    }
    let scale = call.number_value(ScalarNumber::Float(call.number("scale")?), DType::F32)?;
    let value = call.read(x, DType::F32)?;
    let mask = call.read(mask, DType::Bool)?;
    let masked = call.constant(MASKED, DType::F32)?;
    let scaled = call.node("Mul", &[&value, &scale], DType::F32);
    let scaled = call.node("Where", &[&mask, &masked, &scaled], DType::F32);
    let last = vec![("axis", OperatorAttribute::Int(-1))];
    let result = call.node_with("Softmax", &[&scaled], last, DType::F32);
    call.write(out, &result, x.dtype);
    Ok(())
}
