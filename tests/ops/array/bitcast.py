import numpy as np

import tw
from declare import op, refuses
from domains import normal


def bits(d):
    ratio = d.dtype("type").itemsize // d.dtype("T").itemsize
    shape = d.shape()
    return [d("input", (*shape, ratio) if ratio > 1 else shape)]


def view(x, *, T, type):
    x = tw.to_bfloat16(x) if T == tw.bfloat16 else x.astype(T)
    last = (T.itemsize // type.itemsize,) if T.itemsize > type.itemsize else ()
    shape = x.shape[:-1] if T.itemsize < type.itemsize else x.shape + last
    return np.frombuffer(x.tobytes(), type).reshape(shape)


op("Bitcast", view, bits, domain=normal, zero_signs=False, given=dict(type=np.uint8))

refuses("Bitcast", [np.zeros((2, 3), np.uint8)], "uint8", "float", "4", "[2, 3]", type=np.float32)
refuses("Bitcast", [np.uint8(1)], "[]", type=np.float32)
refuses("Bitcast", [np.zeros((2, 0), np.uint8)], "[2, 0]", type=np.uint16)
