"""Sessions: running graphs on NumPy arrays.

    with thalweg.Session(g, threads=1) as s:
        s.run(g.initializer())
        value = s.run(loss, {x: batch})

Threads: any number may run one session and its callables at once; a run releases Python's global lock."""
import ctypes
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from . import _low, tensor
from ._handle import Handle, c_text
from .cancel import CancelToken, held_back, interruptible
from .debug import session_options
from .dtypes import Array
from .errors import NotFoundError, check, made
from .future import Future
from .graph import Graph, current_graph
from .nested import rebuild
from .output import Formula, Operation, Output
from .runtime import Option, list_options, option_texts
from .stats import StepStats, give_back, handle_of, take
from .tensor import Tensor
from .value import Value

if TYPE_CHECKING:
    from typing import Unpack

    from ._options import SessionOptions


class Session(Handle):
    """A session of a graph. graph: None: the current one.   options: Session.options() lists them, as in Session(g, threads=1).
    Raises InvalidArgumentError for an unknown option, FailedPreconditionError if no plugin provides a device."""

    def __init__(self, graph: Optional[Graph] = None, **options: "Unpack[SessionOptions]"):
        self._handle = 0
        self.graph = current_graph() if graph is None else graph
        if not isinstance(self.graph, Graph):
            raise TypeError(f"{graph!r} is no graph")
        self._handle = made(_low.tw_session_create, self.graph._handle, *option_texts(session_options(dict(options))))
        self._prepared: dict[Any, _Prepared] = {}
        self._reads: dict[Any, Output] = {}
        self._mutex = threading.Lock()

    def __del__(self, destroy: Any = _low.tw_session_destroy) -> None:
        getattr(self, "_prepared", {}).clear()  # before the session, which owns them
        destroy(getattr(self, "_handle", None))

    def __repr__(self) -> str:
        return f"<Session of {self.graph!r}>"

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Lets running steps end and refuses new ones. Closing twice is fine."""
        check(_low.tw_session_close(self._handle))

    def reset(self, container: str = "") -> int:
        """Empties a container of state and returns the number of objects it held. Variables then have no value, and the next step that uses
        a queue or the like makes it anew. container: "": the session's own, which without the option `container` is its graph's, and
        with a target `localhost` of every task.
        Raises InvalidArgumentError for a name that begins with "<"; with a target also the errors of cluster_reset."""
        count = ctypes.c_uint64()
        check(_low.tw_session_reset(self._handle, c_text(container), count))
        return count.value

    def run(self, fetches: Any, feeds: Optional[Mapping[Any, Any]] = None, *, timeout: Optional[float] = None,
            cancel: Optional[CancelToken] = None, as_tensors: bool = False, stats: Optional[StepStats] = None) -> Any:
        """Runs one step. fetches: a value, a variable, an operation (which runs and gives None), a name, or lists, tuples and dicts
        of these, also nested; the result has the same form.   feeds: arrays by value or name.   timeout: seconds.
        stats: a StepStats that records the time of each part.
        Variables are read before the step updates them, except by operations that depend on an update: with [loss, step], the loss is
        computed from the weights before the step.
        Returns arrays, and NumPy numbers for scalars; with as_tensors, Tensors. Ctrl-C cancels a step of the main thread.
        Raises InvalidArgumentError for wrong feeds and fetches, FailedPreconditionError after close and for variables without contents,
        DeadlineExceededError, CancelledError, and errors of operations. The session stays usable."""
        feeds = feeds or {}
        form, prepared = self._prepare(tuple(feeds), fetches)
        return rebuild(form, prepared.run(list(feeds.values()), timeout, cancel, as_tensors, stats))

    def run_async(self, fetches: Any, feeds: Optional[Mapping[Any, Any]] = None, *, timeout: Optional[float] = None,
                  as_tensors: bool = False, stats: Optional[StepStats] = None) -> Future:
        """Starts a step and returns its future; `future.result()` waits and returns the result of run, or raises. Fed arrays are copied,
        Tensors are not. If max_async_runs (see options) steps are running, it waits until one ends; in a session of one thread the step
        is over on return. The timeout starts now. Raises errors of fetches and feeds at once."""
        feeds = feeds or {}
        form, prepared = self._prepare(tuple(feeds), fetches)
        return prepared.start(list(feeds.values()), timeout, as_tensors, form, stats)

    def callable(self, fetches: Any, feeds: Sequence[Any] = (), targets: Iterable[Any] = (), *,
                 feed_devices: Optional[Sequence[Optional[str]]] = None,
                 fetch_devices: Optional[Sequence[Optional[str]]] = None) -> "Callable":
        """Prepares a step: `f = s.callable(loss, feeds=[x, y], targets=[step])`, then `f(images, labels)`.
        feed_devices, fetch_devices: the devices of feeds and fetched values, one name such as "FAKE:0" for each, or None for host memory.
        A value on a device is returned as a Tensor, which may be fed again."""
        return Callable(self, fetches, tuple(feeds), tuple(targets), feed_devices, fetch_devices)

    def partial_run(self, fetches: Any, feeds: Sequence[Any] = ()) -> "PartialRun":
        """Starts one step that is fed and fetched in parts: `r = s.partial_run([a, b], feeds=[x, y])`, then `r.run(a, {x: 1})` and, with
        its result, `r.run(b, {y: 2})`. fetches, feeds: everything that the parts will fetch, run and feed."""
        return PartialRun(self, fetches, tuple(feeds))

    def plan(self, fetches: Any, feeds: Union[Mapping[Any, Sequence[int]], Iterable[Any]] = ()) -> dict[str, Any]:
        """Returns the plan of a step, as Callable.plan. feeds: shapes by value or name; or values and names alone, as for a Callable.plan
        without shapes."""
        shapes = list(feeds.values()) if isinstance(feeds, Mapping) else []
        return self._prepare(tuple(feeds), fetches)[1].plan(shapes)

    def report(self) -> dict[str, int]:
        """Returns counts of the session: steps, plans, shapes, hits, misses, bytes, by the names of tw_session_info (session.h)."""
        info = _low.tw_session_info(size=ctypes.sizeof(_low.tw_session_info))
        check(_low.tw_session_report(self._handle, info))
        return {name: getattr(info, name) for name, *_ in info._fields_ if name not in ("size", "flags")}

    @staticmethod
    def options() -> dict[str, Option]:
        """Every option by name."""
        return list_options(_low.tw_session_option)

    # ---- Preparing ----

    def _prepare(self, feeds: tuple[Any, ...], fetches: Any) -> tuple[Any, "_Prepared"]:
        """Returns the form of the fetches, and the prepared step."""
        found: list[Any] = []
        form = _flatten(fetches, found)
        key = feeds, leaves = feeds, tuple(found)
        try:
            prepared = self._prepared.get(key)
        except TypeError:  # an unhashable key; the error below names it
            prepared = self._make(feeds, leaves, ())
        if prepared is None:
            with self._mutex:
                prepared = self._prepared[key] = self._make(feeds, leaves, ())
        return form, prepared

    def _make(self, feeds: tuple[Any, ...], leaves: Sequence[Any], targets: Sequence[Any], devices: Any = (None, None)) -> "_Prepared":
        found = [self._resolve(x) for x in leaves]
        return _Prepared(self._handle, [self._feed(x) for x in feeds], found, [self._target(x) for x in targets], devices)

    def _resolve(self, x: Any) -> Union[Output, Operation]:
        """Resolves a fetch. A text names a value (with a colon) or an operation, which stands for its first value if it has one."""
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
            try:
                x = self.graph.output(x)
            except NotFoundError as e:
                raise NotFoundError(f"feed {x!r}: {e.message}") from None
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


class PartialRun(Handle):
    """One step that is run in parts; see Session.partial_run. Every operation runs once in all parts together. Threads: one part at a time."""

    def __init__(self, session: Session, fetches: Any, feeds: tuple[Any, ...]):
        self._handle, self.session = 0, session
        found: list[Any] = []
        _flatten(fetches, found)
        _, what = _signature([session._feed(x) for x in feeds], [session._resolve(x) for x in found], [])
        self._handle = made(_low.tw_partial_run_create, session._handle, what)

    def __del__(self, destroy: Any = _low.tw_partial_run_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    @property
    def left(self) -> int:
        """The number of fetches and operations that no part has used yet."""
        return int(_low.tw_partial_run_left(self._handle))

    def run(self, fetches: Any, feeds: Optional[Mapping[Any, Any]] = None, *, timeout: Optional[float] = None,
            cancel: Optional[CancelToken] = None) -> Any:
        """Runs a part, as Session.run. Raises InvalidArgumentError for a fetch or feed that is not of the run, comes twice, or needs a feed
        that no part gave yet. Nothing has run then, and the part may be tried again. After any other failure the run is over."""
        found: list[Any] = []
        form = _flatten(fetches, found)
        names = [self.session._feed(x) for x in feeds or {}]
        n, part = _signature(names, [self.session._resolve(x) for x in found], [])
        handles, results = (ctypes.c_void_p * len(names))(), (ctypes.c_void_p * n)()
        given = [x if isinstance(x, Tensor) else Tensor(x, dtype=name.dtype) for name, x in zip(names, (feeds or {}).values())]
        for i, t in enumerate(given):
            handles[i] = t._handle
        try:
            check(interruptible(lambda token: _low.tw_partial_run_run(self._handle, part, handles, _options(timeout, token, None), results),
                                cancel))
        except BaseException:  # from a signal handler; the part may have succeeded
            for result in results:
                _low.tw_tensor_release(result)
            raise
        values = iter([tensor.to_value(Tensor._adopt(handle or 0)) for handle in results])
        return rebuild(form, iter([next(values) if isinstance(self.session._resolve(x), Output) else None for x in found]))


class Callable(Handle):
    """A prepared step; see Session.callable. Threads: any number at once."""

    def __init__(self, session: Session, fetches: Any, feeds: tuple[Any, ...], targets: tuple[Any, ...],
                 feed_devices: Optional[Sequence[Optional[str]]] = None, fetch_devices: Optional[Sequence[Optional[str]]] = None):
        leaves: list[Any] = []
        self.session = session
        self._form = _flatten(fetches, leaves)
        self._prepared = session._make(feeds, leaves, targets, (feed_devices, fetch_devices))

    def __repr__(self) -> str:
        return f"<Callable({', '.join(f.name for f in self._prepared.feeds)})>"

    def __call__(self, *feeds: Any, timeout: Optional[float] = None, cancel: Optional[CancelToken] = None,
                 as_tensors: bool = False, stats: Optional[StepStats] = None) -> Any:
        """Runs the step on one array for each feed, in order; otherwise as Session.run."""
        return rebuild(self._form, self._prepared.run(feeds, timeout, cancel, as_tensors, stats))

    def run_async(self, *feeds: Any, timeout: Optional[float] = None, as_tensors: bool = False,
                  stats: Optional[StepStats] = None) -> Future:
        """Starts the step, as Session.run_async."""
        return self._prepared.start(feeds, timeout, as_tensors, self._form, stats)

    def plan(self, *shapes: Sequence[int]) -> dict[str, Any]:
        """Returns the plan for feeds of these shapes, one for each. Without shapes, that of the latest run, or, before any run, one for the
        shapes in the graph. tw_callable_plan_json (session.h) describes it. Raises InvalidArgumentError for shapes that do not fit."""
        return self._prepared.plan(shapes)


class _Prepared(Handle):
    """A tw_callable. A large fed array shares its memory with the step. If an object that outlives the step (a variable, a result) kept
    that memory, the program would change the object by writing to its array. The first run therefore gets copies and finds out which
    feeds are kept; later runs copy those."""

    def __init__(self, session: int, feeds: list[Output], found: list[Any], targets: list[Operation], devices: Any = (None, None)):
        self._handle, self.feeds = 0, feeds
        self._dtypes = [f.dtype for f in feeds]
        self._kept: list[Optional[bool]] = [None] * len(feeds)  # whether a feed outlives the step; None: not known yet
        self._fetched = [isinstance(x, Output) for x in found]
        self._n, what = _signature(feeds, found, targets)
        what.feed_devices, what.fetch_devices = _names(devices[0], len(feeds), "feeds"), _names(devices[1], self._n, "fetched values")
        self._handle = made(_low.tw_callable_create, session, what)

    def __del__(self, destroy: Any = _low.tw_callable_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def plan(self, shapes: Sequence[Sequence[int]]) -> dict[str, Any]:
        if shapes and len(shapes) != len(self.feeds):
            raise ValueError(f"{len(shapes)} shapes for {len(self.feeds)} feeds")
        given = (_low.tw_shape * len(shapes))(*(
            _low.tw_shape(dims=(ctypes.c_int64 * len(s))(*s), rank=len(s)) for s in shapes)) if shapes else None
        plan: dict[str, Any] = json.loads(tensor.bytes_of(made(_low.tw_callable_plan_json, self._handle, given)))
        return plan

    def run(self, feeds: Sequence[Any], timeout: Optional[float], cancel: Optional[CancelToken], as_tensors: bool,
            stats: Optional[StepStats]) -> Iterator[Any]:
        handles, results = (ctypes.c_void_p * len(feeds))(), (ctypes.c_void_p * self._n)()
        watched: list[tuple[int, Array, bool]] = []
        tensors: list[Tensor] = []
        try:
            self._enter(feeds, handles, watched)
            try:
                check(self._step(handles, results, timeout, cancel, stats))
            except BaseException:  # from a signal handler; the step may have succeeded
                for result in results:
                    _low.tw_tensor_release(result)
                raise
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
        return self._values(tensors, as_tensors)

    def _step(self, handles: Any, results: Any, timeout: Optional[float], cancel: Optional[CancelToken],
              stats: Optional[StepStats]) -> Optional[int]:
        filled = handle_of(stats)

        def run(token: Optional[int]) -> Optional[int]:
            return _low.tw_callable_run(self._handle, handles, _options(timeout, token, filled), results)

        if stats is None:
            return interruptible(run, cancel)
        take(stats)
        try:
            return interruptible(run, cancel)
        finally:
            give_back(stats)

    def start(self, feeds: Sequence[Any], timeout: Optional[float], as_tensors: bool, form: Any, stats: Optional[StepStats]) -> Future:
        handles, filled = (ctypes.c_void_p * len(feeds))(), handle_of(stats)
        future = Future(lambda tensors: rebuild(form, self._values(tensors, as_tensors)), self._n, stats)
        try:
            self._enter(feeds, handles, None)
            check(held_back(lambda token: future._start(self._handle, handles, _options(timeout, token, filled)), future._token))
        finally:
            for handle in handles:
                _low.tw_tensor_release(handle)
        return future

    def _values(self, tensors: list[Tensor], as_tensors: bool) -> Iterator[Any]:
        """Returns the values of all fetches; None for an operation."""
        values = iter(tensors if as_tensors else [t if t.device else tensor.to_value(t) for t in tensors])
        return iter([next(values) if fetched else None for fetched in self._fetched])

    def _enter(self, feeds: Sequence[Any], handles: Any, watched: Optional[list[tuple[int, Array, bool]]]) -> None:
        """Writes handles of the feeds, and adds entries to `watched`: the feed, its array, and whether they share memory.
        watched: None: no feed may share memory."""
        if len(feeds) != len(self.feeds):
            raise TypeError(f"the step takes {len(self.feeds)} feeds, not {len(feeds)}")
        for i, feed in enumerate(feeds):
            if isinstance(feed, Value):
                feed = feed.tensor
            if isinstance(feed, Tensor):
                _low.tw_tensor_retain(feed._handle)
                handles[i] = feed._handle
                continue
            array = self._array(i, feed)
            if watched is None or not tensor.worth_sharing(array) or self._kept[i]:
                handles[i] = tensor.copied(array)
                continue
            shared = self._kept[i] is False
            watched.append((i, array, shared))
            handles[i] = tensor.shared(array) if shared else tensor.copied(array)

    def _array(self, i: int, feed: Any) -> Array:
        if isinstance(feed, Formula) and not feed.graph.computes:
            raise TypeError(f"{feed!r} cannot be given to '{self.feeds[i].name}': it is a value of a graph, not an array")
        try:
            return tensor.as_array(feed, self._dtypes[i])[0]
        except (TypeError, ValueError) as e:  # the latter for lists that are no array
            raise TypeError(f"feed '{self.feeds[i].name}': {e}") from None

    def _part(self, i: int, array: Array, handles: Any, results: list[Tensor]) -> None:
        """Handles an array whose memory is kept now but was not in the first run. A result is copied; for any other object the array is
        kept alive."""
        self._kept[i] = True
        for k in range(len(results)):
            if results[k]._lies_in(array):
                results[k] = Tensor(results[k])
        if not tensor.alone(handles[i] or 0):
            tensor.park(array, handles[i])
            handles[i] = None


def _signature(feeds: list[Output], found: list[Any], targets: list[Operation]) -> tuple[int, Any]:
    """Returns the number of fetched values, and the tw_signature. found: values and operations."""
    fetches = [x for x in found if isinstance(x, Output)]
    targets = targets + [x for x in found if isinstance(x, Operation)]
    return len(fetches), _low.tw_signature(
        size=ctypes.sizeof(_low.tw_signature), feeds=(ctypes.c_uint64 * len(feeds))(*(f.number for f in feeds)),
        fetches=(ctypes.c_uint64 * len(fetches))(*(f.number for f in fetches)),
        targets=(ctypes.c_void_p * len(targets))(*(t._handle for t in targets)),
        n_feeds=len(feeds), n_fetches=len(fetches), n_targets=len(targets))


def _names(devices: Optional[Sequence[Optional[str]]], n: int, what: str) -> Any:
    """Converts device names, one for each of n values, for the library."""
    if devices is None:
        return None
    if isinstance(devices, str) or len(devices) != n:
        raise ValueError(f"{devices!r} are no names of devices for {n} {what}: one each, or None for host memory")
    return (ctypes.c_char_p * n)(*(None if d is None else c_text(d) for d in devices))


def _options(timeout: Optional[float], token: Optional[int], stats: Optional[int]) -> Any:
    if timeout is None and token is None and stats is None:
        return None
    if timeout is None and stats is None:
        return _cancelled_by(token)
    ns = 0
    if timeout is not None:
        if not isinstance(timeout, (int, float, np.integer, np.floating)) or timeout != timeout:
            raise TypeError(f"timeout is a number of seconds, not {timeout!r}")
        ns = int(max(1, min(timeout * 1e9, 2.0**62)))
    return _low.tw_run_options(size=ctypes.sizeof(_low.tw_run_options), timeout_ns=ns, cancel=token, stats=stats)


@lru_cache(16)
def _cancelled_by(token: Optional[int]) -> Any:
    """Returns run options, which several runs may share because they are only read."""
    return _low.tw_run_options(size=ctypes.sizeof(_low.tw_run_options), cancel=token)


# ---- Nested fetches ----

def _flatten(fetches: Any, leaves: list[Any]) -> Any:
    """Appends the leaves and returns the form, as nested.flatten does, but for every Mapping and sequence."""
    if isinstance(fetches, Mapping):
        return dict, list(fetches), [_flatten(f, leaves) for f in fetches.values()]
    if isinstance(fetches, (list, tuple)):
        return type(fetches), None, [_flatten(f, leaves) for f in fetches]
    leaves.append(fetches)
    return None
