"""Wrong handles, arguments and orders give codes or exceptions; the interpreter goes on."""

from __future__ import annotations

import pytest
from programs import DIGITS, run_code, run_snippet

MODEL = DIGITS / "digits_cnn.onnx"
STARTED = "acl.init(); acl.rt.set_device(0)\n"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("acl.mdl.unload(77)", 145003),
        ("acl.mdl.unload(-1)", 145003),
        ("acl.mdl.execute(77, 0, 0)", 100000),
        ("acl.mdl.execute(77, acl.mdl.create_dataset(), acl.mdl.create_dataset())", 145003),
        ("acl.mdl.load_from_file('/nothing/here.onnx')", [0, 145002]),
        ("acl.mdl.load_from_mem(0, 10)", [0, 100000]),
        ("acl.mdl.load_from_mem(acl.util.bytes_to_ptr(b'x'), 0)", [0, 100000]),
        ("acl.mdl.get_desc(12345, 1)", 100000),
        ("acl.mdl.get_num_inputs(12345)", 0),
        ("acl.mdl.get_num_inputs(-1)", 0),
        ("acl.mdl.get_num_inputs(2**200)", 0),
        ("acl.mdl.get_input_size_by_index(12345, 0)", 0),
        ("acl.mdl.get_input_dims(12345, 0)", [{}, 100000]),
        ("acl.mdl.get_output_dims(0, -1)", [{}, 100000]),
        ("acl.mdl.get_input_data_type(12345, 0)", -1),
        ("acl.mdl.get_input_name_by_index(12345, 0)", None),
        ("acl.mdl.get_input_index_by_name(12345, 'x')", [0, 100000]),
        ("acl.mdl.get_dynamic_batch(12345)", [{}, 100000]),
        ("acl.mdl.get_dataset_buffer(12345, 0)", 0),
        ("acl.mdl.get_dataset_num_buffers(12345)", 0),
        ("acl.mdl.add_dataset_buffer(12345, 6)", [12345, 100000]),
        ("acl.mdl.destroy_dataset(12345)", 100000),
        ("acl.destroy_data_buffer(12345)", 100000),
        ("acl.get_data_buffer_addr(12345)", 0),
        ("acl.get_data_buffer_size(12345)", 0),
        ("acl.get_tensor_desc_type(12345)", -1),
        ("acl.destroy_tensor_desc(12345)", None),
        ("acl.rt.malloc(0, 0)", [0, 100000]),
        ("acl.rt.free(0)", 100000),
        ("acl.rt.free(12345)", 107000),
        ("acl.rt.memcpy(0, 8, 0, 8, 1)", 100000),
        ("acl.rt.memcpy(1, 0, 2, 0, 1)", 0),
        ("acl.rt.set_device(99)", 107001),
        ("acl.rt.synchronize_stream(12345)", 107017),
        ("acl.rt.subscribe_report(1, 12345)", 107017),
        ("acl.mdl.create_aipp(0)", 0),
        ("acl.mdl.set_aipp_crop_params(0, 1, 2, 3, 4, 5, 6)", 100000),
        ("acl.mdl.get_aipp_type(77, 0)", [0, 0, 145003]),
        ("acl.mdl.get_first_aipp_info(77, 0)", [None, 145003]),
        ("acl.media.dvpp_malloc(0)", [0, 100000]),
        ("acl.media.dvpp_free(12345)", 107000),
        ("acl.media.dvpp_set_pic_desc_data(12345, 1)", 100000),
        ("acl.media.dvpp_get_pic_desc_data(12345)", 0),
        ("acl.media.dvpp_destroy_pic_desc(acl.media.dvpp_create_stream_desc())", 100000),
        ("acl.media.dvpp_create_batch_pic_desc(0)", 0),
        ("acl.media.dvpp_get_pic_desc(12345, 0)", 0),
        ("acl.media.dvpp_vpc_resize_async(1, 2, 3, 4, 5)", 200001),
        ("acl.media.dvpp_jpeg_get_image_info(1, 2)", [0, 0, 0, 200001]),
        ("acl.rt.get_overflow_status(0, 64, 0)", 100000),
        ("acl.rt.set_stream_overflow_switch(0, 2)", 100000),
        ("acl.rt.set_device_sat_mode(0)", 207000),
        ("acl.rt.get_task_id_from_exception_info(1)", 2**32 - 1),
        ("acl.op.destroy_attr(12345)", None),
        ("acl.op.set_attr_int(12345, 'a', 1)", 100000),
        ("acl.op.set_attr_data_type(12345, 'a', 1)", [12345, 100000]),
        ("acl.mdl.destroy_exec_config_handle(12345)", 100000),
        ("acl.mdl.execute_v2(77, 0, 0, 0, 12345)", 100000),
        ("acl.data_type_size(0)", 4),
        ("acl.float_to_float16(float('inf'))", 0x7BFF),
        ("acl.float16_to_float(0x3C00)", 1.0),
    ],
)
def test_wrong_values_give_codes(call: str, expected: object) -> None:
    assert run_snippet(f"{STARTED}result = {call}") == expected


