"""Checkpoints: variables in files of TensorFlow's V2 bundle format, `prefix`.index and `prefix`.data-00000-of-00001.

    thalweg.Saver().save(session, "model")         # all variables of the session's graph
    with thalweg.Checkpoint("model") as c:
        print(c.names, c["dense/w"])

Files are written under other names first: a prefix names the old checkpoint or the new one, never half of one."""
import ctypes
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _low
from .dtypes import DType, from_number
from .errors import check, made
from .graph import Graph
from .output import shape_from
from .session import Session
from .tensor import Tensor
from .variable import Variable

Path = Union[str, os.PathLike]


class Saver:
    """Saves and restores variables. variables: None: all of the graph of the first session that it is used with, as they are then.
    It adds its operations to the graph once, on first use; a saver belongs to one graph. Threads: one at a time."""

    def __init__(self, variables: Optional[Sequence[Variable]] = None):
        self._handle = 0
        self._variables, self._graph = variables, None if not variables else variables[0].graph
        if variables is not None and not variables:
            raise ValueError("there are no variables to save")

    def __del__(self, destroy=_low.tw_saver_destroy):
        destroy(getattr(self, "_handle", None))

    def save(self, session: Session, prefix: Path) -> None:
        """Writes every variable as it is now. Raises FailedPreconditionError for one without contents, and what the file system says."""
        check(_low.tw_saver_save(self._of(session.graph), session._handle, os.fsencode(prefix)), session.graph)

    def restore(self, session: Session, prefix: Path) -> None:
        """Sets every variable from the file. Raises NotFoundError naming file and tensor, InvalidArgumentError if dtype or shape differ,
        DataLossError."""
        check(_low.tw_saver_restore(self._of(session.graph), session._handle, os.fsencode(prefix)), session.graph)

    def _of(self, graph: Graph) -> int:
        if self._graph not in (None, graph):
            raise ValueError("the saver belongs to another graph than the session")
        if not self._handle:
            variables = self._variables or []
            handles = (ctypes.c_uint64 * len(variables))(*(v.handle.number for v in variables))
            self._handle, self._graph = made(_low.tw_saver_create, graph._handle, handles, len(variables), graph=graph), graph
        return self._handle


class Checkpoint(Mapping):
    """A checkpoint, open for reading: arrays by name. Raises NotFoundError; DataLossError if its index is damaged or of another format.
    Threads: any, until it is closed."""

    def __init__(self, prefix: Path):
        self._handle = made(_low.tw_checkpoint_open, os.fsencode(prefix))
        self.names = [_low.tw_checkpoint_name(self._handle, i).decode() for i in range(_low.tw_checkpoint_count(self._handle))]

    def __del__(self, close=_low.tw_checkpoint_close):
        close(getattr(self, "_handle", None))

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        handle, self._handle = self._handle, 0
        _low.tw_checkpoint_close(handle)

    def __getitem__(self, name: str) -> np.ndarray:
        """Reads one, its checksum verified. Raises KeyError; DataLossError."""
        return self.read(name).numpy()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def read(self, name: str) -> Tensor:
        """As by [], but a Tensor, for types that NumPy has not."""
        if name not in self.names:
            raise KeyError(name)
        return Tensor._adopt(made(_low.tw_checkpoint_read, self._handle, name.encode()))

    def describe(self, name: str) -> tuple[DType, Optional[tuple[Optional[int], ...]], int]:
        """Element type, shape and bytes in the file. Raises NotFoundError."""
        dtype, shape, size = ctypes.c_uint32(), _low.tw_shape(), ctypes.c_uint64()
        check(_low.tw_checkpoint_describe(self._handle, name.encode(), dtype, shape, size))
        return from_number(dtype.value), shape_from(shape), size.value

    def verify(self, name: Optional[str] = None) -> None:
        """Compares the checksum of one tensor, or of all, with its bytes in the file. Raises DataLossError naming file and tensor."""
        check(_low.tw_checkpoint_verify(self._handle, None if name is None else name.encode()))


def write_checkpoint(prefix: Path, values: Mapping[str, Any]) -> None:
    """Writes arrays under their names, without a graph."""
    tensors = [v if isinstance(v, Tensor) else Tensor(v) for v in values.values()]
    names = (ctypes.c_char_p * len(tensors))(*(name.encode() for name in values))
    handles = (ctypes.c_void_p * len(tensors))(*(t._handle for t in tensors))
    check(_low.tw_checkpoint_write(os.fsencode(prefix), names, handles, len(tensors)))
