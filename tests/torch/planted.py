"""Networks with faults planted into them from outside, and the culprits, determined by torch alone."""

from __future__ import annotations

import copy
import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from eager_reference import tensors
from models import Cnn
from probed_network import ProbedNetwork, image
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Relative differences up to this are rounding.
ROUNDING = 1e-5
N_TOKENS = 50
# Operators that return their input in new memory.
COPIES = ("clone", "_unsafe_view")

Change = Callable[[Callable[..., Any], list, dict], Any]


class Recurrent(nn.Module):
    """Tokens, a recurrent layer, and a head that reads its last step."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.embed, self.layer, self.head = nn.Embedding(N_TOKENS, 6), kind(6, 8, batch_first=True), nn.Linear(8, 5)

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        states = self.layer(self.embed(tokens))[0]
        return {"logits": self.head(states[:, -1]), "states": states}


class Decoder(nn.Module):
    """A GPT-2 of transformers, which builds masks only where it is traced."""

    def __new__(cls) -> Any:
        transformers = pytest.importorskip("transformers", reason="transformers is not installed")
        config = transformers.GPT2Config(
            vocab_size=N_TOKENS, n_embd=32, n_layer=2, n_head=2, n_positions=32, use_cache=False
        )
        return transformers.GPT2LMHeadModel(config)


class Encoder(nn.Module):
    """A BERT of transformers."""

    def __new__(cls) -> Any:
        transformers = pytest.importorskip("transformers", reason="transformers is not installed")
        config = transformers.BertConfig(
            vocab_size=N_TOKENS, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
            max_position_embeddings=32, attn_implementation="eager",
        )  # fmt: skip
        return transformers.BertForMaskedLM(config)


def tokens() -> Tensor:
    return torch.arange(24).reshape(2, 12) * 7 % N_TOKENS


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]] = {
    "cnn": (Cnn, lambda: torch.randn(2, 3, 12, 12)),
    "probed": (ProbedNetwork, image),
    "lstm": (lambda: Recurrent(nn.LSTM), tokens),
    "gru": (lambda: Recurrent(nn.GRU), lambda: (tokens(),)),
    "bert": (Encoder, lambda: {"input_ids": tokens()}),
    "gpt2": (Decoder, lambda: {"input_ids": tokens()}),
}


def network(name: str) -> tuple[nn.Module, Any]:
    """A network with weights that are the same every time, and inputs for it."""
    torch.manual_seed(1)
    make, inputs = NETWORKS[name]
    model = make().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Biases of zero would hide that one is missing.
            if name.endswith("bias"):
                parameter.normal_(0, 0.3)
    return model, inputs()


@dataclass(frozen=True)
class Fault:
    """A parameter that is changed, or one call of a function of torch."""

    network: str
    # The name of a parameter, or of a function.
    what: str
    # The change of the parameter, or of the call.
    change: Callable[..., Any]
    # Which call it is.
    index: int = 0

    def plant(self, model: nn.Module) -> Callable[..., Any]:
        """A model with the fault; the one that is given stays sound."""
        if "." in self.what:
            faulty = copy.deepcopy(model)
            with torch.no_grad():
                self.change(faulty.get_parameter(self.what))
            return faulty

        def run(*args: Any, **kwargs: Any) -> Any:
            mode = _ChangedCall(self)
            with mode:
                result = model(*args, **kwargs)
            assert mode.n_calls > self.index, f"{self.what} was called {mode.n_calls} times"
            return result

        return run


class _ChangedCall(TorchFunctionMode):
    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault
        self.n_calls = 0

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if getattr(func, "__name__", "") != self.fault.what:
            return func(*args, **(kwargs or {}))
        self.n_calls += 1
        is_it = self.n_calls == self.fault.index + 1
        return self.fault.change(func, list(args), dict(kwargs or {})) if is_it else func(*args, **(kwargs or {}))


@dataclass
class _Call:
    name: str
    is_view: bool
    inputs: list[Tensor]
    outputs: list[Tensor] = field(default_factory=list)


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[_Call] = []
        self._counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        base = func._schema.name.split("::")[1]
        count = self._counts[base]
        self._counts[base] += 1
        is_view = func.is_view or base in COPIES
        call = _Call(f"{base}_{count}" if count else base, is_view, [one.clone() for one in tensors((args, kwargs))])
        result = func(*args, **(kwargs or {}))
        call.outputs = [one.clone() for one in tensors(result)]
        self.calls.append(call)
        return result


def culprits(
    target: Callable[..., Any], golden: Callable[..., Any], inputs: Any, autocast: torch.dtype | None = None
) -> set[str]:
    """The operators at which two runs part, by the names of an eager dump: where they read or give something else first.

    What reads the same pair of tensors later counts as well, since the first reader may make nothing of it, as a
    product with a state of zeros. From where other operators run, it is the first of each side that returns what the
    other never returns, with the views that lead there; of one that was put in, the operator that reads it counts as well.
    """
    of_target, of_golden = (_calls(side, inputs, autocast) for side in (target, golden))
    for i, (one, other) in enumerate(zip(of_target, of_golden)):
        if one.name != other.name:
            first = _first_new(of_target[i:], of_golden)
            for calls in (of_target[i:], of_golden[i:], reversed(of_golden[:i])):
                first += itertools.takewhile(lambda call: call.is_view, calls)
            return {call.name for call in first + _first_new(of_golden[i:], of_target)[:1]}
        pairs = [*zip(one.inputs, other.inputs), *zip(one.outputs, other.outputs)]
        if len(one.inputs) != len(other.inputs) or not all(_agree(*pair) for pair in pairs):
            apart = [pair for pair in zip(one.inputs, other.inputs) if not _agree(*pair)]
            later = zip(of_target[i:], of_golden[i:])
            return {one.name} | {a.name for a, b in later if a.name == b.name and _read_one_of(apart, a, b)}
    raise AssertionError("the fault changes nothing")


def _read_one_of(pairs: list[tuple[Tensor, Tensor]], one: _Call, other: _Call) -> bool:
    """Whether two calls read one of these pairs of tensors."""
    return any(
        _agree(a, target) and _agree(b, golden) for target, golden in pairs for a, b in zip(one.inputs, other.inputs)
    )


def _first_new(calls: list[_Call], others: list[_Call]) -> list[_Call]:
    """The first call with a unique result, and those after it up to one that is not a view."""
    given = [output for call in others for output in call.outputs]
    is_new = [not all(any(_agree(one, other) for other in given) for one in call.outputs) for call in calls]
    first = is_new.index(True)
    views = itertools.takewhile(lambda call: call.is_view, calls[first + 1 :])
    last = first + 1 + len(list(views))
    return calls[first : last + 1]


def arguments(inputs: Any) -> tuple[tuple, dict]:
    """What a network is called with: by order, or by name."""
    if isinstance(inputs, dict):
        return (), inputs
    return inputs if isinstance(inputs, tuple) else (inputs,), {}


def _calls(side: Callable[..., Any], inputs: Any, autocast: torch.dtype | None) -> list[_Call]:
    args, kwargs = arguments(inputs)
    is_cast = autocast is not None
    with torch.no_grad(), torch.autocast("cpu", autocast, enabled=is_cast), _Recorder() as recorder:
        side(*args, **kwargs)
    return recorder.calls


def _agree(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return torch.equal(one, other)
    size = float(other.double().norm()) / math.sqrt(max(other.numel(), 1))
    return bool(torch.allclose(one, other, rtol=ROUNDING, atol=ROUNDING * size, equal_nan=True))


def _element(*place: int) -> Callable[[Tensor], None]:
    def change(parameter: Tensor) -> None:
        parameter[place] += 0.5

    return change


def _argument(position: int | str, value: Any) -> Change:
    """Another value of one argument; a function makes it of the one that was given."""

    def change(func: Callable[..., Any], args: list, kwargs: dict) -> Any:
        given: Any = kwargs if isinstance(position, str) else args
        given[position] = value(given[position]) if callable(value) else value
        return func(*args, **kwargs)

    return change


def _other(function: Callable[..., Any]) -> Change:
    return lambda func, args, kwargs: function(*args)


def _rounded(x: Tensor) -> Tensor:
    return x.bfloat16().float()


FAULTS = {
    "cnn: element of a convolution": Fault("cnn", "features.4.weight", _element(3, 2, 1, 1)),
    "cnn: element of a bias": Fault("cnn", "head.bias", _element(2)),
    "cnn: scale of a batch normalisation": Fault("cnn", "features.5.weight", lambda scale: scale.mul_(1.1)),
    "cnn: epsilon": Fault("cnn", "batch_norm", _argument("eps", 0.3), 1),
    "cnn: padding": Fault("cnn", "conv2d", _argument(4, (0, 0))),
    "cnn: another activation": Fault("cnn", "relu", _other(lambda x, *_: F.leaky_relu(x, 0.1)), 1),
    "cnn: no activation": Fault("cnn", "relu", lambda func, args, kwargs: args[0], 0),
    "cnn: average for maximum": Fault("cnn", "max_pool2d", lambda func, args, kwargs: F.avg_pool2d(args[0], 2)),
    "cnn: wrong axis of a mean": Fault("cnn", "mean", lambda func, args, kwargs: args[0].amax((2, 3))),
    "cnn: rounded input": Fault("cnn", "conv2d", _argument(0, _rounded), 1),
    "cnn: missing bias": Fault("cnn", "linear", _argument(2, None)),
    "probed: mask shifted": Fault("probed", "triu", _argument(1, 2), 1),
    "probed: factor": Fault("probed", "mul", _argument(1, 0.8), 1),
    "probed: wrong axis of a softmax": Fault("probed", "softmax", _argument(1, 1), 1),
    "probed: sign": Fault("probed", "add", lambda func, args, kwargs: args[0] - args[1], 2),
    "probed: swapped inputs": Fault("probed", "matmul", lambda func, args, kwargs: (args[1].mT @ args[0].mT), 2),
    "probed: residual left out": Fault("probed", "add", lambda func, args, kwargs: args[1], 3),
    "probed: element of a weight": Fault("probed", "blocks.0.query.weight", _element(1, 3)),
    "probed: mask of zeros": Fault("probed", "masked_fill", _argument(2, 0.0)),
    "lstm: input weight": Fault("lstm", "layer.weight_ih_l0", _element(2, 1)),
    "lstm: hidden weight": Fault("lstm", "layer.weight_hh_l0", _element(9, 3)),
    "lstm: bias": Fault("lstm", "layer.bias_hh_l0", _element(4)),
    "lstm: first step for the last": Fault("lstm", "linear", _argument(0, lambda x: x.flip(0))),
    "lstm: embedding": Fault("lstm", "embed.weight", _element(14, 2)),
    "lstm: backwards in time": Fault("lstm", "lstm", _argument(0, lambda x: x.flip(1))),
    "gru: hidden weight": Fault("gru", "layer.weight_hh_l0", _element(9, 3)),
    "gru: rounded": Fault("gru", "gru", _argument(0, _rounded)),
    "gru: bias": Fault("gru", "layer.bias_ih_l0", _element(4)),
    "bert: epsilon": Fault("bert", "layer_norm", _argument("eps", 0.1), 3),
    "bert: missing bias": Fault("bert", "linear", _argument(2, None), 8),
    "bert: element of a weight": Fault("bert", "bert.encoder.layer.1.output.dense.weight", _element(3, 5)),
    "bert: positions shifted": Fault("bert", "embedding", _argument(0, lambda indices: indices + 1), 2),
    "bert: another activation": Fault("bert", "gelu", _other(lambda x, *_: F.relu(x)), 1),
    "bert: wrong axis of a softmax": Fault("bert", "softmax", _argument("dim", -2), 1),
    "bert: scores not scaled": Fault("bert", "mul", lambda func, args, kwargs: args[0], 1),
    "bert: scores times 16": Fault("bert", "softmax", lambda func, args, kwargs: func(args[0] * 16, **kwargs), 0),
    "bert: heads in another order": Fault("bert", "matmul", _argument(1, lambda value: value.flip(1)), 3),
}  # fmt: skip
