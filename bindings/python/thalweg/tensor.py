"""Tensors: arrays in the runtime's memory, converted from and to NumPy arrays without copies.

Threads: a tensor does not change once made, so any number of threads may use it."""
import ctypes
import threading
from typing import Any, Optional

import numpy as np

from . import _dlpack, _low
from ._handle import Handle, c_text
from .dtypes import Array, DType, DTypeLike, as_dtype, from_number, from_numpy, is_number
from .dtypes import string as _string
from .errors import check, made


class Tensor(Handle):
    """A reference to a tensor of the runtime. Made from anything that NumPy converts to an array, or by fetching with as_tensors=True.

    value: an array, a number, text, or lists of these.   dtype: its element type; None: that of the array, float32 and int32 for Python's
    own numbers.   copy: False shares the array's memory with the tensor if its layout allows; the program then must not write to it any
    more. Other libraries share a tensor's memory by np.asarray(tensor) and by DLPack. Raises TypeError for values of no element type."""
    __slots__ = ("_handle", "__weakref__")

    def __init__(self, value: Any, dtype: Optional[DTypeLike] = None, copy: bool = True):
        self._handle = 0
        array, private = as_array(value, None if dtype is None else as_dtype(dtype))
        lend = (private or not copy) and worth_sharing(array) and _dlpack.can_lend(array)
        self._handle = _dlpack.lent(array) if lend else copied(array)

    @classmethod
    def _adopt(cls, handle: int) -> "Tensor":
        """Takes over a reference."""
        self = cls.__new__(cls)
        self._handle = handle
        return self

    def __del__(self, release: Any = _low.tw_tensor_release) -> None:
        release(getattr(self, "_handle", None))

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return from_number(_low.tw_tensor_dtype(self._handle))

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dims; () for a scalar."""
        rank = _low.tw_tensor_rank(self._handle)
        return tuple(_low.tw_tensor_dims(self._handle)[:rank]) if rank else ()

    @property
    def size(self) -> int:
        """The number of elements."""
        return _low.tw_tensor_count(self._handle)

    @property
    def nbytes(self) -> int:
        """Its memory in bytes; 16 per element for strings."""
        return _low.tw_tensor_bytes(self._handle)

    @property
    def device(self) -> Optional[str]:
        """The device in whose memory it is; None: host memory."""
        name: Optional[bytes] = _low.tw_tensor_device(self._handle)
        return name.decode() if name else None

    def to_host(self) -> "Tensor":
        """Returns the same elements in host memory."""
        return Tensor._adopt(made(_low.tw_tensor_to_host, self._handle))

    def to_device(self, device: str, runtime: Optional[Any] = None) -> "Tensor":
        """Returns the same elements in the memory of a device, such as "FAKE:0".   runtime: that of the device; None: the default one.
        Raises NotFoundError, listing the devices."""
        return Tensor._adopt(made(_low.tw_tensor_to_device, self._handle, runtime._handle if runtime else None, c_text(device)))

    def numpy(self) -> Array:
        """Returns an array that shares its memory and keeps it alive; read-only if another owner shares the memory too. Strings are copied
        into an array of bytes objects. Raises TypeError for types that NumPy does not have."""
        return to_array(self)

    def reshape(self, *dims: int) -> "Tensor":
        """Returns the same elements with other dims; shares the memory."""
        dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
        return Tensor._adopt(made(_low.tw_tensor_reshape, self._handle, _dims(dims), len(dims)))

    def _lies_in(self, array: Array) -> bool:
        """Returns true if its memory is part of the array's."""
        at = _low.tw_tensor_data(self._handle) or 0
        return self.nbytes > 0 and array.ctypes.data <= at < array.ctypes.data + array.nbytes

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        array = to_array(self)
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[tuple[int, int]] = None, dl_device: Any = None,
                   copy: Optional[bool] = None) -> Any:
        """Returns a DLPack capsule of its memory, read-only if the consumer supports versions (max_version of 1 or more). stream may be
        any, because the elements are ready; those of a tensor that from_dlpack made with a stream are ready when that stream has made
        them. dl_device: that of the tensor, or the CPU, to which the elements are then copied."""
        if copy:
            raise BufferError("a tensor gives its memory, not a copy")
        here = self
        if dl_device is not None and self.device and tuple(dl_device) == (_dlpack.CPU, 0) and copy is None:
            here = self.to_host()
        elif dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the tensor lies on {self.device or 'the host'}, and is not copied to DLPack's device {tuple(dl_device)}")
        return _dlpack.capsule_of(here._handle, max_version is not None and max_version[0] >= 1)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.device_of(self._handle) if self.device else (_dlpack.CPU, 0)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Tensor, (to_array(self), self.dtype)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar tensor has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        try:
            shown = bytes_of(made(_low.tw_tensor_text, self._handle, 20)).decode(errors="replace")
        except Exception:  # resources and variants have no text, and device memory would have to be copied
            shown = "..."
        return f"Tensor({shown}, shape={list(self.shape)}, dtype={self.dtype})"


