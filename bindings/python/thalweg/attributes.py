"""Attributes of operations: converts values between Python and the C API, by the kind in the op's schema."""
import ctypes
from ctypes import POINTER, c_double, c_int64, c_uint8, c_uint32, c_void_p
from typing import Any, Optional

import numpy as np

from . import _low
from .dtypes import as_dtype, from_number
from .errors import check
from .output import shape_from
from .tensor import Tensor


def write(builder: int, op: str, attr: dict[str, Any], value: Any) -> None:
    """Sets one attribute of an operation that is being described. Raises TypeError for a value of another kind."""
    name, kind, values = attr["name"].encode(), attr["kind"], _checked(op, attr, value)
    if attr["list"]:
        _LISTS[kind](builder, name, values)
    else:
        _SINGLES[kind](builder, name, values[0])


def encoded(op: str, attr: dict[str, Any], value: Any) -> tuple["_low.tw_eager_attr", Any]:
    """One attribute of an eager call, and what must live until that is over. Raises TypeError for a value of another kind."""
    kind, many = attr["kind"], attr["list"]
    values = _checked(op, attr, value)
    array = _ARRAYS[kind](values)
    made = _low.tw_eager_attr(name=attr["name"].encode(), values=ctypes.cast(array, c_void_p), kind=_KINDS[kind], is_list=int(many),
                              count=len(values))
    return made, (values, array)


def _checked(op: str, attr: dict[str, Any], value: Any) -> list[Any]:
    """The value, or the values of the list, as the C API takes them."""
    name, kind, many = attr["name"], attr["kind"], attr["list"]
    try:
        if many and (isinstance(value, (str, bytes)) or not hasattr(value, "__iter__")):
            raise TypeError("a list is needed")
        return [_CHECKED[kind](v) for v in value] if many else [_CHECKED[kind](value)]
    except TypeError as e:
        wanted = f"a list of {kind}s" if many else f"of kind {kind}"
        raise TypeError(f"{op}: attribute '{name}' is {wanted}, not {value!r}: {e}") from None


# ---- What each kind takes ----

def _whole(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError("no whole number")
    if not -2**63 <= value < 2**63:
        raise TypeError("it has more than 64 bits")
    return int(value)


def _real(value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError("no number")
    return float(value)


def _truth(value: Any) -> int:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError("neither True nor False")
    return int(value)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, bytes):
        raise TypeError("no text")
    return value


def shape_of(value: Any) -> Optional[tuple[int, ...]]:
    """Converts a shape. None means an unknown rank; a size of None becomes -1."""
    if value is None:
        return None
    if isinstance(value, (int, np.integer)):
        raise TypeError("a shape is a list of sizes")
    return tuple(-1 if n is None else _whole(n) for n in value)


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(value)


_CHECKED = {"int": _whole, "float": _real, "bool": _truth, "string": _bytes, "type": lambda v: as_dtype(v).number, "shape": shape_of,
            "tensor": _tensor, "func": _bytes}


# ---- Writing ----

def _list_of(kind: Any) -> Any:
    return lambda values: (kind * len(values))(*values)


def _strings(values: list[bytes]) -> Any:
    strings = (_low.tw_string * len(values))()
    for s, value in zip(strings, values):
        s.data, s.size = ctypes.cast(ctypes.c_char_p(value), c_void_p), len(value)
    return strings


def _shapes(values: list[Optional[tuple[int, ...]]]) -> tuple[Any, list[Any]]:
    shapes, kept = (_low.tw_shape * len(values))(), []
    for s, dims in zip(shapes, values):
        kept.append((c_int64 * len(dims or ()))(*(dims or ())))
        s.dims, s.rank = kept[-1], -1 if dims is None else len(dims)
    return shapes, kept


def _set_shape(builder: int, name: bytes, dims: Optional[tuple[int, ...]]) -> None:
    _low.tw_op_set_shape(builder, name, (c_int64 * len(dims or ()))(*(dims or ())), -1 if dims is None else len(dims))


def _set_shapes(builder: int, name: bytes, values: list[Any]) -> None:
    shapes, _kept = _shapes(values)
    _low.tw_op_set_shapes(builder, name, shapes, len(values))


def _array_setter(setter: Any, make: Any) -> Any:
    return lambda builder, name, values: setter(builder, name, make(values), len(values))


_SINGLES = {
    "int": _low.tw_op_set_int, "float": _low.tw_op_set_float, "bool": _low.tw_op_set_bool, "type": _low.tw_op_set_type,
    "string": lambda b, n, v: _low.tw_op_set_string(b, n, v, len(v)), "func": _low.tw_op_set_func,
    "shape": _set_shape, "tensor": lambda b, n, v: _low.tw_op_set_tensor(b, n, v._handle),
}
_LISTS = {
    "int": _array_setter(_low.tw_op_set_ints, _list_of(c_int64)), "float": _array_setter(_low.tw_op_set_floats, _list_of(c_double)),
    "bool": _array_setter(_low.tw_op_set_bools, _list_of(c_uint8)), "type": _array_setter(_low.tw_op_set_types, _list_of(c_uint32)),
    "string": _array_setter(_low.tw_op_set_strings, _strings), "func": _array_setter(_low.tw_op_set_funcs, _strings),
    "shape": _set_shapes, "tensor": _array_setter(_low.tw_op_set_tensors, lambda ts: (c_void_p * len(ts))(*(t._handle for t in ts))),
}


# ---- For eager calls ----

def _shape_array(values: list[Any]) -> Any:
    shapes, kept = _shapes(values)
    shapes._kept = kept
    return shapes


_ARRAYS = {"int": _list_of(c_int64), "float": _list_of(c_double), "bool": _list_of(c_uint8), "type": _list_of(c_uint32), "string": _strings,
           "func": _strings, "shape": _shape_array, "tensor": lambda ts: (c_void_p * len(ts))(*(t._handle for t in ts))}
_KINDS = {"int": _low.TW_ATTR_INT, "float": _low.TW_ATTR_FLOAT, "bool": _low.TW_ATTR_BOOL, "string": _low.TW_ATTR_STRING,
          "type": _low.TW_ATTR_TYPE, "shape": _low.TW_ATTR_SHAPE, "tensor": _low.TW_ATTR_TENSOR, "func": _low.TW_ATTR_FUNC}


# ---- Reading ----

def _text(s: "_low.tw_string") -> Any:
    raw = ctypes.string_at(s.data, s.size) if s.size else b""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _shared(handle: int) -> Tensor:
    _low.tw_tensor_retain(handle)
    return Tensor._adopt(handle)


_READ: dict[int, tuple[Any, Any]] = {
    _low.TW_ATTR_INT: (c_int64, int), _low.TW_ATTR_FLOAT: (c_double, float), _low.TW_ATTR_BOOL: (c_uint8, bool),
    _low.TW_ATTR_STRING: (_low.tw_string, _text), _low.TW_ATTR_TYPE: (c_uint32, from_number),
    _low.TW_ATTR_SHAPE: (_low.tw_shape, shape_from), _low.TW_ATTR_TENSOR: (c_void_p, _shared), _low.TW_ATTR_FUNC: (_low.tw_string, _text),
}


def read(operation: int, name: bytes) -> Any:
    """Returns one attribute of an operation."""
    kind, is_list, count, values = c_uint32(), c_uint32(), c_uint32(), c_void_p()
    check(_low.tw_operation_attr(operation, name, kind, is_list, count, values))
    ctype, convert = _READ[kind.value]
    found = [convert(v) for v in ctypes.cast(values, POINTER(ctype))[:count.value]] if count.value else []
    return found if is_list.value else found[0]
