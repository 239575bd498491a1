"""Weights in files of others: safetensors, alone or in parts with an index; GGUF; and NumPy's npz.

    arrays = tw.weights.load("model.safetensors", names={"encoder/*": "bert.encoder.*", "head/kernel": "cls.weight^T"})
    tw.weights.load("model.safetensors.index.json", names=names, into=net, session=session)
    tw.weights.save("out.safetensors", arrays, metadata={"format": "pt"})

Files are mapped into memory: `load` reads headers alone, and elements when they are used; a file must not be cut while arrays of it are
used. Files are not trusted: a header that does not describe the bytes of the file is refused.

`names` are rules {name here: name in the file}, in `load` and `save` alike:

    "head/w": "cls.weight"                             one tensor
    "encoder/*": "bert.encoder.*"                      a star is any text
    "layer_{i}/kernel": "layers.{i}.weight^T"          {i} is one part of a name, without '.' and '/'; ^T swaps the axes of a matrix
    "conv/filter": "conv.weight^(2,3,1,0)"             axes here, as numbers of those in the file: that of PyTorch's convolutions

Rules with the same name in the file all apply, as for tied weights; otherwise the first rule that fits a name wins. A name that no rule
fits stays."""
import fnmatch
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _gguf, _npz, _safetensors
from ._stored import Q8_0, Quantised, Stored, array_of, check_name, opened, quantised, some
from ._weight_names import Order, Rules
from .dtypes import Array, DType, DTypeLike, as_dtype, from_numpy
from .errors import InvalidArgumentError
from .graph import placeholder
from .module import Module
from .session import Session
from .variable import Variable, listed

__all__ = ["Quantised", "assign", "load", "metadata", "save"]

Path = Union[str, "os.PathLike[str]"]
Target = Union[Module, Session, Mapping[str, Variable]]

_MOST_TOLD = 100  # names of one kind in a message
_WIDER = {"float16": ("float32", "float64"), "bfloat16": ("float32", "float64"), "float32": ("float64",), Q8_0: ("float32", "float64")}


def __dir__() -> list[str]:
    return __all__


def load(path: Path, *, names: Optional[Mapping[str, str]] = None, transposed: Iterable[str] = (), skip: Iterable[str] = (),
         dtype: Optional[DTypeLike] = None, quantised: bool = False, links: bool = False, into: Optional[Target] = None,
         session: Optional[Session] = None, partial: bool = False) -> dict[str, Any]:
    """Returns the tensors of a file by name, as arrays that cannot be written. path: a safetensors file, the index of one in several
    parts (`model.safetensors.index.json`), which lie in its folder, a GGUF file, or an npz file; the contents of files that are no .json tell which.
    names: rules for names, as above.   transposed: patterns of names here, such as "*/kernel": matrices there come with their axes swapped,
    as a view.   skip: patterns of names in the file that are left out.
    dtype: the type to which floating-point numbers are converted; None: they keep theirs.   quantised: tensors of type Q8_0 come as
    Quantised, which refers to the file; False: in float32.   links: whether the parts of an index may be symbolic links.
    into: a module, a session or {name: variable}; all variables there are set, and names here are theirs, without the module's own name at
    their beginning. A tensor of fewer bits is widened to a wider variable; types must agree otherwise.   session: that of a module whose
    variables are in a graph; every call adds operations to the graph.   partial: allows variables and tensors without each other.
    Raises NotFoundError for a missing file or names without holes that the file lacks; InvalidArgumentError for a damaged file, naming
    what is wrong, and for tensors that do not fit the variables, listing all of them, and then sets nothing; TypeError for bfloat16 and
    smaller floats, unless they become float32 or float64, if the package ml_dtypes is missing."""
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is not None and not wanted.is_floating:
        raise ValueError(f"dtype is {wanted}; it must be a floating-point type")
    variables = None if into is None else _variables(into, session)
    file = pathlib.Path(path)
    found = _chosen(_safetensors.read_index(file, links) if _is_index(file) else _read(file)[0], skip)
    here = Rules(names).here(found, _reordered, str(path))
    patterns = list(transposed)
    for name, tensor in here.items():
        if len(tensor.shape) == 2 and any(fnmatch.fnmatchcase(name, p) for p in patterns):
            here[name] = _reordered(name, tensor, Order())
    if variables is not None:
        return _set(variables, here, into if isinstance(into, Session) else session, partial, wanted, f"'{path}' does not fit {_described(into)}")
    return {name: _given(tensor, wanted, quantised) for name, tensor in here.items()}


