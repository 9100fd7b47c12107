"""A pair of models or dumps with the right verdict, and what the binary says of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx import ModelProto


@dataclass(frozen=True)
class Pair:
    """Two models, which are given the same random inputs."""

    target: ModelProto
    golden: ModelProto
    # Further options of `diff` and `compare`.
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Truth:
    """The right verdict, known by construction."""

    # Exit codes that are right.
    exits: tuple[int, ...]
    # One of these names has to be in the headline in backticks; none for sound pairs.
    outputs: tuple[str, ...] = ()
    # The report says what is wrong.
    says: str = ""
    # Operators that may be accused.
    culprits: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether the target is as it should be; a verdict may be impossible all the same."""
        return self.exits in ((0,), (4,))


@dataclass(frozen=True)
class Case:
    """One comparison; `make` builds the pair when it is run."""

    set_name: str
    network: str
    kind: str
    engine: str
    form: str
    truth: Truth
    make: Callable[[], Pair] = field(compare=False)

    @property
    def name(self) -> str:
        return "/".join((self.set_name, self.network, self.kind, self.engine, self.form))


@dataclass(frozen=True)
class Said:
    """What the binary said."""

    exit: int
    text: str
    document: dict[str, Any] | None

    @property
    def headline(self) -> str:
        return self.text.splitlines()[0] if self.text else ""

    @property
    def report(self) -> str:
        """Everything before the tables."""
        return self.text.split("\n\n")[0]


@dataclass(frozen=True)
class Outcome:
    """A verdict, judged."""

    exit: int
    word: str
    named: bool
    explained: bool
    accused: bool

    @classmethod
    def judge(cls, truth: Truth, said: Said) -> Outcome:
        backticked = set(re.findall(r"`([^`]+)`", said.headline))
        is_told = said.exit in truth.exits and bool(backticked & set(truth.outputs))
        return cls(
            exit=said.exit,
            word=said.headline.split(":")[0] or "nothing",
            named=is_told and not truth.is_sound,
            explained=is_told and bool(truth.says) and bool(re.search(truth.says, said.report)),
            accused=_accuses_innocent(truth, said),
        )

    def is_right(self, truth: Truth) -> bool:
        if truth.is_sound:
            return self.exit in truth.exits and not self.accused
        return self.named

    def to_text(self) -> str:
        marks = [name for name in ("named", "explained", "accused") if getattr(self, name)]
        return " ".join([str(self.exit), self.word, *marks])

    @classmethod
    def from_text(cls, text: str) -> Outcome:
        code, word, *marks = text.split()
        return cls(int(code), word, "named" in marks, "explained" in marks, "accused" in marks)


def _accuses_innocent(truth: Truth, said: Said) -> bool:
    """Whether the verdict holds an operator responsible that is as it should be."""
    if said.document is None:
        return False
    summary = said.document["summary"]
    first = summary.get("first_failure") or summary.get("first_divergence")
    if first is None or first.get("cause") not in ("own", "outside"):
        return False
    operator = said.document["operators"][first["operator"]]
    # The headline has the last of several that are compared together.
    named = first.get("name") or (operator["target"] or operator["golden"])[-1]
    return named["op_name"] not in truth.culprits


def saved(model: ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path
