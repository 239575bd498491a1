"""The seed of everything random in a program: initial values, noise, dropout, drawn classes, shuffled queues.

    thalweg.random.seed(1)      # before the graph is built: the same program draws the same numbers in every run

Without it, and without a `seed` of its own, an operation draws other numbers in each session. With it, each operation gets its own seed,
made of the number and of the count of earlier seeds in its graph, so that two layers never start alike. An operation that is given
`seed` or `seed2` keeps them. Batches of thalweg.train have their own seed.

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
    """Sets the seed: from now on, random operations without a seed get one made of this 64-bit integer. None: they get none, as
    initially. Existing operations keep theirs. Raises TypeError if `number` is no such integer."""
    global _seed
    if number is not None and (isinstance(number, (bool, np.bool_)) or not isinstance(number, (int, np.integer))
                               or not -2**63 <= number < 2**63):
        raise TypeError(f"a seed is a whole number of 64 bits, or None, not {number!r}")
    _seed = None if number is None else int(number)


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a type checker would conclude from it that every name exists
    def __getattr__(name):
        from .op_functions import unknown
        raise AttributeError(unknown("random", name, __all__))


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
    """Returns one nonzero seed, for records that take one; `given`, if it is not 0."""
    pair = None if given else next_pair(graph)
    if pair is None:
        return given
    mixed = np.random.SeedSequence([pair[0] % 2**64, pair[1]]).generate_state(1, np.uint64)[0]
    return int(mixed >> np.uint64(1)) or 1