def test_freeing_twice_and_copying_too_much() -> None:
    result = run_snippet(
        STARTED
        + """ptr, ret = acl.rt.malloc(100, 0)
data = bytes(200)
result = [
    ret,
    acl.rt.memcpy(ptr, 100, acl.util.bytes_to_ptr(data), 200, 1),
    acl.rt.memcpy(ptr, 200, acl.util.bytes_to_ptr(data), 200, 1),
    acl.rt.memset(ptr, 1000, 1, 1000),
    acl.rt.memset(ptr, 100, 7, 100),
    list(acl.util.ptr_to_bytes(ptr + 98, 2)),
    acl.rt.free(ptr),
    acl.rt.free(ptr),
]
"""
    )
    assert result == [0, 107000, 107000, 107000, 0, [7, 7], 0, 107000]


def test_a_model_needs_init() -> None:
    assert run_snippet(f"result = acl.mdl.load_from_file({str(MODEL)!r})") == [0, 145001]


def test_objects_are_gone_after_they_are_destroyed() -> None:
    result = run_snippet(
        STARTED
        + f"""model, ret = acl.mdl.load_from_file({str(MODEL)!r})
desc = acl.mdl.create_desc()
rets = [ret, acl.mdl.get_desc(desc, model), acl.mdl.get_num_inputs(desc)]
rets += [acl.mdl.unload(model), acl.mdl.unload(model)]
rets += [acl.mdl.destroy_desc(desc), acl.mdl.destroy_desc(desc), acl.mdl.get_num_inputs(desc)]
result = rets
"""
    )
    assert result == [0, 0, 1, 0, 145003, 0, 100000, 0]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("acl.init(5)", "TypeError"),
        ("acl.init('a\\0b')", "ValueError"),
        ("acl.mdl.load_from_file()", "TypeError"),
        ("acl.mdl.unload('1')", "TypeError"),
        ("acl.mdl.unload(1.5)", "TypeError"),
        ("acl.rt.set_device(2**40)", "OverflowError"),
        ("acl.create_tensor_desc(0, 5, 2)", "TypeError"),
        ("acl.create_tensor_desc(0, ['a'], 2)", "TypeError"),
        ("acl.mdl.set_input_dynamic_dims(1, 2, 0, {'dimCount': 5, 'dims': [1]})", "ValueError"),
        ("acl.mdl.set_input_dynamic_dims(1, 2, 0, {})", "KeyError"),
        ("acl.mdl.dump_reg_callback('x', 0)", "TypeError"),
        ("acl.rt.launch_callback(5, [], 1, 0)", "TypeError"),
        ("acl.op.execute_v2('Add', [1], [], [], [], 0, 0)", "ValueError"),
        ("acl.util.bytes_to_ptr('text')", "TypeError"),
        ("acl.util.ptr_to_bytes(0, 4)", "ValueError"),
        ("acl.util.ptr_to_bytes(4096, 2**63)", "MemoryError"),
        ("acl.util.start_thread(5, [])", "TypeError"),
    ],
)
def test_wrong_types_raise(call: str, error: str) -> None:
    snippet = f"try:\n    {call}\n    result = None\nexcept Exception as error:\n    result = type(error).__name__"
    assert run_snippet(STARTED + snippet) == error


