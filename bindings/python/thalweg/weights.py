"""Weights in safetensors files, as model hubs store them.

    arrays = thalweg.weights.load("model.safetensors", names={"encoder/*": "bert.encoder.*"}, transposed=["*.kernel"])
    thalweg.weights.assign(session, arrays)
    thalweg.weights.save("out.safetensors", arrays, metadata={"format": "pt"})

A file is mapped into memory: `load` reads the header alone, and elements when they are used. Files are not trusted: a header that does not
describe the bytes of the file exactly is refused. The format: https://github.com/huggingface/safetensors"""
import fnmatch
import json
import mmap
import os
import pathlib
import struct
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from .dtypes import Array, DType, as_dtype, from_numpy
from .errors import InvalidArgumentError, NotFoundError
from .graph import placeholder
from .session import Session
from .variable import listed

__all__ = ["assign", "load", "save"]

Path = Union[str, "os.PathLike[str]"]

_KINDS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
          "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}
_CODES = {name: code for code, name in _KINDS.items()}
_BYTES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
_MOST_HEADER = 100_000_000  # bytes, the format's own limit
_MOST_AXES = 254  # of a tensor
_END = 1 << 63


def __dir__() -> list[str]:
    return __all__


class _Entry(NamedTuple):
    """A tensor of a file: its type's name in the format, its sizes, and where its bytes are."""
    kind: str
    shape: tuple[int, ...]
    begin: int
    end: int


def load(path: Path, *, names: Optional[Mapping[str, str]] = None, transposed: Iterable[str] = ()) -> dict[str, Array]:
    """Returns the tensors of a file by name, as arrays that cannot be written. path: a safetensors file, or the index of one in several
    parts (`model.safetensors.index.json`), which lie in its folder.
    names: new names by names in the file, {"encoder/*": "bert.encoder.*", "head/w": "cls.weight"}; a star stands for the same text on both
    sides; other tensors keep their names.   transposed: patterns of new names, such as "*/kernel": matrices there come with their axes
    swapped, as a view.
    Raises NotFoundError for a missing file or a name without a star that the file lacks; InvalidArgumentError for a damaged file, naming
    what is wrong; TypeError for bfloat16 and smaller floats if the package ml_dtypes is missing."""
    found: dict[str, Array] = {}
    file = pathlib.Path(path)
    for part in _parts(file) if file.name.endswith(".json") else [file]:
        for name, array in _read(part).items():
            if name in found:
                raise InvalidArgumentError(f"'{file}': the tensor '{name}' is in two parts")
            found[name] = array
    renamed = _renamed(found, names or {}, str(file))
    patterns = list(transposed)
    for name, array in renamed.items():
        if array.ndim == 2 and any(fnmatch.fnmatchcase(name, p) for p in patterns):
            renamed[name] = array.T
    return renamed


def save(path: Path, arrays: Mapping[str, Any], *, metadata: Optional[Mapping[str, str]] = None) -> None:
    """Writes arrays, or values that convert to them, to a file; an older file of that name stays until the new one is complete. metadata:
    texts by name, kept in the header. Raises TypeError for a type that the format lacks, such as texts and complex numbers; OSError."""
    header: dict[str, Any] = {"__metadata__": _checked(metadata)} if metadata else {}
    values, at = [], 0
    for name, value in arrays.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise ValueError(f"{name!r} cannot be the name of a tensor")
        array = np.asarray(value)
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
    target = pathlib.Path(path)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=target.name, delete=False) as file:
        try:
            file.write(struct.pack("<Q", len(text)) + text)
            for array in values:
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            file.flush()
            os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(file.name, 0o666 & ~mask)
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise


