"""Sources of datasets that have types: columns of CSV files, members of JSON objects, rows of arrays in .npy, .npz and IDX files."""
import gzip
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, Optional, Union

import numpy as np

from .dtypes import DType, as_dtype, from_numpy
from .dtypes import string as _string
from .elements import Spec
from .graph import Graph
from .output import Output
from .splitting import split_files

Build = Callable[[Graph], tuple[Output, Spec]]

REQUIRED = object()  # the default of a column that has none

_IN_CSV = ("float32", "float64", "int32", "int64", "string")
_IN_JSON = (*_IN_CSV, "bool")
_IDX = {0x08: "uint8", 0x09: "int8", 0x0B: "int16", 0x0C: "int32", 0x0D: "float32", 0x0E: "float64"}


class Column(NamedTuple):
    """What one column of a file becomes. dtype: its type, or the name of it.   default: what stands for a missing value; if none is given,
    a missing value is an error.   shape: of members of JSON objects; () is a single value, None as a size: as long as the array is."""
    dtype: Any
    default: Any = REQUIRED
    shape: Sequence[Optional[int]] = ()


Columns = Union[Mapping[str, Any], Sequence[Any]]


def _column(what: str, given: Any, allowed: Sequence[str]) -> tuple[DType, Column]:
    """A column, from a type, a pair of type and default, or a Column."""
    if isinstance(given, tuple) and not isinstance(given, Column):
        if len(given) != 2:
            raise ValueError(f"{what} is {given!r}; it must be a type, a pair of a type and a default, or a tw.data.Column")
        given = Column(*given)
    column = given if isinstance(given, Column) else Column(given)
    dtype = as_dtype(column.dtype)
    if dtype.name not in allowed:
        raise ValueError(f"{what} is {dtype.name}; there are {', '.join(allowed)}")
    return dtype, column


def _named(what: str, columns: Columns, allowed: Sequence[str]) -> tuple[Optional[list[str]], list[tuple[DType, Column]]]:
    """Names, or None, and the columns."""
    if isinstance(columns, (str, DType, Column)) or not columns:
        raise ValueError(f"{what}: columns is {columns!r}; it must be a dict of names and types, or a list of types")
    if isinstance(columns, Mapping):
        return list(columns), [_column(f"{what}: column '{name}'", c, allowed) for name, c in columns.items()]
    return None, [_column(f"{what}: column {k}", c, allowed) for k, c in enumerate(columns)]


def _text(graph: Graph, text: str) -> Output:
    return graph.constant(text.encode(), _string)


def _inputs(graph: Graph, names: Any, compression: str) -> list[Output]:
    """The first inputs of the ops that read files."""
    value = graph._own(names) if isinstance(names, Output) and not names.graph.computes else graph.constant(names, _string)
    return [split_files(graph, value), _text(graph, compression.upper()), graph.constant(0, "int64")]


def check_compression(compression: str) -> None:
    if compression not in ("", "gzip", "zlib"):
        raise ValueError(f"compression is '{compression}'; it must be 'gzip', 'zlib' or ''")


def csv_source(names: Any, columns: Columns, header: bool, delimiter: str, quotes: bool, missing: str, compression: str) -> Build:
    check_compression(compression)
    keys, chosen = _named("csv", columns, _IN_CSV)
    for k, (_, column) in enumerate(chosen):
        if tuple(column.shape):
            raise ValueError(f"csv: column {repr(keys[k]) if keys else k} has the shape {tuple(column.shape)}; a field is a single value")
    spec = Spec([(t, ()) for t, _ in chosen], {k: None for k in keys} if keys else tuple(None for _ in chosen))
    attrs: dict[str, Any] = dict(output_types=spec.types, output_shapes=spec.shapes)

    def build(graph: Graph) -> tuple[Output, Spec]:
        begin = _inputs(graph, names, compression)
        defaults = [graph.constant([], t) if c.default is REQUIRED else graph.constant(c.default, t) for t, c in chosen]
        rules = [_text(graph, delimiter), graph.constant(quotes, "bool"), _text(graph, missing)]
        if keys and header:
            return graph.op("CsvColumnsDataset", *begin, *rules, defaults, columns=keys, **attrs), spec
        none = graph.constant([], "int64")
        return graph.op("CSVDatasetV2", *begin, graph.constant(header, "bool"), *rules, none, defaults, none, **attrs), spec
    return build


def json_source(names: Any, columns: Columns, compression: str) -> Build:
    check_compression(compression)
    keys, chosen = _named("json_lines", columns, _IN_JSON)
    if not keys:
        raise ValueError("json_lines: columns is a list; members of objects have names, so give a dict")
    spec = Spec([(t, tuple(c.shape)) for t, c in chosen], {k: None for k in keys})
    required = [k for k, (_, c) in zip(keys, chosen) if c.default is REQUIRED]

    def build(graph: Graph) -> tuple[Output, Spec]:
        unused = {t: b"" if t == _string else np.zeros((), t.numpy) for t, _ in chosen}
        defaults = [graph.constant(unused[t] if c.default is REQUIRED else c.default, t) for t, c in chosen]
        return graph.op("JsonLinesDataset", *_inputs(graph, names, compression), defaults, keys=keys, required=required,
                        output_types=spec.types, output_shapes=spec.shapes), spec
    return build


