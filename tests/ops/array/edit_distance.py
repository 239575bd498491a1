import numpy as np

from declare import expect, op, refuses
from missing import SMALL


def lists(places, values):
    """Returns {leading indices: elements in order}."""
    found = {}
    for at, value in zip(places, values):
        found.setdefault(tuple(int(k) for k in at[:-1]), []).append(value)
    return found


def levenshtein(a, b):
    if not a or not b:
        return len(a) + len(b)
    found = np.arange(len(b) + 1)
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            row.append(min(found[j] + (not x == y), found[j + 1] + 1, row[j] + 1))
        found = row
    return found[-1]


def distances(guess_at, guess, guess_shape, truth_at, truth, truth_shape, *, normalize):
    found = np.zeros(np.maximum(guess_shape, truth_shape)[:-1].astype(int), np.longdouble)
    guesses, truths = lists(guess_at, guess), lists(truth_at, truth)
    for at in {*guesses, *truths}:
        a, b = truths.get(at, []), guesses.get(at, [])
        found[at] = levenshtein(a, b)
        if normalize:
            found[at] = found[at] / len(a) if a else np.inf
    return found


def sequences(d, name, pool, rank):
    shape = (9, 7, 20)[-rank:] if d.large and rank < 4 else tuple(d.integer(0, 4) for _ in range(rank - 1)) + (d.integer(0, 9),)
    filled = np.argwhere(d.rng.random(shape) < (0.3 if d.integer(0, 1) else 0.8))
    values = pool[d.rng.integers(0, len(pool), len(filled))]
    return [d(f"{name}_indices", of=filled), values, d(f"{name}_shape", of=np.int64(shape))]


def drawn(d):
    rank, pool = d.integer(2, 4), d("truth_values", (3,))
    return sequences(d, "hypothesis", pool, rank) + sequences(d, "truth", pool, rank)


op("EditDistance", distances, drawn, no_kernel={"numbers of 8 bits and fewer are stored and moved, not computed with": " ".join(SMALL)})


def places(n, row=0):
    return np.int64([[row, k] for k in range(n)]).reshape(n, 2)


def word(text):
    return np.frombuffer(text.encode(), np.uint8)


for a, b, count in (("kitten", "sitting", 3), ("flaw", "lawn", 2), ("intention", "execution", 5), ("abc", "", 3), ("", "ab", 2)):
    inputs = [places(len(a)), word(a), np.int64([1, 9]), places(len(b)), word(b), np.int64([1, 9])]
    expect("EditDistance", inputs, [np.float32([count])], normalize=False)
    expect("EditDistance", inputs, [np.float32([count / len(b) if b else np.inf])])
texts = np.array([b"one", b"two"], object)
expect("EditDistance", [places(2), texts, np.int64([1, 2]), places(2), texts[::-1].copy(), np.int64([1, 2])], [np.float32([1])])
# NaN is not NaN, and 0 is -0.
expect("EditDistance", [places(2), np.array([np.nan, 0.0]), np.int64([1, 2]), places(2), np.array([np.nan, -0.0]), np.int64([1, 2])],
       [np.float32([1])], normalize=False)
expect("EditDistance", [places(0), word(""), np.int64([2, 0]), places(0), word(""), np.int64([1, 5])], [np.zeros(2, np.float32)])

good = [places(2), word("ab"), np.int64([1, 2]), places(2), word("ab"), np.int64([1, 2])]


def bad(k, value, *parts):
    refuses("EditDistance", good[:k] + [value] + good[k + 1:], *parts)


for k, name in ((0, "hypothesis"), (3, "truth")):
    bad(k, np.int64([0, 1]), f"{name}_indices")
    bad(k, np.zeros((2, 3), np.int64), f"{name}_indices", f"{name}_shape")
    bad(k, places(3), f"{name}_indices", f"{name}_values")
    bad(k, places(2)[::-1].copy(), f"{name}_indices[1] = [0, 0]", "SparseReorder")
    bad(k, places(2)[[0, 0]], f"{name}_indices[1] = [0, 0]")
    bad(k, np.int64([[0, 0], [0, 2]]), f"{name}_indices[1] = [0, 2]")
    bad(k, np.int64([[0, -1], [0, 1]]), f"{name}_indices[0] = [0, -1]")
    bad(k + 2, np.int64([1, -2]), f"{name}_shape", "-2")
    bad(k + 2, np.int64(2), f"{name}_shape")
refuses("EditDistance", [np.int64([[0]]), word("a"), np.int64([1]), np.int64([[0]]), word("a"), np.int64([1])], "1 axes")
refuses("EditDistance", good[:3] + [np.zeros((1, 3), np.int64), word("a"), np.int64([1, 1, 1])], "2", "3")
