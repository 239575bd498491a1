"""Queues. Some steps enqueue elements of several tensors each, others dequeue them; they wait for each other.

    examples = tw.FIFOQueue(32, ["float32", "int64"], [[784], []])
    put = examples.enqueue(image, label)
    images, labels = examples.dequeue_many(16)

A step that waits holds no thread if it was started with `run_async`; `run` waits with it. The manual's page on queues has the rules of
waiting (FIFOQueueV2 and similar ops)."""
from collections.abc import Sequence
from typing import Any, Optional, Union

from . import build, scopes
from .dtypes import DType, DTypeLike, as_dtype
from .output import Formula, Operation, Output

Dims = Sequence[Optional[int]]


class Queue:
    """Base class of queues; make one of its subclasses. A queue belongs to its graph. With shared_name, graphs whose queues have that name
    share the queue, unless their sessions have containers of their own.

    dtypes, shapes: of an element's components.   capacity: elements that it holds before an enqueue waits; negative: any number."""
    __slots__ = ("handle", "dtypes")

    def __init__(self, op: str, capacity: int, dtypes: Sequence[DTypeLike], shapes: Optional[Sequence[Dims]], shared_name: str, **attrs: Any):
        self.dtypes: list[DType] = [as_dtype(d) for d in dtypes]
        self.handle: Output = scopes.current().graph.op(op, component_types=self.dtypes, shapes=[list(s) for s in shapes or []],
                                                        capacity=capacity, shared_name=shared_name, **attrs)

    def enqueue(self, *components: Any) -> Operation:
        """Enqueues one element; waits until there is room. Fails with CancelledError if the queue is closed."""
        return self._op("QueueEnqueueV2", self._components(components))

    def enqueue_many(self, *components: Any) -> Operation:
        """Enqueues an element for each row of the components, as room becomes free."""
        return self._op("QueueEnqueueManyV2", self._components(components))

    def dequeue(self) -> Union[Output, list[Output]]:
        """Takes an element: its component, or a list of them. Waits until there is one. Fails with OutOfRangeError if the queue is closed
        and empty."""
        return self._taken("QueueDequeueV2")

    def dequeue_many(self, n: Any) -> Union[Output, list[Output]]:
        """Takes n elements, joined along a new first axis. Waits until there are n, even if n exceeds the capacity."""
        return self._taken("QueueDequeueManyV2", n)

    def dequeue_up_to(self, n: Any) -> Union[Output, list[Output]]:
        """As dequeue_many, but takes the remaining elements of a closed queue."""
        return self._taken("QueueDequeueUpToV2", n)

    def close(self, cancel_pending_enqueues: bool = False) -> Operation:
        """Refuses new elements; those in the queue can be taken. Enqueues that wait for room still finish, or end with CancelledError."""
        return self._op("QueueCloseV2", cancel_pending_enqueues=cancel_pending_enqueues)

    def is_closed(self) -> Output:
        """True once the queue was closed."""
        return self._op("QueueIsClosedV2")

    def size(self) -> Output:
        """The number of elements in the queue."""
        return self._op("QueueSizeV2")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.handle.operation.name}' of {', '.join(d.name for d in self._types)}>"

    def _components(self, values: Sequence[Any]) -> list[Any]:
        graph = build.graph_of(list(values)) or self.handle.graph
        return [v if isinstance(v, Formula) or k >= len(self._types) else graph.constant(v, self._types[k]) for k, v in enumerate(values)]

    @property
    def _types(self) -> list[DType]:
        return self.dtypes

    def _taken(self, op: str, *inputs: Any) -> Union[Output, list[Output]]:
        components: list[Output] = self._op(op, *inputs, component_types=self._types)
        return components if len(components) != 1 else components[0]

    def _op(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        return self.handle.graph.op(op, self.handle, *inputs, **attrs)


class FIFOQueue(Queue):
    """Returns its elements in the order of enqueueing."""
    __slots__ = ()

    def __init__(self, capacity: int, dtypes: Sequence[DTypeLike], shapes: Optional[Sequence[Dims]] = None, shared_name: str = ""):
        super().__init__("FIFOQueueV2", capacity, dtypes, shapes, shared_name)


class RandomShuffleQueue(Queue):
    """Returns a random element, as long as min_after_dequeue others stay or the queue is closed."""
    __slots__ = ()

    def __init__(self, capacity: int, min_after_dequeue: int, dtypes: Sequence[DTypeLike], shapes: Optional[Sequence[Dims]] = None,
                 seed: int = 0, shared_name: str = ""):
        super().__init__("RandomShuffleQueueV2", capacity, dtypes, shapes, shared_name, min_after_dequeue=min_after_dequeue, seed=seed)


class PaddingFIFOQueue(Queue):
    """A FIFOQueue of elements whose sizes may differ where shapes have None. dequeue_many pads each to the largest."""
    __slots__ = ()

    def __init__(self, capacity: int, dtypes: Sequence[DTypeLike], shapes: Sequence[Dims], shared_name: str = ""):
        super().__init__("PaddingFIFOQueueV2", capacity, dtypes, shapes, shared_name)


class PriorityQueue(Queue):
    """Returns the element with the smallest first component, an int64 that is not part of dtypes and shapes."""
    __slots__ = ()

    def __init__(self, capacity: int, dtypes: Sequence[DTypeLike] = (), shapes: Sequence[Dims] = (), shared_name: str = ""):
        super().__init__("PriorityQueueV2", capacity, dtypes, shapes, shared_name)

    @property
    def _types(self) -> list[DType]:
        return [as_dtype("int64"), *self.dtypes]
