//! Attention in training, and what every attention shares.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::{DType, Shape, Tensor};

use super::activation::{SMALL_FLOATS, is_small_float};
use super::pooling::expect_room;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::broadcast;

/// Calls a macro with the rows of attention.
#[macro_export]
macro_rules! aclnn_attention {
    ($rows:ident) => {
        $rows! { "attention";
            aclnnFlashAttentionScore = FlashAttentionScore("aclnn_flash_attention_score.h", "softmax(scaleValue * (query @ key^T + realShiftOptional)) @ value, without what attenMaskOptional masks; sparse modes 0 to 3, without dropout") by attention_in_training
                (query: Tensor, key: Tensor, value: Tensor, realShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, prefixOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, softmaxMaxOut: OptionalOut, softmaxSumOut: OptionalOut, softmaxOutOut: OptionalOut, attentionOutOut: Out);
            aclnnFlashAttentionScoreV2 = FlashAttentionScore("aclnn_flash_attention_score.h", "as aclnnFlashAttentionScore; with pseType 0 realShiftOptional is added after the scale, with 1 before it") by attention_in_training
                (query: Tensor, key: Tensor, value: Tensor, realShiftOptional: OptionalTensor, dropMaskOptional: OptionalTensor, paddingMaskOptional: OptionalTensor, attenMaskOptional: OptionalTensor, prefixOptional: OptionalIntArray, qStartIdxOptional: OptionalIntArray, kvStartIdxOptional: OptionalIntArray, scaleValue: Double, keepProb: Double, preTokens: Int, nextTokens: Int, headNum: Int, inputLayout: Text, innerPrecise: Int, sparseMode: Int, pseType: Int, softmaxMaxOut: OptionalOut, softmaxSumOut: OptionalOut, softmaxOutOut: OptionalOut, attentionOutOut: Out);
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
}

impl AxisOrder {
    pub(super) fn new(call: &OperatorCall<'_>, known: &[AxisOrder]) -> Composed<AxisOrder> {
        let text = call.text("inputLayout")?;
        let found = match text.as_ref() {
            "BSH" | "" => Some(AxisOrder::Bsh),
            "SBH" => Some(AxisOrder::Sbh),
            "BSND" => Some(AxisOrder::Bsnd),
            "BNSD" => Some(AxisOrder::Bnsd),
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
        }
    }

    /// The axes that batch, heads, tokens and elements have, once heads are an axis.
    pub(super) fn order(self) -> [i64; 4] {
        match self {
            AxisOrder::Bsh | AxisOrder::Bsnd => [0, 2, 1, 3],
            AxisOrder::Sbh => [1, 2, 0, 3],
            AxisOrder::Bnsd => [0, 1, 2, 3],
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
            AxisOrder::Bsh | AxisOrder::Bsnd => vec![batch, tokens, heads, width],
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

/// The operands of an attention.
pub(super) struct Operands<'a> {
    pub(super) query: &'a TensorArgument,
    pub(super) key: &'a TensorArgument,
    pub(super) value: &'a TensorArgument,
    pub(super) order: AxisOrder,
    pub(super) queries: Sizes,
    pub(super) keys: Sizes,
    pub(super) values: Sizes,
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
        for tensor in [query, key, value] {
            call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?;
            if tensor.dtype != query.dtype {
                let text = format!("`{}` is {}", call.name(tensor), tensor.dtype);
                return Err(Refusal::invalid(format!(
                    "{text}, but `query` {}",
                    query.dtype
                )));
            }
        }
        let misfit = || {
            Refusal::invalid(format!(
                "query, key and value of the shapes {:?}, {:?} and {:?} do not fit together with \
                 {heads} heads",
                query.dims(),
                key.dims(),
                value.dims()
            ))
        };
        let heads = usize::try_from(heads).ok().filter(|&n| n > 0);
        let queries = order.sizes(query, heads).ok_or_else(misfit)?;
        let key_heads = match key_heads {
            Some(0) => Some(queries.heads),
            Some(n) => usize::try_from(n).ok(),
            // As many as have the width of the query's.
            None => key.dims().last().map(|h| h / queries.width.max(1)),
        };
        let keys = order.sizes(key, key_heads).ok_or_else(misfit)?;
        let values = order.sizes(value, Some(keys.heads)).ok_or_else(misfit)?;
        let fits = Some(queries.heads) == heads
            && keys.batch == queries.batch
            && keys.width == queries.width
            && Sizes {
                width: keys.width,
                ..values
            } == keys
            && keys.heads > 0
            && queries.heads.is_multiple_of(keys.heads);
        if !fits {
            return Err(misfit());
        }
        let operands = Operands {
            query,
            key,
            value,
            order,
            queries,
            keys,
            values,
        };
        operands.expect_room()?;
        Ok(operands)
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

    /// A tensor with the axes batch, heads, tokens and elements; heads of keys are repeated.
    pub(super) fn heads_first(
        &self,
        call: &mut OperatorCall<'_>,
        x: &TensorArgument,
        sizes: &Sizes,
    ) -> Composed<Value> {
        let value = call.read(x, DType::F32)?;
        let value = call.reshaped(&value, &self.order.split_dims(sizes))?;
        let value = turned(call, &value, self.order.order());
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
        self.query.is_empty() || self.key.is_empty() || self.value.is_empty()
    }
}

/// The result of an attention, with the axes batch, heads, tokens and elements, and the maximum and
/// the sum of each row of scores.
pub(super) struct Attended {
    pub(super) result: Value,
    pub(super) maximum: Value,
    pub(super) sum: Value,
}

/// Rows of which everything is masked give 0.
pub(super) fn attend(
    call: &mut OperatorCall<'_>,
    operands: &Operands<'_>,
    shift: Option<&Value>,
    masks: &[Value],
) -> Composed<Attended> {
    // Every order of the axes becomes one, so that the rest is the same for all of them.
    let query = operands.heads_first(call, operands.query, &operands.queries)?;
    let key = operands.heads_first(call, operands.key, &operands.keys)?;
    let value = operands.heads_first(call, operands.value, &operands.values)?;
    let key = turned(call, &key, [0, 1, 3, 2]);
    let mut scores = call.node("MatMul", &[&query, &key], DType::F32);
    let scale = call.number_value(ScalarNumber::Float(call.number("scaleValue")?), DType::F32)?;
    // The older function adds before it scales, which is one of two ways of the newer one.
    let adds_first = !call.has("pseType") || call.int("pseType")? == 1;
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
    // The way back of the order that heads were brought in front with.
    let back = match operands.order {
        AxisOrder::Bsh | AxisOrder::Bsnd => [0, 2, 1, 3],
        AxisOrder::Sbh => [2, 0, 1, 3],
        AxisOrder::Bnsd => [0, 1, 2, 3],
    };
    let result = turned(call, result, back);
    let result = call.reshaped(&result, out.dims())?;
    call.write(out, &result, operands.query.dtype);
    Ok(())
}

pub(super) fn expect_result(
    call: &OperatorCall<'_>,
    operands: &Operands<'_>,
    out: &TensorArgument,
) -> Composed {
    call.expect_shape(out, &operands.order.dims(&operands.result()))?;
    call.expect_dtype(out, is_small_float, SMALL_FLOATS)
}

pub(super) fn is_mask(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::U8 | DType::I8)
}

/// A mask of scores: elements other than 0 are left out. Of three axes the first is the batch.
pub(super) fn read_mask(
    call: &mut OperatorCall<'_>,
    mask: &TensorArgument,
    scores: &[usize],
) -> Composed<Value> {
    call.expect_dtype(mask, is_mask, "bool, uint8 or int8")?;
    let mut dims = mask.dims().to_vec();
    if let &[batch, queries, keys] = mask.dims() {
        dims = vec![batch, 1, queries, keys];
    }
    expect_broadcast(call, mask, &dims, scores)?;
    let value = call.read(mask, DType::Bool)?;
    call.reshaped(&value, &dims)
}

pub(super) fn expect_broadcast(
    call: &OperatorCall<'_>,
    tensor: &TensorArgument,
    dims: &[usize],
    whole: &[usize],
) -> Composed {
    if dims.len() >= 2 && broadcast(dims, whole).is_some_and(|found| found == whole) {
        return Ok(());
    }
    let (name, found) = (call.name(tensor), tensor.dims());
    Err(Refusal::invalid(format!(
        "`{name}` has the shape {found:?}; expected one that broadcasts to {whole:?}"
    )))
}

/// A mask that is made here. `is_left_out` says which keys a query does not see.
fn made_mask(
    call: &mut OperatorCall<'_>,
    dims: &[usize],
    is_left_out: impl Fn(usize, usize) -> bool,
) -> Composed<Value> {
    let &[n, keys] = dims else {
        return Err(Refusal::invalid("scores need two axes"));
    };
    let pairs = (0..n).flat_map(|query| (0..keys).map(move |key| (query, key)));
    let flags = pairs.map(|(query, key)| u8::from(is_left_out(query, key)));
    flag_value(call, flags.collect(), dims.to_vec())
}

pub(super) fn flag_value(
    call: &mut OperatorCall<'_>,
    flags: Vec<u8>,
    dims: Vec<usize>,
) -> Composed<Value> {
    let shape = Shape::new(dims).ok();
    let tensor = shape.and_then(|shape| Tensor::from_vec(DType::Bool, shape, flags).ok());
    let tensor = tensor.ok_or_else(|| Refusal::invalid("the scores are too large"))?;
    Ok(call.tensor_value(tensor))
}

/// Whether a key lies outside the band of keys that a query sees.
fn is_outside(query: usize, key: usize, before: i64, after: i64) -> bool {
    let distance = key.cast_signed() as i64 - query.cast_signed() as i64;
    distance < before.saturating_neg() || distance > after
}

/// Refuses all that is asked for and not computed.
fn refuse_in_training(call: &OperatorCall<'_>) -> Composed {
    let is_dropping = call
        .optional_tensor("dropMaskOptional")?
        .is_some_and(|one| !one.is_empty());
    if is_dropping || (call.number("keepProb")? - 1.0).abs() > 0.0 {
        return Err(Refusal::invalid(
            "dropout is asked for, which is not computed",
        ));
    }
    let is_padded = call.optional_tensor("paddingMaskOptional")?.is_some();
    if is_padded
        || call
            .optional_ints("prefixOptional")?
            .is_some_and(|list| !list.is_empty())
    {
        let text = "`paddingMaskOptional` or `prefixOptional` is given, which is not computed";
        return Err(Refusal::invalid(text));
    }
    if call.has("pseType") && !(0..=1).contains(&call.int("pseType")?) {
        let text = "`pseType` is neither 0 nor 1; shifts that the operator makes are not computed";
        return Err(Refusal::invalid(text));
    }
    Ok(())
}

fn attention_in_training(call: &mut OperatorCall<'_>) -> Composed {
    let each = ["query", "key", "value"];
    let [query, key, value] = each.map(|name| call.tensor(name));
    let out = call.tensor("attentionOutOut")?;
    let known = [
        AxisOrder::Bsh,
        AxisOrder::Sbh,
        AxisOrder::Bsnd,
        AxisOrder::Bnsd,
    ];
    let order = AxisOrder::new(call, &known)?;
    let heads = call.int("headNum")?;
    let operands = Operands::new(call, [query?, key?, value?], order, heads, None)?;
    refuse_in_training(call)?;
    expect_result(call, &operands, out)?;
    let scores = operands.score_dims();
    let saved = [
        call.optional_tensor("softmaxMaxOut")?,
        call.optional_tensor("softmaxSumOut")?,
    ];
    let [batch, heads, queries, _] = scores;
    let statistics = [batch, heads, queries, 8];
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
    let masks = sparse_masks(call, "attenMaskOptional", &scores)?;
    let shift = match call.optional_tensor("realShiftOptional")? {
        Some(shift) if !shift.is_empty() => {
            call.expect_dtype(shift, is_small_float, SMALL_FLOATS)?;
            expect_broadcast(call, shift, shift.dims(), &scores)?;
            Some(call.read(shift, DType::F32)?)
        }
        _ => None,
    };
    let attended = attend(call, &operands, shift.as_ref(), &masks)?;
    write_attended(call, &operands, &attended.result, out)?;
    let statistics = call.constant_dims(&statistics)?;
    for (tensor, value) in saved.into_iter().zip([&attended.maximum, &attended.sum]) {
        if let Some(tensor) = tensor {
            // Each number stands there eight times.
            let value = call.node("Expand", &[value, &statistics], DType::F32);
            call.write(tensor, &value, DType::F32);
        }
    }
    Ok(())
}

/// The side of a mask that stands for a larger one of the same form.
const SMALL_MASK: usize = 2048;

/// The masks of a sparse mode. Without a mask everything is seen.
pub(super) fn sparse_masks(
    call: &mut OperatorCall<'_>,
    name: &str,
    scores: &[usize; 4],
) -> Composed<Vec<Value>> {
    // By the documents modes and bands have no effect without a mask.
    let Some(mask) = call.optional_tensor(name)? else {
        return Ok(Vec::new());
    };
    if mask.is_empty() {
        return Ok(Vec::new());
    }
    let [_, _, queries, keys] = *scores;
    let mode = if call.has("sparseMode") {
        call.int("sparseMode")?
    } else {
        0
    };
    match mode {
        0 => {
            // Both have to agree by the documents; where they do not, neither is overruled.
            let (before, after) = (call.int("preTokens")?, call.int("nextTokens")?);
            let mask = read_mask(call, mask, scores)?;
            let band = made_mask(call, &[queries, keys], |query, key| {
                is_outside(query, key, before, after)
            })?;
            Ok(vec![mask, band])
        }
        1 => Ok(vec![read_mask(call, mask, scores)?]),
        2 | 3 => {
            call.expect_dtype(mask, is_mask, "bool, uint8 or int8")?;
            if !mask.dims().ends_with(&[SMALL_MASK, SMALL_MASK]) {
                return Err(Refusal::invalid(format!(
                    "`{name}` has the shape {:?}; expected {SMALL_MASK} by \
                     {SMALL_MASK} for sparse mode {mode}",
                    mask.dims()
                )));
            }
            // Causal masks are long for long texts; the small one stands for all of its form.
            // The last query sees the last key in mode 3, the first one the first key in mode 2.
            let (ahead, behind) = if mode == 3 { (keys, queries) } else { (0, 0) };
            let made = made_mask(call, &[queries, keys], |query, key| {
                key + behind > query + ahead
            })?;
            Ok(vec![made])
        }
        other => Err(Refusal::invalid(format!(
            "`sparseMode` is {other}; modes 0 to 3 are computed"
        ))),
    }
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
