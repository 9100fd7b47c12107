"""Networks as people run them, with random weights, small enough to be compiled several times in a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from models import bits
from torch import Tensor, nn
from torch.nn import functional as F

N_CLASSES = 7
N_TOKENS = 50


@dataclass(frozen=True)
class Architecture:
    """How to make a network, its arguments, and its result."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple]
    outputs: Callable[[Any], Tensor] = lambda result: result


def _vision(name: str, size: int, **options: Any) -> Architecture:
    def make() -> nn.Module:
        models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
        return getattr(models, name)(weights=None, num_classes=N_CLASSES, **options)

    return Architecture(make, lambda: (torch.randn(2, 3, size, size),))


def _vision_transformer() -> nn.Module:
    models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
    return models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, dropout=0.1,
        num_classes=N_CLASSES,
    )  # fmt: skip


def _swin() -> nn.Module:
    models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
    # `swin_t` with two of its four stages, which have all there is in it.
    return models.SwinTransformer(
        [4, 4], embed_dim=48, depths=[2, 2], num_heads=[3, 6], window_size=[7, 7], stochastic_depth_prob=0.2,
        num_classes=N_CLASSES,
    )  # fmt: skip


def _language(kind: str, **options: Any) -> Architecture:
    def make() -> nn.Module:
        transformers = pytest.importorskip("transformers", reason="transformers is not installed")
        config = getattr(transformers, f"{kind}Config")(vocab_size=N_TOKENS, **options)
        return getattr(transformers, _HEADS[kind])(config)

    return Architecture(make, lambda: (torch.randint(0, N_TOKENS, (2, 12)),), lambda result: result.logits)


_HEADS = {"Bert": "BertForMaskedLM", "GPT2": "GPT2LMHeadModel", "Llama": "LlamaForCausalLM"}
ARCHITECTURES = {
    "resnet50": _vision("resnet50", 32),
    "mobilenet_v3_small": _vision("mobilenet_v3_small", 32),
    "vit": Architecture(_vision_transformer, lambda: (torch.randn(2, 3, 32, 32),)),
    "swin_t": Architecture(_swin, lambda: (torch.randn(1, 3, 64, 64),)),
    "bert": _language(
        "Bert", hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=32,
    ),
    "gpt2": _language("GPT2", n_embd=32, n_layer=2, n_head=2, n_positions=32, use_cache=False),
    "llama": _language(
        "Llama", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=64, max_position_embeddings=32, use_cache=False,
    ),
}  # fmt: skip


@dataclass
class Outcome:
    """All that a run leaves behind, as bytes."""

    outputs: list[bytes] = field(default_factory=list)
    gradients: dict[str, bytes] = field(default_factory=dict)
    # Parameters after the optimizer's steps, and buffers.
    state: dict[str, bytes] = field(default_factory=dict)
    # The random number that would come next.
    random: float = 0.0


@dataclass
class Trainer:
    """A network, and how often and with what it is run. Equal seeds make equal runs."""

    architecture: Architecture
    is_training: bool
    n_steps: int = 2
    # How many batches an optimizer's step gathers gradients of.
    n_batches: int = 1
    prepare: Callable[[nn.Module], nn.Module] = lambda model: model
    adapt: Callable[[Tensor], Tensor] = lambda batch: batch
    context: Callable[[], Any] = torch.enable_grad
    compiler: dict = field(default_factory=lambda: {"dynamic": False})

    def run(self, backend: Any) -> Outcome:
        """Runs the network from its start; afterwards `model` is the model that ran."""
        torch._dynamo.reset()
        torch.manual_seed(11)
        model = self.prepare(self.architecture.make().train(self.is_training))
        self.model = model
        compiled = torch.compile(model, backend=backend, **self.compiler)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        outcome = Outcome()
        for _ in range(self.n_steps):
            optimizer.zero_grad(set_to_none=False)
            for _ in range(self.n_batches):
                inputs = [self.adapt(batch) for batch in self.architecture.inputs()]
                outcome.outputs.append(bits(self._batch(compiled, inputs)))
            if self.is_training:
                optimizer.step()
        outcome.gradients = {n: bits(p.grad) for n, p in model.named_parameters() if p.grad is not None}
        outcome.state = {name: bits(value) for name, value in model.state_dict().items()}
        outcome.random = float(torch.rand(()))
        return outcome

    def _batch(self, compiled: Any, inputs: list[Tensor]) -> Tensor:
        with self.context() if self.is_training else torch.no_grad():
            output = self.architecture.outputs(compiled(*inputs))
            labels = torch.arange(output[..., 0].numel()) % output.shape[-1]
            loss = F.cross_entropy(output.flatten(0, -2).float(), labels)
        if self.is_training:
            loss.backward()
        return output.detach().clone()
