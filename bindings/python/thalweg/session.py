"""Sessions: running graphs on NumPy arrays.

    with thalweg.Session(g, threads=1) as s:
        s.run(g.initializer())
        value = s.run(loss, {x: batch})

Threads: any number may run one session and its callables at once; a run lets go of Python's global lock."""
import ctypes
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _low, tensor
from .errors import check, made
from .graph import Graph, current_graph
from .output import Formula, Operation, Output
from .runtime import Option, list_options, option_texts
from .tensor import Tensor


class CancelToken:
    """Stops the runs that were given it, and makes later ones fail at once. Threads: any."""
    __slots__ = ("_handle", "__weakref__")

    def __init__(self) -> None:
        self._handle = made(_low.tw_cancel_token_create)

    def __del__(self, destroy=_low.tw_cancel_token_destroy):
        destroy(getattr(self, "_handle", None))

    def cancel(self) -> None:
        """Cannot be undone; kernels that are running end first."""
        _low.tw_cancel_token_cancel(self._handle)

    @property
    def cancelled(self) -> bool:
        return bool(_low.tw_cancel_token_cancelled(self._handle))


class Session:
    """A session of a graph. graph: None: the current one.   options: Session.options() lists them, as in Session(g, threads=1).
    Raises InvalidArgumentError for an unknown option, FailedPreconditionError if no plugin provides a device."""

    def __init__(self, graph: Optional[Graph] = None, **options: Any):
        self._handle = 0
        self.graph = graph or current_graph()
        self._handle = made(_low.tw_session_create, self.graph._handle, *option_texts(options))
        self._prepared: dict[Any, _Prepared] = {}
        self._reads: dict[Any, Output] = {}
        self._mutex = threading.Lock()

    def __del__(self, destroy=_low.tw_session_destroy):
        getattr(self, "_prepared", {}).clear()  # before what they belong to
        destroy(getattr(self, "_handle", None))

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Lets running steps end and refuses new ones. Closing twice is fine."""
        check(_low.tw_session_close(self._handle))

    def run(self, fetches: Any, feeds: Optional[Mapping[Any, Any]] = None, *, timeout: Optional[float] = None,
            cancel: Optional[CancelToken] = None, as_tensors: bool = False) -> Any:
        """One step. fetches: a value, a variable, an operation (which runs and gives None), a name, or lists, tuples and dicts of these,
        nested too; the answer has the same form.   feeds: arrays by value or name.   timeout: seconds.
        Answers arrays, for scalars numbers of NumPy's; with as_tensors, Tensors.
        Raises InvalidArgumentError for wrong feeds and fetches, FailedPreconditionError after close and for variables without contents,
        DeadlineExceededError, CancelledError, and what operations fail with. The session can be used again."""
        feeds = feeds or {}
        leaves: list[Any] = []
        form = _flatten(fetches, leaves)
        prepared = self._prepare(tuple(feeds), tuple(leaves))
        return _unflatten(form, iter(prepared.run(list(feeds.values()), timeout, cancel, as_tensors)))

    def callable(self, fetches: Any, feeds: Sequence[Any] = (), targets: Iterable[Any] = ()) -> "Callable":
        """The same step, prepared: `f = s.callable(loss, feeds=[x, y], targets=[step])`, then `f(images, labels)`."""
        return Callable(self, fetches, tuple(feeds), tuple(targets))

    @staticmethod
    def options() -> dict[str, Option]:
        """Every option by name."""
        return list_options(_low.tw_session_option)

    # ---- Preparing ----

    def _prepare(self, feeds: tuple[Any, ...], leaves: tuple[Any, ...]) -> "_Prepared":
        key = feeds, leaves
        try:
            prepared = self._prepared.get(key)
        except TypeError:  # something that cannot be a key, which is told by name
            prepared = self._make(feeds, leaves, ())
        if prepared is None:
            with self._mutex:
                prepared = self._prepared[key] = self._make(feeds, leaves, ())
        return prepared

    def _make(self, feeds: tuple[Any, ...], leaves: Sequence[Any], targets: Sequence[Any]) -> "_Prepared":
        found = [self._resolve(x) for x in leaves]
        return _Prepared(self.graph, self._handle, [self._feed(x) for x in feeds], found, [self._target(x) for x in targets])

    def _resolve(self, x: Any) -> Union[Output, Operation]:
        """What is fetched or run: text names a value (with a colon) or an operation, which stands for its first value if it has any."""
        if isinstance(x, str):
            if ":" in x:
                x = self.graph.output(x)
            else:
                operation = self.graph.operation(x)
                x = operation.outputs[0] if operation.outputs else operation
        elif isinstance(x, Formula) and not isinstance(x, Output):
            if x not in self._reads:
                self._reads[x] = x._value()
            x = self._reads[x]
        if not isinstance(x, (Output, Operation)):
            raise TypeError(f"{x!r} cannot be fetched; values, variables, operations and their names can")
        return self._mine(x)

    def _feed(self, x: Any) -> Output:
        if isinstance(x, str):
            x = self.graph.output(x)
        if not isinstance(x, Output):
            raise TypeError(f"{x!r} cannot be fed; values and their names can")
        return self._mine(x)

    def _target(self, x: Any) -> Operation:
        x = self._mine(self.graph.operation(x) if isinstance(x, str) else x)
        return x if isinstance(x, Operation) else self.graph._operation_of(x)

    def _mine(self, x: Any) -> Any:
        if getattr(x, "graph", None) is not self.graph:
            raise ValueError(f"{x!r} is not of the session's graph")
        return x


class Callable:
    """A prepared step; see Session.callable. Threads: any number at once."""

    def __init__(self, session: Session, fetches: Any, feeds: tuple[Any, ...], targets: tuple[Any, ...]):
        leaves: list[Any] = []
        self.session = session
        self._form = _flatten(fetches, leaves)
        self._prepared = session._make(feeds, leaves, targets)

    def __call__(self, *feeds: Any, timeout: Optional[float] = None, cancel: Optional[CancelToken] = None,
                 as_tensors: bool = False) -> Any:
        """Runs it on one array for each feed, in order; otherwise as Session.run."""
        return _unflatten(self._form, iter(self._prepared.run(feeds, timeout, cancel, as_tensors)))


class _Prepared:
    """A tw_callable. A large array that is fed shares its memory with the step. Where something that outlives the step keeps hold of that
    memory (a variable, a result), the program would change it by writing to its array. So the first run is given copies, and sees which
    feeds are kept: those are copied ever after."""

    def __init__(self, graph: Graph, session: int, feeds: list[Output], found: list[Any], targets: list[Operation]):
        self._handle, self.graph, self.feeds = 0, graph, feeds
        self._dtypes = [f.dtype for f in feeds]
        self._kept: list[Optional[bool]] = [None] * len(feeds)  # whether a feed outlives the step; None: no run has told
        self._fetched = [isinstance(x, Output) for x in found]
        fetches = [x for x in found if isinstance(x, Output)]
        targets = targets + [x for x in found if isinstance(x, Operation)]
        self._n = len(fetches)
        what = _low.tw_signature(
            size=ctypes.sizeof(_low.tw_signature), feeds=(ctypes.c_uint64 * len(feeds))(*(f.number for f in feeds)),
            fetches=(ctypes.c_uint64 * len(fetches))(*(f.number for f in fetches)),
            targets=(ctypes.c_void_p * len(targets))(*(t._handle for t in targets)),
            n_feeds=len(feeds), n_fetches=len(fetches), n_targets=len(targets))
        self._handle = made(_low.tw_callable_create, session, what, graph=graph)

    def __del__(self, destroy=_low.tw_callable_destroy):
        destroy(getattr(self, "_handle", None))

    def run(self, feeds: Sequence[Any], timeout: Optional[float], cancel: Optional[CancelToken], as_tensors: bool) -> list[Any]:
        if len(feeds) != len(self.feeds):
            raise TypeError(f"the step takes {len(self.feeds)} feeds, not {len(feeds)}")
        handles, results = (ctypes.c_void_p * len(feeds))(), (ctypes.c_void_p * self._n)()
        watched: list[tuple[int, np.ndarray, bool]] = []
        tensors: list[Tensor] = []
        try:
            for i, feed in enumerate(feeds):
                handles[i] = self._enter(i, feed, watched)
            check(_low.tw_callable_run(self._handle, handles, _options(timeout, cancel), results), self.graph)
            tensors = [Tensor._adopt(handle or 0) for handle in results]
            for i, _, shared in watched:
                if not shared:
                    self._kept[i] = not tensor.alone(handles[i] or 0)
        finally:
            for i, array, shared in watched:
                if shared and not tensor.alone(handles[i] or 0):
                    self._part(i, array, handles, tensors)
            for handle in handles:
                _low.tw_tensor_release(handle)
        values = iter(tensors if as_tensors else [tensor.to_value(t) for t in tensors])
        return [next(values) if fetched else None for fetched in self._fetched]

    def _enter(self, i: int, feed: Any, watched: list[tuple[int, np.ndarray, bool]]) -> int:
        """A handle on what is fed; adds what has to be watched: the feed, its array, and whether they share memory."""
        if isinstance(feed, Tensor):
            _low.tw_tensor_retain(feed._handle)
            return feed._handle
        if isinstance(feed, Formula):
            raise TypeError(f"{feed!r} cannot be given to '{self.feeds[i].name}': it is a value of a graph, not an array")
        try:
            array = tensor.as_array(feed, self._dtypes[i])[0]
        except TypeError as e:
            raise TypeError(f"feed '{self.feeds[i].name}': {e}") from None
        if not tensor.worth_sharing(array) or self._kept[i]:
            return tensor.copied(array)
        shared = self._kept[i] is False
        watched.append((i, array, shared))
        return tensor.shared(array) if shared else tensor.copied(array)

    def _part(self, i: int, array: np.ndarray, handles: Any, results: list[Tensor]) -> None:
        """Something keeps the array's memory now that did not in the first run. Results that do are copied; anything else the array must
        outlive."""
        self._kept[i] = True
        for k in range(len(results)):
            if results[k]._lies_in(array):
                results[k] = Tensor(results[k])
        if not tensor.alone(handles[i] or 0):
            tensor.park(array, handles[i])
            handles[i] = None


def _options(timeout: Optional[float], cancel: Optional[CancelToken]) -> Any:
    if timeout is None and cancel is None:
        return None
    ns = 0 if timeout is None else max(1, int(timeout * 1e9))
    return _low.tw_run_options(size=ctypes.sizeof(_low.tw_run_options), timeout_ns=ns, cancel=cancel and cancel._handle)


# ---- Nested fetches ----

def _flatten(fetches: Any, leaves: list[Any]) -> Any:
    """Appends the leaves and answers the form: None for a leaf, (type, forms) or (dict, names, forms)."""
    if isinstance(fetches, Mapping):
        return dict, list(fetches), [_flatten(f, leaves) for f in fetches.values()]
    if isinstance(fetches, (list, tuple)):
        return type(fetches), None, [_flatten(f, leaves) for f in fetches]
    leaves.append(fetches)
    return None


def _unflatten(form: Any, values: Any) -> Any:
    if form is None:
        return next(values)
    kind, names, forms = form
    parts = [_unflatten(f, values) for f in forms]
    if kind is dict:
        return dict(zip(names, parts))
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
