"""Compares ops whose risk is wrong positions (slices, axes, rows, broadcasting) with NumPy, at random shapes and attributes.
`shapes_test.py COUNT SEED` tries more."""
import sys

import numpy as np

import cases
import tw
from cases import expect

COUNT, SEED = (int(a) for a in (sys.argv[1:] + ["60", "29"][len(sys.argv) - 1:]))
rng = np.random.default_rng(SEED)


def pick(*choices):
    return choices[rng.integers(len(choices))]


def some_shape(least=0, most=5, sizes=(0, 1, 1, 2, 3, 4, 5)):
    return tuple(int(s) for s in rng.choice(sizes, rng.integers(least, most + 1)))


def some(shape, dtype=np.float64):
    return np.asarray(rng.normal(size=shape) * 9).astype(dtype)


def moved_type():
    return pick(np.float32, np.float64, np.int8, np.int16, np.int64, np.bool_, np.complex128, np.float16)


def ints(values):
    """Returns values as int32 or int64, the types of index inputs."""
    return np.array(values, pick(np.int32, np.int64))


# ---- Slices ----


def try_slices():
    shape = some_shape(1)
    x = some(shape, moved_type())
    begin = [int(rng.integers(0, s + 1)) for s in shape]
    size = [int(rng.integers(0, s - b + 1)) for s, b in zip(shape, begin)]
    cut = tuple(slice(b, b + n) for b, n in zip(begin, size))
    index = pick(np.int32, np.int64)
    to_end = [-1 if b + n == s and rng.integers(2) else n for b, n, s in zip(begin, size, shape)]
    expect("Slice", [x, np.array(begin, index), np.array(to_end, index)], [x[cut]])

    # Python's own subscript, entry by entry, and the equivalent masks.
    n = int(rng.integers(0, len(shape) + 1))
    entries, b, e, s, masks = [], [], [], [], dict(begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0)
    used_ellipsis, axis = False, 0
    extremes = (-2**31, 2**31 - 1) if index == np.int32 else (-2**63, 2**63 - 1)
    for i in range(n + int(rng.integers(0, 2))):
        kind = pick("range", "range", "range", "index", "new", "ellipsis")
        at, to, step = (int(rng.integers(-7, 8)) if rng.integers(6) else extremes[rng.integers(2)] for _ in range(3))
        step = step or 1
        if kind == "ellipsis" and not used_ellipsis:
            used_ellipsis = True
            entries.append(Ellipsis)
            masks["ellipsis_mask"] |= 1 << i
            axis = len(shape)  # what follows counts from the back, so only new axes do
        elif kind == "new" or axis >= len(shape):
            entries.append(None)
            masks["new_axis_mask"] |= 1 << i
        elif kind == "index" and shape[axis] > 0:
            at, step = int(rng.integers(-shape[axis], shape[axis])), 1
            entries.append(at)
            masks["shrink_axis_mask"] |= 1 << i
            axis += 1
        else:
            no_begin, no_end = rng.integers(4) == 0, rng.integers(4) == 0
            masks["begin_mask"] |= int(no_begin) << i
            masks["end_mask"] |= int(no_end) << i
            entries.append(slice(None if no_begin else at, None if no_end else to, step))
            axis += 1
        b.append(at)
        e.append(to)
        s.append(step)
    part = x[tuple(entries)]
    spec = [np.array(v, index) for v in (b, e, s)]
    expect("StridedSlice", [x, *spec], [part], **masks)
    dy = some(part.shape, x.dtype)
    wanted = np.zeros_like(x)
    wanted[tuple(entries)] = dy
    expect("StridedSliceGrad", [np.array(shape, index), *spec, dy], [wanted], **masks)


# ---- Axes ----


