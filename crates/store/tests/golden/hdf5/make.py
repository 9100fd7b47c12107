"""Makes the files next to it with h5py: `python make.py`."""

from pathlib import Path

import h5py
import numpy as np

HERE = Path(__file__).parent
DTYPES = "f2 f4 f8 >f4 i1 u1 i2 u2 i4 u4 i8 u8 >i8 c8 c16".split()


def main() -> None:
    random = np.random.default_rng(0)
    values = lambda *shape: random.normal(size=shape) * 9  # noqa: E731
    arrays = {f"types/{dtype.replace('>', 'big_')}": values(3, 4).astype(dtype) for dtype in DTYPES}
    arrays["types/bool"] = values(5) > 0
    arrays["scalar"], arrays["empty"] = np.float32(3.5), np.zeros((0, 4), np.float32)
    for slot in ("input.0", "output.0"):
        arrays[f"packed/{slot}"] = values(40, 5).astype(np.float32)
    for name in ("relu/1/input/x", "relu/1/output/y", "relu/1/output/z", "relu/10/output/y"):
        arrays[name] = values(6).astype(np.float32)
    with h5py.File(HERE / "h5py.h5", "w") as file:
        for name, array in arrays.items():
            chunks = {"chunks": (7, 3), "compression": "gzip", "shuffle": True, "fletcher32": True}
            file.create_dataset(name, data=array, **(chunks if name.startswith("packed") else {}))
        file["text"] = np.array([b"ab", b"c"])
        file["null"] = h5py.Empty("f4")
        # Links that lead to what is there already, back to the start, and out of the file.
        file["same"], file["packed/above"] = file["packed"], h5py.SoftLink("/")
        file["outside"] = h5py.ExternalLink("other.h5", "/x")
    # The same as numpy reads it, with the names of operators and slots that a reader gives.
    known = {name.replace("/x", "/0").replace("/y", "/0").replace("/z", "/1"): a for name, a in arrays.items()}
    np.savez_compressed(HERE / "h5py.npz", **known)
    with h5py.File(HERE / "filled.h5", "w") as file:
        file.create_dataset("zeros", (1 << 40,), "f4", chunks=(1 << 20,))
    # A dataset without elements by 18 names, 64 MiB by each.
    with h5py.File(HERE / "many_names.h5", "w") as file:
        zeros = file.create_dataset("zeros", (1 << 24,), "f4", chunks=(1 << 20,))
        for i in range(17):
            file[f"zeros_{i}"] = zeros


if __name__ == "__main__":
    main()
