"""Tables in shards: a matrix of many rows in parts, one variable each, on different tasks; see c_api/include/thalweg/sharded.h.

    words = tw.ShardedTable(100_000, 64, 4, name="words", devices=[f"/job:ps/task:{k}" for k in range(4)])
    vectors = words.lookup(ids)             # each row, and its gradient, is computed on the task of its shard
    loss = tw.sharded_softmax(weights, biases, labels, hidden)"""
import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Optional

from . import _low, build, scopes
from .dtypes import DTypeLike, as_dtype
from .output import Formula, Output
from .random import next_seed
from .variable import Variable

_PARTITIONS = {"mod": _low.TW_SHARDED_MOD, "div": _low.TW_SHARDED_DIV}


class ShardedTable:
    """A table of rows in shards.

    width: the size of a row, or () for a table of single numbers.   shards: their number.   name: shard k is the variable `name`/part_k,
    and a saver finds the table by that name for any number of saved shards. A name in use gets a number.
    partition: "mod", where row i is in shard i % shards, or "div", where the first rows are in shard 0.   devices: one for each shard;
    None: that of
    the scope.   initial: a function of a shape and of the rows' numbers in the table that returns the initial value of a shard; None:
    uniform from -0.5 / width to 0.5 / width."""

    def __init__(self, rows: int, width: Any, shards: int, *, name: str, partition: str = "mod", devices: Optional[Sequence[str]] = None,
                 initial: Optional[Callable[[list[int], range], Any]] = None, dtype: DTypeLike = "float32", trainable: bool = True):
        if partition not in _PARTITIONS:
            raise ValueError(f"partition is {partition!r}; it is 'mod' or 'div'")
        if not 1 <= shards <= rows:
            raise ValueError(f"{rows} rows cannot be in {shards} shards; there is a shard or more, and a row or more in each")
        if devices is not None and len(devices) != shards:
            raise ValueError(f"there are {len(devices)} devices for {shards} shards")
        self.graph, self.partition, self.rows = scopes.current().graph, partition, rows
        prefix = scopes.current().prefix
        names = (name if i == 0 else f"{name}_{i}" for i in itertools.count())
        name = self.name = next(n for n in names if f"{prefix}{n}/part_0" not in self.graph)
        self.width: tuple[int, ...] = (width,) if isinstance(width, int) else tuple(width)
        self.variables: list[Variable] = []
        first = 0
        for k in range(shards):
            n = _low.tw_sharded_rows(rows, shards, k)
            numbers = range(k, rows, shards) if partition == "mod" else range(first, first + n)
            first += n
            with scopes.device(scopes.current().device if devices is None else devices[k]):
                value = (initial or self._evenly)([n, *self.width], numbers)
                self.variables.append(Variable(value, name=f"{name}/part_{k}", dtype=as_dtype(dtype), trainable=trainable))
        self._handles = (ctypes.c_uint64 * shards)(*(v.handle.number for v in self.variables))
        self.graph._tables.append(self)

    def lookup(self, ids: Any) -> Output:
        """Returns the rows of these ids: [ids..., width]. An id out of range makes the step fail with InvalidArgumentError."""
        given = _value(self.graph, ids)
        with given.graph.building() as scope:
            found = _low.tw_sharded_lookup(scope, self._raw(), given.number)
        return Output(given.graph, found)

    def _raw(self) -> "_low.tw_sharded":
        return _low.tw_sharded(size=ctypes.sizeof(_low.tw_sharded), shards=self._handles, n=len(self.variables),
                               partition=_PARTITIONS[self.partition])

    def _evenly(self, shape: list[int], _: range) -> Any:
        drawn = self.graph.op("RandomUniform", shape, dtype="float32")
        return (drawn - 0.5) * (1 / max(self.width or (1,)))


def _value(graph: Any, x: Any) -> Output:
    return x._value() if isinstance(x, Formula) else graph.constant(x)


def sharded_softmax(weights: ShardedTable, biases: Optional[ShardedTable], labels: Any, inputs: Any) -> Output:
    """Returns, for each example, the cross-entropy of the softmax over all classes: [batch]. Each shard's task computes the logits of its
    classes and their gradients.   weights: [classes, n]; biases: [classes], in the same shards.   labels: [batch].   inputs: [batch, n]."""
    graph = build.graph_of([inputs, labels]) or weights.graph
    y, x = _value(graph, labels), _value(graph, inputs)
    with graph.building() as scope:
        found = _low.tw_sharded_softmax(scope, weights._raw(), None if biases is None else biases._raw(), y.number, x.number)
    return Output(graph, found)


def sharded_sampled_softmax(weights: ShardedTable, biases: ShardedTable, labels: Any, inputs: Any, num_sampled: int = 64, *,
                            candidates: Optional[Output] = None, seed: int = 0, keep_hits: bool = False) -> Output:
    """As sharded_softmax, over the true classes and drawn ones, as thalweg.losses.sampled_softmax. labels: [batch, true classes]."""
    graph = build.graph_of([inputs, labels]) or weights.graph
    y, x = _value(graph, labels), _value(graph, inputs)
    options = _low.tw_sampled_loss(size=ctypes.sizeof(_low.tw_sampled_loss), candidates=candidates.number if candidates is not None else 0,
                                   num_sampled=num_sampled, seed=next_seed(graph, seed), keep_hits=keep_hits)
    with graph.building() as scope:
        found = _low.tw_sharded_sampled_softmax(scope, weights._raw(), biases._raw(), y.number, x.number, options)
    return Output(graph, found)
