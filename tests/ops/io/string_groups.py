import itertools

import numpy as np

from arrays import i32, i64
from declare import expect, op, refuses
from text import shape_of, text, texts

POOL = [b"a", b"bc", b"", b"d,e", b"\xff"]

# ---- n-grams ----


def rows(d):
    lengths = [d.integer(0, 5) for _ in range(400 if d.large else d.integer(0, 4))]
    d.set(separator=d.pick(" ", "", "--"), left_pad=d.pick("", "<"), right_pad=d.pick("", ">"), preserve_short_sequences=False,
          pad_width=d.pick(-1, 0, 0, 1, 3), ngram_widths=d.pick([1], [2], [3, 1], [2, 2], [5], []))
    if d.attrs["pad_width"] >= 0:
        d.set(preserve_short_sequences=d.pick(False, True))
    return [texts(d, "data", POOL, (sum(lengths),)), d("data_splits", of=np.cumsum([0, *lengths]))]


def grams(data, splits, *, separator, ngram_widths, left_pad, right_pad, pad_width, preserve_short_sequences):
    separator, left_pad, right_pad = (t.encode() for t in (separator, left_pad, right_pad))
    found, ends = [], [0]
    for a, b in itertools.pairwise(splits):
        row, before = list(data[a:b]), len(found)
        for width in ngram_widths:
            pad = min(width - 1 if pad_width < 0 else pad_width, width - 1)
            padded = [left_pad] * pad + row + [right_pad] * pad
            found += [separator.join(padded[k:k + width]) for k in range(len(padded) - width + 1)]
        if preserve_short_sequences and row and len(found) == before:
            found.append(separator.join([left_pad] * pad_width + row + [right_pad] * pad_width))
        ends.append(len(found))
    return [np.array(found + [b""], object)[:-1], np.array(ends, splits.dtype)]


GIVEN = dict(separator=" ", ngram_widths=[2], left_pad="", right_pad="", pad_width=0, preserve_short_sequences=False)
op("StringNGrams", grams, rows, given=GIVEN)
expect("StringNGrams", [text(b"a", b"b", b"c"), i64(0, 2, 3)], [text(b"<|a", b"a|b", b"b|>", b"<|c", b"c|>"), i64(0, 3, 5)],
       **{**GIVEN, "separator": "|", "left_pad": "<", "right_pad": ">", "pad_width": -1})
refuses("StringNGrams", [text(b"a", b"b"), i64(0, 1)], "1", "2", **GIVEN)
refuses("StringNGrams", [text(b"a", b"b"), i64(0, 2, 1)], "[2] is 1", **GIVEN)
refuses("StringNGrams", [text(b"a"), i64(0, 1)], "data", "[]", **GIVEN)
refuses("StringNGrams", [text(b"a", b"b"), np.int64(0)], "data_splits", "[]", **GIVEN)
refuses("StringNGrams", [text(b"a", b"b"), i64(0, 2)], "ngram_widths", "0", **{**GIVEN, "ngram_widths": [0]})
refuses("StringNGrams", [text(b"a", b"b"), i64(0, 2)], "pad_width", **{**GIVEN, "ngram_widths": [], "pad_width": -1, "preserve_short_sequences": True})

# ---- Joins along axes ----


def along(d):
    x = texts(d, "inputs", POOL, shape_of(d, most=4) if not d.large else (61, 53))
    axes = d.rng.permutation(x.ndim)[:d.integer(0, x.ndim)]
    return [x, d("reduction_indices", of=[a - x.ndim if d.integer(0, 1) else a for a in axes])]


def joined(x, axes, *, keep_dims, separator):
    axes = [int(a) % x.ndim for a in axes.ravel()]
    kept = [a for a in range(x.ndim) if a not in axes]
    # The first of the axes runs fastest.
    moved = x.transpose(kept + axes[::-1]).reshape([x.shape[a] for a in kept] + [-1]) if x.size else None
    out = np.full([x.shape[a] for a in kept], b"", object)
    for place in np.ndindex(out.shape) if x.size else ():
        out[place] = separator.encode().join(moved[place])
    return out.reshape([1 if a in axes else n for a, n in enumerate(x.shape)]) if keep_dims else out


op("ReduceJoin", joined, along, attrs=dict(separator=["", ", "]))
matrix = np.array([[b"a", b"b"], [b"c", b"d"]], object)
expect("ReduceJoin", [matrix, i32(0, 1)], [text(b"acbd")])
expect("ReduceJoin", [matrix, i32(1, 0)], [text(b"abcd")])
expect("ReduceJoin", [matrix, i32(1)], [text(b"a.b", b"c.d")], separator=".")
expect("ReduceJoin", [matrix, i32()], [matrix])
refuses("ReduceJoin", [matrix, i32(2)], "2")
refuses("ReduceJoin", [matrix, i32(1, -1)], "twice")
refuses("ReduceJoin", [matrix, i32([0])], "reduction_indices", "[1, 1]")

# ---- Joins of segments ----


def segments(d):
    x = texts(d, "inputs", POOL, (2000, 2) if d.large else d.shape(least=0, most=3))
    n, ids = d.integer(1, 5), x.shape[:d.integer(0, x.ndim)]
    return [x, d("segment_ids", of=d.rng.integers(0, n, ids)), d("num_segments", of=n)]


def by_segment(x, ids, n, *, separator):
    rows, flat = x.reshape(ids.size, *x.shape[ids.ndim:]), ids.ravel().tolist()
    out = np.full((int(n), *rows.shape[1:]), b"", object)
    for place in np.ndindex(out.shape):
        out[place] = separator.encode().join(rows[(k, *place[1:])] for k in range(ids.size) if flat[k] == place[0])
    return out


op("UnsortedSegmentJoin", by_segment, segments, attrs=dict(separator=["", ", "]))
expect("UnsortedSegmentJoin", [text(b"a", b"b", b"c"), i32(1, 0, 1), np.int32(3)], [text(b"b", b"a-c", b"")], separator="-")
refuses("UnsortedSegmentJoin", [text(b"a", b"b"), i32(0, 2), np.int32(2)], "segment_ids[1]", "2")
refuses("UnsortedSegmentJoin", [text(b"a", b"b"), i32(0, -1), np.int32(2)], "segment_ids[1]", "-1")
refuses("UnsortedSegmentJoin", [text(b"a", b"b"), i32(0, 1, 1), np.int32(2)], "2", "3")
refuses("UnsortedSegmentJoin", [text(b"a"), i32(0), np.int32(2)], "segment_ids")
refuses("UnsortedSegmentJoin", [text(b"a", b"b"), i32(0, 1), np.int32(-2)], "num_segments", "-2")
refuses("UnsortedSegmentJoin", [text(b"a", b"b"), i32(0, 1), i32(2)], "num_segments")
