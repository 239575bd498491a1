"""Functions of Python as operations of graphs, traced functions and datasets.

    def peaks(x):                                    # any library that computes with NumPy's arrays
        return scipy.signal.find_peaks(x)[0]

    y = thalweg.py_function(peaks, [x], "int64", shapes=[None])

A step calls the function on a thread beside those that compute, so none of these waits for Python's lock.

At the end of the program the package waits for the steps that run without waiting (run_async), which may call functions, and for the
functions that run. Then it unregisters all functions, so that no thread of the runtime enters Python afterwards. A call that has not
returned exit_wait seconds after the end began, or after its own begin, is given up, and so are all calls after Ctrl-C: steps that still run
are cancelled, one line on sys.stderr names the functions, and the program ends while they run. They stop at the latest when Python ends."""
import atexit
import collections
import ctypes
import itertools
import os
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from . import _low, build, errors, flow, future, traced
from ._handle import c_text
from .dtypes import DType, as_dtype, from_number
from .errors import check
from .output import Formula
from .tensor import Tensor
from .value import Value

if TYPE_CHECKING:
    from .eager import Eager
    from .runtime import Runtime

Result = Callable[..., Any]

exit_wait: float = 10.0  # seconds that the end of the program leaves to each call; float("inf"): until Ctrl-C


def py_function(function: Result, inputs: Any, types: Any, shapes: Any = None, *, gradient: Optional[Result] = None, stateful: bool = True,
                name: Optional[str] = None) -> Any:
    """Calls a function of Python on the elements of values, whenever a step needs its results.

    function: gets an array for each input (texts as arrays of bytes), which it must neither change nor keep without a copy. It gives what
    NumPy converts to an array of the type, or a list of such if types is a list.   inputs: a list of values.   types: the type of the
    result, or a list of types; an empty list: the function runs for its effects.   shapes: what is known of the shape of the result, None
    for an unknown size, or a list of such if types is a list; a step checks them.   gradient: a function that gets the inputs, the results
    and the gradient of each floating-point or complex result, and gives the gradient of the input of such a type, or a list of these if
    there are several; None in it is zero. Without it the result has no gradient, and to ask for one is an error, except inside of
    thalweg.custom_gradient.   stateful: False: the function gives the same for the same inputs and has no effects, so its calls may be
    merged, left out and made while a plan is made.

    Answers a value, a list of values if types is a list, or the operation if that is empty. Several calls of the function may run at once.
    An exception of the function is raised by the run that needed its result. The end of the program waits for a call for at most
    thalweg.host_functions.exit_wait seconds (10), then cancels the steps and says which function still runs. A graph with such an operation
    runs in this process only. It keeps the function; a graph that was read from its bytes does not. Without a graph and a tape, the
    function is called at once.
    Raises TypeError and ValueError for wrong arguments."""
    if not callable(function) or not (gradient is None or callable(gradient)):
        raise TypeError(f"py_function: {function if not callable(function) else gradient!r} is no function")
    many = isinstance(types, (list, tuple))
    wanted = [_type(t) for t in (types if many else [types])]
    known = _shapes(shapes, wanted, many)
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    op = "EagerPyFunc" if gradient is not None else "PyFunc" if stateful else "PyFuncStateless"
    eager = traced.eager_for(given)
    if eager is not None:
        return _computed(eager, _Call(function, gradient, many), op, given, wanted, known)
    graph = flow.graph_for([given])
    values = [flow.own(graph, x) for x in given]
    for x in values:
        _type(x.dtype)
    host = _host_of(graph.runtime, _Call(function, gradient, many))
    graph._root().__dict__.setdefault("_host_functions", []).append(host)
    operation = build.add_operation(graph, op, (values,), {"token": host.token, "Tout": wanted}, name)
    found = [x if s is None else graph.op("EnsureShape", x, shape=s) for x, s in zip(operation.outputs, known)]
    return found if many and found else operation if not found else found[0]


def _type(dtype: Any) -> DType:
    known = as_dtype(dtype)
    if known.name in ("resource", "variant"):
        raise TypeError(f"py_function: Python has no arrays of {known}; read the variable, or give its elements")
    return known


def _shapes(shapes: Any, wanted: Sequence[DType], many: bool) -> list[Any]:
    if shapes is None:
        return [None] * len(wanted)
    if not many:
        return [shapes]
    if not isinstance(shapes, (list, tuple)) or len(shapes) != len(wanted):
        raise ValueError(f"py_function: shapes is {shapes!r}; types has {len(wanted)} entries, so give a list of as many shapes, or None")
    return list(shapes)


# ---- The function ----

