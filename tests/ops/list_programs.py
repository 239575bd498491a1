"""Random programs on lists, as data. list_peer.py runs them in TensorFlow, list_test.py here. This file needs only NumPy."""
import numpy as np

SEEDS = range(60)


def program(seed):
    """Returns the element type and shape, whether lists know the shape, and the steps: (op, arguments). Elements are small integers."""
    r = np.random.default_rng([seed, 77])
    shape = [(), (2,), (2, 3)][r.integers(3)]
    told, n, steps = bool(r.integers(2)), 0, []
    whole = True  # no element is unset: TensorFlow's sum of two such has the shape [0]
    element = lambda *more: r.integers(-9, 9, more + shape).tolist()
    for _ in range(r.integers(4, 14)):
        kind = r.integers(8) if n else 0
        if kind < 2:
            steps.append(("PushBack", element()))
            n += 1
        elif kind == 2:
            steps.append(("PopBack",))
            n -= 1
        elif kind == 3:
            steps.append(("SetItem", int(r.integers(n)), element()))
        elif kind == 4:
            before, n = n, int(r.integers(n + 3))
            whole = whole and n <= before
            steps.append(("Resize", n))
        elif kind == 5:
            places = [n, int(r.integers(n))]  # nothing between is unset: TensorFlow takes that for floats of shape [0]
            steps.append(("ScatterIntoExistingList", element(2), places))
            n += 1
        elif kind == 6:
            places = r.choice(5, 3, replace=False).tolist()
            steps.append(("ScatterV2", element(3), places, 5))
            n, whole = 5, False
        elif whole:
            steps.append(("AddN",))
    return dict(dtype=str(r.choice(["float32", "int32", "float64"])), shape=shape, told=told, steps=steps)


def results(about, ops):
    """Returns the contents of every list in the program. ops: an object with the ops of the family as methods, and `sum` for a sum of two
    lists."""
    told = about["shape"] if about["told"] else None
    handle, found = ops.Empty(told), []
    for op, *arguments in about["steps"]:
        handle = ops.sum(handle, handle) if op == "AddN" else getattr(ops, op)(handle, *arguments)
        found += [ops.Length(handle), ops.Stack(handle), ops.ElementShape(handle)]
    return found
