import numpy as np

from declare import op, refuses


def along(d):
    x = d("input", d.shape(least=2 if d.large else 1))  # positions up to 70000 need more than 16 bits
    shape = tuple(max(1, size) for size in x.shape) if d.integer(0, 1) else x.shape
    axes = [a for a in range(-len(shape), len(shape)) if shape[a]]
    if not axes:
        shape, axes = (3,) + x.shape, [0]
    return [d("input", shape), d("dimension", of=d.pick(*axes))]


op("ArgMax", lambda x, axis, *, output_type: np.argmax(x, axis).astype(output_type), along)
op("ArgMin", lambda x, axis, *, output_type: np.argmin(x, axis).astype(output_type), along)
for name in ("ArgMax", "ArgMin"):
    refuses(name, [np.zeros((2, 3), np.float32), np.int32(2)], "2")
    refuses(name, [np.zeros((0, 3), np.float32), np.int32(0)], "[0, 3]")
