"""Tensors as files of weights hold them, and files that are mapped or replaced. Used by the readers of the formats and by weights."""
import contextlib
import functools
import mmap
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple, Optional

import numpy as np

from .dtypes import Array, DType, as_dtype, from_numpy
from .errors import InvalidArgumentError, NotFoundError

Q8_0 = "Q8_0"
BLOCK = np.dtype([("scale", "<f2"), ("values", "i1", (32,))])  # of Q8_0
MOST_NAME = 1024  # characters; a pattern takes at most the square of that many steps
END = 1 << 63

_BITS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}  # stand for types that NumPy lacks


class Stored(NamedTuple):
    """A tensor of a file. kind: the name of its element type, or Q8_0.   bits: its elements; as whole numbers if NumPy lacks the type; as
    records BLOCK along the last axis if they are Q8_0."""
    kind: str
    bits: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the tensor."""
        shape: tuple[int, ...] = self.bits.shape
        return (*shape[:-1], shape[-1] * 32) if self.kind == Q8_0 else shape

    def permuted(self, axes: tuple[int, ...]) -> "Stored":
        """Returns the tensor with its axes in another order, as a view. REQUIRES: it is not Q8_0."""
        return Stored(self.kind, self.bits.transpose(axes))


class Quantised(NamedTuple):
    """A tensor of 8-bit numbers in blocks of 32 along the last axis: element i is scale[..., i // 32] * values[..., i // 32, i % 32].
    scale: float16 [..., blocks].   values: int8 [..., blocks, 32]. Both are views of the file."""
    scale: Array
    values: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the tensor."""
        return (*self.scale.shape[:-1], self.scale.shape[-1] * 32)

    def dequantised(self) -> Array:
        """Returns the tensor in float32."""
        out = np.empty(self.values.shape, np.float32)
        np.multiply(self.values, self.scale[..., None].astype(np.float32), out=out, casting="unsafe", dtype=np.float32)
        return out.reshape(self.shape)


def stored(data: Any, kind: str, shape: tuple[int, ...], begin: int, where: str) -> Stored:
    """Returns the tensor whose bytes begin there in a mapped file. REQUIRES: the file has them all."""
    base = _base(kind)
    rows = (*shape[:-1], shape[-1] // 32) if kind == Q8_0 else shape
    return Stored(kind, viewed(data, base, rows, begin, where))


@functools.cache
def _base(kind: str) -> Any:
    return BLOCK if kind == Q8_0 else np.dtype(_BITS.get(kind, kind)).newbyteorder("<")


def viewed(data: Any, base: Any, shape: tuple[int, ...], begin: int, where: str) -> Array:
    """Returns a view of a buffer. Raises InvalidArgumentError for shapes that NumPy does not have."""
    count = 1
    for size in shape:
        count *= size
    try:
        return np.frombuffer(data, base, count, begin if count else 0).reshape(shape)
    except (ValueError, OverflowError) as e:
        raise InvalidArgumentError(f"{where}: NumPy has no array of {len(shape)} axes {list(shape[:8])}: {e}") from None


def array_of(tensor: Stored, dtype: Optional[DType] = None) -> Array:
    """Returns the elements, as a view if they need no conversion. dtype: the type that floating-point numbers get; None: their own. Raises
    TypeError for types that NumPy lacks if the package ml_dtypes is missing."""
    if tensor.kind == Q8_0:
        array = quantised(tensor).dequantised()
    elif tensor.kind == "bfloat16" and dtype is not None and dtype.name in ("float32", "float64"):
        array = (tensor.bits.astype(np.uint32) << np.uint32(16)).view(np.float32)  # needs no ml_dtypes
    elif tensor.kind in _BITS:
        array = tensor.bits.view(as_dtype(tensor.kind).numpy)
    else:
        array = tensor.bits if tensor.bits.dtype.isnative else tensor.bits.astype(tensor.bits.dtype.newbyteorder("="))
    if dtype is None or array.dtype == dtype.numpy or not from_numpy(array.dtype).is_floating:
        return array
    with np.errstate(over="ignore"):
        return array.astype(dtype.numpy)


def quantised(tensor: Stored) -> Quantised:
    """REQUIRES: it is Q8_0."""
    return Quantised(tensor.bits["scale"], tensor.bits["values"])


def some(names: Iterable[str], most: int = 8) -> str:
    """Returns names for a message."""
    listed = list(names)
    return ", ".join(f"'{n}'" for n in listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def add(found: dict[str, Stored], more: Mapping[str, Stored], file: str) -> None:
    """Adds the tensors of one more part."""
    for name, tensor in more.items():
        if name in found:
            raise InvalidArgumentError(f"'{file}': the tensor '{name}' is in two parts")
        found[name] = tensor


def check_name(name: str, file: str) -> None:
    """Refuses a name of a tensor that no model has."""
    if len(name) > MOST_NAME:
        raise InvalidArgumentError(f"'{file}' has a tensor whose name has {len(name)} characters, beginning with '{name[:40]}'; "
                                   f"a name may have {MOST_NAME}")


# ---- Files ----


def opened(file: pathlib.Path) -> BinaryIO:
    """Opens a file for reading. Raises NotFoundError."""
    try:
        if not file.is_file():  # a device may have no end
            raise NotFoundError(f"'{file}' is not there, or no file")
        return open(file, "rb")
    except (OSError, ValueError) as e:
        raise NotFoundError(f"'{file}' cannot be read: {e}") from None


def mapped(stream: BinaryIO) -> Any:
    """Maps a file that is not empty."""
    return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


@contextlib.contextmanager
def replacing(path: Any) -> Iterator[BinaryIO]:
    """Gives a file to write, which takes the place of `path` once it is complete; after an error the old file stays."""
    target = pathlib.Path(path)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=target.name, delete=False) as file:
        try:
            yield file  # type: ignore[misc]
            file.flush()
            os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(file.name, 0o666 & ~mask)
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise
