//! Attention in inference, for whole prompts and for single tokens.

use opscope_tensor::DType;

use super::attention::{Attended, attend, expect_result, read_shift, write_attended};
use super::attention_keys::{KeyStore, joined_widths};
use super::attention_masks::{Sample, Samples, Sparsity, lengths_of_ends, packed};
use super::attention_operands::{
    AxisOrder, HeadsFirst, Operands, expect_same_types, heads_first, query_sizes, turned,
};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of attention in inference.
#[macro_export]
macro_rules! aclnn_attention_inference {
    ($rows:ident) => {
        $rows! { "attention in inference";
            PromptFlashAttention("aclnn_prompt_flash_attention.h", "softmax(scaleValue * query @ key^T) @ value, without what attenMask masks; pseShift has no effect") by attention_in_inference():
                aclnnPromptFlashAttention(query: Tensor, key: Tensor, value: Tensor, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, numHeads: Int, scaleValue: Double, preTokens: Int, nextTokens: Int, inputLayout: Text, numKeyValueHeads: Int, attentionOut: Out);
            PromptFlashAttention("aclnn_prompt_flash_attention_v2.h", "as aclnnPromptFlashAttention, of the first actualSeqLengthsKv tokens of key and value; sparse modes 0 to 4, not quantised") by attention_in_inference():
                aclnnPromptFlashAttentionV2(query: Tensor, key: Tensor, value: Tensor, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, actualSeqLengthsKv: OptionalIntArray, deqScale1: OptionalTensor, quantScale1: OptionalTensor, deqScale2: OptionalTensor, quantScale2: OptionalTensor, quantOffset2: OptionalTensor, numHeads: Int, scaleValue: Double, preTokens: Int, nextTokens: Int, inputLayout: Text, numKeyValueHeads: Int, sparseMode: Int, attentionOut: Out);
            PromptFlashAttention("aclnn_prompt_flash_attention_v3.h", "as aclnnPromptFlashAttentionV2; pseShift is added to the scaled products") by attention_in_inference():
                aclnnPromptFlashAttentionV3(query: Tensor, key: Tensor, value: Tensor, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, actualSeqLengthsKv: OptionalIntArray, deqScale1: OptionalTensor, quantScale1: OptionalTensor, deqScale2: OptionalTensor, quantScale2: OptionalTensor, quantOffset2: OptionalTensor, numHeads: Int, scaleValue: Double, preTokens: Int, nextTokens: Int, inputLayout: Text, numKeyValueHeads: Int, sparseMode: Int, innerPrecise: Int, attentionOut: Out);
            IncreFlashAttention("aclnn_incre_flash_attention.h", "softmax(scaleValue * query @ key^T) @ value for one token of each sample, of the first actualSeqLengths tokens of key and value; pseShift has no effect") by attention_of_token():
                aclnnIncreFlashAttention(query: Tensor, key: TensorList, value: TensorList, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, numHeads: Int, scaleValue: Double, inputLayout: Text, numKeyValueHeads: Int, attentionOut: Out);
            IncreFlashAttention("aclnn_incre_flash_attention_v2.h", "as aclnnIncreFlashAttention, not quantised") by attention_of_token():
                aclnnIncreFlashAttentionV2(query: Tensor, key: TensorList, value: TensorList, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, dequantScale1: OptionalTensor, quantScale1: OptionalTensor, dequantScale2: OptionalTensor, quantScale2: OptionalTensor, quantOffset2: OptionalTensor, numHeads: Int, scaleValue: Double, inputLayout: Text, numKeyValueHeads: Int, attentionOut: Out);
            IncreFlashAttention("aclnn_incre_flash_attention_v3.h", "as aclnnIncreFlashAttentionV2; pseShift is added to the scaled products, and with blocktable key and value lie in blocks") by attention_of_token():
                aclnnIncreFlashAttentionV3(query: Tensor, key: TensorList, value: TensorList, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, dequantScale1: OptionalTensor, quantScale1: OptionalTensor, dequantScale2: OptionalTensor, quantScale2: OptionalTensor, quantOffset2: OptionalTensor, antiquantScale: OptionalTensor, antiquantOffset: OptionalTensor, blocktable: OptionalTensor, numHeads: Int, scaleValue: Double, inputLayout: Text, numKeyValueHeads: Int, blockSize: Int, innerPrecise: Int, attentionOut: Out);
            IncreFlashAttention("aclnn_incre_flash_attention_v4.h", "as aclnnIncreFlashAttentionV3") by attention_of_token():
                aclnnIncreFlashAttentionV4(query: Tensor, key: TensorList, value: TensorList, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, dequantScale1: OptionalTensor, quantScale1: OptionalTensor, dequantScale2: OptionalTensor, quantScale2: OptionalTensor, quantOffset2: OptionalTensor, antiquantScale: OptionalTensor, antiquantOffset: OptionalTensor, blocktable: OptionalTensor, kvPaddingSize: OptionalTensor, numHeads: Int, scaleValue: Double, inputLayout: Text, numKeyValueHeads: Int, blockSize: Int, innerPrecise: Int, attentionOut: Out);
            FusedInferAttentionScore("aclnn_fused_infer_attention_score.h", "softmax(scaleValue * query @ key^T + pseShift) @ value, without what attenMask masks, of the first actualSeqLengthsKv tokens of key and value, which may lie in blocks; sparse modes 0 to 4, not quantised") by attention_in_inference():
                aclnnFusedInferAttentionScore(query: Tensor, key: TensorList, value: TensorList, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, actualSeqLengthsKv: OptionalIntArray, deqScale1: OptionalTensor, quantScale1: OptionalTensor, deqScale2: OptionalTensor, quantScale2: OptionalTensor, quantOffset2: OptionalTensor, antiquantScale: OptionalTensor, antiquantOffset: OptionalTensor, blockTable: OptionalTensor, queryPaddingSize: OptionalTensor, kvPaddingSize: OptionalTensor, numHeads: Int, scaleValue: Double, preTokens: Int, nextTokens: Int, inputLayout: Text, numKeyValueHeads: Int, sparseMode: Int, innerPrecise: Int, blockSize: Int, antiquantMode: Int, softmaxLseFlag: Flag, attentionOut: Out, softmaxLse: OptionalOut);
            FusedInferAttentionScore("aclnn_fused_infer_attention_score_v2.h", "as aclnnFusedInferAttentionScore") by attention_in_inference():
                aclnnFusedInferAttentionScoreV2(query: Tensor, key: TensorList, value: TensorList, pseShiftOptional: OptionalTensor, attenMaskOptional: OptionalTensor, actualSeqLengthsOptional: OptionalIntArray, actualSeqLengthsKvOptional: OptionalIntArray, deqScale1Optional: OptionalTensor, quantScale1Optional: OptionalTensor, deqScale2Optional: OptionalTensor, quantScale2Optional: OptionalTensor, quantOffset2Optional: OptionalTensor, antiquantScaleOptional: OptionalTensor, antiquantOffsetOptional: OptionalTensor, blockTableOptional: OptionalTensor, queryPaddingSizeOptional: OptionalTensor, kvPaddingSizeOptional: OptionalTensor, keyAntiquantScaleOptional: OptionalTensor, keyAntiquantOffsetOptional: OptionalTensor, valueAntiquantScaleOptional: OptionalTensor, valueAntiquantOffsetOptional: OptionalTensor, keySharedPrefixOptional: OptionalTensor, valueSharedPrefixOptional: OptionalTensor, actualSharedPrefixLenOptional: OptionalIntArray, numHeads: Int, scaleValue: Double, preTokens: Int, nextTokens: Int, inputLayout: Text, numKeyValueHeads: Int, sparseMode: Int, innerPrecise: Int, blockSize: Int, antiquantMode: Int, softmaxLseFlag: Flag, keyAntiquantMode: Int, valueAntiquantMode: Int, attentionOut: Out, softmaxLse: OptionalOut);
            FusedInferAttentionScore("aclnn_fused_infer_attention_score_v3.h", "as aclnnFusedInferAttentionScore; queryRopeOptional and keyRopeOptional lengthen query and key") by attention_in_inference():
                aclnnFusedInferAttentionScoreV3(query: Tensor, key: TensorList, value: TensorList, pseShiftOptional: OptionalTensor, attenMaskOptional: OptionalTensor, actualSeqLengthsOptional: OptionalIntArray, actualSeqLengthsKvOptional: OptionalIntArray, deqScale1Optional: OptionalTensor, quantScale1Optional: OptionalTensor, deqScale2Optional: OptionalTensor, quantScale2Optional: OptionalTensor, quantOffset2Optional: OptionalTensor, antiquantScaleOptional: OptionalTensor, antiquantOffsetOptional: OptionalTensor, blockTableOptional: OptionalTensor, queryPaddingSizeOptional: OptionalTensor, kvPaddingSizeOptional: OptionalTensor, keyAntiquantScaleOptional: OptionalTensor, keyAntiquantOffsetOptional: OptionalTensor, valueAntiquantScaleOptional: OptionalTensor, valueAntiquantOffsetOptional: OptionalTensor, keySharedPrefixOptional: OptionalTensor, valueSharedPrefixOptional: OptionalTensor, actualSharedPrefixLenOptional: OptionalIntArray, queryRopeOptional: OptionalTensor, keyRopeOptional: OptionalTensor, keyRopeAntiquantScaleOptional: OptionalTensor, numHeads: Int, scaleValue: Double, preTokens: Int, nextTokens: Int, inputLayout: Text, numKeyValueHeads: Int, sparseMode: Int, innerPrecise: Int, blockSize: Int, antiquantMode: Int, softmaxLseFlag: Flag, keyAntiquantMode: Int, valueAntiquantMode: Int, attentionOut: Out, softmaxLse: OptionalOut);
            FusedInferAttentionScore("aclnn_fused_infer_attention_score_v4.h", "as aclnnFusedInferAttentionScoreV3") by attention_in_inference():
                aclnnFusedInferAttentionScoreV4(query: Tensor, key: TensorList, value: TensorList, pseShiftOptional: OptionalTensor, attenMaskOptional: OptionalTensor, actualSeqLengthsOptional: OptionalIntArray, actualSeqLengthsKvOptional: OptionalIntArray, deqScale1Optional: OptionalTensor, quantScale1Optional: OptionalTensor, deqScale2Optional: OptionalTensor, quantScale2Optional: OptionalTensor, quantOffset2Optional: OptionalTensor, antiquantScaleOptional: OptionalTensor, antiquantOffsetOptional: OptionalTensor, blockTableOptional: OptionalTensor, queryPaddingSizeOptional: OptionalTensor, kvPaddingSizeOptional: OptionalTensor, keyAntiquantScaleOptional: OptionalTensor, keyAntiquantOffsetOptional: OptionalTensor, valueAntiquantScaleOptional: OptionalTensor, valueAntiquantOffsetOptional: OptionalTensor, keySharedPrefixOptional: OptionalTensor, valueSharedPrefixOptional: OptionalTensor, actualSharedPrefixLenOptional: OptionalIntArray, queryRopeOptional: OptionalTensor, keyRopeOptional: OptionalTensor, keyRopeAntiquantScaleOptional: OptionalTensor, dequantScaleQueryOptional: OptionalTensor, learnableSinkOptional: OptionalTensor, numHeads: Int, scaleValue: Double, preTokens: Int, nextTokens: Int, inputLayout: Text, numKeyValueHeads: Int, sparseMode: Int, innerPrecise: Int, blockSize: Int, antiquantMode: Int, softmaxLseFlag: Flag, keyAntiquantMode: Int, valueAntiquantMode: Int, queryQuantMode: Int, attentionOut: Out, softmaxLse: OptionalOut);
        }
    };
}
aclnn_attention_inference!(operator_rows);

/// Parameters of inference functions that must be null: quantised dtypes, left padding, shared
/// prefixes and sinks.
const NOT_COMPUTED: &[&str] = &[
    "deqScale1",
    "quantScale1",
    "deqScale2",
    "quantScale2",
    "quantOffset2",
    "dequantScale1",
    "dequantScale2",
    "antiquantScale",
    "antiquantOffset",
    "queryPaddingSize",
    "kvPaddingSize",
    "keyAntiquantScale",
    "keyAntiquantOffset",
    "valueAntiquantScale",
    "valueAntiquantOffset",
    "keySharedPrefix",
    "valueSharedPrefix",
    "keyRopeAntiquantScale",
    "dequantScaleQuery",
    "learnableSink",
];

/// A tensor that the function has, possibly with a longer name in newer functions, and that the
/// call passes.
fn given<'a>(call: &OperatorCall<'a>, name: &str) -> Composed<Option<&'a TensorArgument>> {
    let name = full_name(call, name);
    if !call.has(&name) {
        return Ok(None);
    }
    let tensor = call.optional_tensor(&name)?;
    // The vendor treats empty tensors as absent.
    Ok(tensor.filter(|tensor| !tensor.is_empty()))
}

fn expect_plain(call: &OperatorCall<'_>) -> Composed {
    for name in NOT_COMPUTED {
        if given(call, name)?.is_some() {
            let name = full_name(call, name);
            return Err(Refusal::invalid(format!(
                "`{name}` is not supported; expected a null pointer"
            )));
        }
    }
    Ok(())
}