def from_dlpack(source: Any, stream: Optional[int] = None, runtime: Optional[Any] = None) -> Tensor:
    """Returns a tensor that shares the memory of another library's array, or copies an array that is not dense. Device memory stays on the
    device. The producer must not write to the memory while the tensor lives.   stream: for memory of a device, the native handle of a
    queue (a cl_command_queue, a CUstream): the producer makes it wait for its pending work, and work of the device on the tensor waits
    for the queue; None: the default stream of CUDA, on other devices none, for arrays that are ready.   runtime: that of the devices; None: the default
    one. Raises BufferError for an object without DLPack, NotFoundError for memory of an unknown device, InvalidArgumentError for memory
    that the device cannot use and for unknown types."""
    return Tensor._adopt(_dlpack.tensor_from(source, stream, runtime._handle if runtime else None))


def bytes_of(buffer: int) -> bytes:
    """Returns the bytes of a tw_buffer, and releases it."""
    try:
        return ctypes.string_at(_low.tw_buffer_data(buffer), _low.tw_buffer_bytes(buffer))
    finally:
        _low.tw_buffer_release(buffer)


# ---- In ----

def as_array(value: Any, dtype: Optional[DType]) -> tuple[Array, bool]:
    """Returns the value as a dense array of native byte order and of that type, and true if no other reference to the array exists.

    Arrays, lists and Python's numbers are cast if NumPy's rule "same_kind" allows it and no integer changes."""
    if type(value) is np.ndarray and value.flags.c_contiguous and is_number(value.dtype) and (dtype is None or dtype._numpy is value.dtype):
        return value, False  # the usual case
    if isinstance(value, Tensor):
        value = to_array(value)
    array = value if isinstance(value, np.ndarray) else _of_others(value)
    given = array if isinstance(value, np.ndarray) or hasattr(value, "__array__") or hasattr(value, "__dlpack__") else None  # the caller's array, not a new one
    if array.dtype.kind == "T":  # NumPy 2's own texts
        array = array.astype(object)
    if array.dtype.kind in "SU" and given is None:  # NumPy's types of text drop zeros at the end of bytes
        array = np.array(value, object)
    if array.dtype.kind in "OSU":
        if dtype is not None and dtype != _string:
            raise TypeError(f"{_short(value)} is no {dtype}")
        if array.dtype.kind == "O" and array.size and not isinstance(array.flat[0], (str, bytes)):
            raise TypeError(f"{_short(value)} is of no element type")
        return array, False
    if dtype is None:
        dtype = from_numpy(array.dtype) if isinstance(value, (np.ndarray, np.generic)) else _python_type(array)
    if dtype == _string and (array.size or given is not None):
        raise TypeError(f"{_short(value)} is no string")
    kind = dtype.numpy
    if array.dtype != kind:
        array = _cast(array, kind, dtype, value)
    if not array.flags.c_contiguous:
        array = array.copy()
    return array, array is not given


def _of_others(value: Any) -> Array:
    """The array of numbers and lists, and of arrays of other libraries, through the protocols of NumPy and DLPack."""
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        try:
            return np.asarray(value) if hasattr(value, "__array__") else to_array(from_dlpack(value))
        except TypeError:  # a type that NumPy does not have, such as PyTorch's bfloat16
            return to_array(from_dlpack(value))
    return np.asarray(value)


def _python_type(array: Array) -> DType:
    """Returns the element type for Python's own numbers."""
    names = {"f": "float32", "c": "complex64"}
    if array.dtype.kind in names:
        return as_dtype(names[array.dtype.kind])
    if array.dtype.kind in "iu":
        fits = array.size == 0 or (array.min() >= -2**31 and array.max() < 2**31)
        return as_dtype("int32" if fits else array.dtype)
    return from_numpy(array.dtype)


