"""DLPack, through which arrays and tensors share memory: the structures of its specification, version 0.x, and their Python capsules.

An array is lent as a DLManagedTensor, because the runtime never writes to such memory, whoever holds it last. A table keeps
each lent array alive until the runtime releases it, which may happen on any thread."""
import ctypes
import operator
from ctypes import c_char_p, c_int, c_void_p, py_object
from typing import Any

from . import _low
from .dtypes import Array
from .errors import made

CPU, CUDA = 1, 2
_HOST = (CPU, 3, 11)  # pinned memory of two vendors is host memory too
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_NAME, _VERSIONED = b"dltensor", b"dltensor_versioned"
_USED = {_NAME: b"used_dltensor", _VERSIONED: b"used_dltensor_versioned"}

_Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", c_void_p),
                ("strides", c_void_p), ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", _Deleter)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", c_void_p), ("deleter", _Deleter)]


# ---- Lending arrays ----

_lent: dict[int, tuple[Any, ...]] = {}  # by the address of the structure


@_Deleter
def _take_back(address: int, pop: Any = _lent.pop) -> None:
    pop(address, None)


def can_lend(array: Array) -> bool:
    return array.dtype.kind in _CODES and array.dtype.isbuiltin == 1 and array.flags.c_contiguous and array.flags.aligned


def lent(array: Array) -> int:
    """Returns a handle on a tensor that shares the array's memory. REQUIRES: can_lend(array)."""
    managed, shape = _Managed(), (ctypes.c_int64 * array.ndim)(*array.shape)
    t = managed.tensor
    t.data, t.device_type, t.ndim, t.shape = array.ctypes.data, CPU, array.ndim, ctypes.addressof(shape)
    t.code, t.bits, t.lanes = _CODES[array.dtype.kind], array.dtype.itemsize * 8, 1
    managed.deleter = _take_back
    address = ctypes.addressof(managed)
    _lent[address] = (array, managed, shape)
    return made(_low.tw_tensor_from_dlpack, address)


# ---- Capsules ----

_api = ctypes.pythonapi
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
_is_valid = _api.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c_int, [c_void_p, c_char_p]  # by address: a reference would revive the capsule
_pointer = _api.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [c_void_p, c_char_p]
_rename = _api.PyCapsule_SetName
_rename.restype, _rename.argtypes = c_int, [c_void_p, c_char_p]


@_Deleter
def _drop_capsule(capsule: int, is_valid: Any = _is_valid, pointer: Any = _pointer) -> None:
    """Releases the tensor of a capsule that no consumer has taken over."""
    for name, kind in ((_NAME, _Managed), (_VERSIONED, _ManagedVersioned)):
        if is_valid(capsule, name):
            address = pointer(capsule, name)
            kind.from_address(address).deleter(address)


# The C side may call these two at any later time.
for _callback in (_take_back, _drop_capsule):
    _api.Py_IncRef(py_object(_callback))


def capsule_of(handle: int, versioned: bool) -> Any:
    export = _low.tw_tensor_to_dlpack_versioned if versioned else _low.tw_tensor_to_dlpack
    return _new(made(export, handle), _VERSIONED if versioned else _NAME, ctypes.cast(_drop_capsule, c_void_p))


def device_of(handle: int) -> tuple[int, int]:
    """Returns the result of __dlpack_device__ for a tensor."""
    address = made(_low.tw_tensor_to_dlpack, handle)
    managed = _Managed.from_address(address)
    device = managed.tensor.device_type, managed.tensor.device_id
    managed.deleter(address)
    return device


def _capsule_from(source: Any, stream: Any) -> Any:
    on_stream = {} if stream is None else {"stream": stream}
    try:
        return source.__dlpack__(max_version=(1, 0), **on_stream)
    except TypeError:
        return source.__dlpack__(**on_stream)


_HOST_TAKERS = (_low.tw_tensor_from_dlpack, _low.tw_tensor_from_dlpack_versioned)


def tensor_from(source: Any, stream: Any, runtime: Any) -> int:
    """Returns a handle on a tensor of memory that `source` exports. stream: see thalweg.from_dlpack; runtime: a handle, or None."""
    if not hasattr(source, "__dlpack__"):
        raise BufferError(f"a {type(source).__name__} gives no DLPack")
    stream = None if stream is None else operator.index(stream)
    device_type = source.__dlpack_device__()[0] if hasattr(source, "__dlpack_device__") else CPU
    if device_type in _HOST:
        return _taken(_capsule_from(source, None), lambda versioned, at: made(_HOST_TAKERS[versioned], at))
    if stream is None and device_type == CUDA:
        stream = 1  # its default stream, as a handle: the producer makes that stream wait, and the runtime waits for it
    capsule, queue = _capsule_from(source, stream), None if stream == -1 else stream  # -1: no wait
    return _taken(capsule, lambda versioned, at: made(_low.tw_tensor_from_dlpack_on, runtime, at, versioned, queue))


def _taken(capsule: Any, take: Any) -> int:
    for versioned, name in enumerate((_NAME, _VERSIONED)):
        if _is_valid(id(capsule), name):
            address = _pointer(id(capsule), name)
            _rename(id(capsule), _USED[name])  # from here on the runtime owns it, even if the runtime refuses it
            return take(versioned, address)
    raise BufferError("what __dlpack__ gave is no DLPack capsule")
