import numpy as np

from declare import op, refuses


def nothing(dtype):
    return np.full((), b"", object) if dtype.kind == "O" else np.zeros((), dtype)


def drawn(d, space, square=False):
    """Draws a tensor, the sizes of a block and what goes before and behind each axis."""
    axes = 2 if square else d.integer(0, 3)
    sizes = [d.attrs["block_size"]] * 2 if square else [d.integer(1, 3) for _ in range(axes)]
    blocks = [d.integer(1, 40 if d.large else 3) for _ in range(axes)]
    rest = [d.integer(1, 3) for _ in range(1 if square else d.integer(0, 2))]
    batch = d.integer(1 if d.smooth else 0, 3)
    edges = []
    for size, n in zip(sizes, blocks):
        total = d.integer(0, size * n - 1)
        before = d.integer(0, min(total, 4))
        edges.append((before, d.integer(0, min(total - before, 4))))
    if space:  # the input has whole axes, without the padding
        shape = [batch, *(s * n - a - b for s, n, (a, b) in zip(sizes, blocks, edges)), *rest]
    else:
        shape = [batch * int(np.prod(sizes)), *blocks, *rest]
    name = "paddings" if space else "crops"
    given = [] if square else [d("block_shape", of=sizes)]
    return [d("input", shape), *given, d(name, of=np.reshape(edges, (axes, 2)))]


def to_batch(x, sizes, paddings):
    m = len(sizes)
    padded = np.full([x.shape[0], *(n + a + b for n, (a, b) in zip(x.shape[1:], paddings)), *x.shape[m + 1:]], nothing(x.dtype))
    padded[(slice(None), *(slice(a, a + n) for n, (a, _) in zip(x.shape[1:], paddings)))] = x
    split = [x.shape[0]]
    for n, b in zip(padded.shape[1:], sizes):
        split += [n // b, int(b)]
    blocks = padded.reshape(split + list(x.shape[m + 1:]))
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m + 1, 2), *range(2 * m + 1, blocks.ndim)]
    moved = blocks.transpose(order)
    return moved.reshape([x.shape[0] * int(np.prod(sizes, dtype=int)), *moved.shape[m + 1:]])


def to_space(x, sizes, crops):
    m = len(sizes)
    batch = x.shape[0] // int(np.prod(sizes, dtype=int))
    blocks = x.reshape([*map(int, sizes), batch, *x.shape[1:]])
    order = [m]
    for k in range(m):
        order += [m + 1 + k, k]
    moved = blocks.transpose(order + [*range(2 * m + 1, blocks.ndim)])
    whole = moved.reshape([batch, *(n * int(b) for n, b in zip(x.shape[1:], sizes)), *x.shape[m + 1:]])
    return whole[(slice(None), *(slice(a, n - b) for n, (a, b) in zip(whole.shape[1:], crops)))]


op("SpaceToBatchND", to_batch, lambda d: drawn(d, True))
op("BatchToSpaceND", to_space, lambda d: drawn(d, False))
squares = dict(attrs=dict(block_size=[2, 3]), given=dict(block_size=2))
op("SpaceToBatch", lambda x, edges, *, block_size: to_batch(x, [block_size] * 2, edges), lambda d: drawn(d, True, True), **squares)
op("BatchToSpace", lambda x, edges, *, block_size: to_space(x, [block_size] * 2, edges), lambda d: drawn(d, False, True), **squares)

x, two, none = np.zeros((4, 4, 6, 2), np.float32), np.int32([2, 2]), np.zeros((2, 2), np.int32)
for name, edges in (("SpaceToBatchND", "paddings"), ("BatchToSpaceND", "crops")):
    refuses(name, [x, np.int32([2, 0]), none], "block_shape", "[2, 0]")
    refuses(name, [x, np.int32(2), none], "block_shape")
    refuses(name, [x, two, np.int32([[0, 0]])], edges, "1", "2")
    refuses(name, [x, two, np.int32([[0, 0, 0], [0, 0, 0]])], edges, "[2, 3]")
    refuses(name, [x, two, np.int32([[0, -1], [0, 0]])], edges, "-1")
    refuses(name, [x[0, 0], two, none], "[6, 2]")
    refuses(name, [x, np.int64([2**62, 2**62]), none])
refuses("SpaceToBatchND", [x, np.int32([2, 4]), none], "axis 2", "6", "[2, 4]")
refuses("BatchToSpaceND", [x, np.int32([2, 3]), none], "[4, 4, 6, 2]", "6")
refuses("BatchToSpaceND", [x, two, np.int32([[9, 0], [0, 0]])], "crops", "9", "8")
for name in ("SpaceToBatch", "BatchToSpace"):
    refuses(name, [x, none], "block_size", "1", block_size=1)
    refuses(name, [x[0], none], "[4, 6, 2]", block_size=2)
refuses("SpaceToBatch", [x, np.int32([[1, 0], [0, 0]])], "axis 1", "5", block_size=2)
refuses("BatchToSpace", [x, np.int32([[5, 4], [0, 0]])], "crops", "8", block_size=2)