def _cast(array: Array, kind: np.dtype[Any], dtype: DType, value: Any) -> Array:
    if array.size == 0 and not isinstance(value, (np.ndarray, np.generic)):
        return array.astype(kind)  # an empty list fits any type
    whole, number = "iu", "iuf"
    allowed = (np.can_cast(array.dtype, kind, "same_kind") or (array.dtype.kind in whole and kind.kind in whole)
               or (array.dtype.kind in number and kind.isbuiltin != 1))
    if not allowed:
        raise TypeError(f"{_short(value)} of type {array.dtype} is no {dtype}; cast it if that is meant")
    with np.errstate(over="ignore"):  # a float too large becomes infinite, as in any cast
        cast = array.astype(kind)
    if kind.kind in "iu" and not np.array_equal(cast, array):
        raise TypeError(f"{_short(value)} does not fit into {dtype}")
    return cast


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _dims(shape: Any) -> Any:
    return (ctypes.c_int64 * len(shape))(*shape)


# Sharing an array costs about as much as copying this many bytes.
COPIED_BYTES = 16 * 1024


def worth_sharing(array: Array) -> bool:
    return array.nbytes > COPIED_BYTES and array.flags.aligned and array.dtype.kind not in "OSU"


_NOTHING = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(0)


def shared(array: Array) -> int:
    """Returns a handle on a tensor around the memory of a dense array, which must live, unchanged, until that tensor is alone. It uses no
    callback, because a callback that needs Python's lock must not run on a thread that Python ends at exit."""
    number = from_numpy(array.dtype).number
    return made(_low.tw_tensor_create_from, number, _dims(array.shape), array.ndim, array.ctypes.data, array.nbytes, _NOTHING, None)


def alone(handle: int) -> bool:
    """Returns true if there is no other reference to the tensor or its memory, and the memory is not from a DLPack array."""
    return _low.tw_tensor_mutable_data(handle) is not None


_parked: list[tuple[Array, int]] = []
_parking = threading.Lock()


def park(array: Array, handle: int) -> None:
    """Keeps an array that a tensor shares, and the reference to the tensor, until the tensor is alone, so that its memory is not
    reused. The next park drops entries that are alone."""
    with _parking:
        gone = [h for _, h in _parked if alone(h)]
        _parked[:] = [entry for entry in _parked if entry[1] not in gone] + [(array, handle)]
    for h in gone:
        _low.tw_tensor_release(h)


def copied(array: Array) -> int:
    """Returns a handle on a tensor with a copy of the array, which is dense."""
    if array.dtype.kind in "OSU":
        return _strings(array)
    number = from_numpy(array.dtype).number
    return made(_low.tw_tensor_create_copy, number, _dims(array.shape), array.ndim, array.ctypes.data, array.nbytes)


def _strings(array: Array) -> int:
    tensor = made(_low.tw_tensor_create, _string.number, _dims(array.shape), array.ndim)
    try:
        for i, text in enumerate(array.reshape(-1).tolist()):
            if isinstance(text, str):
                text = text.encode()
            elif not isinstance(text, bytes):
                raise TypeError(f"element {i} of the array of strings is {_short(text)}, which is neither bytes nor text")
            check(_low.tw_tensor_set_string(tensor, i, text, len(text)))
    except BaseException:
        _low.tw_tensor_release(tensor)
        raise
    return tensor


# ---- Out ----

class _Memory:
    """The base of an array that shares a tensor's memory."""
    __slots__ = ("tensor", "__array_interface__")

    def __init__(self, tensor: Tensor, shape: tuple[int, ...], kind: np.dtype[Any], data: int, read_only: bool):
        self.tensor = tensor
        # NumPy's protocol has no types of other packages, so bytes of that size represent them.
        typestr = kind.str if kind.isbuiltin == 1 else f"|V{kind.itemsize}"
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": typestr, "data": (data, read_only)}


def to_array(tensor: Tensor) -> Array:
    kind, shape, handle = tensor.dtype.numpy, tensor.shape, tensor._handle
    if kind.kind == "O":
        return _texts(tensor, shape)
    if tensor.device:
        return to_array(tensor.to_host())
    data = _low.tw_tensor_data(handle)
    if not data or 0 in shape:
        return np.empty(shape, kind)
    array = np.asarray(_Memory(tensor, shape, kind, data, _low.tw_tensor_mutable_data(handle) is None))
    return array if kind.isbuiltin == 1 else array.view(kind)


def to_value(tensor: Tensor) -> Any:
    """As to_array, but returns a NumPy scalar (bytes for strings) for rank 0."""
    return to_array(tensor)[()]


def _texts(tensor: Tensor, shape: tuple[int, ...]) -> Array:
    texts = np.empty(tensor.size, object)
    at, size = ctypes.c_char_p(), ctypes.c_uint64()
    for i in range(len(texts)):
        check(_low.tw_tensor_get_string(tensor._handle, i, at, size))
        texts[i] = ctypes.string_at(at, size.value)
    return texts.reshape(shape)