class _Call:
    """A function, its gradient, and whether it gives a list."""

    def __init__(self, function: Result, gradient: Optional[Result], many: bool):
        self.function, self.gradient, self.many = function, gradient, many

    @property
    def name(self) -> str:
        return (getattr(self.function, "__name__", "") or type(self.function).__name__).strip("<>_") or "function"

    def results(self, inputs: Sequence[Tensor], types: Sequence[DType]) -> list[Tensor]:
        """Calls the function and converts what it gives."""
        answer = self.function(*map(_read_only, inputs))
        if not types:
            return []
        found = answer if self.many else [answer]
        if not isinstance(found, (list, tuple)) or len(found) != len(types):
            told = f"{len(found)} results" if isinstance(found, (list, tuple)) else repr(found)
            raise TypeError(f"py_function: '{self.name}' gives {told}; it must give a list of {len(types)}, as its types say")
        return [self._tensor(i, x, t) for i, (x, t) in enumerate(zip(found, types))]

    def _tensor(self, i: int, x: Any, dtype: DType) -> Tensor:
        value = x._value() if isinstance(x, Formula) else x
        given = value.tensor if isinstance(value, Value) else value
        if isinstance(given, Tensor) and given.dtype == dtype:
            return given
        try:
            return Tensor(given, dtype)
        except TypeError as e:
            raise TypeError(f"py_function: '{self.name}': result {i}: {e}") from None


_WITH_GRADIENT = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


class _Slopes(_Call):
    """The gradient of a function, as a function. Its results belong to the first inputs of a type that has gradients."""

    def __init__(self, of: _Call):
        assert of.gradient is not None
        super().__init__(of.gradient, None, True)

    def results(self, inputs: Sequence[Tensor], types: Sequence[DType]) -> list[Tensor]:
        answer = self.function(*map(_read_only, inputs))
        found = list(answer) if isinstance(answer, (list, tuple)) else [answer]
        wanted = [x for x in inputs if x.dtype.name in _WITH_GRADIENT][:len(types)]
        if len(found) != len(types):
            raise TypeError(f"py_function: the gradient '{self.name}' gives {len(found)} values for {len(types)} inputs that have a gradient")
        return [self._tensor(i, np.zeros(of.shape, t.numpy) if x is None else x, t) for i, (x, of, t) in enumerate(zip(found, wanted, types))]


def _computed(eager: "Eager", call: _Call, op: str, given: Sequence[Any], wanted: Sequence[DType], known: Sequence[Any]) -> Any:
    """The results without a graph. Only a tape needs an operation, for its gradient."""
    values = [eager.constant(x._value() if isinstance(x, Formula) else x) for x in given]
    for x in values:
        _type(x.dtype)
    if traced.tapes():
        host = _host_of(eager.runtime, call)
        for tape in traced.tapes():
            tape.held.append(host)
        found = list(eager.run(op, (values,), {"token": host.token, "Tout": list(wanted)}) or [])
    else:
        found = [Value(eager, t) for t in call.results([x.tensor for x in values], wanted)]
    found = [x if s is None else eager.op("EnsureShape", x, shape=s) for x, s in zip(found, known)]
    return found if call.many and found else None if not found else found[0]


# ---- Registered functions ----

class _Host:
    """A function that is registered in a runtime until nobody refers to this object."""

    def __init__(self, runtime: "Runtime", call: _Call, token: str):
        self.call, self.token, self.key = call, token, next(_keys)
        _hosts[self.key] = self
        check(_low.tw_host_function_register(runtime._handle, c_text(token), _called, self.key))
        _tokens[token] = runtime
        weakref.finalize(self, _unregister, runtime, token).atexit = False  # _unregister_all does it then
        self.gradient = None if call.gradient is None else _Host(runtime, _Slopes(call), token + "/gradient")


_keys = itertools.count(1)
_hosts: "weakref.WeakValueDictionary[int, _Host]" = weakref.WeakValueDictionary()
_tokens: dict[str, "Runtime"] = {}  # of all registered functions
_known: "weakref.WeakValueDictionary[Any, _Host]" = weakref.WeakValueDictionary()
_recent: "collections.deque[_Host]" = collections.deque(maxlen=64)  # so that a tape in a loop finds the operation of the loop before
_mutex = threading.RLock()


def _host_of(runtime: "Runtime", call: _Call) -> _Host:
    """The registered function of these, which is registered once while it is in use."""
    key = (id(runtime), id(call.function), id(call.gradient), call.many)  # the objects live as long as the entry
    with _mutex:
        host = _known.get(key)
        if host is None:
            # Nobody else can know the token, so a graph from elsewhere cannot call the function.
            host = _known[key] = _Host(runtime, call, f"{call.name}-{os.getpid()}-{secrets.token_hex(16)}")
        _recent.append(host)
    return host