# Prints each call with a wrong value that is refused in other words than "... is expected, got ...".
REFUSALS = """
import inspect, math, re
WRONG = [None, "5", b"5", math.nan, 1.5, [], ["a"], [[1.5]], {}, {"dimCount": 1}, object(), 2**200, -2**200, "a\\0b"]
# Functions that wait, or follow the addresses that they are given.
WAITING = {"finalize", "finalize_reference", "start_thread", "process_report", "memcpy", "memset", "memcpy_async",
    "memset_async", "ptr_to_bytes", "ptr_to_numpy", "load_from_mem", "load_from_mem_with_mem", "get_desc_from_mem"}
odd, n = [], 0
for module in (acl, acl.mdl, acl.rt, acl.op, acl.util):
    for name, function in inspect.getmembers(module, callable):
        if name.startswith("_") or inspect.isclass(function) or inspect.ismodule(function):
            continue
        names = list(inspect.signature(function).parameters)
        for i, wrong in [(i, wrong) for i in range(len(names)) for wrong in WRONG]:
            if isinstance(wrong, int) and name in WAITING:
                continue
            values = [0] * len(names)
            values[i] = wrong
            try:
                function(*values)
            except Exception as error:
                n += 1
                told = " ".join([str(error), *getattr(error, "__notes__", [])])
                is_clear = "is expected, got " in told or "null character" in told
                is_named = any(re.search(rf"\\b{re.escape(name)}\\b", told) for name in names)
                if not (is_clear and is_named) and "`dimCount`" not in told:
                    odd.append(f"{module.__name__}.{name}({names[i]}={wrong!r}): {type(error).__name__}: {told}")
result = [n, odd]
"""


def test_wrong_types_are_told_by_name() -> None:
    n, odd = run_snippet(STARTED + REFUSALS)
    assert n > 2000
    assert odd == []


def test_errors_have_a_text_that_is_told_once() -> None:
    first, second = run_snippet("acl.mdl.init_dump()\nresult = [acl.get_recent_err_msg(), acl.get_recent_err_msg()]")
    assert "EP0008" in first
    assert second is None


def test_a_panic_of_the_engine_is_a_code_and_prints_nothing() -> None:
    done = run_code(
        """
        acl.init(); acl.rt.set_device(0)
        data, index = b"\\0" * 16, (9).to_bytes(8, "little")
        descs = [acl.create_tensor_desc(0, [4], 2), acl.create_tensor_desc(9, [1], 2)]
        out = acl.create_tensor_desc(0, [1], 2)
        buffers = [acl.create_data_buffer(acl.util.bytes_to_ptr(held), len(held)) for held in (data, index)]
        room, _ = acl.rt.malloc(4, 0)
        result = acl.create_data_buffer(room, 4)
        print(acl.op.execute_v2("Gather", descs, buffers, [out], [result], 0, 0))
        print(acl.get_recent_err_msg())
        """,
        OPSCOPE_ENGINE="tract",
    )
    assert done.stdout.startswith("507011\n"), done.stdout
    assert "the engine panicked" in done.stdout
    assert done.stderr == ""


def test_sizes_that_nobody_can_mean() -> None:
    snippet = "\n".join(
        [
            STARTED,
            "result = [acl.rt.malloc(2**40, 0)[1], acl.get_recent_err_msg(), acl.rt.malloc_host(2**40)[1]]",
            "result += [acl.mdl.load_from_mem(acl.util.bytes_to_ptr(b'x'), 2**40)[1]]",
            "result += [acl.create_tensor_desc(0, [1] * 1000, 2)]",
        ]
    )
    first, text, host, model, desc = run_snippet(snippet)
    assert (first, host, desc) == (207001, 207001, 0)
    assert "bytes of memory" in text
    assert model not in (0, None)
