"""Data-parallel training without parameter servers: each worker has all variables, and computes the gradients of its part of the batch;
the workers then take the mean of all gradients.

    step = thalweg.train.AllReduce(thalweg.train.Adam(0.001)).minimize(loss)

Every worker builds the same graph. `thalweg launch -n 4 -- python3 train.py` starts them; by hand, give each session collective_store,
collective_rank and collective_members (Session.options())."""
import os
import weakref
from collections.abc import Sequence
from typing import Any, Optional

from . import ops, scopes
from .gradients import Gradient, SparseGradient, of_loss
from .graph import Graph, group
from .layers import updates
from .loss_scale import LossScale
from .output import Operation, Output
from .variable import Variable

GROUP = 1000000  # the first group key of ours; a program's own collectives may use all below
_instances: "weakref.WeakKeyDictionary[Graph, int]" = weakref.WeakKeyDictionary()


def _instance(graph: Graph) -> int:
    """Returns a key that no other collective operation of the graph has: the same in all workers, which build equal graphs."""
    _instances[graph] = _instances.get(graph, 0) + 1
    return _instances[graph]


def _number(given: Optional[int], what: str, variable: str) -> int:
    if given is not None:
        return given
    text = os.environ.get(variable)
    if not text:
        raise ValueError(f"{what} is not given, and the environment has no {variable}; start the program with `thalweg launch`")
    return int(text)


class AllReduce:
    """An optimizer that updates by the mean gradient of all workers.

    Gradients are joined in buckets, from the last variable to the first, because the backward pass computes the last ones first. A bucket
    is reduced as soon as its gradients are there, while the backward pass still runs. All workers get the same bits, in every run. Sparse
    gradients are gathered; each worker's must have as many rows. The mean weighs all workers equally, so give them batches of one size.
    clip and the learning rate's schedule apply to the means. Averages of nn.BatchNorm move by the worker's own batch.

    optimizer: one of thalweg.train, except LossScale.   workers: their number; None: as `thalweg launch` says.
    bucket_bytes: the size at which a bucket is full.   timeout_seconds: how long a reduction waits for the others; 0: as the session's
    option collective_timeout_ms says.
    If a worker is lost, the step of each other one fails with UnavailableError, which names it; the group does not recover."""

    def __init__(self, optimizer: Any, workers: Optional[int] = None, *, bucket_bytes: int = 4 << 20, timeout_seconds: float = 0.0):
        if isinstance(optimizer, (AllReduce, LossScale)) or not hasattr(optimizer, "apply"):
            raise TypeError(f"{optimizer!r} is no optimizer that AllReduce can use")
        self.optimizer, self.workers = optimizer, _number(workers, "the number of workers", "THALWEG_COLLECTIVE_MEMBERS")
        if self.workers < 1 or bucket_bytes < 1 or timeout_seconds < 0:
            raise ValueError(f"AllReduce(workers={self.workers}, bucket_bytes={bucket_bytes}, timeout_seconds={timeout_seconds}): "
                             "workers and bucket_bytes must be at least 1, timeout_seconds at least 0")
        self.bucket_bytes, self.timeout_seconds = bucket_bytes, timeout_seconds

    def minimize(self, loss: Output, variables: Optional[Sequence[Variable]] = None, *, clip: Any = None,
                 count_steps: Optional[bool] = None) -> Operation:
        """As Optimizer.minimize: the loss is that of this worker."""
        if variables is None:
            variables = [v for v in loss.graph.variables() if v.trainable and v.dtype.is_floating]
        step, averages = self.apply(of_loss(loss, list(variables)), variables, clip=clip, count_steps=count_steps), updates(loss)
        return group(step, *averages) if averages else step

    def apply(self, gradients: Sequence[Gradient], variables: Sequence[Variable], *, clip: Any = None,
              count_steps: Optional[bool] = None) -> Operation:
        """As Optimizer.apply: the gradients are those of this worker."""
        step: Operation = self.optimizer.apply(self.mean(gradients), variables, clip=clip, count_steps=count_steps)
        return step

    def mean(self, gradients: Sequence[Gradient]) -> list[Gradient]:
        """Returns the means of the gradients over all workers; None stays None. Raises TypeError for gradients that are no floats."""
        means: list[Gradient] = [None] * len(gradients)
        dense = []
        for i, g in enumerate(gradients):
            if isinstance(g, SparseGradient):
                with scopes.working(g.values.graph):
                    means[i] = SparseGradient(self._gathered(g.values) / self.workers, self._gathered(g.rows))
            elif g is not None:
                dense.append((i, g._value()))
        for bucket in self._buckets(dense):
            with scopes.working(bucket[0][1].graph):
                for (i, _), mean in zip(bucket, self._reduced([g for _, g in bucket])):
                    means[i] = mean
        return means

    def _buckets(self, dense: list[tuple[int, Output]]) -> list[list[tuple[int, Output]]]:
        """Returns the gradients in buckets of one element type, last ones first. One of unknown shape has a bucket of its own."""
        done: list[list[tuple[int, Output]]] = []
        open_: dict[Any, list[tuple[int, Output]]] = {}
        filled: dict[Any, int] = {}
        for i, g in reversed(dense):
            if not g.dtype.is_floating:
                raise TypeError(f"{g!r} is {g.dtype.name}; means are there for half, bfloat16, float and double")
            bytes = _bytes(g)
            if bytes is None:
                done.append([(i, g)])
                continue
            bucket = open_.setdefault(g.dtype, [])
            bucket.append((i, g))
            filled[g.dtype] = filled.get(g.dtype, 0) + bytes
            if filled[g.dtype] >= self.bucket_bytes:
                done.append(open_.pop(g.dtype))
                filled[g.dtype] = 0
        return done + list(open_.values())

    def _keys(self, graph: Graph) -> dict[str, Any]:
        return {"group_size": self.workers, "group_key": GROUP, "instance_key": _instance(graph)}

    def _reduced(self, gradients: list[Output]) -> list[Output]:
        whole = gradients[0] if len(gradients) == 1 else ops.concat_v2([ops.reshape(g, [-1]) for g in gradients], 0)
        mean = ops.collective_reduce_v2(whole, **self._keys(whole.graph), ordering_token=[], merge_op="Add", final_op="Div",
                                        timeout_seconds=self.timeout_seconds)
        if len(gradients) == 1:
            return [mean]
        shapes = [_shape(g) for g in gradients]
        parts = ops.split_v(mean, [_count(s) for s in shapes], 0, num_split=len(shapes))
        return [ops.reshape(p, list(s)) for p, s in zip(parts, shapes)]

    def _gathered(self, value: Output) -> Output:
        gathered: Output = ops.collective_gather_v2(value, **self._keys(value.graph), ordering_token=[], timeout_seconds=self.timeout_seconds)
        return gathered


