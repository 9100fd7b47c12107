//! Attention as inference calls it, of whole prompts and of single tokens.

use opscope_tensor::DType;

use super::attention::{
    AxisOrder, Operands, attend, expect_broadcast, expect_result, flag_value, is_mask, read_mask,
    sparse_masks, write_attended,
};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of attention in inference.
#[macro_export]
macro_rules! aclnn_attention_inference {
    ($rows:ident) => {
        $rows! { "attention in inference";
            aclnnPromptFlashAttention = PromptFlashAttention("aclnn_prompt_flash_attention.h", "softmax(scaleValue * query @ key^T) @ value, without what attenMask masks") by attention_in_inference
                (query: Tensor, key: Tensor, value: Tensor, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, numHeads: Int, scaleValue: Double, preTokens: Int, nextTokens: Int, inputLayout: Text, numKeyValueHeads: Int, attentionOut: Out);
            aclnnPromptFlashAttentionV3 = PromptFlashAttention("aclnn_prompt_flash_attention_v3.h", "as aclnnPromptFlashAttention, of the first actualSeqLengthsKv tokens of key and value; sparse modes 0 to 3, not quantised") by attention_in_inference
                (query: Tensor, key: Tensor, value: Tensor, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, actualSeqLengthsKv: OptionalIntArray, deqScale1: OptionalTensor, quantScale1: OptionalTensor, deqScale2: OptionalTensor, quantScale2: OptionalTensor, quantOffset2: OptionalTensor, numHeads: Int, scaleValue: Double, preTokens: Int, nextTokens: Int, inputLayout: Text, numKeyValueHeads: Int, sparseMode: Int, innerPrecise: Int, attentionOut: Out);
            aclnnIncreFlashAttention = IncreFlashAttention("aclnn_incre_flash_attention.h", "softmax(scaleValue * query @ key^T) @ value for one token of each sample, of the first actualSeqLengths tokens of key and value") by attention_of_token
                (query: Tensor, key: TensorList, value: TensorList, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, numHeads: Int, scaleValue: Double, inputLayout: Text, numKeyValueHeads: Int, attentionOut: Out);
            aclnnIncreFlashAttentionV4 = IncreFlashAttention("aclnn_incre_flash_attention_v4.h", "as aclnnIncreFlashAttention, neither quantised nor in blocks") by attention_of_token
                (query: Tensor, key: TensorList, value: TensorList, pseShift: OptionalTensor, attenMask: OptionalTensor, actualSeqLengths: OptionalIntArray, dequantScale1: OptionalTensor, quantScale1: OptionalTensor, dequantScale2: OptionalTensor, quantScale2: OptionalTensor, quantOffset2: OptionalTensor, antiquantScale: OptionalTensor, antiquantOffset: OptionalTensor, blocktable: OptionalTensor, kvPaddingSize: OptionalTensor, numHeads: Int, scaleValue: Double, inputLayout: Text, numKeyValueHeads: Int, blockSize: Int, innerPrecise: Int, attentionOut: Out);
            aclnnFusedInferAttentionScoreV3 = FusedInferAttentionScore("aclnn_fused_infer_attention_score_v3.h", "softmax(scaleValue * query @ key^T) @ value, without what attenMaskOptional masks, of the first actualSeqLengthsKvOptional tokens of key and value; sparse modes 0 to 3, neither quantised nor in blocks") by attention_in_inference
                (query: Tensor, key: TensorList, value: TensorList, pseShiftOptional: OptionalTensor, attenMaskOptional: OptionalTensor, actualSeqLengthsOptional: OptionalIntArray, actualSeqLengthsKvOptional: OptionalIntArray, deqScale1Optional: OptionalTensor, quantScale1Optional: OptionalTensor, deqScale2Optional: OptionalTensor, quantScale2Optional: OptionalTensor, quantOffset2Optional: OptionalTensor, antiquantScaleOptional: OptionalTensor, antiquantOffsetOptional: OptionalTensor, blockTableOptional: OptionalTensor, queryPaddingSizeOptional: OptionalTensor, kvPaddingSizeOptional: OptionalTensor, keyAntiquantScaleOptional: OptionalTensor, keyAntiquantOffsetOptional: OptionalTensor, valueAntiquantScaleOptional: OptionalTensor, valueAntiquantOffsetOptional: OptionalTensor, keySharedPrefixOptional: OptionalTensor, valueSharedPrefixOptional: OptionalTensor, actualSharedPrefixLenOptional: OptionalIntArray, queryRopeOptional: OptionalTensor, keyRopeOptional: OptionalTensor, keyRopeAntiquantScaleOptional: OptionalTensor, numHeads: Int, scaleValue: Double, preTokens: Int, nextTokens: Int, inputLayout: Text, numKeyValueHeads: Int, sparseMode: Int, innerPrecise: Int, blockSize: Int, antiquantMode: Int, softmaxLseFlag: Flag, keyAntiquantMode: Int, valueAntiquantMode: Int, attentionOut: Out, softmaxLse: OptionalOut);
        }
    };
}
aclnn_attention_inference!(operator_rows);

