"""The grammar of a dump tree of MindSpore's: its structure without numbers, times and names.

Written from the description of the format, without the tool's own reader.
"""

from __future__ import annotations

import ast
import csv
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CAMEL = "Bool|BFloat16|U?Int(?:8|16|32|64)|Float(?:16|32|64)"
LOWER = CAMEL.lower()
_NAME = re.compile(
    r"(?P<type>[^.]+)\.(?P<name>[^. /\\]+)\.0\.0\.\d{16}\.(?P<side>input|output)\.(?P<slot>\d+)\.DefaultFormat\."
    rf"(?P<dtype>(?P<camel>{CAMEL})|(?P<lower>{LOWER}))\.npy"
)
_HEADER = re.compile(rb"\{'descr': '([|<][A-Za-z]\d)', 'fortran_order': False, 'shape': (\((?:\d+,)*\)), \} *\n")
_ORDER_HEADER = "NodeExecutionOrder-FullNameWithScope"
_FIXED = {"graphs", "execution_order", ".dump_metadata"}
_IR_LINES = {
    "": r"",
    "entry": r"# IR entry: @kernel_graph\d+",
    "subgraphs": r"# Total subgraphs: 1",
    "attributes": r"# Attrs:|subgraph attr:",
    "attribute": r"\w+: .*",
    "n_parameters": r"# Total params: \d+",
    "parameters": r"# Params:",
    "parameter": r"%para\d+_.*: <.+>(?: : \[.*\])?(?:  :  has_default)?  :  <\w+xDefaultFormat\[const vector\]"
    r"\{[\d, -]*\}>  :  IsWeight: (?:true|false)",
    "counts": r"Node counting information:|Total number of c?nodes: \d+",
    "instance": r"subgraph instance: kernel_graph\d+ : 0x[0-9a-f]+",
    "begin": r"subgraph @kernel_graph\d+\(\) \{",
    "node": r"  %\d+\(\w+\) = \w+\(.*",
    "types": r"      : \(.*\)(?: -> \(.*\))?",
    "full_name": r"      # Fullname with scope: \(.*\)",
    "source": r"      # In file .*/|      # Corresponding (?:code|forward node) candidate:",
    "value": r" *\[.*",
    "return": r"  Return\(%\d+\)(?: primitive_attrs: \{.*\})?",
    "end": r"\}",
    "order": r"# Order:|#   \d+: @kernel_graph\d+:CNode_\d+\{\[0\]: ValueNode<Primitive> Return, \[1\]: CNode_\d+\}",
}


@dataclass
class Tree:
    """The contents of a tree; `problems` are places that follow no grammar at all."""

    paths: set[str] = field(default_factory=set)
    iterations: set[int] = field(default_factory=set)
    graphs: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    descriptors: dict[str, str] = field(default_factory=dict)
    tensors: set[tuple[str, str]] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)
    n_arrays: int = 0
    columns: list[str] = field(default_factory=list)
    orders: dict[int, list[str]] = field(default_factory=dict)
    runs: dict[int, list[int]] = field(default_factory=dict)
    ir_lines: set[str] = field(default_factory=set)
    pb_fields: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def read(root: Path, net_name: str) -> Tree:
    """Everything below `root`, the `path` of the configuration. It is net `net_name`'s."""
    tree = Tree()
    for path in sorted(root.rglob("*")):
        # The tool's own files next to a dump are not part of it.
        if ".opscope" in path.relative_to(root).parts:
            continue
        if path.is_file():
            _read_file(tree, path, path.relative_to(root).parts, net_name)
    return tree


def _read_file(tree: Tree, path: Path, parts: tuple[str, ...], net_name: str) -> None:
    def problem(text: str) -> None:
        tree.problems.append(f"{'/'.join(parts)}: {text}")

    match parts:
        case (rank, area, name) if area in _FIXED:
            graph = re.fullmatch(r"ms_(.*?)_graph_(\d+)\.(\w+)", name)
            tree.paths.add("/".join([_numbers(rank), area, _numbers(name)]))
            if graph:
                _read_beside(tree, path, graph[1], int(graph[2]), graph[3], problem)
            elif area != ".dump_metadata":
                problem("no name that is known")
        case (rank, net, graph, leaf, name) if net == net_name and graph.isdecimal():
            tree.graphs.add(int(graph))
            if leaf.isdecimal():
                tree.iterations.add(int(leaf))
            elif leaf != "constants":
                problem("neither an iteration nor constants")
            place = "/".join([_numbers(rank), "<net>", "<n>", _numbers(leaf)])
            tree.paths.add(f"{place}/{_read_leaf(tree, path, problem)}")
        case _:
            problem("nothing belongs here")


