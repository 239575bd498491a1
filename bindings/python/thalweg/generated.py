"""Generators of Python as sources of datasets.

Steps ask for a pass or an element by a number in one queue, and take the answer from another. A thread of Python, the pump, runs the
generator and gives one answer for each number. The pump belongs to the DatasetIterator or the Steps that run the pipeline."""
import threading
from collections.abc import Callable, Iterable
from typing import Any, Optional

import numpy as np

from . import scopes
from .cancel import CancelToken
from .dtypes import as_dtype
from .elements import Spec, flat
from .errors import CancelledError
from .flow import Traced, cond
from .graph import Graph, current_graph
from .output import Output
from .queues import FIFOQueue
from .tensor import Tensor

PASS, ELEMENT = 0, 1  # what is asked for
GIVEN, OVER, FAILED = 0, 1, 2  # the answers


class Source:
    """A generator in a graph."""

    def __init__(self, graph: Graph, function: Callable[[], Iterable[Any]], spec: Spec):
        self.function, self.spec, self.taken = function, spec, False
        parts = [("int64", ()), ("string", ()), *spec.parts]
        with graph:
            self.requests = FIFOQueue(-1, ["int64"], [[]])
            self.answers = FIFOQueue(-1, [t for t, _ in parts])
            self.ends = FIFOQueue(1, ["int64"], [[]])  # closed and empty: taking from it is the end of the data
            self.close = self.ends.close()
            self.wanted = self.requests.dequeue()
            self.parts = [graph.placeholder(t, s) for t, s in parts]
            self.put = self.answers.enqueue(*self.parts)

    def dataset(self, graph: Graph) -> Output:
        init, next_, finalize = (self._added(graph, f, args, what) for f, args, what in (
            (self._init, [], "init"), (self._next, [("int64", ())], "next"), (lambda state: state, [("int64", ())], "finalize")))
        spec = self.spec
        return graph.op("GeneratorDataset", init[1], next_[1], finalize[1], init_func=init[0], next_func=next_[0], finalize_func=finalize[0],
                        Tinit_func_args=[v.dtype for v in init[1]], Tnext_func_args=[v.dtype for v in next_[1]],
                        Tfinalize_func_args=[v.dtype for v in finalize[1]], output_types=spec.types, output_shapes=spec.shapes)

    @staticmethod
    def _added(graph: Graph, function: Callable[..., Any], args: Any, what: str) -> tuple[str, list[Output]]:
        traced = Traced(graph, function, [(as_dtype(t), s) for t, s in args], f"generator: {what}")
        captured = traced.body.captured()
        return traced.add(f"generator_{what}", captured), captured

    def _ask(self, kind: int, graph: Graph) -> list[Output]:
        """Asks, takes the answer, and fails if the generator did."""
        number = graph.constant(kind, "int64")
        asked = graph.op("QueueEnqueueV2", self.requests.handle, [number])
        types = self.answers.dtypes
        with _after(asked):
            answer = graph.op("QueueDequeueV2", self.answers.handle, component_types=types)
        right = graph.op("NotEqual", answer[0], graph.constant(FAILED, "int64"))
        checked = graph.op("Assert", right, [answer[1]], T=["string"])
        with _after(checked):
            return [graph.op("Identity", x) for x in answer]

    def _init(self) -> Output:
        return self._ask(PASS, current_graph())[0]

    def _next(self, state: Output) -> list[Output]:
        graph = state.graph
        answer = self._ask(ELEMENT, graph)
        over = graph.op("Equal", answer[0], graph.constant(OVER, "int64"))
        ended = cond(over, lambda: self._end(), lambda: 0 * answer[0])
        with _after(ended.operation):
            return [graph.op("Identity", x) for x in answer[2:]]

    def _end(self) -> Output:
        found = current_graph().op("QueueDequeueV2", self.ends.handle, component_types=["int64"])
        return found[0]


def _after(operation: Any) -> Any:
    return scopes.control_dependencies([operation])


def generator_source(function: Callable[[], Iterable[Any]], spec: Spec) -> Callable[[Graph], tuple[Output, Spec]]:
    if not callable(function):
        raise TypeError(f"generator: {function!r} is no function; give the function that makes the iterable, such as a generator function")

    def build(graph: Graph) -> tuple[Output, Spec]:
        if graph.__dict__.get("_splitting") is not None:
            raise ValueError("a generator runs in the program that makes it, and the tasks of a data service cannot call it; write its "
                             "elements to files, or use arrays")
        root = graph._root()
        if graph is not root:
            raise TypeError("a generator cannot be made inside a function of elements; make it outside")
        source = Source(graph, function, spec)
        graph.__dict__.setdefault("_generators", []).append(source)
        return source.dataset(graph), spec
    return build


def has_generators(graph: Graph) -> bool:
    return bool(graph.__dict__.get("_generators"))


class Pump:
    """The threads that run the generators of a graph while somebody takes their elements."""

    def __init__(self, graph: Graph):
        self._stop = CancelToken()
        self._sources: list[Source] = graph.__dict__.get("_generators", [])
        if any(s.taken for s in self._sources):
            raise RuntimeError("a generator gives its elements to one Steps of a graph; make another dataset for the second")
        for s in self._sources:
            s.taken = True
        self._threads = [threading.Thread(target=self._run, args=(graph, s), daemon=True, name="thalweg generator") for s in self._sources]
        for t in self._threads:
            t.start()

    def stop(self) -> None:
        """Ends the threads; a generator that is computing an element is waited for."""
        self._stop.cancel()
        for t in self._threads:
            t.join()
        self._threads = []

    def _run(self, graph: Graph, source: Source) -> None:
        from .session import Session
        parts = source.spec.parts
        empty = [np.zeros([0 if d is None else d for d in s or ()], object if t.name == "string" else t.numpy) for t, s in parts]
        elements: Any = iter(())
        try:
            with Session(graph) as session:
                session.run(source.close)
                while True:
                    asked = session.run(source.wanted, cancel=self._stop)
                    answer: list[Any] = [GIVEN, b"", *empty]
                    try:
                        if asked == PASS:
                            elements = iter(source.function())
                        else:
                            answer[2:] = self._values(next(elements), source.spec)
                    except StopIteration:
                        answer[0] = OVER
                    except Exception as e:
                        answer[:2] = FAILED, f"the generator raised {type(e).__name__}: {e}".encode()
                    session.run(source.put, dict(zip(source.parts, answer)), cancel=self._stop)
        except CancelledError:
            pass

    @staticmethod
    def _values(element: Any, spec: Spec) -> list[Tensor]:
        values = [Tensor(v, t) for v, (t, _) in zip(flat(element, spec, "an element"), spec.parts)]
        for k, (v, (_, s)) in enumerate(zip(values, spec.parts)):
            if s is not None and (len(s) != len(v.shape) or any(x not in (None, y) for x, y in zip(s, v.shape))):
                raise ValueError(f"component {k} has shape {list(v.shape)}, and `shapes` says {list(s)}")
        return values
