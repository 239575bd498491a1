import numpy as np

from declare import expect, op, refuses


def numbers(d):
    start, count, delta = d.integer(0, 9), d.integer(0, 20), d.pick(1, 2, 3)
    if d.dtype("Tidx").kind in "if" and d.integer(0, 1):
        start, delta = start - 5, -delta
    return [d("start", of=start), d("limit", of=max(start + count * delta, 0 if d.dtype("Tidx").kind == "u" else -60)), d("delta", of=delta)]


op("Range", lambda start, limit, delta: np.arange(start, limit, delta, start.dtype), numbers)
expect("Range", [np.float32(1), np.float32(2), np.float32(0.25)], [np.arange(1, 2, 0.25)])
refuses("Range", [np.int32(0), np.int32(1), np.int32(0)], "0", "1")
