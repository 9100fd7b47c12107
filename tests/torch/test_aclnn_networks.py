"""With `OPSCOPE` set, and the C library next to the tool: aclnn's operators of networks refuse
arguments that do not fit together, with a code and a report."""

from __future__ import annotations

import math

import aclnn
import pytest
import torch

pytestmark = pytest.mark.skipif(aclnn.library_path() is None, reason="the C library was not built")

NULL, INVALID = 161001, 161002


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


X = zeros(2, 4)
WHOLE = zeros(2, 4, dtype=torch.int32)
PICTURE = zeros(1, 2, 5, 5)
KERNEL = zeros(3, 2, 3, 3)
PAIRS = [1, 1]
NO_PADS = [0, 0]
HEADS = zeros(1, 2, 3, 4, dtype=torch.float16)

REFUSED: list[tuple[str, list[object], int, str]] = [
    # Products of matrices
    ("aclnnMatmul", [None, X, X, 0], NULL, "`self` is a null pointer"),
    ("aclnnMatmul", [X, X, X, 0], INVALID, "cannot be multiplied"),
    ("aclnnMatmul", [X, zeros(4, 3), zeros(2, 4), 0], INVALID, "expected [2, 3]"),
    ("aclnnMatmul", [X, zeros(4, 3), zeros(2, 3), 5], INVALID, "`cubeMathType` is 5"),
    ("aclnnMm", [zeros(1, 2, 4), zeros(4, 3), zeros(1, 2, 3), 0], INVALID, "has 3 axes; expected 2"),
    ("aclnnMm", [WHOLE, zeros(4, 3), zeros(2, 3), 0], INVALID, "expected float16"),
    ("aclnnAddmm", [zeros(3, 3), X, zeros(4, 3), 1, 1, zeros(2, 3), 0], INVALID, "does not broadcast"),
    ("aclnnAddmm", [zeros(3), X, zeros(4, 3), None, 1, zeros(2, 3), 0], NULL, "`beta` is a null pointer"),
    (
        "aclnnAddr",
        [WHOLE, WHOLE[0, :2], WHOLE[0], 1.5, None, WHOLE.clone()],
        INVALID,
        "`betaOptional` is a float",
    ),
    # Convolutions
    (
        "aclnnConvolution",
        [PICTURE, KERNEL, None, PAIRS, NO_PADS, PAIRS, False, NO_PADS, 2, zeros(1, 3, 3, 3), 0],
        INVALID,
        "with 2 groups",
    ),
    (
        "aclnnConvolution",
        [PICTURE, KERNEL, None, [0, 1], NO_PADS, PAIRS, False, NO_PADS, 1, zeros(1, 3, 3, 3), 0],
        INVALID,
        "`stride` is [0, 1]",
    ),
    (
        "aclnnConvolution",
        [PICTURE, KERNEL, zeros(2), PAIRS, NO_PADS, PAIRS, False, NO_PADS, 1, zeros(1, 3, 3, 3), 0],
        INVALID,
        "`bias` has the shape [2]; expected [3]",
    ),
    (
        "aclnnConvolution",
        [PICTURE, KERNEL, None, PAIRS, NO_PADS, [3, 3], False, NO_PADS, 1, zeros(1, 3, 3, 3), 0],
        INVALID,
        "does not fit",
    ),
    # Pooling
    (
        "aclnnMaxPool2dWithIndices",
        [PICTURE, [2, 2], [], [2, 2], [1], False, zeros(1, 2, 2, 2), zeros(1, 2, 2, 2, dtype=torch.int64)],
        INVALID,
        "more than half",
    ),
    (
        "aclnnMaxPool2dWithIndices",
        [PICTURE, [2, 2], [], [0], [1], False, zeros(1, 2, 2, 2), zeros(1, 2, 2, 2)],
        INVALID,
        "`indices` is float32; expected int32 or int64",
    ),
    (
        "aclnnAvgPool2d",
        [PICTURE, [6, 6], [], [0], False, True, 0, 0, zeros(1, 2, 1, 1)],
        INVALID,
        "does not fit",
    ),
    ("aclnnAdaptiveAvgPool2d", [PICTURE, [2], zeros(1, 2, 2, 2)], INVALID, "expected 2 sizes"),
    # Normalisations
    (
        "aclnnLayerNorm",
        [X, [3], None, None, 1e-5, zeros(2, 4), None, None],
        INVALID,
        "expected one that ends in [3]",
    ),
    (
        "aclnnLayerNorm",
        [X, [4], zeros(3), None, 1e-5, zeros(2, 4), None, None],
        INVALID,
        "`weightOptional` has the shape [3]",
    ),
    (
        "aclnnBatchNorm",
        [X, None, None, None, None, True, 0.1, 1e-5, zeros(2, 4), None, zeros(4)],
        NULL,
        "`saveMean` is a null pointer",
    ),
    (
        "aclnnGroupNorm",
        [X, None, None, 2, 4, 1, 3, 1e-5, zeros(2, 4), zeros(2, 3), zeros(2, 3)],
        INVALID,
        "`group` is 3",
    ),
    (
        "aclnnGroupNorm",
        [X, None, None, 2, 4, 9, 2, 1e-5, zeros(2, 4), zeros(2, 2), zeros(2, 2)],
        INVALID,
        "`HxW` is 9; expected 1",
    ),
    ("aclnnRmsNorm", [X, zeros(4), 1e-6, zeros(2, 4), zeros(2)], INVALID, "expected [2, 1]"),
    ("aclnnRenorm", [X, -1.0, 0, 1.0, zeros(2, 4)], INVALID, "`p` is -1"),
    # Activations
    ("aclnnGelu", [X.double(), X.double()], INVALID, "expected float16, bfloat16 or float32"),
    ("aclnnGeluV2", [X, 2, zeros(2, 4)], INVALID, "`approximate` is 2"),
    ("aclnnRelu", [X, zeros(4, 2)], INVALID, "expected [2, 4]"),
    ("aclnnCelu", [X, 0.0, zeros(2, 4)], INVALID, "`alpha` is 0"),
    ("aclnnSoftshrink", [X, -0.5, zeros(2, 4)], INVALID, "`lambd` is -0.5"),
    ("aclnnGlu", [X[:, :3], 1, zeros(2, 2)], INVALID, "expected an even number"),
    ("aclnnGlu", [X, 2, zeros(2, 2)], INVALID, "`dim` is 2"),
    ("aclnnPrelu", [X, zeros(3), zeros(2, 4)], INVALID, "`weight` has 3 elements"),
    ("aclnnThreshold", [WHOLE, 0.5, 1, WHOLE.clone()], INVALID, "`threshold` is a float"),
    ("aclnnLeakyReluBackward", [X, X, -0.5, True, zeros(2, 4)], INVALID, "`negativeSlope` is negative"),
    # Softmax and losses
    ("aclnnSoftmax", [X, -3, zeros(2, 4)], INVALID, "`dim` is -3"),
    ("aclnnMseLoss", [X, X, 3, zeros(2, 4)], INVALID, "`reduction` is 3"),
    ("aclnnMseLoss", [X, X, 1, zeros(2, 4)], INVALID, "expected []"),
    ("aclnnNLLLoss", [X, zeros(2), None, 0, -100, zeros(2), zeros(1)], INVALID, "expected int64"),
    # Attention
    (
        "aclnnPromptFlashAttention",
        [HEADS, HEADS, HEADS, None, None, None, 3, 1.0, 1, 1, "BNSD", 0, torch.zeros_like(HEADS)],
        INVALID,
        "`query` has the shape [1, 2, 3, 4] for 3 heads",
    ),
    (
        "aclnnPromptFlashAttention",
        [HEADS, HEADS, HEADS, None, None, [4], 2, 1.0, 1, 1, "BNSD", 0, torch.zeros_like(HEADS)],
        INVALID,
        "`actualSeqLengths` is [4]",
    ),
    (
        "aclnnPromptFlashAttention",
        [HEADS, HEADS, HEADS, None, None, None, 2, 1.0, 1, 1, "TND", 0, torch.zeros_like(HEADS)],
        INVALID,
        '`inputLayout` "TND" is not supported',
    ),
    ("aclnnRotaryPositionEmbedding", [HEADS, HEADS, HEADS, 4, HEADS.clone()], INVALID, "in mode 4"),
]


