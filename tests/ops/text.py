"""Texts for the declarations of ops on strings: a pool to draw from, and a function that applies the oracle of one text to arrays."""
import functools

import numpy as np

WHOLE = [t.encode() for t in ("", "a", "Ab c", "  two  words ", "x,y,,z", "caf\u00e9", "\u00c0\u00df\u0130 \u03a3\u03b1\u03a3",
                              "\u20ac5 \U0001f600!", "tab\tand\r\n", "-12.5e3", "long " * 40, "zero \0 inside")]
BROKEN = [b"\x80\x80b", b"a\xc3", b"\xff\xfe", b"\xed\xa0\x80.", b"\xf0\x9f\x98"]
TEXTS = WHOLE + BROKEN


def shape_of(d, **more):
    """Returns d.shape or, for a large use, a shape of enough texts for threads to share, which NumPy can still make quickly."""
    return (3001,) if d.large else d.shape(**more)


def texts(d, name, pool=TEXTS, shape=None):
    """Draws an array of texts from the pool for the input of that name."""
    return d(name, of=np.array([*pool], object)[d.rng.integers(0, len(pool), shape_of(d) if shape is None else shape)])


def each(function, *arrays, kind=object):
    """Applies the function to each element of arrays that broadcast."""
    return np.asarray(np.vectorize(functools.cache(function), otypes=[kind])(*arrays), kind)


def text(*values):
    """Returns one text, or a vector of several."""
    return np.array(values[0] if len(values) == 1 else values, object)