def _unregister(runtime: "Runtime", token: str) -> None:
    if _tokens.pop(token, None) is not None:
        check(_low.tw_host_function_unregister(runtime._handle, c_text(token)))


# ---- The end of the program ----

class _End:
    """Decides at the end of the program how long to wait for calls."""

    def __init__(self) -> None:
        self.begin, self.told = time.monotonic(), False

    def overdue(self) -> bool:
        """Answers whether some call takes too long. The first time, it says so."""
        now = time.monotonic()
        late = any(now - max(begin, self.begin) > exit_wait for _, begin in list(_running.values()))
        if late:
            self.give_up(f"{exit_wait:g} s")
        return late

    def give_up(self, after: str) -> None:
        """Says once on sys.stderr which functions run."""
        names = sorted({name for name, _ in list(_running.values())})
        if names and not self.told and sys.stderr is not None:
            print(f"thalweg: the program ends, and these functions of py_function still run: {', '.join(map(repr, names))} (given up after "
                  f"{after})", file=sys.stderr, flush=True)
        self.told = True

    def wait_for_calls(self) -> None:
        try:
            while _running and not self.overdue():
                time.sleep(0.002)
        except KeyboardInterrupt:
            self.give_up("Ctrl-C")


def _unregister_all() -> None:
    end = _End()
    interrupted = future._wait_for_all(end.overdue)
    for token, runtime in list(_tokens.items()):
        if _tokens.pop(token, None) is not None:
            check(_low.tw_host_function_unregister_within(runtime._handle, c_text(token), 0, None))
    if interrupted:
        end.give_up("Ctrl-C")
    else:
        end.wait_for_calls()


atexit.register(_unregister_all)
_running: dict[int, tuple[str, float]] = {}  # the calls that are in Python: name of the function, begin
os.register_at_fork(after_in_child=_running.clear)


@_low.tw_host_function
def _called(key: int, call: int) -> None:
    number = next(_keys)
    try:
        _answer(number, key, call)
    finally:
        _running.pop(number, None)


def _answer(number: int, key: int, call: int) -> None:
    try:
        host = _hosts.get(key)
        if host is None:
            raise RuntimeError("the function of a py_function is gone: keep the graph that it was made for")
        _running[number] = host.call.name, time.monotonic()
        tensors = _results(host.call, call)
        handles = (ctypes.c_void_p * len(tensors))(*(t._handle for t in tensors))
    except BaseException as e:  # pylint: disable=broad-exception-caught  # the run raises it
        _fail(call, e)
        return
    _low.tw_host_call_finish(call, handles, len(tensors))


def _results(function: _Call, call: int) -> list[Tensor]:
    inputs = []
    for i in range(_low.tw_host_call_input_count(call)):
        handle = _low.tw_host_call_input(call, i)
        _low.tw_tensor_retain(handle)
        inputs.append(Tensor._adopt(handle))
    types = [from_number(_low.tw_host_call_output_dtype(call, i)) for i in range(_low.tw_host_call_output_count(call))]
    return function.results(inputs, types)


def _read_only(tensor: Tensor) -> Any:
    array = tensor.numpy()
    array.flags.writeable = False
    return array


def _fail(call: int, e: BaseException) -> None:
    """Ends the call in any case: its step waits for that."""
    if isinstance(e, StopIteration):  # which would end a loop over a dataset as if the data had ended
        stopped, e = e, RuntimeError("the function of a py_function raised StopIteration")
        e.__cause__ = stopped
    try:
        text, code = " ".join(f"{type(e).__name__}: {e}".split()), _code(e)
    except BaseException:  # pylint: disable=broad-exception-caught  # raised by methods of the exception
        text, code = f"{type(e).__name__}, whose text or code cannot be read", _low.TW_UNKNOWN
    cookie = 0 if _low.tw_host_call_cancelled(call) else errors.keep(e)  # nobody raises the exception of a step that has ended
    _low.tw_host_call_fail(call, code, text.encode(errors="replace").replace(b"\0", b"?"), cookie)


def _code(e: BaseException) -> int:
    if isinstance(e, errors.Error):
        return int(e.code)
    kinds: Any = ((NotImplementedError, _low.TW_UNIMPLEMENTED), (MemoryError, _low.TW_RESOURCE_EXHAUSTED),
                  ((TypeError, ValueError), _low.TW_INVALID_ARGUMENT))
    found: int = next((code for kind, code in kinds if isinstance(e, kind)), _low.TW_UNKNOWN)
    return found
