import numpy as np

from declare import op, refuses

MASKS = "begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"


def subscript(d, shape, dtype):
    """Draws begin, end and strides for such a tensor; sets the masks."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    spec, masks, axis, ellipsis = [], dict.fromkeys(MASKS, 0), 0, False
    for i in range(d.integer(0, len(shape) + 1)):
        kind = d.pick("range", "range", "range", "index", "new", "ellipsis")
        begin, end, stride = (d.pick(low, high) if d.integer(0, 9) == 0 else d.integer(-7, 7) for _ in range(3))
        if kind == "ellipsis" and not ellipsis:
            ellipsis, axis = True, len(shape)  # what follows counts from the back, so only new axes do
            masks["ellipsis_mask"] |= 1 << i
        elif kind == "new" or axis >= len(shape):
            masks["new_axis_mask"] |= 1 << i
        elif kind == "index" and shape[axis]:
            begin, stride, axis = d.axis(shape[axis]), 1, axis + 1
            masks["shrink_axis_mask"] |= 1 << i
        else:
            axis += 1
            for mask in ("begin_mask", "end_mask"):
                masks[mask] |= (d.integer(0, 3) == 0) << i
        spec.append((begin, end, stride or 1))
    d.set(**masks)
    return np.array(spec, dtype).reshape(-1, 3).T


def python(begin, end, strides, masks):
    """Returns the same slice as a Python index."""
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = masks
    entries = []
    for i, (b, e, s) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist())):
        bit = 1 << i
        part = slice(None if begin_mask & bit else b, None if end_mask & bit else e, s)
        entries.append(Ellipsis if ellipsis_mask & bit else None if new_axis_mask & bit else b if shrink_axis_mask & bit else part)
    return tuple(entries)


def sliced(d):
    x = d("input", d.shape(most=5))
    return [x, *subscript(d, x.shape, d.dtype("Index"))]


def slice_of(x, begin, end, strides, *, begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask):
    return x[python(begin, end, strides, (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask))]


def put_back(d):
    shape = d.shape(most=5)
    spec = subscript(d, shape, d.dtype("Index"))
    part = np.zeros(shape, np.int8)[python(*spec, [d.attrs[mask] for mask in MASKS])]
    return [d("shape", of=shape), *spec, d("dy", part.shape)]


def back(shape, begin, end, strides, dy, *, begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask):
    result = np.full(shape, b"", object) if dy.dtype.kind == "O" else np.zeros(shape, dy.dtype)
    result[python(begin, end, strides, (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask))] = dy
    return result


op("StridedSlice", slice_of, sliced)
op("StridedSliceGrad", back, put_back)
m = np.zeros((2, 3), np.float32)
refuses("StridedSlice", [m, np.int32([0]), np.int32([1]), np.int32([0])], "0")
refuses("StridedSlice", [m, np.int32([2]), np.int32([3]), np.int32([1])], "2", shrink_axis_mask=1)
refuses("StridedSliceGrad", [np.int32([2, 3]), np.int32([0]), np.int32([1]), np.int32([1]), m], "dy", "[2, 3]", "[1, 3]")