@pytest.mark.parametrize(
    ("function", "arguments", "code", "text"), REFUSED, ids=[f"{case[0]}-{i}" for i, case in enumerate(REFUSED)]
)
def test_arguments_that_do_not_fit_are_refused(
    function: str, arguments: list[object], code: int, text: str
) -> None:
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.call(function, *arguments)
    assert refused.value.code == code, refused.value
    assert text in refused.value.report, refused.value


def test_statistics_of_a_batch_of_one_element_are_those_of_torch() -> None:
    """The variance of a population cannot be computed from one element: torch divides by 0 as well."""
    x, mean, variance = torch.ones(1, 2), zeros(2), torch.ones(2)
    out, saved = zeros(1, 2), [zeros(2), zeros(2)]
    aclnn.call("aclnnBatchNorm", x, None, None, mean, variance, True, 0.5, 1e-5, out, *saved)
    assert mean.tolist() == [0.5, 0.5] and all(math.isnan(one) for one in variance.tolist())


def test_inference_leaves_running_statistics_as_they_are() -> None:
    x, mean, variance = torch.randn(3, 2), torch.tensor([1.0, 2.0]), torch.tensor([4.0, 0.25])
    out, saved = zeros(3, 2), [torch.ones(2), torch.ones(2)]
    aclnn.call("aclnnBatchNorm", x, None, None, mean, variance, False, 0.5, 0.0, out, *saved)
    assert mean.tolist() == [1.0, 2.0] and variance.tolist() == [4.0, 0.25]
    assert torch.allclose(out, (x - mean) / variance.sqrt())
    assert saved[0].tolist() == [0.0, 0.0] and saved[1].tolist() == [0.0, 0.0]


def test_tokens_that_see_nothing_give_zero() -> None:
    query, out = torch.randn(1, 2, 3, 4), torch.ones(1, 2, 3, 4)
    mask = torch.zeros(3, 3, dtype=torch.bool)
    mask[1] = True
    everything = 2147483647
    operands = (query, query, query, None, None, None, mask, None)
    numbers = (0.5, 1.0, everything, everything, 2, "BNSD", 0, 0)
    aclnn.call("aclnnFlashAttentionScore", *operands, *numbers, None, None, None, out)
    assert torch.equal(out[:, :, 1], zeros(1, 2, 4)) and not torch.isnan(out).any()


@pytest.mark.parametrize("target", [-1, 3])
def test_a_class_that_is_none_fails(target: int) -> None:
    x, classes = torch.randn(2, 3), torch.tensor([0, target])
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.call("aclnnNLLLoss", x, classes, None, 2, -100, zeros(1), zeros(1))
    assert refused.value.code == 361001, refused.value


def test_what_would_fill_memory_is_refused() -> None:
    """Sizes that no tensor has follow from numbers alone."""
    x, kernel = zeros(1, 1, 1, 1), 2**31 - 1
    pads, out = [kernel - 1] * 4, zeros(1, 1, 2, 2)
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.call("aclnnMaxPool", x, [kernel], [2**30], 0, pads, [], 0, out)
    assert refused.value.code == 161002, refused.value
