"""Running datasets: DatasetIterator for a program, Steps for the steps of a graph."""
import ctypes
from collections.abc import Iterator
from typing import Any, Optional

from . import _low
from ._handle import Handle
from .eager import current_eager
from .elements import Spec, packed
from .errors import check
from .generated import Pump
from .graph import Graph
from .output import Operation, Output
from .runtime import option_texts
from .tensor import Tensor, bytes_of
from .value import Value


class ElementIterator(Handle):
    """An iterator of elements, for `for`."""
    _spec: Spec

    def tensors(self) -> Optional[list[Tensor]]:
        """The components of the next element; None at the end of the epoch."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        tensors = self.tensors()
        if tensors is None:
            raise StopIteration
        return packed([_value(t) for t in tensors], self._spec)


class DatasetIterator(ElementIterator):
    """A position in a dataset. `for element in iterator` gives the rest of the epoch. save() returns the position, with which restore()
    continues, in this process or another: each element is given exactly once.   Threads: one at a time."""

    def __init__(self, graph: Graph, value: Output, spec: Spec, prefetch: int, options: dict[str, Any]):
        self._handle: Any = None
        self._spec, self._graph = spec, graph
        texts, n = option_texts(options)
        record = _low.tw_dataset_iterator_options()
        _low.tw_dataset_iterator_options_init(record)
        record.prefetch, record.session, record.n_session = prefetch, ctypes.cast(texts, type(record.session)), n
        self._pump = Pump(graph)
        made = ctypes.POINTER(_low.tw_iterator)()
        check(_low.tw_dataset_iterator_create(graph._handle, value.number, record, made))
        self._handle = made

    def __del__(self, destroy: Any = _low.tw_iterator_destroy) -> None:
        destroy(getattr(self, "_handle", None))  # waits for a step that runs ahead, which may wait for the pump
        if hasattr(self, "_pump"):
            self._pump.stop()

    @property
    def n_elements(self) -> Optional[int]:
        """Of an epoch; None if that is not known, or there is no end."""
        n = int(self._handle.contents.n_batches)
        return None if n < 0 else n

    def tensors(self) -> Optional[list[Tensor]]:
        """The components of the next element; None at the end of the epoch."""
        end, out = ctypes.c_uint32(), (ctypes.c_void_p * len(self._spec.parts))()
        check(_low.tw_iterator_next(self._handle, out, end))
        return None if end.value else [Tensor._adopt(handle) for handle in out]

    def reset(self, epoch: int = 0) -> None:
        """Starts an epoch, on which shuffles depend."""
        check(_low.tw_iterator_reset(self._handle, epoch))

    def save(self) -> bytes:
        """The position, with the elements that were computed and not taken."""
        out = ctypes.c_void_p()
        check(_low.tw_iterator_save(self._handle, out))
        return bytes_of(out.value or 0)

    def restore(self, position: bytes) -> None:
        """Continues at a saved position. Raises InvalidArgumentError for one of another pipeline, naming both."""
        check(_low.tw_iterator_restore(self._handle, position, len(position)))


def _value(tensor: Tensor) -> Value:
    return Value(current_eager(), tensor)


class Steps:
    """A dataset in the steps of a graph. next: the element of a step: a value, or a tuple or dict of values.   start: the operation that
    begins at the first element, or continues where a checkpoint was restored.   handle: of the position."""

    def __init__(self, graph: Graph, value: Output, spec: Spec, name: Optional[str]):
        attrs = dict(output_types=spec.types, output_shapes=spec.shapes)
        self.handle: Output = graph.op("IteratorV2", shared_name="", container="", name=name, **attrs)
        self.start: Operation = graph.op("MakeIterator", value, self.handle)
        got = graph.op("IteratorGetNext", self.handle, **attrs)
        self._pump = Pump(graph)
        self.next: Any = packed(got if isinstance(got, list) else [got], spec)

    def __del__(self) -> None:
        if hasattr(self, "_pump"):
            self._pump.stop()
