"""Writes crates/store/tests/golden/ort_trace: databases as ONNX Runtime's debug builds write them, and what Python reads of them.

No build of ONNX Runtime that dumps the tensors of nodes is on PyPI. The values are those that ONNX Runtime computes here, with every
value of the model as an output of it; the statements, their order and the content of each column are those of its source,
`onnxruntime/core/framework/debug_node_inputs_outputs_utils.cc`. The files in `pages` are databases of SQLite's own that show
what a reader of the file format has to know.
"""

import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

GOLDEN = Path(__file__).parents[2] / "crates/store/tests/golden/ort_trace"
CREATE_TENSORS = (
    "Create table if not exists Tensors ( "
    "  Step int not null, "
    "  Name text not null, "
    "  Value TensorProto, "
    "  DeviceType text, "
    "  TracedProducer NodeArg, "
    "  TracedConsumers NodeArgList, "
    "  primary key (Step, Name) "
    ");"
)
CREATE_NODES = (
    "Create table if not exists Nodes ( "
    "  ExecutionCounter int, "
    "  Name text primary key not null, "
    "  OpType text not null, "
    "  ExecutionProvider text "
    ");"
)
EXISTS = "select count(name) from Tensors where Name == ? and Step == ?;"
INSERT_TENSOR = (
    "Insert into Tensors (Step, Name, Value, DeviceType, TracedProducer, TracedConsumers) "
    ' values (?, ?, ?, ?, "", ""); '
)
UPDATE_TENSOR = (
    "Update Tensors set "
    "  TracedProducer = TracedProducer || ?, "
    "  TracedConsumers = TracedConsumers || ? "
    "where Name = ? and Step = ?;"
)
INSERT_NODE = (
    "Insert or Ignore into Nodes (ExecutionCounter, Name, OpType, ExecutionProvider) "
    " values (?, ?, ?, ?);"
)


