"""Values and operations of a graph. A value is written into formulas like a number:

    y = thalweg.ops.softmax(x @ w + b)

Threads: values and operations do not change, so any number of threads may use them."""
import ctypes
from typing import TYPE_CHECKING, Any, Optional, TypeVar

import numpy as np

from . import _low
from .dtypes import Array, DType, DTypeLike, as_dtype, from_number
from .errors import InvalidArgumentError, Line, check, line_of

if TYPE_CHECKING:
    from .graph import Graph

Self = TypeVar("Self")


class Formula:
    """Operators and methods of values and variables. Each adds operations to the graph.
    The other operand may be a value, a variable, a number or an array; numbers take the type of the value, broadcasting is that of NumPy.

    `==` and `!=` compare elements, as in NumPy; `is` compares identities. One value is one object as long as something refers to it, so
    values are keys of dicts and elements of sets. A formula of a graph has no truth value, so `x in [a, b]` is an error where `==` would
    decide it. One without a graph has its elements, and a truth value as in NumPy if it has one element."""
    __slots__ = ()
    __array_ufunc__ = None  # makes array + value call __radd__
    __iter__ = None         # prevents iteration through __getitem__

    graph: "Graph"

    def _value(self) -> "Output":
        """Returns itself, or the contents of a variable."""
        raise NotImplementedError

    def _handle_value(self) -> "Output":
        """Returns the value for an op that takes a resource: the handle of a variable."""
        return self._value()

    def __bool__(self) -> bool:
        if self.graph.computes:
            return bool(self._value())
        raise TypeError(f"{self!r} is neither true nor false before a session runs it; in place of `if` and `while` use thalweg.cond, "
                        "ops.select_v2 and thalweg.while_loop; of `and`, `or`, `not` and chained comparisons `&`, `|` and `~`; to look "
                        "for a value in a list, `any(x is y for y in values)`, or a set or dict")

    def __copy__(self: Self) -> Self:
        return self

    def __array__(self, *how: Any, **named: Any) -> Any:
        if self.graph.computes:
            return self._value().__array__(*how, **named)
        raise TypeError("a value of a graph has no elements before a session runs it: fetch it, or use the functions of thalweg.ops")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if self.graph.computes:
            return self._value().__array_function__(function, types, args, kwargs)
        raise TypeError(f"numpy.{function.__name__} was given a value of a graph, which has no elements before a session runs it: fetch it, "
                        "or use the functions of thalweg.ops")

    def _binary(self, op: str, other: Any, swapped: bool = False) -> "Output":
        try:
            return self.graph.op(op, other, self) if swapped else self.graph.op(op, self, other)
        except InvalidArgumentError:
            counted = _counted(op, self, other)
            if counted is None:
                raise
        mine, theirs = counted
        return mine.graph.op(op, theirs, mine) if swapped else mine.graph.op(op, mine, theirs)

    def _add(self, other: Any, swapped: bool = False) -> "Output":
        return self._binary("Add" if self._value().dtype.name == "string" else "AddV2", other, swapped)

    def _divide(self, other: Any, swapped: bool = False) -> "Output":
        """Divides. The quotient of integers is float64, as in NumPy."""
        mine = self._value()
        if not mine.dtype.is_integer:
            return mine._binary("RealDiv", other, swapped)
        if isinstance(other, Formula) and other._value().dtype.is_integer:
            other = other._value().astype("float64")
        return mine.astype("float64")._binary("RealDiv", other, swapped)

    def _matmul(self, other: Any, swapped: bool = False) -> "Output":
        """Multiplies as NumPy: a vector is a row on the left and a column on the right; axes before the last two broadcast."""
        mine = self._value()
        theirs = other._value() if isinstance(other, Formula) else self.graph.constant(other, mine.dtype)
        a, b = (theirs, mine) if swapped else (mine, theirs)
        row, column = (x.shape is not None and len(x.shape) == 1 for x in (a, b))
        a, b = a[None] if row else a, b[:, None] if column else b
        matrices = all(x.shape is not None and len(x.shape) == 2 for x in (a, b))
        product = self.graph.op("MatMul" if matrices else "BatchMatMulV2", a, b)
        return product[..., 0, 0] if row and column else product[..., 0, :] if row else product[..., 0] if column else product

    def __add__(self, other: Any) -> "Output": return self._add(other)
    def __radd__(self, other: Any) -> "Output": return self._add(other, True)
    def __sub__(self, other: Any) -> "Output": return self._binary("Sub", other)
    def __rsub__(self, other: Any) -> "Output": return self._binary("Sub", other, True)
    def __mul__(self, other: Any) -> "Output": return self._binary("Mul", other)
    def __rmul__(self, other: Any) -> "Output": return self._binary("Mul", other, True)
    def __truediv__(self, other: Any) -> "Output": return self._divide(other)
    def __rtruediv__(self, other: Any) -> "Output": return self._divide(other, True)
    def __floordiv__(self, other: Any) -> "Output": return self._binary("FloorDiv", other)
    def __rfloordiv__(self, other: Any) -> "Output": return self._binary("FloorDiv", other, True)
    def __mod__(self, other: Any) -> "Output": return self._binary("FloorMod", other)
    def __rmod__(self, other: Any) -> "Output": return self._binary("FloorMod", other, True)
    def __pow__(self, other: Any) -> "Output": return self._binary("Pow", other)
    def __rpow__(self, other: Any) -> "Output": return self._binary("Pow", other, True)
    def __matmul__(self, other: Any) -> "Output": return self._matmul(other)
    def __rmatmul__(self, other: Any) -> "Output": return self._matmul(other, True)
    def __eq__(self, other: Any) -> "Output": return self._equal("Equal", other)  # type: ignore[override]
    def __ne__(self, other: Any) -> "Output": return self._equal("NotEqual", other)  # type: ignore[override]
    def __lt__(self, other: Any) -> "Output": return self._binary("Less", other)
    def __le__(self, other: Any) -> "Output": return self._binary("LessEqual", other)
    def __gt__(self, other: Any) -> "Output": return self._binary("Greater", other)
    def __ge__(self, other: Any) -> "Output": return self._binary("GreaterEqual", other)
    def __and__(self, other: Any) -> "Output": return self._binary("LogicalAnd", other)
    def __rand__(self, other: Any) -> "Output": return self._binary("LogicalAnd", other, True)
    def __or__(self, other: Any) -> "Output": return self._binary("LogicalOr", other)
    def __ror__(self, other: Any) -> "Output": return self._binary("LogicalOr", other, True)
    def __xor__(self, other: Any) -> "Output": return self._binary("NotEqual", other)
    def __rxor__(self, other: Any) -> "Output": return self._binary("NotEqual", other, True)
    def __invert__(self) -> "Output": return self.graph.op("LogicalNot", self)
    def __neg__(self) -> "Output": return self.graph.op("Neg", self)
    def __pos__(self) -> "Output": return self._value()
    def __abs__(self) -> "Output": return self.graph.op("Abs", self)

    __hash__ = object.__hash__  # unique to each value, so that a dict finds a key by identity without `==`

    def equal(self, other: Any) -> "Output":
        """`==`: element by element, of type bool."""
        return self._equal("Equal", other)

    def not_equal(self, other: Any) -> "Output":
        """`!=`: element by element, of type bool."""
        return self._equal("NotEqual", other)

    def _equal(self, op: str, other: Any) -> "Output":
        if other is None:
            raise TypeError(f"{self!r} is compared with None, which no element is; write `is None` or `is not None`")
        return self._binary(op, other)

    def __getitem__(self, key: Any) -> "Output":
        """Indexes as NumPy's basic indexing: integers (values too), slices, `...` and None. Raises TypeError for other indices."""
        keys = key if isinstance(key, tuple) else (key,)
        bounds_of: tuple[list[Any], list[Any], list[Any]] = [], [], []  # begin, end, step
        masks: dict[str, Any] = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
        for i, k in enumerate(keys):
            bounds: tuple[Any, Any, Any] = (0, 0, 1)
            if k is Ellipsis:
                masks["ellipsis_mask"] |= 1 << i
            elif k is None:
                masks["new_axis_mask"] |= 1 << i
            elif isinstance(k, slice):
                masks["begin_mask"] |= (k.start is None) << i
                masks["end_mask"] |= (k.stop is None) << i
                bounds = (0 if k.start is None else k.start, 0 if k.stop is None else k.stop, 1 if k.step is None else k.step)
            elif isinstance(k, Formula) and not k.dtype.is_integer:  # type: ignore[attr-defined]
                raise TypeError(f"{k!r} is no index; values of whole numbers are; to pick by truth values, use ops.gather_nd with ops.where")
            elif _is_index(k):
                masks["shrink_axis_mask"] |= 1 << i
                bounds = (k, 0, 1)  # the op ignores end and step
            else:
                raise TypeError(f"{k!r} is no index; whole numbers, slices, `...` and None are; to pick by a list, use ops.gather_v2")
            for into, bound in zip(bounds_of, bounds):
                if not _is_index(bound):
                    raise TypeError(f"{bound!r} is no bound of a slice; whole numbers and values of a graph are")
                into.append(bound)
        return self.graph.op("StridedSlice", self, *self.graph._vectors(*bounds_of), **masks)

    # ---- Methods ----

    def _reduce(self, op: str, axis: Any, keepdims: bool) -> "Output":
        value = self._value()
        if axis is None and value.shape is not None:
            axis = list(range(len(value.shape)))
        elif axis is None:
            axis = self.graph.op("Range", 0, self.graph.op("Rank", value), 1)
        elif not isinstance(axis, Formula):
            axes = np.atleast_1d(np.asarray(axis))
            if axes.dtype.kind not in "iu" and axes.size:
                raise TypeError(f"{op}: axis is a whole number, several, or None for all, not {axis!r}")
            axis = axes.astype(np.int32)
        return self.graph.op(op, value, axis, keep_dims=keepdims)

    def sum(self, axis: Any = None, keepdims: bool = False) -> "Output":
        """The sum of the elements; for bool, the number of true ones, in int64. axis: one axis, several, or None for all.
        keepdims: the reduced axes stay, with size 1."""
        value = self._value()
        return (value.astype("int64") if value.dtype.name == "bool" else value)._reduce("Sum", axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> "Output":
        """The mean; in float64 for integers and bool, as in NumPy. axis and keepdims as in sum."""
        value = self._value()
        whole = value.dtype.is_integer or value.dtype.name == "bool"
        return (value.astype("float64") if whole else value)._reduce("Mean", axis, keepdims)

    def prod(self, axis: Any = None, keepdims: bool = False) -> "Output":
        """The product; axis and keepdims as in sum."""
        return self._reduce("Prod", axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> "Output":
        """The largest element; axis and keepdims as in sum."""
        return self._reduce("Max", axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> "Output":
        """The smallest element; axis and keepdims as in sum."""
        return self._reduce("Min", axis, keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> "Output":
        """Whether all elements, of type bool, are true; axis and keepdims as in sum."""
        return self._reduce("All", axis, keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> "Output":
        """Whether an element, of type bool, is true; axis and keepdims as in sum."""
        return self._reduce("Any", axis, keepdims)

    @property
    def ndim(self) -> Optional[int]:
        """The number of axes; None if it is not known."""
        shape = self._value().shape
        return None if shape is None else len(shape)

    def argmax(self, axis: Optional[int] = None, dtype: DTypeLike = "int64") -> "Output":
        """Position of the largest element along an axis, the first of equals. axis: None: the index among all elements in row order."""
        return self._position("ArgMax", axis, dtype)

    def argmin(self, axis: Optional[int] = None, dtype: DTypeLike = "int64") -> "Output":
        """Position of the smallest element along an axis, the first of equals. axis: as in argmax."""
        return self._position("ArgMin", axis, dtype)

    def _position(self, op: str, axis: Optional[int], dtype: DTypeLike) -> "Output":
        if axis is None:
            return self.graph.op(op, self.reshape(-1), 0, output_type=dtype)
        return self.graph.op(op, self, axis, output_type=dtype)

    def reshape(self, *dims: Any) -> "Output":
        """The same elements with other dims. One dim may be -1; it is computed from the others."""
        dims = dims[0] if len(dims) == 1 and (isinstance(dims[0], Formula) or not _is_index(dims[0])) else dims
        return self.graph.op("Reshape", self, dims if isinstance(dims, Formula) else self.graph._vectors(dims)[0])

    def transpose(self, *axes: int) -> "Output":
        """Permutes the axes: axis k of the result is axis axes[k]. Without axes, their order is reversed."""
        given: Any = axes[0] if len(axes) == 1 and not _is_index(axes[0]) else axes
        order = list(given)
        if not order:
            shape = self._value().shape
            if shape is None:
                raise ValueError("the rank is unknown here; name the axes of transpose")
            order = list(reversed(range(len(shape))))
        return self.graph.op("Transpose", self, order)

    @property
    def T(self) -> "Output":  # pylint: disable=invalid-name
        """All axes in reverse order."""
        return self.transpose()

    def astype(self, dtype: DTypeLike) -> "Output":
        """Converts to another type; returns itself if it has that type."""
        value, dtype = self._value(), as_dtype(dtype)
        return value if value.dtype == dtype else self.graph.op("Cast", value, DstT=dtype)


_OF_NUMBERS = frozenset(("AddV2", "Sub", "Mul", "RealDiv", "FloorDiv", "FloorMod", "Pow"))


def _counted(op: str, a: Formula, b: Any) -> "Optional[tuple[Output, Output]]":
    """The operands of an op of numbers, one of which is of type bool and counts as 0 and 1, as in NumPy; None for others."""
    if op not in _OF_NUMBERS or not isinstance(b, Formula):
        return None
    mine, theirs = a._value(), b._value()
    if "string" in (mine.dtype.name, theirs.dtype.name) or (mine.dtype.name == "bool") == (theirs.dtype.name == "bool"):
        return None
    return (mine.astype(theirs.dtype), theirs) if mine.dtype.name == "bool" else (mine, theirs.astype(mine.dtype))


def _is_index(k: Any) -> bool:
    return isinstance(k, (int, np.integer, Formula)) and not isinstance(k, bool)


class Output(Formula):
    """One value: an output of an operation. graph: its graph; number: its tw_output. The same two give the same object."""
    __slots__ = ("graph", "number", "_dtype", "_shape", "__weakref__")
    number: int
    _dtype: Optional[DType]
    _shape: Any

    def __new__(cls, graph: "Graph", number: int) -> "Output":
        with graph._mutex:
            value = graph._outputs.get(number)
            if value is None:
                value = graph._outputs[number] = super().__new__(cls)
                value.graph, value.number, value._dtype = graph, number, None
                value._shape = ...  # computed on first use
        return value

    def __getnewargs__(self) -> tuple["Graph", int]:
        return self.graph, self.number

    def _value(self) -> "Output":
        return self

    @property
    def dtype(self) -> DType:
        """Its element type; for a reference to a variable, the type of the variable's value."""
        if self._dtype is None:
            dtype = ctypes.c_uint32()
            check(_low.tw_graph_describe(self.graph._handle, self.number, dtype, None))
            self._dtype = from_number(dtype.value % _low.TW_REF)
        return self._dtype

    @property
    def shape(self) -> Optional[tuple[Optional[int], ...]]:
        """Its shape as known before a run: None for an unknown rank; a size is None if unknown."""
        if self._shape is ...:
            shape = _low.tw_shape()
            check(_low.tw_graph_describe(self.graph._handle, self.number, None, shape))
            self._shape = shape_from(shape)
        shape_: Optional[tuple[Optional[int], ...]] = self._shape
        return shape_

    def _producer(self) -> tuple["Operation", int]:
        operation, index = ctypes.c_void_p(), ctypes.c_uint32()
        check(_low.tw_graph_producer(self.graph._handle, self.number, operation, index))
        return Operation(self.graph, operation.value or 0), index.value

    @property
    def operation(self) -> "Operation":
        """The operation that makes it."""
        return self._producer()[0]

    @property
    def index(self) -> int:
        """Its index among the outputs of its operation."""
        return self._producer()[1]

    @property
    def name(self) -> str:
        """Its name for feeds and fetches: "dense/MatMul:0"."""
        operation, index = self._producer()
        return f"{operation.name}:{index}"

    def named(self, name: str) -> "Output":
        """Returns the value under another name, by which it can be fed or fetched."""
        return self.graph.op("Identity", self, name=name)

    def __dlpack__(self, **_: Any) -> Any:
        raise BufferError(f"{self!r} has no elements before a session runs it: fetch it")

    def __dlpack_device__(self) -> tuple[int, int]:
        raise BufferError(f"{self!r} has no elements before a session runs it: fetch it")

    def numpy(self) -> Array:
        """Its elements as an array, of a Value, which has them. Raises TypeError for a value of a graph."""
        raise TypeError(f"{self!r} has no elements before a session runs it: fetch it")

    def item(self) -> Any:
        """Its only element, of a Value. Raises TypeError for a value of a graph."""
        raise TypeError(f"{self!r} has no elements before a session runs it: fetch it")

    def __repr__(self) -> str:
        return f"<Output '{self.name}' {self.dtype} {shape_text(self.shape)}>"


def shape_from(shape: "_low.tw_shape") -> Optional[tuple[Optional[int], ...]]:
    if shape.rank < 0:
        return None
    return tuple(n if n >= 0 else None for n in shape.dims[:shape.rank]) if shape.rank else ()


def shape_text(shape: Optional[tuple[Optional[int], ...]]) -> str:
    """ "[?, 3]"; "?" for an unknown rank."""
    return "?" if shape is None else "[" + ", ".join("?" if n is None else str(n) for n in shape) + "]"


class Operation:
    """One operation of a graph."""
    __slots__ = ("graph", "_handle")

    def __init__(self, graph: "Graph", handle: int):
        self.graph, self._handle = graph, handle

    @property
    def name(self) -> str:
        """Its name, with those of the scopes around it: "dense/MatMul"."""
        return _low.tw_operation_name(self._handle).decode()

    @property
    def type(self) -> str:
        """The op: "MatMul"."""
        return _low.tw_operation_type(self._handle).decode()

    @property
    def device(self) -> str:
        """The requested device; "": any."""
        return _low.tw_operation_device(self._handle).decode()

    @property
    def inputs(self) -> list[Output]:
        """The values that it reads, in order."""
        return [Output(self.graph, _low.tw_operation_input(self._handle, i)) for i in range(_low.tw_operation_input_count(self._handle))]

    @property
    def outputs(self) -> list[Output]:
        """The values that it makes, in order."""
        return [Output(self.graph, _low.tw_operation_output(self._handle, i)) for i in range(_low.tw_operation_output_count(self._handle))]

    @property
    def control_inputs(self) -> list["Operation"]:
        """The operations that it waits for by control edges."""
        return [Operation(self.graph, _low.tw_operation_control(self._handle, i))
                for i in range(_low.tw_operation_control_count(self._handle))]

    @property
    def attributes(self) -> dict[str, Any]:
        """The resolved attributes: given, inferred or default. Types are DTypes, shapes tuples, tensors Tensors."""
        from .attributes import read
        names = (_low.tw_operation_attr_name(self._handle, i) for i in range(_low.tw_operation_attr_count(self._handle)))
        return {name.decode(): read(self._handle, name) for name in names}

    @property
    def line(self) -> Optional[Line]:
        """The line on which the program made it; None for imported ones."""
        return line_of(_low.tw_operation_place(self._handle))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operation) and self._handle == other._handle and self.graph is other.graph

    def __hash__(self) -> int:
        return hash(self._handle)

    def __repr__(self) -> str:
        return f"<Operation '{self.name}' {self.type}>"
