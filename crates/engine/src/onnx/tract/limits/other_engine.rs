//! Whether the other engine has an operator that tract lacks.
//!
//! The names are those of the kernels that ONNX Runtime 1.31 has on the CPU, whatever operator set
//! they are of, and of the operators that ONNX itself writes out in others.

use crate::onnx::schema::{ModelProto, NodeProto};
use crate::onnx::tract::error::OTHER_ENGINE;

/// Of ONNX itself.
const STANDARD: &str = "\
    Abs Acos Acosh Add Affine AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention \
    AveragePool BatchNormalization Bernoulli BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr \
    BitwiseXor BlackmanWindow Cast CastLike CausalConvWithState Ceil Celu CenterCropPad Clip \
    Col2Im Compress Concat ConcatFromSequence Constant ConstantOfShape Conv ConvInteger \
    ConvTranspose Cos Cosh Crop CumProd CumSum DFT DeformConv DepthToSpace DequantizeLinear Det \
    Div Dropout DynamicQuantizeLinear DynamicSlice Einsum Elu Equal Erf Exp Expand EyeLike \
    Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool \
    GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HammingWindow HannWindow \
    HardSigmoid HardSwish Hardmax Identity If ImageScaler InstanceNormalization IsInf IsNaN LRN \
    LSTM LayerNormalization LeakyRelu Less LessOrEqual LinearAttention Log LogSoftmax Loop \
    LpNormalization LpPool MatMul MatMulInteger Max MaxPool MaxRoiPool MaxUnpool Mean \
    MeanVarianceNormalization MelWeightMatrix MemcpyFromHost MemcpyToHost Min Mish Mod Mul \
    Multinomial Neg NegativeLogLikelihoodLoss NonMaxSuppression NonZero Not OneHot Optional \
    OptionalGetElement OptionalHasElement Or PRelu Pad ParametricSoftplus Pow QLinearConv \
    QLinearMatMul QuantizeLinear RMSNormalization RNN RandomNormal RandomNormalLike \
    RandomUniform RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum \
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare \
    RegexFullMatch Relu Reshape Resize ReverseSequence RoiAlign RotaryEmbedding Round STFT Scale \
    ScaledTanh Scan Scatter ScatterElements ScatterND Selu SequenceAt SequenceConstruct \
    SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap Shape Shrink Sigmoid \
    Sign SimplifiedLayerNormalization Sin Sinh Size Slice Softmax SoftmaxCrossEntropyLoss \
    Softplus Softsign SpaceToDepth Split SplitToSequence Sqrt Squeeze StringConcat \
    StringNormalizer StringSplit Sub Sum SwiGLU Swish Tan Tanh TensorScatter TfIdfVectorizer \
    ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze Upsample Where Xor";

/// Of `ai.onnx.ml`.
const MACHINE_LEARNING: &str = "\
    ArrayFeatureExtractor Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer \
    Imputer LabelEncoder LinearClassifier LinearRegressor Normalizer OneHotEncoder SVMClassifier \
    SVMRegressor Scaler TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor ZipMap";

/// Of `com.microsoft`.
const MICROSOFT: &str = "\
    Attention AttnLSTM BeamSearch BiasGelu BifurcationDetector BranchwiseRMSNorm CDist \
    CausalConvWithState ConvTransposeWithDynamicPads CropAndResize \
    DecoderMaskedMultiHeadAttention DequantizeLinear DynamicQuantizeLSTM DynamicQuantizeMatMul \
    DynamicTimeWarping EmbedLayerNormalization EngramGate ExpandDims FastGelu FusedConv \
    FusedGemm FusedMatMul GatedAdd GatedRMSNorm GatherBlockQuantized GatherND Gelu GreedySearch \
    GridSample GroupQueryAttention HyperConnectionPostMix HyperConnectionPreMix Inverse \
    LinearAttention LinearAttentionGate MRotaryEmbedding MatMulBnb4 MatMulFpQ4 MatMulInteger16 \
    MatMulIntegerToFloat MatMulNBits MaxpoolWithMask MoE MultiHeadAttention MurmurHash3 \
    NGramHashMapping NGramRepeatBlock NhwcMaxPool Pad QAttention QEmbedLayerNormalization QGemm \
    QLinearAdd QLinearAveragePool QLinearConcat QLinearConv QLinearGlobalAveragePool \
    QLinearLeakyRelu QLinearMul QLinearSigmoid QLinearSoftmax QLinearWhere QMoE QuantizeLinear \
    QuickGelu Range RotaryEmbedding SampleOp Sampling ScaledSiLU SkipLayerNormalization \
    SkipSimplifiedLayerNormalization SparseAttention SparseToDenseMatMul Tokenizer \
    TransposeMatMul Trilu UnfoldTensor Unique VarlenNGramHashMapping WhisperBeamSearch \
    WordConvEmbedding";

/// The other engine, if it has the operator of `node`: by itself, or as a function in the file.
pub(super) fn having(model: &ModelProto, node: &NodeProto) -> Option<&'static str> {
    let known = match node.domain.as_str() {
        "" | "ai.onnx" => STANDARD,
        "ai.onnx.ml" => MACHINE_LEARNING,
        "com.microsoft" => MICROSOFT,
        _ => "",
    };
    let is_function = model.functions.iter().any(|function| {
        let own = (function.name.as_deref(), function.domain.as_deref());
        own.0 == Some(&node.op_type) && own.1.unwrap_or_default() == node.domain
    });
    let has_it = is_function || known.split_whitespace().any(|name| name == node.op_type);
    has_it.then_some(OTHER_ENGINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::schema::FunctionProto;

    #[test]
    fn only_operators_that_it_has_are_promised() {
        let model = ModelProto {
            functions: vec![FunctionProto {
                name: Some("Mine".into()),
                domain: Some("own.functions".into()),
                ..FunctionProto::default()
            }],
            ..ModelProto::default()
        };
        for (domain, op_type, expected) in [
            ("", "Loop", true),
            ("ai.onnx", "Loop", true),
            ("", "loop", false),
            ("", "Invented", false),
            ("ai.onnx.ml", "TreeEnsemble", true),
            ("ai.onnx.ml", "Loop", false),
            ("com.microsoft", "FusedConv", true),
            ("com.microsoft", "Invented", false),
            ("my.domain", "Loop", false),
            ("own.functions", "Mine", true),
            ("own.functions", "Yours", false),
        ] {
            let node = NodeProto {
                domain: domain.into(),
                op_type: op_type.into(),
                ..NodeProto::default()
            };
            let found = having(&model, &node).is_some();
            assert_eq!(found, expected, "{domain} {op_type}");
        }
    }
}
