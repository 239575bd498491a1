import numpy as np

from declare import op, refuses


def rows(d):
    x = d("params", d.shape(least=1))
    shape = d.rng.integers(0, 5, d.integer(0, 3)) if len(x) else (0,)
    return [x, d("indices", of=d.rng.integers(0, max(1, len(x)), shape))]


op("Gather", lambda x, indices: x[indices], rows)

m = np.zeros((2, 3), np.float32)
for at in (2, -1, 2**31 - 1, -2**31):
    refuses("Gather", [m, np.int32([0, at])], at, "2")
for at in (2**32, -2**63, 2**63 - 1):
    refuses("Gather", [m, np.int64(at)], at, "2")
refuses("Gather", [m, np.int64([5])], "5", validate_indices=False)
refuses("Gather", [m[:0], np.int32([0])], "0")
refuses("Gather", [np.float32(1), np.int32(0)], "params")
