"""Files of arrays as numpy.savez and numpy.savez_compressed write them: archives of .npy files.

Files are not trusted: pickled objects, members that overlap or claim more than compression can hold, and arrays of other sizes than
their members are refused."""
import io
import os
import pathlib
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from ._stored import END, Stored, check_name, mapped, replacing, viewed
from .dtypes import Array, from_numpy
from .errors import InvalidArgumentError

MAGIC = b"PK"

_LOCAL = struct.Struct("<4s22xHH")  # the head of a member: its mark, and the lengths of its name and of its extra bytes
_MOST_RATIO = 1032  # of deflate
_MOST_HEADER = 1 << 16  # bytes of a .npy file's header
_BAD = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, OverflowError, EOFError, struct.error, zipfile.LargeZipFile, OSError,
        zlib.error)


def read(file: pathlib.Path, stream: BinaryIO) -> dict[str, Stored]:
    """Returns the arrays of a file: views of the file where they are not compressed."""
    size = os.fstat(stream.fileno()).st_size
    data: Any = mapped(stream)
    found: dict[str, Stored] = {}
    try:
        with zipfile.ZipFile(stream) as archive:
            end = 0
            for member in sorted(archive.infolist(), key=lambda m: m.header_offset):
                name = _name(member, found, str(file))
                where = f"'{file}': array '{name}'"
                begin = _begin(member, data, end, size, where)
                end = begin + member.compress_size
                if member.compress_type == zipfile.ZIP_STORED:
                    found[name] = _array(data, begin, member.file_size, where)
                else:
                    found[name] = _array(_inflated(archive, member), 0, member.file_size, where)
    except InvalidArgumentError:
        raise
    except _BAD as e:
        raise InvalidArgumentError(f"'{file}' is no npz file that can be read: {str(e) or type(e).__name__}") from None
    return found


def _name(member: zipfile.ZipInfo, found: Mapping[str, Stored], file: str) -> str:
    name = member.filename
    if not name.endswith(".npy"):
        raise InvalidArgumentError(f"'{file}' has the member '{name[:80]}', which is no .npy file")
    name = name[:-4]
    check_name(name, file)
    if name in found:
        raise InvalidArgumentError(f"'{file}' has the array '{name}' twice")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
        raise InvalidArgumentError(f"'{file}': array '{name}' is encrypted, or compressed in a way other than deflate")
    return name


def _begin(member: zipfile.ZipInfo, data: Any, end: int, size: int, where: str) -> int:
    """Returns where the bytes of a member begin. end: where the member before ends."""
    at = member.header_offset
    if at < end or at + _LOCAL.size > size:
        raise InvalidArgumentError(f"{where} begins at byte {at}; it must be at least {end}, where the member before ends, and within {size} bytes")
    mark, name, extra = _LOCAL.unpack_from(data, at)
    begin: int = at + _LOCAL.size + name + extra
    if mark != b"PK\3\4" or begin + member.compress_size > size:
        raise InvalidArgumentError(f"{where} has {member.compress_size} bytes at byte {begin}, and the file has {size}")
    if member.compress_type == zipfile.ZIP_STORED and member.compress_size != member.file_size or \
            member.file_size > _MOST_RATIO * member.compress_size + 64:
        raise InvalidArgumentError(f"{where} claims {member.file_size} bytes, more than its {member.compress_size} bytes in the file hold")
    return begin


def _inflated(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Returns the bytes of a compressed member, no more than it claims to have."""
    with archive.open(member) as content:
        data = content.read(member.file_size)
    if len(data) != member.file_size:
        raise zipfile.BadZipFile(f"'{member.filename[:80]}' has {len(data)} bytes and claims {member.file_size}")
    return data


def _array(data: Any, begin: int, count: int, where: str) -> Stored:
    """Returns the array of a .npy file of `count` bytes there in a buffer."""
    head = io.BytesIO(bytes(data[begin:begin + min(count, _MOST_HEADER)]))
    try:
        version = np.lib.format.read_magic(head)  # type: ignore[no-untyped-call]
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"its version is {version}")
        form = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, base = form(head)  # type: ignore[no-untyped-call]
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError, tokenize.TokenError, EOFError) as e:
        raise InvalidArgumentError(f"{where} has a header that cannot be read: {str(e)[:200] or type(e).__name__}") from None
    if base.kind not in "biufc" or base.hasobject:
        raise InvalidArgumentError(f"{where} holds {base}; arrays of numbers and truth values can be read, and nothing is unpickled")
    size = base.itemsize
    for n in shape:
        size *= n
        if n < 0 or size >= END:
            raise InvalidArgumentError(f"{where} has the shape {list(shape)[:8]}, which no array has")
    if size != count - head.tell():
        raise InvalidArgumentError(f"{where}: {base} {list(shape)[:8]} takes {size} bytes, and the file has {count - head.tell()} for it")
    try:
        kind = from_numpy(base).name
    except TypeError as e:
        raise InvalidArgumentError(f"{where}: {e}") from None
    array = viewed(data, base, shape[::-1] if by_columns else shape, begin + head.tell(), where)
    return Stored(kind, array.T if by_columns else array)


def write(path: Any, arrays: Mapping[str, Array]) -> None:
    """Writes a file that is not compressed, so that it can be mapped."""
    for name, array in arrays.items():
        if array.dtype.kind not in "biufc":
            raise TypeError(f"'{name}' is {array.dtype}, which npz files cannot hold; write a safetensors file, or cast it to float32")
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)  # type: ignore[no-untyped-call]
