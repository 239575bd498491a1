"""Variables: tensors that persist between steps. Operations read, assign and update them.

    w = thalweg.Variable(tw.ops.truncated_normal([64, 10], dtype="float32") * 0.1, name="w")

Their contents live in the runtime, by name, from the first assignment on. `initializer()` makes the operation that assigns all
initial values."""
import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from . import _low, build, scopes
from ._handle import c_text
from .dtypes import DType, DTypeLike, from_number
from .eager import here
from .errors import check, made
from .output import Formula, Operation, Output, shape_from, shape_text

if TYPE_CHECKING:
    from .graph import Graph


class Variable(Formula):
    """A variable of the current graph, or of the graph of its initial value; without a graph, one that has its value at once, and whose
    assignments answer None. In formulas it stands for its contents at that moment.

    initial: a value, a number or an array, which gives it dtype and shape.   name: below the current name scope, with a number behind it
    where it is taken: `w_1`; also its name in checkpoints; None: Variable, Variable_1, ...
    trainable: whether optimizers take it of themselves."""
    __slots__ = ("_own_handle", "name", "dtype", "shape", "_untrained", "__weakref__")

    def __init__(self, initial: Any, name: Optional[str] = None, dtype: Optional[DTypeLike] = None, trainable: bool = True):
        graph: Any = build.graph_of([initial])
        if graph is None or graph.computes:  # a value that is there already is as good as an array
            graph = here()
        if graph.computes:
            self._be_at_once(graph, initial, name, dtype)
            self._untrained = not trainable
            return
        if graph.outer is not None or graph.traces is not None:
            raise ValueError("a variable is made inside a function; make it outside, where initializers and savers find it")
        if isinstance(initial, Formula) and not initial.graph.computes:
            initial = initial._value() if dtype is None else initial.astype(dtype)
        else:
            initial = graph.constant(initial, dtype)
        prefix = scopes.current(graph).prefix
        with scopes.making_variables(graph), graph._mutex:
            free: str = graph._new_prefix(prefix + "Variable")[len(prefix):-1] if name is None else graph._free(prefix, name)
            with graph.building() as scope:
                number = _low.tw_variable_create(scope, c_text(free), initial.number)
        self._be(Output(graph, number), prefix + free, initial.dtype, initial.shape)
        if not trainable:
            graph._fixed.add(number)

    def _be(self, handle: Output, name: str, dtype: DType, shape: Optional[tuple[Optional[int], ...]]) -> None:
        self._own_handle, self.name, self.dtype, self.shape = handle, name, dtype, shape
        if not handle.graph.computes:
            handle.graph._variables[handle.number] = self

    @property
    def handle(self) -> Output:
        """Its handle; in a function that is traced, what stands there for that of a variable without a graph."""
        own: Output = self._own_handle
        scope = scopes.innermost()
        if scope is not None and not scope.graph.computes and own.graph.computes:
            root = scope.graph._root()
            if root.traces is not None:
                return root.handle_of(self)  # type: ignore[attr-defined,no-any-return]
        return own

    @property
    def graph(self) -> "Graph":  # type: ignore[override]
        """Its graph; without a graph, the context that computes with it."""
        return self.handle.graph

    def _be_at_once(self, eager: Any, initial: Any, name: Optional[str], dtype: Optional[DTypeLike]) -> None:
        """One without a graph, which has its initial value at once."""
        value = eager.constant(initial, dtype)
        free: str = eager.unique("Variable" if name is None else name)
        handle = eager.op("VarHandleOp", dtype=value.dtype, shape=value.shape, shared_name=free)
        eager.op("AssignVariableOp", handle, value, dtype=value.dtype)
        self._be(handle, free, value.dtype, value.shape)
        eager.end_with(handle)

    def _value(self) -> Output:
        return self.read()

    def _handle_value(self) -> Output:
        return self.handle

    def __reduce_ex__(self, protocol: Any) -> Any:
        """For pickle and copy.deepcopy: a new variable of the current context with these contents."""
        if not self.graph.computes:
            raise TypeError(f"{self!r} is in a graph, whose sessions have its contents; fetch it, or save it by thalweg.Saver")
        return _copied, (self.read().tensor, self.name, self.trainable)  # type: ignore[attr-defined]

    def __copy__(self) -> "Variable":
        return self

    def __deepcopy__(self, memo: Any) -> "Variable":
        make, state = self.__reduce_ex__(4)
        copy: Variable = make(*state)
        return copy

    def __dlpack__(self, **how: Any) -> Any:
        return self._value().__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._value().__dlpack_device__()

    @property
    def trainable(self) -> bool:
        """Whether optimizers take it of themselves."""
        return not self._untrained if self.graph.computes else self.handle.number not in self.graph._fixed

    def _train(self, trainable: bool) -> None:
        """Says whether optimizers take it of themselves."""
        if self.graph.computes:
            self._untrained = not trainable
        elif trainable:
            self.graph._fixed.discard(self.handle.number)
        else:
            self.graph._fixed.add(self.handle.number)

    def read(self) -> Output:
        """Its contents as they are when the read runs; reads and updates of one step are ordered by data and control edges only."""
        return self.graph.op("Identity", self.handle) if self._referred else self.graph.op("ReadVariableOp", self.handle, dtype=self.dtype)

    def assign(self, value: Any) -> Operation:
        """Returns an operation that sets it to a value of its dtype and shape."""
        return self._update("Assign", value)

    def assign_add(self, value: Any) -> Operation:
        """Returns an operation that adds a value of its dtype and shape, atomically with other updates."""
        return self._update("AssignAdd", value)

    def assign_sub(self, value: Any) -> Operation:
        """Returns an operation that subtracts a value, as assign_add."""
        return self._update("AssignSub", value)

    def initialized(self) -> Output:
        """Returns a value that is true if it has contents."""
        return self.graph.op("IsVariableInitialized" if self._referred else "VarIsInitializedOp", self.handle)

    @property
    def _referred(self) -> bool:
        """It is a reference, as in graphs from before there were handles."""
        return not self.graph.computes and self.handle.operation.type != "VarHandleOp"

    def _update(self, op: str, value: Any) -> Operation:
        if self._referred:
            return self.graph.op(op, self.handle, value).operation
        if self.graph.computes:
            value = self.graph.constant(value, self.dtype)
            if value.shape != self.shape:  # a handle alone does not tell the shape that was declared
                raise ValueError(f"{self!r} cannot take {value!r}: its shape is another")
        return self.graph.op(op + "VariableOp", self.handle, value, dtype=self.dtype)

    def __repr__(self) -> str:
        return f"<Variable '{self.name}' {self.dtype} {shape_text(self.shape)}>"


