"""State that steps wait at, beside queues: accumulators of gradients, barriers, staging areas and critical sections.

    sums = tw.ConditionalAccumulator("float32", [10])
    add = sums.apply_gradient(gradient, local_step=step)
    mean = sums.take_gradient(8)

A step that waits holds no thread if it was started with `run_async`; `run` waits with it. State is its graph's. Where shared_name is
given, graphs share what has that name, unless their sessions have containers of their own; a staging area is always its graph's."""
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

from . import build, scopes
from .dtypes import DType, DTypeLike, as_dtype
from .output import Formula, Operation, Output

Dims = Optional[Sequence[Optional[int]]]


def _value(x: Any, dtype: DTypeLike) -> Output:
    graph = build.graph_of([x]) or scopes.current().graph
    return x._value() if isinstance(x, Formula) else graph.constant(x, dtype)


class ConditionalAccumulator:
    """Adds gradients up until as many are there as one update wants. Those of an older step than its own are dropped; taking begins the next.

    shape: None where not known.   reduction_type: "MEAN" or "SUM", of those that are taken."""
    __slots__ = ("handle", "dtype")
    _made = "ResourceConditionalAccumulator"

    def __init__(self, dtype: DTypeLike, shape: Dims = None, shared_name: str = "", reduction_type: str = "MEAN"):
        self.dtype: DType = as_dtype(dtype)
        self.handle: Output = scopes.current().graph.op(self._made, dtype=self.dtype, shape=None if shape is None else list(shape),
                                                        shared_name=shared_name, reduction_type=reduction_type)

    def apply_gradient(self, gradient: Any, local_step: Any = 0) -> Operation:
        """Adds the gradient; does nothing if local_step is less than the accumulator's step."""
        return self._op("ResourceAccumulatorApplyGradient", _value(local_step, "int64"), _value(gradient, self.dtype))

    def take_gradient(self, num_required: Any) -> Output:
        """Waits until so many are there, and takes all that are."""
        return self._op("ResourceAccumulatorTakeGradient", num_required, dtype=self.dtype)

    def num_accumulated(self) -> Output:
        """How many were added since the last were taken."""
        return self._op("ResourceAccumulatorNumAccumulated")

    def set_global_step(self, new_global_step: Any) -> Operation:
        """Sets the accumulator's step, before which gradients are dropped."""
        return self._op("ResourceAccumulatorSetGlobalStep", _value(new_global_step, "int64"))

    def _op(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        return self.handle.graph.op(op, self.handle, *inputs, **attrs)


class SparseConditionalAccumulator(ConditionalAccumulator):
    """Of gradients that are rows of a tensor: rows of one number are added up, and their mean is of those gradients that had the row.

    shape: of the whole tensor."""
    __slots__ = ()
    _made = "ResourceSparseConditionalAccumulator"

    def apply_gradient(self, indices: Any, values: Any = None, local_step: Any = 0) -> Operation:  # type: ignore[override]
        """Adds rows `values` of those numbers."""
        return self._op("ResourceSparseAccumulatorApplyGradient", _value(local_step, "int64"), _value(indices, "int64"),
                        _value(values, self.dtype), self.handle.graph.constant([], "int64"), has_known_shape=False)

    def take_gradient(self, num_required: Any) -> tuple[Output, Output]:  # type: ignore[override]
        """Waits until so many are there, and takes all that are: numbers of rows, in order, and rows."""
        indices, values, _ = self._op("ResourceSparseAccumulatorTakeGradient", num_required, dtype=self.dtype)
        return indices, values


class Barrier:
    """Puts elements together by key: each has several components, which come one by one. dtypes, shapes: of the components."""
    __slots__ = ("handle", "dtypes")

    def __init__(self, dtypes: Sequence[DTypeLike], shapes: Sequence[Sequence[int]], shared_name: str = ""):
        self.dtypes: list[DType] = [as_dtype(d) for d in dtypes]
        self.handle: Output = scopes.current().graph.op("ResourceBarrier", component_types=self.dtypes, shapes=[list(s) for s in shapes],
                                                        shared_name=shared_name)

    def insert_many(self, component_index: int, keys: Any, values: Any) -> Operation:
        """Gives that component to the elements of the keys, a row of values for each."""
        return self._op("ResourceBarrierInsertMany", keys, _value(values, self.dtypes[component_index]), component_index=component_index)

    def take_many(self, num_elements: Any, allow_small_batch: bool = False) -> tuple[Output, Output, list[Output]]:
        """Waits until so many elements are whole, and takes them: the batches that they began in, their keys, their components."""
        indices, keys, values = self._op("ResourceBarrierTakeMany", num_elements, component_types=self.dtypes,
                                         allow_small_batch=allow_small_batch)
        return indices, keys, list(values)

    def close(self, cancel_pending_enqueues: bool = False) -> Operation:
        """No new keys come in; elements that were begun may become whole, unless they are cancelled."""
        return self._op("ResourceBarrierClose", cancel_pending_enqueues=cancel_pending_enqueues)

    def ready_size(self) -> Output:
        """How many elements are whole and not taken."""
        return self._op("ResourceBarrierReadySize")

    def incomplete_size(self) -> Output:
        """How many elements lack components."""
        return self._op("ResourceBarrierIncompleteSize")

    def _op(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        return self.handle.graph.op(op, self.handle, *inputs, **attrs)


class StagingArea:
    """Lists of tensors that some steps lay down and others take up, first in, first out. capacity, memory_limit: how many lists, or bytes, it
    holds before who lays down waits; 0: any number."""
    __slots__ = ("dtypes", "_attrs")

    def __init__(self, dtypes: Sequence[DTypeLike], shared_name: str = "", capacity: int = 0, memory_limit: int = 0):
        self.dtypes: list[DType] = [as_dtype(d) for d in dtypes]
        name = shared_name or scopes.current().graph._new_prefix("StagingArea")[:-1]
        self._attrs: dict[str, Any] = dict(shared_name=name, capacity=capacity, memory_limit=memory_limit)

    def put(self, *values: Any) -> Operation:
        """Lays a list down; waits until there is room."""
        made = [_value(x, d) for x, d in zip(values, self.dtypes, strict=True)]
        return made[0].graph.op("Stage", made, **self._attrs)

    def get(self) -> Union[Output, list[Output]]:
        """Takes up the list that was laid down first: its tensor, or a list of them. Waits until there is one."""
        return self._taken("Unstage")

    def peek(self, index: Any) -> Union[Output, list[Output]]:
        """The list at a place in the line, which stays there. Waits until there is one."""
        return self._taken("StagePeek", index)

    def size(self) -> Output:
        """How many lists it holds."""
        return scopes.current().graph.op("StageSize", dtypes=self.dtypes, **self._attrs)

    def clear(self) -> Operation:
        """Drops what it holds."""
        return scopes.current().graph.op("StageClear", dtypes=self.dtypes, **self._attrs)

    def _taken(self, op: str, *inputs: Any) -> Union[Output, list[Output]]:
        values = scopes.current().graph.op(op, *inputs, dtypes=self.dtypes, **self._attrs)
        return list(values) if len(values) != 1 else values[0]


class CriticalSection:
    """What one step at a time may run: `section.execute(lambda: total.assign(total.read() * 2.0))`. Those who wait come in order; a step that
    fails or is cancelled leaves it."""
    __slots__ = ("handle",)

    def __init__(self, shared_name: str = ""):
        self.handle: Output = scopes.current().graph.op("MutexV2", shared_name=shared_name)

    def execute(self, build_body: Callable[[], Any]) -> Any:
        """What build_body builds runs with the mutex held. It answers values, operations, or lists of them; what comes back of a value is there
        once all of them have run and the mutex is free."""
        graph = self.handle.graph
        lock = graph.op("MutexLock", self.handle)
        with scopes.control_dependencies([lock]):
            made = build_body()
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        with scopes.control_dependencies(results):
            end = graph.op("ConsumeMutexLock", lock)
        with scopes.control_dependencies([end]):
            after = [graph.op("Identity", r) if isinstance(r, Output) else end for r in results]
        return after if isinstance(made, (list, tuple)) else after[0]