def assign(session: Session, arrays: Mapping[str, Any], *, partial: bool = False) -> list[str]:
    """Sets the variables of the session's graph that have the names. Returns the names of the other variables, which keep their contents.
    partial: whether arrays without a variable are ignored. Every call adds operations to the graph.
    Raises InvalidArgumentError that lists all arrays without a variable and those of another type or shape; nothing is assigned then."""
    known = {v.name: v for v in listed(session.graph)}
    wrong, feeds, steps = [], {}, []
    for name, value in arrays.items():
        array, variable = np.asarray(value), known.get(name)
        if variable is None:
            if not partial:
                wrong.append(f"there is no variable '{name}'")
        elif from_numpy(array.dtype) != variable.dtype or not _fits(array.shape, variable.shape):
            wrong.append(f"'{name}' is {array.dtype.name} {list(array.shape)}, the variable is {variable.dtype} {_text(variable.shape)}")
        else:
            feeds[name] = array
    if wrong:
        raise InvalidArgumentError("the arrays do not fit the variables: " + "; ".join(wrong[:20]) + (" and more" if len(wrong) > 20 else ""))
    fed = {}
    with session.graph:
        for name, array in feeds.items():
            value = placeholder(known[name].dtype, array.shape)
            steps.append(known[name].assign(value))
            fed[value] = array
    if steps:
        session.run(steps, fed)
    return [name for name in known if name not in feeds]


def _fits(shape: tuple[int, ...], wanted: Any) -> bool:
    return wanted is None or len(shape) == len(wanted) and all(w is None or s == w for s, w in zip(shape, wanted))


def _text(shape: Any) -> str:
    return "of any shape" if shape is None else str(list(shape))


def _checked(metadata: Mapping[str, str]) -> dict[str, str]:
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata must be texts by name, not {key!r}: {value!r}")
    return dict(metadata)


def _renamed(found: dict[str, Array], names: Mapping[str, str], file: str) -> dict[str, Array]:
    """Applies the rules; the first that fits a name wins."""
    used, renamed = set(), {}
    for name, array in found.items():
        new = name
        for wanted, given in names.items():
            head, star, tail = given.partition("*")
            if not star and name == given:
                new = wanted
            elif star and name.startswith(head) and name.endswith(tail) and len(name) >= len(head) + len(tail):
                new = wanted.replace("*", name[len(head):len(name) - len(tail)], 1)
            else:
                continue
            used.add(given)
            break
        if new in renamed:
            raise InvalidArgumentError(f"'{file}': two tensors would be named '{new}'; the second is '{name}'")
        renamed[new] = array
    missing = [given for given in names.values() if "*" not in given and given not in used]
    if missing:
        raise NotFoundError(f"'{file}' has no tensor '{missing[0]}'; it has {_some(found)}")
    return renamed


def _some(names: Iterable[str]) -> str:
    listed_names = list(names)
    return ", ".join(f"'{n}'" for n in listed_names[:8]) + (f" and {len(listed_names) - 8} more" if len(listed_names) > 8 else "")


def _parts(index: pathlib.Path) -> list[pathlib.Path]:
    """Returns the files that an index names, all of them in its folder."""
    try:
        text = json.loads(_bytes(index), object_pairs_hook=_pairs)
        files = text["weight_map"].values()
        names = sorted(set(files))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as e:
        raise InvalidArgumentError(f"'{index}' is no index of safetensors files: {_reason(e)}") from None
    for name in names:
        if not isinstance(name, str) or not name or "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
            raise InvalidArgumentError(f"'{index}' names the file {name!r}, which is not in its folder")
        if (index.parent / name).is_symlink():
            raise InvalidArgumentError(f"'{index}' names the file {name!r}, which is a link")
    return [index.parent / name for name in names]


def _bytes(file: pathlib.Path) -> bytes:
    with _opened(file) as stream:
        data = stream.read(_MOST_HEADER + 1)
    if len(data) > _MOST_HEADER:
        raise InvalidArgumentError(f"'{file}' has more than {_MOST_HEADER} bytes, too many for an index")
    return data


def _opened(file: pathlib.Path) -> Any:
    try:
        if not file.is_file():  # a device may have no end
            raise NotFoundError(f"'{file}' is not there, or no file")
        return open(file, "rb")
    except (OSError, ValueError) as e:
        raise NotFoundError(f"'{file}' cannot be read: {e}") from None