fn full_name(call: &OperatorCall<'_>, name: &str) -> String {
    let longer = format!("{name}Optional");
    if call.has(&longer) {
        longer
    } else {
        name.to_owned()
    }
}

/// An attention in inference with checked arguments.
struct Inference<'a> {
    operands: Operands<'a>,
    key: KeyStore<'a>,
    value: KeyStore<'a>,
    /// The part that extends each token of query and key.
    rotated: Option<(&'a TensorArgument, KeyStore<'a>)>,
    samples: Samples,
}

impl<'a> Inference<'a> {
    /// `[name of the query lengths, name of the key lengths]`; functions for single tokens only
    /// have the latter.
    fn new(call: &OperatorCall<'a>, names: [Option<&str>; 2]) -> Composed<Inference<'a>> {
        expect_plain(call)?;
        let query = call.tensor("query")?;
        // Only the fused functions support packed samples.
        let mut known = vec![AxisOrder::Bsh, AxisOrder::Bsnd, AxisOrder::Bnsd];
        if call.has("softmaxLseFlag") {
            known.push(AxisOrder::Tnd);
        }
        let order = AxisOrder::new(call, &known)?;
        let heads = call.int("numHeads")?;
        let queries = query_sizes(query, order, heads).ok_or_else(|| {
            let found = query.dims();
            Refusal::invalid(format!("`query` has the shape {found:?} for {heads} heads"))
        })?;
        let key_heads = match call.int("numKeyValueHeads")? {
            0 => queries.heads,
            n => usize::try_from(n).unwrap_or(0),
        };
        let key = KeyStore::new(call, "key", order, &queries, key_heads)?;
        let value = KeyStore::new(call, "value", order, &queries, key_heads)?;
        expect_same_types(call, query, &key.tensors)?;
        expect_same_types(call, query, &value.tensors)?;
        let operands = Operands::of_sizes(query, order, [queries, key.sizes, value.sizes]);
        let mut operands = operands.ok_or_else(|| {
            let (a, b, c) = (query.dims(), key.dims(), value.dims());
            Refusal::invalid(format!(
                "query, key and value of the shapes {a:?}, {b:?} and {c:?} do not fit together \
                 with {heads} and {key_heads} heads"
            ))
        })??;
        if call.text("inputLayout")? == "BNSD_BSND" {
            operands.result_order = AxisOrder::Bsnd;
        }
        expect_result(call, &operands, call.tensor("attentionOut")?)?;
        let rotated = match (given(call, "queryRope")?, given(call, "keyRope")?) {
            (None, None) => None,
            (Some(a), Some(_)) => {
                let store = KeyStore::new(call, "keyRope", order, &queries, key_heads)?;
                expect_same_types(call, query, &[a])?;
                expect_same_types(call, query, &store.tensors)?;
                Some((a, store))
            }
            _ => {
                let text = "only one of `queryRope` and `keyRope` is given";
                return Err(Refusal::invalid(text));
            }
        };
        let samples = samples(call, &operands, &key, names)?;
        Ok(Inference {
            operands,
            key,
            value,
            rotated,
            samples,
        })
    }

    /// Query, key and value as the arguments have them.
    fn read(&self, call: &OperatorCall<'_>) -> Composed<HeadsFirst> {
        let operands = &self.operands;
        let mut query = heads_first(call, operands.query, operands.order, &operands.queries)?;
        let mut key = self.key.read(call, &self.samples)?;
        let value = self.value.read(call, &self.samples)?;
        if let Some((a, store)) = &self.rotated {
            let misfit = || {
                let text = format!("`queryRope` has the shape {:?}", a.dims());
                Refusal::invalid(format!(
                    "{text}, `keyRope` {:?}; which do not fit",
                    store.dims()
                ))
            };
            let heads = operands.queries.heads.cast_signed() as i64;
            let sizes = query_sizes(a, operands.order, heads).ok_or_else(misfit)?;
            let fits = sizes.width == store.sizes.width
                && sizes.tokens == operands.queries.tokens
                && sizes.batch == operands.queries.batch
                && store.sizes.tokens == self.key.sizes.tokens
                && store.sizes.heads == self.key.sizes.heads
                && store.sizes.batch == self.key.sizes.batch;
            if !fits {
                return Err(misfit());
            }
            let more = heads_first(call, a, operands.order, &sizes)?;
            query = joined_widths(call, &query, &more);
            let more = store.read(call, &self.samples)?;
            key = joined_widths(call, &key, &more);
        }
        // Memory beyond the length of a sample may hold anything, such as NaN, which a weight of 0
        // would not suppress.
        let value = match self.samples.unused_keys(call, self.value.sizes.tokens)? {
            Some(unused) => unused.choose(0.0, &value),
            None => value,
        };
        Ok(HeadsFirst { query, key, value })
    }

    fn attend(&self, call: &OperatorCall<'_>, sparsity: &Sparsity<'_>) -> Composed<Attended> {
        let scores = self.operands.score_dims();
        let masks = sparsity.masks(call, &self.samples, &scores)?;
        let shift = match given(call, "pseShift")? {
            // Functions without `innerPrecise` only reserve the shift: the vendor's pass a null
            // pointer on instead.
            Some(shift) if call.has("innerPrecise") => {
                Some(read_shift(call, shift, &self.samples, &scores)?)
            }
            _ => None,
        };
        // Scores use the whole width, the result that of the values.
        let mut sizes = self.operands.keys;
        if let Some((_, store)) = &self.rotated {
            sizes.width += store.sizes.width;
        }
        let operands = Operands {
            keys: sizes,
            ..self.operands
        };
        let values = self.read(call)?;
        attend(call, &operands, values, shift.as_ref(), &masks)
    }
}

/// One length for all samples, or one for each, up to those in `most`.
fn lengths(
    call: &OperatorCall<'_>,
    name: Option<&str>,
    n: usize,
    most: &[usize],
) -> Composed<Vec<usize>> {
    let Some(name) = name.map(|name| full_name(call, name)) else {
        return Ok(most.to_vec());
    };
    let list = call.optional_ints(&name)?.unwrap_or_default();
    if list.is_empty() {
        return Ok(most.to_vec());
    }
    let each: Vec<usize> = (0..n)
        .filter_map(|at| usize::try_from(*list.get(if list.len() == 1 { 0 } else { at })?).ok())
        .collect();
    // According to the documentation, excess lengths are ignored.
    if each.len() == n && each.iter().zip(most).all(|(n, most)| n <= most) {
        return Ok(each);
    }
    let expected = if n == 1 {
        "1 length".to_owned()
    } else {
        format!("1 or {n} lengths")
    };
    Err(Refusal::invalid(format!(
        "`{name}` is {list:?}; expected {expected}, up to {most:?}"
    )))
}

/// The samples of the lists of lengths.
fn samples(
    call: &OperatorCall<'_>,
    operands: &Operands<'_>,
    key: &KeyStore<'_>,
    [query_name, key_name]: [Option<&str>; 2],
) -> Composed<Samples> {
    let (tokens, keys) = (operands.queries.tokens, operands.keys.tokens);
    let key_name = key_name.filter(|name| call.has(&full_name(call, name)));
    if key.table.is_some() {
        let lengths = key_name.map(|name| call.optional_ints(&full_name(call, name)));
        refuse_if!(
            lengths.transpose()?.flatten().is_none_or(<[i64]>::is_empty),
            "key and value lie in blocks, without the lengths of samples"
        );
    }
    if operands.order != AxisOrder::Tnd {
        let n = operands.queries.batch;
        // A single token always counts.
        let query_name = query_name.filter(|_| tokens > 1);
        let queries = lengths(call, query_name, n, &vec![tokens; n])?;
        let keys = lengths(call, key_name, n, &key.lengths)?;
        let pairs = queries.into_iter().zip(keys);
        let list = pairs.map(|(queries, keys)| Sample::alone(queries, keys));
        return Ok(Samples::Apart(list.collect()));
    }
    let names = ["actualSeqLengths", "actualSeqLengthsKv"].map(|name| full_name(call, name));
    if key.table.is_none() {
        return packed(call, [&names[0], &names[1]], [tokens, keys]);
    }
    // With paged keys these are the lengths of the samples, not their ends.
    let ends = call.optional_ints(&names[0])?.unwrap_or_default();
    let queries = lengths_of_ends(&names[0], ends)?;
    let n = key.lengths.len();
    refuse_if!(
        queries.len() != n || queries.last().is_some_and(|(start, n)| start + n > tokens),
        "`{}` is {ends:?}; expected where {n} samples end among {tokens} tokens",
        names[0]
    );
    let lengths = lengths(call, key_name, n, &key.lengths)?;
    let room = keys / n.max(1);
    let each = queries.into_iter().zip(lengths).enumerate();
    let list = each.map(|(at, (queries, length))| Sample {
        queries,
        keys: (at * room, length),
    });
    Ok(Samples::Packed(list.collect()))
}

fn attention_in_inference(call: &OperatorCall<'_>) -> Composed {
    let out = call.tensor("attentionOut")?;
    let names = [Some("actualSeqLengths"), Some("actualSeqLengthsKv")];
    let inference = Inference::new(call, names)?;
    let operands = &inference.operands;
    let mut sparsity = Sparsity::new(call, &full_name(call, "attenMask"), true)?;
    let is_fused = call.has("softmaxLseFlag");
    if is_fused && operands.queries.tokens == 1 && operands.order != AxisOrder::Tnd {
        sparsity.expect_single_token()?;
    }
    let sums = expect_sums(call, operands)?;
    if operands.is_empty() {
        call.fill(out, ScalarNumber::Int(0))?;
        if let Some(sums) = sums {
            call.fill(sums, ScalarNumber::Float(f64::INFINITY))?;
        }
        return Ok(());
    }
    let attended = inference.attend(call, &sparsity)?;
    write_attended(call, operands, &attended.result, out)?;
    if let Some(sums) = sums {
        write_sums(call, operands, &attended, sums)?;
    }
    Ok(())
}

/// The output of the log-sum-exp, if requested.
fn expect_sums<'a>(
    call: &OperatorCall<'a>,
    operands: &Operands<'_>,
) -> Composed<Option<&'a TensorArgument>> {
    if !call.has("softmaxLse") {
        return Ok(None);
    }
    let sums = call.optional_tensor("softmaxLse")?;
    if !call.flag("softmaxLseFlag")? {
        if let Some(unused) = sums {
            call.fill(unused, ScalarNumber::Int(0))?;
        }
        return Ok(None);
    }
    let sums = sums.ok_or_else(|| {
        Refusal::invalid("`softmaxLse` is a null pointer, but `softmaxLseFlag` is true")
    })?;
    let [batch, heads, queries, _] = operands.score_dims();
    let dims = match operands.order {
        AxisOrder::Tnd => vec![queries, heads, 1],
        _ => vec![batch, heads, queries, 1],
    };
    call.expect_shape(sums, &dims)?;
    call.expect_dtype(sums, |dtype| dtype == DType::F32, "float32")?;
    Ok(Some(sums))
}