def metadata(path: Path) -> dict[str, Any]:
    """Returns what a file tells of itself: the texts of a safetensors file, the values of an index or of a GGUF file, where lists of numbers
    are arrays; nothing of an npz file. Raises as load."""
    file = pathlib.Path(path)
    return _safetensors.index_of(file)[1] if _is_index(file) else _read(file)[1]


def save(path: Path, arrays: Union[Target, Mapping[str, Any]], *, names: Optional[Mapping[str, str]] = None,
         metadata: Optional[Mapping[str, str]] = None, session: Optional[Session] = None) -> None:
    """Writes a safetensors file, or an npz file if the path ends with .npz; an older file of that name stays until the new one is complete.
    arrays: {name: array, or value that converts to one}, or what load has as `into`, of which all variables are written.   names: the rules
    of load, from here to the file.   metadata: texts by name, kept in the header of a safetensors file.   session: as in load.
    Raises TypeError for a type that the format lacks, such as texts and, in npz files, bfloat16; ValueError; OSError."""
    about = _checked(metadata or {})
    contents = _contents(arrays, session) if isinstance(arrays, (Module, Session)) or _are_variables(arrays) else arrays
    values: dict[str, Array] = {}
    for name, value in contents.items():
        if not isinstance(name, str):
            raise ValueError(f"{name!r} cannot be the name of a tensor")
        values[name] = np.asarray(value)
    written = Rules(names).there(values, lambda name, array, order: array.transpose(order.axes(array.ndim, name, True)))
    for name in written:
        check_name(name, str(path))
    if pathlib.Path(path).suffix == ".npz":
        if about:
            raise ValueError("npz files have no metadata; write a safetensors file")
        _npz.write(path, written)
    else:
        _safetensors.write(path, written, about)


def assign(session: Session, arrays: Mapping[str, Any], *, partial: bool = False) -> list[str]:
    """Sets the variables of the session's graph that have the names. Returns the names of the other variables, which keep their contents.
    partial: whether arrays without a variable are ignored. Every call adds operations to the graph.
    Raises InvalidArgumentError that lists all arrays without a variable and those of another type or shape; nothing is assigned then."""
    known = {v.name: v for v in listed(session.graph)}
    wrong, given = [], {}
    for name, value in arrays.items():
        array, variable = np.asarray(value), known.get(name)
        if variable is None:
            if not partial:
                wrong.append(f"there is no variable '{name}'")
        elif from_numpy(array.dtype) != variable.dtype or not _fits(array.shape, variable.shape):
            wrong.append(f"'{name}' is {array.dtype.name} {list(array.shape)}, the variable is {variable.dtype} {_text(variable.shape)}")
        else:
            given[name] = array
    if wrong:
        raise InvalidArgumentError("the arrays do not fit the variables: " + "; ".join(wrong[:20]) + (" and more" if len(wrong) > 20 else ""))
    _assigned(known, given, session)
    return [name for name in known if name not in given]


# ---- Files ----


def _is_index(file: pathlib.Path) -> bool:
    return file.name.endswith(".json")


def _read(file: pathlib.Path) -> tuple[dict[str, Stored], dict[str, Any]]:
    """Returns the tensors of a file that is no index, and its metadata."""
    with opened(file) as stream:
        head = stream.read(4)
        stream.seek(0)
        if head == _gguf.MAGIC:
            return _gguf.read(file, stream)
        if head[:2] == _npz.MAGIC and head[2:] in (b"\3\4", b"\5\6"):
            return _npz.read(file, stream), {}
        return _safetensors.read(file, stream)


def _chosen(found: dict[str, Stored], skip: Iterable[str]) -> dict[str, Stored]:
    patterns = list(skip)
    return {name: t for name, t in found.items() if not any(fnmatch.fnmatchcase(name, p) for p in patterns)}


def _reordered(name: str, tensor: Stored, order: Order) -> Stored:
    if tensor.kind == Q8_0:  # blocks lie along the last axis
        tensor = Stored("float32", array_of(tensor))
    return tensor.permuted(order.axes(len(tensor.shape), name, False))


def _given(tensor: Stored, wanted: Optional[DType], kept: bool) -> Any:
    if kept and tensor.kind == Q8_0:
        return quantised(tensor)
    array = array_of(tensor, wanted)
    if array.flags.writeable:
        array.flags.writeable = False
    return array


def _checked(about: Mapping[str, str]) -> dict[str, str]:
    for key, value in about.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata must be texts by name, not {key!r}: {value!r}")
    return dict(about)


