"""Writing files of records in the TFRecord format."""
import os
from typing import Any, Union

from . import _low
from ._handle import Handle, c_text
from .errors import check, made


class RecordWriter(Handle):
    """Writes a TFRecord file. In a `with` the file appears under its name at the end, as a whole, unless the block raises.

        with tw.data.RecordWriter("train.tfrecord") as w:
            w.write(b"bytes of a record")

    Threads: one at a time."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]):
        self._handle = 0
        self._handle = made(_low.tw_record_writer_create, None, c_text(os.fspath(path)))

    def __del__(self, destroy: Any = _low.tw_record_writer_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()

    def write(self, record: bytes) -> None:
        """Appends a record."""
        if not isinstance(record, (bytes, bytearray, memoryview)):
            raise TypeError(f"a record is bytes, not {type(record).__name__}; encode it")
        record = bytes(record)
        check(_low.tw_record_writer_write(self._handle, record, len(record)))

    def close(self) -> None:
        """Completes the file under its name. Without it the records are discarded."""
        check(_low.tw_record_writer_close(self._handle))
