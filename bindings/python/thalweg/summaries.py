"""Summaries: the record of a run, which TensorBoard draws.

    with tw.SummaryWriter("runs/1") as w:
        for step in range(1000):
            ...
            w.scalar("loss", loss, step)
    # tensorboard --logdir runs        or: thalweg plot runs

Threads: any number may use a writer."""
import ctypes
import numbers
import os
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

import numpy as np

from . import _low
from ._handle import Handle, c_text
from .errors import check, made
from .graph import Graph
from .stats import StepStats, give_back, take
from .tensor import Tensor, bytes_of

__all__ = ["SummaryWriter"]


class SummaryWriter(Handle):
    """Writes event files in a folder, which is a run: TensorBoard shows each folder below its --logdir as a run of its own. The folder is
    made if it is missing; a writer adds a file to those that are there, so a run that goes on in its folder stays one run.

    flush_seconds: how long a summary waits in memory at most before it is in the file.   queue_bytes: methods wait while more than these
    bytes of summaries wait.   file_bytes: a file that is larger is followed by another one; None: there is one file.
    suffix: of the files' names.

    tag: the name of a series; TensorBoard groups series by the text before the first "/".   step: the place on the x-axis.
    Values are queued, and a thread encodes and writes them; what is wrong with a value is raised at once, a failure of the file system by
    the calls after it. In a `with` the writer is closed at the end."""

    def __init__(self, folder: Union[str, "os.PathLike[str]"], *, flush_seconds: float = 1.0, queue_bytes: Optional[int] = None,
                 file_bytes: Optional[int] = None, suffix: str = ""):
        self._handle = 0
        options = _low.tw_summary_writer_options(
            size=ctypes.sizeof(_low.tw_summary_writer_options), flush_seconds=flush_seconds, queue_bytes=_count("queue_bytes", queue_bytes),
            file_bytes=_count("file_bytes", file_bytes), suffix=c_text(suffix))
        self._handle = made(_low.tw_summary_writer_create, os.fsencode(folder), options)
        self._closed = False

    def __del__(self, destroy: Any = _low.tw_summary_writer_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None and not self._closed:
            check(_low.tw_summary_writer_end(self._handle, 0))
        self.close()

    def __repr__(self) -> str:
        return f"<SummaryWriter of '{self.path}'>"

    @property
    def path(self) -> str:
        """The file that is being written."""
        return os.fsdecode(bytes_of(made(_low.tw_summary_writer_path, self._handle)))

    # ---- Series ----

    def scalar(self, tag: str, value: Any, step: int) -> None:
        """A number: a Python number, or an array or tensor of one element. It is stored as float32."""
        check(_low.tw_summary_writer_scalar(self._handle, c_text(tag), _step(step), _number(tag, value)))

    def scalars(self, values: Mapping[str, Any], step: int, prefix: str = "") -> None:
        """A number for each tag: scalars(trainer.evaluate(test), step, prefix="test/")."""
        for tag, value in values.items():
            self.scalar(prefix + tag, value, step)

    def histogram(self, tag: str, values: Any, step: int) -> None:
        """The distribution of the elements of an array of real numbers, all of which must be finite."""
        value = _tensor(values)
        check(_low.tw_summary_writer_histogram(self._handle, c_text(tag), _step(step), value._handle))

    def image(self, tag: str, image: Any, step: int) -> None:
        """A picture [height, width] or [height, width, channels] with 1, 3 or 4 channels. uint8 is written as it is; floating-point numbers
        are scaled so that the largest becomes 255, or, if there are negative ones, so that 0 becomes 128."""
        array = np.asarray(image)
        self.images(tag, array[..., None] if array.ndim == 2 else array, step, 1)

    def images(self, tag: str, images: Any, step: int, most: int = 3) -> None:
        """The first `most` of several pictures [n, height, width, channels], each scaled as in image. Their tags are "tag/image/0" and so
        on; if most is 1, "tag/image"."""
        value = _tensor(images)
        check(_low.tw_summary_writer_images(self._handle, c_text(tag), _step(step), value._handle, _most(most)))

    def audio(self, tag: str, sound: Any, step: int, rate: float, most: int = 1) -> None:
        """Sound [frames], [n, frames] or [n, frames, channels] of float32 in [-1, 1], of which the first `most` are written.
        rate: frames per second. Tags are as those of images, with "audio"."""
        array = np.asarray(sound, np.float32)
        value = _tensor(array[None] if array.ndim == 1 else array)
        check(_low.tw_summary_writer_audio(self._handle, c_text(tag), _step(step), value._handle, float(rate), _most(most)))

    def text(self, tag: str, text: str, step: int) -> None:
        """A text, shown as Markdown."""
        check(_low.tw_summary_writer_text(self._handle, c_text(tag), _step(step), c_text(text)))

    def tensor(self, tag: str, value: Any, step: int, plugin: Optional[str] = None, content: bytes = b"") -> None:
        """A tensor. plugin: the plugin of TensorBoard that shows it, with `content` for that plugin."""
        held = _tensor(value)
        check(_low.tw_summary_writer_tensor(self._handle, c_text(tag), _step(step), held._handle,
                                            None if plugin is None else c_text(plugin), content, len(content)))

    # ---- The run ----

    def graph(self, graph: Graph) -> None:
        """The operations of a graph, for the page "graphs"."""
        check(_low.tw_summary_writer_graph(self._handle, graph._handle))

    def step_stats(self, tag: str, stats: StepStats, step: int) -> None:
        """The times and memory of the operations in one run, by which the page "graphs" colours them. tag: another one for each run."""
        take(stats)
        try:
            check(_low.tw_summary_writer_step_stats(self._handle, c_text(tag), _step(step), stats._handle))
        finally:
            give_back(stats)

    def hparams(self, values: Mapping[str, Any], metrics: Iterable[str] = ()) -> None:
        """The hyper-parameters of the run, for the page "hparams", which compares runs: numbers, bools and texts by their names.
        metrics: tags of scalars that tell how good the run is. Once for each writer. The run has succeeded when the writer is closed, and
        failed if its `with` raises."""
        records = (_low.tw_hparam * len(values))(*(_hparam(name, value) for name, value in values.items()))
        tags = [c_text(tag) for tag in metrics]
        check(_low.tw_summary_writer_hparams(self._handle, records, len(values), (ctypes.c_char_p * len(tags))(*tags), len(tags)))

    def summary(self, summary: bytes, step: int) -> None:
        """A Summary message, such as the result of ops.merge_summary."""
        check(_low.tw_summary_writer_summary(self._handle, _step(step), summary, len(summary)))

    def event(self, event: bytes) -> None:
        """A whole Event message."""
        check(_low.tw_summary_writer_event(self._handle, event, len(event)))

    def flush(self) -> None:
        """Waits until everything is in the file. Raises what went wrong with it."""
        check(_low.tw_summary_writer_flush(self._handle))

    def close(self) -> None:
        """Writes everything and closes the file; no effect if it is closed. Raises what went wrong with it."""
        if not self._closed:
            self._closed = True
            check(_low.tw_summary_writer_close(self._handle))


def _count(name: str, value: Optional[int]) -> int:
    if value is not None and value <= 0:
        raise ValueError(f"{name} is {value}; it is a number of bytes above 0, or None")
    return value or 0


def _step(step: Any) -> int:
    if isinstance(step, (bool, np.bool_)) or not isinstance(step, numbers.Integral):
        raise TypeError(f"step is {step!r}; it must be an integer")
    if not -2**63 <= int(step) < 2**63:
        raise ValueError(f"step is {step}; it must fit into 64 bits")
    return int(step)


def _most(most: int) -> int:
    if not 1 <= most < 2**32:
        raise ValueError(f"most is {most}; it must be 1 or more")
    return most


def _number(tag: str, value: Any) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biufV":
        raise ValueError(f"summary '{tag}': a scalar is one real number, not {array.dtype} {list(array.shape)}")
    return float(array.reshape(()))


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(np.asarray(value))


def _hparam(name: str, value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return _low.tw_hparam(name=c_text(name), number=float(value), kind=_low.TW_HPARAM_BOOL)
    if isinstance(value, str):
        return _low.tw_hparam(name=c_text(name), text=c_text(value), kind=_low.TW_HPARAM_TEXT)
    if isinstance(value, numbers.Real):
        return _low.tw_hparam(name=c_text(name), number=float(value), kind=_low.TW_HPARAM_NUMBER)
    raise TypeError(f"the hyper-parameter '{name}' is {value!r}; it must be a number, a bool or a text")
