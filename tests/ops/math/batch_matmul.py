import numpy as np

import ulps
from declare import op, refuses
from domains import normal
from ulps import near


def batches(d):
    m, k, n = (40, 50, 60) if d.large else (d.integer(0, 3 if d.smooth else 9) for _ in range(3))
    whole = d.pick((), (2,), (3, 2), (0,), (1, 2, 1))
    x, y = (tuple(1 if d.integer(0, 3) == 0 else size for size in whole)[d.integer(0, len(whole)):] for _ in range(2))
    x, y = d.pick((x, whole), (whole, y))
    return [d("x", x + ((k, m) if d.attrs["adj_x"] else (m, k))), d("y", y + ((n, k) if d.attrs["adj_y"] else (k, n)))]


def one_large(d):
    """Draws fewer products than there are threads, large enough to share."""
    return [d("x", (1, 90, 101) if d.attrs["adj_x"] else (1, 101, 90)), d("y", (1, 103, 90) if d.attrs["adj_y"] else (1, 90, 103))]


def product(x, y, *, adj_x, adj_y):
    x, y = (v.swapaxes(-1, -2).conj() if adj else v for v, adj in ((x, adj_x), (y, adj_y)))
    return near(x @ y, abs(x) @ abs(y))


def equal_batches(d):
    x, y = batches(d)
    whole = d.pick((), (2,), (3, 2), (0,), (1, 2, 1))
    return [d("x", whole + x.shape[-2:]), d("y", whole + y.shape[-2:])]


# The types of V3: those whose numbers the product's type can hold.
HELD = {"int16": "int8 uint8 int16", "int32": "int8 uint8 int16 int32", "int64": "int8 uint8 int16 int32 int64", "half": "int8 uint8 half",
        "bfloat16": "int8 uint8 bfloat16", "float": "int8 uint8 int16 half bfloat16 float",
        "double": "int8 uint8 int16 int32 half bfloat16 float double",
        "complex64": "int8 uint8 int16 half bfloat16 float complex64",
        "complex128": "int8 uint8 int16 int32 half bfloat16 float double complex64 complex128"}


def mixed(d):
    held = HELD[d.types["Tout"]].split()
    for attr in ("Ta", "Tb"):
        if d.types[attr] not in held:
            d.types[attr] = d.pick(*held)
    return batches(d)


def mixed_product(x, y, *, adj_x, adj_y, Tout):
    wide = ulps.widened(np.zeros((), Tout)).dtype
    return product(x.astype(wide), y.astype(wide), adj_x=adj_x, adj_y=adj_y)


op("BatchMatMul", product, equal_batches, domain=normal.calm, ulps=16, zero_signs=False)
refuses("BatchMatMul", [np.zeros((2, 2, 3), np.float32), np.zeros((3, 2), np.float32)], "[2]", "[]")
op("BatchMatMulV3", mixed_product, mixed, domain=normal.calm, ulps=16, zero_signs=False, smooth_types="double")
refuses("BatchMatMulV3", [np.zeros((2, 3)), np.zeros((3, 2), np.float32)], "double", "float", Tout=np.float32)
op("BatchMatMulV2", product, batches, domain=normal.calm, ulps=16, zero_signs=False, also=(one_large,))
refuses("BatchMatMulV2", [np.zeros((2, 2, 3), np.float32), np.zeros((3, 3, 2), np.float32)], "[2, 2, 3]", "[3, 3, 2]")