def model():
    """Names with what separates them in a list of consumers; a node without a name; one value that is read twice by a
    node, and a weight that two nodes read; several dtypes and extents, and a tensor that fills several pages."""
    random = np.random.default_rng(7)
    weight = random.standard_normal((3, 4)).astype(np.float32)
    table = random.standard_normal((40, 30)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["/fc/MatMul_output_0"], name="/fc/MatMul"),
        helper.make_node("Relu", ["/fc/MatMul_output_0"], ["relu:0"], name="relu:0"),
        helper.make_node("Mul", ["relu:0", "relu:0"], ["square"], name="1"),
        helper.make_node("MatMul", ["y", "w"], ["other"], name="fc2"),
        helper.make_node("Add", ["square", "other"], ["sum"], name=""),
        helper.make_node("Cast", ["sum"], ["half"], name="größe", to=TensorProto.FLOAT16),
        helper.make_node("Greater", ["half", "zero"], ["flags"], name="n6"),
        helper.make_node("Split", ["sum"], ["left", "right"], name="n7", axis=1),
        helper.make_node("Shape", ["left"], ["shape"], name="n8"),
        helper.make_node("Gather", ["table", "rows"], ["wide"], name="n9"),
        helper.make_node("ReduceSum", ["wide"], ["scalar"], name="n10", keepdims=0),
        helper.make_node("Where", ["flags", "yes", "no"], ["words"], name="n11"),
        helper.make_node("Slice", ["shape", "one", "one"], ["empty"], name="n12"),
    ]
    kinds = {"x": (1, [2, 3]), "y": (1, [2, 3]), "rows": (7, [40])}
    inputs = [helper.make_tensor_value_info(name, kind, extents) for name, (kind, extents) in kinds.items()]
    weights = {"w": weight, "table": table, "zero": np.zeros((1,), np.float16), "one": np.ones((1,), np.int64)}
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    initializers += [helper.make_tensor(name, TensorProto.STRING, [1], [name]) for name in ("yes", "no")]
    outputs = [helper.make_empty_tensor_value_info(name) for node in nodes for name in node.output]
    graph = helper.make_graph(nodes, "small", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def feeds(step):
    random = np.random.default_rng(step)
    x, y = random.standard_normal((2, 2, 3)).astype(np.float32)
    return {"x": x, "y": y, "rows": random.integers(0, 40, 40)}


def values_of(proto, step):
    """Every value of one run: those of inputs and weights, and those that ONNX Runtime computes."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, feeds(step)), strict=True))
    weights = {one.name: numpy_helper.to_array(one) for one in proto.graph.initializer}
    return feeds(step) | weights | found


def tensor_proto(value, name):
    """What ONNX Runtime makes of a tensor: texts one by one, everything else as bytes."""
    if value.dtype == object or value.dtype.kind in "SU":
        return helper.make_tensor(name, TensorProto.STRING, value.shape, [str(text) for text in value.flat])
    return numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)


class Trace:
    """Does what the source does, one transaction for each statement."""

    def __init__(self, path, has_inputs=True, has_outputs=True, has_placement=True):
        path.unlink(missing_ok=True)
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute(CREATE_TENSORS)
        self.connection.execute(CREATE_NODES)
        self.has_inputs, self.has_outputs, self.has_placement = has_inputs, has_outputs, has_placement

    def tensor(self, step, name, value, producer="", consumer=""):
        (n_rows,) = self.connection.execute(EXISTS, (name, step)).fetchone()
        if n_rows == 0:
            blob = tensor_proto(value, name).SerializeToString()
            self.connection.execute(INSERT_TENSOR, (step, name, blob, "CPU"))
        self.connection.execute(UPDATE_TENSOR, (producer, consumer, name, step))

    def node(self, step, counter, node, values):
        for is_input, names in ((True, node.input), (False, node.output)):
            # The placement is written before the inputs, and again before the outputs, where it is ignored.
            if step == 1 and self.has_placement:
                row = (counter, node.name, node.op_type, "CPUExecutionProvider")
                self.connection.execute(INSERT_NODE, row)
            if not (self.has_inputs if is_input else self.has_outputs):
                continue
            for position, name in enumerate(names):
                use = f"{node.name}:{position}"
                uses = {"consumer": use} if is_input else {"producer": use}
                self.tensor(step, name, values[name], **uses)

    def run(self, proto, step):
        values = values_of(proto, step)
        for counter, node in enumerate(proto.graph.node):
            self.node(step, counter, node, values)

    def close(self):
        self.connection.close()


def facts(path):
    """The rows as `sqlite3` and onnx's package read them."""
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    order = "Select rowid, Step, Name, Value, TracedProducer, TracedConsumers from Tensors order by rowid"
    tensors = []
    for rowid, step, name, blob, producer, consumers in connection.execute(order):
        proto = TensorProto()
        proto.ParseFromString(blob)
        value = numpy_helper.to_array(proto)
        is_text = value.dtype == object
        content = [str(text) for text in value.flat] if is_text else value.tobytes().hex()
        dtype = "string" if is_text else value.dtype.name
        tensors.append(
            {"row": rowid, "step": step, "name": name, "dtype": dtype, "shape": list(value.shape), "values": content}
            | {"producer": producer, "consumers": consumers}
        )
    nodes = connection.execute("Select ExecutionCounter, Name, OpType from Nodes order by rowid").fetchall()
    connection.close()
    return {"tensors": tensors, "nodes": nodes}


def write_unfinished(proto):
    """A process that ends in the middle of a transaction leaves its journal, with which the last state comes back."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.db"
        trace = Trace(path, has_inputs=False)
        trace.run(proto, 1)
        before = facts(path)
        # With a cache of one page, changed pages go to the file long before the transaction ends.
        trace.connection.execute("pragma cache_size = 1")
        trace.connection.execute("begin")
        trace.connection.execute("Update Tensors set Name = Name || 'x', TracedProducer = TracedProducer || Value")
        for number in range(40):
            trace.tensor(2, f"late {number}", np.full((300,), number, np.float32))
        for suffix in ("", "-journal"):
            shutil.copyfile(f"{path}{suffix}", GOLDEN / f"unfinished-pid3.db{suffix}")
        trace.connection.execute("rollback")
        assert facts(path) == before
        trace.close()
    return before


def write_pages():
    """Databases with other sizes of pages, several levels of pages, and pages of other kinds among them."""
    known = {}
    (GOLDEN / "pages").mkdir(exist_ok=True)
    for name, pragmas in {
        "small": "pragma page_size = 512",
        "vacuum": "pragma page_size = 1024; pragma auto_vacuum = full",
        "large": "pragma page_size = 32768",
        "wide": "pragma encoding = 'UTF-16le'",
    }.items():
        path = GOLDEN / "pages" / f"{name}.db"
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.executescript(pragmas)
        connection.execute("Create table other (id integer primary key, text)")
        connection.execute("Create table numbers (n int, real_number real, text text, bytes blob)")
        connection.execute("Create view numbers_view as select * from numbers")
        n_rows = 150 if name == "small" else 20
        connection.execute("begin")
        for n in range(n_rows):
            number = (-1) ** n * (1 << (n % 63))
            row = (number, n / 4, "ä" * (n % 7), bytes(range(n % 256)) * (40 if n == 9 else 1))
            connection.execute("Insert into numbers values (?, ?, ?, ?)", row if n % 5 else (n, None, "", b""))
        connection.execute("commit")
        # Pages that are free again, and gaps in the numbers of rows.
        connection.execute("Delete from numbers where rowid % 3 = 1")
        rows = connection.execute("Select rowid, * from numbers order by rowid").fetchall()
        known[name] = [[*row[:4], row[4].hex()] for row in rows]
        connection.close()
    return known


def main():
    GOLDEN.mkdir(parents=True, exist_ok=True)
    proto = model()
    known = {}
    for name, steps, options in (
        ("execution-trace-pid1", (1, 2), {}),
        ("outputs-pid2", (1,), {"has_inputs": False}),
        ("inputs-pid2", (1,), {"has_outputs": False}),
        ("unplaced-pid2", (1,), {"has_placement": False}),
    ):
        path = GOLDEN / f"{name}.db"
        trace = Trace(path, **options)
        for step in steps:
            trace.run(proto, step)
        trace.close()
        known[path.name] = facts(path)
    known["unfinished-pid3.db"] = write_unfinished(proto)
    (GOLDEN / "known.json").write_text(json.dumps(known, separators=(",", ":"), ensure_ascii=False) + "\n")
    (GOLDEN / "pages/known.json").write_text(json.dumps(write_pages(), separators=(",", ":"), ensure_ascii=False) + "\n")
    onnx.save(proto, GOLDEN / "model.onnx")


if __name__ == "__main__":
    main()
