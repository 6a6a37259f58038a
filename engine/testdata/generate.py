"""Writes the arrays of this directory: python3 generate.py (needs numpy). The same version gives the same bytes."""
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
count = np.arange(24).reshape(2, 3, 4)


def save(name, array, version=(1, 0)):
    with open(os.path.join(HERE, name + ".npy"), "wb") as f:
        np.lib.format.write_array(f, array, version=version)


save("float32", count.astype("<f4"))
save("float16_fortran", np.asfortranarray(count.astype("<f2")))
save("int64_big", count.astype(">i8"), (2, 0))
save("int32_big_fortran", np.asfortranarray(count.astype(">i4")), (3, 0))
save("bool", count % 2 == 1)
save("scalar", np.int8(-5).reshape(()))
save("float64", count.astype("<f8"))
save("record", np.zeros(2, [("a", "<f4"), ("b", "<i4")]))
