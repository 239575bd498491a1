"""State at which steps wait, other than queues: accumulators of gradients, barriers, staging areas and critical sections.

    sums = tw.ConditionalAccumulator("float32", [10])
    add = sums.apply_gradient(gradient, local_step=step)
    mean = sums.take_gradient(8)

A step that waits holds no thread if it was started with `run_async`; `run` waits with it. State belongs to its graph. With
shared_name, graphs share the state of that name, unless their sessions have their own containers. A staging area is never shared."""
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
    """Sums gradients until there are enough for one update. Gradients of an older step than its own are dropped; taking begins the next
    step.

    shape: None if unknown.   reduction_type: "MEAN" or "SUM" of the gradients taken."""
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
        """Waits until num_required are there, and takes all that are there."""
        return self._op("ResourceAccumulatorTakeGradient", num_required, dtype=self.dtype)

    def num_accumulated(self) -> Output:
        """The number added since the last take."""
        return self._op("ResourceAccumulatorNumAccumulated")

    def set_global_step(self, new_global_step: Any) -> Operation:
        """Sets the accumulator's step, before which gradients are dropped."""
        return self._op("ResourceAccumulatorSetGlobalStep", _value(new_global_step, "int64"))

    def _op(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        return self.handle.graph.op(op, self.handle, *inputs, **attrs)


class SparseConditionalAccumulator(ConditionalAccumulator):
    """Accumulates gradients that are rows of a tensor. Rows with one index are summed; a mean is over the gradients that had the row.

    shape: of the whole tensor."""
    __slots__ = ()
    _made = "ResourceSparseConditionalAccumulator"

    def apply_gradient(self, indices: Any, values: Any = None, local_step: Any = 0) -> Operation:  # type: ignore[override]
        """Adds the rows `values`, which have these indices."""
        return self._op("ResourceSparseAccumulatorApplyGradient", _value(local_step, "int64"), _value(indices, "int64"),
                        _value(values, self.dtype), self.handle.graph.constant([], "int64"), has_known_shape=False)

    def take_gradient(self, num_required: Any) -> tuple[Output, Output]:  # type: ignore[override]
        """Waits until num_required are there, and takes all that are there: indices of rows, in order, and rows."""
        indices, values, _ = self._op("ResourceSparseAccumulatorTakeGradient", num_required, dtype=self.dtype)
        return indices, values


class Barrier:
    """Assembles elements by key. Each element has several components, which arrive one by one. dtypes, shapes: of the components."""
    __slots__ = ("handle", "dtypes")

    def __init__(self, dtypes: Sequence[DTypeLike], shapes: Sequence[Sequence[int]], shared_name: str = ""):
        self.dtypes: list[DType] = [as_dtype(d) for d in dtypes]
        self.handle: Output = scopes.current().graph.op("ResourceBarrier", component_types=self.dtypes, shapes=[list(s) for s in shapes],
                                                        shared_name=shared_name)

    def insert_many(self, component_index: int, keys: Any, values: Any) -> Operation:
        """Inserts that component into the elements of the keys, a row of values for each."""
        return self._op("ResourceBarrierInsertMany", keys, _value(values, self.dtypes[component_index]), component_index=component_index)

    def take_many(self, num_elements: Any, allow_small_batch: bool = False) -> tuple[Output, Output, list[Output]]:
        """Waits until num_elements elements are whole, and takes them: the indices of the batches in which they began, their keys, their
        components."""
        indices, keys, values = self._op("ResourceBarrierTakeMany", num_elements, component_types=self.dtypes,
                                         allow_small_batch=allow_small_batch)
        return indices, keys, list(values)

    def close(self, cancel_pending_enqueues: bool = False) -> Operation:
        """Refuses new keys. Elements that were begun may become whole, unless they are cancelled."""
        return self._op("ResourceBarrierClose", cancel_pending_enqueues=cancel_pending_enqueues)

    def ready_size(self) -> Output:
        """The number of whole elements that are not taken."""
        return self._op("ResourceBarrierReadySize")

    def incomplete_size(self) -> Output:
        """The number of elements that lack components."""
        return self._op("ResourceBarrierIncompleteSize")

    def _op(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        return self.handle.graph.op(op, self.handle, *inputs, **attrs)


class StagingArea:
    """Lists of tensors that some steps put and others get, first in, first out. capacity, memory_limit: the number of lists, or bytes,
    that it holds before a put waits; 0: no limit."""
    __slots__ = ("dtypes", "_attrs")

    def __init__(self, dtypes: Sequence[DTypeLike], shared_name: str = "", capacity: int = 0, memory_limit: int = 0):
        self.dtypes: list[DType] = [as_dtype(d) for d in dtypes]
        name = shared_name or scopes.current().graph._new_prefix("StagingArea")[:-1]
        self._attrs: dict[str, Any] = dict(shared_name=name, capacity=capacity, memory_limit=memory_limit)

    def put(self, *values: Any) -> Operation:
        """Stores a list; waits until there is room."""
        made = [_value(x, d) for x, d in zip(values, self.dtypes, strict=True)]
        return made[0].graph.op("Stage", made, **self._attrs)

    def get(self) -> Union[Output, list[Output]]:
        """Takes the oldest list: its tensor, or a list of them. Waits until there is one."""
        return self._taken("Unstage")

    def peek(self, index: Any) -> Union[Output, list[Output]]:
        """Returns the list at an index, which stays there. Waits until there is one."""
        return self._taken("StagePeek", index)

    def size(self) -> Output:
        """The number of lists that it holds."""
        return scopes.current().graph.op("StageSize", dtypes=self.dtypes, **self._attrs)

    def clear(self) -> Operation:
        """Drops all lists."""
        return scopes.current().graph.op("StageClear", dtypes=self.dtypes, **self._attrs)

    def _taken(self, op: str, *inputs: Any) -> Union[Output, list[Output]]:
        values = scopes.current().graph.op(op, *inputs, dtypes=self.dtypes, **self._attrs)
        return list(values) if len(values) != 1 else values[0]


class CriticalSection:
    """A section that one step at a time may run: `section.execute(lambda: total.assign(total.read() * 2.0))`. Waiting steps enter in
    order; a step that fails or is cancelled leaves it."""
    __slots__ = ("handle",)

    def __init__(self, shared_name: str = ""):
        self.handle: Output = scopes.current().graph.op("MutexV2", shared_name=shared_name)

    def execute(self, build_body: Callable[[], Any]) -> Any:
        """Runs the operations that build_body adds with the mutex held. build_body returns values, operations, or lists of them. Returned
        values are ready once all operations have run and the mutex is free."""
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