/// Parameters of the functions for inference that have to be null: shifts, quantised types, blocks
/// of keys, shared beginnings and rotations.
const NOT_COMPUTED: &[&str] = &[
    "pseShift",
    "deqScale1",
    "quantScale1",
    "deqScale2",
    "quantScale2",
    "quantOffset2",
    "dequantScale1",
    "dequantScale2",
    "antiquantScale",
    "antiquantOffset",
    "blocktable",
    "blockTable",
    "queryPaddingSize",
    "kvPaddingSize",
    "keyAntiquantScale",
    "keyAntiquantOffset",
    "valueAntiquantScale",
    "valueAntiquantOffset",
    "keySharedPrefix",
    "valueSharedPrefix",
    "queryRope",
    "keyRope",
    "keyRopeAntiquantScale",
];

fn expect_plain(call: &OperatorCall<'_>) -> Composed {
    for name in NOT_COMPUTED {
        let name = full_name(call, name);
        if call.has(&name) && call.optional_tensor(&name)?.is_some() {
            return Err(Refusal::invalid(format!(
                "`{name}` is given, which is not computed; expected a null pointer"
            )));
        }
    }
    if call.has("softmaxLseFlag") && call.flag("softmaxLseFlag")? {
        return Err(Refusal::invalid(
            "`softmaxLse` is asked for, which is not computed",
        ));
    }
    Ok(())
}

/// The name of a parameter, which ends in a word more in newer functions.
fn full_name(call: &OperatorCall<'_>, name: &str) -> String {
    let longer = format!("{name}Optional");
    if call.has(&longer) {
        longer
    } else {
        name.to_owned()
    }
}

/// A tensor, or the only one of a list.
fn single<'a>(call: &OperatorCall<'a>, name: &str) -> Composed<&'a TensorArgument> {
    if let Ok(tensor) = call.tensor(name) {
        return Ok(tensor);
    }
    let [tensor] = call.tensors(name)? else {
        return Err(Refusal::invalid(format!(
            "`{name}` is a list of several tensors; lists of one are computed"
        )));
    };
    Ok(tensor)
}

/// The operands of a function for inference, whose output was checked.
fn inferred<'a>(call: &OperatorCall<'a>) -> Composed<Operands<'a>> {
    expect_plain(call)?;
    let operands = [
        call.tensor("query")?,
        single(call, "key")?,
        single(call, "value")?,
    ];
    let known = [AxisOrder::Bsh, AxisOrder::Bsnd, AxisOrder::Bnsd];
    let order = AxisOrder::new(call, &known)?;
    let (heads, key_heads) = (call.int("numHeads")?, call.int("numKeyValueHeads")?);
    let operands = Operands::new(call, operands, order, heads, Some(key_heads))?;
    expect_result(call, &operands, call.tensor("attentionOut")?)?;
    Ok(operands)
}

