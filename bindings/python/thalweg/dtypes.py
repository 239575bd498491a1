"""Element types: thalweg.float32 and so on, and what they are in NumPy.

A parameter for a type accepts a DType, its name in NumPy ("float32") or in the runtime ("float"), a NumPy type, and Python's own
float, int, bool, complex, str and bytes, which stand for float32, int32, bool, complex64 and string."""
from typing import Any, Union

import numpy as np

from . import _low

_PYTHON = {float: "float32", int: "int32", bool: "bool", complex: "complex64", str: "string", bytes: "string"}
_NUMPY = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64",
          "complex128")
_ML_DTYPES = ("bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int4", "uint4",
              "int2", "uint2")


class DType:
    """An element type. number: as in the C API.   name: as in NumPy, if NumPy has the type."""
    __slots__ = ("number", "name", "_numpy")

    def __init__(self, number: int, name: str):
        self.number, self.name = number, name
        self._numpy = np.dtype(name) if name in _NUMPY else np.dtype(object) if name == "string" else None

    @property
    def numpy(self) -> np.dtype[Any]:
        """Its type in NumPy; strings are objects (bytes). Raises TypeError if NumPy has none, naming the package that has one."""
        if self._numpy is not None:
            return self._numpy
        if self.name in _ML_DTYPES:
            try:
                import ml_dtypes
                return np.dtype(getattr(ml_dtypes, self.name))
            except (ImportError, AttributeError):
                raise TypeError(f"NumPy has no {self.name}; install the package ml_dtypes, or cast to float32 in the graph") from None
        raise TypeError(f"NumPy has no {self.name}; fetch it with as_tensors=True")

    @property
    def is_floating(self) -> bool:
        """True for float..., bfloat16 and float8_..."""
        return self.name.startswith(("float", "bfloat"))

    @property
    def is_complex(self) -> bool:
        """True for complex64 and complex128."""
        return self.name.startswith("complex")

    @property
    def is_integer(self) -> bool:
        """True for int... and uint..., but not for quantised types and bool."""
        return self.name.startswith(("int", "uint"))

    def __repr__(self) -> str:
        return f"thalweg.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        if type(other) is DType:
            return self.number == other.number
        try:
            return self.number == as_dtype(other).number
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.number)

    def __reduce__(self) -> Any:
        return from_number, (self.number,)


float32 = DType(_low.TW_FLOAT, "float32")
float64 = DType(_low.TW_DOUBLE, "float64")
float16 = DType(_low.TW_HALF, "float16")
bfloat16 = DType(_low.TW_BFLOAT16, "bfloat16")
int8 = DType(_low.TW_INT8, "int8")
int16 = DType(_low.TW_INT16, "int16")
int32 = DType(_low.TW_INT32, "int32")
int64 = DType(_low.TW_INT64, "int64")
uint8 = DType(_low.TW_UINT8, "uint8")
uint16 = DType(_low.TW_UINT16, "uint16")
uint32 = DType(_low.TW_UINT32, "uint32")
uint64 = DType(_low.TW_UINT64, "uint64")
bool_ = DType(_low.TW_BOOL, "bool")
complex64 = DType(_low.TW_COMPLEX64, "complex64")
complex128 = DType(_low.TW_COMPLEX128, "complex128")
string = DType(_low.TW_STRING, "string")
qint8 = DType(_low.TW_QINT8, "qint8")
quint8 = DType(_low.TW_QUINT8, "quint8")
qint16 = DType(_low.TW_QINT16, "qint16")
quint16 = DType(_low.TW_QUINT16, "quint16")
qint32 = DType(_low.TW_QINT32, "qint32")
resource = DType(_low.TW_RESOURCE, "resource")
variant = DType(_low.TW_VARIANT, "variant")
float8_e5m2 = DType(_low.TW_FLOAT8_E5M2, "float8_e5m2")
float8_e4m3fn = DType(_low.TW_FLOAT8_E4M3FN, "float8_e4m3fn")
float8_e4m3fnuz = DType(_low.TW_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz")
float8_e4m3b11fnuz = DType(_low.TW_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz")
float8_e5m2fnuz = DType(_low.TW_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz")
int4 = DType(_low.TW_INT4, "int4")
uint4 = DType(_low.TW_UINT4, "uint4")
int2 = DType(_low.TW_INT2, "int2")
uint2 = DType(_low.TW_UINT2, "uint2")

_BY_NAME = {kind.name: kind for kind in tuple(globals().values()) if isinstance(kind, DType)}
_BY_NUMBER = {kind.number: kind for kind in _BY_NAME.values()}
_BY_NUMPY = {np.dtype(name): _BY_NAME[name] for name in _NUMPY}

Array = np.ndarray[Any, Any]
DTypeLike = Union[DType, str, type[Any], np.dtype[Any], Any]


def from_number(number: int) -> DType:
    found = _BY_NUMBER.get(number)
    if found:
        return found
    name = _low.tw_dtype_name(number)
    if name is None:
        raise TypeError(f"{number} is no element type")
    return DType(number, name.decode())  # a reference form


def is_number(kind: np.dtype[Any]) -> bool:
    """Returns true for NumPy's own types of numbers and truth values, in the machine's byte order, that are element types."""
    return kind in _BY_NUMPY


def from_numpy(kind: np.dtype[Any]) -> DType:
    """Returns the element type of arrays of that type; texts of any sort are strings."""
    found = _BY_NUMPY.get(kind)
    if found:
        return found
    if kind.kind in "OSU":
        return _BY_NAME["string"]
    if kind.name in _ML_DTYPES:
        return _BY_NAME[kind.name]
    native = kind.newbyteorder("=")
    if native != kind:
        return from_numpy(native)
    raise TypeError(f"tensors have no element type for NumPy's {kind}")


def as_dtype(kind: DTypeLike) -> DType:
    """Converts `kind` to an element type. Raises TypeError if it is none."""
    if isinstance(kind, DType):
        return kind
    if isinstance(kind, str):
        if kind in _BY_NAME:
            return _BY_NAME[kind]
        number = _low.tw_dtype_find(kind.replace("\0", "?").encode())
        if number:
            return from_number(number)
        raise TypeError(f"'{kind}' is no element type; there are: {', '.join(_BY_NAME)}")
    if isinstance(kind, type) and kind in _PYTHON:
        return _BY_NAME[_PYTHON[kind]]
    try:
        if kind is None:  # NumPy would take None for float64
            raise TypeError
        return from_numpy(np.dtype(kind))
    except TypeError:
        raise TypeError(f"{kind!r} is no element type; there are: {', '.join(_BY_NAME)}") from None


__all__ = ["DType", "DTypeLike", "as_dtype", "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
           "uint16", "uint32", "uint64", "bool_", "complex64", "complex128", "string", "qint8", "quint8", "qint16", "quint16", "qint32",
           "resource", "variant", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int4",
           "uint4", "int2", "uint2"]
