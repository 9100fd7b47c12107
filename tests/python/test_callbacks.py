"""Functions of Python's that the process calls."""

from __future__ import annotations

import json
from pathlib import Path

import dump_data
from programs import DIGITS, run_code, run_snippet

MODEL = DIGITS / "digits_cnn.onnx"
RUN_MODEL = f"""
model, ret = acl.mdl.load_from_file({str(MODEL)!r})
assert ret == 0
data = bytes(4 * 64)
inputs, outputs = acl.mdl.create_dataset(), acl.mdl.create_dataset()
acl.mdl.add_dataset_buffer(inputs, acl.create_data_buffer(acl.util.bytes_to_ptr(data), len(data)))
ptr, ret = acl.rt.malloc(40, 0)
acl.mdl.add_dataset_buffer(outputs, acl.create_data_buffer(ptr, 40))
executed = acl.mdl.execute(model, inputs, outputs)
"""


def dump_config(folder: Path) -> str:
    path = folder / "acl.json"
    dump = {"dump_path": str(folder), "dump_list": [{}], "dump_mode": "all"}
    path.write_text(json.dumps({"dump": dump}), encoding="utf-8")
    return str(path)


def dump_with(callback: str, folder: Path) -> str:
    return f"""
acl.init(); acl.rt.set_device(0)
files = {{}}
{callback}
assert acl.mdl.dump_reg_callback(callback, 0) == 0
assert acl.mdl.init_dump() == 0
assert acl.mdl.set_dump({dump_config(folder)!r}) == 0
{RUN_MODEL}
assert executed == 0, executed
assert acl.mdl.finalize_dump() == 0
acl.mdl.dump_unreg_callback()
"""


def test_a_dump_callback_gets_what_would_be_written(tmp_path: Path) -> None:
    callback = """
def callback(chunk):
    assert chunk["offset"] == 2**64 - 1 and chunk["flag"] == 0 and chunk["buf_len"] > 0
    assert files.get(chunk["file_name"], [0])[0] == 0, "a chunk after the last one"
    old = files.get(chunk["file_name"], [0, ""])[1]
    data = acl.util.ptr_to_bytes(chunk["data_buf"], chunk["buf_len"]).hex()
    files[chunk["file_name"]] = [chunk["is_last_chunk"], old + data]
    return 0
"""
    files = run_snippet(dump_with(callback, tmp_path) + "result = files")
    names = []
    for name, (is_whole, content) in files.items():
        assert is_whole == 1
        path = Path(name)
        assert path.is_absolute() and path.is_relative_to(tmp_path) and not path.exists()
        data = dump_data.parse(bytes.fromhex(content))
        names.append(data.op_name)
    assert len(names) == 9
    assert {"/conv1/Conv", "/probs/Softmax"} <= set(names)


def test_a_callback_that_raises_harms_nothing(tmp_path: Path) -> None:
    callback = "def callback(chunk):\n    raise ValueError('on purpose')"
    done = run_code(dump_with(callback, tmp_path))
    assert "on purpose" in done.stderr


def test_launched_functions_run_in_the_subscribed_thread() -> None:
    result = run_snippet(
        """
import threading
acl.init(); acl.rt.set_device(0)
context, ret = acl.rt.create_context(0)
stream, ret = acl.rt.create_stream()
ran, running = [], [True]
def thread_func(args_list):
    acl.rt.set_context(args_list[0])
    while running[0]:
        acl.rt.process_report(args_list[1])
thread, ret = acl.util.start_thread(thread_func, [context, 20])
rets = [ret, acl.rt.subscribe_report(thread, stream)]
for i in range(3):
    work = lambda user_data: ran.append([user_data, threading.get_ident() == thread])
    rets.append(acl.rt.launch_callback(work, [i, "x"], 1, stream))
rets.append(acl.rt.synchronize_stream(stream))
rets.append(acl.rt.unsubscribe_report(thread, stream))
running[0] = False
rets += [acl.util.stop_thread(thread), acl.util.stop_thread(thread) != 0]
result = [rets, ran]
"""
    )
    assert result == [[0, 0, 0, 0, 0, 0, 0, 0, True], [[[i, "x"], True] for i in range(3)]]


def test_other_threads_run_while_one_waits() -> None:
    result = run_snippet(
        """
import threading
acl.init(); acl.rt.set_device(0)
stream, ret = acl.rt.create_stream()
ready, counted = threading.Event(), [0]
def wait(args_list):
    acl.rt.subscribe_report(threading.get_ident(), stream)
    ready.set()
    args_list.append(acl.rt.process_report(2000))
args = []
thread, ret = acl.util.start_thread(wait, args)
ready.wait()
for _ in range(1000):
    counted[0] += 1
acl.rt.launch_callback(lambda user_data: counted.append(len(args)), [], 1, stream)
acl.util.stop_thread(thread)
result = [counted, args]
"""
    )
    assert result == [[1000, 0], [0]]