def try_axes():
    shape = some_shape(0)
    rank, x = len(shape), some(shape, moved_type())
    perm = rng.permutation(rank)
    expect("Transpose", [x, ints([p - rank if rng.integers(3) == 0 else p for p in perm])], [x.transpose(perm)])
    at = int(rng.integers(-rank - 1, rank + 1))
    expect("ExpandDims", [x, ints(at)], [np.expand_dims(x, at)])
    expect("Squeeze", [x], [x.squeeze()])
    ones = [k for k, size in enumerate(shape) if size == 1]
    if ones:
        axis = pick(*ones)
        expect("Squeeze", [x], [x.squeeze(axis)], squeeze_dims=[axis - rank if rng.integers(2) else axis])
    pads = rng.integers(0, 3, (rank, 2))
    expect("Pad", [x, ints(pads)], [np.pad(x, pads) if rank else x])
    copies = rng.integers(0, 4, rank)
    expect("Tile", [x, ints(copies)], [np.tile(x, copies) if rank else x])
    lead = some_shape(0, 2, (0, 1, 2))
    to = lead + tuple(int(pick(1, 2, 3, 0)) if size == 1 else size for size in shape)
    expect("BroadcastTo", [x, ints(to)], [np.broadcast_to(x, to)])
    order = rng.permutation(len(shape))
    expect("Reshape", [x, ints([shape[k] for k in order])], [x.reshape([shape[k] for k in order])])
    axis = int(rng.integers(-rank - 1, rank + 1))
    parts = [some(shape, x.dtype) for _ in range(int(rng.integers(1, 5)))]
    packed = np.stack(parts, axis)
    expect("Pack", parts, [packed], axis=axis, N=len(parts))
    expect("Unpack", [packed], parts, axis=axis, num=len(parts))
    if rank == 0:
        return
    axis = int(rng.integers(-rank, rank))
    front, back = shape[:axis % rank], shape[axis % rank + 1:]
    pieces = [some(front + (int(rng.integers(0, 4)),) + back, x.dtype) for _ in range(int(rng.integers(2, 5)))]
    expect("ConcatV2", [*pieces, ints(axis)], [np.concatenate(pieces, axis)], N=len(pieces))
    n = int(rng.integers(1, 4))
    whole = np.concatenate([x] * n, axis)
    expect("Split", [np.int32(axis), whole], np.split(whole, n, axis), num_split=n)


def try_reductions():
    shape = some_shape(0)
    rank = len(shape)
    axes = [int(a) for a in rng.permutation(rank)[:rng.integers(0, rank + 1)]]
    named = ints([a - rank if rng.integers(2) else a for a in axes])
    keep = bool(rng.integers(2))
    x, whole = some(shape), rng.integers(-5, 6, shape).astype(np.int64)
    how = dict(axis=tuple(axes), keepdims=keep)
    with np.errstate(all="ignore"):
        for op, f in (("Sum", np.sum), ("Prod", np.prod)):
            expect(op, [x, named], [f(x, **how)], 1e-9, keep_dims=keep)
            expect(op, [whole, named], [f(whole, **how)], keep_dims=keep)
        taken = np.prod([shape[a] for a in axes])
        expect("Mean", [x, named], [x.sum(**how) / taken if x.size or taken else np.full(x.sum(**how).shape, np.nan)], 1e-9, keep_dims=keep)
    for op, f, start in (("Max", np.max, -np.inf), ("Min", np.min, np.inf)):
        expect(op, [x, named], [f(x, initial=start, **how)], keep_dims=keep)
    for op, f in (("All", np.all), ("Any", np.any)):
        expect(op, [whole > 0, named], [f(whole > 0, **how)], keep_dims=keep)
    if rank == 0:
        return
    axis = int(rng.integers(-rank, rank))
    exclusive, reverse = bool(rng.integers(2)), bool(rng.integers(2))
    line = np.flip(whole, axis) if reverse else whole
    sums = np.cumsum(line, axis)
    sums = sums - line if exclusive else sums
    expect("Cumsum", [whole, ints(axis)], [np.flip(sums, axis) if reverse else sums], exclusive=exclusive, reverse=reverse)
    if shape[axis]:
        expect("ArgMax", [whole, ints(axis)], [whole.argmax(axis)])
        expect("ArgMin", [whole, ints(axis)], [whole.argmin(axis)])
    n = int(rng.integers(0, rank))
    slot = int(pick(0, n, rank))
    ids = rng.integers(-1, 4, shape[:slot])
    expect("OneHot", [ids, np.int32(3), np.float32(2), np.float32(-2)], [np.where(np.arange(3) == ids[..., None], 2, -2)])


# ---- Rows ----


