import numpy as np

import tw
from declare import accepts, expect, op, refuses
from domains import everything, whole

NAN_ABOVE = {"float8_e5m2": 0x7c, "float8_e4m3fn": 0x7e}  # without the sign; the other 8-bit types have NaN at 0x80


def key(value):
    """Returns a key: equal values have equal keys, and no key equals that of a NaN."""
    name = value.dtype.names[0] if value.dtype.names else ""
    if name.startswith("float8"):
        bits = int(value[name])
        nan = bits & 0x7f > NAN_ABOVE[name] if name in NAN_ABOVE else bits == 0x80
        return object() if nan else bits & 0x7f and bits
    value = value.item()
    return object() if value != value else value


def once(x, axis):
    """Returns the different slices along the axis, and the index of each slice among them."""
    found, first, idx = {}, [], []
    for i, part in enumerate(np.moveaxis(x, axis, 0)):
        part = np.asarray(part, x.dtype).ravel()
        place = found.setdefault(tuple(key(np.asarray(v, x.dtype)) for v in part), len(found))
        first += [i] if place == len(first) else []
        idx.append(place)
    return [np.take(x, np.array(first, int), axis), np.array(idx)]


def axis_of(d):
    x = d("x", d.shape(least=1, most=4))
    if x.ndim == 1 and d.integer(0, 1):
        return [x, d("axis", of=[])]
    return [x, d("axis", of=[d.axis(x.ndim)])]


few = everything(whole(-2, 2))
op("Unique", lambda x: once(x, 0), lambda d: [d("x", (d.integer(0, 30),))], domain=few)
op("UniqueV2", lambda x, axis: once(x, axis[0] if axis.size else 0), axis_of, domain=few)

m = np.zeros((2, 3), np.float32)
refuses("Unique", [m], "x", "[2, 3]")
refuses("Unique", [np.float32(1)], "x")
refuses("UniqueV2", [m, np.int64([])], "[2, 3]")
refuses("UniqueV2", [m, np.int64([2])], "axis", "2")
refuses("UniqueV2", [m, np.int64([-2**63])], "axis", -2**63)
refuses("UniqueV2", [m, np.int64([0, 1])], "axis", "2")
refuses("UniqueV2", [m, np.int64(0)], "axis")
refuses("UniqueV2", [np.float32(1), np.int64([0])], "x")
many = np.arange(20_000, dtype=np.int64) * 2**32 % 9_973  # many values are equal
first = np.sort(np.unique(many, return_index=True)[1])
accepts("Unique", [many], many[first])
nan = np.nan
for make in (np.float16, np.float32, np.float64, tw.to_bfloat16):
    found = [np.array([nan, 1, nan, -0.0, 2]), np.int32([0, 1, 2, 3, 3, 1, 4])]  # NaNs are not equal; of both zeros the first is kept
    expect("Unique", [make(np.array([nan, 1, nan, -0.0, 0.0, 1, 2]))], found)
for pair in (1 + nan * 1j, nan + 1j):
    expect("Unique", [np.array([pair, pair, 1 - 0j, 1 + 0j])], [np.array([pair, pair, 1]), np.int32([0, 1, 2, 2])])
expect("UniqueV2", [np.array([[1, nan], [1, nan], [-0.0, 2], [0.0, 2]]), np.int64([0])],
       [np.array([[1, nan], [1, nan], [-0.0, 2]]), np.int32([0, 1, 2, 2])])
accepts("UniqueV2", [np.zeros((3, 0), np.float32), np.int64([0])], np.zeros((1, 0), np.float32))
