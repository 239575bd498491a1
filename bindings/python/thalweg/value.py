"""Values that ops return without a graph. They have elements, as NumPy's arrays do, and the operators and methods of all values.

    x = thalweg.constant([1.0, 2.0])
    (x * x).sum().item()        # 5.0

Threads: values do not change, so any number of threads may use them."""
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from . import _low, scopes
from .dtypes import Array, DType
from .errors import made
from .output import Formula, Output, shape_text
from .tensor import Tensor, bytes_of, to_array

if TYPE_CHECKING:
    from .eager import Eager
    from .output import Operation


class Value(Output):
    """A value with elements, which are in `tensor`. `==` compares elements. A value of one element has the truth value of that element. A
    dict and a set find a value by its identity, not by its elements."""
    __slots__ = ("tensor", "_home")

    def __new__(cls, home: "Eager", tensor: Tensor) -> "Value":
        return object.__new__(cls)  # in no table of a graph's values

    def __init__(self, home: "Eager", tensor: Tensor):
        self.tensor, self._home = tensor, home

    @property
    def number(self) -> int:  # type: ignore[override]
        """Raises TypeError: only values of graphs have one."""
        raise TypeError(f"{self!r} was computed without a graph, so no graph has it; make a constant of it, `graph.constant(value)`, "
                        "or feed it")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _of, (self.tensor,)

    @property
    def graph(self) -> "Eager":  # type: ignore[override]
        """The context that computes with it: the current one, if that is of the same runtime as the one that made it, else that."""
        home: "Eager" = self._home
        current: Optional["Eager"] = scopes.context()
        return home if current is None or current.runtime is not home.runtime else current

    @property
    def dtype(self) -> DType:
        """Of its elements."""
        return self.tensor.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dims; () for a scalar."""
        return self.tensor.shape

    @property
    def device(self) -> Optional[str]:
        """The device in whose memory it is; None: host memory."""
        return self.tensor.device

    def numpy(self) -> Array:
        """Its elements as an array that shares its memory, so that it is read-only; those on a device, and strings, are copied."""
        array = to_array(self.tensor)
        array.flags.writeable = False
        return array

    def item(self) -> Any:
        """Its only element as a number of Python's, or as bytes. Raises ValueError where there are others, or none."""
        return self.numpy().item()

    @property
    def size(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    def tolist(self) -> Any:
        """Its elements as lists of Python's numbers; a scalar as one number."""
        return self.numpy().tolist()

    def _producer(self) -> tuple["Operation", int]:
        raise TypeError("a value that was computed without a graph belongs to no operation of a graph")

    def named(self, name: str) -> Output:
        """Itself: names are for values of graphs."""
        return self

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        return self.tensor.__array__(dtype, copy)

    def __dlpack__(self, **how: Any) -> Any:
        """A DLPack capsule of its memory; see Tensor.__dlpack__."""
        return self.tensor.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_arrays(args), **{key: _arrays(x) for key, x in kwargs.items()})

    def __bool__(self) -> bool:
        if self.tensor.size != 1:
            raise ValueError(f"a value of shape {shape_text(self.shape)} is neither true nor false; only one of a single element is")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_integer or self.shape:
            raise TypeError(f"{self!r} is no index; a scalar of whole numbers is")
        return int(self.item())

    def __format__(self, how: str) -> str:
        return format(self.item(), how) if how else str(self)

    def __len__(self) -> int:
        return len(self.tensor)

    def __iter__(self) -> Iterator["Value"]:  # type: ignore[override]
        return (self[i] for i in range(len(self)))  # type: ignore[misc]

    def __repr__(self) -> str:
        here = self.tensor.to_host() if self.device else self.tensor
        try:
            shown = bytes_of(made(_low.tw_tensor_text, here._handle, 20)).decode(errors="replace")
        except Exception:  # resources and variants have no text
            shown = "..."
        return f"Value({shown}, dtype={self.dtype}, shape={shape_text(self.shape)}, device={self.device or 'host'})"


def _of(tensor: Tensor) -> Value:
    """The copy of a value, or a value that was pickled; the current context computes with it."""
    from .eager import current_eager
    return Value(current_eager(), tensor)


def tensor_of(x: Any) -> Tensor:
    """The elements of a Value, for a graph to hold as a constant. Raises TypeError for a variable without a graph."""
    if not isinstance(x, Value):
        raise TypeError(f"{x!r} is a variable without a graph; share it by a container of that name, or use its value, `.read()`")
    return x.tensor


def _arrays(x: Any) -> Any:
    """Arguments of a function of NumPy's, with arrays for values and variables."""
    if isinstance(x, Formula):
        return np.asarray(x)
    return type(x)(map(_arrays, x)) if type(x) in (list, tuple) else x