fn attention_in_inference(call: &mut OperatorCall<'_>) -> Composed {
    let out = call.tensor("attentionOut")?;
    let operands = inferred(call)?;
    let [_, _, tokens, keys] = operands.score_dims();
    let name = full_name(call, "actualSeqLengths");
    let lengths = call.optional_ints(&name)?.unwrap_or_default();
    // What a device leaves in the rows behind a shorter length is not documented.
    if lengths.iter().any(|&n| usize::try_from(n) != Ok(tokens)) {
        return Err(Refusal::invalid(format!(
            "`{name}` is {lengths:?}; shorter ones than {tokens} are not computed"
        )));
    }
    if call.has("softmaxLse")
        && let Some(unused) = call.optional_tensor("softmaxLse")?
    {
        call.fill(unused, ScalarNumber::Int(0));
    }
    if operands.is_empty() {
        call.fill(out, ScalarNumber::Int(0));
        return Ok(());
    }
    let scores = operands.score_dims();
    let mask = full_name(call, "attenMask");
    let mut masks = sparse_masks(call, &mask, &scores)?;
    let name = full_name(call, "actualSeqLengthsKv");
    if call.has(&name) {
        let lengths = call.optional_ints(&name)?.unwrap_or_default();
        let is_shorter = lengths.iter().any(|&n| usize::try_from(n) != Ok(keys));
        // The diagonal of that mode ends at the last key of each sample.
        if is_shorter && call.int("sparseMode")? == 3 {
            return Err(Refusal::invalid(format!(
                "`{name}` is {lengths:?}; ones other than {keys} are not computed in mode 3"
            )));
        }
        masks.extend(length_mask(call, &name, lengths, &scores)?);
    }
    let attended = attend(call, &operands, None, &masks)?;
    write_attended(call, &operands, &attended.result, out)
}

fn attention_of_token(call: &mut OperatorCall<'_>) -> Composed {
    let out = call.tensor("attentionOut")?;
    let operands = inferred(call)?;
    if operands.queries.tokens != 1 {
        let n = operands.queries.tokens;
        let text = format!("`query` has {n} tokens; expected 1");
        return Err(Refusal::invalid(text));
    }
    if operands.is_empty() {
        call.fill(out, ScalarNumber::Int(0));
        return Ok(());
    }
    let scores = operands.score_dims();
    let mut masks = Vec::new();
    if let Some(mask) = call
        .optional_tensor("attenMask")?
        .filter(|mask| !mask.is_empty())
    {
        masks.push(token_mask(call, mask, &scores)?);
    }
    if let Some(lengths) = call.optional_ints("actualSeqLengths")? {
        masks.extend(length_mask(call, "actualSeqLengths", lengths, &scores)?);
    }
    let attended = attend(call, &operands, None, &masks)?;
    write_attended(call, &operands, &attended.result, out)
}

/// As [`read_mask`], with samples and keys if there are two axes.
fn token_mask(
    call: &mut OperatorCall<'_>,
    mask: &TensorArgument,
    scores: &[usize; 4],
) -> Composed<Value> {
    let &[batch, keys] = mask.dims() else {
        return read_mask(call, mask, scores);
    };
    call.expect_dtype(mask, is_mask, "bool, uint8 or int8")?;
    let dims = [batch, 1, 1, keys];
    expect_broadcast(call, mask, &dims, scores)?;
    let value = call.read(mask, DType::Bool)?;
    call.reshaped(&value, &dims)
}

/// Leaves out the keys behind a length for each sample, or one for all.
fn length_mask(
    call: &mut OperatorCall<'_>,
    name: &str,
    lengths: &[i64],
    scores: &[usize; 4],
) -> Composed<Option<Value>> {
    // Made here and given for each run, as lengths grow with every token: the graph stays.
    let [batch, _, _, keys] = *scores;
    if lengths.is_empty() {
        return Ok(None);
    }
    let list: Vec<usize> = lengths
        .iter()
        .filter_map(|&n| usize::try_from(n).ok())
        .collect();
    let is_known = list.len() == lengths.len() && list.iter().all(|&n| n <= keys);
    if !is_known || (list.len() != 1 && list.len() != batch) {
        return Err(Refusal::invalid(format!(
            "`{name}` is {lengths:?}; expected 1 or {batch} lengths of 0 to {keys}"
        )));
    }
    let flags = list
        .iter()
        .flat_map(|&n| (0..keys).map(move |key| u8::from(key >= n)));
    flag_value(call, flags.collect(), vec![list.len(), 1, 1, keys]).map(Some)
}
