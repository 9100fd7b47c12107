"""Runs models the way that pyACL's samples do, each with its own dump configuration.

Arguments: for each model, its file, an .npz file with inputs by name, an acl.json (or "-" for no dump), and an
.npz file to write outputs to.
"""

import json
import sys

import numpy as np
import opscope.acl as acl

ACL_MEM_MALLOC_HUGE_FIRST = 0
ACL_MEMCPY_HOST_TO_DEVICE = 1
ACL_MEMCPY_DEVICE_TO_HOST = 2
# pyACL's numbers of types, and numpy's.
ACL_DTYPES = {0: np.float32, 1: np.float16, 3: np.int32, 9: np.int64}
DEVICE_ID = 0


def check_ret(message, ret):
    if ret != 0:
        raise Exception(f"{message} failed ret={ret}: {acl.get_recent_err_msg()}")


class Net:
    def __init__(self, model_path):
        self.model_id, ret = acl.mdl.load_from_file(model_path)
        check_ret("acl.mdl.load_from_file", ret)
        self.model_desc = acl.mdl.create_desc()
        ret = acl.mdl.get_desc(self.model_desc, self.model_id)
        check_ret("acl.mdl.get_desc", ret)
        self.buffers = []

    def run(self, arrays):
        inputs, outputs = acl.mdl.create_dataset(), acl.mdl.create_dataset()
        for i in range(acl.mdl.get_num_inputs(self.model_desc)):
            name = acl.mdl.get_input_name_by_index(self.model_desc, i)
            index, ret = acl.mdl.get_input_index_by_name(self.model_desc, name)
            check_ret("acl.mdl.get_input_index_by_name", ret)
            assert index == i
            self.add_input(inputs, i, np.ascontiguousarray(arrays[name]))
        sizes = self.output_sizes(arrays)
        for size in sizes:
            self.add_buffer(outputs, size)
        ret = acl.mdl.execute(self.model_id, inputs, outputs)
        check_ret("acl.mdl.execute", ret)
        results = [self.fetch(outputs, i) for i in range(len(sizes))]
        for dataset in (inputs, outputs):
            self.destroy(dataset)
        return results

    def output_sizes(self, arrays):
        """Bytes of each output; a model with dynamic dimensions needs room for the largest."""
        n_outputs = acl.mdl.get_num_outputs(self.model_desc)
        sizes = [acl.mdl.get_output_size_by_index(self.model_desc, i) for i in range(n_outputs)]
        room = 64 * max(array.nbytes for array in arrays.values())
        return [size or room for size in sizes]

    def add_buffer(self, dataset, size):
        device_ptr, ret = acl.rt.malloc(size, ACL_MEM_MALLOC_HUGE_FIRST)
        check_ret("acl.rt.malloc", ret)
        buffer = acl.create_data_buffer(device_ptr, size)
        _, ret = acl.mdl.add_dataset_buffer(dataset, buffer)
        check_ret("acl.mdl.add_dataset_buffer", ret)
        return device_ptr

    def add_input(self, dataset, index, array):
        data = array.tobytes()
        device_ptr = self.add_buffer(dataset, len(data))
        host_ptr = acl.util.bytes_to_ptr(data)
        ret = acl.rt.memcpy(device_ptr, len(data), host_ptr, len(data), ACL_MEMCPY_HOST_TO_DEVICE)
        check_ret("acl.rt.memcpy", ret)
        dims, ret = acl.mdl.get_input_dims(self.model_desc, index)
        check_ret("acl.mdl.get_input_dims", ret)
        assert dims["dimCount"] == len(dims["dims"]) == array.ndim, dims
        assert ACL_DTYPES[acl.mdl.get_input_data_type(self.model_desc, index)] == array.dtype
        if -1 in dims["dims"]:
            acl_type = acl.mdl.get_input_data_type(self.model_desc, index)
            desc = acl.create_tensor_desc(acl_type, list(array.shape), acl.mdl.get_input_format(self.model_desc, index))
            same, ret = acl.mdl.set_dataset_tensor_desc(dataset, desc, index)
            check_ret("acl.mdl.set_dataset_tensor_desc", ret)
            assert same == dataset

    def fetch(self, dataset, index):
        dims, ret = acl.mdl.get_cur_output_dims(self.model_desc, index)
        if ret == 0 and -1 not in dims["dims"]:
            shape = tuple(dims["dims"])
        else:
            desc = acl.mdl.get_dataset_tensor_desc(dataset, index)
            n_dims = acl.get_tensor_desc_num_dims(desc)
            shape = tuple(acl.get_tensor_desc_dim_v2(desc, axis)[0] for axis in range(n_dims))
        dtype = np.dtype(ACL_DTYPES[acl.mdl.get_output_data_type(self.model_desc, index)])
        buffer = acl.mdl.get_dataset_buffer(dataset, index)
        device_ptr = acl.get_data_buffer_addr(buffer)
        size = int(np.prod(shape)) * dtype.itemsize
        assert size <= acl.get_data_buffer_size_v2(buffer)
        host_ptr, ret = acl.rt.malloc_host(size)
        check_ret("acl.rt.malloc_host", ret)
        ret = acl.rt.memcpy(host_ptr, size, device_ptr, size, ACL_MEMCPY_DEVICE_TO_HOST)
        check_ret("acl.rt.memcpy", ret)
        from_bytes = np.frombuffer(acl.util.ptr_to_bytes(host_ptr, size), dtype).reshape(shape)
        from_numpy = acl.util.ptr_to_numpy(host_ptr, shape, dtype.num).copy()
        np.testing.assert_array_equal(from_bytes, from_numpy)
        check_ret("acl.rt.free_host", acl.rt.free_host(host_ptr))
        return from_numpy

    def destroy(self, dataset):
        for i in range(acl.mdl.get_dataset_num_buffers(dataset)):
            buffer = acl.mdl.get_dataset_buffer(dataset, i)
            check_ret("acl.rt.free", acl.rt.free(acl.get_data_buffer_addr(buffer)))
            check_ret("acl.destroy_data_buffer", acl.destroy_data_buffer(buffer))
        check_ret("acl.mdl.destroy_dataset", acl.mdl.destroy_dataset(dataset))

    def unload(self):
        check_ret("acl.mdl.unload", acl.mdl.unload(self.model_id))
        check_ret("acl.mdl.destroy_desc", acl.mdl.destroy_desc(self.model_desc))