def _pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        twice = next(k for i, (k, _) in enumerate(pairs) if any(k == other for other, _ in pairs[:i]))
        raise ValueError(f"the name {twice!r} stands there twice")
    return out


def _reason(e: BaseException) -> str:
    return "it is nested too deeply" if isinstance(e, RecursionError) else str(e) or type(e).__name__


def _read(file: pathlib.Path) -> dict[str, Array]:
    with _opened(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        head = stream.read(8)
        if len(head) < 8:
            raise InvalidArgumentError(f"'{file}' is no safetensors file: it has {size} bytes, and the length of the header takes 8")
        length = struct.unpack("<Q", head)[0]
        if length > min(size - 8, _MOST_HEADER):
            raise InvalidArgumentError(f"'{file}' is no safetensors file: its header would have {length} bytes, the file has {size}")
        entries = _entries(stream.read(length), size - 8 - length, str(file))
        mapped: Any = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    return {name: _array(mapped, 8 + length, e) for name, e in entries.items()}


def _array(mapped: Any, base: int, e: _Entry) -> Array:
    kind: DType = as_dtype(_KINDS[e.kind])
    count = 1
    for size in e.shape:
        count *= size
    return np.frombuffer(mapped, kind.numpy.newbyteorder("<"), count, base + e.begin if count else 0).reshape(e.shape)


def _entries(text: bytes, data: int, file: str) -> dict[str, _Entry]:
    """Parses and checks a header. data: the number of bytes behind it."""
    try:
        if not text.startswith(b"{"):
            raise ValueError("the header does not begin with {")
        header = json.loads(text.decode(), object_pairs_hook=_pairs)
    except (ValueError, RecursionError) as e:
        raise InvalidArgumentError(f"'{file}' has a header that cannot be read: {_reason(e)}") from None
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise InvalidArgumentError(f"'{file}': '__metadata__' must hold texts")
    entries = {name: _entry(name, about, data, file) for name, about in header.items()}
    end = 0
    for name, e in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if e.begin != end:
            raise InvalidArgumentError(f"'{file}': the bytes of '{name}' begin at {e.begin}, those before end at {end}; tensors must follow each other")
        end = e.end
    if end != data:
        raise InvalidArgumentError(f"'{file}': the tensors have {end} bytes, the file holds {data}; it is cut, or something follows")
    return entries


def _entry(name: str, about: Any, data: int, file: str) -> _Entry:
    where = f"'{file}': tensor '{name}'"
    if not isinstance(about, dict) or set(about) != {"dtype", "shape", "data_offsets"}:
        raise InvalidArgumentError(f"{where} must have dtype, shape and data_offsets, and nothing else")
    kind, shape, offsets = about["dtype"], about["shape"], about["data_offsets"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidArgumentError(f"{where} has the type {str(kind)[:40]!r}; known are {', '.join(_KINDS)}")
    for what, numbers in (("shape", shape), ("data_offsets", offsets)):
        if not isinstance(numbers, list) or len(numbers) > _MOST_AXES or not all(type(n) is int and 0 <= n < _END for n in numbers):
            raise InvalidArgumentError(f"{where}: {what} must be a list of whole numbers, at most {_MOST_AXES}, each in [0, 2^63)")
    if len(offsets) != 2 or not offsets[0] <= offsets[1] <= data:
        raise InvalidArgumentError(f"{where}: data_offsets are {offsets}; they must be begin and end within {data} bytes")
    size = _BYTES.get(kind, 1)
    for n in shape:
        size *= n
        if size >= _END:
            raise InvalidArgumentError(f"{where} has the shape {shape}, more elements than memory holds")
    if size != offsets[1] - offsets[0]:
        raise InvalidArgumentError(f"{where}: {kind} {shape} takes {size} bytes, data_offsets give it {offsets[1] - offsets[0]}")
    return _Entry(kind, tuple(shape), offsets[0], offsets[1])