def _copied(tensor: Any, name: str, trainable: bool) -> Variable:
    """The copy of a variable without a graph."""
    from .eager import current_eager
    from .value import Value
    return Variable(Value(current_eager(), tensor), name=name, trainable=trainable)


def listed(graph: "Graph") -> list[Variable]:
    """Returns all variables of a graph, including imported ones."""
    listing = made(_low.tw_variables_create, graph._handle)
    try:
        return [_variable(graph, listing, i) for i in range(_low.tw_variables_count(listing))]
    finally:
        _low.tw_variables_destroy(listing)


def of_handle(handle: Output) -> Variable:
    """Returns the variable of a new VarHandleOp."""
    known = handle.operation.attributes
    variable = Variable.__new__(Variable)
    variable._be(handle, handle.operation.name, known["dtype"], known["shape"])
    return variable


def _variable(graph: "Graph", listing: int, i: int) -> Variable:
    """Returns the object of that variable, always the same one, so that it works as a key."""
    dtype, shape, number = ctypes.c_uint32(), _low.tw_shape(), _low.tw_variables_handle(listing, i)
    with graph._mutex:
        variable = graph._variables.get(number)
        if variable is None:
            check(_low.tw_variables_describe(listing, i, dtype, shape))
            variable = Variable.__new__(Variable)
            variable._be(Output(graph, number), _low.tw_variables_name(listing, i).decode(), from_number(dtype.value), shape_from(shape))
        return variable


def read_variables(variables: Sequence[Variable]) -> tuple[list[Output], Output]:
    """Returns the contents of several variables at one time, never a mix of two assignments, and a vector of their versions, which change
    with every update."""
    values = variables[0].graph.op("ReadVariables", [v.handle for v in variables], dtypes=[v.dtype for v in variables])
    return list(values[0]), values[1]


def assign_variables(variables: Sequence[Variable], values: Sequence[Any], versions: Any = None) -> Output:
    """Assigns all of the variables at one time. versions: those of read_variables: if one variable was updated since, none is assigned;
    None: assigns in any case. Returns a value that is true if they were assigned; if it is False, read again."""
    graph = build.graph_of([*values, versions]) or variables[0].graph
    if versions is None:
        versions = graph.constant([-1] * len(variables), "int64")
    given = [x if isinstance(x, Formula) else graph.constant(x, v.dtype) for v, x in zip(variables, values)]
    assigned: Output = graph.op("AssignVariables", [v.handle for v in variables], versions, given, N=len(given))
    return assigned
