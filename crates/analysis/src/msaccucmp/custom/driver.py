"""Runs converters for the parent process. One JSON line per request, one per answer, arrays after it."""
import importlib.util
import inspect
import io
import json
import os
import sys

# What scripts print must not end up between the answers.
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
sys.dont_write_bytecode = True
modules = {}


def load(path):
    if path not in modules:
        name = os.path.splitext(os.path.basename(path))[0]
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        modules[path] = module
    return modules[path]


def count(path):
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(load(path).convert).parameters.values()
    return sum(p.kind in kinds for p in parameters)


def convert(request, data):
    import numpy
    array = numpy.frombuffer(bytearray(data), numpy.dtype(request["descr"]))
    arguments = [request["shape_from"], request["shape_to"], array]
    if request["groups"] is not None:
        arguments.append(request["groups"])
    result = load(request["path"]).convert(*arguments)
    if not isinstance(result, numpy.ndarray):
        raise TypeError("the return value is not an ndarray")
    out = io.BytesIO()
    numpy.save(out, result, allow_pickle=False)
    return out.getvalue()


for line in sys.stdin.buffer:
    request = json.loads(line)
    data = sys.stdin.buffer.read(request.get("n_bytes", 0))
    content = b""
    try:
        if "descr" in request:
            content = convert(request, data)
            answer = {"n_bytes": len(content)}
        else:
            answer = {"n_arguments": count(request["path"])}
    except BaseException as error:
        answer = {"error": str(error) or type(error).__name__}
    answers.write(json.dumps(answer).encode() + b"\n" + content)
    answers.flush()
