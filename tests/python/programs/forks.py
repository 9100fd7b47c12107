"""Forks while a model runs in another thread and is dumped. Prints how often the model ran.

Arguments: a model, an .npz file with its inputs, an acl.json, and the acl.json of a dump that the last fork begins.
"""

import json
import multiprocessing
import os
import signal
import sys
import threading

import numpy as np
import opscope.acl as acl
from classify import Net, check_ret

N_FORKS = 20
# More than a fork takes; one that hangs is killed, which its parent sees.
SECONDS_MAX = 300
UNINITIALIZED = 100001
EXECUTOR_UNINITIALIZED = 145001


def find_nothing(net, dataset, ptr):
    """In a fork nothing of the parent's is there: every call answers, and none waits."""
    signal.alarm(SECONDS_MAX)
    assert acl.mdl.execute(net.model_id, dataset, dataset) == EXECUTOR_UNINITIALIZED
    assert acl.mdl.unload(net.model_id) != 0
    assert acl.mdl.get_num_inputs(net.model_desc) == 0
    assert acl.mdl.get_dataset_num_buffers(dataset) == 0
    assert acl.rt.free(ptr) != 0
    assert acl.mdl.init_dump() == UNINITIALIZED
    assert acl.mdl.finalize_dump() == UNINITIALIZED
    assert acl.get_recent_err_msg() is not None
    assert acl.mdl.destroy_exec_config_handle(acl.mdl.create_exec_config_handle()) == 0


def wait_for(child):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def main(model_path, inputs_path, config, config_of_child):
    with np.load(inputs_path) as loaded:
        arrays = dict(loaded)
    check_ret("acl.init", acl.init())
    check_ret("acl.mdl.init_dump", acl.mdl.init_dump())
    check_ret("acl.mdl.set_dump", acl.mdl.set_dump(config))
    net, dataset = Net(model_path), acl.mdl.create_dataset()
    ptr = net.add_buffer(dataset, 64)
    expected = net.run(arrays)
    is_ending, n_runs, broken = threading.Event(), [1], []

    def run_until_told():
        while not is_ending.is_set() and not broken:
            try:
                np.testing.assert_array_equal(net.run(arrays)[0], expected[0])
            except BaseException as error:
                broken.append(error)
            n_runs[0] += 1

    thread = threading.Thread(target=run_until_told)
    thread.start()
    for _ in range(N_FORKS):
        child = os.fork()
        if child == 0:
            find_nothing(net, dataset, ptr)
            # An interpreter that ends as usual, with everything that is registered for its end.
            sys.exit(7)
        wait_for(child)
    process = multiprocessing.get_context("fork").Process(target=find_nothing, args=(net, dataset, ptr))
    process.start()
    process.join()
    assert process.exitcode == 0
    is_ending.set()
    thread.join()
    assert not broken, broken

    child = os.fork()
    if child == 0:
        find_nothing(net, dataset, ptr)
        check_ret("acl.init", acl.init())
        check_ret("acl.mdl.init_dump", acl.mdl.init_dump())
        check_ret("acl.mdl.set_dump", acl.mdl.set_dump(config_of_child))
        own = Net(model_path)
        for _ in range(2):
            np.testing.assert_array_equal(own.run(arrays)[0], expected[0])
        # Ids of the parent's objects are invalid here.
        assert acl.mdl.get_num_inputs(net.model_desc) == 0
        check_ret("acl.mdl.finalize_dump", acl.mdl.finalize_dump())
        check_ret("acl.finalize", acl.finalize())
        sys.exit(7)
    wait_for(child)
    net.run(arrays)
    check_ret("acl.mdl.finalize_dump", acl.mdl.finalize_dump())
    check_ret("acl.finalize", acl.finalize())
    print(json.dumps(n_runs[0] + 1))


if __name__ == "__main__":
    main(*sys.argv[1:])