def try_rows():
    shape = some_shape(1, 4, (1, 2, 3, 4))
    rank, x = len(shape), some(shape, moved_type())
    batch = int(rng.integers(0, rank))
    axis = int(rng.integers(batch, rank))
    ids = rng.integers(0, shape[axis], shape[:batch] + some_shape(0, 2, (0, 1, 2, 3)))
    if batch == 0:
        wanted = np.take(x, ids, axis)
    else:
        parts = [np.take(x[k], ids[k], axis - batch) for k in np.ndindex(shape[:batch])]
        wanted = np.stack(parts).reshape(shape[:batch] + parts[0].shape)
    expect("GatherV2", [x, ids.astype(pick(np.int16, np.int32, np.int64)), ints(axis - rank if rng.integers(2) else axis)], [wanted],
           batch_dims=batch - ids.ndim if batch and ids.ndim > batch and rng.integers(2) else batch)
    depth = int(rng.integers(0, rank + 1))
    outer = some_shape(0, 2, (0, 1, 2, 3))
    at = np.stack([rng.integers(0, shape[k], outer) for k in range(depth)], -1) if depth else np.zeros(outer + (0,), np.int64)
    picked = x[tuple(at[..., k] for k in range(depth))] if depth else np.broadcast_to(x, outer + shape)
    index = pick(np.int32, np.int64)
    expect("GatherNd", [x, at.astype(index)], [picked])
    updates = rng.integers(-9, 9, outer + shape[depth:]).astype(np.float64)
    wanted = np.zeros(shape)
    if depth:
        np.add.at(wanted, tuple(at[..., k] for k in range(depth)), updates)
    else:
        wanted = updates.sum(tuple(range(len(outer))))
    expect("ScatterNd", [at.astype(index), updates, np.array(shape, index)], [wanted])
    leading = int(rng.integers(0, rank + 1))
    ids, data = rng.integers(-1, 3, shape[:leading]), rng.integers(-9, 9, shape).astype(np.int64)
    wanted = np.zeros((3,) + shape[leading:], np.int64)
    for k in np.ndindex(shape[:leading]):
        if ids[k] >= 0:
            wanted[ids[k]] += data[k]
    expect("UnsortedSegmentSum", [data, ids.astype(index), np.int32(3)], [wanted])


# ---- Broadcasting and products ----


def try_broadcasting():
    whole = some_shape(0, 5)

    def partner():
        own = tuple(1 if rng.integers(3) == 0 else size for size in whole)
        return own[int(rng.integers(0, len(own) + 1)):] if rng.integers(2) else own

    a, b, c = partner(), partner(), partner()
    dtype = pick(np.float64, np.int32)
    x, y = some(a, dtype), some(b, dtype)
    for op, f in (("Sub", np.subtract), ("Mul", np.multiply), ("Maximum", np.maximum), ("Less", np.less)):
        expect(op, [x, y], [f(x, y)])
    choice = rng.integers(0, 2, c).astype(bool)
    expect("SelectV2", [choice, x, y], [np.where(choice, x, y)])
    # The axes of the gradients of [a] and [b]: those along which the other shape, or the result, is longer.
    full = np.broadcast_shapes(a, b)
    summed = [[k for k in range(len(full)) if k < len(full) - len(own) or (own[k - len(full) + len(own)] == 1 and full[k] != 1)
               or (own[k - len(full) + len(own)] == 1 and full[k] == 1)] for own in (a, b)]
    for how in tw.WAYS:
        index = pick(np.int32, np.int64)
        got = tw.run("BroadcastGradientArgs", [np.array(a, index), np.array(b, index)], 2, how)
        for own, axes, allowed in zip((a, b), got, summed):
            # Axes of size 1 on both sides may be named or not: the sum is the same.
            left = np.zeros(full).sum(tuple(axes.tolist())).size
            cases.holds(f"BroadcastGradientArgs {a} {b} {how}", set(axes.tolist()) <= set(allowed) and left == np.zeros(own).size, axes)
    m, k, n = (int(pick(0, 1, 2, 3, 8, 17, 40)) for _ in range(3))
    adj = bool(rng.integers(2)), bool(rng.integers(2))
    p, q = some(a[-2:] + ((k, m) if adj[0] else (m, k))), some(b[-2:] + ((n, k) if adj[1] else (k, n)))
    wanted = (p.swapaxes(-1, -2) if adj[0] else p) @ (q.swapaxes(-1, -2) if adj[1] else q)
    expect("BatchMatMulV2", [p, q], [wanted], 1e-9, adj_x=adj[0], adj_y=adj[1])


for _ in range(COUNT):
    for attempt in (try_slices, try_slices, try_axes, try_reductions, try_rows, try_broadcasting):
        attempt()
cases.finish()