# ---- Variables ----


def _are_variables(arrays: Any) -> bool:
    return isinstance(arrays, Mapping) and bool(arrays) and all(isinstance(v, Variable) for v in arrays.values())


def _variables(into: Target, session: Optional[Session]) -> dict[str, Variable]:
    """Returns the variables by the names that tensors must have."""
    if isinstance(into, Session):
        if session is not None and session is not into:
            raise ValueError("into and session are two sessions; give one")
        found = {v.name: v for v in listed(into.graph)}
    elif isinstance(into, Module):
        own = into.name + "/"
        found = {name[len(own):] if name.startswith(own) else name: v for name, v in into.named_parameters().items()}
    elif _are_variables(into):
        found = dict(into)
    else:
        raise TypeError(f"into must be a module, a session or variables by name, not {into!r}")
    if session is None and not isinstance(into, Session) and any(not v.graph.computes for v in found.values()):
        raise ValueError(f"the variables of {_described(into)} are in a graph; pass session=, whose values are meant")
    return found


def _described(into: Any) -> str:
    return f"module '{into.name}'" if isinstance(into, Module) else "the session's graph" if isinstance(into, Session) else "the variables"


def _contents(source: Any, session: Optional[Session]) -> dict[str, Any]:
    variables = _variables(source, session)
    used = source if isinstance(source, Session) else session
    if used is None:
        return {name: v.read() for name, v in variables.items()}
    return dict(zip(variables, used.run([v.read() for v in variables.values()]))) if variables else {}


def _set(variables: dict[str, Variable], found: dict[str, Stored], session: Optional[Session], partial: bool, wanted: Optional[DType],
         title: str) -> dict[str, Any]:
    """Sets the variables, all or none of them. Returns the arrays that they got."""
    wrong = [] if partial else [*_told("missing", variables.keys() - found.keys()), *_told("unexpected", found.keys() - variables.keys())]
    other, given = [], {}
    for name in variables.keys() & found.keys():
        tensor, variable = found[name], variables[name]
        if not _fits(tensor.shape, variable.shape):
            other.append(f"'{name}' is {list(tensor.shape)}, the variable {_text(variable.shape)}")
        elif not _converts(tensor, variable.dtype, wanted):
            other.append(f"'{name}' is {tensor.kind}, the variable {variable.dtype}")
        else:
            given[name] = tensor
    if other:
        wrong.append("of another shape or type: " + "; ".join(sorted(other)[:_MOST_TOLD]) +
                     (f" and {len(other) - _MOST_TOLD} more" if len(other) > _MOST_TOLD else ""))
    if wrong:
        raise InvalidArgumentError(f"{title}: {'; '.join(wrong)}")
    arrays = {name: _given(tensor, variables[name].dtype if variables[name].dtype.is_floating else None, False) for name, tensor in given.items()}
    _assigned(variables, arrays, session)
    return arrays


def _told(what: str, names: Iterable[str]) -> list[str]:
    listing = sorted(names)
    return [f"{what}: {some(listing, _MOST_TOLD)}"] if listing else []


def _converts(tensor: Stored, kind: DType, wanted: Optional[DType]) -> bool:
    """Whether a variable of the type may take the tensor. wanted: the type that the caller chose for floating-point numbers."""
    floating = tensor.kind == Q8_0 or as_dtype(tensor.kind).is_floating
    if wanted is not None and floating:
        return wanted == kind
    return tensor.kind == kind.name or kind.name in _WIDER.get(tensor.kind, ())


def _assigned(variables: Mapping[str, Variable], arrays: Mapping[str, Array], session: Optional[Session]) -> None:
    at_once = [name for name in arrays if variables[name].graph.computes]
    for name in at_once:
        variables[name].assign(arrays[name])
    fed: dict[Any, Any] = {}
    steps: list[Any] = []
    rest = [name for name in arrays if name not in set(at_once)]
    if rest:
        if session is None:
            raise AssertionError("variables in a graph without a session")  # _variables has checked it
        with session.graph:
            for name in rest:
                value = placeholder(variables[name].dtype, arrays[name].shape)
                steps.append(variables[name].assign(value))
                fed[value] = arrays[name]
        session.run(steps, fed)


def _fits(shape: Sequence[int], wanted: Any) -> bool:
    return wanted is None or len(shape) == len(wanted) and all(w is None or s == w for s, w in zip(shape, wanted))


def _text(shape: Any) -> str:
    return "of any shape" if shape is None else str(list(shape))
