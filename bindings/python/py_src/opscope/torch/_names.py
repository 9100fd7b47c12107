"""Names of a graph's operators, and selecting operators by names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from .._plan import SCOPE_KEY

_ROOT = re.compile(r"^L\[(?:'[^']*'|\"[^\"]*\")\]")
_MODULES = re.compile(r"\._modules\[(?:'([^']*)'|\"([^\"]*)\")\]")
_MEMBER = re.compile(r"\._(?:modules|parameters|buffers)\[(?:'([^']*)'|\"([^\"]*)\")\]")
_PARAMETER = re.compile(rf"(?:{_MEMBER.pattern})*\._(?:parameters|buffers)\[(?:'[^']*'|\"[^\"]*\")\]$")
_TENSORS = re.compile(r"\._(?:parameters|buffers)\[(?:'([^']*)'|\"([^\"]*)\")\]")
_LOCAL = re.compile(r"^L\[(?:'([^']*)'|\"([^\"]*)\")\]")
_FRAME = re.compile(r'^\s*File "(.+)", line (\d+), in (.*)$')
# The wrapper that PyTorch before 2.9 records for a compiled module of `torch.nn`.
_WRAPPER = "/torch/_dynamo/external_utils.py"
# Number of names listed if none is similar.
_N_SUGGESTIONS_OF_ALL = 8
_N_SUGGESTIONS = 3
# Torch's variants of batch norm, and of its backward pass.
_BATCH_NORMS = {
    "_batch_norm_impl_index", "_batch_norm_no_update", "_batch_norm_with_update", "_batch_norm_with_update_functional",
    "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training",
    "batch_norm_with_update", "cudnn_batch_norm", "miopen_batch_norm", "native_batch_norm",
}  # fmt: skip
_BATCH_NORMS_BACKWARD = {
    "_batch_norm_impl_index_backward", "cudnn_batch_norm_backward", "miopen_batch_norm_backward",
    "native_batch_norm_backward",
}  # fmt: skip


def target_name(target: Any) -> str:
    """`aten.add.Tensor`, or the qualified name of a function."""
    if hasattr(target, "_schema") or type(target).__name__ in ("OpOverload", "OpOverloadPacket"):
        return str(target)
    name = getattr(target, "__name__", None) or str(target)
    return str(name)


def base_name(target: str) -> str:
    """`add` of `aten.add.Tensor`.

    >>> base_name("aten.add.Tensor"), base_name("cond")
    ('add', 'cond')
    """
    parts = target.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def kind(target: str) -> str:
    """Returns the kind of an operator, whichever way torch writes it: without namespace, overload and the mark of
    writing in place, and with one name for all batch norms.

    >>> kind("aten.add_.Tensor"), kind("aten.cudnn_batch_norm.default"), kind("aten.__and__.Scalar")
    ('add', 'batch_norm', '__and__')
    """
    base = base_name(target)
    if base in _BATCH_NORMS:
        return "batch_norm"
    if base in _BATCH_NORMS_BACKWARD:
        return "batch_norm_backward"
    return base[:-1] if base.endswith("_") and not base.endswith("__") else base


def is_view(target: Any) -> bool:
    """Whether the result is a view of an argument, which is not written to."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return False
    aliases = [result.alias_info for result in schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def alias_base(base: str) -> str:
    """The kind in the style of graph engines.
    
    >>> alias_base("addmm"), alias_base("_native_batch_norm_legit"), alias_base("add_")
    ('Addmm', 'NativeBatchNormLegit', 'Add')
    """
    return "".join(word[:1].upper() + word[1:] for word in base.split("_") if word)


def module_path(meta: dict) -> str:
    """Path of the operator's module; empty if unknown."""
    stack = meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    return clean_path(path)


def clean_path(path: str) -> str:
    """A module's path as `named_modules` has it.

    >>> clean_path("L['self'].blocks.0"), clean_path("L['m']._modules['a']._modules['0']"), clean_path("L['self']")
    ('blocks.0', 'a.0', '')
    """
    path = _ROOT.sub("", path)
    path = _MODULES.sub(lambda found: "." + (found[1] or found[2] or ""), path)
    return path.lstrip(".")


def parameter_path(source: str) -> str:
    """A parameter or buffer as `named_parameters` has it, from where torch found it; empty for anything else.

    >>> parameter_path("L['self']._modules['blocks']._modules['0']._parameters['weight']"), parameter_path("L['x']")
    ('blocks.0.weight', '')
    """
    found = _PARAMETER.search(source)
    if found is None:
        return ""
    return ".".join(one or other for one, other in _MEMBER.findall(found[0]))


def argument_names(gm: Any) -> list[str]:
    """Returns the program's names of a `torch.compile` graph's arguments; empty if unknown."""
    return [_argument_name(node) for node in gm.graph.nodes if node.op == "placeholder"]


def _argument_name(node: Any) -> str:
    source = getattr(node, "_dynamo_source", None)
    name = getattr(source, "name", "")
    name = name() if callable(name) else name
    return clean_argument(str(name)) if name else ""


def clean_argument(source: str) -> str:
    """A parameter's name as `named_parameters` has it, or that of a local variable.

    >>> clean_argument("L['self']._modules['a']._modules['0']._parameters['weight']"), clean_argument("L['x']")
    ('a.0.weight', 'x')
    """
    if tensor := _TENSORS.search(source):
        module = clean_path(source[: tensor.start()])
        name = tensor[1] or tensor[2] or ""
        return f"{module}.{name}" if module else name
    if (local := _LOCAL.match(source)) and local.end() == len(source):
        return local[1] or local[2] or ""
    return clean_path(source)


def source_line(meta: dict) -> str:
    """File, line and function of the innermost call in the user's code; empty if unknown."""
    for line in reversed((meta.get("stack_trace") or "").splitlines()):
        if (found := _FRAME.match(line)) and not found[1].endswith(_WRAPPER):
            return f"{found[1]}:{found[2]} {found[3]}"
    return ""


class Layers:
    """Names that select operators."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = tuple(dict.fromkeys(tokens))
        self._found: set[str] = set()

    @property
    def found(self) -> set[str]:
        """Names that have matched so far."""
        return self._found

    def choose(self, names: list[list[str]], modules: list[str]) -> list[bool]:
        """Whether each operator is selected by one of its names, its module or its container. The
        first name is its own.
        """
        wanted = set(self.tokens)
        prefixes = tuple(token for token in self.tokens if token.endswith((".", "/")))
        chosen = []
        for own, module in zip(names, modules):
            hits = wanted.intersection(own)
            hits |= {prefix for prefix in prefixes if own and _is_below(own[0], prefix)}
            if module:
                hits |= wanted & {module}
                hits |= {prefix for prefix in prefixes if _is_below(module, prefix)}
            self._found |= hits
            chosen.append(bool(hits))
        return chosen

    def unmatched(self, names: list[list[str]], modules: list[str]) -> list[tuple[str, list[str]]]:
        """Names without a match so far, each with the most similar known ones."""
        known = sorted({*(name for own in names for name in own), *filter(None, modules)})
        missing = [token for token in self.tokens if token not in self._found]
        return [(token, difflib.get_close_matches(token, known, _N_SUGGESTIONS, 0.4)) for token in missing]


def hint(token: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: similar ones, or some of the known ones."""
    names = sorted(filter(None, known))
    if near := difflib.get_close_matches(token, names, _N_SUGGESTIONS, 0.4):
        return f"; similar names: {', '.join(near)}"
    if not names:
        return ""
    more = ", …" if len(names) > _N_SUGGESTIONS_OF_ALL else ""
    return f"; there are {', '.join(names[:_N_SUGGESTIONS_OF_ALL])}{more}"


def _is_below(module: str, prefix: str) -> bool:
    stem = prefix[:-1].replace("/", ".")
    return module == stem or module.startswith(stem + ".")


def is_marked(meta: dict) -> bool:
    """Whether the operator was traced inside `scope.data_dump()`."""
    custom: dict | None = meta.get("custom")
    return bool(custom and custom.get(SCOPE_KEY))
