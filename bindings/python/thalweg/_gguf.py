"""Files in the format GGUF, versions 2 and 3. The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

Files are not trusted: counts, lengths and places that leave the file, or tensors that overlap, are refused."""
import pathlib
import struct
from typing import Any, BinaryIO

import numpy as np

from ._stored import END, Q8_0, Stored, check_name, mapped, stored
from .errors import InvalidArgumentError

MAGIC = b"GGUF"

_NUMBERS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 10: "<u8", 11: "<i8", 12: "<f8"}
_BOOL, _TEXT, _LIST = 7, 8, 9
_KINDS = {0: "float32", 1: "float16", 8: Q8_0, 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64", 30: "bfloat16"}
_BYTES = {"float32": 4, "float16": 2, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float64": 8, "bfloat16": 2}
_OTHER = {2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K",
          16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M",
          34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"}
_MOST_AXES = 4
_MOST_DEPTH = 8  # of lists in lists


class _Header:
    """The bytes of a file up to its tensors, read from front to back."""

    def __init__(self, data: Any, file: str):
        self._data, self._file, self.at, self.size = data, file, len(MAGIC), len(data)

    def fail(self, text: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"'{self._file}' {text}")

    def _skip(self, count: int, what: str) -> int:
        """Returns where the next bytes begin."""
        begin = self.at
        if count > self.size - begin:
            raise self.fail(f"ends too early: {what} at byte {begin} takes {count} bytes, and {self.size - begin} are left")
        self.at += count
        return begin

    def number(self, form: str, what: str) -> Any:
        """Reads a number; form: its code in struct."""
        return struct.unpack_from("<" + form, self._data, self._skip(struct.calcsize("<" + form), what))[0]

    def count(self, least: int, what: str) -> int:
        """Reads a number of things that take `least` bytes each."""
        n: int = self.number("Q", what)
        if n > (self.size - self.at) // least:
            raise self.fail(f"has {n} as {what} at byte {self.at - 8}, more than the file holds")
        return n

    def text(self, what: str) -> str:
        length = self.count(1, f"the length of {what}")
        begin = self._skip(length, what)
        try:
            return str(self._data[begin:begin + length], "utf-8")
        except UnicodeDecodeError:
            raise self.fail(f"has {what} at byte {begin} that is not UTF-8") from None

    def value(self, kind: int, what: str, depth: int = 0) -> Any:
        """Reads a value of the metadata: a number, a text, a list, or an array for numbers in a list."""
        if kind in _NUMBERS:
            return self._numbers(kind, 1, what)[0].item()
        if kind == _BOOL:
            return self._truths(1, what)[0]
        if kind == _TEXT:
            return self.text(what)
        if kind != _LIST:
            raise self.fail(f"gives {what} the type {kind}; known are 0 to 12")
        if depth == _MOST_DEPTH:
            raise self.fail(f"has more than {_MOST_DEPTH} lists in each other in {what}")
        inner = self.number("I", what)
        least = np.dtype(_NUMBERS[inner]).itemsize if inner in _NUMBERS else {_BOOL: 1, _TEXT: 8, _LIST: 12}.get(inner, 1)
        n = self.count(least, f"the length of {what}")
        if inner in _NUMBERS:
            return self._numbers(inner, n, what)
        if inner == _BOOL:
            return self._truths(n, what)
        return [self.value(inner, what, depth + 1) for _ in range(n)]

    def _numbers(self, kind: int, n: int, what: str) -> Any:
        base = np.dtype(_NUMBERS[kind])
        begin = self._skip(n * base.itemsize, what)
        return np.frombuffer(self._data[begin:self.at], base)

    def _truths(self, n: int, what: str) -> list[bool]:
        values = self._numbers(0, n, what)
        if (values > 1).any():
            raise self.fail(f"has {int(values.max())} in {what}, which holds truth values, 0 and 1")
        return [bool(v) for v in values]


def read(file: pathlib.Path, stream: BinaryIO) -> tuple[dict[str, Stored], dict[str, Any]]:
    """Returns the tensors of a file, and its metadata."""
    data: Any = mapped(stream)
    h = _Header(data, str(file))
    version = h.number("I", "the version")
    if version not in (2, 3):
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        raise h.fail(f"is GGUF of version {version}; versions 2 and 3 can be read" if swapped not in (2, 3) else
                     "is GGUF in big-endian order of bytes; convert it to little-endian")
    tensors, values = h.number("Q", "the number of tensors"), h.number("Q", "the number of values")
    # The least bytes of an entry: a name, a type and a value; a name, axes, a type and an offset.
    if tensors > h.size // 24 or values > h.size // 13:
        raise h.fail(f"claims {tensors} tensors and {values} values, more than its {h.size} bytes hold")
    metadata: dict[str, Any] = {}
    for _ in range(values):
        key = h.text("a key")
        if key in metadata:
            raise h.fail(f"has the key '{key[:80]}' twice")
        metadata[key] = h.value(h.number("I", f"the type of '{key[:80]}'"), f"'{key[:80]}'")
    if metadata.get("split.count", 1) not in (0, 1):
        raise h.fail(f"is one of {metadata['split.count']} parts of a model; merge the parts into one file")
    entries = [_entry(h) for _ in range(tensors)]
    return _tensors(h, data, entries, _alignment(h, metadata)), metadata


def _alignment(h: _Header, metadata: dict[str, Any]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment <= 0 or alignment & (alignment - 1) or alignment > 1 << 20:
        raise h.fail(f"has the alignment {str(alignment)[:40]}; it must be a power of two, at most 2^20")
    return alignment


def _entry(h: _Header) -> tuple[str, str, tuple[int, ...], int, int]:
    """Reads what the header tells of a tensor: name, type, shape, offset and bytes."""
    name = h.text("the name of a tensor")
    check_name(name, h._file)
    where = f"tensor '{name}'"
    axes = h.number("I", f"the number of axes of {where}")
    if axes > _MOST_AXES:
        raise h.fail(f"gives {where} {axes} axes; the format allows {_MOST_AXES}")
    shape = tuple(h.number("Q", f"the shape of {where}") for _ in range(axes))[::-1]  # the first axis is contiguous
    code = h.number("I", f"the type of {where}")
    offset = h.number("Q", f"the offset of {where}")
    kind = _KINDS.get(code)
    if kind is None:
        known = ", ".join("F32 F16 BF16 F64 Q8_0 I8 I16 I32 I64".split())
        raise h.fail(f"gives {where} the type {_OTHER.get(code, code)}; {known} can be read, so convert the file to one of them")
    count = 1
    for size in shape:
        count *= size
        if count >= END:
            raise h.fail(f"gives {where} the shape {list(shape)}, more elements than memory holds")
    if kind == Q8_0 and (not shape or shape[-1] % 32):
        raise h.fail(f"gives {where} the shape {list(shape)}; the last size of Q8_0 must be a multiple of 32")
    return name, kind, shape, offset, count // 32 * 34 if kind == Q8_0 else count * _BYTES[kind]


def _tensors(h: _Header, data: Any, entries: list[tuple[str, str, tuple[int, ...], int, int]], alignment: int) -> dict[str, Stored]:
    start = -(-h.at // alignment) * alignment
    end, found = 0, {}
    for name, kind, shape, offset, count in sorted(entries, key=lambda e: (e[3], e[4])):
        if name in found:
            raise h.fail(f"has the tensor '{name}' twice")
        if offset % alignment or offset < end:
            raise h.fail(f"puts tensor '{name}' at byte {offset} of the data; it must be a multiple of {alignment}, and at least {end}, "
                         "where the tensor before ends")
        end = offset + count
        if end > h.size - start and count:
            raise h.fail(f"gives tensor '{name}' {count} bytes at {offset} of the data, and the data has {max(h.size - start, 0)} bytes")
        found[name] = stored(data, kind, shape, start + offset, f"'{h._file}': tensor '{name}'")
    return {e[0]: found[e[0]] for e in entries}
