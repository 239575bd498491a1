import numpy as np

import tw
from declare import op, refuses
from domains import whole

INDICES = dict(Tindices="int32 int64")
SUMS = dict(domain=dict(updates=whole(-9, 9), resource=whole(-9, 9), ref=whole(-9, 9)), zero_signs=False)


def rows(d):
    """Draws updates of some rows, one for each row or one for all."""
    variable, indices, updates = d.inputs
    shape = (300, 77) if d.large else d.shape(least=1, most=4)
    ids = d.rng.integers(0, max(1, shape[0]), ((500,) if d.large else d.pick((), (1,), (5,), (2, 3), (0, 2))) if shape[0] else (0,))
    return [d(variable, shape), d(indices, of=ids), d(updates, d.pick((), ids.shape + shape[1:]))]


def scattered(f):
    def oracle(held, ids, updates):
        held = np.array(held)
        rows = np.broadcast_to(updates, ids.shape + held.shape[1:]).reshape(ids.size, *held.shape[1:])
        for at, row in zip(ids.reshape(-1), rows):
            held[at] = f(held[at], row)
        return [held]
    return oracle


op("ResourceScatterAdd ScatterAdd", scattered(np.add), rows, types=INDICES, **SUMS)
op("ResourceScatterSub ScatterSub", scattered(np.subtract), rows, types=INDICES, **SUMS)
op("ResourceScatterUpdate ScatterUpdate", scattered(lambda _, row: row), rows, types=INDICES)
m, two = tw.Variable(np.arange(6, dtype=np.float32).reshape(3, 2)), np.ones((2, 2), np.float32)
for name in ("ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterUpdate"):
    for at in (3, -1, 2**31 - 1):
        refuses(name, [m, np.int32([0, at]), two], at)
    for at in (2**63 - 1, -2**63):
        refuses(name, [m, np.int64([at, 0]), two], at)
    refuses(name, [m, np.int32([0]), two], "[2, 2]")
    refuses(name, [tw.Variable(np.float32(1)), np.int32(0), np.float32(1)], "scalar")