def run_with_dump(model_path, arrays, config):
    if config != "-":
        check_ret("acl.mdl.init_dump", acl.mdl.init_dump())
        check_ret("acl.mdl.set_dump", acl.mdl.set_dump(config))
    net = Net(model_path)
    results = net.run(arrays)
    if config != "-":
        check_ret("acl.mdl.finalize_dump", acl.mdl.finalize_dump())
    net.unload()
    return results


def main(arguments):
    check_ret("acl.init", acl.init())
    check_ret("acl.rt.set_device", acl.rt.set_device(DEVICE_ID))
    context, ret = acl.rt.create_context(DEVICE_ID)
    check_ret("acl.rt.create_context", ret)
    stream, ret = acl.rt.create_stream()
    check_ret("acl.rt.create_stream", ret)
    run_mode, ret = acl.rt.get_run_mode()
    check_ret("acl.rt.get_run_mode", ret)
    assert run_mode == 1
    ids = []
    for first in range(0, len(arguments), 4):
        model_path, inputs_path, config, outputs_path = arguments[first : first + 4]
        with np.load(inputs_path) as arrays:
            results = run_with_dump(model_path, dict(arrays), config)
        np.savez(outputs_path, *results)
        ids.append(len(results))
    check_ret("acl.rt.destroy_stream", acl.rt.destroy_stream(stream))
    check_ret("acl.rt.destroy_context", acl.rt.destroy_context(context))
    check_ret("acl.rt.reset_device", acl.rt.reset_device(DEVICE_ID))
    check_ret("acl.finalize", acl.finalize())
    print(json.dumps(ids))


if __name__ == "__main__":
    main(sys.argv[1:])
