"""Files in the format safetensors, one by one or in parts with an index. The format: https://github.com/huggingface/safetensors

Files are not trusted: a header that does not describe the bytes of the file exactly is refused."""
import json
import os
import pathlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ._stored import END, Stored, add, check_name, mapped, opened, replacing, some, stored
from .dtypes import Array, from_numpy
from .errors import InvalidArgumentError

_KINDS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
          "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}
_CODES = {name: code for code, name in _KINDS.items()}
_BYTES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
_MOST_HEADER = 100_000_000  # bytes, the format's own limit
_MOST_AXES = 254  # of a tensor


class _Entry(NamedTuple):
    """A tensor of a file: its type's name in the format, its sizes, and where its bytes are."""
    kind: str
    shape: tuple[int, ...]
    begin: int
    end: int


# ---- One file ----


def read(file: pathlib.Path, stream: BinaryIO) -> tuple[dict[str, Stored], dict[str, str]]:
    """Returns the tensors of a file, and its metadata."""
    size = os.fstat(stream.fileno()).st_size
    head = stream.read(8)
    if len(head) < 8:
        raise InvalidArgumentError(f"'{file}' is no safetensors file: it has {size} bytes, and the length of the header takes 8")
    length = struct.unpack("<Q", head)[0]
    if length > min(size - 8, _MOST_HEADER):
        raise InvalidArgumentError(f"'{file}' is no safetensors file: its header would have {length} bytes, the file has {size}")
    entries, metadata = _entries(stream.read(length), size - 8 - length, str(file))
    data: Any = mapped(stream)
    return {name: stored(data, _KINDS[e.kind], e.shape, 8 + length + e.begin, f"'{file}': tensor '{name}'")
            for name, e in entries.items()}, metadata


def _entries(text: bytes, data: int, file: str) -> tuple[dict[str, _Entry], dict[str, str]]:
    """Parses and checks a header. data: the number of bytes behind it."""
    try:
        if not text.startswith(b"{"):
            raise ValueError("the header does not begin with {")
        header = json.loads(text.decode(), object_pairs_hook=_pairs)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"'{file}' has a header that cannot be read: {_reason(error)}") from None
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise InvalidArgumentError(f"'{file}': '__metadata__' must hold texts")
    entries = {name: _entry(name, about, data, file) for name, about in header.items()}
    end = 0
    for name, e in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if e.begin != end:
            raise InvalidArgumentError(f"'{file}': the bytes of '{name}' begin at {e.begin}, those before end at {end}; "
                                       "tensors must follow each other")
        end = e.end
    if end != data:
        raise InvalidArgumentError(f"'{file}': the tensors have {end} bytes, the file holds {data}; it is cut, or something follows")
    return entries, metadata


def _entry(name: str, about: Any, data: int, file: str) -> _Entry:
    check_name(name, file)
    where = f"'{file}': tensor '{name}'"
    if not isinstance(about, dict) or set(about) != {"dtype", "shape", "data_offsets"}:
        raise InvalidArgumentError(f"{where} must have dtype, shape and data_offsets, and nothing else")
    kind, shape, offsets = about["dtype"], about["shape"], about["data_offsets"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidArgumentError(f"{where} has the type {str(kind)[:40]!r}; known are {', '.join(_KINDS)}")
    for what, numbers in (("shape", shape), ("data_offsets", offsets)):
        if not isinstance(numbers, list) or len(numbers) > _MOST_AXES or not all(type(n) is int and 0 <= n < END for n in numbers):
            raise InvalidArgumentError(f"{where}: {what} must be a list of whole numbers, at most {_MOST_AXES}, each in [0, 2^63)")
    if len(offsets) != 2 or not offsets[0] <= offsets[1] <= data:
        raise InvalidArgumentError(f"{where}: data_offsets are {offsets}; they must be begin and end within {data} bytes")
    size = _BYTES.get(kind, 1)
    for n in shape:
        size *= n
        if size >= END:
            raise InvalidArgumentError(f"{where} has the shape {shape}, more elements than memory holds")
    if size != offsets[1] - offsets[0]:
        raise InvalidArgumentError(f"{where}: {kind} {shape} takes {size} bytes, data_offsets give it {offsets[1] - offsets[0]}")
    return _Entry(kind, tuple(shape), offsets[0], offsets[1])


def _pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        known: set[str] = set()
        twice = next(k for k, _ in pairs if k in known or known.add(k))  # type: ignore[func-returns-value]
        raise ValueError(f"the name {twice[:80]!r} stands there twice")
    return out


def _reason(e: BaseException) -> str:
    return "it is nested too deeply" if isinstance(e, RecursionError) else str(e) or type(e).__name__


def write(path: Any, arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Writes a file. The widest types come first, so that every tensor is aligned."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    values, at = [], 0
    for name, array in sorted(arrays.items(), key=lambda item: int(item[1].dtype.itemsize), reverse=True):
        if name == "__metadata__":
            raise ValueError(f"{name!r} cannot be the name of a tensor")
        code = _CODES.get(from_numpy(array.dtype).name)
        if code is None:
            raise TypeError(f"'{name}' is {array.dtype}, which safetensors files cannot hold; they hold {', '.join(_CODES)}")
        array = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
        values.append(array)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _MOST_HEADER:
        raise ValueError(f"the header has {len(text)} bytes; the format allows {_MOST_HEADER}")
    with replacing(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in values:
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


# ---- Parts with an index ----


def read_index(index: pathlib.Path, links: bool) -> dict[str, Stored]:
    """Returns the tensors of all parts that an index names. All parts are in the folder of the index."""
    places, _ = index_of(index)
    for name in sorted(set(places.values())):
        if not name or "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
            raise InvalidArgumentError(f"'{index}' names the file {name[:80]!r}, which is not in its folder")
        if not links and (index.parent / name).is_symlink():
            raise InvalidArgumentError(f"'{index}' names the file {name!r}, which is a link and may lead out of its folder; "
                                       "pass links=True if you trust the folder")
    found: dict[str, Stored] = {}
    lacking: list[str] = []
    for part in sorted(set(places.values())):
        with opened(index.parent / part) as stream:
            tensors, _ = read(index.parent / part, stream)
        lacking += [name for name, place in places.items() if place == part and name not in tensors]
        add(found, tensors, str(index))
    if lacking:
        raise InvalidArgumentError(f"'{index}' names tensors that their files do not have: {some(lacking, 100)}")
    return found


def index_of(index: pathlib.Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Returns the files of an index by the names of tensors, and its metadata."""
    with opened(index) as stream:
        text = stream.read(_MOST_HEADER + 1)
    if len(text) > _MOST_HEADER:
        raise InvalidArgumentError(f"'{index}' has more than {_MOST_HEADER} bytes, too many for an index")
    try:
        content = json.loads(text, object_pairs_hook=_pairs)
        places, metadata = content["weight_map"], content.get("metadata", {})
        if not isinstance(places, dict) or not all(isinstance(place, str) for place in places.values()) or not isinstance(metadata, dict):
            raise ValueError("weight_map must give the names of files by those of tensors")
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as e:
        raise InvalidArgumentError(f"'{index}' is no index of safetensors files: {_reason(e)}") from None
    return places, metadata
