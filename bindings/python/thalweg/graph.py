"""Graphs. A graph holds operations, which are added and never changed; sessions run them.

    with thalweg.Graph() as g:
        x = thalweg.placeholder("float32", [None, 64], name="x")

Threads: several may add to one graph and read it at once; each thread has its own current graph."""
import contextlib
import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from . import _low, build, scopes
from ._handle import Handle, c_text
from .dtypes import DTypeLike, as_dtype
from .eager import default_eager
from .errors import Line, check, here, line_of, made
from .output import Formula, Operation, Output
from .runtime import Runtime, default_runtime
from .tensor import Tensor, bytes_of
from .value import tensor_of

if TYPE_CHECKING:
    from .variable import Variable


class Graph(Handle):
    """An empty graph. runtime: says which ops there are; None: the default one. In a `with` it is the graph that functions add to."""
    computes = False  # at once, as Eager does
    outer: Optional["Graph"] = None  # of the body of a function: the graph around it
    makes_variables_outside = False  # of the body of a function: modules make their variables in the graph around
    rewrites = False  # a function is traced whose `if` and loops are rewritten: see control
    traces: Any = None  # of a function that is traced to compute at once: the context that runs it

    def __init__(self, runtime: Optional[Runtime] = None):
        self._handle = 0
        self.runtime = runtime or default_runtime()
        self._handle = self._new_handle()
        self._fixed: set[int] = set()  # handles of variables that are not trained
        self._prefixes: dict[str, int] = {}  # used prefixes, and the number to try next after each
        self._taken: dict[str, int] = {}  # names that were requested again, and the last number after each
        self._draws = 0  # how many operations took their seeds from thalweg.random
        self._tables: list[Any] = []  # ShardedTables, for savers
        self._training: Any = None  # the flag of nn.training
        self._layer_updates: list[Any] = []  # for nn.updates: a layer's result, and the operation that moves its averages
        self._kept: list[Operation] = []  # conditions and loops with effects, which run whatever needs their results
        self._bodies: dict[str, Any] = {}  # of a function that is traced to compute at once: its inner functions, as traced.Stored
        self._order: Any = None  # in traced functions: the order of operations on state
        self._standing: dict[int, Any] = {}  # handles that stand for variables without a graph
        self._functions: dict[Any, Any] = {}  # traced functions; see flow
        self._function_names: set[str] = set()
        self._outputs: weakref.WeakValueDictionary[int, Output] = weakref.WeakValueDictionary()  # by number: one object for each value
        self._variables: weakref.WeakValueDictionary[int, Variable] = weakref.WeakValueDictionary()  # by the numbers of their handles
        self._mutex = threading.RLock()  # reentrant, because a signal handler may lock it again

    def _new_handle(self) -> int:
        return made(_low.tw_graph_create, self.runtime._handle)

    def __del__(self, destroy: Any = _low.tw_graph_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def __enter__(self) -> "Graph":
        scopes.push(scopes.Scope(self))
        return self

    def __exit__(self, *_: Any) -> None:
        scopes.pop()

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} operations>"

    # ---- Adding ----

    def op(self, op: str, *inputs: Any, name: Optional[str] = None, **named: Any) -> Any:
        """Adds an operation of any op of the runtime: inputs in the order of its schema or by name, attributes by name.
        name: below the current name scope, with a number if an operation has that name: `x_1`; None: made from the op.
        Returns the same as functions of thalweg.ops.
        Raises AttributeError for an unknown op, TypeError for wrong arguments, Error if the runtime refuses the operation."""
        return build.add(self, op, inputs, named, name)

    def constant(self, value: Any, dtype: Optional[DTypeLike] = None, name: Optional[str] = None) -> Output:
        """A fixed value: the copy of an array, a number or a Value. dtype: None: that of the array; float32 and int32 for Python's own
        numbers."""
        if isinstance(value, Formula) and value.graph.computes:
            value = self._root()._take(value)
            if isinstance(value, Output):
                taken: Output = scopes.working(self)._own(value)
                return taken if dtype is None else taken.astype(dtype)
        if isinstance(value, Formula):
            raise TypeError(f"{value!r} is a value of a graph, not a number or an array")
        if dtype is not None and as_dtype(dtype).name == "bfloat16" and isinstance(value, (int, float)):
            return self._scalar(as_dtype(dtype).number, float(value), name)  # NumPy may have no bfloat16
        tensor = value if isinstance(value, Tensor) and dtype in (None, value.dtype) else Tensor(value, dtype)
        return self.op("Const", value=tensor, dtype=tensor.dtype, name=name)

    def _scalar(self, dtype: int, value: float, name: Optional[str]) -> Output:
        graph = scopes.working(self)
        with graph.building() as scope:
            number = _low.tw_scope_scalar(scope, dtype, value)
        constant_ = Output(graph, number)
        return constant_ if name is None else constant_.named(name)

    def placeholder(self, dtype: DTypeLike, shape: Optional[Iterable[Optional[int]]] = None, name: Optional[str] = None) -> Output:
        """Adds a value that each step must feed. shape: sizes, with None for any size; None: any rank; []: a scalar."""
        return self.op("Placeholder", dtype=dtype, shape=shape, name=name)

    def group(self, *operations: Any, name: Optional[str] = None) -> Operation:
        """Adds an operation that only waits for others (operations or values): run it to run them all."""
        with scopes.control_dependencies(operations, self):
            return self.op("NoOp", name=name)

    def initializer(self, name: Optional[str] = None) -> Operation:
        """Adds an operation that sets every variable that the graph has so far to its initial value."""
        with self.building() as scope:
            operation = _low.tw_variable_initializer(scope, None if name is None else c_text(self._free(scopes.current(self).prefix, name)))
        return Operation(self, operation)

    def close_loop(self, merge: Output, next_iteration: Output, input: int = 1) -> None:
        """Replaces input `input` of the Merge that makes `merge` by the value of a NextIteration. Call it before a run needs the Merge."""
        check(_low.tw_graph_close_loop(self._handle, merge.operation._handle, input, next_iteration.operation._handle))

    def _vectors(self, *lists: Iterable[Any]) -> list[Output]:
        """Makes vectors of integers, all int32, or all int64 if one of them needs it. Elements may be values."""
        every = [list(values) for values in lists]
        wide = any(not -2**31 <= v < 2**31 for values in every for v in values if not isinstance(v, Formula))
        kind = "int64" if wide else "int32"

        def vector(values: list[Any]) -> Output:
            if any(isinstance(v, Formula) for v in values):
                return self.op("Pack", [v._value().astype(kind) if isinstance(v, Formula) else np.dtype(kind).type(v) for v in values])
            return self.constant(np.asarray(values, kind))

        return [vector(values) for values in every]

    # ---- Looking ----

    def __len__(self) -> int:
        return _low.tw_graph_count(self._handle)

    def operations(self) -> list[Operation]:
        """All operations, in the order of adding."""
        return [Operation(self, _low.tw_graph_operation(self._handle, i)) for i in range(len(self))]

    def operation(self, name: str) -> Operation:
        """Returns the operation of that name. Raises NotFoundError, naming the closest name that exists."""
        return Operation(self, made(_low.tw_graph_find, self._handle, c_text(name)))

    def output(self, name: str) -> Output:
        """Returns the value of that name: "name" is output 0 of that operation, "name:1" its output 1."""
        found = ctypes.c_uint64()
        check(_low.tw_graph_find_output(self._handle, c_text(name), found))
        return Output(self, found.value)

    __getitem__ = output

    def __contains__(self, name: str) -> bool:
        return self.has(name)

    def has(self, operation: str) -> bool:
        """Returns true if there is an operation of that name."""
        return self._find(operation) is not None

    def variables(self) -> list["Variable"]:
        """All variables, including slots of optimizers, in the order of adding."""
        from .variable import listed
        return listed(self)

    def line_of(self, operation: str) -> Optional[Line]:
        """Returns the line on which the program made the operation of that name; None if it was imported or does not exist."""
        found = self._find(operation)
        return None if found is None else line_of(_low.tw_operation_place(found))

    def _find(self, operation: str) -> Optional[int]:
        name = c_text(operation)
        return made(_low.tw_graph_find, self._handle, name) if _low.tw_graph_has(self._handle, name) else None

    # ---- Files ----

    def to_bytes(self) -> bytes:
        """Returns the graph as a serialised GraphDef, wire-compatible with TensorFlow's; the same bytes for the same graph."""
        return bytes_of(made(_low.tw_graph_export, self._handle))

    @classmethod
    def from_bytes(cls, data: bytes, runtime: Optional[Runtime] = None) -> "Graph":
        """Makes a graph from a serialised GraphDef. Raises InvalidArgumentError, FailedPreconditionError. Operations of
        unknown ops, and those that need them, are left out. Looking one up raises NotFoundError with all ops that it lacks."""
        graph = cls(runtime)
        graph.import_bytes(data)
        return graph

    def import_bytes(self, data: bytes, prefix: Optional[str] = None, device: Optional[str] = None) -> None:
        """Adds every operation of a serialised GraphDef, or none. prefix: precedes every name, with a slash.
        device: for operations that name none."""
        options = _low.tw_import_options(size=ctypes.sizeof(_low.tw_import_options), prefix=prefix and c_text(prefix),
                                         device=device and c_text(device))
        data = bytes(memoryview(data))
        check(_low.tw_graph_import(self._handle, data, len(data), options))

    def verify(self) -> None:
        """Raises UnimplementedError if no device of the runtime has a kernel for an operation."""
        data = self.to_bytes()
        check(_low.tw_graph_verify(self.runtime._handle, data, len(data)))

    def functions(self) -> list[str]:
        """The names of its functions, sorted."""
        return [bytes_of(made(_low.tw_graph_function_name, self._handle, i)).decode()
                for i in range(_low.tw_graph_function_count(self._handle))]

    # ---- For the other modules ----

    def _take(self, value: Any) -> Any:
        """What stands for a value without a graph in the operations of this one."""
        return tensor_of(value)

    def _own(self, value: Output) -> Output:
        """Converts a value to one of this graph. Raises ValueError if it belongs to another."""
        if value.graph is not self:
            raise ValueError(f"{value!r} is a value of another graph")
        return value

    def _root(self) -> "Graph":
        """The outermost graph."""
        graph = self
        while graph.outer is not None:
            graph = graph.outer
        return graph

    def _function_name(self, wanted: str) -> str:
        """Returns `wanted`, with a number if a function has that name or reserved it."""
        with self._mutex:
            taken = self._function_names.union(self.functions())
            name = next(n for n in (wanted if i == 0 else f"{wanted}_{i}" for i in itertools.count()) if n not in taken)
            self._function_names.add(name)
        return name

    def _new_prefix(self, wanted: str) -> str:
        """Returns `wanted` and a slash, with a number if that prefix is in use."""
        with self._mutex:
            name, n = wanted, self._prefixes.get(wanted, 0)
            while name in self._prefixes:
                n += 1
                name = f"{wanted}_{n}"
            self._prefixes[wanted] = n
            self._prefixes.setdefault(name, 0)
        return name + "/"

    def _free(self, prefix: str, name: str) -> str:
        """Returns the name, with a number if an operation below that prefix has it."""
        c_text(name)
        with self._mutex:
            full, found, n = prefix + name, name, self._taken.get(prefix + name, 0)
            while self.has(prefix + found):
                n += 1
                found = f"{name}_{n}"
            if n:
                self._taken[full] = n
        return found

    def _operation_of(self, x: Union[Operation, Formula]) -> Operation:
        operation = x._value().operation if isinstance(x, Formula) else x
        if not isinstance(operation, Operation):
            raise TypeError(f"{x!r} is neither an operation nor a value")
        if operation.graph is not self:
            raise ValueError(f"{x!r} is of another graph")
        return operation

    @contextlib.contextmanager
    def building(self) -> Iterator[int]:
        """Gives a scope of the C API below the current name scope. Operations added through it have the program's line.
        Raises the first failure at the end."""
        prefix = scopes.current(self).prefix.rstrip("/")
        handle = _low.tw_scope_create(self._handle, c_text(prefix) or None)
        _low.tw_scope_set_place(handle, here())
        if device := scopes.current(self).device:
            _low.tw_scope_set_device(handle, c_text(device))
        if container := scopes.current(self).container:
            _low.tw_scope_set_container(handle, c_text(container))
        before = len(self) if self._order is not None else 0
        try:
            yield handle
        except BaseException:
            _low.tw_status_release(_low.tw_scope_finish(handle))
            raise
        check(_low.tw_scope_finish(handle))
        if self._order is not None:
            self._order.look([Operation(self, _low.tw_graph_operation(self._handle, i)) for i in range(before, len(self))], self.runtime)

    @contextlib.contextmanager
    def naming(self, scope: scopes.Scope, name: Optional[str]) -> Iterator[Callable[[bytes], int]]:
        """Gives a function that starts the description of an operation. Its name is `name`, with a number if that is taken, or one made
        below the scope."""
        if name is not None:
            with self._mutex:  # reserves the name until the operation exists
                full = c_text(scope.prefix + self._free(scope.prefix, name))
                yield lambda op: _low.tw_op_create(self._handle, op, full)
            return
        if not scope.prefix:
            yield lambda op: _low.tw_op_create(self._handle, op, None)
            return
        handle = _low.tw_scope_create(self._handle, c_text(scope.prefix.rstrip("/")))
        try:
            yield lambda op: _low.tw_scope_begin(handle, op, None)
        finally:
            check(_low.tw_scope_finish(handle))


# ---- The current graph ----

def current_graph() -> Graph:
    """Returns the graph of the innermost `with`. Raises RuntimeError outside of all."""
    return scopes.current().graph


def constant(value: Any, dtype: Optional[DTypeLike] = None, name: Optional[str] = None) -> Output:
    """Graph.constant of the current graph; without one, a Value that is there at once."""
    scope = scopes.innermost()
    where: Any = default_eager() if scope is None else scope.graph
    made_: Output = where.constant(value, dtype, name)
    return made_


def placeholder(dtype: DTypeLike, shape: Optional[Iterable[Optional[int]]] = None, name: Optional[str] = None) -> Output:
    """Graph.placeholder of the current graph."""
    return current_graph().placeholder(dtype, shape, name)


def group(*operations: Any, name: Optional[str] = None) -> Operation:
    """Graph.group of the operations' graph."""
    first = operations[0] if operations else None
    return (getattr(first, "graph", None) or current_graph()).group(*operations, name=name)


def initializer(name: Optional[str] = None) -> Operation:
    """Graph.initializer of the current graph."""
    return current_graph().initializer(name)
