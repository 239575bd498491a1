import numpy as np

from declare import op, refuses


def widened(d):
    x = d("input", d.shape(most=5))
    to = d.shape(0, 2, (1, 2)) if not d.large else ()
    to = to[:2] + tuple(d.integer(0, 3) if size == 1 and not d.smooth else size for size in x.shape)
    return [x, d("shape", of=to)]


def two_shapes(d):
    whole = d.shape(most=6)

    def partner():
        own = tuple(1 if d.integer(0, 2) == 0 else size for size in whole)
        return own[d.integer(0, len(own)):]

    return [d("s0", of=partner()), d("s1", of=partner())]


def reduced_axes(s0, s1):
    """Returns, for each shape, the axes along which it was repeated: those where it has size 1 or no axis and the result has another size,
    and those where both shapes have size 1."""
    rank = max(len(s0), len(s1))
    a, b = (np.concatenate([np.full(rank - len(s), 1, s.dtype), s]) for s in (s0, s1))
    absent = [np.arange(rank) < rank - len(s) for s in (s0, s1)]
    axes = np.arange(rank, dtype=s0.dtype)
    return [axes[(own == 1) & ((other != 1) | gone | other_gone | (own == other))]
            for own, other, gone, other_gone in ((a, b, absent[0], absent[1]), (b, a, absent[1], absent[0]))]


op("BroadcastTo", lambda x, shape: np.broadcast_to(x, shape), widened)
op("BroadcastGradientArgs", reduced_axes, two_shapes)
refuses("BroadcastTo", [np.zeros((2, 3), np.float32), np.int32([3, 3])], "[2, 3]", "[3, 3]")
refuses("BroadcastGradientArgs", [np.int32([2, 3]), np.int32([3, 3])], "[2, 3]", "[3, 3]")