def broadcast_variables(variables: Sequence[Variable], workers: Optional[int] = None, rank: Optional[int] = None) -> Operation:
    """Returns an operation that gives the variables of all workers the values of worker 0. Run it after the initializer, if that draws
    other numbers in each worker. The variables have known shapes. workers, rank: None: as `thalweg launch` says."""
    members = _number(workers, "the number of workers", "THALWEG_COLLECTIVE_MEMBERS")
    own = _number(rank, "the rank", "THALWEG_COLLECTIVE_RANK")
    graph = variables[0].graph
    with scopes.working(graph):
        made = []
        for v in variables:
            keys: dict[str, Any] = {"group_size": members, "group_key": GROUP, "instance_key": _instance(graph)}
            if own == 0:
                made.append(ops.collective_bcast_send_v2(v.read(), **keys).operation)
            else:
                made.append(v.assign(ops.collective_bcast_recv_v2(**keys, shape=list(_shape(v.read())), T=v.dtype)))
        return group(*made)


def _shape(value: Output) -> tuple[int, ...]:
    shape = value.shape
    if shape is None or None in shape:
        raise ValueError(f"{value!r} has no known shape")
    return tuple(shape)


def _count(shape: tuple[int, ...]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def _bytes(value: Output) -> Optional[int]:
    shape = value.shape
    return None if shape is None or None in shape else _count(tuple(shape)) * {"float32": 4, "float64": 8}.get(value.dtype.name, 2)
