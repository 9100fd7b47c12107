"""Four metrics of two tensors as one writes them in numpy, in the precision that keeps their meaning."""

import time

import numpy as np


def metrics(target, golden):
    target = target.astype(np.float64).ravel()
    golden = golden.astype(np.float64).ravel()
    distance = np.abs(target - golden)
    norms = np.linalg.norm(target) * np.linalg.norm(golden)
    return (
        distance.max(),
        (distance / np.abs(golden)).max(),
        np.sqrt(np.mean(distance * distance)),
        np.dot(target, golden) / norms,
    )


def main():
    random = np.random.default_rng(1)
    for dtype in (np.float32, np.float16):
        for n_bytes in (4 << 20, 64 << 20):
            n = n_bytes // np.dtype(dtype).itemsize
            golden = random.uniform(0.5, 1, n).astype(dtype)
            target = (golden * (1 + random.uniform(-1e-3, 1e-3, n))).astype(dtype)
            best = float("inf")
            for _ in range(3):
                start = time.perf_counter()
                found = metrics(target, golden)
                best = min(best, time.perf_counter() - start)
            assert 0 < found[0] < 2e-3 and 0.999 < found[3] <= 1 + 1e-12, found
            name = f"{np.dtype(dtype).name} {n_bytes >> 20} MiB"
            print(f"{name:20} {2 * n_bytes / best / 1e9:7.2f}", flush=True)


main()
