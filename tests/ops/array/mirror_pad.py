import numpy as np

from declare import op, refuses, slope
from domains import normal
from missing import QUANTISED, SMALL
from ulps import near


def bordered(d):
    x = d("input", d.shape(most=5))
    paddings = d.rng.integers(0, 3, (x.ndim, 2))
    return [x, d("paddings", of=paddings), *([d("constant_values", ())] if "constant_values" in d.inputs else [])]


def surrounded(x, paddings, value):
    y = np.empty([size + sum(p) for size, p in zip(x.shape, paddings.tolist())], x.dtype)
    y[...] = value
    y[tuple(slice(p, p + size) for size, p in zip(x.shape, paddings[:, 0]))] = x
    return y


def mirrors(d):
    """Draws a shape, and paddings that can mirror it."""
    shape, skip = d.shape(most=5), d.attrs["mode"] == "REFLECT"
    return shape, np.array([[d.integer(0, max(0, min(3, size - skip))) for _ in range(2)] for size in shape], int).reshape(-1, 2)


def mirrored(d):
    shape, paddings = mirrors(d)
    return [d("input", shape), d("paddings", of=paddings)]


def folded(d):
    shape, paddings = mirrors(d)
    return [d("input", paddings.sum(1) + shape), d("paddings", of=paddings)]


def mirror(x, paddings, *, mode):
    return np.pad(x, paddings, mode.lower()) if x.ndim else x


def fold(x, paddings, *, mode):
    shape = x.shape - paddings.sum(1)
    places = mirror(np.arange(np.prod(shape, dtype=int)).reshape(shape), paddings, mode=mode)
    sums = np.zeros((2, int(np.prod(shape))), x.dtype)
    np.add.at(sums[0], places.ravel(), x.ravel())
    if x.dtype.kind not in "fc":
        return sums[0].reshape(shape)
    np.add.at(sums[1], places.ravel(), abs(x.ravel()))
    return near(sums[0].reshape(shape), abs(sums[1].reshape(shape)))


op("PadV2", surrounded, bordered)
op("MirrorPad", mirror, mirrored, given=dict(mode="REFLECT"))
op("MirrorPadGrad", fold, folded, domain=normal.calm, ulps=4, zero_signs=False, given=dict(mode="REFLECT"),
   no_kernel={"there is nothing to add": "bool string", "quantised and small numbers are moved, not computed with":
              " ".join(QUANTISED + SMALL)})

m = np.zeros((2, 3), np.float32)
HIGH = 2**63 - 1
for name, more in (("PadV2", [np.float32(0)]), ("MirrorPad", []), ("MirrorPadGrad", [])):
    attrs = {} if more else dict(mode="SYMMETRIC")
    refuses(name, [m, np.int32([[1, 1]]), *more], "paddings", "[2, 3]", **attrs)
    refuses(name, [m, np.int32([[1, -1], [0, 0]]), *more], "-1", **attrs)
    refuses(name, [m, np.int32([[1], [0]]), *more], "paddings", "[2, 1]", **attrs)
    refuses(name, [m, np.int64([[HIGH, HIGH], [0, 0]]), *more], **attrs)
    refuses(name, [m, np.int64([[2**62, 0], [2**62, 0]]), *more], **attrs)
refuses("PadV2", [m, np.int64([[2**40, 0], [0, 0]]), np.float32(0)])
refuses("PadV2", [m, np.int32([[0, 0], [0, 0]]), np.float32([0])], "constant_values", "[1]")
for name in ("MirrorPad", "MirrorPadGrad"):
    refuses(name, [m, np.int32([[0, 0], [0, 0]])], "WRAP", mode="WRAP")
refuses("MirrorPad", [m, np.int32([[0, 0], [0, 3]])], "[0, 3]", "REFLECT", mode="REFLECT")
refuses("MirrorPad", [m, np.int32([[0, 0], [4, 0]])], "[4, 0]", "SYMMETRIC", mode="SYMMETRIC")
refuses("MirrorPad", [m[:0], np.int32([[1, 0], [0, 0]])], "[1, 0]", mode="SYMMETRIC")
refuses("MirrorPadGrad", [m, np.int32([[0, 0], [2, 0]])], "[2, 0]", mode="REFLECT")
refuses("MirrorPadGrad", [m, np.int32([[2, 1], [0, 0]])], "[2, 1]", mode="SYMMETRIC")
slope("PadV2", np.array([[1.0, -2]]), np.int32([[1, 2], [0, 1]]), np.array(3.0))
slope("PadV2", np.array(2.0), np.zeros((0, 2), np.int32), np.array(3.0))  # no padding, so the value has no gradient