fn write_sums(
    call: &OperatorCall<'_>,
    operands: &Operands<'_>,
    attended: &Attended,
    out: &TensorArgument,
) -> Composed {
    // The vendor's operators store infinity for fully masked rows.
    let is_masked = attended.maximum.equal(f64::NEG_INFINITY);
    let mut sums = is_masked.choose(f64::INFINITY, attended.sum.log() + &attended.maximum);
    if operands.order == AxisOrder::Tnd {
        sums = turned(call, &sums, [0, 2, 1, 3]);
    }
    let sums: Value = sums.reshaped(out.dims());
    call.write(out, &sums, DType::F32)
}

fn attention_of_token(call: &OperatorCall<'_>) -> Composed {
    let out = call.tensor("attentionOut")?;
    let inference = Inference::new(call, [None, Some("actualSeqLengths")])?;
    let operands = &inference.operands;
    if operands.queries.tokens != 1 {
        let n = operands.queries.tokens;
        let text = format!("`query` has {n} tokens; expected 1");
        return Err(Refusal::invalid(text));
    }
    if operands.is_empty() {
        return call.fill(out, ScalarNumber::Int(0));
    }
    let sparsity = Sparsity::new(call, "attenMask", true)?;
    let attended = inference.attend(call, &sparsity)?;
    write_attended(call, operands, &attended.result, out)
}
