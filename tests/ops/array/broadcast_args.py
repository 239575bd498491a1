import numpy as np

from declare import accepts, op, refuses


def shapes(d):
    whole = d.rng.integers(0, 6, d.integer(0, 6))
    own = [np.where(d.rng.random(whole.shape) < 0.3, 1, whole)[d.integer(0, len(whole)) * d.integer(0, 1):] for _ in range(2)]
    return [d("s0", of=own[0]), d("s1", of=own[1])]


op("BroadcastArgs", lambda a, b: np.array(np.broadcast_shapes(tuple(a), tuple(b)), a.dtype), shapes)
accepts("BroadcastArgs", [np.int32([0]), np.int32([1])], np.int32([0]))
accepts("BroadcastArgs", [np.int64([2**40, 1]), np.int64([7])], np.int64([2**40, 7]))
refuses("BroadcastArgs", [np.int32([2, 3]), np.int32([3, 3])], "[2, 3]", "[3, 3]")
refuses("BroadcastArgs", [np.int32([2]), np.int32([0])], "2", "0")
refuses("BroadcastArgs", [np.int32(2), np.int32([3])], "s0")
refuses("BroadcastArgs", [np.int32([2]), np.int32([[3]])], "s1")