# ---- Arrays ----

Kind = tuple[Any, Sequence[Optional[int]]]  # type and shape of a row


def _first(what: str, names: Any) -> str:
    """The file whose head says what rows are."""
    if isinstance(names, Output):
        raise ValueError(f"{what}: the names are a value of a graph, so no file can be looked at; give dtype and shape of a row")
    first: Any = names if isinstance(names, (str, bytes)) or not hasattr(names, "__len__") else next(iter(names), None)
    if first is None:
        raise ValueError(f"{what}: there are no files")
    path = first.decode() if isinstance(first, bytes) else str(first)
    if "://" in path:
        raise ValueError(f"{what}: '{path}' is in another file system, so it is not looked at before it is read; give dtype and shape of a row")
    return path


def _rows_of(path: str, dtype: Any, shape: Sequence[int]) -> Kind:
    if not shape:
        raise ValueError(f"'{path}': the array is a scalar, which has no rows")
    return from_numpy(np.dtype(dtype).newbyteorder("=")), tuple(int(d) for d in shape[1:])


def _npy_kind(path: str, stream: BinaryIO) -> Kind:
    files: Any = np.lib.format
    try:
        version = files.read_magic(stream)
        read = files.read_array_header_1_0 if version == (1, 0) else files.read_array_header_2_0
        shape, _, dtype = read(stream)
    except (ValueError, EOFError) as e:
        raise ValueError(f"'{path}' is no .npy file that can be read: {e}") from None
    return _rows_of(path, dtype, shape)


def _opened(path: str, compression: str) -> BinaryIO:
    if compression == "zlib":
        raise ValueError(f"'{path}' is compressed by zlib, so it is not looked at before it is read; give dtype and shape of a row")
    stream: Any = gzip.open(path) if compression == "gzip" else open(path, "rb")
    return stream  # type: ignore[no-any-return]


def _idx_kind(path: str, stream: BinaryIO) -> Kind:
    head = stream.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _IDX:
        raise ValueError(f"'{path}' is no IDX file; it begins with the bytes {head.hex()}")
    sizes = stream.read(4 * head[3])
    if len(sizes) < 4 * head[3]:
        raise ValueError(f"'{path}': the head of the file is cut off")
    return _rows_of(path, _IDX[head[2]], struct.unpack(f">{head[3]}I", sizes))


def array_source(form: str, names: Any, dtype: Any, shape: Optional[Sequence[Optional[int]]], compression: str) -> Build:
    check_compression(compression)
    if (dtype is None) != (shape is None):
        raise ValueError(f"{form}: dtype is {dtype!r} and shape is {shape!r}; give both, or none to take them from the first file")
    if dtype is None or shape is None:
        path = _first(form, names)
        with _opened(path, compression) as stream:
            dtype, shape = (_npy_kind if form == "npy" else _idx_kind)(path, stream)
    return _array_files(form, names, Spec([(as_dtype(dtype), tuple(shape))], None), [], compression)


def npz_source(names: Any, arrays: Union[None, Sequence[str], Mapping[str, Kind]]) -> Build:
    if isinstance(arrays, Mapping):
        kinds: dict[str, Any] = {k: (as_dtype(t), tuple(s)) for k, (t, s) in arrays.items()}
    else:
        path = _first("npz", names)
        kinds = {}
        try:
            with zipfile.ZipFile(path) as archive:
                members = {m[:-4] for m in archive.namelist() if m.endswith(".npy")}
                for name in sorted(members) if arrays is None else arrays:
                    if name not in members:
                        raise ValueError(f"'{path}' has no array '{name}'; it has {', '.join(map(repr, sorted(members)))}")
                    with archive.open(name + ".npy") as stream:
                        kinds[name] = _npy_kind(path, stream)  # type: ignore[arg-type]
        except zipfile.BadZipFile as e:
            raise ValueError(f"'{path}' is no .npz file that can be read: {e}") from None
    if not kinds:
        raise ValueError("npz: no arrays are chosen; name at least one")
    return _array_files("npz", names, Spec(list(kinds.values()), {k: None for k in kinds}), list(kinds), "")


def _array_files(form: str, names: Any, spec: Spec, arrays: list[str], compression: str) -> Build:
    def build(graph: Graph) -> tuple[Output, Spec]:
        return graph.op("ArrayFilesDataset", *_inputs(graph, names, compression), format=form, arrays=arrays,
                        output_types=spec.types, output_shapes=spec.shapes), spec
    return build