def _read_leaf(tree: Tree, path: Path, problem) -> str:
    """A file of an iteration; its name without what differs from file to file."""
    if path.name == "statistic.csv":
        tree.columns = _read_rows(path, problem)
        return path.name
    if path.name == "mapping.csv":
        for line in path.read_text(encoding="utf-8").splitlines():
            stored, _, real = line.partition(",")
            if not re.fullmatch(r"\d{1,10}\.npy", stored) or int(stored[:-4]) >= 2**31 or len(real.encode()) < 256:
                problem(f"no line of a mapping: {line}")
            if not (path.parent / stored).is_file():
                problem(f"{stored} is not there")
        return path.name
    name, mark = path.name, ""
    if re.fullmatch(r"\d+\.npy", name):
        name, mark = _mapping(path.parent).get(name, name), "<digits> = "
    found = _NAME.fullmatch(name)
    if not found:
        problem("no name of an array")
        return "?"
    tree.n_arrays += 1
    tree.dtypes.add(found["dtype"])
    descriptor, shape = _read_header(path, problem)
    tree.shapes.add(shape)
    tree.descriptors[found["dtype"]] = descriptor
    is_parameter = found["type"] == "Parameter"
    if is_parameter:
        tree.parameters.add(found["name"])
    else:
        tree.tensors.add((found["name"], found["side"]))
    spelling = "<Dtype>" if found["camel"] else "<dtype>"
    kind = "Parameter" if is_parameter else "<type>"
    return f"{mark}{kind}.<name>.0.0.<16 digits>.{found['side']}.<n>.DefaultFormat.{spelling}.npy"


def _mapping(folder: Path) -> dict[str, str]:
    path = folder / "mapping.csv"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return dict(line.split(",", 1) for line in lines)


def _read_header(path: Path, problem) -> tuple[str, tuple[int, ...]]:
    """The dtype and shape of an array, whose header has to be spaced as MindSpore's is."""
    data = path.read_bytes()
    if data[:8] != b"\x93NUMPY\x01\x00":
        problem("no array of version 1.0")
        return "", ()
    end = 10 + struct.unpack("<H", data[8:10])[0]
    found = _HEADER.fullmatch(data[10:end])
    if not found or end % 64 or not 1 <= len(data[10:end]) - len(data[10:end].rstrip()) <= 65:
        problem(f"a header that is not MindSpore's: {data[10:end]!r}")
        return "", ()
    return found[1].decode(), ast.literal_eval(found[2].decode())


def _read_rows(path: Path, problem) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    columns = lines[0].split(",")
    for line in lines[1:]:
        (row,) = csv.reader([line])
        if (
            len(row) != len(columns) + 1
            or row[-1] != ""
            or not re.fullmatch(r"\[[\d,]*\]", row[columns.index("Shape")])
        ):
            problem(f"no row of statistics: {line}")
    return columns


def _read_beside(tree: Tree, path: Path, kind: str, graph: int, extension: str, problem) -> None:
    match kind, extension:
        case "execution_order", "csv":
            header, *names = path.read_text(encoding="utf-8").splitlines()
            tree.orders[graph] = names
            if header != _ORDER_HEADER:
                problem(f"header {header}")
        case "global_execution_order", "csv":
            tree.runs[graph] = [int(line) for line in path.read_text(encoding="utf-8").splitlines()]
        case "output_trace_code", "ir":
            for line in path.read_text(encoding="utf-8").splitlines():
                kinds = (kind for kind, pattern in _IR_LINES.items() if re.fullmatch(pattern, line))
                found = next(kinds, None)
                if found is None:
                    problem(f"no line of a graph: {line}")
                else:
                    tree.ir_lines.add(found)
        case "output_trace_code", "pb":
            try:
                tree.pb_fields |= set(_fields(path.read_bytes(), "model"))
            except (IndexError, KeyError, ValueError) as error:
                problem(f"no message: {error}")
        case _:
            problem("no name that is known")


# Fields that are messages: what they are.
_MESSAGES = {
    "model": {4: "graph"},
    "graph": {1: "node", 3: "parameter", 4: "output", 5: "constant"},
    "node": {1: "input", 5: "attribute", 6: "type"},
    "attribute": {2: "value"},
    "constant": {2: "value"},
    "parameter": {2: "type", 3: "value"},
    "output": {2: "type"},
    "type": {2: "tensor_type", 3: "sequence"},
    "sequence": {1: "type"},
    "tensor_type": {2: "shape"},
    "shape": {1: "dim"},
    "value": {8: "tensor", 17: "tensor", 18: "value", 19: "constant", 20: "type"},
}


def _fields(data: bytes, message: str) -> Iterator[str]:
    """The fields that occur, as `message.number`."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        yield f"{message}.{number}"
        match wire:
            case 0:
                _, at = _varint(data, at)
            case 1:
                at += 8
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise ValueError(f"field {message}.{number} ends too late")
                if number in _MESSAGES.get(message, {}):
                    yield from _fields(data[at : at + size], _MESSAGES[message][number])
                at += size
            case 5:
                at += 4
            case _:
                raise ValueError(f"wire type {wire} in {message}")
    if at != len(data):
        raise ValueError(f"{message} ends too early")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _numbers(name: str) -> str:
    return re.sub(r"\d+", "<n>", name)
