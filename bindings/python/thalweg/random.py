"""The seed of everything random in a program: initial values, noise, dropout, drawn classes, shuffled queues.

    thalweg.random.seed(1)      # before the graph is built: the same program draws the same numbers in every run

Without it, and without a `seed` of its own, an operation draws other numbers in each session. With it, each operation gets a seed of its
own, made of the number and of how many operations of its graph got one before, so that two layers never start alike. An operation that is
given `seed` or `seed2` keeps what it is given. Batches of thalweg.train have a seed of their own.

Without a graph each call that draws gets a seed, and the context counts these calls as a graph counts operations. A second `seed(1)` does
not reset the count. A program that wants the same numbers twice in one process makes a new context: `with thalweg.Eager():`. The seed is
an attribute, so the context prepares the op for each such call, which takes some 0.2 ms.

Threads: any; operations that several threads add to one graph at once get their seeds in the order of adding."""
from typing import TYPE_CHECKING, Optional

import numpy as np

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["seed"]

_seed: Optional[int] = None


def seed(number: Optional[int]) -> None:
    """From now on, operations that draw and are given no seed get one made of this whole number of 64 bits; None: they get none, as at
    first. Operations that are there already keep theirs. Raises TypeError for what is no such number."""
    global _seed
    if number is not None and (isinstance(number, (bool, np.bool_)) or not isinstance(number, (int, np.integer))
                               or not -2**63 <= number < 2**63):
        raise TypeError(f"a seed is a whole number of 64 bits, or None, not {number!r}")
    _seed = None if number is None else int(number)


def __dir__() -> list[str]:
    return __all__


# ---- For the other modules ----

def next_pair(graph: "Graph") -> Optional[tuple[int, int]]:
    """The attributes seed and seed2 of the next operation of a graph, or call of a context, that draws; None: no seed was set."""
    number, root = _seed, graph._root()
    if number is None:
        return None
    with root._mutex:
        root._draws += 1
        return number, root._draws


def next_seed(graph: "Graph", given: int) -> int:
    """The same as one number, which is not 0, for what takes one; `given`, if that is not 0."""
    pair = None if given else next_pair(graph)
    if pair is None:
        return given
    mixed = np.random.SeedSequence([pair[0] % 2**64, pair[1]]).generate_state(1, np.uint64)[0]
    return int(mixed >> np.uint64(1)) or 1
