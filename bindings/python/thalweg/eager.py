"""Ops that compute at once, outside of all `with thalweg.Graph()`. They return Values, which have elements.

    w = thalweg.Variable([1.0, 2.0])
    y = thalweg.ops.relu(w * [3.0, -1.0])       # Value([3, 0], dtype=float32, shape=[2], device=host)

An op with a value of a graph among its inputs is added to that graph, in which Values become constants. An op on Values alone computes at
once, also inside of a `with thalweg.Graph()`. The module `tape` differentiates computed values.

Threads: any."""
import contextlib
import ctypes
import threading
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

from . import _low, attributes, build, defaults, scopes
from ._handle import Handle, c_text
from .dtypes import DTypeLike, as_dtype
from .errors import check, made
from .errors import here as line_here
from .output import Formula, Output
from .runtime import Option, Runtime, default_runtime, list_options, option_texts
from .tensor import Tensor
from .value import Value


class EagerReport(NamedTuple):
    """Counts of a context. entries: prepared ops that it keeps.   hits: calls whose op was prepared already.   misses: calls whose op
    had to be prepared.   evictions: prepared ops that were dropped for others."""
    entries: int
    hits: int
    misses: int
    evictions: int


class Eager(Handle):
    """A context in which ops compute at once. It has prepared ops, a container of variables, and a device. A program needs a context of its
    own only for options, which Eager.options() lists. In the `with` of a context, functions use that context.   runtime: None: the default
    one."""
    computes = True

    def __init__(self, runtime: Optional[Runtime] = None, **options: Any):
        self._handle = 0
        self.runtime = runtime or default_runtime()
        self._handle = made(_low.tw_eager_create, self.runtime._handle, *option_texts(options))
        self._names: dict[str, int] = {}
        self._shares = bool(options.get("container"))
        self._check = str(options.get("check_values", "off"))  # see debug
        self._draws = 0  # how many calls took their seeds from thalweg.random
        self._mutex = threading.RLock()  # which a handler of a signal may take once more
        self.outer = None

    def __del__(self, destroy: Any = _low.tw_eager_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def __enter__(self) -> "Eager":
        scopes.push(scopes.Scope(self))  # type: ignore[arg-type]
        return self

    def __exit__(self, *_: Any) -> None:
        scopes.pop()

    def __repr__(self) -> str:
        return f"<Eager context of {self.report().entries} prepared ops>"

    @staticmethod
    def options() -> dict[str, Option]:
        """Every option by name."""
        return list_options(_low.tw_eager_option)

    def report(self) -> EagerReport:
        """Its counts so far."""
        info = _low.tw_eager_info(size=ctypes.sizeof(_low.tw_eager_info))
        check(_low.tw_eager_report(self._handle, info))
        return EagerReport(info.entries, info.hits, info.misses, info.evictions)

    @contextlib.contextmanager
    def part(self) -> Iterator[None]:
        """Tapes of this thread drop the values that are computed inside the `with` and not used after it; gradients recompute them."""
        number = ctypes.c_uint64()
        check(_low.tw_tape_part_begin(self._handle, number))
        try:
            yield
        finally:
            check(_low.tw_tape_part_end(self._handle, number.value))

    def constant(self, value: Any, dtype: Optional[DTypeLike] = None, name: Optional[str] = None) -> Value:
        """A value with these elements, copied. dtype: None: that of the array; float32 and int32 for Python's own numbers."""
        if isinstance(value, Formula):
            return self.own(value._value() if dtype is None else value.astype(dtype))
        if dtype is not None and as_dtype(dtype).name == "bfloat16" and isinstance(value, (int, float)):
            cast: Value = self.op("Cast", self.constant(float(value)), DstT=dtype)  # NumPy may have no bfloat16
            return cast
        return Value(self, value if isinstance(value, Tensor) and dtype in (None, value.dtype) else Tensor(value, dtype))

    def op(self, op: str, *inputs: Any, name: Optional[str] = None, **named: Any) -> Any:
        """Runs any op of the runtime now: inputs in the order of its schema or by name, attributes by name. name: not used.
        Answers the value of an op with one output, None for an op with none, else a named tuple.
        Raises AttributeError for an unknown op, TypeError for wrong arguments, Error for what the runtime refuses, on the caller's line."""
        return self.run(op, inputs, named, name)

    def run(self, op: str, inputs: tuple[Any, ...], named: dict[str, Any], name: Optional[str] = None) -> Any:
        """As op, with inputs and the rest as a tuple and a dictionary."""
        graph = build.graph_of([*inputs, *named.values()])
        if graph is not None and not graph.computes:
            return build.add(graph, op, inputs, named, name)
        schema = build.schema_of(self, op)  # type: ignore[arg-type]
        inputs, named = defaults.filled(self, schema, inputs, named)  # type: ignore[arg-type]
        values, given = build.arrange(schema, inputs, named)
        given = build.with_seeds(self, schema, given)  # type: ignore[arg-type]
        arguments = [self.own(x) for x in build.convert(self, schema, values, given)]  # type: ignore[arg-type]
        counts = _output_counts(schema, values, given)
        return build.grouped(schema, [Value(self, t) for t in self._call(schema, arguments, given, sum(counts))], counts)

    def own(self, value: Output) -> Value:
        """The value as one of this context. Raises ValueError for one of a graph."""
        if isinstance(value, Value):
            return value
        raise ValueError(f"{value!r} is a value of a graph; fetch it in a session first")

    def _call(self, schema: dict[str, Any], inputs: list[Value], given: dict[str, Any], n_outputs: int) -> list[Tensor]:
        op, set_ = schema["name"], []
        for attr in schema["attrs"]:
            value = given.get(attr["name"])
            if value is not None or (attr["name"] in given and attr["kind"] == "shape"):
                set_.append(attributes.encoded(op, attr, value))
        attrs = (_low.tw_eager_attr * len(set_))(*(a for a, _ in set_))
        tensors = (ctypes.c_void_p * len(inputs))(*(v.tensor._handle for v in inputs))
        outputs = (ctypes.c_void_p * n_outputs)()
        device = scopes.device_here()
        call = _low.tw_eager_call(size=ctypes.sizeof(_low.tw_eager_call), op=op.encode(), n_inputs=len(inputs), n_attrs=len(set_),
                                  n_outputs=n_outputs, device=c_text(device) or None, place=line_here())
        call.inputs, call.attrs = tensors, attrs
        check(_low.tw_eager_run(self._handle, call, outputs))
        return [Tensor._adopt(handle or 0) for handle in outputs]

    def _vectors(self, *lists: Any) -> list[Output]:
        from .graph import Graph
        return Graph._vectors(self, *lists)  # type: ignore[arg-type]

    def building(self) -> Any:
        """Raises TypeError: a context computes and builds nothing."""
        raise scopes.only_in_graphs("layers, cells, losses, optimizers and schedules add operations")

    def _root(self) -> "Eager":
        return self

    def unique(self, name: str) -> str:
        """`name`, with a number where it was given out before: variables of one name in one container are one."""
        c_text(name)
        with self._mutex:
            n = self._names[name] = self._names.get(name, -1) + 1
        return name if n == 0 else f"{name}_{n}"

    def end_with(self, handle: Value) -> None:
        """Destroys the variable of a handle with the handle, unless other contexts and sessions may find the variable by its name."""
        if self._shares:
            return
        _low.tw_tensor_retain(handle.tensor._handle)
        again = Value(self, Tensor._adopt(handle.tensor._handle or 0))
        weakref.finalize(handle.tensor, self.op, "DestroyResourceOp", again).atexit = False


def _output_counts(schema: dict[str, Any], values: list[Any], given: dict[str, Any]) -> list[int]:
    """The number of values of each output: that of its attribute, or that of the inputs which share the attribute."""
    lengths = {}
    for argument, value in zip(schema["inputs"], values):
        attr = argument.get("number_attr") or argument.get("list_attr")
        if attr is not None:
            lengths[attr] = len(value)
    counts = []
    for output in schema["outputs"]:
        attr = output.get("number_attr") or output.get("list_attr")
        found = 1 if attr is None else given.get(attr, lengths.get(attr))
        if found is None:
            found = next(a["default"] for a in schema["attrs"] if a["name"] == attr)
        counts.append(len(found) if hasattr(found, "__len__") else int(found))
    return counts


_default_mutex = threading.Lock()


def default_eager() -> Eager:
    """The process's own context, made when it is first needed."""
    with _default_mutex:
        if scopes.default_context is None:
            scopes.default_context = Eager()
        made_: Eager = scopes.default_context
        return made_


def here() -> Any:
    """The graph or context for an op without values among its inputs: that of the innermost `with`, else the process's own context."""
    scope = scopes.innermost()
    return default_eager() if scope is None else scope.graph


def current_eager() -> Eager:
    """The context of the innermost `with`, if that is one of a context; else the process's own."""
    found: Optional[Eager] = scopes.context()
    return default_eager() if found is None else found
